//! The island of the checkout page: the server's picture of it, and in the browser the driver behind it.

#![expect(
    missing_docs,
    reason = "the island macro writes a props type without docs of its own"
)]

use leptos::prelude::*;

use crate::components::stage::{Live, StageView};
use crate::seed::Seed;

/// The live part of the checkout and return pages. What the server renders of it is the page without script.
#[island]
pub fn CheckoutIsland(
    /// What it starts from.
    seed: Seed,
) -> impl IntoView {
    let live = Live::new(seed.screen());
    #[cfg(feature = "hydrate")]
    crate::driver::attend(seed.clone(), live);
    let seed = StoredValue::new(seed);
    view! {
        <div class="checkout-live">
            <p class="visually-hidden" role="status" aria-live="polite" data-testid="announcer">
                {move || live.said.get()}
            </p>
            {move || view! { <StageView seed=seed.get_value() screen=live.screen.get() live/> }}
        </div>
    }
}
