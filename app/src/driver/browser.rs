//! What the driver needs of the browser: the page clock, the tab's storage, focus.

use leptos::prelude::{document, window};
use leptos::wasm_bindgen::JsCast;
use payment::id::AttemptReference;
use payment::time::Millis;
use web_sys::{Element, HtmlElement, Storage};

/// The page clock: zero when it was started, unmoved by changes of the wall clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    epoch: f64,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { epoch: reading() }
    }

    pub(super) fn now(self) -> Millis {
        whole(reading() - self.epoch)
    }
}

fn reading() -> f64 {
    window()
        .performance()
        .map_or_else(js_sys::Date::now, |performance| performance.now())
}

/// Whole milliseconds; zero for what is no span of time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and takes NaN as zero"
)]
fn whole(ms: f64) -> Millis {
    Millis::new(ms as u64)
}

fn storage() -> Option<Storage> {
    window().session_storage().ok().flatten()
}

fn key(reference: &AttemptReference) -> String {
    format!("jari:{reference}")
}

/// Notes that a confirm was begun this long ago. By the wall clock, as the page clock ends with the page.
pub(super) fn remember(reference: &AttemptReference, ago: Millis) {
    let begun = whole(js_sys::Date::now()).less(ago);
    if let Some(storage) = storage() {
        // Without the note a reload counts its wait anew; the server's claim is what prevents a second confirm.
        let _ = storage.set_item(&key(reference), &begun.get().to_string());
    }
}

/// How long ago a confirm of this attempt was begun by an earlier page of this tab; zero when that makes no sense.
pub(super) fn remembered(reference: &AttemptReference) -> Millis {
    let note = storage().and_then(|storage| storage.get_item(&key(reference)).ok().flatten());
    let begun = note.and_then(|note| note.parse().ok()).map(Millis::new);
    begun.map_or(Millis::ZERO, |begun| whole(js_sys::Date::now()).less(begun))
}

/// Drops the note.
pub(super) fn forget(reference: &AttemptReference) {
    if let Some(storage) = storage() {
        let _ = storage.remove_item(&key(reference));
    }
}

/// Moves the focus to an element.
pub(super) fn focus(id: &str) {
    let element = document().get_element_by_id(id);
    if let Some(element) = element.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
        let _ = element.focus();
    }
}

/// Whether the focus stands in an element of this class.
pub(super) fn focus_is_within(class: &str) -> bool {
    let around = |focused: Element| focused.closest(&format!(".{class}")).ok().flatten();
    document().active_element().and_then(around).is_some()
}

/// Marks the page as awake, for tests and style.
pub(super) fn mark_hydrated() {
    if let Some(body) = document().body() {
        let _ = body.set_attribute("data-hydrated", "true");
    }
}
