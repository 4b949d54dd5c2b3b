//! Jari's pages: server-rendered HTML that works without script, and two islands that a browser wakes.
//!
//! Reading order: [`App`] names the pages; [`pages`] holds one page a file, [`components`] one component a file;
//! [`seed`] is what the checkout's island starts from, and the browser's driver runs its machine. Every word is in
//! [`text`]. Pages read their data through [`data::PageContext`] and know nothing of stores, gateways or axum.

// The bodies of pages are deep nested types.
#![recursion_limit = "256"]

#[cfg(feature = "hydrate")]
mod api;
pub mod components;
pub mod data;
#[cfg(feature = "hydrate")]
mod driver;
pub mod pages;
pub mod seed;
pub mod text;

use leptos::prelude::*;
use leptos_meta::{MetaTags, provide_meta_context};
use leptos_router::SsrMode;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::path;

use crate::components::layout::{Footer, Header};
use crate::pages::catalogue::CataloguePage;
use crate::pages::checkout::{CheckoutPage, ReturnPage};
use crate::pages::console::{DeedsPage, DeskPage, OverviewPage};
use crate::pages::history::HistoryPage;
use crate::pages::message::MissingPage;
use crate::pages::order::OrderPage;
use crate::pages::receipt::ReceiptPage;
use crate::text::{Lang, Word};

/// The HTML document around every page.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    view! {
        <!DOCTYPE html>
        <html lang=request_lang().tag()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="icon" type="image/svg+xml" href="/favicon.svg"/>
                <link rel="stylesheet" id="leptos" href=format!("/pkg/{}.css", options.output_name)/>
                <AutoReload options=options.clone()/>
                <HydrationScripts options islands=true/>
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

/// The pages and their addresses. Also rendered once without a [`data::PageContext`], to list the routes.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let lang = request_lang();
    view! {
        <a class="skip-link" href="#main">{lang.word(Word::SkipToContent)}</a>
        <Header lang/>
        <Router>
            <main id="main" class="page" tabindex="-1">
                <Routes fallback=|| view! { <MissingPage/> }>
                    <Route path=path!("/") view=CataloguePage ssr=SsrMode::Async/>
                    <Route path=path!("/checkout/:order") view=CheckoutPage ssr=SsrMode::Async/>
                    <Route
                        path=path!("/checkout/:order/return/:reference")
                        view=ReturnPage
                        ssr=SsrMode::Async
                    />
                    <Route path=path!("/orders") view=HistoryPage ssr=SsrMode::Async/>
                    <Route path=path!("/orders/:order") view=OrderPage ssr=SsrMode::Async/>
                    <Route
                        path=path!("/orders/:order/receipt")
                        view=ReceiptPage
                        ssr=SsrMode::Async
                    />
                    <Route path=path!("/ops") view=OverviewPage ssr=SsrMode::Async/>
                    <Route path=path!("/ops/audit") view=DeedsPage ssr=SsrMode::Async/>
                    <Route path=path!("/ops/orders/:order") view=DeskPage ssr=SsrMode::Async/>
                </Routes>
            </main>
        </Router>
        <Footer lang/>
    }
}

/// The language of this request; Korean where there is no request.
fn request_lang() -> Lang {
    use_context::<data::PageContext>().map_or(Lang::Ko, |context| context.lang)
}
