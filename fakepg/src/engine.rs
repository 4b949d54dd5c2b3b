//! The gateway without clock, network or threads: a call and the time in, what to do next out.
//!
//! A driver calls [`Engine::receive`], then follows the returned [`Next`]: waits and calls
//! [`Engine::resume`], or ends the call. [`Engine::tick`] gives the webhooks that are due.

mod books;
mod call;
pub(crate) mod kakaopay;
mod outbox;
mod plan;
pub(crate) mod stripe;
#[cfg(test)]
mod tests;
pub(crate) mod toss;
mod wires;
mod work;

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::idempotency::Idempotency;
use crate::ledger::{CallCounts, Ledger, OrderCounts, PerGateway, PerOperation};
use crate::scenario::Scenario;
use books::Books;
pub use books::deposits::NoDeposit;
pub use call::{Answer, Call, Gateway, Method, NewPayment, Operation, Target};
pub use kakaopay::{KakaoPayCall, Merchant, PageStep};
use outbox::Outbox;
pub use outbox::Webhook;
use plan::Throws;
pub use stripe::{StripeCall, StripeMerchant, StripeStep, stripe_signature};
use work::{Stage, Work};

/// Names one call while it is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// The whole gateway.
#[derive(Debug)]
pub struct Engine {
    secret_key: String,
    merchant: Merchant,
    stripe_merchant: StripeMerchant,
    scenario: Scenario,
    dice: ChaCha8Rng,
    webhook_dice: ChaCha8Rng,
    books: Books,
    kakaopay: kakaopay::book::Book,
    stripe: stripe::book::Book,
    idempotency: Idempotency,
    outbox: Outbox,
    work: HashMap<CallId, Work>,
    /// Work that goes on though its call was answered, by the time when it goes on.
    behind: BTreeSet<(u64, CallId)>,
    /// Calls not answered yet, held ones included.
    in_flight: PerGateway<PerOperation<u64>>,
    /// Calls whose work began.
    working: PerGateway<PerOperation<u64>>,
    /// The second, and the calls in it.
    rate: PerGateway<PerOperation<(u64, u64)>>,
    calls: u64,
}

impl Engine {
    /// A healthy gateway with one merchant.
    pub fn new(secret_key: &str, seed: u64, now_ms: u64) -> Self {
        let (dice, webhook_dice) = seeded(seed);
        Self {
            secret_key: secret_key.to_owned(),
            merchant: Merchant::default(),
            stripe_merchant: StripeMerchant::default(),
            scenario: Scenario::default(),
            dice,
            webhook_dice,
            books: Books::new(seed, now_ms),
            kakaopay: kakaopay::book::Book::new(seed, now_ms),
            stripe: stripe::book::Book::new(seed, now_ms),
            idempotency: Idempotency::default(),
            outbox: Outbox::default(),
            work: HashMap::new(),
            behind: BTreeSet::new(),
            in_flight: PerGateway::default(),
            working: PerGateway::default(),
            rate: PerGateway::default(),
            calls: 0,
        }
    }

    /// The same gateway with another merchant of KakaoPay.
    #[must_use]
    pub fn with_kakaopay(mut self, merchant: Merchant) -> Self {
        self.merchant = merchant;
        self
    }

    /// The same gateway with another merchant of Stripe.
    #[must_use]
    pub fn with_stripe(mut self, merchant: StripeMerchant) -> Self {
        self.stripe_merchant = merchant;
        self
    }

    /// The headers that the sender of a webhook puts beside its body now.
    pub fn webhook_headers(&self, webhook: &Webhook, now_ms: u64) -> Vec<(&'static str, String)> {
        match webhook.gateway {
            Gateway::Stripe if webhook.forged => Vec::new(),
            Gateway::Stripe => {
                let secret = &self.stripe_merchant.webhook_secret;
                let signed = stripe_signature(secret, now_ms / 1_000, &webhook.body);
                vec![("stripe-signature", signed)]
            }
            Gateway::Toss | Gateway::KakaoPay => toss::webhook_headers(webhook, now_ms),
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
        let mut ledger = self.books.snapshot();
        ledger.calls = ledger.total_calls();
        self.kakaopay.write_to(&mut ledger);
        self.stripe.write_to(&mut ledger);
        ledger
    }

    /// How calls ended so far, without the rest of the ledger, which grows with every order.
    pub fn calls(&self) -> PerOperation<CallCounts> {
        self.books.ledger.total_calls()
    }

    /// What happened to one order.
    pub fn order(&self, id: &str) -> OrderCounts {
        self.books
            .ledger
            .orders
            .get(id)
            .copied()
            .unwrap_or_default()
    }

    /// Starts the counting anew; payments, keys and calls in flight stay.
    pub fn reset_ledger(&mut self) {
        self.books.reset_ledger();
        self.kakaopay.reset();
        self.stripe.reset();
        for gateway in Gateway::ALL {
            for operation in Operation::ALL {
                self.note_in_flight(gateway, operation);
            }
        }
    }

    /// Makes an authenticated payment and gives its key.
    pub fn authenticate(&mut self, gateway: Gateway, new: NewPayment, now_ms: u64) -> String {
        self.books.authenticate(gateway, new, now_ms)
    }

    /// Makes an authenticated payment of the latest `ready` of an order at KakaoPay, and gives its
    /// `pg_token`; the error says what is missing.
    pub fn authenticate_ready(
        &mut self,
        order: &str,
        amount: u64,
        now: u64,
    ) -> Result<String, String> {
        self.expire(now);
        kakaopay::authenticate(&mut self.kakaopay, order, amount)
    }

    /// Authorises the latest session of an order at Stripe, and gives the session's id; the error says what is missing.
    pub fn authorise(&mut self, order: &str, amount: u64, now_ms: u64) -> Result<String, String> {
        self.expire(now_ms);
        let done = stripe::authorise(&mut self.stripe, order, amount, now_ms);
        self.tell_changes(now_ms);
        done
    }

    /// Lets KakaoPay's `order` show any status for an order's latest payment, or the truth again;
    /// false when there is no such payment.
    pub fn show_status(&mut self, order: &str, status: Option<String>) -> bool {
        kakaopay::show(&mut self.kakaopay, order, status)
    }

    /// Takes in a call. While the scenario is not `up` it is reset and counted nowhere.
    pub fn receive(&mut self, call: Call, now_ms: u64) -> (CallId, Next) {
        self.calls += 1;
        let id = CallId(self.calls);
        if self.scenario.is_down(call.gateway) {
            return (id, Next::Reset);
        }
        let operation = call.operation();
        self.expire(now_ms);
        self.books.ledger.received(call.gateway, operation);
        let confirming = self.began(&call, now_ms);
        let patience_ms = self.patience_ms(&call);
        let work = Work {
            call,
            operation,
            throws: Throws::draw(&mut self.dice),
            stage: Stage::Arrived,
            identity: None,
            confirming,
            gives_up_ms: patience_ms.map(|millis| now_ms.saturating_add(millis)),
            answered: false,
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
        self.expire(now_ms);
        self.go_on_behind(now_ms);
        self.tell_changes(now_ms);
        self.outbox.due(now_ms)
    }

    /// When `tick` has something to do next.
    pub fn next_due(&self) -> Option<u64> {
        let life = |gateway| self.scenario.confirm_window_ms(gateway);
        let expiry = self.books.next_expiry(life(Gateway::Toss));
        let kakaopay = self.kakaopay.next_expiry(life(Gateway::KakaoPay));
        let stripe = self.stripe.next_expiry(life(Gateway::Stripe));
        let behind = self.behind.first().map(|(at_ms, _)| *at_ms);
        let cancels = self.books.next_cancel_end(&self.scenario);
        [
            expiry,
            kakaopay,
            stripe,
            behind,
            cancels,
            self.outbox.next_due(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// A try of a webhook ended.
    pub fn webhook_tried(&mut self, mut webhook: Webhook, ok: bool, now_ms: u64) {
        if !self.scenario.uncertain.stable_transmission_id {
            webhook.id = self.books.fresh("whtrans_");
        }
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

    /// Queues an event of Stripe about an order's latest payment now, past all switches.
    pub fn tell_stripe(&mut self, order: &str, now_ms: u64) -> bool {
        let Some((kind, object)) = self.stripe.event_of_order(order) else {
            return false;
        };
        let webhook = self.event(kind, &object, now_ms);
        self.outbox.push(now_ms, webhook);
        true
    }

    /// Queues a webhook with any body now, past all switches; where a gateway signs its own, this one bears no signature.
    pub fn tell_raw(&mut self, gateway: Gateway, body: Bytes, now_ms: u64) {
        let id = self.books.fresh("whtrans_");
        let mut webhook = Webhook::new(id, gateway, body);
        webhook.forged = true;
        self.outbox.push(now_ms, webhook);
    }

    fn event(&mut self, kind: &str, object: &serde_json::Value, now_ms: u64) -> Webhook {
        let id = self.books.fresh("evt_");
        let body = stripe::wire::event(&id, kind, object, now_ms);
        Webhook::new(id, Gateway::Stripe, body.into())
    }

    /// A deposit into an order's virtual account, or, with `undo`, the bank's word that there was none after all.
    ///
    /// # Errors
    /// [`NoDeposit`] says why there can be none.
    pub fn deposit(&mut self, order: &str, undo: bool, now_ms: u64) -> Result<(), NoDeposit> {
        self.books.expire_accounts(&self.scenario, now_ms);
        if undo {
            self.books.undo_deposit(order, now_ms)?;
        } else {
            self.books.deposit(order, now_ms)?;
        }
        self.tell_changes(now_ms);
        Ok(())
    }

    /// Queues a deposit webhook about an order's account with another secret than its own, or with none; past all switches.
    pub fn forge_deposit(&mut self, order: &str, secret: Option<&str>, now_ms: u64) -> bool {
        let Some(payment) = self.books.of_order(order) else {
            return false;
        };
        let gateway = payment.gateway;
        let body = toss::wire::deposit_callback(payment, "DONE", secret, now_ms);
        self.tell_raw(gateway, body.into(), now_ms);
        true
    }

    fn tell_changes(&mut self, now_ms: u64) {
        for (kind, object) in self.stripe.take_events() {
            let webhook = self.event(kind, &object, now_ms);
            let switches = &self.scenario.webhooks;
            self.outbox
                .add(webhook, switches, &mut self.webhook_dice, now_ms);
        }
        for key in self.books.take_changed() {
            let Some(payment) = self.books.payment(&key) else {
                continue;
            };
            let gateway = payment.gateway;
            for body in toss::wire::events(payment, &self.scenario, now_ms) {
                let id = self.books.fresh("whtrans_");
                let webhook = Webhook::new(id, gateway, body.into());
                let switches = &self.scenario.webhooks;
                self.outbox
                    .add(webhook, switches, &mut self.webhook_dice, now_ms);
            }
        }
        for (key, index) in self.books.take_ended_cancels() {
            let Some(payment) = self.books.payment(&key) else {
                continue;
            };
            let gateway = payment.gateway;
            if let Some(body) = toss::wire::cancel_changed(payment, index, now_ms) {
                let id = self.books.fresh("whtrans_");
                let webhook = Webhook::new(id, gateway, body.into());
                let switches = &self.scenario.webhooks;
                self.outbox
                    .add(webhook, switches, &mut self.webhook_dice, now_ms);
            }
        }
    }
}

/// Two streams of one seed, so that webhooks do not shift what happens to calls.
fn seeded(seed: u64) -> (ChaCha8Rng, ChaCha8Rng) {
    let mut webhooks = ChaCha8Rng::seed_from_u64(seed);
    webhooks.set_stream(1);
    (ChaCha8Rng::seed_from_u64(seed), webhooks)
}
