//! Recording what was learned: which answers count, what a step does beside the machine, and when to look again.

use payment::attempt::{
    Alarm, Attempt, AttemptStatus, Event, Finding, LateSuccess, OperatorWord, Step,
};
use payment::id::PaymentKey;
use payment::money::Won;
use payment::order::OrderStatus;
use payment::reach::Reason;
use payment::time::Millis;

use super::deposits::look_at_due;
use crate::clock::EpochMs;
use crate::store::effects::EffectKind;
use crate::store::{Asked, AttemptId, AttemptRecord, OrderRecord};

/// The first look at an attempt that became unknown (spec section 3 of recovery: about one second).
const FIRST_LOOK: Millis = Millis::from_secs(1);
/// How often a virtual account is looked at without a webhook.
const DEPOSIT_LOOK: Millis = Millis::from_secs(60);
/// How often a cancel that the gateway refused is tried again.
pub const REFUSED_LOOK: Millis = Millis::from_secs(600);

/// Whether an answer is about the payment and the claim that the row has now.
#[must_use]
pub fn is_about(stored: &AttemptRecord, asked: &Asked) -> bool {
    stored.payment_key.as_ref() == Some(&asked.payment_key) && stored.claimed_at == asked.claimed_at
}

/// The attempt of an order to which the gateway's word about a key belongs.
#[must_use]
pub fn owner_of_key(order: &OrderRecord, key: &PaymentKey) -> Option<AttemptId> {
    let same_key: Vec<&AttemptRecord> = order
        .attempts
        .iter()
        .filter(|record| record.payment_key.as_ref() == Some(key))
        .collect();
    let attempts: Vec<Attempt> = same_key.iter().map(|record| record.attempt).collect();
    payment::order::owner_of_key(&attempts).map(|index| same_key[index].id)
}

/// Whether the next look is a hint's and not the asker's own place-holder: it may be newer than what is being recorded.
#[must_use]
pub fn is_hinted(stored: &AttemptRecord, own_lease: Option<EpochMs>) -> bool {
    stored.ask_at.is_some() && stored.ask_at != own_lease
}

/// The policy for a late success of one attempt: it pays only where nothing else of the order paid it or may.
#[must_use]
pub fn late_policy(order: &OrderRecord, id: AttemptId, late: LateSuccess) -> LateSuccess {
    let others = order.attempts.iter().filter(|record| record.id != id);
    let others: Vec<Attempt> = others.map(|record| record.attempt).collect();
    if payment::order::may_revive(&others) {
        late
    } else {
        LateSuccess::Cancel
    }
}

/// The step of a charge for which there is no stock any more: it is given back.
#[must_use]
pub fn without_stock(stored: &Attempt, event: Event) -> Step {
    let status = match stored.status {
        AttemptStatus::Expired => AttemptStatus::Expired,
        _ => AttemptStatus::Failed,
    };
    let ended = Attempt { status, ..*stored };
    ended.apply(event, LateSuccess::Cancel)
}

/// When to ask next about an attempt that has just come into its state.
fn ask_at(next: &Attempt, now: EpochMs) -> Option<EpochMs> {
    match next.status {
        // Its cancel was refused: the money is still there, and an operator was told.
        AttemptStatus::Failed | AttemptStatus::Expired if next.holds_money() => {
            Some(now.plus(REFUSED_LOOK))
        }
        AttemptStatus::Unknown => Some(now.plus(FIRST_LOOK)),
        AttemptStatus::Mischarged | AttemptStatus::CancelRequested => Some(now),
        AttemptStatus::AwaitingDeposit => Some(now.plus(DEPOSIT_LOOK)),
        AttemptStatus::Ready
        | AttemptStatus::Approving
        | AttemptStatus::Approved
        | AttemptStatus::PartiallyCanceled
        | AttemptStatus::Canceled
        | AttemptStatus::Failed
        | AttemptStatus::Expired => None,
    }
}

/// Whether an attempt that ends now, because the gateway shows nothing of it, is looked at further: somebody said that it
/// moved, and a booking may be told before it can be seen.
fn may_still_show(stored: &AttemptRecord, next: &Attempt) -> bool {
    next.status == AttemptStatus::Failed
        && next.reason == Some(Reason::NeverCharged)
        && stored.hint_at.is_some()
}

/// When to look next at an attempt that is stored with a new state; a newer hint stays.
#[must_use]
pub fn next_look(
    stored: &AttemptRecord,
    next: &Attempt,
    now: EpochMs,
    own_lease: Option<EpochMs>,
) -> Option<EpochMs> {
    if next.status == stored.attempt.status {
        return stored.ask_at;
    }
    let hint = stored.ask_at.filter(|at| Some(*at) != own_lease);
    // A look that finds what must go back gives it back itself: nobody else begins that beside it.
    let gives_back = matches!(
        next.status,
        AttemptStatus::Mischarged | AttemptStatus::CancelRequested
    );
    let own = own_lease.filter(|lease| gives_back && *lease > now);
    let further = may_still_show(stored, next).then(|| now.plus(FIRST_LOOK));
    let due = look_at_due(stored, now).filter(|_| next.status == AttemptStatus::AwaitingDeposit);
    [own.or(ask_at(next, now)), hint, further, due]
        .into_iter()
        .flatten()
        .min()
}

/// Since when an attempt that is stored with a new state is unknown.
#[must_use]
pub fn unknown_since(stored: &AttemptRecord, next: &Attempt, now: EpochMs) -> Option<EpochMs> {
    (next.status == AttemptStatus::Unknown).then(|| stored.unknown_since.unwrap_or(now))
}

/// The stable name of an event in the evidence.
#[must_use]
pub const fn event_name(event: Event) -> &'static str {
    match event {
        Event::Claimed => "claimed",
        Event::WindowClosed => "window_closed",
        Event::SendRefused(_) => "not_sent",
        Event::RefusedByGateway => "refused_by_gateway",
        Event::AnswerLost(_) => "answer_lost",
        Event::Interrupted => "interrupted",
        Event::Found(Finding::Charged { .. }, _) => "charged",
        Event::Found(Finding::AwaitingDeposit, _) => "awaiting_deposit",
        Event::Found(Finding::Closed, _) => "account_closed",
        Event::Found(Finding::Declined(_), _) => "declined",
        Event::Found(Finding::Lapsed, _) => "lapsed",
        Event::Found(Finding::Pending { .. }, _) => "pending",
        Event::Found(Finding::NotFound { .. }, _) => "not_found",
        Event::OperatorSaid(OperatorWord::Charged) => "operator_charged",
        Event::OperatorSaid(OperatorWord::NotCharged) => "operator_not_charged",
        Event::CancelAsked(_) => "cancel_asked",
        Event::CloseAsked => "close_asked",
        Event::CancelRefused => "cancel_refused",
        Event::CancelEnded => "cancel_ended",
    }
}

/// The side effects of a step, by kind and what is told of each.
#[must_use]
pub fn effects_of(
    before: &Attempt,
    after: &Attempt,
    step: &Step,
    order: OrderStatus,
) -> Vec<(EffectKind, String)> {
    let mut effects = Vec::new();
    if step.pays(before) {
        effects.push((EffectKind::Paid, String::new()));
    }
    if before.counts_as_paid() && after.status == AttemptStatus::AwaitingDeposit {
        effects.push((EffectKind::Unpaid, String::new()));
    }
    let ends = after.status == AttemptStatus::Canceled && before.status != after.status;
    if ends && after.charged.is_none() {
        // An account that nobody paid into was closed: nothing went back.
        effects.push((EffectKind::Canceled, Won::ZERO.to_string()));
    }
    if after.canceled > before.canceled {
        let kind = match order {
            // Whatever the order is, this charge never paid it.
            _ if after.void => (!after.holds_money()).then_some(EffectKind::Returned),
            OrderStatus::PartiallyCanceled => Some(EffectKind::PartiallyCanceled),
            OrderStatus::Canceled => Some(EffectKind::Canceled),
            OrderStatus::Pending | OrderStatus::Paid | OrderStatus::Expired => None,
        };
        effects.extend(kind.map(|kind| (kind, after.canceled.to_string())));
    }
    if let Some(alarm) = step.alarm.map(Alarm::as_str) {
        effects.push((EffectKind::Alarm, alarm.to_owned()));
    }
    effects
}
