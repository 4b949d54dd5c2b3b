//! The webhook inbox: what was stored raw is looked at here. An unsigned webhook is only a hint, and a signed one may be
//! old: the gateway is asked. Which payment a body names, its gateway's adapter reads.

use std::sync::Arc;

use payment::attempt::Attempt;
use payment::id::GatewayName;
use payment::time::Millis;

use crate::app::App;
use crate::gateway::webhook::{Shows, Subject};
use crate::store::{AttemptId, AttemptRecord, Store, StoreError, WebhookEnd, WebhookRow};

/// How often the inbox looks without being woken.
const TICK: Millis = Millis::from_secs(1);
/// Rows taken in one look.
const BATCH: u32 = 64;
/// How long a webhook waits for its row: a sender's resends end after about four days.
const LONGEST_PARK: Millis = Millis::from_secs(4 * 24 * 3_600);
/// How often what was kept long enough is swept, and how many rows at once.
const SWEEP: Millis = Millis::from_secs(60);
const SWEPT_AT_ONCE: u32 = 1_000;
/// The longest step between looks for the row.
const LONGEST_STEP: Millis = Millis::from_secs(600);

/// Runs until the server stops.
pub async fn run(app: Arc<App>) {
    let mut swept = None;
    while !app.stopping.is_cancelled() {
        if swept.is_none_or(|at: Millis| app.clock.now() >= at.plus(SWEEP)) {
            swept = Some(app.clock.now());
            if let Err(error) = sweep(&app).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "old webhooks could not be swept"
                );
            }
        }
        match round(&app).await {
            Ok(full) if full => continue,
            Ok(_) => {}
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the inbox could not look"
            ),
        }
        tokio::select! {
            // In this order, so that a simulated run repeats exactly.
            biased;
            () = app.stopping.cancelled() => {}
            () = app.inbox.notified() => {}
            () = tokio::time::sleep(TICK.to_duration()) => {}
        }
    }
}

/// One look; true when there may be more at once.
async fn round(app: &App) -> Result<bool, StoreError> {
    let rows = app.store.webhooks_due(app.clock.epoch(), BATCH).await?;
    let full = u32::try_from(rows.len()).is_ok_and(|n| n == BATCH);
    let mut ends = Vec::with_capacity(rows.len());
    for row in &rows {
        ends.push((row.id, judge(app, row).await?));
    }
    if ends.is_empty() {
        return Ok(false);
    }
    // One commit for all: ten thousand that come at once are not ten thousand waits for the disk.
    let waits = app.store.end_webhooks(&ends, app.clock.epoch()).await?;
    let mut hinted = false;
    for ((row, (_, end)), waits) in rows.iter().zip(ends).zip(waits) {
        if waits {
            crate::metrics::hint_waits(&row.gateway);
        }
        let result = match end {
            WebhookEnd::Hint(_) | WebhookEnd::Proven(_) => "applied",
            WebhookEnd::Parked(_) => "parked",
            WebhookEnd::Ignored => "ignored",
            WebhookEnd::Forged => "forged",
        };
        crate::metrics::webhook(&row.gateway, result);
        hinted |= matches!(end, WebhookEnd::Hint(_) | WebhookEnd::Proven(_));
    }
    if hinted {
        app.recovery.notify_one();
    }
    Ok(full)
}

/// Drops what was kept long enough, in steps that hold the writer for a moment each.
async fn sweep(app: &App) -> Result<(), StoreError> {
    let before = app.clock.epoch().minus(app.config.bounds.webhooks_kept);
    loop {
        let swept = app.store.sweep_webhooks(before, SWEPT_AT_ONCE).await?;
        crate::metrics::webhooks_swept(swept);
        if swept < u64::from(SWEPT_AT_ONCE) {
            return Ok(());
        }
    }
}

async fn judge(app: &App, row: &WebhookRow) -> Result<WebhookEnd, StoreError> {
    match named(app, &row.gateway, &row.body).await? {
        Named::Nothing => return Ok(WebhookEnd::Ignored),
        Named::Hint(id) => return Ok(WebhookEnd::Hint(id)),
        Named::Proven(id) => return Ok(WebhookEnd::Proven(id)),
        Named::Forged => return Ok(WebhookEnd::Forged),
        Named::Nobody => {}
    }
    let now = app.clock.epoch();
    if now.since(row.received_at) >= LONGEST_PARK {
        return Ok(WebhookEnd::Ignored);
    }
    let step = Millis::new(1_000)
        .times(1_u32.checked_shl(row.tries.min(10)).unwrap_or(1))
        .min(LONGEST_STEP);
    Ok(WebhookEnd::Parked(now.plus(step)))
}

/// What a body names, and how far it can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// No payment at all, or an event that says nothing of one.
    Nothing,
    /// A payment that is not ours, or not yet.
    Nobody,
    /// This one of ours; anybody can have written it.
    Hint(AttemptId),
    /// This one of ours, by a signature, or by the secret that only its gateway knows beside us.
    Proven(AttemptId),
    /// One of ours whose secret the writer does not know.
    Forged,
}

/// Which payment of ours a body names, and what that proves.
pub(crate) async fn named(
    app: &App,
    gateway: &GatewayName,
    body: &[u8],
) -> Result<Named, StoreError> {
    let line = app.line(gateway);
    let Some(notice) = line.and_then(|line| line.gateway.notice(body)) else {
        return Ok(Named::Nothing);
    };
    let Some(id) = payment_of(&*app.store, gateway, &notice.subject).await? else {
        return Ok(Named::Nobody);
    };
    let said = match notice.shows {
        Shows::Nothing => return Ok(Named::Hint(id)),
        // Checked before it was stored; what it says may still be old, so the gateway is asked all the same.
        Shows::Signature => return Ok(Named::Proven(id)),
        Shows::Secret(said) => said,
    };
    Ok(match app.store.deposit_secret(id).await? {
        // None came with the confirm's answer, or that answer was lost.
        None => Named::Hint(id),
        Some(held) if said.is_some_and(|said| held.is(said.expose())) => Named::Proven(id),
        Some(_) => Named::Forged,
    })
}

/// The attempt that a webhook speaks of.
async fn payment_of(
    store: &dyn Store,
    gateway: &GatewayName,
    subject: &Subject,
) -> Result<Option<AttemptId>, StoreError> {
    if let Some(key) = &subject.payment_key {
        let same_key = store.attempts_by_key(gateway, key).await?;
        return Ok(owner(&same_key));
    }
    // It names no key: of the attempts under that id, the latest that was claimed. A ready attempt has sent nothing, so
    // nothing can be learned of it: what speaks of it waits for its confirm.
    let Some(order) = &subject.gateway_order_id else {
        return Ok(None);
    };
    let under_id = store.attempts_by_gateway_order(order).await?;
    let claimed = under_id
        .iter()
        .rev()
        .find(|record| record.gateway == *gateway && record.payment_key.is_some());
    Ok(claimed.map(|record| record.id))
}

fn owner(same_key: &[AttemptRecord]) -> Option<AttemptId> {
    let attempts: Vec<Attempt> = same_key.iter().map(|record| record.attempt).collect();
    payment::order::owner_of_key(&attempts).map(|index| same_key[index].id)
}
