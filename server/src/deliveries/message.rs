//! What a webhook says, and its signature: Standard Webhooks 1.0.0. The same bytes every time, since they follow from what
//! is stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::gateway::secret::Secret;
use crate::store::effects::EffectKind;
use crate::store::merchant::Delivery;

/// A webhook's id and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same for every delivery of one event.
    pub id: String,
    /// JSON.
    pub body: String,
}

/// What of a notification a shop is told.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notified {
    event: String,
    attempt: u32,
    amount: i64,
    #[serde(default)]
    canceled: Option<i64>,
    at: i64,
}

#[derive(Serialize)]
struct Told<'a> {
    r#type: &'static str,
    /// When it happened, RFC 3339.
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    order_id: &'a str,
    reference: &'a str,
    attempt: u32,
    amount: i64,
    currency: &'static str,
    /// Of money that went back how much in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    refunded: Option<i64>,
}

/// What an event is called; `None` for what shops are not told.
const fn name_of(kind: EffectKind) -> Option<&'static str> {
    match kind {
        EffectKind::Paid => Some("order.paid"),
        EffectKind::Unpaid => Some("order.unpaid"),
        EffectKind::PartiallyCanceled => Some("order.partially_canceled"),
        EffectKind::Canceled => Some("order.canceled"),
        EffectKind::Returned => Some("order.charge_returned"),
        EffectKind::Alarm => None,
    }
}

impl Message {
    /// What a delivery says; `None` when what was stored cannot be read.
    #[must_use]
    pub fn of(delivery: &Delivery) -> Option<Self> {
        let notified: Notified = serde_json::from_str(&delivery.notification).ok()?;
        let told = Told {
            r#type: name_of(EffectKind::parse(&notified.event)?)?,
            timestamp: jiff::Timestamp::from_millisecond(notified.at)
                .ok()?
                .to_string(),
            data: Data {
                order_id: delivery.order_id.as_str(),
                reference: &delivery.reference,
                attempt: notified.attempt,
                amount: notified.amount,
                currency: "KRW",
                refunded: notified.canceled,
            },
        };
        Some(Self {
            // Of the order, since rows are counted by one database and a shop may hear from several.
            id: format!("evt_{}_{}", delivery.order_id, delivery.seq),
            body: serde_json::to_string(&told).ok()?,
        })
    }

    /// A signature by each of the secrets, at a moment in seconds since 1970; `None` when one cannot sign.
    #[must_use]
    pub fn signature(&self, secrets: &[Secret], timestamp: i64) -> Option<String> {
        let content = format!("{}.{timestamp}.{}", self.id, self.body);
        let signed = secrets
            .iter()
            .map(|secret| sign(secret, content.as_bytes()));
        let signed: Option<Vec<_>> = signed.collect();
        signed
            .filter(|signed| !signed.is_empty())
            .map(|signed| signed.join(" "))
    }
}

fn sign(secret: &Secret, content: &[u8]) -> Option<String> {
    let key = STANDARD
        .decode(secret.expose().strip_prefix("whsec_")?)
        .ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(content);
    Some(format!(
        "v1,{}",
        STANDARD.encode(mac.finalize().into_bytes())
    ))
}

#[cfg(test)]
mod tests {
    use payment::id::OrderId;

    use super::*;
    use crate::clock::EpochMs;

    #[test]
    fn the_signature_is_the_one_of_the_published_example() {
        // From the specification's own libraries' tests (standardwebhooks, `test_sign_function`).
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let message = Message {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            body: r#"{"test": 2432232314}"#.to_owned(),
        };
        let signature = message.signature(std::slice::from_ref(&secret), 1_614_265_330);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature.as_deref(), Some(expected));
        let both = [secret, Secret::new("whsec_AAAA")];
        let signature = message.signature(&both, 1_614_265_330).unwrap();
        assert!(
            signature.starts_with(&format!("{expected} v1,")),
            "{signature}"
        );
        assert_eq!(message.signature(&[], 1), None);
        assert_eq!(message.signature(&[Secret::new("no prefix")], 1), None);
    }

    #[test]
    fn every_kind_but_an_alarm_has_a_name_and_the_body_is_the_same_every_time() {
        let delivery = |event: &str| Delivery {
            seq: 7,
            takes: 1,
            tries: 1,
            since: EpochMs(0),
            endpoint: None,
            order_id: OrderId::parse("ord_1").unwrap(),
            reference: "A-1 \"x\"".to_owned(),
            notification: format!(
                r#"{{"event":"{event}","key":"k","orderId":"ord_1","attempt":2,"amount":36000,"currency":"KRW","canceled":5000,"at":1700000000000}}"#
            ),
        };
        for kind in EffectKind::ALL {
            let message = Message::of(&delivery(kind.as_str()));
            assert_eq!(message.is_none(), kind == EffectKind::Alarm);
        }
        let message = Message::of(&delivery("order_partially_canceled")).unwrap();
        assert_eq!(message.id, "evt_ord_1_7");
        assert_eq!(
            message.body,
            r#"{"type":"order.partially_canceled","timestamp":"2023-11-14T22:13:20Z","data":{"orderId":"ord_1","reference":"A-1 \"x\"","attempt":2,"amount":36000,"currency":"KRW","refunded":5000}}"#
        );
    }
}
