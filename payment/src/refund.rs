//! Refunds that people ask for: one intent a wish, its amount reserved before any call, one call at a time for a charge.
//!
//! [`follow`] is a function from an attempt and its refunds to the next ones, by what the gateway said. An owed cancel (a
//! late success, a wrong charge) has no intent: it is the attempt's own business.

use crate::attempt::{Attempt, AttemptStatus, Event, LateSuccess};
use crate::money::Won;

/// How far a refund has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefundStatus {
    /// Its amount is reserved; another one of the same charge is under way.
    Waiting,
    /// It is under way at the gateway: whether it happened is not known yet.
    Asked,
    /// The gateway gave it back.
    Done,
    /// It will not be given back.
    Refused(RefusedFor),
}

/// Why a refund was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusedFor {
    /// The gateway refused it for good.
    Gateway,
    /// Somebody gave money back at the gateway's own desk, and what is left does not cover it.
    ExceedsBalance,
    /// Somebody gave all of it back at the gateway's own desk.
    GivenBackElsewhere,
}

impl RefundStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Asked,
        Self::Done,
        Self::Refused(RefusedFor::Gateway),
        Self::Refused(RefusedFor::ExceedsBalance),
        Self::Refused(RefusedFor::GivenBackElsewhere),
    ];

    /// The stable name; of a refusal its reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Asked => "asked",
            Self::Done => "done",
            Self::Refused(RefusedFor::Gateway) => "refused_by_gateway",
            Self::Refused(RefusedFor::ExceedsBalance) => "exceeds_balance",
            Self::Refused(RefusedFor::GivenBackElsewhere) => "given_back_elsewhere",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether its result is still to come: it holds its amount.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Asked)
    }
}

/// One refund as the machine knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refund {
    /// How far it has come.
    pub status: RefundStatus,
    /// How much.
    pub amount: Won,
    /// Whether all that was left was asked for: then it shrinks with what is left.
    pub whole: bool,
    /// What the gateway must still hold for its call to be executed: sent with the call, fixed with its key.
    pub lock: Won,
    /// How many keys it has had; a call is known by its refund and this.
    pub keys: u32,
}

/// What the gateway said about one refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Nothing: only the balance may tell.
    Nothing,
    /// It is done: the answer to its own call, or it is on the gateway's list.
    Done,
    /// It is not on the gateway's list, which came with the balance.
    NotListed,
    /// It is on the gateway's list as still under way.
    UnderWay,
    /// It is on the gateway's list as aborted: accepted at first, and never to be done.
    Aborted,
    /// The answer to its own call: refused for good.
    Refused,
}

/// What is left of a charge beyond what was given back and what open refunds hold.
#[must_use]
pub fn free_balance(attempt: &Attempt, refunds: &[Refund]) -> Won {
    let open = refunds.iter().filter(|refund| refund.status.is_open());
    open.fold(attempt.balance(), |left, refund| left.less(refund.amount))
}

/// Takes in what was heard: an attempt (with the facts of this word already applied) and its refunds, oldest first, each
/// with what was heard of it. Ends what has an end, refuses what no longer fits, and begins the next.
#[must_use]
pub fn follow(attempt: Attempt, refunds: &[Refund], heard: &[Heard]) -> (Attempt, Vec<Refund>) {
    let balance = attempt.balance();
    let hear = |(refund, heard): (&Refund, &Heard)| hear(*refund, *heard, balance);
    let mut next: Vec<Refund> = refunds.iter().zip(heard).map(hear).collect();
    let mut attempt = attempt;
    if attempt.cancels_on_request() && !next.iter().any(is_asked) {
        attempt = attempt.apply(Event::CancelEnded, LateSuccess::Cancel).next;
    }
    refuse_what_does_not_fit(&mut next, balance);
    begin_next(attempt, next)
}

fn is_asked(refund: &Refund) -> bool {
    refund.status == RefundStatus::Asked
}

/// Begins the oldest refund that waits, if none is under way.
#[must_use]
pub fn begin_next(attempt: Attempt, mut refunds: Vec<Refund>) -> (Attempt, Vec<Refund>) {
    let paid = matches!(
        attempt.status,
        AttemptStatus::Approved | AttemptStatus::PartiallyCanceled
    );
    if !paid || refunds.iter().any(is_asked) {
        return (attempt, refunds);
    }
    let waiting = |refund: &&mut Refund| refund.status == RefundStatus::Waiting;
    let Some(first) = refunds.iter_mut().find(waiting) else {
        return (attempt, refunds);
    };
    first.status = RefundStatus::Asked;
    first.lock = attempt.balance();
    let event = Event::CancelAsked(first.amount);
    let begun = attempt.apply(event, LateSuccess::Cancel).next;
    (begun, refunds)
}

/// One refund after what was heard of it, with what the gateway holds now.
fn hear(refund: Refund, heard: Heard, balance: Won) -> Refund {
    let to = |status| Refund { status, ..refund };
    match (refund.status, heard) {
        // The gateway's list outranks a refusal that was taken for its end.
        (RefundStatus::Asked | RefundStatus::Refused(_), Heard::Done) => to(RefundStatus::Done),
        (RefundStatus::Asked, Heard::Refused | Heard::Aborted) => {
            to(RefundStatus::Refused(RefusedFor::Gateway))
        }
        (RefundStatus::Asked, Heard::NotListed) if balance != refund.lock => {
            // What the gateway holds never grows, so under this lock it can never be executed: another call may.
            refit(refund, balance)
        }
        // Of a gateway without a list the balance must tell; an unclear one is asked again with the same key.
        (RefundStatus::Asked, Heard::Nothing) if refund.lock.less(refund.amount) == balance => {
            to(RefundStatus::Done)
        }
        (RefundStatus::Asked, Heard::Nothing) if balance == Won::ZERO => {
            to(RefundStatus::Refused(RefusedFor::GivenBackElsewhere))
        }
        // Less than this refund was given back meanwhile, so it is not part of that, and under this lock it can never be.
        (RefundStatus::Asked, Heard::Nothing)
            if balance < refund.lock && balance > refund.lock.less(refund.amount) =>
        {
            refit(refund, balance)
        }
        _ => refund,
    }
}

/// A refund that is proven not executed, with a new key under what is left, or refused.
fn refit(refund: Refund, balance: Won) -> Refund {
    let again = Refund {
        lock: balance,
        keys: refund.keys.saturating_add(1),
        ..refund
    };
    if refund.amount <= balance {
        again
    } else {
        fit(again, balance, balance)
    }
}

/// A refund of more than is left for it: a whole one shrinks, any other is refused.
fn fit(refund: Refund, left: Won, balance: Won) -> Refund {
    if refund.whole && left > Won::ZERO {
        return Refund {
            amount: left,
            ..refund
        };
    }
    let why = if balance == Won::ZERO {
        RefusedFor::GivenBackElsewhere
    } else {
        RefusedFor::ExceedsBalance
    };
    Refund {
        status: RefundStatus::Refused(why),
        ..refund
    }
}

fn refuse_what_does_not_fit(refunds: &mut [Refund], balance: Won) {
    let asked = refunds.iter().filter(|refund| is_asked(refund));
    let mut left = asked.fold(balance, |left, refund| left.less(refund.amount));
    for refund in refunds
        .iter_mut()
        .filter(|refund| refund.status == RefundStatus::Waiting)
    {
        if refund.amount > left {
            *refund = fit(*refund, left, balance);
        }
        if refund.status == RefundStatus::Waiting {
            left = left.less(refund.amount);
        }
    }
}
