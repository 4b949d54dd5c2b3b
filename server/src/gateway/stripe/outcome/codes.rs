//! Stripe's error codes as data: what each pair of a status and a word of a capture or a refund proves.
//!
//! The word is the error's code, or for want of one its type. The pair counts, never one half of it. Sources: Stripe's lists
//! of error codes and of HTTP statuses (docs.stripe.com/error-codes, docs.stripe.com/api/errors). They give statuses by kinds
//! of errors and not by code; where a code could come with either of two, both are listed. What Stripe answers with a 5xx is
//! no word at all, and is not in any table.

use payment::reach::Decline;

/// What an error answer to a capture proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureClass {
    /// This call charged nothing; unless a look-up shows a charge all the same, it is a decline.
    Refused(Decline),
    /// The same, and an operator must look: our set-up or our bug.
    Fault(Decline),
    /// The payment was not in a state to be captured: it is charged already, or over, or was never authorised.
    State,
    /// Refused before it was processed.
    TooMany,
    /// The same, by our set-up's fault.
    SetUp,
    /// The first call with the same idempotency key is still being worked on.
    InProgress,
    /// It may have been charged: only an inquiry tells.
    Ask,
}

/// What an error answer to a refund proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefundClass {
    /// The first call with the same key is still being worked on, or there were too many: the same key again.
    Again,
    /// Not executed: ask, and try again with a new key once an operator has repaired the set-up.
    Repair,
    /// Refused for good, unless a look-up shows another balance than was believed.
    Final,
    /// Refused for good, and it is our own mistake.
    Mistake,
}

/// HTTP statuses, what each proves together with each of these words, and the words.
type Group<Class> = (&'static [u16], Class, &'static [&'static str]);

use CaptureClass as On;
use Decline as Of;

/// Capture.
pub(super) const CAPTURE: &[Group<CaptureClass>] = &[
    (&[402], On::Refused(Of::CardRefused), &["card_declined"]),
    (
        &[402],
        On::Refused(Of::LimitExceeded),
        &["insufficient_funds", "card_velocity_exceeded"],
    ),
    (
        &[402],
        On::Refused(Of::CardInvalid),
        &[
            "expired_card",
            "incorrect_cvc",
            "incorrect_number",
            "invalid_number",
        ],
    ),
    (
        &[402],
        On::Refused(Of::AuthenticationFailed),
        &["authentication_required"],
    ),
    // Card networks: it may have come through after all.
    (&[402], On::Ask, &["processing_error", "card_error"]),
    (
        &[400, 402],
        On::Refused(Of::SessionExpired),
        &[
            "capture_charge_authorization_expired",
            "charge_expired_for_capture",
        ],
    ),
    (
        &[400, 402],
        On::Refused(Of::AuthenticationFailed),
        &["capture_unauthorized_payment"],
    ),
    (
        &[400],
        On::State,
        &["payment_intent_unexpected_state", "charge_already_captured"],
    ),
    (
        &[400],
        On::Fault(Of::Other),
        &[
            "amount_too_large",
            "amount_too_small",
            "invalid_request_error",
            "parameter_invalid_empty",
            "parameter_invalid_integer",
            "parameter_invalid_string_blank",
            "parameter_missing",
            "parameter_unknown",
        ],
    ),
    (
        &[400],
        On::Fault(Of::ShopSetup),
        &["livemode_mismatch", "testmode_charges_only"],
    ),
    (
        &[401],
        On::SetUp,
        &[
            "api_key_expired",
            "invalid_request_error",
            "platform_api_key_expired",
            "secret_key_required",
        ],
    ),
    (
        &[403],
        On::SetUp,
        &["account_invalid", "invalid_request_error"],
    ),
    (&[409], On::InProgress, &["idempotency_key_in_use"]),
    (
        &[429],
        On::TooMany,
        &["invalid_request_error", "rate_limit"],
    ),
    // Somebody else works on the payment at this moment: an earlier send of ours, perhaps.
    (&[429], On::Ask, &["lock_timeout"]),
];

/// Refund.
pub(super) const REFUND: &[Group<RefundClass>] = &[
    (
        &[400],
        RefundClass::Final,
        &[
            "charge_already_refunded",
            "charge_disputed",
            "charge_not_refundable",
            "refund_disputed_payment",
        ],
    ),
    (
        &[400],
        RefundClass::Mistake,
        &[
            "amount_too_large",
            "amount_too_small",
            // More than is left; or nothing was ever charged.
            "invalid_request_error",
            "parameter_invalid_empty",
            "parameter_invalid_integer",
            "parameter_missing",
            "parameter_unknown",
        ],
    ),
    (
        &[400],
        RefundClass::Repair,
        &[
            "balance_insufficient",
            "livemode_mismatch",
            "testmode_charges_only",
        ],
    ),
    (
        &[401],
        RefundClass::Repair,
        &[
            "api_key_expired",
            "invalid_request_error",
            "platform_api_key_expired",
            "secret_key_required",
        ],
    ),
    (
        &[403],
        RefundClass::Repair,
        &["account_invalid", "invalid_request_error"],
    ),
    (&[404], RefundClass::Repair, &["resource_missing"]),
    (&[409], RefundClass::Again, &["idempotency_key_in_use"]),
    (
        &[429],
        RefundClass::Again,
        &["invalid_request_error", "lock_timeout", "rate_limit"],
    ),
];

/// The class of a pair, if it is listed.
pub(super) fn class_of<Class: Copy>(
    table: &[Group<Class>],
    status: u16,
    word: &str,
) -> Option<Class> {
    table
        .iter()
        .find(|(statuses, _, words)| statuses.contains(&status) && words.contains(&word))
        .map(|(_, class, _)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pair_is_listed_twice_in_a_table() {
        fn check<Class>(table: &[Group<Class>], pairs: usize) {
            let mut listed = Vec::new();
            for (statuses, _, words) in table {
                for status in *statuses {
                    listed.extend(words.iter().map(|word| (*status, *word)));
                }
            }
            let all = listed.len();
            listed.sort_unstable();
            listed.dedup();
            assert_eq!((listed.len(), all), (all, pairs));
        }
        // The tests over the wire list each pair once more; one that is added here must be added there.
        check(CAPTURE, 38);
        check(REFUND, 25);
    }

    #[test]
    fn no_server_error_and_no_conflict_is_ever_a_definite_word() {
        for (statuses, class, words) in CAPTURE {
            assert!(statuses.iter().all(|status| *status < 500), "{words:?}");
            assert!(
                !statuses.contains(&409) || *class == On::InProgress,
                "{words:?}"
            );
        }
        for (statuses, class, words) in REFUND {
            assert!(statuses.iter().all(|status| *status < 500), "{words:?}");
            assert!(
                !statuses.contains(&409) || *class == RefundClass::Again,
                "{words:?}"
            );
        }
    }

    #[test]
    fn a_listed_word_with_another_status_is_not_listed() {
        assert!(class_of(CAPTURE, 402, "card_declined").is_some());
        assert!(class_of(CAPTURE, 400, "card_declined").is_none());
        assert!(class_of(REFUND, 500, "charge_already_refunded").is_none());
    }
}
