//! Toss Payments' JSON. Must not know what any of it means for an attempt.

use payment::money::Won;
use serde::{Deserialize, Serialize};

use crate::clock::EpochMs;
use crate::gateway::deposit::{Account, Deposit};
use crate::gateway::reference_in;
use crate::gateway::secret::Secret;

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
    /// Only for a deposit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refund_receive_account: Option<AccountBody<'a>>,
}

/// Where a deposit is to go back to. The field is `bank`, not `bankCode` as in what Toss answers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountBody<'a> {
    pub(super) bank: &'a str,
    pub(super) account_number: &'a str,
    pub(super) holder_name: &'a str,
}

impl std::fmt::Debug for AccountBody<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountBody(***)")
    }
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
    #[serde(default)]
    virtual_account: Option<VirtualAccount>,
    /// Seen on card payments too: it says nothing of the method.
    #[serde(default)]
    secret: Option<Secret>,
}

/// The account of a payment by virtual account.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VirtualAccount {
    #[serde(default)]
    account_number: Option<String>,
    #[serde(default)]
    bank_code: Option<String>,
    #[serde(default)]
    customer_name: Option<String>,
    #[serde(default)]
    due_date: Option<String>,
    #[serde(default)]
    expired: Option<bool>,
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
    cancel_status: Option<String>,
    #[serde(default)]
    pub(super) cancel_reason: Option<String>,
}

/// How far a cancel has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelProgress {
    /// It is done.
    Done,
    /// It was accepted and is under way.
    Running,
    /// It was accepted and will not be done.
    Aborted,
    /// A word that is not documented.
    Other,
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

    /// Whether it is paid by a deposit into a virtual account.
    pub(super) fn is_by_account(&self) -> bool {
        self.virtual_account.is_some()
    }

    /// What it says of its virtual account, if it has one.
    pub(super) fn deposit(&self) -> Option<Box<Deposit>> {
        let told = self.virtual_account.as_ref()?;
        let account = Account::of(
            told.bank_code.as_deref()?,
            told.account_number.as_deref()?,
            told.customer_name.as_deref(),
            told.due_date.as_deref().and_then(moment),
        )?;
        let secret = self.secret.clone();
        Some(Box::new(Deposit {
            account,
            secret: secret.filter(|secret| !secret.expose().is_empty()),
            over: told.expired == Some(true),
        }))
    }

    /// What can still be cancelled.
    pub(super) fn balance(&self) -> Option<Won> {
        self.balance_amount.and_then(whole)
    }
}

impl CancelEntry {
    /// How far it has come. Without a word it is done: only those of overseas methods end later, and they have one.
    pub(super) fn progress(&self) -> CancelProgress {
        match self.cancel_status.as_deref() {
            None | Some("DONE") => CancelProgress::Done,
            Some("IN_PROGRESS") => CancelProgress::Running,
            Some("ABORTED") => CancelProgress::Aborted,
            Some(_) => CancelProgress::Other,
        }
    }

    /// The reference by which we know it, if it has one.
    pub(super) fn reference(&self) -> Option<&str> {
        self.cancel_reason.as_deref().and_then(reference_in)
    }

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

/// A moment as Toss writes it: any number of fraction digits, and Korean time where no offset is named. A day alone is no
/// moment: taken for its first one, it would end an account a day early.
fn moment(text: &str) -> Option<EpochMs> {
    if !text.contains(['T', ' ']) {
        return None;
    }
    let at = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let civil = text.parse::<jiff::civil::DateTime>().ok()?;
        jiff::tz::offset(9).to_timestamp(civil).ok()
    });
    at.map(|at| EpochMs(at.as_millisecond()))
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
            refund_receive_account: None,
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
    fn moments_have_any_number_of_fraction_digits_and_perhaps_no_offset() {
        let at = Some(EpochMs(1_790_903_700_000));
        for text in [
            "2026-10-02T10:15:00+09:00",
            "2026-10-02T10:15:00",
            "2026-10-02T10:15:00.00000",
            "2026-10-02T10:15:00.000000000",
            "2026-10-02T01:15:00Z",
        ] {
            assert_eq!(moment(text), at, "{text}");
        }
        assert_eq!(
            moment("2026-10-02T10:15:00.20417"),
            Some(EpochMs(1_790_903_700_204))
        );
        for text in ["", "2026-10-02", "tomorrow"] {
            assert_eq!(moment(text), None, "{text}");
        }
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
