//! Toss Payments' webhooks. None is signed. Several envelopes: an event with its data, and the flat one of a deposit, which
//! carries the secret of the confirm's answer.

use payment::id::{GatewayOrderId, PaymentKey};
use serde_json::Value;

use crate::gateway::secret::Secret;
use crate::gateway::webhook::{Admission, Incoming, Notice, Shows, Subject};
use crate::gateway::{WebhookKind, WebhookProof};

/// Toss's own id of a transmission.
const TRANSMISSION: &str = "tosspayments-webhook-transmission-id";
/// Headers that are kept with the body.
const KEPT: [&str; 4] = [
    TRANSMISSION,
    "tosspayments-webhook-transmission-time",
    "tosspayments-webhook-transmission-retried-count",
    "content-type",
];
/// The longest id of a transmission that is believed to be one.
const TRANSMISSION_LIMIT: usize = 200;

/// What Toss sends of payments.
pub(super) const KINDS: [WebhookKind; 3] = [
    WebhookKind {
        name: "PAYMENT_STATUS_CHANGED",
        proof: WebhookProof::Hint,
    },
    WebhookKind {
        name: "DEPOSIT_CALLBACK",
        proof: WebhookProof::Secret,
    },
    WebhookKind {
        name: "CANCEL_STATUS_CHANGED",
        proof: WebhookProof::Hint,
    },
];

/// All are taken: whether one is true shows when its payment is known.
pub(super) fn admit(webhook: &Incoming<'_>) -> Admission {
    let id = webhook.header(TRANSMISSION);
    let id = id.filter(|id| (1..=TRANSMISSION_LIMIT).contains(&id.len()));
    Admission::Taken {
        transmission: id.map(str::to_owned),
        kept: &KEPT,
    }
}

/// Which payment a body names, and what it shows for it; `None` for an event that says nothing of payments.
#[must_use]
pub fn notice(body: &[u8]) -> Option<Notice> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let data = body.get("data");
    let named = |name: &str| {
        let inner = data.and_then(|data| data.get(name));
        inner.or_else(|| body.get(name)).and_then(Value::as_str)
    };
    let subject = Subject {
        payment_key: named("paymentKey").and_then(|key| PaymentKey::parse(key).ok()),
        gateway_order_id: named("orderId").and_then(|id| GatewayOrderId::parse(id).ok()),
    };
    if subject.payment_key.is_none() && subject.gateway_order_id.is_none() {
        return None;
    }
    let shows = match proof(
        body.get("eventType").and_then(Value::as_str),
        data.is_none(),
    )? {
        WebhookProof::Secret => {
            Shows::Secret(body.get("secret").and_then(Value::as_str).map(Secret::new))
        }
        WebhookProof::Hint | WebhookProof::Signature => Shows::Nothing,
    };
    Some(Notice { subject, shows })
}

/// What is proven by an event of this name, or by an envelope without one: flat ones, which name their payment beside the
/// event and not within its data, are a deposit's.
fn proof(event: Option<&str>, flat: bool) -> Option<WebhookProof> {
    match event {
        Some(event) => {
            let listed = KINDS.iter().find(|kind| kind.name == event);
            listed.map(|kind| kind.proof)
        }
        None if flat => Some(WebhookProof::Secret),
        // Without a name it is what it names: a hint.
        None => Some(WebhookProof::Hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_proves_what_the_sheet_says_and_an_unlisted_one_says_nothing() {
        let shown = |body: &str| notice(body.as_bytes()).map(|notice| notice.shows);
        let secret = || Some(Shows::Secret(Some(Secret::new("s"))));
        for (body, expected) in [
            (
                r#"{"eventType":"PAYMENT_STATUS_CHANGED","data":{"orderId":"o"}}"#,
                Some(Shows::Nothing),
            ),
            (
                r#"{"eventType":"DEPOSIT_CALLBACK","orderId":"o","secret":"s"}"#,
                secret(),
            ),
            (r#"{"orderId":"o","secret":"s"}"#, secret()),
            (r#"{"orderId":"o"}"#, Some(Shows::Secret(None))),
            (r#"{"orderId":"o","secret":7}"#, Some(Shows::Secret(None))),
            (r#"{"data":{"orderId":"o"}}"#, Some(Shows::Nothing)),
            (
                r#"{"eventType":"BILLING_DELETED","data":{"orderId":"o"}}"#,
                None,
            ),
            (r#"{"eventType":"","orderId":"o"}"#, None),
        ] {
            assert_eq!(shown(body), expected, "{body}");
        }
    }

    #[test]
    fn both_envelopes_name_their_payment_and_rubbish_names_none() {
        let status = br#"{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk","orderId":"ord_1"}}"#;
        let subject = notice(status).expect("names both").subject;
        assert_eq!(subject.payment_key.unwrap().as_str(), "pk");
        assert_eq!(subject.gateway_order_id.unwrap().as_str(), "ord_1");
        let deposit = br#"{"createdAt":"2026-10-02T11:02:09","secret":"ps","status":"DONE","orderId":"ord_1-2"}"#;
        let subject = notice(deposit).expect("names its order").subject;
        assert_eq!(subject.gateway_order_id.unwrap().as_str(), "ord_1-2");
        for rubbish in [
            b"".as_slice(),
            b"[]",
            b"{}",
            b"\xff",
            br#"{"data":{"paymentKey":7}}"#,
            br#"{"orderId":"a b"}"#,
        ] {
            assert_eq!(notice(rubbish), None);
        }
    }
}
