//! The checkout page and the page that the payment window returns to: one picture, from one machine.

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};
use leptos_router::params::ParamsMap;
use payment::id::{AttemptReference, GatewayOrderId, OrderId, PaymentKey};
use payment::money::Won;
use payment::view::Stage;
use payment::wire::RETURN_TOKEN;

use crate::components::asleep::{ReloadSeldom, ReloadUntilAwake};
use crate::components::checkout_island::CheckoutIsland;
use crate::components::summary::Summary;
use crate::data::{OrderPage, PageContext, ReturnedAttempt};
use crate::pages::{Found, PrivateTitle, page};
use crate::seed::{Notice, Returned, Seed, waits};
use crate::text::{Lang, Word};

/// Where an order is paid, and where its wait goes on after a reload.
#[component]
pub fn CheckoutPage() -> impl IntoView {
    address_page(|_| Some(None))
}

/// Where the payment window returns to.
#[component]
pub fn ReturnPage() -> impl IntoView {
    address_page(|params| {
        let reference = params.get("reference")?;
        AttemptReference::parse(&reference).ok().map(Some)
    })
}

/// Reads the address; what is not even an id is no page.
fn address_page(reference: fn(&ParamsMap) -> Option<Option<AttemptReference>>) -> AnyView {
    let address = use_params_map().with_untracked(|params| {
        let order = OrderId::parse(&params.get("order")?).ok()?;
        Some((order, reference(params)?))
    });
    let query = use_query_map().get_untracked();
    page(move |context| checkout(context, address.clone(), query.clone()))
}

async fn checkout(
    context: PageContext,
    address: Option<(OrderId, Option<AttemptReference>)>,
    query: ParamsMap,
) -> Found {
    let Some((order_id, reference)) = address else {
        return Ok(None);
    };
    let Some(order) = context.data.order(order_id, reference).await? else {
        return Ok(None);
    };
    let lang = context.lang;
    let seed = seed(&order, &query, lang);
    let again = waits(seed.screen().view.stage).then(|| {
        // 2 s is the step of the polls that a script would make.
        view! { <ReloadUntilAwake step=2/> }
    });
    let awaits = seed.screen().view.stage == Stage::AwaitingDeposit;
    let seldom = awaits.then(|| view! { <ReloadSeldom/> });
    let body = view! {
        <PrivateTitle title=lang.title(lang.word(Word::CheckoutTitle))/>
        {again}
        {seldom}
        <div class="checkout">
            <CheckoutIsland seed/>
            <Summary order lang/>
        </div>
    };
    Ok(Some(body.into_any()))
}

/// What the live part starts from.
fn seed(order: &OrderPage, query: &ParamsMap, lang: Lang) -> Seed {
    let returned = order.returned.as_ref();
    let code = query.get("code").filter(|_| returned.is_some());
    let ended = query
        .get("ended")
        .filter(|_| returned.is_some_and(|attempt| attempt.by_call));
    let window = code.as_deref().map(Notice::of_window);
    let window = window.or(ended.as_deref().map(Notice::of_end));
    let confirm = returned.and_then(|attempt| returned_payment(attempt, order.amount, query));
    let ready = returned.is_some_and(|attempt| attempt.ready);
    let told = query
        .get("notice")
        .and_then(|name| Notice::try_from(name).ok());
    Seed {
        order_id: order.order_id.clone(),
        lang,
        amount: order.amount,
        times: order.times,
        state: order.state.clone(),
        confirming_for: order.confirming_for,
        start: ready && confirm.is_some() && window.is_none(),
        confirm,
        notice: window.or(told),
        methods: order.methods.clone(),
        left: returned
            .filter(|attempt| attempt.ready && window.is_some())
            .map(|attempt| attempt.reference.clone()),
        seller: order.seller.clone(),
    }
}

/// The authenticated payment of a complete query that is about the attempt which the address names.
fn returned_payment(attempt: &ReturnedAttempt, amount: Won, query: &ParamsMap) -> Option<Returned> {
    if attempt.by_call {
        return Some(Returned {
            payment_key: PaymentKey::parse(&query.get(RETURN_TOKEN)?).ok()?,
            gateway_order_id: attempt.gateway_order_id.clone(),
            amount,
            reference: attempt.reference.clone(),
        });
    }
    let gateway_order_id = GatewayOrderId::parse(&query.get("orderId")?).ok()?;
    if gateway_order_id != attempt.gateway_order_id {
        return None;
    }
    Some(Returned {
        payment_key: PaymentKey::parse(&query.get("paymentKey")?).ok()?,
        gateway_order_id,
        amount: query
            .get("amount")?
            .parse()
            .ok()
            .and_then(|won| Won::new(won).ok())?,
        reference: attempt.reference.clone(),
    })
}
