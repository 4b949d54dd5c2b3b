//! What was bought and paid, on one sheet.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
use payment::id::OrderId;
use payment::money::Won;

use crate::components::summary::Summary;
use crate::data::PageContext;
use crate::pages::{Found, PrivateTitle, page};
use crate::text::{Lang, OrdersWord, Word};

/// The receipt of an order; there is none of one that was not paid.
#[component]
pub fn ReceiptPage() -> impl IntoView {
    let order = use_params_map().with_untracked(|params| params.get("order"));
    let order = order.and_then(|order| OrderId::parse(&order).ok());
    page(move |context| receipt(context, order.clone()))
}

async fn receipt(context: PageContext, order_id: Option<OrderId>) -> Found {
    let Some(order_id) = order_id else {
        return Ok(None);
    };
    let Some(order) = context.data.order(order_id, None).await? else {
        return Ok(None);
    };
    let lang = context.lang;
    let Some(paid) = order.paid.clone() else {
        return Ok(None);
    };
    let back = format!("/orders/{}", order.order_id);
    let facts = [
        (lang.orders(OrdersWord::PaidAt), paid.at),
        (
            lang.orders(OrdersWord::PaidWith),
            lang.method(&paid.gateway),
        ),
    ];
    let facts = facts.map(|(name, fact)| view! { <div><dt>{name}</dt><dd>{fact}</dd></div> });
    let returned = returned(order.amount, paid.given_back, lang);
    let body = view! {
        <PrivateTitle title=lang.title(lang.orders(OrdersWord::Receipt))/>
        <div class="receipt" data-testid="receipt">
            <h1>{lang.orders(OrdersWord::Receipt)}</h1>
            <p class="receipt-shop">{lang.word(Word::Shop)}</p>
            <Summary order lang/>
            <dl class="receipt-facts summary-facts">{facts.collect_view()}{returned}</dl>
            <p class="receipt-note">{lang.orders(OrdersWord::Note)}</p>
            <a class="link receipt-back" href=back>{lang.orders(OrdersWord::BackToOrder)}</a>
        </div>
    };
    Ok(Some(body.into_any()))
}

/// What went back, and what remains; nothing where nothing did.
fn returned(amount: Won, back: Won, lang: Lang) -> Option<AnyView> {
    (back > Won::ZERO).then(|| {
        let remains = amount.less(back);
        view! {
            <div><dt>{lang.orders(OrdersWord::GivenBack)}</dt><dd>{lang.won(back)}</dd></div>
            <div class="summary-total"><dt>{lang.orders(OrdersWord::Remains)}</dt><dd>{lang.won(remains)}</dd></div>
        }
        .into_any()
    })
}
