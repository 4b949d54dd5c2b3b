//! What has happened to an order, oldest first.

use leptos::prelude::*;

use crate::data::Moment;
use crate::text::{Lang, Word};

/// The timeline of an order.
#[component]
pub fn Timeline(
    /// Its entries, oldest first.
    moments: Vec<Moment>,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let entry = |moment: Moment| {
        view! {
            <li class="timeline-entry">
                <span class="timeline-at">{moment.at}</span>
                <span class="timeline-what">{lang.moment(moment.what, moment.waited)}</span>
            </li>
        }
    };
    view! {
        <section class="timeline" aria-labelledby="timeline-heading">
            <h2 id="timeline-heading">{lang.word(Word::TimelineTitle)}</h2>
            <ol class="timeline-entries" data-testid="timeline">
                {moments.into_iter().map(entry).collect_view()}
            </ol>
        </section>
    }
}
