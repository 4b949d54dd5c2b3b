//! The shopper's orders, newest first.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use payment::view::View;

use crate::components::asleep::ReloadUntilAwake;
use crate::components::live_order::LiveOrder;
use crate::components::status::{StatusBadge, status_name};
use crate::data::{HistoryRow, PageContext};
use crate::pages::{Found, PrivateTitle, page};
use crate::seed::waits;
use crate::text::{Lang, Word};

/// The order history.
#[component]
pub fn HistoryPage() -> impl IntoView {
    let number = use_query_map().with_untracked(|query| query.get("page"));
    let number = number
        .and_then(|number| number.parse().ok())
        .filter(|number| *number > 0);
    page(move |context| history(context, number.unwrap_or(1)))
}

async fn history(context: PageContext, number: u32) -> Found {
    let lang = context.lang;
    let history = context.data.history(number).await?;
    let in_doubt = |row: &&HistoryRow| waits(View::of_known(&row.state).stage);
    let watched: Vec<_> = history
        .rows
        .iter()
        .filter(in_doubt)
        .map(|row| row.state.clone())
        .collect();
    let live =
        (!watched.is_empty()).then(|| view! { <Watched><LiveOrder watched lang/></Watched> });
    let empty = history
        .rows
        .is_empty()
        .then(|| view! { <p>{lang.word(Word::NoOrders)}</p> });
    let rows = history
        .rows
        .into_iter()
        .map(|row| view! { <Row row lang/> })
        .collect_view();
    let body = view! {
        <PrivateTitle title=lang.title(lang.word(Word::HistoryTitle))/>
        <div class="history">
            <h1>{lang.word(Word::HistoryTitle)}</h1>
            {live}
            {empty}
            <ul class="rows">{rows}</ul>
            <Paging number=history.page more=history.more lang/>
        </div>
    };
    Ok(Some(body.into_any()))
}

/// Around the live note: where nothing wakes it, the page is loaded anew instead, without script at the pace of the script.
#[component]
pub(super) fn Watched(children: Children) -> impl IntoView {
    view! {
        <ReloadUntilAwake step=5/>
        {children()}
    }
}

/// One order.
#[component]
fn Row(row: HistoryRow, lang: Lang) -> impl IntoView {
    let stage = View::of_known(&row.state).stage;
    view! {
        <li
            class="row"
            data-testid="order-row"
            data-order=row.order_id.to_string()
            data-status=status_name(stage)
        >
            <a class="row-link" href=format!("/orders/{}", row.order_id)>{row.summary}</a>
            <span class="row-amount">{lang.won(row.amount)}</span>
            <span class="row-created">{row.created}</span>
            <StatusBadge stage lang/>
        </li>
    }
}

/// To newer and older orders.
#[component]
fn Paging(number: u32, more: bool, lang: Lang) -> impl IntoView {
    let link = |number: u32, word| {
        view! { <a class="link" href=format!("/orders?page={number}")>{lang.word(word)}</a> }
    };
    let newer = (number > 1).then(|| link(number - 1, Word::Newer));
    let older = more.then(|| link(number.saturating_add(1), Word::Older));
    (number > 1 || more).then(|| {
        view! { <nav class="paging" aria-label=lang.word(Word::Paging)>{newer}{older}</nav> }
    })
}
