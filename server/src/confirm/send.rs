//! The sends of one claimed attempt: the first, and after a lost answer at most one more.
//!
//! A slot and the circuit's leave are taken at once before each send, or the send is refused; nothing queues. Rule 0: once
//! a send may have reached the gateway, no later refusal or decline ends the attempt.

use std::sync::Arc;
use std::time::Instant;

use payment::attempt::{Event, Finding, Source};
use payment::deadline::Deadline;
use payment::reach::{Lost, NotSent};
use payment::resend::{self, Decision, Policy};
use payment::time::Millis;

use crate::app::{App, Line};
use crate::clock::EpochMs;
use crate::gateway::circuit::Pass;
use crate::gateway::slots::Slot;
use crate::gateway::{ConfirmCall, ConfirmOutcome, Told};
use crate::metrics;
use crate::random;

/// What one send needs beside its call: a slot and the circuit's leave, both taken.
#[must_use]
pub(super) struct Admitted {
    slot: Slot,
    pass: Pass,
}

/// What the sends of an attempt came to.
pub(super) struct Sent {
    /// For the machine.
    pub(super) event: Event,
    /// What the gateway literally said.
    pub(super) told: Told,
    /// When the resend began, if there was one.
    pub(super) resent_at: Option<EpochMs>,
}

/// Takes what the first send needs. The deadline forbids a send, it never cancels one.
pub(super) fn admit(app: &App, line: &Line, deadline: Deadline) -> Result<Admitted, NotSent> {
    if deadline.passed(app.clock.now()) {
        return Err(NotSent::Deadline);
    }
    let pass = line.breaker.try_pass().ok_or(NotSent::Circuit)?;
    let slot = line.slots.try_take_at(app.clock.now(), 0);
    let slot = slot.ok_or(NotSent::Cap)?;
    Ok(Admitted { slot, pass })
}

/// Makes the first send and, where its answer is lost and the budget allows it, the resend. `leaves` is when the shopper
/// has left, by the server's monotonic clock.
pub(super) async fn send(
    app: &App,
    line: &Arc<Line>,
    call: &ConfirmCall,
    admitted: Admitted,
    leaves: Millis,
) -> Sent {
    line.ratio().sent(app.clock.now());
    let first = once(app, line, call, admitted).await;
    let (lost, told) = match first {
        ConfirmOutcome::Lost(lost, told) if resend::may_follow(lost) => (lost, told),
        outcome => {
            let (event, told) = event_of(outcome);
            return Sent {
                event,
                told,
                resent_at: None,
            };
        }
    };
    let mut sent = Sent {
        event: Event::AnswerLost(lost),
        told,
        resent_at: None,
    };
    let decision = match admit_again(app, line, leaves).await {
        Ok(admitted) => {
            sent.resent_at = Some(app.clock.epoch());
            let second = once(app, line, call, admitted).await;
            let decision = if matches!(second, ConfirmOutcome::NotSent(_)) {
                Decision::Connect
            } else {
                Decision::Sent
            };
            after_second(&mut sent, second);
            decision
        }
        Err(refused) => refused,
    };
    metrics::resend(line.gateway.name(), decision);
    tracing::info!(
        gateway = %line.gateway.name(),
        decision = decision.label(),
        lost = ?lost,
        "an answer was lost"
    );
    sent
}

/// Waits the jittered moment and takes what a resend needs, in the contract's order: time, circuit, ratio, slots.
async fn admit_again(app: &App, line: &Line, leaves: Millis) -> Result<Admitted, Decision> {
    let policy = app.config.resend;
    // Without a key that the gateway remembers, a second send could be a second charge.
    if policy == Policy::Off || line.gateway.capabilities().idempotency.is_none() {
        return Err(Decision::Off);
    }
    let delay = resend::delay(random::jitter());
    let left = leaves.less(app.clock.now().plus(delay));
    if left < resend::LEAST_TIME_LEFT {
        return Err(Decision::NoTime);
    }
    tokio::time::sleep(delay.to_duration()).await;
    let pass = line.breaker.try_pass().ok_or(Decision::Circuit)?;
    let needed = policy.slots_needed(line.slots.reserve());
    // The slot first: what the ratio counts in must then be sent.
    let slot = line.slots.try_take_at(app.clock.now(), needed);
    let slot = slot.ok_or(Decision::NoFreeSlots)?;
    if !line.ratio().try_resend(app.clock.now()) {
        return Err(Decision::Ratio);
    }
    Ok(Admitted { slot, pass })
}

/// Rule 0: only the gateway's word that there is money, or an account to pay it into, ends the doubt of the first send.
fn after_second(sent: &mut Sent, second: ConfirmOutcome) {
    let (event, told) = match second {
        ConfirmOutcome::Found(
            finding @ (Finding::Charged { .. } | Finding::AwaitingDeposit),
            told,
        ) => (Event::Found(finding, Source::Answer), told),
        ConfirmOutcome::NotSent(_) => return,
        // An answer about the second send; about the first it settles nothing.
        ConfirmOutcome::Found(_, told) | ConfirmOutcome::Refused(told) => {
            (Event::AnswerLost(Lost::Inconclusive), told)
        }
        // Still being worked on, or lost again: the newer word is the better reason.
        ConfirmOutcome::Lost(again, told) => (Event::AnswerLost(again), told),
    };
    let alarm = sent.told.alarm || told.alarm;
    sent.event = event;
    sent.told = Told { alarm, ..told };
}

/// One exchange under its slot.
async fn once(
    app: &App,
    line: &Line,
    call: &ConfirmCall,
    Admitted { slot, pass }: Admitted,
) -> ConfirmOutcome {
    let begun = Instant::now();
    let outcome = line.gateway.confirm(call).await;
    drop(slot);
    let held = begun.elapsed();
    metrics::slot_hold(line.gateway.name(), held);
    tracing::info!(
        gateway = %line.gateway.name(),
        order = %call.gateway_order_id,
        idempotency_key = %call.idempotency_key,
        outcome = outcome.label(),
        held_ms = held.as_millis(),
        "a confirm was sent"
    );
    pass.end(&outcome);
    match &outcome {
        ConfirmOutcome::Found(..) | ConfirmOutcome::Refused(_) => {
            // It answers: if it had been silent, recovery's next inquiry finds that out and wakes all that waits.
            if line.is_silent() {
                app.recovery.notify_one();
            }
        }
        ConfirmOutcome::NotSent(_) | ConfirmOutcome::Lost(..) => {}
    }
    outcome
}

/// What the only send of an attempt came to, for the machine.
fn event_of(outcome: ConfirmOutcome) -> (Event, Told) {
    match outcome {
        ConfirmOutcome::NotSent(why) => (Event::SendRefused(why), Told::default()),
        ConfirmOutcome::Refused(told) => (Event::RefusedByGateway, told),
        ConfirmOutcome::Found(finding, told) => (Event::Found(finding, Source::Answer), told),
        ConfirmOutcome::Lost(how, told) => (Event::AnswerLost(how), told),
    }
}

#[cfg(test)]
mod tests {
    use payment::money::{Money, Won};
    use payment::reach::Decline;

    use super::*;

    /// After a lost first send, whatever the resend brings short of money leaves the attempt in doubt.
    #[test]
    fn nothing_but_money_ends_the_doubt_of_a_lost_first_send() {
        let told = Told::default;
        let charged = Finding::Charged {
            charged: Money::won(Won::new(1_000).unwrap()),
            canceled: Won::ZERO,
        };
        let table = [
            (
                ConfirmOutcome::Found(charged, told()),
                Event::Found(charged, Source::Answer),
            ),
            (
                ConfirmOutcome::Found(Finding::AwaitingDeposit, told()),
                Event::Found(Finding::AwaitingDeposit, Source::Answer),
            ),
            (
                ConfirmOutcome::Found(Finding::Declined(Decline::CardRefused), told()),
                Event::AnswerLost(Lost::Inconclusive),
            ),
            (
                ConfirmOutcome::Found(Finding::Lapsed, told()),
                Event::AnswerLost(Lost::Inconclusive),
            ),
            (
                ConfirmOutcome::Refused(told()),
                Event::AnswerLost(Lost::Inconclusive),
            ),
            (
                ConfirmOutcome::NotSent(NotSent::Connect),
                Event::AnswerLost(Lost::Reset),
            ),
            (
                ConfirmOutcome::Lost(Lost::InProgress, told()),
                Event::AnswerLost(Lost::InProgress),
            ),
            (
                ConfirmOutcome::Lost(Lost::TimedOut, told()),
                Event::AnswerLost(Lost::TimedOut),
            ),
        ];
        for (second, expected) in table {
            let mut sent = Sent {
                event: Event::AnswerLost(Lost::Reset),
                told: told(),
                resent_at: None,
            };
            after_second(&mut sent, second.clone());
            assert_eq!(sent.event, expected, "{second:?}");
        }
    }
}
