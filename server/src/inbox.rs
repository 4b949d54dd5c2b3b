//! The webhook inbox: what was stored raw is looked at here. An unsigned webhook is only a hint: the gateway is asked.

use std::sync::Arc;

use payment::attempt::Attempt;
use payment::id::{GatewayName, GatewayOrderId, PaymentKey};
use payment::time::Millis;
use serde_json::Value;

use crate::app::App;
use crate::gateway::secret::Secret;
use crate::gateway::{WebhookKind, WebhookProof};
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
    /// This one of ours, by the secret that only its gateway knows beside us.
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
    let Some(envelope) = Envelope::read(body) else {
        return Ok(Named::Nothing);
    };
    let kinds = app
        .line(gateway)
        .map_or(&[][..], |line| line.gateway.capabilities().webhooks);
    let Some(proof) = envelope.proof(kinds) else {
        return Ok(Named::Nothing);
    };
    let Some(id) = payment_of(&*app.store, gateway, &envelope.subject).await? else {
        return Ok(Named::Nobody);
    };
    if proof == WebhookProof::Hint {
        return Ok(Named::Hint(id));
    }
    Ok(match app.store.deposit_secret(id).await? {
        // None came with the confirm's answer, or that answer was lost.
        None => Named::Hint(id),
        Some(held) if envelope.knows(&held) => Named::Proven(id),
        Some(_) => Named::Forged,
    })
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
pub(crate) fn subject(body: &[u8]) -> Option<Subject> {
    Envelope::read(body).map(|envelope| envelope.subject)
}

/// A webhook's body as far as it is looked at. What it says of a payment's state is not: the gateway is asked.
#[derive(Debug)]
struct Envelope {
    subject: Subject,
    /// The event's name, where it has one.
    event: Option<String>,
    /// Whether it names its payment beside the event instead of within its data, as the events do that carry a secret.
    flat: bool,
    secret: Option<Secret>,
}

impl Envelope {
    fn read(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let data = body.get("data");
        let named = |name: &str| {
            let inner = data.and_then(|data| data.get(name));
            inner.or_else(|| body.get(name)).and_then(Value::as_str)
        };
        let key = named("paymentKey").and_then(|key| PaymentKey::parse(key).ok());
        let order = named("orderId").and_then(|id| GatewayOrderId::parse(id).ok());
        let event = body.get("eventType").and_then(Value::as_str);
        (key.is_some() || order.is_some()).then(|| Self {
            subject: (key, order),
            event: event.map(str::to_owned),
            flat: data.is_none(),
            secret: body.get("secret").and_then(Value::as_str).map(Secret::new),
        })
    }

    /// What it proves by its kind; `None` for a kind that says nothing of payments.
    fn proof(&self, kinds: &[WebhookKind]) -> Option<WebhookProof> {
        let of = |kind: &&WebhookKind| match &self.event {
            Some(event) => kind.name == event.as_str(),
            None => self.flat && kind.proof == WebhookProof::Secret,
        };
        let listed = kinds.iter().find(of).map(|kind| kind.proof);
        // Without a name it is what it names: a hint.
        listed.or_else(|| self.event.is_none().then_some(WebhookProof::Hint))
    }

    fn knows(&self, held: &Secret) -> bool {
        let said = self.secret.as_ref();
        said.is_some_and(|said| held.is(said.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_proves_what_the_sheet_says_and_an_unlisted_one_says_nothing() {
        let kinds = [
            WebhookKind {
                name: "STATUS",
                proof: WebhookProof::Hint,
            },
            WebhookKind {
                name: "DEPOSIT",
                proof: WebhookProof::Secret,
            },
        ];
        let proof = |body: &str| Envelope::read(body.as_bytes()).unwrap().proof(&kinds);
        for (body, expected) in [
            (
                r#"{"eventType":"STATUS","data":{"orderId":"o"}}"#,
                Some(WebhookProof::Hint),
            ),
            (
                r#"{"eventType":"DEPOSIT","orderId":"o","secret":"s"}"#,
                Some(WebhookProof::Secret),
            ),
            (r#"{"orderId":"o"}"#, Some(WebhookProof::Secret)),
            (r#"{"data":{"orderId":"o"}}"#, Some(WebhookProof::Hint)),
            (
                r#"{"eventType":"BILLING_DELETED","data":{"orderId":"o"}}"#,
                None,
            ),
            (r#"{"eventType":"","orderId":"o"}"#, None),
        ] {
            assert_eq!(proof(body), expected, "{body}");
        }
        let knows = |secret: &str, held: &str| {
            let body = format!(r#"{{"orderId":"o","secret":{secret}}}"#);
            let envelope = Envelope::read(body.as_bytes()).unwrap();
            envelope.knows(&Secret::new(held))
        };
        assert!(knows(r#""s""#, "s"));
        assert!(!knows(r#""S""#, "s") && !knows("null", "s") && !knows("7", "7"));
        assert!(!knows(r#""""#, "s"));
    }

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
