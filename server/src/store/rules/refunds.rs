//! What becomes of a refund that people ask for: who may, how much, and what each word of the gateway does to it.

use payment::attempt::{AttemptStatus, Event, Finding};
use payment::money::Won;
use payment::order::OrderStatus;
use payment::refund::{Heard, Refund, RefundStatus, free_balance};

use crate::clock::EpochMs;
use crate::gateway::refund_account::RefundAccount;
use crate::store::{
    Asker, AttemptRecord, Closed, Evidence, NewRefund, OrderRecord, RefundAsked, RefundCall,
    RefundRow,
};

/// Whether somebody may ask for a refund of an order at all.
#[must_use]
pub fn may_ask(order: &OrderRecord, asker: &Asker) -> bool {
    match asker {
        Asker::Operator => true,
        Asker::Shopper(owner, _) => order.owner == *owner,
    }
}

/// The attempt whose charge pays the order.
#[must_use]
pub fn paying(order: &OrderRecord) -> Option<&AttemptRecord> {
    let mut attempts = order.attempts.iter();
    attempts.find(|record| record.attempt.counts_as_paid())
}

/// Why an order that no charge pays has nothing to give back.
#[must_use]
pub fn nothing_to_give_back(order: &OrderRecord) -> RefundAsked {
    let moving = order
        .attempts
        .iter()
        .any(|record| record.attempt.status.is_open() || record.attempt.holds_money());
    if moving {
        return RefundAsked::Closed(Closed::InProgress);
    }
    match order.status() {
        OrderStatus::Canceled => RefundAsked::Closed(Closed::Canceled),
        OrderStatus::Expired => RefundAsked::Closed(Closed::Expired),
        OrderStatus::Pending | OrderStatus::Paid | OrderStatus::PartiallyCanceled => {
            RefundAsked::ExceedsBalance
        }
    }
}

/// How much a wish may have of what is neither given back nor held by another one.
///
/// # Errors
/// The answer to a wish that may have nothing.
pub fn reserve(
    paying: &AttemptRecord,
    refunds: &[RefundRow],
    new: &NewRefund,
) -> Result<Won, RefundAsked> {
    let known: Vec<Refund> = refunds.iter().map(|row| row.refund).collect();
    let free = free_balance(&paying.attempt, &known);
    if let Asker::Shopper(_, cut_off) = &new.asker {
        let confirmed = paying.claimed_at.unwrap_or(EpochMs(0));
        if new.at.since(confirmed) >= *cut_off {
            return Err(RefundAsked::TooLate);
        }
    }
    // Only whoever runs the shop names an account: a shopper's cookie must not be enough to send the money elsewhere.
    let named = new.account.is_some() && new.asker == Asker::Operator;
    match (paying.attempt.deposit, named) {
        (true, false) => return Err(RefundAsked::NeedsAccount),
        (false, true) => return Err(RefundAsked::TakesNoAccount),
        (true, true) | (false, false) => {}
    }
    let amount = new.amount.unwrap_or(free);
    if amount == Won::ZERO || amount > free {
        return Err(RefundAsked::ExceedsBalance);
    }
    if amount < free && matches!(new.asker, Asker::Shopper(..)) {
        return Err(RefundAsked::OnlyWhole);
    }
    Ok(amount)
}

/// Whether a wish is the one that came under the same key before.
#[must_use]
pub fn is_same_wish(before: &RefundRow, new: &NewRefund) -> bool {
    let mark = new.account.as_ref().map(RefundAccount::mark);
    // The account itself is gone when the refund has an end.
    let same_account = before.account.is_none() || before.account == new.account;
    before.asked == new.amount
        && before.reason == new.reason
        && before.account_mark == mark
        && same_account
}

/// Whether refunds may have to follow an event: the attempt had a charge that people may ask for.
#[must_use]
pub const fn concerns_refunds(stored: &AttemptRecord, event: Event) -> bool {
    let charged = matches!(
        stored.attempt.status,
        AttemptStatus::Approved
            | AttemptStatus::PartiallyCanceled
            | AttemptStatus::CancelRequested
            | AttemptStatus::Canceled
    );
    let word = matches!(
        event,
        Event::Found(Finding::Charged { .. } | Finding::Closed, _) | Event::CancelRefused
    );
    charged && word
}

/// Whether a word answers the call that is under way now.
#[must_use]
pub fn answers_present_call(refunds: &[RefundRow], evidence: &Evidence) -> bool {
    let Some(call) = evidence.refunds.answers else {
        return false;
    };
    refunds
        .iter()
        .any(|row| row.call() == call && row.refund.status == RefundStatus::Asked)
}

/// What a word says of one refund.
#[must_use]
pub fn heard(row: &RefundRow, event: Event, evidence: &Evidence) -> Heard {
    let word = &evidence.refunds;
    let answered = word.answers.is_some_and(|call| call.refund == row.id);
    if event == Event::CancelRefused {
        return if answered {
            Heard::Refused
        } else {
            Heard::Nothing
        };
    }
    // Whichever of its keys an answer was for, done is done.
    if answered {
        return Heard::Done;
    }
    let is_in = |reasons: &[String]| reasons.iter().any(|reason| row.is_listed_as(reason));
    match &word.listed {
        Some(reasons) if is_in(reasons) => Heard::Done,
        _ if is_in(&word.running) => Heard::UnderWay,
        _ if is_in(&word.aborted) => Heard::Aborted,
        Some(_) => Heard::NotListed,
        None => Heard::Nothing,
    }
}

/// Whether a refund ended because its cancel was accepted and then aborted: nobody was told so as an answer.
#[must_use]
pub fn was_aborted(before: &[Refund], after: &[Refund], heard: &[Heard]) -> bool {
    let moved = before.iter().zip(after).map(|(was, is)| was != is);
    moved
        .zip(heard)
        .any(|(moved, heard)| moved && *heard == Heard::Aborted)
}

/// Whether a refund that waited has begun.
#[must_use]
pub fn has_begun(before: &[Refund], after: &[Refund]) -> bool {
    let is_new = |(was, is): (&Refund, &Refund)| {
        was.status == RefundStatus::Waiting && is.status == RefundStatus::Asked
    };
    before.iter().zip(after).any(is_new)
}

/// The rows that changed, as they are now; those that came to their end first, since only one may be under way.
#[must_use]
pub fn changed(rows: &[RefundRow], next: &[Refund], told: &str, at: EpochMs) -> Vec<RefundRow> {
    let (mut now, others): (Vec<_>, Vec<_>) = rows
        .iter()
        .zip(next)
        .filter(|(row, next)| row.refund != **next)
        .map(|(row, next)| after(row, *next, told, at))
        .partition(|row| !row.refund.status.is_open());
    now.extend(others);
    now
}

fn after(row: &RefundRow, refund: Refund, told: &str, at: EpochMs) -> RefundRow {
    let is_end = !refund.status.is_open();
    RefundRow {
        refund,
        told: if is_end {
            told.to_owned()
        } else {
            row.told.clone()
        },
        ended_at: is_end.then_some(at),
        account: row.account.clone().filter(|_| !is_end),
        key_at: if refund.keys == row.refund.keys {
            row.key_at
        } else {
            at
        },
        ..row.clone()
    }
}

/// A refund with a new key under what is left, if `call` is its present one.
#[must_use]
pub fn renewed(
    row: RefundRow,
    call: RefundCall,
    balance: Won,
    (told, at): (&str, EpochMs),
) -> Option<RefundRow> {
    (row.call() == call && row.refund.status == RefundStatus::Asked).then(|| RefundRow {
        refund: Refund {
            keys: call.keys.saturating_add(1),
            lock: balance,
            ..row.refund
        },
        told: told.to_owned(),
        key_at: at,
        ..row
    })
}
