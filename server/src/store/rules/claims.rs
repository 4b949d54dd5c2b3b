//! Opening and claiming attempts: what an order allows.

use payment::attempt::{Attempt, AttemptStatus};
use payment::id::{GatewayName, GatewayOrderId};
use payment::order::OrderStatus;
use payment::reach::{Reach, Reason};

use crate::clock::EpochMs;
use crate::store::{AttemptRecord, Claim, Claimed, Closed, NewAttemptRow, OrderRecord};

/// Whether the order as a whole takes another attempt.
#[must_use]
pub fn order_closed(order: &OrderRecord, now: EpochMs) -> Option<Closed> {
    match order.status() {
        OrderStatus::Paid | OrderStatus::PartiallyCanceled => Some(Closed::Paid),
        OrderStatus::Canceled => Some(Closed::Canceled),
        OrderStatus::Expired => Some(Closed::Expired),
        OrderStatus::Pending
            if order
                .attempts
                .iter()
                .any(|record| record.attempt.status.is_open() || record.attempt.holds_money()) =>
        {
            Some(Closed::InProgress)
        }
        OrderStatus::Pending if now >= order.expires_at => Some(Closed::Expired),
        OrderStatus::Pending => None,
    }
}

/// Whether a ready attempt is the one that is asked for, however often that is.
#[must_use]
pub fn is_same_window(ready: &AttemptRecord, new: &NewAttemptRow) -> bool {
    let left = new.left.as_ref() == Some(&ready.reference);
    ready.window_until > new.at && ready.gateway == new.gateway && !left
}

/// Whether an attempt still takes the window that its gateway opened for it.
#[must_use]
pub fn takes_window(stored: &AttemptRecord) -> bool {
    stored.attempt.status == AttemptStatus::Ready && stored.window.is_none()
}

/// The gateway order id for a new payment window: the last one while nothing was sent under it, else a new one. It names one
/// gateway, and one payment where that opened it by a call: a shopper who comes back from an older window is never taken for
/// one who comes from a newer one.
#[must_use]
pub fn next_gateway_order_id(order: &OrderRecord, gateway: &GatewayName) -> GatewayOrderId {
    let sent = |id: &GatewayOrderId| {
        order.attempts.iter().any(|record| {
            record.gateway_order_id == *id
                && (record.attempt.reach > Reach::NotSent
                    || record.gateway != *gateway
                    || record.window.is_some())
        })
    };
    let unsent = order
        .attempts
        .last()
        .map(|record| &record.gateway_order_id)
        .filter(|id| !sent(id));
    if let Some(id) = unsent {
        return id.clone();
    }
    let used = |id: &GatewayOrderId| {
        order
            .attempts
            .iter()
            .any(|record| record.gateway_order_id == *id)
    };
    (1..)
        .map(|n| order.id.gateway_order_id(n))
        .find(|id| !used(id))
        .unwrap_or_else(|| order.id.gateway_order_id(1))
}

/// The gateway of a gateway order id: its latest attempt's, else the one a new attempt would get.
#[must_use]
pub fn gateway_of<'a>(order: &'a OrderRecord, claim: &'a Claim) -> &'a GatewayName {
    let same = order
        .attempts
        .iter()
        .rev()
        .find(|record| record.gateway_order_id == claim.gateway_order_id);
    same.map_or(&claim.gateway, |record| &record.gateway)
}

/// The attempt under a claim's gateway order id whose opened window a new attempt for the same payment goes on with.
#[must_use]
pub fn opened_before<'a>(order: &'a OrderRecord, claim: &Claim) -> Option<&'a AttemptRecord> {
    order
        .attempts
        .iter()
        .rev()
        .find(|record| record.gateway_order_id == claim.gateway_order_id && record.window.is_some())
}

/// Whether a claim is about a payment that its gateway never opened.
fn is_unopened(order: &OrderRecord, claim: &Claim) -> bool {
    claim.by_call.contains(gateway_of(order, claim)) && opened_before(order, claim).is_none()
}

/// What a claim finds before it changes anything.
#[derive(Debug)]
pub enum Verdict {
    /// It changes nothing: this is the answer.
    Answer(Claimed),
    /// Claim this ready attempt.
    Take(Box<AttemptRecord>),
    /// Nothing is ready: make an attempt.
    Make,
}

/// What becomes of a claim of an order that is the claimer's.
#[must_use]
pub fn judge(order: &OrderRecord, claim: &Claim) -> Verdict {
    if claim.amount != order.amount {
        return Verdict::Answer(Claimed::AmountMismatch);
    }
    let under_id: Vec<&AttemptRecord> = order
        .attempts
        .iter()
        .filter(|record| record.gateway_order_id == claim.gateway_order_id)
        .collect();
    let same_key = order
        .attempts
        .iter()
        .filter(|record| record.payment_key.as_ref() == Some(&claim.payment_key));
    let repeated = |record: &AttemptRecord| {
        Verdict::Answer(Claimed::Repeated {
            order: Box::new(order.clone()),
            attempt: Box::new(record.clone()),
        })
    };
    let mut again = false;
    for record in same_key.rev() {
        match record.attempt.status {
            // Nothing of it was processed: the same payment may be confirmed by a new attempt, under the same id.
            AttemptStatus::Failed if unprocessed(&record.attempt) => {
                if record.gateway_order_id != claim.gateway_order_id {
                    return Verdict::Answer(Claimed::NewAttemptNeeded);
                }
                again = true;
            }
            AttemptStatus::Canceled if order.status() == OrderStatus::Canceled => {}
            AttemptStatus::Canceled => return Verdict::Answer(Claimed::NewAttemptNeeded),
            _ => return repeated(record),
        }
    }
    if let Some(closed) = order_closed(order, claim.at) {
        return Verdict::Answer(Claimed::Closed(closed));
    }
    let bound = |record: &&&AttemptRecord| {
        record.attempt.reach > Reach::NotSent
            && record.payment_key.as_ref() != Some(&claim.payment_key)
    };
    if under_id.iter().find(bound).is_some() {
        return Verdict::Answer(Claimed::NewAttemptNeeded);
    }
    if is_unopened(order, claim) {
        return Verdict::Answer(Claimed::NewAttemptNeeded);
    }
    if let Some(ready) = under_id
        .iter()
        .find(|record| record.attempt.status == AttemptStatus::Ready)
    {
        return Verdict::Take(Box::new((*ready).clone()));
    }
    match under_id.last() {
        Some(last) if last.attempt.status == AttemptStatus::Expired && !again => {
            Verdict::Answer(Claimed::Closed(Closed::AttemptExpired))
        }
        _ => Verdict::Make,
    }
}

/// Whether the gateway processed nothing of a failed attempt: its key and gateway order id may be used again.
fn unprocessed(attempt: &Attempt) -> bool {
    attempt.reach == Reach::NotSent || attempt.reason == Some(Reason::PgRefused)
}
