//! Stripe's error codes: which exist, with their HTTP status and type, and the JSON around them.

use serde_json::{Value, json};

use crate::engine::Answer;

const CARD: &str = "card_error";
const INVALID: &str = "invalid_request_error";
const KEYS: &str = "idempotency_error";

/// Codes with the HTTP status and the type that each comes with. The reference gives statuses by kinds of errors and not by
/// code: those of the capture's own codes are what was seen or follows from their type.
const CODES: &[(&str, u16, &str)] = &[
    ("account_invalid", 403, INVALID),
    ("amount_too_large", 400, INVALID),
    ("amount_too_small", 400, INVALID),
    ("api_key_expired", 401, INVALID),
    ("authentication_required", 402, CARD),
    ("balance_insufficient", 400, INVALID),
    ("capture_charge_authorization_expired", 400, INVALID),
    ("capture_unauthorized_payment", 400, INVALID),
    ("card_declined", 402, CARD),
    ("charge_already_captured", 400, INVALID),
    ("charge_already_refunded", 400, INVALID),
    ("charge_disputed", 400, INVALID),
    ("charge_expired_for_capture", 400, INVALID),
    ("charge_not_refundable", 400, INVALID),
    ("expired_card", 402, CARD),
    ("idempotency_key_in_use", 409, KEYS),
    ("incorrect_cvc", 402, CARD),
    ("insufficient_funds", 402, CARD),
    ("livemode_mismatch", 400, INVALID),
    ("lock_timeout", 429, INVALID),
    ("parameter_invalid_empty", 400, INVALID),
    ("parameter_invalid_integer", 400, INVALID),
    ("parameter_missing", 400, INVALID),
    ("parameter_unknown", 400, INVALID),
    ("payment_intent_unexpected_state", 400, INVALID),
    ("processing_error", 402, CARD),
    ("rate_limit", 429, INVALID),
    ("refund_disputed_payment", 400, INVALID),
    ("resource_missing", 404, INVALID),
    ("secret_key_required", 401, INVALID),
    ("testmode_charges_only", 400, INVALID),
    ("url_invalid", 400, INVALID),
];

/// Whether Stripe has such a code.
pub(crate) fn is_listed(code: &str) -> bool {
    CODES.iter().any(|(listed, ..)| *listed == code)
}

/// Whether a capture that is refused with it leaves the payment without an authorisation.
pub(super) fn ends_the_authorisation(code: &str) -> bool {
    CODES
        .iter()
        .any(|(listed, _, kind)| *listed == code && *kind == CARD)
}

/// The answer that a code stands for.
pub(crate) fn error(code: &str) -> Answer {
    let status = CODES.iter().find(|(listed, ..)| *listed == code);
    with_status(status.map_or(400, |(_, status, _)| *status), code)
}

/// The same with another status.
pub(crate) fn with_status(status: u16, code: &str) -> Answer {
    let kind = match CODES.iter().find(|(listed, ..)| *listed == code) {
        Some((.., kind)) => kind,
        None if status >= 500 => "api_error",
        None => INVALID,
    };
    let mut told = json!({"type": kind, "code": code, "message": format!("refused with {code}"),
        "doc_url": format!("https://stripe.com/docs/error-codes/{}", code.replace('_', "-"))});
    if kind == CARD {
        told["decline_code"] = json!("generic_decline");
    }
    Answer::json(status, json!({"error": told}).to_string())
}

/// A refusal of a key that was first used for another request.
pub(crate) fn other_request() -> Answer {
    let message = "Keys for idempotent requests can only be used with the same parameters they were first used with.";
    Answer::json(
        400,
        json!({"error": {"type": KEYS, "message": message}}).to_string(),
    )
}

/// A refusal of a key of the merchant.
pub(super) fn unauthorized() -> Answer {
    let told = json!({"error": {"type": INVALID, "message": "Invalid API Key provided"}});
    Answer::json(401, told.to_string())
}

/// A refusal that has a type and a message, and no code.
pub(super) fn plain(param: &str, message: &str) -> Answer {
    let told = json!({"error": {"type": INVALID, "param": param, "message": message}});
    Answer::json(400, told.to_string())
}

/// A refusal of one parameter. Nothing was executed, so no key is bound to it.
pub(super) fn parameter(code: &str, param: &str) -> Answer {
    let mut told: Value =
        serde_json::from_slice(&error(code).body).unwrap_or_else(|_| json!({"error": {}}));
    told["error"]["param"] = json!(param);
    Answer {
        unbound: true,
        ..Answer::json(400, told.to_string())
    }
}

/// What stands in the body of an error beside the code: the payment as it is.
pub(super) fn about(code: &str, intent: &Value) -> Answer {
    let plain = error(code);
    let mut told: Value =
        serde_json::from_slice(&plain.body).unwrap_or_else(|_| json!({"error": {}}));
    told["error"]["payment_intent"] = intent.clone();
    Answer::json(plain.status, told.to_string())
}
