//! What operators did.

use leptos::prelude::*;

use super::{inside, notice, table};
use crate::data::console::Deed;
use crate::pages::page;
use crate::text::{Lang, OpsWord};

/// What operators did, the newest first.
#[component]
pub fn DeedsPage() -> impl IntoView {
    let notice = notice();
    page(move |context| {
        let seen = context.console.deeds();
        let lang = context.lang;
        inside(context, notice, seen, move |data| Some(body(data, lang)))
    })
}

fn body(data: Vec<Deed>, lang: Lang) -> AnyView {
    view! {
        <h1>{lang.ops(OpsWord::Deeds)}</h1>
        <section class="console-card">{deeds(data, lang)}</section>
    }
    .into_any()
}

/// A table of them.
pub(super) fn deeds(data: Vec<Deed>, lang: Lang) -> AnyView {
    if data.is_empty() {
        return view! { <p>{lang.ops(OpsWord::NoDeeds)}</p> }.into_any();
    }
    let heads = [
        OpsWord::At,
        OpsWord::Operator,
        OpsWord::Action,
        OpsWord::Order,
        OpsWord::Detail,
        OpsWord::Result,
    ];
    let rows = data.into_iter().map(row).collect();
    table(
        lang.ops(OpsWord::Deeds),
        &heads.map(|head| lang.ops(head)),
        rows,
    )
}

fn row(deed: Deed) -> AnyView {
    let order = deed.order_id.map(|order| {
        view! { <a class="link" href=format!("/ops/orders/{order}")><code>{order.clone()}</code></a> }
    });
    let action = deed.action.clone();
    view! {
        <tr data-testid="deed" data-action=action>
            <td>{deed.at}</td>
            <td>{deed.operator}</td>
            <td><code>{deed.action}</code></td>
            <td>{order}</td>
            <td class="console-told">{deed.detail}</td>
            <td><code>{deed.result}</code></td>
        </tr>
    }
    .into_any()
}
