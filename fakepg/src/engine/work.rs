//! One call's way through the gateway, from its arrival to its answer.

use std::ops::ControlFlow;

use super::plan::{Plan, Throws};
use super::{Answer, Call, CallId, Engine, Next, Operation, books, toss};
use crate::idempotency::{Identity, Known};
use crate::ledger::CallCounts;
use crate::scenario::{BodyFault, Fault, LimitedBody, Switch, When};

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
    pub(super) in_flight: bool,
    pub(super) working: bool,
}

impl Engine {
    pub(super) fn drive(&mut self, id: CallId, mut work: Work, now_ms: u64) -> Next {
        let next = self.advance(&mut work, now_ms);
        match next {
            Next::Wait { .. } | Next::Hold => {
                self.work.insert(id, work);
            }
            Next::Answer(_) | Next::Reset | Next::Gone => self.close(&mut work),
        }
        self.tell_changes(now_ms);
        next
    }

    fn advance(&mut self, work: &mut Work, now_ms: u64) -> Next {
        loop {
            if self.scenario.stop && self.scenario.strikes(work.operation) {
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
        let plan = Plan::new(&self.scenario, work.operation, &work.throws);
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
        let over_rate = self.over_rate(work.operation, now_ms);
        let identity = match toss::admit(&work.call, &self.secret_key) {
            Ok(identity) => identity.filter(|_| self.scenario.idempotency == Switch::On),
            Err(code) => {
                self.count(work).declined += 1;
                let answer = toss::codes::error(&code);
                return ControlFlow::Break(self.answer(work, &plan, answer));
            }
        };
        if over_rate {
            return ControlFlow::Break(self.limited(work, &plan, identity, now_ms));
        }
        if let Some(identity) = identity {
            match self.idempotency.claim(&identity, now_ms) {
                Known::First => work.identity = Some(identity),
                Known::Running => {
                    self.count(work).in_progress += 1;
                    let answer = toss::codes::error("IDEMPOTENT_REQUEST_PROCESSING");
                    return ControlFlow::Break(self.answer(work, &plan, answer));
                }
                Known::Answered(answer) => {
                    self.count(work).replayed += 1;
                    return ControlFlow::Break(self.answer(work, &plan, answer));
                }
            }
        }
        let strikes = self.scenario.strikes(work.operation);
        let limit = self.scenario.contract_limit.filter(|_| strikes);
        if limit.is_some_and(|limit| *self.working.of(work.operation) >= limit) {
            return ControlFlow::Break(self.limited(work, &plan, None, now_ms));
        }
        self.take_off(work);
        work.working = true;
        *self.working.of(work.operation) += 1;
        ControlFlow::Continue(Stage::Working {
            until_ms: now_ms.saturating_add(plan.work_ms),
            plan,
        })
    }

    /// The end of the work: an error, or the booking.
    fn book(&mut self, work: &Work, plan: Plan, now_ms: u64) -> Stage {
        let until_ms = now_ms.saturating_add(plan.hold_ms);
        let error = plan.error.clone();
        let injected = |side| error.as_ref().filter(|error| error.when == side).map(fault);
        if let Some(answer) = injected(When::Before) {
            self.count(work).failed += 1;
            return Stage::Booked {
                until_ms,
                plan,
                answer,
            };
        }
        let answer = toss::perform(&mut self.books, &self.scenario, &work.call, &plan, now_ms);
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
        self.calls += 1;
        let trace = format!("{:016x}", books::scatter(self.calls));
        // A replayed answer carries the trace of the first one.
        answer.trace = match answer.trace.as_str() {
            "" => trace,
            original => format!("{trace}, {original}"),
        };
        answer
            .idempotency_key
            .clone_from(&work.call.idempotency_key);
        if let Some(identity) = work.identity.take() {
            let unsure = answer.status >= 500 || matches!(answer.status, 401 | 429);
            if unsure && !self.scenario.bind_server_errors {
                self.idempotency.release(&identity);
            } else {
                self.idempotency.bind(&identity, &answer);
            }
        }
        if plan.loss == Some(When::After) {
            self.count(work).lost += 1;
            return Next::Reset;
        }
        Next::Answer(mangled(answer, plan.body, self.scenario.drip_ms))
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
        if let Some(identity) = bound
            && matches!(self.idempotency.claim(&identity, now_ms), Known::First)
        {
            work.identity = Some(identity);
        }
        self.count(work).limited += 1;
        let mut answer = toss::codes::error("TOO_MANY_REQUESTS");
        let page = match self.scenario.uncertain.limited_body {
            LimitedBody::Json => None,
            LimitedBody::Empty => Some(Answer::json(answer.status, "")),
            LimitedBody::Html => Some(Answer::html(answer.status)),
        };
        if let Some(page) = page {
            answer = page;
        }
        answer.retry_after_s = self.scenario.uncertain.retry_after_s;
        self.answer(work, plan, answer)
    }

    fn over_rate(&mut self, operation: Operation, now_ms: u64) -> bool {
        let second = now_ms / 1_000;
        let (counted, calls) = self.rate.of(operation);
        if *counted != second {
            (*counted, *calls) = (second, 0);
        }
        *calls += 1;
        let calls = *calls;
        let limit = self
            .scenario
            .rate_limit
            .filter(|_| self.scenario.strikes(operation));
        limit.is_some_and(|limit| calls > limit)
    }

    /// Counts a call as in flight, once.
    fn take_off(&mut self, work: &mut Work) {
        if !std::mem::replace(&mut work.in_flight, true) {
            let count = self.in_flight.of(work.operation);
            *count += 1;
            self.books.ledger.in_flight(work.operation, *count);
        }
    }

    /// Gives back what an ended call held.
    pub(super) fn close(&mut self, work: &mut Work) {
        if std::mem::take(&mut work.in_flight) {
            *self.in_flight.of(work.operation) -= 1;
        }
        if std::mem::take(&mut work.working) {
            *self.working.of(work.operation) -= 1;
        }
        if let Some(identity) = work.identity.take() {
            self.idempotency.release(&identity);
        }
        if let Some(key) = work.confirming.take() {
            self.books.confirm_ended(&key);
        }
    }

    pub(super) fn count(&mut self, work: &Work) -> &mut CallCounts {
        self.books.ledger.calls.of(work.operation)
    }
}

fn fault(fault: &Fault) -> Answer {
    match &fault.code {
        Some(code) => toss::codes::error_with_status(fault.status, code),
        None => Answer::html(fault.status),
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
