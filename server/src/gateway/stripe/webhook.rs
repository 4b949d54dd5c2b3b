//! Stripe's webhooks: each signed over its bytes and its time, so that what is taken in is Stripe's own, and recent. An event
//! tells how something was when it happened, and events come in any order: the gateway is asked all the same.

use hmac::{Hmac, KeyInit as _, Mac as _};
use payment::id::GatewayOrderId;
use payment::time::Millis;
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::ORDER;
use crate::clock::EpochMs;
use crate::gateway::secret::Secret;
use crate::gateway::webhook::{Admission, Incoming, Notice, Shows, Subject};
use crate::gateway::{WebhookKind, WebhookProof};

/// The header of a signature.
const SIGNATURE: &str = "stripe-signature";
/// Headers that are kept with the body.
const KEPT: [&str; 2] = [SIGNATURE, "content-type"];
/// How far a signature's time may be from ours: the tolerance of Stripe's own libraries. A resend is signed anew.
const TOLERANCE: Millis = Millis::from_secs(300);
/// More signatures than one key and its successor make are nobody's.
const MOST_SIGNATURES: usize = 8;
/// The longest id of an event that is believed to be one.
const EVENT_LIMIT: usize = 200;

const fn kind(name: &'static str) -> WebhookKind {
    WebhookKind {
        name,
        proof: WebhookProof::Signature,
    }
}

/// What is heard of Stripe's many events: what moves money. That a payment was authorised is none, since its shopper comes
/// back with it.
pub(super) const KINDS: [WebhookKind; 5] = [
    kind("payment_intent.succeeded"),
    kind("payment_intent.canceled"),
    kind("charge.refunded"),
    kind("refund.updated"),
    kind("refund.failed"),
];

/// Whether a webhook bears a good signature of this secret, made a moment ago.
pub(super) fn admit(secret: &Secret, webhook: &Incoming<'_>) -> Admission {
    let signed = match Signed::read(webhook.header(SIGNATURE)) {
        Ok(signed) => signed,
        Err(why) => return Admission::Forged(why),
    };
    if !signed.is_by(secret, webhook.body) {
        return Admission::Forged("wrong_signature");
    }
    // Only after the signature: before that its time is anybody's word.
    if !signed.is_recent(webhook.at) {
        return Admission::Forged("old_signature");
    }
    let body: Value = serde_json::from_slice(webhook.body).unwrap_or_default();
    let id = body.get("id").and_then(Value::as_str);
    let id = id.filter(|id| (1..=EVENT_LIMIT).contains(&id.len()));
    Admission::Taken {
        transmission: id.map(str::to_owned),
        kept: &KEPT,
    }
}

/// The payment that an event is about, by the order that we wrote beside it.
pub(super) fn notice(body: &[u8]) -> Option<Notice> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let event = body.get("type").and_then(Value::as_str)?;
    KINDS.iter().find(|kind| kind.name == event)?;
    let order = body.get("data")?.get("object")?.get("metadata")?.get(ORDER);
    let order = GatewayOrderId::parse(order?.as_str()?).ok()?;
    Some(Notice {
        subject: Subject {
            payment_key: None,
            gateway_order_id: Some(order),
        },
        shows: Shows::Signature,
    })
}

/// `t=<unix seconds>,v1=<hex>[,v1=<hex>]`: several while a secret is being replaced. Other schemes are left alone.
#[derive(Debug, PartialEq, Eq)]
struct Signed<'a> {
    /// As it was written: this text is what is signed.
    at: &'a str,
    at_s: i64,
    signatures: Vec<&'a str>,
}

impl<'a> Signed<'a> {
    fn read(header: Option<&'a str>) -> Result<Self, &'static str> {
        let header = header.ok_or("no_signature")?;
        let parts = || {
            header
                .split(',')
                .filter_map(|part| part.trim().split_once('='))
        };
        let values = |of: &'static str| parts().filter(move |(name, _)| *name == of);
        let mut times = values("t").map(|(_, time)| time);
        let (Some(at), None) = (times.next(), times.next()) else {
            return Err("garbled_signature");
        };
        let at_s = at.parse().map_err(|_| "garbled_signature")?;
        let signatures: Vec<_> = values("v1").map(|(_, signature)| signature).collect();
        if signatures.is_empty() || signatures.len() > MOST_SIGNATURES {
            return Err("garbled_signature");
        }
        Ok(Self {
            at,
            at_s,
            signatures,
        })
    }

    fn is_by(&self, secret: &Secret, body: &[u8]) -> bool {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else {
            return false;
        };
        mac.update(self.at.as_bytes());
        mac.update(b".");
        mac.update(body);
        let made = mac.finalize().into_bytes();
        let made: String = made.iter().map(|byte| format!("{byte:02x}")).collect();
        let same = |given: &&str| bool::from(made.as_bytes().ct_eq(given.as_bytes()));
        self.signatures.iter().any(same)
    }

    fn is_recent(&self, now: EpochMs) -> bool {
        let Some(at) = self.at_s.checked_mul(1_000).map(EpochMs) else {
            return false;
        };
        // Whichever clock is ahead.
        at.since(now) <= TOLERANCE && now.since(at) <= TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, HeaderValue};

    use super::*;

    /// `printf '%s' '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test`
    const BODY: &[u8] = br#"{"id":"evt_1"}"#;
    const GOOD: &str = "c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925";
    const NOW: EpochMs = EpochMs(1_700_000_000_000);

    fn admitted(header: Option<&str>, body: &[u8], at: EpochMs) -> Admission {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(SIGNATURE, HeaderValue::from_str(header).unwrap());
        }
        let headers = &headers;
        admit(&Secret::new("whsec_test"), &Incoming { headers, body, at })
    }

    #[test]
    fn only_a_signature_of_these_bytes_by_our_secret_a_moment_ago_is_taken() {
        let good = format!("t=1700000000,v1={GOOD}");
        let taken = Admission::Taken {
            transmission: Some("evt_1".to_owned()),
            kept: &KEPT,
        };
        for header in [
            good.clone(),
            format!("t=1700000000,v1={},v1={GOOD}", "0".repeat(64)),
            format!(" v0=x, v1={GOOD} , t=1700000000"),
        ] {
            assert_eq!(admitted(Some(&header), BODY, NOW), taken, "{header}");
        }
        for apart in [-300_000, 300_000] {
            assert_eq!(admitted(Some(&good), BODY, EpochMs(NOW.0 + apart)), taken);
        }
        for (header, body, at, why) in [
            (None, BODY, NOW, "no_signature"),
            (Some(""), BODY, NOW, "garbled_signature"),
            (Some("t=x,v1=y"), BODY, NOW, "garbled_signature"),
            (Some("t=1700000000"), BODY, NOW, "garbled_signature"),
            (Some("t=1,t=2,v1=y"), BODY, NOW, "garbled_signature"),
            (Some("t=1700000000,v1="), BODY, NOW, "wrong_signature"),
            (
                Some(&*good),
                &br#"{"id":"evt_2"}"#[..],
                NOW,
                "wrong_signature",
            ),
            (
                Some(&*good.replace("t=1", "t=2")),
                BODY,
                NOW,
                "wrong_signature",
            ),
            (
                Some(&*good),
                BODY,
                EpochMs(NOW.0 + 301_000),
                "old_signature",
            ),
            (
                Some(&*good),
                BODY,
                EpochMs(NOW.0 - 301_000),
                "old_signature",
            ),
        ] {
            assert_eq!(
                admitted(header, body, at),
                Admission::Forged(why),
                "{header:?}"
            );
        }
        let other = Incoming {
            headers: &HeaderMap::from_iter([(
                reqwest::header::HeaderName::from_static(SIGNATURE),
                HeaderValue::from_str(&good).unwrap(),
            )]),
            body: BODY,
            at: NOW,
        };
        let refused = admit(&Secret::new("whsec_other"), &other);
        assert_eq!(refused, Admission::Forged("wrong_signature"));
    }

    #[test]
    fn an_event_names_its_payment_by_our_order_and_others_say_nothing() {
        let of = |kind: &str, object: &str| {
            let body = format!(r#"{{"id":"evt_1","type":"{kind}","data":{{"object":{object}}}}}"#);
            notice(body.as_bytes())
        };
        let object = r#"{"id":"pi_1","metadata":{"order":"ord_1-2"}}"#;
        let named = of("payment_intent.succeeded", object).expect("an order");
        assert_eq!(named.subject.gateway_order_id.unwrap().as_str(), "ord_1-2");
        assert_eq!(named.shows, Shows::Signature);
        assert_eq!(of("customer.created", object), None);
        for nobodys in [
            "{}",
            "null",
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"order":"a b"}}"#,
        ] {
            assert_eq!(of("charge.refunded", nobodys), None, "{nobodys}");
        }
        assert_eq!(notice(b"\xff"), None);
    }
}
