//! Every error answer of Stripe that means something, written down a second time and apart from the adapter's own tables,
//! so that a slip in one of them shows. What is not here must be unknown, and with an alarm unless it is a 5xx.

use payment::reach::Decline::{self, *};

/// What an error answer to a capture must become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    /// A decline once a look-up shows no charge.
    Refused(Decline),
    RefusedWithAlarm(Decline),
    /// Whatever the payment's state says.
    State,
    /// Refused before processing.
    TooMany,
    TooManyWithAlarm,
    InProgress,
    Ask,
    AskWithAlarm,
}

/// What an error answer to a refund must become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refund {
    Unknown,
    UnknownWithAlarm,
    NewKeyWithAlarm,
    Refused,
    RefusedWithAlarm,
}

use Capture::{Ask, InProgress, Refused, RefusedWithAlarm, State, TooMany, TooManyWithAlarm};

#[rustfmt::skip]
pub(crate) const CAPTURE: &[(u16, &str, Capture)] = &[
    (402, "card_declined", Refused(CardRefused)),
    (402, "insufficient_funds", Refused(LimitExceeded)),
    (402, "card_velocity_exceeded", Refused(LimitExceeded)),
    (402, "expired_card", Refused(CardInvalid)),
    (402, "incorrect_cvc", Refused(CardInvalid)),
    (402, "incorrect_number", Refused(CardInvalid)),
    (402, "invalid_number", Refused(CardInvalid)),
    (402, "authentication_required", Refused(AuthenticationFailed)),
    (402, "processing_error", Ask),
    (402, "card_error", Ask),
    (400, "capture_charge_authorization_expired", Refused(SessionExpired)),
    (402, "capture_charge_authorization_expired", Refused(SessionExpired)),
    (400, "charge_expired_for_capture", Refused(SessionExpired)),
    (402, "charge_expired_for_capture", Refused(SessionExpired)),
    (400, "capture_unauthorized_payment", Refused(AuthenticationFailed)),
    (402, "capture_unauthorized_payment", Refused(AuthenticationFailed)),
    (400, "payment_intent_unexpected_state", State),
    (400, "charge_already_captured", State),
    (400, "amount_too_large", RefusedWithAlarm(Other)),
    (400, "amount_too_small", RefusedWithAlarm(Other)),
    (400, "invalid_request_error", RefusedWithAlarm(Other)),
    (400, "parameter_invalid_empty", RefusedWithAlarm(Other)),
    (400, "parameter_invalid_integer", RefusedWithAlarm(Other)),
    (400, "parameter_invalid_string_blank", RefusedWithAlarm(Other)),
    (400, "parameter_missing", RefusedWithAlarm(Other)),
    (400, "parameter_unknown", RefusedWithAlarm(Other)),
    (400, "livemode_mismatch", RefusedWithAlarm(ShopSetup)),
    (400, "testmode_charges_only", RefusedWithAlarm(ShopSetup)),
    (401, "api_key_expired", TooManyWithAlarm),
    (401, "invalid_request_error", TooManyWithAlarm),
    (401, "platform_api_key_expired", TooManyWithAlarm),
    (401, "secret_key_required", TooManyWithAlarm),
    (403, "account_invalid", TooManyWithAlarm),
    (403, "invalid_request_error", TooManyWithAlarm),
    (409, "idempotency_key_in_use", InProgress),
    (429, "invalid_request_error", TooMany),
    (429, "rate_limit", TooMany),
    (429, "lock_timeout", Ask),
];

#[rustfmt::skip]
pub(crate) const REFUND: &[(u16, &str, Refund)] = &[
    (400, "charge_already_refunded", Refund::Refused),
    (400, "charge_disputed", Refund::Refused),
    (400, "charge_not_refundable", Refund::Refused),
    (400, "refund_disputed_payment", Refund::Refused),
    (400, "amount_too_large", Refund::RefusedWithAlarm),
    (400, "amount_too_small", Refund::RefusedWithAlarm),
    (400, "invalid_request_error", Refund::RefusedWithAlarm),
    (400, "parameter_invalid_empty", Refund::RefusedWithAlarm),
    (400, "parameter_invalid_integer", Refund::RefusedWithAlarm),
    (400, "parameter_missing", Refund::RefusedWithAlarm),
    (400, "parameter_unknown", Refund::RefusedWithAlarm),
    (400, "balance_insufficient", Refund::NewKeyWithAlarm),
    (400, "livemode_mismatch", Refund::NewKeyWithAlarm),
    (400, "testmode_charges_only", Refund::NewKeyWithAlarm),
    (401, "api_key_expired", Refund::NewKeyWithAlarm),
    (401, "invalid_request_error", Refund::NewKeyWithAlarm),
    (401, "platform_api_key_expired", Refund::NewKeyWithAlarm),
    (401, "secret_key_required", Refund::NewKeyWithAlarm),
    (403, "account_invalid", Refund::NewKeyWithAlarm),
    (403, "invalid_request_error", Refund::NewKeyWithAlarm),
    (404, "resource_missing", Refund::NewKeyWithAlarm),
    (409, "idempotency_key_in_use", Refund::Unknown),
    (429, "invalid_request_error", Refund::Unknown),
    (429, "lock_timeout", Refund::Unknown),
    (429, "rate_limit", Refund::Unknown),
];

/// Every status that an error may come with, and one that none does.
pub(crate) const STATUSES: [u16; 10] = [200, 400, 401, 402, 403, 404, 409, 429, 500, 503];

/// Every word of either table, and some that are in none.
pub(crate) fn words() -> Vec<&'static str> {
    let listed = CAPTURE.iter().map(|(_, word, _)| *word);
    let listed = listed.chain(REFUND.iter().map(|(_, word, _)| *word));
    let others = [
        "api_error",
        "idempotency_error",
        "a_new_code",
        "url_invalid",
    ];
    let mut words: Vec<_> = listed.chain(others).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// What a table says of a pair, or what it becomes when it is not listed.
pub(crate) fn expected<Row: Copy>(
    table: &[(u16, &str, Row)],
    (status, word): (u16, &str),
    (server_error, unlisted): (Row, Row),
) -> Row {
    let row = table.iter().find(|row| (row.0, row.1) == (status, word));
    let other = if status >= 500 {
        server_error
    } else {
        unlisted
    };
    row.map_or(other, |(_, _, row)| *row)
}
