//! Toss Payments' JSON. Must not know what any of it means for an attempt.

use payment::money::Won;
use serde::{Deserialize, Serialize};

/// The body of a confirm. Fields are written in this order always, so a resend has the same bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfirmBody<'a> {
    pub(super) payment_key: &'a str,
    pub(super) order_id: &'a str,
    pub(super) amount: i64,
}

/// The body of a cancel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelBody<'a> {
    pub(super) cancel_reason: &'a str,
    /// Absent: everything that is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cancel_amount: Option<i64>,
    /// An optimistic lock: with another balance at the gateway nothing is cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refundable_amount: Option<i64>,
}

/// The Payment object, as far as it is relied upon. Everything may be missing: an answer that lacks what its status
/// needs is a contradiction to be told, not a parse error to be swallowed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaymentObject {
    pub(super) payment_key: String,
    pub(super) order_id: String,
    pub(super) status: String,
    #[serde(default)]
    total_amount: Option<f64>,
    #[serde(default)]
    balance_amount: Option<f64>,
    #[serde(default)]
    pub(super) currency: Option<String>,
    #[serde(default)]
    pub(super) approved_at: Option<String>,
    #[serde(default)]
    pub(super) failure: Option<Failure>,
    #[serde(default)]
    pub(super) cancels: Option<Vec<CancelEntry>>,
}

/// Why a payment failed.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Failure {
    #[serde(default)]
    pub(super) code: Option<String>,
}

/// One cancel of a payment.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelEntry {
    #[serde(default)]
    cancel_amount: Option<f64>,
    #[serde(default)]
    pub(super) cancel_status: Option<String>,
    #[serde(default)]
    pub(super) cancel_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    code: String,
}

impl PaymentObject {
    /// Reads one; `None` when the bytes are no Payment object.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// The first amount; never changes on a cancel.
    pub(super) fn total(&self) -> Option<Won> {
        self.total_amount.and_then(whole)
    }

    /// What can still be cancelled.
    pub(super) fn balance(&self) -> Option<Won> {
        self.balance_amount.and_then(whole)
    }
}

impl CancelEntry {
    /// What this cancel gave back.
    pub(super) fn amount(&self) -> Option<Won> {
        self.cancel_amount.and_then(whole)
    }
}

/// The code of an error body; `None` when the bytes are none.
pub(super) fn error_code(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<ErrorBody>(body)
        .ok()
        .map(|error| error.code)
        .filter(|code| !code.is_empty())
}

/// An amount in whole units. Only a foreign currency has parts of one; they are rounded up, so that such a charge is
/// still seen as a charge (of the wrong currency) and a balance is zero only when nothing is left.
fn whole(amount: f64) -> Option<Won> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast from f64 saturates, and Won refuses what is beyond 2^53"
    )]
    let units = amount.ceil() as i64;
    Won::new(units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirm_has_a_whole_amount_and_always_the_same_bytes() {
        let body = ConfirmBody {
            payment_key: "pk",
            order_id: "ord_1-2",
            amount: 33_000,
        };
        assert_eq!(
            serde_json::to_string(&body).unwrap(),
            r#"{"paymentKey":"pk","orderId":"ord_1-2","amount":33000}"#
        );
    }

    #[test]
    fn a_cancel_of_everything_names_no_amount() {
        let body = CancelBody {
            cancel_reason: "late",
            cancel_amount: None,
            refundable_amount: None,
        };
        assert_eq!(
            serde_json::to_string(&body).unwrap(),
            r#"{"cancelReason":"late"}"#
        );
    }

    #[test]
    fn parts_of_a_foreign_unit_are_rounded_up_and_negative_amounts_are_none() {
        assert_eq!(whole(33_000.0).map(Won::get), Some(33_000));
        assert_eq!(whole(10.01).map(Won::get), Some(11));
        assert_eq!(whole(0.0).map(Won::get), Some(0));
        assert_eq!(whole(-1.0), None);
        assert_eq!(whole(1e18), None);
    }

    #[test]
    fn only_an_object_with_a_code_is_an_error_body() {
        assert_eq!(
            error_code(br#"{"code":"X","message":"m"}"#).as_deref(),
            Some("X")
        );
        for not_one in [
            &b""[..],
            b"<html>",
            b"{}",
            br#"{"code":""}"#,
            br#"{"code":"X"#,
            br#"{"code":7}"#,
        ] {
            assert_eq!(error_code(not_one), None);
        }
    }
}
