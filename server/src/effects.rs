//! The worker that does what an outcome causes outside: mails, and what the shop's own systems are told.
//!
//! Each effect was queued in the transaction of its outcome. A node takes some under a lease, does them under names that
//! follow from their keys, so that doing one again changes nothing, and ends them, by the number of its take. One that fails
//! is put off alone. Nothing here holds up a payment.

use std::path::PathBuf;
use std::sync::Arc;

use payment::backoff::Backoff;
use payment::time::Millis;
use serde::Serialize;

use crate::app::App;
use crate::metrics;
use crate::random;
use crate::store::StoreError;
use crate::store::effects::{Effect, EffectEnd};
use mail::Mailer;

pub mod mail;

/// How often the worker looks.
const TICK: Millis = Millis::from_secs(1);
/// Effects taken in one look.
const BATCH: u32 = 32;
/// How long what was taken is the taker's alone: many times what a batch takes. Whoever outlasts it does no harm.
const LEASE: Millis = Millis::from_secs(10);
/// How long a batch of mails is waited for: it is ended before the lease is.
const MAIL_WAIT: Millis = Millis::from_secs(5);
/// When an effect that failed is tried again.
const AGAIN: Backoff = Backoff {
    first: Millis::from_secs(1),
    longest: Millis::from_secs(600),
};

/// Runs until the server stops.
pub async fn run(app: Arc<App>) {
    let mailer = mailer(&app);
    while !app.stopping.is_cancelled() {
        match round(&app, mailer.as_ref()).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the outbox could not be worked on"
            ),
        }
        tokio::select! {
            // In this order, so that a simulated run repeats exactly.
            biased;
            () = app.stopping.cancelled() => {}
            () = tokio::time::sleep(TICK.to_duration()) => {}
        }
    }
}

fn mailer(app: &App) -> Option<Mailer> {
    let dir: PathBuf = app.config.mail_dir.clone()?;
    let url = app.config.public_url.as_deref().unwrap_or_default();
    Some(Mailer::new(dir, url, MAIL_WAIT))
}

/// One look; true when there may be more at once.
async fn round(app: &App, mailer: Option<&Mailer>) -> Result<bool, StoreError> {
    let now = app.clock.epoch();
    let taken = app.store.take_effects(now, LEASE, BATCH).await?;
    if taken.is_empty() {
        return Ok(false);
    }
    let mailed = match mailer {
        Some(mailer) => mailer.write(&taken).await,
        None => vec![true; taken.len()],
    };
    let ends: Vec<_> = taken
        .iter()
        .zip(&mailed)
        .map(|(effect, mailed)| end_of(effect, *mailed))
        .collect();
    // What cannot be ended is taken again when the lease is over.
    let own = app.store.end_effects(&ends, app.clock.epoch()).await?;
    for ((effect, mailed), own) in taken.iter().zip(mailed).zip(own) {
        let result = match (own, mailed) {
            (false, _) => "lost",
            (true, true) => "done",
            (true, false) => "failed",
        };
        metrics::effect(effect.kind.as_str(), result);
    }
    Ok(u32::try_from(taken.len()).is_ok_and(|n| n == BATCH))
}

fn end_of(effect: &Effect, is_done: bool) -> EffectEnd {
    let again = (!is_done).then(|| AGAIN.after(effect.takes.saturating_sub(1), random::jitter()));
    EffectEnd {
        id: effect.id,
        takes: effect.takes,
        again,
        notification: notification(effect),
    }
}

/// What the shop's own systems are told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notification<'a> {
    event: &'static str,
    /// The same for every delivery of the same event.
    key: &'a str,
    order_id: &'a str,
    attempt: u32,
    amount: i64,
    currency: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alarm: Option<&'a str>,
    /// Epoch milliseconds.
    at: i64,
}

fn notification(effect: &Effect) -> String {
    let told = Notification {
        event: effect.kind.as_str(),
        key: &effect.key,
        order_id: effect.order_id.as_str(),
        attempt: effect.attempt_number,
        amount: effect.amount.get(),
        currency: "KRW",
        canceled: effect.canceled.map(payment::money::Won::get),
        alarm: effect.alarm.as_deref(),
        at: effect.at.0,
    };
    // Texts and numbers only: nothing in it can fail.
    serde_json::to_string(&told).unwrap_or_default()
}
