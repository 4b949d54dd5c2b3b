//! The pages that only say something: no such page, and data that cannot be had.

use leptos::prelude::*;
use leptos_meta::Meta;

use crate::data::PageContext;
use crate::pages::PrivateTitle;
use crate::text::{Lang, Word};

/// The page for an address that leads nowhere.
#[component]
pub fn MissingPage() -> impl IntoView {
    use_context::<PageContext>().map(|context| missing(&context))
}

/// Says that there is no such page or order.
pub(super) fn missing(context: &PageContext) -> AnyView {
    (context.set_status)(404);
    let lang = context.lang;
    view! {
        <PrivateTitle title=lang.title(lang.word(Word::MissingTitle))/>
        <Message lang title=Word::MissingTitle body=Word::MissingBody/>
    }
    .into_any()
}

/// Says that nothing can be said about any order now, and asks again by itself.
pub(super) fn unavailable(context: &PageContext) -> AnyView {
    (context.set_status)(503);
    let lang = context.lang;
    view! {
        <PrivateTitle title=lang.title(lang.word(Word::UnavailableTitle))/>
        <Meta http_equiv="refresh" content="5"/>
        <Message lang title=Word::UnavailableTitle body=Word::UnavailableBody/>
    }
    .into_any()
}

#[component]
fn Message(lang: Lang, title: Word, body: Word) -> impl IntoView {
    view! {
        <section class="message">
            <h1>{lang.word(title)}</h1>
            <p>{lang.word(body)}</p>
            <ul class="stage-links">
                <li><a class="link" href="/orders">{lang.word(Word::ToOrders)}</a></li>
                <li><a class="link" href="/">{lang.word(Word::ToShop)}</a></li>
            </ul>
        </section>
    }
}
