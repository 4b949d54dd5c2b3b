//! The shopper's orders, newest first.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use payment::view::View;

use crate::components::art::Art;
use crate::components::asleep::ReloadUntilAwake;
use crate::components::live_order::LiveOrder;
use crate::components::status::{StatusBadge, status_name};
use crate::data::{HistoryRow, OrderGroup, PageContext};
use crate::pages::{Found, PrivateTitle, page};
use crate::seed::waits;
use crate::text::{Lang, OrdersWord, Say, Word};

/// The order history.
#[component]
pub fn HistoryPage() -> impl IntoView {
    let number = use_query_map().with_untracked(|query| query.get("page"));
    let number = number
        .and_then(|number| number.parse().ok())
        .filter(|number| *number > 0);
    let group = use_query_map().with_untracked(|query| query.get("state"));
    let group = group
        .and_then(|name| OrderGroup::parse(&name))
        .unwrap_or(OrderGroup::All);
    page(move |context| history(context, group, number.unwrap_or(1)))
}

async fn history(context: PageContext, group: OrderGroup, number: u32) -> Found {
    let lang = context.lang;
    let history = context.data.history(group, number).await?;
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
        .then(|| view! { <Nothing group lang/> });
    let rows = history
        .rows
        .into_iter()
        .map(|row| view! { <Row row lang/> })
        .collect_view();
    let body = view! {
        <PrivateTitle title=lang.title(lang.word(Word::HistoryTitle))/>
        <div class="history">
            <h1>{lang.word(Word::HistoryTitle)}</h1>
            <Groups chosen=group lang/>
            {live}
            {empty}
            <ul class="rows">{rows}</ul>
            <Paging group number=history.page more=history.more lang/>
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
            {row.sku.map(|sku| view! { <span class="row-art"><Art sku/></span> })}
            <a class="row-link" href=format!("/orders/{}", row.order_id)>{row.summary}</a>
            <span class="row-amount">{lang.won(row.amount)}</span>
            <span class="row-created">{row.created}</span>
            <StatusBadge stage lang/>
        </li>
    }
}

/// No order to show: of this group, or none at all, and then where to find something.
#[component]
fn Nothing(group: OrderGroup, lang: Lang) -> impl IntoView {
    if group != OrderGroup::All {
        let none = lang.orders(OrdersWord::NoneInGroup);
        return view! { <p class="empty">{none}</p> }.into_any();
    }
    view! {
        <div class="empty">
            <h2>{lang.word(Word::NoOrders)}</h2>
            <p>{lang.word(Word::NoOrdersLead)}</p>
            <a class="button button-secondary" href="/">{lang.say(Say::ToShop)}</a>
        </div>
    }
    .into_any()
}

/// The groups to choose from, as links: they work without script, and the address says what is shown.
#[component]
fn Groups(chosen: OrderGroup, lang: Lang) -> impl IntoView {
    let link = |group: OrderGroup| {
        let current = (group == chosen).then_some("page");
        let href = if group == OrderGroup::All {
            "/orders".to_owned()
        } else {
            format!("/orders?state={}", group.as_str())
        };
        view! {
            <li>
                <a class="group" href=href aria-current=current data-testid=format!("group-{}", group.as_str())>
                    {lang.order_group(group)}
                </a>
            </li>
        }
    };
    view! {
        <nav aria-label=lang.orders(OrdersWord::Filter)>
            <ul class="groups">{OrderGroup::ALL.map(link).collect_view()}</ul>
        </nav>
    }
}

/// To newer and older orders.
#[component]
fn Paging(group: OrderGroup, number: u32, more: bool, lang: Lang) -> impl IntoView {
    let link = |number: u32, word| {
        let href = format!("/orders?state={}&page={number}", group.as_str());
        view! { <a class="link" href=href>{lang.word(word)}</a> }
    };
    let newer = (number > 1).then(|| link(number - 1, Word::Newer));
    let older = more.then(|| link(number.saturating_add(1), Word::Older));
    (number > 1 || more).then(|| {
        view! { <nav class="paging" aria-label=lang.word(Word::Paging)>{newer}{older}</nav> }
    })
}
