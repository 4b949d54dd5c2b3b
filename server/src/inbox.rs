//! The webhook inbox: what was stored raw is looked at here. An unsigned webhook is only a hint: the gateway is asked.

use std::sync::Arc;

use payment::attempt::Attempt;
use payment::id::{GatewayName, GatewayOrderId, PaymentKey};
use payment::time::Millis;
use serde_json::Value;

use crate::app::App;
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
            WebhookEnd::Hint(_) => "applied",
            WebhookEnd::Parked(_) => "parked",
            WebhookEnd::Ignored => "ignored",
        };
        crate::metrics::webhook(&row.gateway, result);
        hinted |= matches!(end, WebhookEnd::Hint(_));
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
    let Some(subject) = subject(&row.body) else {
        return Ok(WebhookEnd::Ignored);
    };
    if let Some(id) = payment_of(&*app.store, &row.gateway, &subject).await? {
        return Ok(WebhookEnd::Hint(id));
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

/// The payment of ours that a body names.
pub(crate) async fn named(
    app: &App,
    gateway: &GatewayName,
    body: &[u8],
) -> Result<Option<AttemptId>, StoreError> {
    match subject(body) {
        Some(subject) => payment_of(&*app.store, gateway, &subject).await,
        None => Ok(None),
    }
}

/// The attempt that a webhook speaks of.
async fn payment_of(
    store: &dyn Store,
    gateway: &GatewayName,
    (key, order): &Subject,
) -> Result<Option<AttemptId>, StoreError> {
    if let Some(key) = key {
        let same_key = store.attempts_by_key(gateway, key).await?;
        return Ok(owner(&same_key));
    }
    // An envelope that names no key: of the attempts under that id, the latest that was claimed. A ready attempt has sent
    // nothing, so nothing can be learned of it: what speaks of it waits for its confirm.
    let Some(order) = order else { return Ok(None) };
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

/// A payment as a webhook names it.
pub(crate) type Subject = (Option<PaymentKey>, Option<GatewayOrderId>);

/// Which payment a webhook speaks of: of the several envelopes, whatever names a payment key or an order id.
///
/// A `DEPOSIT_CALLBACK` carries a secret beside; it is not looked at, since what it proves is not believed either: every
/// webhook is a hint, and the gateway is asked.
pub(crate) fn subject(body: &[u8]) -> Option<Subject> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let named = |name: &str| {
        let inner = body.get("data").and_then(|data| data.get(name));
        inner.or_else(|| body.get(name)).and_then(Value::as_str)
    };
    let key = named("paymentKey").and_then(|key| PaymentKey::parse(key).ok());
    let order = named("orderId").and_then(|id| GatewayOrderId::parse(id).ok());
    (key.is_some() || order.is_some()).then_some((key, order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_envelopes_name_their_payment_and_rubbish_names_none() {
        let status = br#"{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk","orderId":"ord_1"}}"#;
        let (key, order) = subject(status).expect("names both");
        assert_eq!(
            (key.unwrap().as_str(), order.unwrap().as_str()),
            ("pk", "ord_1")
        );
        let deposit = br#"{"createdAt":"2026-10-02T11:02:09","secret":"ps","status":"DONE","orderId":"ord_1-2"}"#;
        assert_eq!(subject(deposit).unwrap().1.unwrap().as_str(), "ord_1-2");
        for rubbish in [
            b"".as_slice(),
            b"[]",
            b"{}",
            b"\xff",
            br#"{"data":{"paymentKey":7}}"#,
            br#"{"orderId":"a b"}"#,
        ] {
            assert!(subject(rubbish).is_none());
        }
    }
}
