//! Which wire a call speaks: the few questions that each gateway answers its own way.

use super::plan::Plan;
use super::{Answer, Call, Engine, Gateway, Operation, Target, kakaopay, stripe, toss};
use crate::idempotency::Identity;
use crate::scenario::{ExpiredSession, Fault, LimitedBody, Scenario};

/// Longest idempotency key that is counted where the gateway itself knows none.
const LONGEST_COUNTED_KEY: usize = 300;

impl Engine {
    /// Checks the headers of a call; gives the identity of one that has an idempotency key, or the
    /// answer of a refusal.
    pub(super) fn admit(&self, call: &Call) -> Result<Option<Identity>, Box<Answer>> {
        match call.gateway {
            Gateway::Toss => toss::admit(call, &self.secret_key)
                .map_err(|code| Box::new(toss::codes::error(&code))),
            Gateway::KakaoPay => {
                let switches = &self.scenario.kakaopay;
                kakaopay::admit(&self.kakaopay, call, &self.merchant, switches)
                    .map(|()| None)
                    .map_err(|code| Box::new(kakaopay::codes::error(&code, switches)))
            }
            Gateway::Stripe => stripe::admit(call, &self.stripe_merchant),
        }
    }

    /// Does what a call asks for and books it.
    pub(super) fn perform(&mut self, call: &Call, plan: &Plan, now_ms: u64) -> Answer {
        match call.gateway {
            Gateway::Toss => toss::perform(&mut self.books, &self.scenario, call, plan, now_ms),
            Gateway::KakaoPay => kakaopay::perform(
                (&mut self.kakaopay, &mut self.books.ledger),
                &self.scenario,
                &self.merchant,
                (call, plan),
                now_ms,
            ),
            Gateway::Stripe => stripe::perform(
                (&mut self.stripe, &mut self.books.ledger),
                &self.scenario,
                (call, plan),
                now_ms,
            ),
        }
    }

    /// Counts a confirm by its names, and keeps alive what a call is about; gives the name to let go
    /// of when it ends.
    pub(super) fn began(&mut self, call: &Call, now_ms: u64) -> Option<String> {
        let key = call.idempotency_key.as_deref();
        match (&call.gateway, call.operation()) {
            (Gateway::Toss, Operation::Confirm) => {
                let names = toss::confirm_names(&call.body);
                let order = names.order_id.as_deref();
                self.books.ledger.confirm_received(order, key, now_ms);
                let payment_key = names.payment_key;
                payment_key.filter(|key| self.books.confirm_began(key))
            }
            (Gateway::KakaoPay, operation @ (Operation::Confirm | Operation::Cancel)) => {
                if operation == Operation::Confirm {
                    let order = kakaopay::name_in(&call.body, "partner_order_id");
                    let key = key.filter(|key| key.len() <= LONGEST_COUNTED_KEY);
                    let ledger = &mut self.books.ledger;
                    ledger.confirm_received(order.as_deref(), key, now_ms);
                }
                let tid = kakaopay::name_in(&call.body, "tid");
                tid.filter(|tid| self.kakaopay.began(tid))
            }
            (Gateway::Stripe, Operation::Confirm) => {
                let id = stripe::captured(call)?;
                let order = self.stripe.order_of(id);
                let ledger = &mut self.books.ledger;
                ledger.confirm_received(order.as_deref(), key, now_ms);
                self.stripe.began(id).then(|| id.to_owned())
            }
            _ => None,
        }
    }

    /// Lets go of what a call was about.
    pub(super) fn ended(&mut self, gateway: Gateway, name: &str) {
        match gateway {
            Gateway::Toss => self.books.confirm_ended(name),
            Gateway::KakaoPay => self.kakaopay.ended(name),
            Gateway::Stripe => self.stripe.ended(name),
        }
    }

    /// Ends the life of what waited too long.
    pub(super) fn expire(&mut self, now_ms: u64) {
        let life = |gateway| self.scenario.confirm_window_ms(gateway);
        self.books.expire(life(Gateway::Toss), now_ms);
        self.kakaopay.expire(life(Gateway::KakaoPay), now_ms);
        let cancels = self.scenario.stripe.expired_session == ExpiredSession::Canceled;
        let of_stripe = life(Gateway::Stripe);
        self.stripe.expire(of_stripe, cancels, now_ms);
        self.books.expire_accounts(&self.scenario, now_ms);
        self.books.end_cancels(&self.scenario, now_ms);
    }

    /// The answer to a call above a limit.
    pub(super) fn too_many(&self, gateway: Gateway) -> Answer {
        match gateway {
            Gateway::Toss => {
                let uncertain = &self.scenario.uncertain;
                let plain = toss::codes::error("TOO_MANY_REQUESTS");
                let mut answer = match uncertain.limited_body {
                    LimitedBody::Json => plain,
                    LimitedBody::Empty => Answer::json(plain.status, ""),
                    LimitedBody::Html => Answer::html(plain.status),
                };
                answer.retry_after_s = uncertain.retry_after_s;
                answer
            }
            Gateway::KakaoPay => kakaopay::coded("-429", &self.scenario.kakaopay),
            Gateway::Stripe => stripe::codes::error("rate_limit"),
        }
    }

    /// What two calls under one idempotency key must have in common beside their address.
    pub(super) fn print(&self, call: &Call) -> Option<Vec<u8>> {
        match call.gateway {
            Gateway::Stripe => stripe::print(call),
            Gateway::Toss | Gateway::KakaoPay => None,
        }
    }

    /// The answer to a call whose key's first call is still running.
    pub(super) fn running(&self, gateway: Gateway) -> Answer {
        match gateway {
            Gateway::Stripe => stripe::codes::error("idempotency_key_in_use"),
            Gateway::Toss | Gateway::KakaoPay => {
                toss::codes::error("IDEMPOTENT_REQUEST_PROCESSING")
            }
        }
    }

    /// When the platform in front of the gateway gives up on a call.
    pub(super) fn patience_ms(&self, call: &Call) -> Option<u64> {
        let is_page = matches!(
            &call.target,
            Target::KakaoPay(kakaopay::KakaoPayCall::Page { .. })
        );
        let millis = self.scenario.kakaopay.platform_timeout_ms;
        (call.gateway == Gateway::KakaoPay && !is_page && millis > 0).then_some(millis)
    }

    /// The answer to a call of an address that KakaoPay does not have.
    pub(crate) fn nowhere(&self) -> Answer {
        kakaopay::coded("-404", &self.scenario.kakaopay)
    }

    /// What the platform answers then.
    pub(super) fn gave_up(&self) -> Answer {
        let switches = &self.scenario.kakaopay;
        kakaopay::coded(&switches.platform_timeout_code, switches)
    }
}

/// The answer that an injected error stands for.
pub(super) fn fault(gateway: Gateway, fault: &Fault) -> Answer {
    match (&fault.code, gateway) {
        (None, _) => Answer::html(fault.status),
        (Some(code), Gateway::Toss) => toss::codes::error_with_status(fault.status, code),
        (Some(code), Gateway::KakaoPay) => kakaopay::coded_with(fault.status, code),
        (Some(code), Gateway::Stripe) => stripe::codes::with_status(fault.status, code),
    }
}

/// The code of a refusal on a wire: the scenario's, if the wire has it; the wire's own, if it names none.
pub(super) fn decline(gateway: Gateway, scenario: &Scenario) -> Option<String> {
    let decline = scenario.decline.as_ref()?;
    let Some(code) = &decline.code else {
        let own = match gateway {
            Gateway::Toss => toss::DECLINE,
            Gateway::KakaoPay => kakaopay::DECLINE,
            Gateway::Stripe => stripe::DECLINE,
        };
        return Some(own.to_owned());
    };
    let has = match gateway {
        Gateway::Toss => toss::codes::status_of(code).is_some(),
        Gateway::KakaoPay => code.parse::<kakaopay::codes::Code>().is_ok(),
        Gateway::Stripe => stripe::codes::is_listed(code),
    };
    has.then(|| code.clone())
}
