//! What an answer of Toss Payments means: the outcome tables as data. A definite failure is an allow-list; a code that is
//! not on it, or comes with another HTTP status, is unknown.

use payment::attempt::Finding;
use payment::id::{GatewayOrderId, PaymentKey};
use payment::money::{Currency, Money, Won};
use payment::reach::{Decline, Lost};

use super::client::Answer;
use super::wire::{Error, Payment};
use crate::gateway::{CancelCall, CancelOutcome, ConfirmOutcome, InquiryOutcome, Told};

/// What an error code means for a confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirm {
    /// Declined for good.
    Decline(Decline),
    /// Declined for good, and an operator must look: our bug, our keys, or a forged return.
    Alarming(Decline),
    /// Refused before processing.
    Refused,
    /// The first request with this key is still running.
    InProgress,
    /// Only an inquiry tells.
    Ask,
}

/// Table 3.1 of the contract sheet: code, HTTP status, meaning. A 429 needs no code.
#[rustfmt::skip]
const CONFIRM: &[(&str, u16, Confirm)] = &[
    ("IDEMPOTENT_REQUEST_PROCESSING", 409, Confirm::InProgress),
    ("FORBIDDEN_CONSECUTIVE_REQUEST", 403, Confirm::Refused),
    ("ALREADY_PROCESSED_PAYMENT", 400, Confirm::Ask),
    ("ALREADY_COMPLETED_PAYMENT", 400, Confirm::Ask),
    ("DUPLICATED_ORDER_ID", 400, Confirm::Ask),
    ("DUPLICATED_REQUEST", 400, Confirm::Ask),
    ("PROVIDER_ERROR", 400, Confirm::Ask),
    ("CARD_PROCESSING_ERROR", 400, Confirm::Ask),
    ("FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING", 500, Confirm::Ask),
    ("FAILED_INTERNAL_SYSTEM_PROCESSING", 500, Confirm::Ask),
    ("UNKNOWN_PAYMENT_ERROR", 500, Confirm::Ask),
    ("COMMON_ERROR", 500, Confirm::Ask),
    ("UNKNOWN_ERROR", 500, Confirm::Ask),
    ("FAILED_DB_PROCESSING", 500, Confirm::Ask),
    ("FAILED_METHOD_HANDLING", 500, Confirm::Ask),
    ("REJECT_CARD_PAYMENT", 403, Confirm::Decline(Decline::CardRefused)),
    ("REJECT_CARD_COMPANY", 403, Confirm::Decline(Decline::CardRefused)),
    ("REJECT_ACCOUNT_PAYMENT", 403, Confirm::Decline(Decline::CardRefused)),
    ("REJECT_TOSSPAY_INVALID_ACCOUNT", 403, Confirm::Decline(Decline::CardRefused)),
    ("FDS_ERROR", 403, Confirm::Decline(Decline::CardRefused)),
    ("INVALID_REJECT_CARD", 400, Confirm::Decline(Decline::CardRefused)),
    ("INVALID_STOPPED_CARD", 400, Confirm::Decline(Decline::CardInvalid)),
    ("INVALID_CARD_LOST_OR_STOLEN", 400, Confirm::Decline(Decline::CardInvalid)),
    ("INVALID_CARD_EXPIRATION", 400, Confirm::Decline(Decline::CardInvalid)),
    ("INVALID_CARD_NUMBER", 400, Confirm::Decline(Decline::CardInvalid)),
    ("INVALID_CARD_INSTALLMENT_PLAN", 400, Confirm::Decline(Decline::NotAvailable)),
    ("NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT", 400, Confirm::Decline(Decline::NotAvailable)),
    ("NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN", 400, Confirm::Decline(Decline::NotAvailable)),
    ("NOT_ALLOWED_POINT_USE", 400, Confirm::Decline(Decline::NotAvailable)),
    ("EXCEED_MAX_CARD_INSTALLMENT_PLAN", 400, Confirm::Decline(Decline::NotAvailable)),
    ("NOT_AVAILABLE_PAYMENT", 400, Confirm::Decline(Decline::NotAvailable)),
    ("NOT_AVAILABLE_BANK", 403, Confirm::Decline(Decline::NotAvailable)),
    ("RESTRICTED_TRANSFER_ACCOUNT", 400, Confirm::Decline(Decline::NotAvailable)),
    ("INVALID_ACCOUNT_INFO_RE_REGISTER", 400, Confirm::Decline(Decline::NotAvailable)),
    ("BELOW_MINIMUM_AMOUNT", 400, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_DAILY_PAYMENT_COUNT", 400, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_PAYMENT_AMOUNT", 400, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_AMOUNT", 400, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT", 400, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT", 400, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT", 400, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_ONE_DAY_AMOUNT", 403, Confirm::Decline(Decline::LimitExceeded)),
    ("EXCEED_MAX_AUTH_COUNT", 403, Confirm::Decline(Decline::AuthenticationFailed)),
    ("INVALID_PASSWORD", 403, Confirm::Decline(Decline::AuthenticationFailed)),
    ("PAY_PROCESS_ABORTED", 400, Confirm::Decline(Decline::Other)),
    ("PAY_PROCESS_CANCELED", 400, Confirm::Decline(Decline::Other)),
    ("NOT_FOUND_PAYMENT_SESSION", 404, Confirm::Decline(Decline::SessionExpired)),
    ("NOT_FOUND_PAYMENT", 404, Confirm::Alarming(Decline::ShopSetup)),
    ("INVALID_PAYMENT_KEY", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("UNAPPROVED_ORDER_ID", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("INVALID_REQUEST", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("FORBIDDEN_REQUEST", 403, Confirm::Alarming(Decline::ShopSetup)),
    ("UNAUTHORIZED_KEY", 401, Confirm::Alarming(Decline::ShopSetup)),
    ("INVALID_API_KEY", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("INCORRECT_BASIC_AUTH_FORMAT", 403, Confirm::Alarming(Decline::ShopSetup)),
    ("INVALID_IDEMPOTENCY_KEY", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("NOT_FOUND_TERMINAL_ID", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("INVALID_UNREGISTERED_SUBMALL", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("NOT_REGISTERED_BUSINESS", 400, Confirm::Alarming(Decline::ShopSetup)),
    ("INVALID_AUTHORIZE_AUTH", 400, Confirm::Alarming(Decline::ShopSetup)),
];

/// What an error code means for a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancel {
    /// Ask, then the same key again.
    Ask,
    /// Not executed, and the code is bound to the key: ask, then a new key.
    NewKey,
    /// Refused for good.
    Refused,
}

/// Table 3.2 of the contract sheet.
#[rustfmt::skip]
const CANCEL: &[(&str, u16, Cancel)] = &[
    ("IDEMPOTENT_REQUEST_PROCESSING", 409, Cancel::Ask),
    ("FAILED_REFUND_PROCESS", 500, Cancel::Ask),
    ("FAILED_METHOD_HANDLING_CANCEL", 500, Cancel::Ask),
    ("FAILED_PARTIAL_REFUND", 500, Cancel::Ask),
    ("COMMON_ERROR", 500, Cancel::Ask),
    ("FAILED_INTERNAL_SYSTEM_PROCESSING", 500, Cancel::Ask),
    ("FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING", 500, Cancel::Ask),
    ("ALREADY_CANCELED_PAYMENT", 400, Cancel::Ask),
    ("ALREADY_REFUND_PAYMENT", 400, Cancel::Ask),
    ("ALREADY_REFUNDING_PAYMENT", 400, Cancel::Ask),
    ("NOT_CANCELABLE_AMOUNT", 403, Cancel::NewKey),
    ("PROVIDER_ERROR", 400, Cancel::NewKey),
    ("FORBIDDEN_CONSECUTIVE_REQUEST", 403, Cancel::NewKey),
    ("NOT_MATCHES_REFUNDABLE_AMOUNT", 400, Cancel::NewKey),
    ("NOT_AVAILABLE_BANK", 403, Cancel::NewKey),
    ("UNAUTHORIZED_KEY", 401, Cancel::NewKey),
    ("INVALID_API_KEY", 400, Cancel::NewKey),
    ("INCORRECT_BASIC_AUTH_FORMAT", 403, Cancel::NewKey),
    ("FORBIDDEN_REQUEST", 403, Cancel::NewKey),
    ("NOT_FOUND_PAYMENT", 404, Cancel::NewKey),
    ("INVALID_IDEMPOTENCY_KEY", 400, Cancel::NewKey),
    ("NOT_CANCELABLE_PAYMENT", 403, Cancel::Refused),
    ("NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER", 403, Cancel::Refused),
    ("EXCEED_MAX_REFUND_DUE", 403, Cancel::Refused),
    ("EXCEED_CANCEL_LIMIT", 403, Cancel::Refused),
    ("NOT_ALLOWED_PARTIAL_REFUND", 403, Cancel::Refused),
    ("NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT", 403, Cancel::Refused),
    ("REFUND_REJECTED", 400, Cancel::Refused),
    ("EXCEED_CANCEL_AMOUNT_DISCOUNT_AMOUNT", 400, Cancel::Refused),
    ("FORBIDDEN_BANK_REFUND_REQUEST", 400, Cancel::Refused),
    ("INVALID_REFUND_ACCOUNT_INFO", 400, Cancel::Refused),
    ("INVALID_REFUND_ACCOUNT_NUMBER", 400, Cancel::Refused),
    ("INVALID_BANK", 400, Cancel::Refused),
    ("INVALID_REQUEST", 400, Cancel::Refused),
    ("INVALID_REFUND_AMOUNT", 400, Cancel::Refused),
];

/// The row of a code; `None` for an unlisted code, or a listed one with another HTTP status.
fn row<T: Copy>(table: &[(&str, u16, T)], code: &str, status: u16) -> Option<T> {
    table
        .iter()
        .find(|(known, with, _)| *known == code && *with == status)
        .map(|(_, _, meaning)| *meaning)
}

fn told(answer: &Answer, code: &str, alarm: bool) -> Told {
    // A code is a word of the gateway's; anything longer is not one and stays out of the evidence.
    let code: String = code
        .chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .take(80)
        .collect();
    Told {
        status: Some(answer.status),
        code,
        alarm,
    }
}

fn code_of(answer: &Answer) -> Option<String> {
    serde_json::from_slice::<Error>(&answer.body)
        .ok()
        .map(|error| error.code)
}

/// The meaning of a confirm's answer.
pub(super) fn confirm(answer: &Answer, key: &PaymentKey, order: &GatewayOrderId) -> ConfirmOutcome {
    if answer.status == 200 {
        return confirmed(answer, key, order);
    }
    let code = code_of(answer);
    let name = code.as_deref().unwrap_or("no code");
    if answer.status == 429 {
        return ConfirmOutcome::Refused(told(answer, name, false));
    }
    let Some(code) = code else {
        // An error page, a redirect, an empty body: of a redirect an operator should know.
        let how = if answer.status < 400 {
            Lost::Inconclusive
        } else {
            Lost::Unreadable
        };
        return ConfirmOutcome::Lost(how, told(answer, name, answer.status < 400));
    };
    match row(CONFIRM, &code, answer.status) {
        Some(Confirm::Decline(class)) => {
            ConfirmOutcome::Found(Finding::Declined(class), told(answer, &code, false))
        }
        Some(Confirm::Alarming(class)) => {
            ConfirmOutcome::Found(Finding::Declined(class), told(answer, &code, true))
        }
        Some(Confirm::Refused) => ConfirmOutcome::Refused(told(answer, &code, false)),
        Some(Confirm::InProgress) => {
            ConfirmOutcome::Lost(Lost::InProgress, told(answer, &code, false))
        }
        Some(Confirm::Ask) => ConfirmOutcome::Lost(Lost::Inconclusive, told(answer, &code, false)),
        None => ConfirmOutcome::Lost(Lost::Inconclusive, told(answer, &code, true)),
    }
}

fn confirmed(answer: &Answer, key: &PaymentKey, order: &GatewayOrderId) -> ConfirmOutcome {
    let Ok(payment) = serde_json::from_slice::<Payment>(&answer.body) else {
        return ConfirmOutcome::Lost(Lost::Unreadable, told(answer, "not a payment", false));
    };
    if payment.payment_key != key.as_str() || payment.order_id != order.as_str() {
        return ConfirmOutcome::Lost(Lost::Inconclusive, told(answer, "another payment", true));
    }
    match finding(&payment) {
        Some(Finding::Pending { .. }) | None => {
            ConfirmOutcome::Lost(Lost::Inconclusive, told(answer, &payment.status, false))
        }
        Some(finding) => ConfirmOutcome::Found(finding, told(answer, &payment.status, false)),
    }
}

/// What a Payment says; `None` when it contradicts itself or uses a word that nobody knows.
fn finding(payment: &Payment) -> Option<Finding> {
    let total = Won::new(payment.total_amount).ok()?;
    let charged = Money {
        amount: total,
        currency: Currency::of(&payment.currency),
    };
    match payment.status.as_str() {
        "DONE" if payment.failure.is_some() || payment.approved_at.is_none() => None,
        "DONE" => Some(Finding::Charged {
            charged,
            canceled: Won::ZERO,
        }),
        "PARTIAL_CANCELED" | "CANCELED" => {
            // "Partially" is kept when the last part went back too: the balance tells.
            let balance = Won::new(payment.balance_amount?).ok()?;
            Some(Finding::Charged {
                charged,
                canceled: total.less(balance),
            })
        }
        "WAITING_FOR_DEPOSIT" => Some(Finding::AwaitingDeposit),
        "ABORTED" => Some(Finding::Declined(decline_of(payment))),
        "EXPIRED" => Some(Finding::Lapsed),
        "READY" | "IN_PROGRESS" => Some(Finding::Pending { settled: false }),
        _ => None,
    }
}

fn decline_of(payment: &Payment) -> Decline {
    let code = payment
        .failure
        .as_ref()
        .and_then(|failure| failure.code.as_deref())
        .unwrap_or_default();
    let listed = CONFIRM
        .iter()
        .find(|(known, _, _)| *known == code)
        .map(|(_, _, meaning)| *meaning);
    match listed {
        Some(Confirm::Decline(class) | Confirm::Alarming(class)) => class,
        Some(Confirm::Refused | Confirm::InProgress | Confirm::Ask) | None => Decline::Other,
    }
}

/// The meaning of an inquiry's answer.
pub(super) fn inquiry(
    answer: &Answer,
    key: Option<&PaymentKey>,
    order: &GatewayOrderId,
) -> InquiryOutcome {
    if answer.status == 200 {
        let Ok(payment) = serde_json::from_slice::<Payment>(&answer.body) else {
            return InquiryOutcome::NoAnswer(told(answer, "not a payment", false));
        };
        let other_key = key.is_some_and(|key| payment.payment_key != key.as_str());
        if other_key || payment.order_id != order.as_str() {
            return InquiryOutcome::NoWord(told(answer, "another payment", true));
        }
        return match finding(&payment) {
            Some(finding) => InquiryOutcome::Found(finding, told(answer, &payment.status, false)),
            None => InquiryOutcome::NoWord(told(answer, &payment.status, true)),
        };
    }
    let Some(code) = code_of(answer) else {
        return InquiryOutcome::NoAnswer(told(answer, "no code", answer.status < 400));
    };
    match (answer.status, code.as_str()) {
        (404, "NOT_FOUND_PAYMENT" | "NOT_FOUND") => InquiryOutcome::Found(
            Finding::NotFound { settled: false },
            told(answer, &code, false),
        ),
        (429, _) | (403, "FORBIDDEN_CONSECUTIVE_REQUEST") => {
            InquiryOutcome::NoWord(told(answer, &code, false))
        }
        (500.., _) => InquiryOutcome::NoAnswer(told(answer, &code, false)),
        // Keys mixed up, most likely: an alarm, never "not charged".
        _ => InquiryOutcome::NoWord(told(answer, &code, true)),
    }
}

/// The meaning of a cancel's answer.
pub(super) fn cancel(answer: &Answer, call: &CancelCall) -> CancelOutcome {
    if answer.status == 200 {
        let payment = serde_json::from_slice::<Payment>(&answer.body).ok();
        let payment = payment.filter(|payment| payment.payment_key == call.payment_key.as_str());
        return match payment.as_ref().and_then(finding) {
            Some(finding @ Finding::Charged { canceled, .. }) if canceled > Won::ZERO => {
                CancelOutcome::Found(finding, told(answer, "canceled", false))
            }
            _ => CancelOutcome::Unknown(told(answer, "no cancel in the answer", true)),
        };
    }
    let Some(code) = code_of(answer) else {
        return CancelOutcome::Unknown(told(answer, "no code", false));
    };
    match row(CANCEL, &code, answer.status) {
        Some(Cancel::Ask) => CancelOutcome::Unknown(told(answer, &code, false)),
        Some(Cancel::NewKey) => CancelOutcome::RetryWithNewKey(told(answer, &code, false)),
        Some(Cancel::Refused) => CancelOutcome::Refused(told(answer, &code, true)),
        None => CancelOutcome::Unknown(told(answer, &code, answer.status != 429)),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
        Answer {
            status,
            body: body.into(),
        }
    }

    fn key() -> PaymentKey {
        PaymentKey::parse("pk_1").unwrap()
    }

    fn order() -> GatewayOrderId {
        GatewayOrderId::parse("ord_1").unwrap()
    }

    fn confirm_of(status: u16, body: &serde_json::Value) -> ConfirmOutcome {
        confirm(&answer(status, body.to_string()), &key(), &order())
    }

    fn payment(status: &str) -> serde_json::Value {
        json!({"paymentKey": "pk_1", "orderId": "ord_1", "status": status, "totalAmount": 10_000,
               "balanceAmount": 10_000, "currency": "KRW", "approvedAt": "2026-10-02T10:15:41+09:00", "failure": null})
    }

    #[test]
    fn every_row_means_what_the_table_says_and_nothing_with_another_status() {
        for (code, status, meaning) in CONFIRM {
            let outcome = confirm_of(*status, &json!({"code": code, "message": "…"}));
            let fits = match meaning {
                Confirm::Decline(class) | Confirm::Alarming(class) => {
                    matches!(&outcome, ConfirmOutcome::Found(Finding::Declined(told), _) if told == class)
                }
                Confirm::Refused => matches!(outcome, ConfirmOutcome::Refused(_)),
                Confirm::InProgress => matches!(outcome, ConfirmOutcome::Lost(Lost::InProgress, _)),
                Confirm::Ask => matches!(outcome, ConfirmOutcome::Lost(Lost::Inconclusive, _)),
            };
            assert!(fits, "{status} {code}: {outcome:?}");
            let other = confirm_of(418, &json!({"code": code}));
            assert!(
                matches!(&other, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
                "418 {code}"
            );
        }
    }

    #[test]
    fn an_unlisted_code_is_unknown_and_alarms() {
        let outcome = confirm_of(400, &json!({"code": "SOMETHING_NEW", "message": "…"}));
        assert!(matches!(outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm));
    }

    #[test]
    fn too_many_requests_is_refused_with_any_body() {
        for body in ["", "<html>", r#"{"code":"TOO_MANY"}"#] {
            let outcome = confirm(&answer(429, body.to_owned()), &key(), &order());
            assert!(matches!(outcome, ConfirmOutcome::Refused(_)));
        }
    }

    #[test]
    fn a_200_is_success_only_when_everything_in_it_agrees() {
        let charged = |amount| Finding::Charged {
            charged: Money::won(Won::new(amount).unwrap()),
            canceled: Won::ZERO,
        };
        let found = |outcome: ConfirmOutcome| match outcome {
            ConfirmOutcome::Found(finding, _) => Some(finding),
            _ => None,
        };
        let with = |name: &str, value: serde_json::Value| {
            let mut body = payment("DONE");
            body[name] = value;
            confirm_of(200, &body)
        };
        assert_eq!(
            found(confirm_of(200, &payment("DONE"))),
            Some(charged(10_000))
        );
        assert_eq!(
            found(with("totalAmount", json!(9_000))),
            Some(charged(9_000))
        );
        for (name, value) in [
            ("paymentKey", json!("pk_2")),
            ("orderId", json!("ord_2")),
            ("approvedAt", json!(null)),
            ("failure", json!({"code": "X"})),
            ("status", json!("UNDER_REVIEW")),
            ("status", json!("IN_PROGRESS")),
            ("totalAmount", json!(-1)),
        ] {
            assert!(
                matches!(
                    with(name, value.clone()),
                    ConfirmOutcome::Lost(Lost::Inconclusive, _)
                ),
                "{name} {value}"
            );
        }
        assert!(matches!(
            with("totalAmount", json!("10000")),
            ConfirmOutcome::Lost(Lost::Unreadable, _)
        ));
        assert_eq!(
            found(confirm_of(200, &payment("EXPIRED"))),
            Some(Finding::Lapsed)
        );
        let mut aborted = payment("ABORTED");
        aborted["failure"] = json!({"code": "REJECT_CARD_COMPANY"});
        assert_eq!(
            found(confirm_of(200, &aborted)),
            Some(Finding::Declined(Decline::CardRefused))
        );
        assert_eq!(
            found(confirm_of(200, &payment("WAITING_FOR_DEPOSIT"))),
            Some(Finding::AwaitingDeposit)
        );
    }

    #[test]
    fn what_cannot_be_read_is_never_a_result() {
        for (status, body) in [
            (200, "{\"paymentKey\":"),
            (200, "<html>"),
            (200, ""),
            (502, "<html>"),
            (500, ""),
            (503, "busy"),
        ] {
            let outcome = confirm(&answer(status, body.to_owned()), &key(), &order());
            assert!(
                matches!(outcome, ConfirmOutcome::Lost(Lost::Unreadable, _)),
                "{status} {body}"
            );
        }
        for status in [301, 302, 307, 308] {
            let outcome = confirm(&answer(status, ""), &key(), &order());
            assert!(
                matches!(outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm)
            );
        }
    }

    #[test]
    fn an_inquiry_says_not_charged_only_in_the_gateways_own_words() {
        let ask = |status, body: serde_json::Value| {
            inquiry(&answer(status, body.to_string()), Some(&key()), &order())
        };
        let not_found = json!({"code": "NOT_FOUND_PAYMENT"});
        assert!(matches!(
            ask(404, not_found),
            InquiryOutcome::Found(Finding::NotFound { settled: false }, _)
        ));
        assert!(
            matches!(ask(401, json!({"code": "UNAUTHORIZED_KEY"})), InquiryOutcome::NoWord(told) if told.alarm)
        );
        assert!(matches!(
            ask(404, json!({"code": "OTHER"})),
            InquiryOutcome::NoWord(_)
        ));
        assert!(
            matches!(ask(429, json!({"code": "X"})), InquiryOutcome::NoWord(told) if !told.alarm)
        );
        assert!(matches!(
            ask(500, json!({"code": "COMMON_ERROR"})),
            InquiryOutcome::NoAnswer(_)
        ));
        assert!(matches!(
            ask(200, payment("IN_PROGRESS")),
            InquiryOutcome::Found(Finding::Pending { settled: false }, _)
        ));
        let mut other = payment("DONE");
        other["paymentKey"] = json!("pk_2");
        assert!(matches!(ask(200, other), InquiryOutcome::NoWord(told) if told.alarm));
    }

    #[test]
    fn every_cancel_row_means_what_the_table_says() {
        let call = CancelCall {
            payment_key: key(),
            amount: None,
            balance: None,
            reason: "x".to_owned(),
            idempotency_key: payment::id::IdempotencyKey::parse("k").unwrap(),
        };
        for (code, status, meaning) in CANCEL {
            let outcome = cancel(&answer(*status, json!({"code": code}).to_string()), &call);
            let fits = match meaning {
                Cancel::Ask => matches!(outcome, CancelOutcome::Unknown(_)),
                Cancel::NewKey => matches!(outcome, CancelOutcome::RetryWithNewKey(_)),
                Cancel::Refused => matches!(outcome, CancelOutcome::Refused(_)),
            };
            assert!(fits, "{status} {code}: {outcome:?}");
        }
        let mut rest = payment("PARTIAL_CANCELED");
        rest["balanceAmount"] = json!(0);
        let all = Won::new(10_000).unwrap();
        let outcome = cancel(&answer(200, rest.to_string()), &call);
        assert!(
            matches!(outcome, CancelOutcome::Found(Finding::Charged { canceled, .. }, _) if canceled == all)
        );
        assert!(matches!(
            cancel(&answer(200, payment("DONE").to_string()), &call),
            CancelOutcome::Unknown(_)
        ));
    }
}
