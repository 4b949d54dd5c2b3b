//! One call's way through the gateway, from its arrival to its answer.

use std::ops::ControlFlow;

use super::plan::{Plan, Throws};
use super::{Answer, Call, CallId, Engine, Gateway, Next, Operation, books, stripe, wires};
use crate::idempotency::{Identity, Known};
use crate::ledger::{CallCounts, PerGateway, PerOperation};
use crate::scenario::{BodyFault, Switch, When};

/// How far a call has come.
#[derive(Debug)]
pub(super) enum Stage {
    Arrived,
    Working {
        until_ms: u64,
        plan: Plan,
    },
    Booked {
        until_ms: u64,
        plan: Plan,
        answer: Answer,
    },
}

/// One call that is not answered yet.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) call: Call,
    pub(super) operation: Operation,
    pub(super) throws: Throws,
    pub(super) stage: Stage,
    /// The key whose place this call holds.
    pub(super) identity: Option<Identity>,
    /// The payment that cannot expire while this call lasts.
    pub(super) confirming: Option<String>,
    /// When the platform in front gives up on it.
    pub(super) gives_up_ms: Option<u64>,
    /// The platform answered in its place; the work behind goes on.
    pub(super) answered: bool,
    pub(super) in_flight: bool,
    pub(super) working: bool,
}

impl Engine {
    pub(super) fn drive(&mut self, id: CallId, mut work: Work, now_ms: u64) -> Next {
        let mut next = self.advance(&mut work, now_ms);
        match next {
            Next::Wait { until_ms } => {
                next = self.patient(id, &mut work, until_ms, now_ms);
                self.work.insert(id, work);
            }
            Next::Hold => {
                self.work.insert(id, work);
            }
            Next::Answer(_) | Next::Reset | Next::Gone => self.close(&mut work),
        }
        self.tell_changes(now_ms);
        next
    }

    /// A call that has to wait does so until the platform in front of the gateway gives up on it:
    /// then that answers, and the work goes on behind it.
    fn patient(&mut self, id: CallId, work: &mut Work, until_ms: u64, now_ms: u64) -> Next {
        match work.gives_up_ms {
            _ if work.answered => {}
            Some(gives_up_ms) if gives_up_ms <= now_ms => {
                work.answered = true;
                self.count(work).failed += 1;
            }
            Some(gives_up_ms) => {
                let until_ms = until_ms.min(gives_up_ms);
                return Next::Wait { until_ms };
            }
            None => return Next::Wait { until_ms },
        }
        self.behind.insert((until_ms, id));
        Next::Answer(self.gave_up())
    }

    /// Goes on with work that is due and whose call was answered already.
    pub(super) fn go_on_behind(&mut self, now_ms: u64) {
        let due = |first: &(u64, CallId)| first.0 <= now_ms;
        while self.behind.first().is_some_and(due) {
            let Some((_, id)) = self.behind.pop_first() else {
                return;
            };
            if let Some(work) = self.work.remove(&id) {
                // Nobody is left to be told.
                let _ = self.drive(id, work, now_ms);
            }
        }
    }

    fn advance(&mut self, work: &mut Work, now_ms: u64) -> Next {
        loop {
            let strikes = self.scenario.strikes(work.call.gateway, work.operation);
            if self.scenario.stop && strikes && !work.answered {
                self.take_off(work);
                return Next::Hold;
            }
            match std::mem::replace(&mut work.stage, Stage::Arrived) {
                Stage::Arrived => match self.begin(work, now_ms) {
                    ControlFlow::Continue(stage) => work.stage = stage,
                    ControlFlow::Break(next) => return next,
                },
                Stage::Working { until_ms, plan } if now_ms < until_ms => {
                    work.stage = Stage::Working { until_ms, plan };
                    return Next::Wait { until_ms };
                }
                Stage::Working { plan, .. } => work.stage = self.book(work, plan, now_ms),
                Stage::Booked {
                    until_ms,
                    plan,
                    answer,
                } if now_ms < until_ms => {
                    work.stage = Stage::Booked {
                        until_ms,
                        plan,
                        answer,
                    };
                    return Next::Wait { until_ms };
                }
                Stage::Booked { plan, answer, .. } => return self.answer(work, &plan, answer),
            }
        }
    }

    /// Everything up to the start of the work: loss, headers, limits, idempotency.
    fn begin(&mut self, work: &mut Work, now_ms: u64) -> ControlFlow<Next, Stage> {
        let gateway = work.call.gateway;
        let plan = Plan::new(&self.scenario, gateway, work.operation, &work.throws);
        if plan.loss == Some(When::Before) {
            self.count(work).lost += 1;
            return ControlFlow::Break(Next::Reset);
        }
        if let Some(redirect) = &plan.redirect {
            self.count(work).failed += 1;
            return ControlFlow::Break(Next::Answer(Answer::redirect(
                redirect.status,
                &redirect.location,
            )));
        }
        let over_rate = self.over_rate(gateway, work.operation, now_ms);
        let identity = match self.admit(&work.call) {
            Ok(identity) => identity.filter(|_| self.scenario.idempotency == Switch::On),
            Err(answer) => {
                self.count(work).declined += 1;
                return ControlFlow::Break(self.answer(work, &plan, *answer));
            }
        };
        if over_rate {
            return ControlFlow::Break(self.limited(work, &plan, identity, now_ms));
        }
        if let Some(identity) = identity {
            let print = self.print(&work.call);
            match self.idempotency.claim(&identity, print, now_ms) {
                Known::First => work.identity = Some(identity),
                Known::Running => {
                    self.count(work).in_progress += 1;
                    let answer = self.running(gateway);
                    return ControlFlow::Break(self.answer(work, &plan, answer));
                }
                Known::Other => {
                    self.count(work).declined += 1;
                    let answer = stripe::codes::other_request();
                    return ControlFlow::Break(self.answer(work, &plan, answer));
                }
                Known::Answered(answer) => {
                    self.count(work).replayed += 1;
                    return ControlFlow::Break(self.answer(work, &plan, answer));
                }
            }
        }
        let strikes = self.scenario.strikes(gateway, work.operation);
        let limit = self.scenario.contract_limit.filter(|_| strikes);
        if limit.is_some_and(|limit| *self.working.of(gateway).of(work.operation) >= limit) {
            return ControlFlow::Break(self.limited(work, &plan, None, now_ms));
        }
        self.take_off(work);
        work.working = true;
        *self.working.of(gateway).of(work.operation) += 1;
        ControlFlow::Continue(Stage::Working {
            until_ms: now_ms.saturating_add(plan.work_ms),
            plan,
        })
    }

    /// The end of the work: an error, or the booking.
    fn book(&mut self, work: &Work, plan: Plan, now_ms: u64) -> Stage {
        let until_ms = now_ms.saturating_add(plan.hold_ms);
        let error = plan.error.clone();
        let gateway = work.call.gateway;
        let injected = |side| {
            let error = error.as_ref().filter(|error| error.when == side);
            error.map(|error| wires::fault(gateway, error))
        };
        if let Some(answer) = injected(When::Before) {
            self.count(work).failed += 1;
            return Stage::Booked {
                until_ms,
                plan,
                answer,
            };
        }
        let answer = self.perform(&work.call, &plan, now_ms);
        let counts = self.count(work);
        if answer.status < 400 {
            counts.approved += 1;
        } else {
            counts.declined += 1;
        }
        if let Some(answer) = injected(When::After) {
            self.count(work).failed += 1;
            return Stage::Booked {
                until_ms,
                plan,
                answer,
            };
        }
        Stage::Booked {
            until_ms,
            plan,
            answer,
        }
    }

    /// The last step of a call: binds its answer to its key, and lets it out or loses it.
    fn answer(&mut self, work: &mut Work, plan: &Plan, mut answer: Answer) -> Next {
        if work.call.gateway == Gateway::Toss {
            self.sign(&work.call, &mut answer);
        }
        answer.replayed &= work.call.gateway == Gateway::Stripe;
        if let Some(identity) = work.identity.take() {
            let unsure = answer.status >= 500 || matches!(answer.status, 401 | 429);
            if answer.unbound || unsure && !self.scenario.bind_server_errors {
                self.idempotency.release(&identity);
            } else {
                self.idempotency.bind(&identity, &answer);
            }
        }
        if work.answered {
            return Next::Gone;
        }
        if plan.loss == Some(When::After) {
            self.count(work).lost += 1;
            return Next::Reset;
        }
        Next::Answer(mangled(answer, plan.body, self.scenario.drip_ms))
    }

    /// Adds the headers which Toss answers with.
    fn sign(&mut self, call: &Call, answer: &mut Answer) {
        self.calls += 1;
        let trace = format!("{:016x}", books::scatter(self.calls));
        // A replayed answer carries the trace of the first one.
        answer.trace = match answer.trace.as_str() {
            "" => trace,
            original => format!("{trace}, {original}"),
        };
        answer.idempotency_key.clone_from(&call.idempotency_key);
    }

    fn limited(
        &mut self,
        work: &mut Work,
        plan: &Plan,
        identity: Option<Identity>,
        now_ms: u64,
    ) -> Next {
        // A call that waits under the same key keeps its place, so only a first one is bound.
        let bound = identity.filter(|_| self.scenario.bind_server_errors);
        let print = self.print(&work.call);
        if let Some(identity) = bound
            && matches!(
                self.idempotency.claim(&identity, print, now_ms),
                Known::First
            )
        {
            work.identity = Some(identity);
        }
        self.count(work).limited += 1;
        let answer = self.too_many(work.call.gateway);
        self.answer(work, plan, answer)
    }

    fn over_rate(&mut self, gateway: Gateway, operation: Operation, now_ms: u64) -> bool {
        let second = now_ms / 1_000;
        let (counted, calls) = self.rate.of(gateway).of(operation);
        if *counted != second {
            (*counted, *calls) = (second, 0);
        }
        *calls += 1;
        let calls = *calls;
        let limit = self
            .scenario
            .rate_limit
            .filter(|_| self.scenario.strikes(gateway, operation));
        limit.is_some_and(|limit| calls > limit)
    }

    /// Counts a call as in flight, once.
    fn take_off(&mut self, work: &mut Work) {
        if !std::mem::replace(&mut work.in_flight, true) {
            let gateway = work.call.gateway;
            *self.in_flight.of(gateway).of(work.operation) += 1;
            self.note_in_flight(gateway, work.operation);
        }
    }

    /// Writes into the ledger how many calls are in flight now.
    pub(super) fn note_in_flight(&mut self, gateway: Gateway, operation: Operation) {
        let of = |in_flight: &mut PerGateway<PerOperation<u64>>, gateway| {
            *in_flight.of(gateway).of(operation)
        };
        let here = of(&mut self.in_flight, gateway);
        let everywhere = Gateway::ALL
            .into_iter()
            .map(|gateway| of(&mut self.in_flight, gateway))
            .sum();
        let ledger = &mut self.books.ledger;
        ledger.in_flight(gateway, operation, here, everywhere);
    }

    /// Gives back what an ended call held.
    pub(super) fn close(&mut self, work: &mut Work) {
        if std::mem::take(&mut work.in_flight) {
            *self.in_flight.of(work.call.gateway).of(work.operation) -= 1;
        }
        if std::mem::take(&mut work.working) {
            *self.working.of(work.call.gateway).of(work.operation) -= 1;
        }
        if let Some(identity) = work.identity.take() {
            self.idempotency.release(&identity);
        }
        if let Some(key) = work.confirming.take() {
            self.ended(work.call.gateway, &key);
        }
    }

    pub(super) fn count(&mut self, work: &Work) -> &mut CallCounts {
        self.books.ledger.counts(work.call.gateway, work.operation)
    }
}

fn mangled(mut answer: Answer, fault: Option<BodyFault>, drip_ms: u64) -> Answer {
    match fault {
        None | Some(BodyFault::WrongAmount) => {}
        Some(BodyFault::Broken) => answer.body.truncate(answer.body.len() / 2),
        Some(BodyFault::Drip) => answer.drip_ms = Some(drip_ms),
        Some(BodyFault::Html) => {
            let page = Answer::html(answer.status);
            answer.content_type = page.content_type;
            answer.body = page.body;
        }
    }
    answer
}
