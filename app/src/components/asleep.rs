//! A page that waits, in a browser that cannot ask by itself: it is loaded anew instead.

use leptos::nonce::use_nonce;
use leptos::prelude::*;

/// For browsers that run scripts and never got our program: blocked, too old for it, or lost on its way. A program that
/// comes within this time keeps the page; twelve seconds are its 200 KB over a poor mobile network.
const UNLESS_AWAKE: &str =
    "setTimeout(()=>{document.body.dataset.hydrated||location.reload()},12000)";

/// Loads the page anew: without script every `step` seconds, the pace of a script's polls.
#[component]
pub fn ReloadUntilAwake(
    /// Seconds.
    step: u32,
) -> impl IntoView {
    view! {
        <noscript><meta http-equiv="refresh" content=step.to_string()/></noscript>
        <script nonce=use_nonce()>{UNLESS_AWAKE}</script>
    }
}

/// Without script: loads the page anew once a minute, for what takes days.
#[component]
pub fn ReloadSeldom() -> impl IntoView {
    view! { <noscript><meta http-equiv="refresh" content="60"/></noscript> }
}
