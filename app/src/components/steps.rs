//! A wait in three steps: what is done, what is being done, what comes next.

use leptos::prelude::*;
use payment::time::PageTimes;
use payment::view::Stage;

use crate::text::{Lang, Say};

/// The steps of a stage that waits; nothing where none is told.
#[component]
pub fn Steps(
    /// What the page is about.
    stage: Stage,
    /// The page's times.
    times: PageTimes,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    lang.steps(stage, &times).map(|[done, now, next]| {
        let aside = |word| view! { <span class="visually-hidden">{lang.say(word)}</span> };
        view! {
            <ol class="steps" data-testid="steps">
                <li class="step" data-step="done">{aside(Say::StepDone)}{done}</li>
                <li class="step" data-step="now" aria-current="step">{now}</li>
                <li class="step" data-step="next">{aside(Say::StepNext)}{next}</li>
            </ol>
        }
    })
}
