//! An order's status in a word or two, as history and order page show it.

use leptos::prelude::*;
use payment::view::Stage;

use crate::seed::stage_name;
use crate::text::Lang;

/// The status of an order; the colour only repeats the words.
#[component]
pub fn StatusBadge(
    /// What its checkout page would be about.
    stage: Stage,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    view! { <span class="badge" data-tone=tone(stage)>{lang.status(stage)}</span> }
}

/// The stable name of an order's status.
#[must_use]
pub const fn status_name(stage: Stage) -> &'static str {
    stage_name(stage)
}

/// The family of a stage, for its colour.
#[must_use]
pub const fn tone(stage: Stage) -> &'static str {
    match stage {
        Stage::Paid => "good",
        Stage::Confirming | Stage::Checking | Stage::Looking | Stage::StillUnknown => "wait",
        Stage::ReturningMoney | Stage::AwaitingDeposit | Stage::ClosingAccount => "wait",
        Stage::Offer => "open",
        Stage::PartiallyRefunded
        | Stage::Refunded
        | Stage::ClosedUnpaid
        | Stage::NotCharged(_)
        | Stage::Expired => "calm",
    }
}
