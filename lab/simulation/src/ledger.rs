//! The gateway's own books: what it was asked, and what it charged and gave back. The oracle of every run, so it shares
//! no code with the crate `payment`: texts and whole numbers only.

use std::collections::{BTreeMap, BTreeSet};

/// The reason of what the gateway's own desk gave back.
pub(crate) const DESK: &str = "at the desk";

/// One charge.
#[derive(Debug, Clone)]
pub(crate) struct Charge {
    /// The idempotency key of the confirm that it was booked for.
    pub(crate) idem: String,
    pub(crate) amount: u64,
    pub(crate) canceled: u64,
    /// The reasons of what was given back of it, as the shop gave them.
    pub(crate) gave: Vec<String>,
    /// From when on inquiries see it.
    pub(crate) seen_from: u64,
    /// Booked after every promise of the gateway.
    pub(crate) late: bool,
}

impl Charge {
    pub(crate) fn stands(&self) -> bool {
        self.canceled < self.amount
    }
}

/// One authenticated payment.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    /// The order id that the shop gave.
    pub(crate) order_id: String,
    /// Whose order it is, by the shopper's own knowledge.
    pub(crate) order: String,
    pub(crate) amount: u64,
    /// Until when a confirm is accepted.
    pub(crate) window_until: u64,
    pub(crate) declined: bool,
    pub(crate) charges: Vec<Charge>,
}

/// How far a send has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// On the wire.
    Travelling,
    /// Being worked on.
    Working,
    /// Decided, or lost for good.
    Over,
}

/// One send of a confirm.
#[derive(Debug, Clone)]
pub(crate) struct Send {
    pub(crate) key: String,
    pub(crate) idem: String,
    pub(crate) way: Way,
    /// Worked on for longer than the gateway promises.
    pub(crate) late: bool,
}

/// The answer that an idempotency key is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Charged(u64),
    Declined,
    Lapsed,
    Processed,
}

/// The books.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) payments: BTreeMap<String, Payment>,
    pub(crate) sends: Vec<Send>,
    /// `None` while it is worked on.
    pub(crate) idem: BTreeMap<String, Option<Said>>,
    /// Cancels that were carried out, by key.
    pub(crate) cancels: BTreeMap<String, u64>,
    /// Orders of which the gateway's own desk gave money back.
    pub(crate) given_at_desk: BTreeSet<String>,
    /// Since when an order may be charged, without a gap.
    since: BTreeMap<String, u64>,
}

impl Ledger {
    pub(crate) fn order_of(&self, key: &str) -> Option<String> {
        self.payments.get(key).map(|payment| payment.order.clone())
    }

    fn of_order(&self, order: &str) -> impl Iterator<Item = (&String, &Payment)> {
        self.payments
            .iter()
            .filter(move |(_, payment)| payment.order == order)
    }

    /// The charges of an order that stand.
    pub(crate) fn standing(&self, order: &str) -> Vec<Charge> {
        self.of_order(order)
            .flat_map(|(_, payment)| &payment.charges)
            .filter(|charge| charge.stands())
            .cloned()
            .collect()
    }

    /// Whether a send can still become a charge at `now`: not where its key is answered already, or its payment is dead.
    fn can_book(&self, send: &Send, now: u64) -> bool {
        let answered = matches!(self.idem.get(&send.idem), Some(Some(_)));
        let Some(payment) = self.payments.get(&send.key) else {
            return false;
        };
        match send.way {
            Way::Over => false,
            Way::Travelling | Way::Working if answered || payment.declined => false,
            Way::Working => true,
            Way::Travelling => now < payment.window_until,
        }
    }

    /// Whether an idempotency key has a charge that stands, or a send that may become one.
    pub(crate) fn may_be_charged(&self, idem: &str, now: u64) -> bool {
        let charged = self
            .payments
            .values()
            .flat_map(|payment| &payment.charges)
            .any(|charge| charge.idem == idem && charge.stands() && !charge.late);
        charged
            || self
                .sends
                .iter()
                .any(|send| send.idem == idem && !send.late && self.can_book(send, now))
    }

    /// Whether anything of a key ever left for the gateway.
    pub(crate) fn was_sent(&self, idem: &str) -> bool {
        self.sends.iter().any(|send| send.idem == idem)
    }

    /// Notes whether an order is or may be charged now; called after each change of it.
    pub(crate) fn follow(&mut self, order: &str, now: u64) {
        let charged = self.standing(order).iter().any(|charge| !charge.late);
        let may_be = charged
            || self.sends.iter().any(|send| {
                !send.late
                    && self.can_book(send, now)
                    && self
                        .payments
                        .get(&send.key)
                        .is_some_and(|payment| payment.order == order)
            });
        if may_be {
            self.since.entry(order.to_owned()).or_insert(now);
        } else {
            self.since.remove(order);
        }
    }

    /// Since when an order has been or may have been charged, without a gap.
    pub(crate) fn charged_since(&mut self, order: &str, now: u64) -> Option<u64> {
        self.follow(order, now);
        self.since.get(order).copied()
    }
}
