//! The browser's entry point: wakes the islands that the server rendered, and nothing else.

// Without a reference the linker drops every island of `app`.
use app as _;

/// Called by the hydration script of each page.
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_islands();
}
