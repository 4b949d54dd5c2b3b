//! Toss Payments' error codes as data: what each (status, code) pair of a confirm or a cancel proves.
//!
//! The pair counts, never one half of it: a listed code with another status is as unknown as an unlisted code. Sources:
//! Toss's error code tables (docs.tosspayments.com/reference/error-codes).

use payment::reach::Decline;

/// What an error answer to a confirm proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfirmClass {
    /// Not charged, and this payment never will be.
    Declined(Decline),
    /// The same, and an operator must look: our set-up, our bug, or a forged return.
    Fault(Decline),
    /// Refused before it was processed.
    Refused,
    /// The first call with the same idempotency key is still being worked on.
    InProgress,
    /// It may have been charged: only an inquiry tells.
    Ask,
}

/// What an error answer to a cancel proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelClass {
    /// It may have been executed, or still will be: ask, and try again with the same key.
    Ask,
    /// The same; but once this very answer is bound to the key, only a new key can bring another.
    AskUntilReplayed,
    /// Not executed, and the refusal is bound to the key: ask, then a new key.
    NewKey,
    /// The same, once an operator has repaired the set-up.
    Repair,
    /// Refused for good: state, term or issuer forbids it.
    Final,
    /// Refused for good, and it is our own mistake.
    Mistake,
}

/// An HTTP status, what it proves together with each of these codes, and the codes.
type Group<Class> = (u16, Class, &'static [&'static str]);

use ConfirmClass as On;
use Decline as Of;

/// Confirm. Listed by what a shopper can do about it.
pub(super) const CONFIRM: &[Group<ConfirmClass>] = &[
    (
        403,
        On::Declined(Of::CardRefused),
        &[
            "REJECT_CARD_PAYMENT",
            "REJECT_CARD_COMPANY",
            "REJECT_ACCOUNT_PAYMENT",
        ],
    ),
    (400, On::Declined(Of::CardRefused), &["INVALID_REJECT_CARD"]),
    (
        400,
        On::Declined(Of::CardInvalid),
        &[
            "INVALID_STOPPED_CARD",
            "INVALID_CARD_LOST_OR_STOLEN",
            "INVALID_CARD_EXPIRATION",
            "INVALID_CARD_NUMBER",
        ],
    ),
    (
        400,
        On::Declined(Of::LimitExceeded),
        &[
            "EXCEED_MAX_DAILY_PAYMENT_COUNT",
            "EXCEED_MAX_PAYMENT_AMOUNT",
            "EXCEED_MAX_AMOUNT",
            "EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT",
            "EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT",
            "EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT",
            "EXCEEDS_TRANSFER_AMOUNT_MAXIMUM",
        ],
    ),
    (
        403,
        On::Declined(Of::LimitExceeded),
        &["EXCEED_MAX_ONE_DAY_AMOUNT"],
    ),
    (
        403,
        On::Declined(Of::AuthenticationFailed),
        &["EXCEED_MAX_AUTH_COUNT", "INVALID_PASSWORD"],
    ),
    (
        400,
        On::Declined(Of::NotAvailable),
        &[
            "INVALID_CARD_INSTALLMENT_PLAN",
            "NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT",
            "NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN",
            "NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN_BELOW_AMOUNT",
            "EXCEED_MAX_CARD_INSTALLMENT_PLAN",
            "NOT_ALLOWED_POINT_USE",
            "BELOW_MINIMUM_AMOUNT",
            "RESTRICTED_TRANSFER_ACCOUNT",
            "INVALID_ACCOUNT_INFO_RE_REGISTER",
            "NOT_AVAILABLE_PAYMENT",
        ],
    ),
    (
        403,
        On::Declined(Of::NotAvailable),
        &["NOT_AVAILABLE_BANK", "REJECT_TOSSPAY_INVALID_ACCOUNT"],
    ),
    (403, On::Declined(Of::Other), &["FDS_ERROR"]),
    (
        404,
        On::Declined(Of::SessionExpired),
        &["NOT_FOUND_PAYMENT_SESSION"],
    ),
    // A key or order that Toss does not know: a forged return, or keys of another shop.
    (404, On::Fault(Of::Other), &["NOT_FOUND_PAYMENT"]),
    (
        400,
        On::Fault(Of::Other),
        &["INVALID_PAYMENT_KEY", "UNAPPROVED_ORDER_ID"],
    ),
    (
        400,
        On::Fault(Of::ShopSetup),
        &[
            "INVALID_REQUEST",
            "INVALID_API_KEY",
            "INVALID_AUTHORIZE_AUTH",
            "NOT_FOUND_TERMINAL_ID",
            "INVALID_UNREGISTERED_SUBMALL",
            "NOT_REGISTERED_BUSINESS",
            "INVALID_IDEMPOTENCY_KEY",
        ],
    ),
    (
        403,
        On::Fault(Of::ShopSetup),
        &["FORBIDDEN_REQUEST", "INCORRECT_BASIC_AUTH_FORMAT"],
    ),
    (401, On::Fault(Of::ShopSetup), &["UNAUTHORIZED_KEY"]),
    (403, On::Refused, &["FORBIDDEN_CONSECUTIVE_REQUEST"]),
    (409, On::InProgress, &["IDEMPOTENT_REQUEST_PROCESSING"]),
    (
        400,
        On::Ask,
        &[
            "ALREADY_PROCESSED_PAYMENT",
            "ALREADY_COMPLETED_PAYMENT",
            "DUPLICATED_ORDER_ID",
            "DUPLICATED_REQUEST",
            "CARD_PROCESSING_ERROR",
        ],
    ),
    // Passing trouble between Toss and the issuer, although the status is 400.
    (400, On::Ask, &["PROVIDER_ERROR"]),
    // Failed midway, although the text may say "not completed".
    (
        500,
        On::Ask,
        &[
            "FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING",
            "FAILED_INTERNAL_SYSTEM_PROCESSING",
            "FAILED_DB_PROCESSING",
            "FAILED_METHOD_HANDLING",
            "UNKNOWN_PAYMENT_ERROR",
            "UNKNOWN_ERROR",
            "COMMON_ERROR",
        ],
    ),
];

/// Cancel.
pub(super) const CANCEL: &[Group<CancelClass>] = &[
    (409, CancelClass::Ask, &["IDEMPOTENT_REQUEST_PROCESSING"]),
    (
        500,
        CancelClass::AskUntilReplayed,
        &[
            "FAILED_REFUND_PROCESS",
            "FAILED_PARTIAL_REFUND",
            "FAILED_METHOD_HANDLING_CANCEL",
            "COMMON_ERROR",
            "FAILED_INTERNAL_SYSTEM_PROCESSING",
            "FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING",
        ],
    ),
    (
        400,
        CancelClass::NewKey,
        &[
            "PROVIDER_ERROR",
            "ALREADY_REFUND_PAYMENT",
            "ALREADY_REFUNDING_PAYMENT",
            "NOT_MATCHES_REFUNDABLE_AMOUNT",
        ],
    ),
    (
        403,
        CancelClass::NewKey,
        &[
            "FORBIDDEN_CONSECUTIVE_REQUEST",
            "NOT_CANCELABLE_AMOUNT",
            "NOT_AVAILABLE_BANK",
        ],
    ),
    // An earlier try may have worked; the inquiry before the new key shows it.
    (400, CancelClass::NewKey, &["ALREADY_CANCELED_PAYMENT"]),
    (401, CancelClass::Repair, &["UNAUTHORIZED_KEY"]),
    (
        400,
        CancelClass::Repair,
        &["INVALID_API_KEY", "INVALID_IDEMPOTENCY_KEY"],
    ),
    (
        403,
        CancelClass::Repair,
        &["INCORRECT_BASIC_AUTH_FORMAT", "FORBIDDEN_REQUEST"],
    ),
    (404, CancelClass::Repair, &["NOT_FOUND_PAYMENT"]),
    (
        403,
        CancelClass::Final,
        &[
            "NOT_CANCELABLE_PAYMENT",
            "NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER",
            "EXCEED_MAX_REFUND_DUE",
            "EXCEED_CANCEL_LIMIT",
            "NOT_ALLOWED_PARTIAL_REFUND",
            "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT",
        ],
    ),
    (
        400,
        CancelClass::Final,
        &[
            "REFUND_REJECTED",
            "EXCEED_CANCEL_AMOUNT_DISCOUNT_AMOUNT",
            "FORBIDDEN_BANK_REFUND_REQUEST",
            "INVALID_REFUND_ACCOUNT_INFO",
            "INVALID_REFUND_ACCOUNT_NUMBER",
            "INVALID_BANK",
        ],
    ),
    (
        400,
        CancelClass::Mistake,
        &["INVALID_REQUEST", "INVALID_REFUND_AMOUNT"],
    ),
];

/// The class of a pair, if it is listed.
pub(super) fn class_of<Class: Copy>(
    table: &[Group<Class>],
    status: u16,
    code: &str,
) -> Option<Class> {
    table
        .iter()
        .find(|(listed, _, codes)| *listed == status && codes.contains(&code))
        .map(|(_, class, _)| *class)
}

/// What a shopper can do about the failure that an aborted payment names; the payment's end is certain without it.
pub(super) fn decline_of(code: &str) -> Decline {
    let group = CONFIRM.iter().find(|(_, _, codes)| codes.contains(&code));
    match group {
        Some((_, On::Declined(decline) | On::Fault(decline), _)) => *decline,
        Some((_, On::Refused | On::InProgress | On::Ask, _)) | None => Decline::Other,
    }
}

#[cfg(test)]
#[path = "../../../../tests/toss/rows.rs"]
mod rows;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The pairs of a table.
    fn pairs<Class>(table: &[Group<Class>]) -> BTreeSet<(u16, &'static str)> {
        let groups = table.iter();
        groups
            .flat_map(|(status, _, codes)| codes.iter().map(move |code| (*status, *code)))
            .collect()
    }

    /// The rows that the tests over TCP try, but those of 429: no code of it is documented, so the table lists none.
    fn tested<Class>(rows: &[(u16, &'static str, Class)]) -> BTreeSet<(u16, &'static str)> {
        let listed = rows.iter().filter(|(status, ..)| *status != 429);
        listed.map(|(status, code, _)| (*status, *code)).collect()
    }

    #[test]
    fn the_rows_that_are_tested_over_tcp_are_the_rows_of_the_tables() {
        assert_eq!(pairs(CONFIRM), tested(rows::CONFIRM));
        assert_eq!(pairs(CANCEL), tested(rows::CANCEL));
        assert_eq!((pairs(CONFIRM).len(), pairs(CANCEL).len()), (60, 35));
    }

    #[test]
    fn no_code_is_listed_twice_in_a_table() {
        fn check<Class>(table: &[Group<Class>], rows: usize) {
            let mut codes: Vec<_> = table.iter().flat_map(|(_, _, codes)| *codes).collect();
            codes.sort_unstable();
            codes.dedup();
            let listed: usize = table.iter().map(|(_, _, codes)| codes.len()).sum();
            assert_eq!((codes.len(), listed), (rows, rows));
        }
        // The tests of the outcomes list each row once more; a row added here must be added there.
        check(CONFIRM, 60);
        check(CANCEL, 35);
    }

    #[test]
    fn no_server_error_is_ever_a_definite_word() {
        for (status, class, codes) in CONFIRM {
            assert!(*status < 500 || *class == On::Ask, "{codes:?}");
        }
        for (status, class, codes) in CANCEL {
            assert!(
                *status < 500 || *class == CancelClass::AskUntilReplayed,
                "{codes:?}"
            );
        }
    }

    #[test]
    fn a_listed_code_with_another_status_is_not_listed() {
        assert!(class_of(CONFIRM, 403, "REJECT_CARD_PAYMENT").is_some());
        assert!(class_of(CONFIRM, 400, "REJECT_CARD_PAYMENT").is_none());
        assert!(class_of(CONFIRM, 500, "REJECT_CARD_PAYMENT").is_none());
    }
}
