//! One order: its status, what it consists of, what has happened to it.

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};
use payment::id::OrderId;
use payment::time::Millis;
use payment::view::{Stage, View};

use crate::components::asleep::ReloadSeldom;
use crate::components::deposit::DepositAccount;
use crate::components::live_order::LiveOrder;
use crate::components::mark::Mark;
use crate::components::panel::Truth;
use crate::components::refunds::{CancelOrder, Refunds};
use crate::components::status::{StatusBadge, status_name, tone};
use crate::components::summary::Summary;
use crate::components::timeline::Timeline;
use crate::data::PageContext;
use crate::pages::history::Watched;
use crate::pages::{Found, PrivateTitle, page};
use crate::seed::{Notice, waits};
use crate::text::{Lang, OrdersWord, Word};

/// How often this page asks about an order in doubt.
const STEP: Millis = Millis::from_secs(5);

/// The page of one order.
#[component]
pub fn OrderPage() -> impl IntoView {
    let order = use_params_map().with_untracked(|params| params.get("order"));
    let order = order.and_then(|order| OrderId::parse(&order).ok());
    let notice = use_query_map().with_untracked(|query| query.get("notice"));
    page(move |context| order_page(context, order.clone(), notice.clone()))
}

async fn order_page(
    context: PageContext,
    order_id: Option<OrderId>,
    notice: Option<String>,
) -> Found {
    let Some(order_id) = order_id else {
        return Ok(None);
    };
    let Some(order) = context.data.order(order_id, None).await? else {
        return Ok(None);
    };
    let lang = context.lang;
    let shown = View::of_known(&order.state);
    let watched = vec![order.state.clone()];
    let awaits = shown.stage == Stage::AwaitingDeposit;
    let deposit = order.state.deposit.clone();
    let deposit = deposit.map(|account| view! { <DepositAccount account lang/> });
    let live = (waits(shown.stage) || awaits)
        .then(|| view! { <Watched><LiveOrder watched lang/></Watched> });
    let truth = order.gateway_truth.clone().filter(|_| context.development);
    let notice = notice.and_then(|name| Notice::try_from(name).ok());
    let notice = notice.and_then(|notice| notice.text(lang));
    let refunds = order.refunds.clone();
    let here = format!("/orders/{}", order.order_id);
    let cancel = order
        .cancel
        .clone()
        .map(|offer| view! { <CancelOrder here offer lang/> });
    let receipt = order.paid.is_some().then(|| {
        let to = format!("/orders/{}/receipt", order.order_id);
        let label = lang.orders(OrdersWord::ToReceipt);
        view! { <a class="button button-secondary" href=to data-testid="to-receipt">{label}</a> }
            .into_any()
    });
    let moments = order.timeline.clone();
    let order_id = order.order_id.clone();
    let body = view! {
        <PrivateTitle title=lang.title(lang.word(Word::OrderTitle))/>
        <div class="order">
            <h1>{lang.word(Word::OrderTitle)}</h1>
            {notice.map(|text| view! { <p class="notice" data-testid="notice">{text}</p> })}
            {awaits.then(|| view! { <ReloadSeldom/> })}
            <div class="order-parts">
                <div class="order-main">
                    <Standing shown order_id receipt lang/>
                    {deposit}
                    {live}
                    <Refunds refunds lang/>
                    <Timeline moments lang/>
                </div>
                <div class="order-side">
                    <Summary order lang/>
                    {cancel}
                </div>
            </div>
            {truth.map(|lines| view! { <Truth lines lang/> })}
        </div>
    };
    Ok(Some(body.into_any()))
}

/// What the order's state means, and the way to its checkout where there is something to do or to see, or to its receipt.
#[component]
fn Standing(shown: View, order_id: OrderId, receipt: Option<AnyView>, lang: Lang) -> impl IntoView {
    let stage = shown.stage;
    let to = format!("/checkout/{order_id}");
    let link = if shown.button.is_some() {
        let label = lang.word(Word::GoPay);
        Some(
            view! { <a class="button button-primary" href=to data-testid="pay">{label}</a> }
                .into_any(),
        )
    } else if stage == Stage::Checking {
        let label = lang.word(Word::SeeProgress);
        Some(view! { <a class="link" href=to data-testid="see-progress">{label}</a> }.into_any())
    } else {
        None
    };
    view! {
        <div class="standing" data-testid="order-status" data-status=status_name(stage) data-tone=tone(stage)>
            <p class="standing-line">
                <Mark stage/>
                <span class="visually-hidden">{lang.word(Word::Status)}": "</span>
                <StatusBadge stage lang/>
            </p>
            <p>{lang.body(stage, STEP)}</p>
            {link}
            {receipt}
        </div>
    }
}
