//! What stands around every page: header with links and language switch, footer.

use leptos::prelude::*;

use crate::data::PageContext;
use crate::text::{Lang, Word};

/// The name, the links, the language switch.
#[component]
pub fn Header(
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let here = use_context::<PageContext>().map_or_else(|| "/".to_owned(), |context| context.here);
    let other = lang.other();
    view! {
        <header class="site-header">
            <div class="site-header-inner">
                <a class="brand" href="/">
                    <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
                        <path d="M9 6v12h14M9 18v8M23 18v8M9 12h8"></path>
                    </svg>
                    <span>{lang.word(Word::Shop)}</span>
                </a>
                <nav class="site-nav" aria-label=lang.word(Word::Navigation)>
                    <a href="/">{lang.word(Word::ToShop)}</a>
                    <a href="/orders">{lang.word(Word::ToOrders)}</a>
                </nav>
                <form class="language" method="post" action="/language">
                    <input type="hidden" name="lang" value=other.tag()/>
                    <input type="hidden" name="back" value=here/>
                    <button
                        class="button button-quiet"
                        type="submit"
                        data-testid="language"
                        title=lang.word(Word::SwitchLanguage)
                    >
                        <span lang=other.tag()>{lang.word(Word::OtherLanguage)}</span>
                    </button>
                </form>
            </div>
        </header>
    }
}

/// The promise, once more.
#[component]
pub fn Footer(
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    view! {
        <footer class="site-footer">
            <p>{lang.word(Word::Promise)}</p>
        </footer>
    }
}
