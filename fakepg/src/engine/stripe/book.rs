//! Every payment that a session opened, and how each moves from one status to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::wire;
use crate::engine::books::scatter;
use crate::ledger::{Ledger, PaymentEntry};

/// Status of a PaymentIntent, as far as this gateway moves one by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    RequiresPaymentMethod,
    RequiresCapture,
    Succeeded,
    Canceled,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RequiresPaymentMethod => "requires_payment_method",
            Self::RequiresCapture => "requires_capture",
            Self::Succeeded => "succeeded",
            Self::Canceled => "canceled",
        }
    }
}

/// Status of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionStatus {
    Open,
    Complete,
    Expired,
}

impl SessionStatus {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Expired => "expired",
        }
    }
}

/// What a session was made of.
#[derive(Clone, Debug)]
pub(super) struct NewSession {
    /// The shop's own name for the order.
    pub(super) reference: Option<String>,
    pub(super) name: String,
    pub(super) amount: u64,
    /// Whether a capture of its own charges what was authorised.
    pub(super) manual: bool,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) success_url: String,
    pub(super) cancel_url: Option<String>,
    pub(super) expires_ms: u64,
}

/// One payment with its session.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) session: String,
    /// Names its page.
    pub(super) page: String,
    pub(super) made: NewSession,
    pub(super) status: Status,
    pub(super) session_status: SessionStatus,
    /// What was charged.
    pub(super) received: u64,
    pub(super) charge: Option<String>,
    pub(super) refunds: Vec<Refund>,
    pub(super) created_ms: u64,
    pub(super) authorised_ms: Option<u64>,
    /// When a charge or the end of an authorisation was booked.
    pub(super) booked_ms: Option<u64>,
    /// The card was refused in the window, or at the capture.
    pub(super) last_error: Option<String>,
    /// Captures that have begun and not ended: while there are any, it does not expire.
    busy: u32,
}

/// One booked refund.
#[derive(Clone, Debug)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) amount: u64,
    pub(super) status: &'static str,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) at_ms: u64,
}

impl Intent {
    /// The order that the ledger counts it under.
    pub(super) fn order(&self) -> &str {
        let named = self.made.reference.as_deref();
        named
            .or_else(|| self.made.metadata.get("order").map(String::as_str))
            .unwrap_or(&self.id)
    }

    pub(super) fn refunded(&self) -> u64 {
        self.refunds.iter().map(|refund| refund.amount).sum()
    }

    fn ends_ms(&self, life_ms: u64) -> Option<u64> {
        match (self.status, self.session_status) {
            (Status::RequiresCapture, _) => self.authorised_ms.map(|at| at.saturating_add(life_ms)),
            (Status::RequiresPaymentMethod, SessionStatus::Open) => Some(self.made.expires_ms),
            _ => None,
        }
    }
}

/// All payments.
#[derive(Debug, Default)]
pub(in crate::engine) struct Book {
    intents: HashMap<String, Intent>,
    by_page: HashMap<String, String>,
    by_order: HashMap<String, Vec<String>>,
    /// Those that end by themselves some day.
    waiting: BTreeSet<String>,
    touched: BTreeSet<String>,
    /// Events that nobody was told yet: their type and object. The shop has asked for those that move money.
    events: Vec<(&'static str, Value)>,
    salt: u64,
    serial: u64,
}

impl Book {
    pub(in crate::engine) fn new(seed: u64, now_ms: u64) -> Self {
        Self {
            salt: scatter(now_ms ^ scatter(seed ^ 0x5_71e)),
            ..Self::default()
        }
    }

    /// An id nobody had before: a prefix and so many letters and digits.
    fn fresh(&mut self, prefix: &str, length: usize) -> String {
        self.serial += 1;
        let mut state = scatter(self.salt ^ scatter(self.serial));
        let mut id = format!("{prefix}{:04x}", self.serial & 0xffff);
        while id.len() < prefix.len() + length {
            state = scatter(state);
            id.push_str(&format!("{state:016x}"));
        }
        id.truncate(prefix.len() + length);
        id
    }

    /// A session begins; gives its payment's id.
    pub(super) fn open(&mut self, made: NewSession, now_ms: u64) -> String {
        let (id, session) = (self.fresh("pi_", 24), self.fresh("cs_test_a1", 56));
        let page = self.fresh("", 40);
        let intent = Intent {
            id: id.clone(),
            session,
            page: page.clone(),
            made,
            status: Status::RequiresPaymentMethod,
            session_status: SessionStatus::Open,
            received: 0,
            charge: None,
            refunds: Vec::new(),
            created_ms: now_ms,
            authorised_ms: None,
            booked_ms: None,
            last_error: None,
            busy: 0,
        };
        let of_order = self.by_order.entry(intent.order().to_owned()).or_default();
        of_order.push(id.clone());
        self.by_page.insert(page, id.clone());
        self.waiting.insert(id.clone());
        self.touched.insert(id.clone());
        self.intents.insert(id.clone(), intent);
        id
    }

    pub(super) fn intent(&self, id: &str) -> Option<&Intent> {
        self.intents.get(id)
    }

    pub(super) fn of_page(&self, page: &str) -> Option<String> {
        self.by_page.get(page).cloned()
    }

    /// The latest payment of an order.
    pub(in crate::engine) fn latest_of(&self, order: &str) -> Option<String> {
        self.by_order.get(order)?.last().cloned()
    }

    /// The order of a payment.
    pub(in crate::engine) fn order_of(&self, id: &str) -> Option<String> {
        self.intents.get(id).map(|intent| intent.order().to_owned())
    }

    /// A capture began.
    pub(in crate::engine) fn began(&mut self, id: &str) -> bool {
        let found = self.intents.get_mut(id);
        found.map(|intent| intent.busy += 1).is_some()
    }

    /// A capture ended, whatever came of it.
    pub(in crate::engine) fn ended(&mut self, id: &str) {
        if let Some(intent) = self.intents.get_mut(id) {
            intent.busy = intent.busy.saturating_sub(1);
        }
    }

    /// Ends what waited too long: sessions at their own time, authorisations after `life_ms`.
    pub(in crate::engine) fn expire(&mut self, life_ms: u64, cancels: bool, now_ms: u64) {
        let over = |id: &&String| {
            let intent = self.intents.get(*id);
            intent.is_some_and(|one| {
                one.busy == 0 && one.ends_ms(life_ms).is_some_and(|at| at <= now_ms)
            })
        };
        let over: Vec<String> = self.waiting.iter().filter(over).cloned().collect();
        for id in over {
            let was_open = self.intents[&id].session_status == SessionStatus::Open;
            if was_open {
                self.change(&id, |intent| {
                    intent.session_status = SessionStatus::Expired;
                });
            }
            self.waiting.remove(&id);
            if !was_open || cancels {
                self.end(&id, now_ms);
            }
        }
    }

    /// When the next one ends by itself.
    pub(in crate::engine) fn next_expiry(&self, life_ms: u64) -> Option<u64> {
        let waiting = self.waiting.iter().filter_map(|id| self.intents.get(id));
        let idle = waiting.filter(|intent| intent.busy == 0);
        idle.filter_map(|intent| intent.ends_ms(life_ms)).min()
    }

    /// The shopper authorised it in the window.
    pub(super) fn authorise(&mut self, id: &str, now_ms: u64) {
        let charge = self.fresh("ch_", 24);
        self.change(id, |intent| {
            intent.session_status = SessionStatus::Complete;
            intent.status = Status::RequiresCapture;
            intent.charge = Some(charge);
            intent.authorised_ms = Some(now_ms);
            intent.last_error = None;
        });
    }

    /// The card was refused.
    pub(super) fn fail(&mut self, id: &str, code: &str) {
        self.change(id, |intent| {
            intent.status = Status::RequiresPaymentMethod;
            intent.last_error = Some(code.to_owned());
        });
    }

    /// Books a charge of so many won.
    pub(super) fn charge(&mut self, id: &str, won: u64, now_ms: u64) {
        self.waiting.remove(id);
        self.change(id, |intent| {
            intent.status = Status::Succeeded;
            intent.received = won;
            intent.booked_ms = Some(now_ms);
        });
        if let Some(intent) = self.intents.get(id) {
            let told = wire::intent(intent, true);
            self.events.push(("payment_intent.succeeded", told));
        }
    }

    /// Books the end of a payment that was not charged.
    pub(super) fn end(&mut self, id: &str, now_ms: u64) {
        self.waiting.remove(id);
        self.change(id, |intent| {
            intent.status = Status::Canceled;
            intent.booked_ms = Some(now_ms);
        });
        if let Some(intent) = self.intents.get(id) {
            let told = wire::intent(intent, true);
            self.events.push(("payment_intent.canceled", told));
        }
    }

    /// Books a refund of at most what is left; gives its id.
    pub(super) fn refund(
        &mut self,
        id: &str,
        (amount, status): (u64, &'static str),
        metadata: BTreeMap<String, String>,
        now_ms: u64,
    ) -> String {
        let refund = self.fresh("re_", 24);
        self.change(id, |intent| {
            intent.refunds.push(Refund {
                id: refund.clone(),
                amount,
                status,
                metadata,
                at_ms: now_ms,
            });
        });
        if let Some(intent) = self.intents.get(id) {
            let told = wire::charge(intent, true);
            self.events.push(("charge.refunded", told));
        }
        refund
    }

    /// The events since last asked.
    pub(in crate::engine) fn take_events(&mut self) -> Vec<(&'static str, Value)> {
        std::mem::take(&mut self.events)
    }

    /// What an event about an order's latest payment says of it now.
    pub(in crate::engine) fn event_of_order(&self, order: &str) -> Option<(&'static str, Value)> {
        let intent = self.intents.get(&self.latest_of(order)?)?;
        let told = wire::intent(intent, true);
        Some(match intent.status {
            Status::Succeeded => ("payment_intent.succeeded", told),
            Status::Canceled => ("payment_intent.canceled", told),
            Status::RequiresCapture => ("payment_intent.amount_capturable_updated", told),
            Status::RequiresPaymentMethod => ("payment_intent.created", told),
        })
    }

    /// Adds the payments touched since the last reset to a ledger.
    pub(in crate::engine) fn write_to(&self, ledger: &mut Ledger) {
        for intent in self.touched.iter().filter_map(|id| self.intents.get(id)) {
            let charged = intent.status == Status::Succeeded;
            let total = if charged {
                intent.received
            } else {
                intent.made.amount
            };
            let entry = PaymentEntry {
                order_id: intent.order().to_owned(),
                status: intent.status.name().to_owned(),
                total_amount: total,
                balance_amount: total - intent.refunded(),
            };
            ledger.payments.insert(intent.id.clone(), entry);
        }
    }

    /// Starts the counting anew; payments stay.
    pub(in crate::engine) fn reset(&mut self) {
        self.touched.clear();
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Intent)) {
        if let Some(intent) = self.intents.get_mut(id) {
            change(intent);
            self.touched.insert(id.to_owned());
        }
    }
}
