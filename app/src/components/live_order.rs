//! The island of the history and order pages: asks about orders in doubt and reloads the page when one changed.

#![expect(
    missing_docs,
    reason = "the island macro writes a props type without docs of its own"
)]

use leptos::prelude::*;
use payment::wire::OrderState;

use crate::text::{Lang, Word};

/// Keeps a page with orders in doubt up to date.
#[island]
pub fn LiveOrder(
    /// The orders in doubt, as the page shows them.
    watched: Vec<OrderState>,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    #[cfg(feature = "hydrate")]
    crate::driver::watch::attend(watched);
    #[cfg(not(feature = "hydrate"))]
    drop(watched);
    view! { <p class="live-note" role="status">{lang.word(Word::KeptUpToDate)}</p> }
}
