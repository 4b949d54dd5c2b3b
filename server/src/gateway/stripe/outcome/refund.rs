//! What the answers to a refund mean.

use payment::attempt::Finding;
use payment::money::{Money, Won};
use payment::reach::Lost;

use super::codes::{self, RefundClass};
use super::{Named, Read, currency, not_connected, read};
use crate::gateway::exchange::{Heard, alarming, told, unheard, word};
use crate::gateway::stripe::REASON;
use crate::gateway::stripe::wire::{Charge, Refund};
use crate::gateway::{CancelCall, CancelOutcome, Told};

/// What a refund's exchange means.
pub(in crate::gateway::stripe) fn refunded(
    named: Named<'_>,
    call: &CancelCall,
    heard: Heard,
) -> CancelOutcome {
    let answer = match heard {
        // Nothing was sent, so the same key serves again.
        Heard::NotConnected => return CancelOutcome::Unknown(not_connected()),
        Heard::Nothing(lost) => return CancelOutcome::Unknown(unheard(lost)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    // An answer without a decision that is bound to the key would come for ever.
    let again = |told: Told| {
        if answer.replayed {
            // Whether it went back is for the look-up to say that comes before the new key.
            CancelOutcome::RetryWithNewKey(alarming(told))
        } else {
            CancelOutcome::Unknown(told)
        }
    };
    let error = match read(&answer) {
        Read::Good(body) => return refunded_payment(named, call, &body),
        Read::Nothing(_, told) if status == 429 || status >= 500 => return again(told),
        Read::Nothing(_, told) => return CancelOutcome::Unknown(told),
        Read::Error(error) => error,
    };
    let quiet = told(status, &error.told());
    match codes::class_of(codes::REFUND, status, &error.word) {
        Some(RefundClass::Again) => again(quiet),
        Some(RefundClass::Repair) => CancelOutcome::RetryWithNewKey(alarming(quiet)),
        Some(RefundClass::Final) => CancelOutcome::Refused(quiet),
        Some(RefundClass::Mistake) => CancelOutcome::Refused(alarming(quiet)),
        None if status >= 500 => again(quiet),
        None => CancelOutcome::Unknown(alarming(quiet)),
    }
}

fn refunded_payment(named: Named<'_>, call: &CancelCall, body: &[u8]) -> CancelOutcome {
    let contradicts = |what| CancelOutcome::Unknown(alarming(told(200, what)));
    let Some(refund) = Refund::parse(body) else {
        return contradicts(word(Lost::Unreadable));
    };
    match refund.status.as_deref() {
        Some("succeeded" | "pending") => {}
        // It did not go back, and will not by this one.
        Some("failed" | "canceled") => {
            return CancelOutcome::RetryWithNewKey(alarming(told(200, "refund_failed")));
        }
        _ => return contradicts("refund_in_doubt"),
    }
    let Some(charge) = refund.charge() else {
        return contradicts("refund_without_charge");
    };
    if charge.payment_intent.as_deref() != Some(named.intent.as_str()) {
        return contradicts("another_payment");
    }
    let wanted = call.amount.or(call.balance);
    if wanted.is_some() && refund.won() != wanted {
        return contradicts("refund_of_another_amount");
    }
    let (Some(total), Some(canceled)) = (charge.won(), charge.refunded()) else {
        return contradicts("charge_without_amounts");
    };
    let left = match (call.amount, call.balance) {
        (None, _) => Some(Won::ZERO),
        (Some(amount), Some(balance)) => Some(balance.less(amount)),
        (Some(_), None) => None,
    };
    if canceled > total || left.is_some_and(|left| left != total.less(canceled)) {
        return contradicts("refund_beside_another_sum");
    }
    let finding = Finding::Charged {
        charged: Money {
            amount: total,
            currency: currency(charge.currency.as_deref()),
        },
        canceled,
    };
    let told = Told {
        given_back: reasons(charge, canceled),
        ..told(200, refund.status.as_deref().unwrap_or_default())
    };
    CancelOutcome::Found(finding, told)
}

/// The reasons of all refunds, as we gave them. A list that is cut, or does not add up to what was given back, is none.
pub(super) fn reasons(charge: &Charge, canceled: Won) -> Option<Vec<String>> {
    let refunds = charge.refunds.as_ref().filter(|list| !list.has_more)?;
    let counts = |refund: &&Refund| {
        let status = refund.status.as_deref();
        matches!(status, Some("succeeded" | "pending" | "requires_action"))
    };
    // The newest is first.
    let refunds = || refunds.data.iter().rev().filter(counts);
    let sum = refunds().try_fold(Won::ZERO, |sum, refund| sum.plus(refund.won()?))?;
    // One without a reason was made at Stripe's own desk.
    let reason = |refund: &Refund| refund.metadata.get(REASON).cloned().unwrap_or_default();
    (sum == canceled).then(|| refunds().map(reason).collect())
}
