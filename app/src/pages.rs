//! The pages, one a file, and what they share: reading their data, saying that it cannot be had, the panel below.

pub mod catalogue;
pub mod checkout;
pub mod console;
pub mod history;
pub mod message;
pub mod order;
pub mod receipt;

use std::future::Future;

use leptos::prelude::*;
use leptos_meta::{Meta, Title};

use crate::components::panel::DevPanel;
use crate::data::{PageContext, Unavailable};
use crate::pages::message::{missing, unavailable};

/// What a page's data turned out to be.
type Found = Result<Option<AnyView>, Unavailable>;

/// Renders a page once its data is there: the page itself, "no such page" for `None`, or "cannot be looked up".
fn page<F, W>(content: F) -> AnyView
where
    F: Fn(PageContext) -> W + Send + Sync + 'static,
    W: Future<Output = Found> + Send + 'static,
{
    // No request: this is the start of the server, which lists the routes.
    let Some(context) = use_context::<PageContext>() else {
        return ().into_any();
    };
    let render = move || {
        let found = content(context.clone());
        let context = context.clone();
        Suspend::new(async move {
            let body = match found.await {
                Ok(Some(body)) => body,
                Ok(None) => missing(&context),
                Err(Unavailable) => unavailable(&context),
            };
            let panel = panel(&context).await;
            view! { {body} {panel} }
        })
    };
    view! { <Suspense>{render}</Suspense> }.into_any()
}

/// The development panel, where there is one.
async fn panel(context: &PageContext) -> Option<AnyView> {
    if !context.development {
        return None;
    }
    let panel = context.data.panel().await.ok().flatten()?;
    let (here, lang) = (context.here.clone(), context.lang);
    Some(view! { <DevPanel panel here lang/> }.into_any())
}

/// The title of a page that no search engine should list.
#[component]
fn PrivateTitle(
    /// The whole title.
    title: String,
) -> impl IntoView {
    view! {
        <Title text=title/>
        <Meta name="robots" content="noindex"/>
    }
}
