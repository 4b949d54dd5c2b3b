//! Asks about the orders in doubt that a page shows, and loads the page anew when one of them changed.

use gloo_timers::callback::Timeout;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::{document, window};
use leptos::task::spawn_local;
use payment::id::OrderId;
use payment::wire::OrderState;
use web_sys::AbortController;

use crate::api::{self, Polled};
use crate::driver::browser;

/// Each order is asked about this often, in ms: a page that is only looked at is in no hurry.
const ROUND_MS: u32 = 5_000;
/// The least time between two questions, in ms.
const GAP_MS: u32 = 1_000;
/// How long one question may take, in ms.
const LIMIT_MS: u32 = 5_000;
/// The longest pause that the server may ask for, in ms.
const LONGEST_PAUSE_MS: u64 = 60_000;

/// Watches the orders for as long as the page lives.
pub(crate) fn attend(watched: Vec<OrderState>) {
    browser::mark_hydrated();
    if !watched.is_empty() {
        spawn_local(watch(watched));
    }
}

async fn watch(watched: Vec<OrderState>) {
    let orders = u32::try_from(watched.len()).unwrap_or(u32::MAX).max(1);
    // What takes days is asked about as seldom as the server says.
    let least = watched.iter().map(|order| order.poll_after_ms).min();
    let round = least.unwrap_or_default().min(LONGEST_PAUSE_MS);
    let round = u32::try_from(round).unwrap_or(ROUND_MS).max(ROUND_MS);
    let gap = (round / orders).max(GAP_MS);
    let mut tags = vec![None; watched.len()];
    loop {
        for (known, tag) in watched.iter().zip(&mut tags) {
            TimeoutFuture::new(gap).await;
            if document().hidden() {
                continue;
            }
            match ask(&known.order_id, tag.as_deref()).await {
                Polled::State(state, _) if differs(known, &state) => {
                    // Should the browser refuse, the page still shows what was true when it was made.
                    let _ = window().location().reload();
                    return;
                }
                Polled::State(_, newer) => *tag = newer,
                Polled::Shed(Some(pause)) => {
                    let pause = pause.get().min(LONGEST_PAUSE_MS);
                    TimeoutFuture::new(u32::try_from(pause).unwrap_or(GAP_MS)).await;
                }
                Polled::Shed(None) | Polled::Unchanged | Polled::Lost => {}
            }
        }
    }
}

/// One question, given up after its limit.
async fn ask(order: &OrderId, tag: Option<&str>) -> Polled {
    let controller = AbortController::new().ok();
    let signal = controller.as_ref().map(AbortController::signal);
    let limit = Timeout::new(LIMIT_MS, move || {
        if let Some(controller) = controller {
            controller.abort();
        }
    });
    let polled = api::poll(order, tag, signal.as_ref()).await;
    drop(limit);
    polled
}

/// Whether people would see something else.
fn differs(known: &OrderState, now: &OrderState) -> bool {
    (known.status, &known.attempt, known.payable) != (now.status, &now.attempt, now.payable)
}
