//! Stripe's JSON, as of the pinned version. Must not know what any of it means for an attempt.

use std::collections::HashMap;

use payment::money::Won;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The word of an error body whose error has neither code nor type.
const NO_WORD: &str = "no_code";

/// The answer to the creation of a session.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Session {
    #[serde(default)]
    pub(super) url: Option<String>,
    /// The payment that was made with it; later versions make it only when the shopper confirms.
    #[serde(default)]
    pub(super) payment_intent: Option<String>,
    #[serde(default)]
    amount_total: Option<i64>,
    #[serde(default)]
    pub(super) currency: Option<String>,
}

/// A PaymentIntent, as far as it is relied upon. Nearly everything may be missing: an answer that lacks what its status
/// needs is a contradiction to be told, not a parse error to be swallowed.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) status: String,
    #[serde(default)]
    amount_received: Option<i64>,
    #[serde(default)]
    pub(super) currency: Option<String>,
    #[serde(default)]
    pub(super) metadata: HashMap<String, String>,
    #[serde(default)]
    pub(super) charges: Option<List<Charge>>,
}

/// One charge of a payment: a card that was refused in the window leaves one too.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Charge {
    #[serde(default)]
    pub(super) captured: bool,
    #[serde(default)]
    amount: Option<i64>,
    #[serde(default)]
    amount_refunded: Option<i64>,
    #[serde(default)]
    pub(super) currency: Option<String>,
    #[serde(default)]
    pub(super) payment_intent: Option<String>,
    #[serde(default)]
    pub(super) refunds: Option<List<Refund>>,
}

/// A refund, with its charge in full where that was asked for.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Refund {
    #[serde(default)]
    amount: Option<i64>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) metadata: HashMap<String, String>,
    #[serde(default, deserialize_with = "in_full")]
    charge: Option<Charge>,
}

/// The first entries of a list.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
    #[serde(default)]
    pub(super) has_more: bool,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    error: ErrorObject,
}

#[derive(Debug, Deserialize)]
struct ErrorObject {
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    decline_code: Option<String>,
}

/// An error answer's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorWord {
    /// The code, or for want of one the type.
    pub(super) word: String,
    /// The issuer's own reason, if one is told.
    decline: Option<String>,
}

impl Session {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// What it asks the shopper for.
    pub(super) fn total(&self) -> Option<Won> {
        won(self.amount_total)
    }
}

impl Intent {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// What was charged.
    pub(super) fn received(&self) -> Option<Won> {
        won(self.amount_received)
    }
}

impl Charge {
    /// What was charged.
    pub(super) fn won(&self) -> Option<Won> {
        won(self.amount)
    }

    /// What was given back of it.
    pub(super) fn refunded(&self) -> Option<Won> {
        won(self.amount_refunded)
    }
}

impl Refund {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    pub(super) fn won(&self) -> Option<Won> {
        won(self.amount)
    }

    /// Its charge, where it is told in full.
    pub(super) const fn charge(&self) -> Option<&Charge> {
        self.charge.as_ref()
    }
}

/// A charge that is told in full; one that is told by its id is none.
fn in_full<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Charge>, D::Error> {
    let told = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(told).ok())
}

impl ErrorWord {
    /// Reads an error body; `None` when the bytes are none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let body: ErrorBody = serde_json::from_slice(body).ok()?;
        let word = body.error.code.or(body.error.r#type);
        Some(Self {
            word: word.unwrap_or_else(|| NO_WORD.to_owned()),
            decline: body.error.decline_code,
        })
    }

    /// Both as one word of evidence.
    pub(super) fn told(&self) -> String {
        match &self.decline {
            Some(decline) => format!("{}.{decline}", self.word),
            None => self.word.clone(),
        }
    }
}

fn won(amount: Option<i64>) -> Option<Won> {
    amount.and_then(|amount| Won::new(amount).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_known_by_its_code_or_for_want_of_one_by_its_type() {
        let word = |body: &str| ErrorWord::parse(body.as_bytes());
        let told = |body: &str| word(body).unwrap().told();
        assert_eq!(
            told(
                r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"lost_card"}}"#
            ),
            "card_declined.lost_card"
        );
        assert_eq!(
            told(r#"{"error":{"type":"idempotency_error"}}"#),
            "idempotency_error"
        );
        assert_eq!(told(r#"{"error":{}}"#), "no_code");
        for not_one in [
            "",
            "<html>",
            "{}",
            r#"{"error":"x"}"#,
            r#"{"error":{"code":7}}"#,
        ] {
            assert_eq!(word(not_one), None, "{not_one}");
        }
    }

    #[test]
    fn a_refund_tells_its_charge_only_where_that_is_in_full() {
        let whole =
            br#"{"amount":300,"status":"succeeded","charge":{"amount":900,"amount_refunded":300}}"#;
        let whole = Refund::parse(whole).unwrap();
        assert_eq!(whole.charge().unwrap().refunded(), Won::new(300).ok());
        let named = Refund::parse(br#"{"amount":300,"charge":"ch_1"}"#).unwrap();
        assert!(named.charge().is_none());
        assert!(Refund::parse(b"7").is_none());
    }
}
