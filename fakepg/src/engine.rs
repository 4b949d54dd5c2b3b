//! The gateway without clock, network or threads: a call and the time in, what to do next out.
//!
//! A driver calls [`Engine::receive`], then follows the returned [`Next`]: waits and calls
//! [`Engine::resume`], or ends the call. [`Engine::tick`] gives the webhooks that are due.

mod books;
mod call;
mod outbox;
mod plan;
pub(crate) mod toss;

use std::collections::HashMap;

use bytes::Bytes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::idempotency::{Idempotency, Identity, Known};
use crate::ledger::{CallCounts, Ledger, PerOperation};
use crate::scenario::{BodyFault, Fault, Scenario, Switch, When};
use books::Books;
pub use call::{Answer, Call, Gateway, NewPayment, Operation, Target};
use outbox::Outbox;
pub use outbox::Webhook;
use plan::{Plan, Throws};

/// Names one call while it is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(u64);

/// What the driver does next with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Write this answer; the call is over.
    Answer(Answer),
    /// Reset the connection; the call is over.
    Reset,
    /// Call `resume` at this time.
    Wait {
        /// Unix milliseconds.
        until_ms: u64,
    },
    /// Call `resume` after the next change of the scenario.
    Hold,
    /// The call was given up; there is nobody to answer.
    Gone,
}

#[derive(Debug)]
enum Stage {
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

#[derive(Debug)]
struct Work {
    call: Call,
    operation: Operation,
    throws: Throws,
    stage: Stage,
    /// The key whose place this call holds.
    identity: Option<Identity>,
    /// The payment that cannot expire while this call lasts.
    confirming: Option<String>,
    in_flight: bool,
    working: bool,
}

/// The whole gateway.
#[derive(Debug)]
pub struct Engine {
    secret_key: String,
    scenario: Scenario,
    dice: ChaCha8Rng,
    webhook_dice: ChaCha8Rng,
    books: Books,
    idempotency: Idempotency,
    outbox: Outbox,
    work: HashMap<CallId, Work>,
    /// Calls not answered yet, held ones included.
    in_flight: PerOperation<u64>,
    /// Calls whose work began.
    working: PerOperation<u64>,
    /// The second, and the calls in it.
    rate: PerOperation<(u64, u64)>,
    calls: u64,
}

impl Engine {
    /// A healthy gateway with one merchant.
    pub fn new(secret_key: &str, seed: u64, now_ms: u64) -> Self {
        let (dice, webhook_dice) = seeded(seed);
        Self {
            secret_key: secret_key.to_owned(),
            scenario: Scenario::default(),
            dice,
            webhook_dice,
            books: Books::new(seed, now_ms),
            idempotency: Idempotency::default(),
            outbox: Outbox::default(),
            work: HashMap::new(),
            in_flight: PerOperation::default(),
            working: PerOperation::default(),
            rate: PerOperation::default(),
            calls: 0,
        }
    }

    /// The scenario in force.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Replaces the scenario; a seed in it starts the randomness anew.
    pub fn set_scenario(&mut self, scenario: Scenario) {
        if let Some(seed) = scenario.seed {
            (self.dice, self.webhook_dice) = seeded(seed);
        }
        self.scenario = scenario;
    }

    /// The ledger as it stands.
    pub fn ledger(&self) -> Ledger {
        self.books.snapshot()
    }

    /// Starts the counting anew; payments, keys and calls in flight stay.
    pub fn reset_ledger(&mut self) {
        self.books.reset_ledger();
        for (operation, count) in [
            (Operation::Confirm, self.in_flight.confirm),
            (Operation::Get, self.in_flight.get),
            (Operation::Cancel, self.in_flight.cancel),
            (Operation::Window, self.in_flight.window),
        ] {
            self.books.ledger.in_flight(operation, count);
        }
    }

    /// Makes an authenticated payment and gives its key.
    pub fn authenticate(&mut self, gateway: Gateway, new: NewPayment, now_ms: u64) -> String {
        self.books.authenticate(gateway, new, now_ms)
    }

    /// Takes in a call.
    pub fn receive(&mut self, call: Call, now_ms: u64) -> (CallId, Next) {
        let operation = call.operation();
        self.books.expire(self.scenario.confirm_window_ms, now_ms);
        self.books.ledger.received(operation);
        let mut confirming = None;
        if operation == Operation::Confirm {
            let names = toss::confirm_names(&call.body);
            let (order, key) = (names.order_id.as_deref(), call.idempotency_key.as_deref());
            self.books.ledger.confirm_received(order, key, now_ms);
            confirming = names
                .payment_key
                .filter(|key| self.books.confirm_began(key));
        }
        self.calls += 1;
        let id = CallId(self.calls);
        let work = Work {
            call,
            operation,
            throws: Throws::draw(&mut self.dice),
            stage: Stage::Arrived,
            identity: None,
            confirming,
            in_flight: false,
            working: false,
        };
        (id, self.drive(id, work, now_ms))
    }

    /// Goes on with a call whose wait is over.
    pub fn resume(&mut self, id: CallId, now_ms: u64) -> Next {
        match self.work.remove(&id) {
            Some(work) => self.drive(id, work, now_ms),
            None => Next::Gone,
        }
    }

    /// The caller hung up; true when the call was given up for it, unbooked.
    pub fn hang_up(&mut self, id: CallId) -> bool {
        let goes_on = match self.work.get(&id).map(|work| &work.stage) {
            // A stopped gateway never read the request, so nothing is left of it.
            Some(Stage::Arrived) => false,
            Some(Stage::Working { .. }) => self.scenario.continue_after_disconnect,
            Some(Stage::Booked { .. }) | None => true,
        };
        if goes_on {
            return false;
        }
        if let Some(mut work) = self.work.remove(&id) {
            self.count(&work).dropped += 1;
            self.close(&mut work);
        }
        true
    }

    /// Expires what is due and gives the webhooks to send now.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Webhook> {
        self.books.expire(self.scenario.confirm_window_ms, now_ms);
        self.tell_changes(now_ms);
        self.outbox.due(now_ms)
    }

    /// When `tick` has something to do next.
    pub fn next_due(&self) -> Option<u64> {
        let expiry = self.books.next_expiry(self.scenario.confirm_window_ms);
        [expiry, self.outbox.next_due()].into_iter().flatten().min()
    }

    /// A try of a webhook ended.
    pub fn webhook_tried(&mut self, webhook: Webhook, ok: bool, now_ms: u64) {
        self.outbox
            .tried(webhook, ok, &self.scenario.webhooks, now_ms);
    }

    /// Queues a webhook about a payment (by key, else by order) now, past all switches.
    pub fn tell(&mut self, key: Option<&str>, order: Option<&str>, now_ms: u64) -> bool {
        let by_key = key.and_then(|key| self.books.payment(key));
        let found = by_key.or_else(|| order.and_then(|order| self.books.of_order(order)));
        let Some(payment) = found else { return false };
        let (gateway, body) = (payment.gateway, toss::wire::status_changed(payment, now_ms));
        self.tell_raw(gateway, body.into(), now_ms);
        true
    }

    /// Queues a webhook with any body now, past all switches.
    pub fn tell_raw(&mut self, gateway: Gateway, body: Bytes, now_ms: u64) {
        let id = self.books.fresh("whtrans_");
        self.outbox.push(now_ms, Webhook::new(id, gateway, body));
    }

    fn drive(&mut self, id: CallId, mut work: Work, now_ms: u64) -> Next {
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
                    Ok(stage) => work.stage = stage,
                    Err(next) => return next,
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
    fn begin(&mut self, work: &mut Work, now_ms: u64) -> Result<Stage, Next> {
        let plan = Plan::new(&self.scenario, work.operation, &work.throws);
        if plan.loss == Some(When::Before) {
            self.count(work).lost += 1;
            return Err(Next::Reset);
        }
        if let Some(redirect) = &plan.redirect {
            self.count(work).failed += 1;
            return Err(Next::Answer(Answer::redirect(
                redirect.status,
                &redirect.location,
            )));
        }
        let over_rate = self.over_rate(work.operation, now_ms);
        let identity = match toss::admit(&work.call, &self.secret_key) {
            Ok(identity) => identity.filter(|_| self.scenario.idempotency == Switch::On),
            Err(answer) => {
                self.count(work).declined += 1;
                return Err(self.answer(work, &plan, answer));
            }
        };
        if over_rate {
            return Err(self.limited(work, &plan, identity, now_ms));
        }
        if let Some(identity) = identity {
            match self.idempotency.claim(&identity, now_ms) {
                Known::First => work.identity = Some(identity),
                Known::Running => {
                    self.count(work).in_progress += 1;
                    let answer = toss::codes::error("IDEMPOTENT_REQUEST_PROCESSING");
                    return Err(self.answer(work, &plan, answer));
                }
                Known::Answered(answer) => {
                    self.count(work).replayed += 1;
                    return Err(self.answer(work, &plan, answer));
                }
            }
        }
        let strikes = self.scenario.strikes(work.operation);
        let limit = self.scenario.contract_limit.filter(|_| strikes);
        if limit.is_some_and(|limit| *self.working.of(work.operation) >= limit) {
            return Err(self.limited(work, &plan, None, now_ms));
        }
        self.take_off(work);
        work.working = true;
        *self.working.of(work.operation) += 1;
        Ok(Stage::Working {
            until_ms: now_ms + plan.work_ms,
            plan,
        })
    }

    /// The end of the work: an error, or the booking.
    fn book(&mut self, work: &Work, plan: Plan, now_ms: u64) -> Stage {
        let until_ms = now_ms + plan.hold_ms;
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
        self.answer(work, plan, toss::codes::error("TOO_MANY_REQUESTS"))
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
    fn close(&mut self, work: &mut Work) {
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

    fn tell_changes(&mut self, now_ms: u64) {
        for key in self.books.take_changed() {
            let id = self.books.fresh("whtrans_");
            let Some(payment) = self.books.payment(&key) else {
                continue;
            };
            let body = toss::wire::status_changed(payment, now_ms);
            let webhook = Webhook::new(id, payment.gateway, body.into());
            let switches = &self.scenario.webhooks;
            self.outbox
                .add(webhook, switches, &mut self.webhook_dice, now_ms);
        }
    }

    fn count(&mut self, work: &Work) -> &mut CallCounts {
        self.books.ledger.calls.of(work.operation)
    }
}

/// Two streams of one seed, so that webhooks do not shift what happens to calls.
fn seeded(seed: u64) -> (ChaCha8Rng, ChaCha8Rng) {
    let mut webhooks = ChaCha8Rng::seed_from_u64(seed);
    webhooks.set_stream(1);
    (ChaCha8Rng::seed_from_u64(seed), webhooks)
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
