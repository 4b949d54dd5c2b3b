//! The operators' console: rendered by the server alone, for whoever is signed in.

pub mod deeds;
pub mod desk;
pub mod overview;
mod shops;
mod sign_in;

use std::future::Future;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

pub use deeds::DeedsPage;
pub use desk::DeskPage;
pub use overview::OverviewPage;

use crate::data::console::{Notice, Seen};
use crate::data::{PageContext, Unavailable};
use crate::pages::{Found, PrivateTitle};
use crate::text::{Lang, OpsWord};

/// What came of a form, as the address says.
fn notice() -> Option<Notice> {
    let name = use_query_map().with_untracked(|query| query.get("notice"));
    name.and_then(|name| Notice::parse(&name))
}

/// A page of the console around what an operator sees; the sign-in where nobody is signed in.
async fn inside<T, F>(
    context: PageContext,
    notice: Option<Notice>,
    seen: impl Future<Output = Result<Seen<T>, Unavailable>>,
    body: F,
) -> Found
where
    F: FnOnce(T) -> Option<AnyView>,
{
    let lang = context.lang;
    Ok(match seen.await? {
        Seen::Absent => None,
        Seen::Outside => Some(sign_in::page(lang, notice)),
        Seen::Inside { operator, data } => body(data).map(|body| {
            let title = lang.title(lang.ops(OpsWord::Console));
            view! {
                <PrivateTitle title/>
                <div class="console">
                    <Bar operator lang/>
                    <Told notice lang/>
                    {body}
                </div>
            }
            .into_any()
        }),
    })
}

/// Where an operator can go, and who that is.
#[component]
fn Bar(operator: String, lang: Lang) -> impl IntoView {
    view! {
        <div class="console-bar">
            <nav class="console-nav" aria-label=lang.ops(OpsWord::Console)>
                <a class="link" href="/ops">{lang.ops(OpsWord::Payments)}</a>
                <a class="link" href="/ops/audit">{lang.ops(OpsWord::Deeds)}</a>
            </nav>
            <form class="console-find" method="get" action="/ops/find" role="search">
                <label class="console-label" for="console-find">{lang.ops(OpsWord::FindLabel)}</label>
                <input class="input" id="console-find" name="q" required=true autocomplete="off"/>
                <button class="button button-quiet" type="submit">{lang.ops(OpsWord::Find)}</button>
            </form>
            <form class="console-out" method="post" action="/ops/sign-out">
                <span data-testid="operator">{operator}</span>
                <button class="button button-quiet" type="submit" data-testid="sign-out">
                    {lang.ops(OpsWord::SignOut)}
                </button>
            </form>
        </div>
    }
}

/// What came of a form.
#[component]
fn Told(notice: Option<Notice>, lang: Lang) -> impl IntoView {
    notice.map(|notice| {
        let tone = if notice.is_good() { "good" } else { "wait" };
        view! {
            <p class="console-notice" role="status" data-testid="notice" data-tone=tone data-code=notice.as_str()>
                {lang.ops_notice(notice)}
            </p>
        }
    })
}

/// A table that scrolls by itself where it is too wide.
fn table(caption: &'static str, heads: &[&'static str], rows: Vec<AnyView>) -> AnyView {
    let heads = heads
        .iter()
        .map(|head| view! { <th scope="col">{*head}</th> })
        .collect_view();
    view! {
        <div class="console-scroll" role="group" aria-label=caption tabindex="0">
            <table class="console-table">
                <caption>{caption}</caption>
                <thead><tr>{heads}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}
