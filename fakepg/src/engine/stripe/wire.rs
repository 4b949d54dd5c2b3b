//! Stripe's JSON. Amounts of won are whole numbers: KRW has no minor unit there either.

use serde_json::{Value, json};

use super::book::{Intent, Refund, SessionStatus, Status};

const fn seconds(ms: u64) -> u64 {
    ms / 1_000
}

/// A session. `names_intent`: whether the caller's version made its payment together with it.
pub(super) fn session(intent: &Intent, names_intent: bool, base: &str) -> Value {
    let complete = intent.session_status == SessionStatus::Complete;
    let open = intent.session_status == SessionStatus::Open;
    let paid = intent.status == Status::Succeeded;
    json!({
        "id": intent.session,
        "object": "checkout.session",
        "amount_subtotal": intent.made.amount,
        "amount_total": intent.made.amount,
        "cancel_url": intent.made.cancel_url,
        "client_reference_id": intent.made.reference,
        "created": seconds(intent.created_ms),
        "currency": "krw",
        "expires_at": seconds(intent.made.expires_ms),
        "livemode": false,
        "metadata": {},
        "mode": "payment",
        "payment_intent": (names_intent || complete).then_some(&intent.id),
        "payment_method_types": ["card"],
        "payment_status": if paid { "paid" } else { "unpaid" },
        "status": intent.session_status.name(),
        "success_url": intent.made.success_url,
        "url": open.then(|| format!("{base}/window/stripe/{}", intent.page)),
    })
}

/// A payment. `lists_charges`: whether the caller's version shows them in it.
pub(super) fn intent(intent: &Intent, lists_charges: bool) -> Value {
    let capturable = intent.status == Status::RequiresCapture;
    let mut told = json!({
        "id": intent.id,
        "object": "payment_intent",
        "amount": intent.made.amount,
        "amount_capturable": if capturable { intent.made.amount } else { 0 },
        "amount_received": intent.received,
        "canceled_at": intent.booked_ms.filter(|_| intent.status == Status::Canceled).map(seconds),
        "capture_method": if intent.made.manual { "manual" } else { "automatic" },
        "created": seconds(intent.created_ms),
        "currency": "krw",
        "last_payment_error": intent.last_error.as_ref().map(|code| json!({"type": "card_error", "code": code})),
        "livemode": false,
        "metadata": intent.made.metadata,
        "status": intent.status.name(),
    });
    if lists_charges {
        let charges: Vec<Value> = intent.charge.iter().map(|_| charge(intent, true)).collect();
        told["charges"] = json!({"object": "list", "data": charges, "has_more": false,
            "url": format!("/v1/charges?payment_intent={}", intent.id)});
    } else {
        told["latest_charge"] = json!(intent.charge);
    }
    told
}

/// The charge of a payment.
pub(super) fn charge(intent: &Intent, lists_refunds: bool) -> Value {
    let captured = intent.status == Status::Succeeded;
    let mut told = json!({
        "id": intent.charge,
        "object": "charge",
        "amount": if captured { intent.received } else { intent.made.amount },
        "amount_captured": intent.received,
        "amount_refunded": intent.refunded(),
        "captured": captured,
        "created": intent.authorised_ms.map(seconds),
        "currency": "krw",
        "livemode": false,
        "metadata": intent.made.metadata,
        "paid": true,
        "payment_intent": intent.id,
        "refunded": captured && intent.refunded() == intent.received,
        "status": "succeeded",
    });
    if lists_refunds {
        // The newest is first.
        let refunds: Vec<Value> = intent
            .refunds
            .iter()
            .rev()
            .map(|one| refund(intent, one, Value::from(intent.charge.clone())))
            .collect();
        told["refunds"] = json!({"object": "list", "data": refunds, "has_more": false,
            "url": format!("/v1/charges/{}/refunds", intent.charge.as_deref().unwrap_or_default())});
    }
    told
}

/// One refund, with its charge by name or in full.
pub(super) fn refund(intent: &Intent, refund: &Refund, charge: Value) -> Value {
    json!({
        "id": refund.id,
        "object": "refund",
        "amount": refund.amount,
        "charge": charge,
        "created": seconds(refund.at_ms),
        "currency": "krw",
        "metadata": refund.metadata,
        "payment_intent": intent.id,
        "reason": "requested_by_customer",
        "status": refund.status,
    })
}

/// The envelope of an event.
pub(in crate::engine) fn event(id: &str, kind: &str, object: &Value, now_ms: u64) -> String {
    json!({
        "id": id,
        "object": "event",
        "api_version": "2020-08-27",
        "created": seconds(now_ms),
        "data": {"object": object},
        "livemode": false,
        "pending_webhooks": 1,
        "request": {"id": null, "idempotency_key": null},
        "type": kind,
    })
    .to_string()
}
