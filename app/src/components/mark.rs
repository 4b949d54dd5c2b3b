//! The mark of a stage: a drawing that only repeats what the words beside it say.

use leptos::prelude::*;
use payment::view::Stage;

/// The mark of a stage.
#[component]
pub fn Mark(
    /// What the page is about.
    stage: Stage,
) -> impl IntoView {
    view! {
        <svg class="stage-mark" viewBox="0 0 48 48" aria-hidden="true" inner_html=shapes(stage)></svg>
    }
}

const fn shapes(stage: Stage) -> &'static str {
    match stage {
        Stage::Paid => r#"<circle cx="24" cy="24" r="21"/><path d="M14.5 24.5l6.5 6.5 12.5-13"/>"#,
        Stage::Confirming
        | Stage::Checking
        | Stage::Looking
        | Stage::StillUnknown
        | Stage::ClosingAccount => {
            r#"<circle cx="24" cy="24" r="21"/><path class="hand" d="M24 24V12.5"/><path d="M24 24l7.5 5"/>"#
        }
        Stage::ReturningMoney | Stage::PartiallyRefunded | Stage::Refunded => {
            r#"<circle cx="24" cy="24" r="21"/><path d="M21 15l-7 7 7 7M14 22h13a6 6 0 0 1 0 12h-4"/>"#
        }
        Stage::AwaitingDeposit => {
            r#"<circle cx="24" cy="24" r="21"/><path d="M13 21l11-7 11 7M15 33h18M18 23v8M24 23v8M30 23v8"/>"#
        }
        Stage::NotCharged(_) | Stage::Expired | Stage::ClosedUnpaid => {
            r#"<circle cx="24" cy="24" r="21"/><path d="M15 24h18"/>"#
        }
        Stage::Offer => {
            r#"<circle cx="24" cy="24" r="21"/><path d="M13 18.5h22v13H13zM13 23h22M17 27.5h5"/>"#
        }
    }
}
