//! KakaoPay's JSON. Must not know what any of it means for an attempt.

use payment::money::Won;
use serde::{Deserialize, Serialize};

/// The body of a ready.
#[derive(Debug, Serialize)]
pub(super) struct ReadyBody<'a> {
    pub(super) cid: &'a str,
    pub(super) partner_order_id: &'a str,
    pub(super) partner_user_id: &'a str,
    pub(super) item_name: &'a str,
    pub(super) quantity: u32,
    pub(super) total_amount: i64,
    pub(super) tax_free_amount: i64,
    pub(super) approval_url: &'a str,
    pub(super) cancel_url: &'a str,
    pub(super) fail_url: &'a str,
}

/// The body of an approve.
#[derive(Debug, Serialize)]
pub(super) struct ApproveBody<'a> {
    pub(super) cid: &'a str,
    pub(super) tid: &'a str,
    pub(super) partner_order_id: &'a str,
    pub(super) partner_user_id: &'a str,
    pub(super) pg_token: &'a str,
    /// Kept beside the charge; where an order's list repeats it, the list can be believed about payloads.
    pub(super) payload: &'a str,
    /// Checked by KakaoPay against what was asked for at the ready.
    pub(super) total_amount: i64,
}

/// The body of an order look-up.
#[derive(Debug, Serialize)]
pub(super) struct OrderBody<'a> {
    pub(super) cid: &'a str,
    pub(super) tid: &'a str,
}

/// The body of a cancel.
#[derive(Debug, Serialize)]
pub(super) struct CancelBody<'a> {
    pub(super) cid: &'a str,
    pub(super) tid: &'a str,
    pub(super) cancel_amount: i64,
    pub(super) cancel_tax_free_amount: i64,
    /// An optimistic lock: with another balance (this cancel's amount included) nothing is cancelled.
    pub(super) cancel_available_amount: i64,
    /// Kept beside the cancel, at most 200 characters.
    pub(super) payload: &'a str,
}

/// The answer to a ready.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ReadyAnswer {
    pub(super) tid: String,
    pub(super) next_redirect_pc_url: String,
    pub(super) next_redirect_mobile_url: String,
}

/// What approve, order and cancel tell of a payment, as far as it is relied upon. Nearly everything may be missing: an
/// answer that lacks what its status needs is a contradiction to be told, not a parse error to be swallowed.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PaymentObject {
    pub(super) cid: String,
    pub(super) tid: String,
    #[serde(default)]
    pub(super) aid: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) partner_order_id: Option<String>,
    #[serde(default)]
    pub(super) partner_user_id: Option<String>,
    #[serde(default)]
    amount: Option<Amounts>,
    #[serde(default)]
    approved_cancel_amount: Option<Amounts>,
    #[serde(default)]
    canceled_amount: Option<Amounts>,
    #[serde(default)]
    cancel_available_amount: Option<Amounts>,
    #[serde(default)]
    pub(super) approved_at: Option<String>,
    #[serde(default)]
    pub(super) payment_action_details: Option<Vec<Action>>,
}

/// An amount with its parts, of which only the whole counts here.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Amounts {
    total: i64,
}

/// One entry of an order's list: a charge, or money given back.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Action {
    #[serde(default)]
    pub(super) payment_action_type: Option<String>,
    #[serde(default)]
    amount: Option<i64>,
    #[serde(default)]
    pub(super) payload: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    error_code: i32,
    #[serde(default)]
    extras: Option<serde_json::Value>,
}

/// An error answer's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorWord {
    /// KakaoPay's code; negative.
    pub(super) code: i32,
    /// The code of the payment method behind it, if one is told.
    pub(super) method: Option<String>,
}

impl ReadyAnswer {
    /// Reads one; `None` when the bytes are none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

impl PaymentObject {
    /// Reads one; `None` when the bytes are none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// What was charged first; never changes on a cancel.
    pub(super) fn total(&self) -> Option<Won> {
        self.amount.and_then(won)
    }

    /// What the cancel that this answers gave back.
    pub(super) fn given_now(&self) -> Option<Won> {
        self.approved_cancel_amount.and_then(won)
    }

    /// What was given back in all.
    pub(super) fn given_back(&self) -> Option<Won> {
        self.canceled_amount.and_then(won)
    }

    /// What can still be given back.
    pub(super) fn balance(&self) -> Option<Won> {
        self.cancel_available_amount.and_then(won)
    }
}

impl Action {
    /// How much it moved.
    pub(super) fn won(&self) -> Option<Won> {
        self.amount.and_then(|amount| Won::new(amount).ok())
    }
}

impl ErrorWord {
    /// Reads an error body; `None` when the bytes are none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let error: ErrorBody = serde_json::from_slice(body).ok()?;
        let method = error.extras.as_ref().and_then(|extras| {
            // A name by all that was seen; whatever it is, it is only evidence.
            match extras.get("method_result_code")? {
                serde_json::Value::String(name) => Some(name.clone()),
                serde_json::Value::Number(number) => Some(number.to_string()),
                _ => None,
            }
        });
        Some(Self {
            code: error.error_code,
            method,
        })
    }

    /// Both codes as one word of evidence.
    pub(super) fn told(&self) -> String {
        match &self.method {
            Some(method) => format!("{}.{method}", self.code),
            None => self.code.to_string(),
        }
    }
}

fn won(amounts: Amounts) -> Option<Won> {
    Won::new(amounts.total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_whole_numbers_and_every_field_has_its_name() {
        let approve = ApproveBody {
            cid: "TC0ONETIME",
            tid: "T1",
            partner_order_id: "ord_1-2",
            partner_user_id: "u_ord_1-2",
            pg_token: "token",
            payload: "ord_1-2",
            total_amount: 33_000,
        };
        assert_eq!(
            serde_json::to_string(&approve).unwrap(),
            r#"{"cid":"TC0ONETIME","tid":"T1","partner_order_id":"ord_1-2","partner_user_id":"u_ord_1-2","pg_token":"token","payload":"ord_1-2","total_amount":33000}"#
        );
        let cancel = CancelBody {
            cid: "TC0ONETIME",
            tid: "T1",
            cancel_amount: 3_000,
            cancel_tax_free_amount: 0,
            cancel_available_amount: 33_000,
            payload: "late [r1]",
        };
        assert_eq!(
            serde_json::to_string(&cancel).unwrap(),
            r#"{"cid":"TC0ONETIME","tid":"T1","cancel_amount":3000,"cancel_tax_free_amount":0,"cancel_available_amount":33000,"payload":"late [r1]"}"#
        );
    }

    #[test]
    fn only_an_object_with_a_whole_error_code_is_an_error_body() {
        let word = |body: &str| ErrorWord::parse(body.as_bytes());
        let plain = word(r#"{"error_code":-702,"error_message":"m"}"#).unwrap();
        assert_eq!((plain.code, plain.method.clone()), (-702, None));
        assert_eq!(plain.told(), "-702");
        let with_method = |extras: &str| {
            word(&format!(
                r#"{{"error_code":-780,"error_message":"m","extras":{extras}}}"#
            ))
            .unwrap()
            .told()
        };
        assert_eq!(
            with_method(r#"{"method_result_code":"USER_LOCKED"}"#),
            "-780.USER_LOCKED"
        );
        assert_eq!(with_method(r#"{"method_result_code":7}"#), "-780.7");
        for no_method in [
            "null",
            "{}",
            "[]",
            r#""x""#,
            r#"{"method_result_code":null}"#,
        ] {
            assert_eq!(with_method(no_method), "-780", "{no_method}");
        }
        // The last two are the old API's, which is another wire.
        for not_one in [
            "",
            "<html>",
            "{}",
            r#"{"error_code":"-702"}"#,
            r#"{"error_code":-702.5}"#,
            r#"{"error_code":-702"#,
            r#"{"code":-702,"msg":"m"}"#,
            r#"{"code":-702,"message":"m"}"#,
        ] {
            assert_eq!(word(not_one), None, "{not_one}");
        }
    }
}
