//! The database in memory: the rows, and how they are looked up and changed. One call of a method is one transaction: it
//! either answers without a change or changes everything at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use payment::attempt::{Attempt, AttemptStatus, Event, LateSuccess};
use payment::id::{GatewayName, GatewayOrderId, OrderId, PaymentKey};
use payment::money::Won;
use payment::order::OrderStatus;
use server::clock::EpochMs;
use server::gateway::secret::Secret;
use server::store::rules::records::{next_look, unknown_since};
use server::store::{AttemptId, AttemptRecord, Census, Evidence, OrderRecord, Owner};

mod cancels;
mod changes;
mod claims;
mod effects;
mod lapse;
mod nodes;
mod records;
mod refunds;
mod shelf;
mod waiting;
mod webhooks;

use changes::Change;
use effects::{Notification, Queued};
use records::Told;
pub(crate) use refunds::Refunded;
pub(crate) use shelf::Product;
pub(crate) use webhooks::Webhook;

/// An order.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) owner: Owner,
    pub(crate) amount: Won,
    pub(crate) language: Option<&'static str>,
    pub(crate) created_at: EpochMs,
    pub(crate) expires_at: EpochMs,
    pub(crate) lapsed: bool,
    pub(crate) lines: Vec<(usize, i64)>,
    pub(crate) attempts: Vec<usize>,
    pub(crate) status: OrderStatus,
}

/// What of an attempt is not in its record.
#[derive(Debug, Clone, Default)]
struct Beside {
    /// Which node claimed it.
    node: Option<String>,
    /// The newest look that recorded a word.
    looked: u32,
    /// When the gateway was last heard after its order's time was over.
    answered_at: Option<EpochMs>,
    /// By which the gateway's own webhooks about its virtual account are known.
    secret: Option<Secret>,
    /// Until when the call of a cancel that is owed may be in flight.
    cancel_called_until: Option<EpochMs>,
}

/// All rows.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// The database's own clock, as of the transaction at hand.
    pub(crate) now: EpochMs,
    pub(crate) products: Vec<Product>,
    pub(crate) orders: BTreeMap<OrderId, Order>,
    pub(crate) attempts: Vec<AttemptRecord>,
    pub(crate) keys: BTreeMap<(GatewayName, PaymentKey), OrderId>,
    pub(crate) outbox: Vec<Queued>,
    notifications: BTreeMap<String, Notification>,
    pub(crate) refunds: Vec<Refunded>,
    pub(crate) webhooks: BTreeMap<i64, Webhook>,
    next_webhook: i64,
    evidence: Vec<Told>,
    settings: BTreeMap<String, String>,
    changes: Vec<Change>,
    next_change: i64,
    /// What of an attempt is not in its record.
    beside: BTreeMap<AttemptId, Beside>,
    leases: BTreeMap<String, EpochMs>,
    slots: BTreeMap<(String, GatewayName), u32>,
    index: Index,
}

/// What makes look-ups quick among thousands of rows, as the databases' indexes do.
#[derive(Debug, Default)]
struct Index {
    /// The first attempt of each gateway order id.
    of_gateway_order: HashMap<GatewayOrderId, usize>,
    /// The newest evidence of each attempt.
    last_told: HashMap<AttemptId, usize>,
    /// The keys of the outbox, and how many effects of a kind each attempt has.
    effects: HashSet<String>,
    effects_of: HashMap<(AttemptId, &'static str), usize>,
    /// The attempts that have a next look.
    looks: BTreeSet<usize>,
    /// The attempts that the transaction at hand may have changed.
    touched: Vec<usize>,
}

impl Tables {
    /// A fact of the installation, stored now if it is not there yet.
    pub(crate) fn setting(&mut self, name: &str, if_absent: &str) -> String {
        let stored = self.settings.entry(name.to_owned());
        stored.or_insert_with(|| if_absent.to_owned()).clone()
    }

    pub(crate) fn order(&self, id: &OrderId) -> Option<OrderRecord> {
        let order = self.orders.get(id)?;
        let attempts = order
            .attempts
            .iter()
            .map(|index| self.attempts[*index].clone());
        Some(OrderRecord {
            id: id.clone(),
            owner: order.owner.clone(),
            amount: order.amount,
            created_at: order.created_at,
            expires_at: order.expires_at,
            lapsed: order.lapsed,
            attempts: attempts.collect(),
        })
    }

    /// Orders of a shopper, newest first.
    pub(crate) fn orders_of(
        &self,
        owner: &Owner,
        among: Option<[OrderStatus; 2]>,
        (skip, most): (u32, u32),
    ) -> Vec<OrderRecord> {
        let wanted = |status| among.is_none_or(|among| among.contains(&status));
        let mut orders: Vec<_> = self
            .orders
            .iter()
            .filter(|(_, order)| order.owner == *owner && wanted(order.status))
            .collect();
        orders.sort_by_key(|(id, order)| (Reverse(order.created_at), (*id).clone()));
        let page = orders.into_iter().skip(skip as usize).take(most as usize);
        page.filter_map(|(id, _)| self.order(id)).collect()
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> Option<&AttemptRecord> {
        self.attempts.get(row(id))
    }

    /// By which the gateway's own webhooks about an attempt's virtual account are known.
    pub(crate) fn deposit_secret(&self, id: AttemptId) -> Option<Secret> {
        self.beside.get(&id)?.secret.clone()
    }

    fn attempt_mut(&mut self, id: AttemptId) -> Option<&mut AttemptRecord> {
        self.index.touched.push(row(id));
        self.attempts.get_mut(row(id))
    }

    /// Brings the index of looks up to date, at the end of a transaction.
    pub(crate) fn commit(&mut self) {
        for row in std::mem::take(&mut self.index.touched) {
            let looks = self
                .attempts
                .get(row)
                .is_some_and(|record| record.ask_at.is_some());
            if looks {
                self.index.looks.insert(row);
            } else {
                self.index.looks.remove(&row);
            }
        }
    }

    /// The attempts that have a next look.
    fn looked_at(&self) -> impl Iterator<Item = &AttemptRecord> {
        self.index.looks.iter().map(|row| &self.attempts[*row])
    }

    pub(crate) fn insert_attempt(&mut self, record: AttemptRecord) -> AttemptId {
        let index = self.attempts.len();
        let id = AttemptId(i64::try_from(index).unwrap_or(i64::MAX) + 1);
        let order = record.order_id.clone();
        let known = &mut self.index.of_gateway_order;
        known
            .entry(record.gateway_order_id.clone())
            .or_insert(index);
        self.index.touched.push(index);
        self.attempts.push(AttemptRecord { id, ..record });
        if let Some(order) = self.orders.get_mut(&order) {
            order.attempts.push(index);
        }
        self.changed(&order);
        id
    }

    /// Stores the machine's part of an attempt, with its next look and the order's status.
    pub(crate) fn save_attempt(
        &mut self,
        id: AttemptId,
        next: Attempt,
        now: EpochMs,
        own_lease: Option<EpochMs>,
    ) {
        let Some(stored) = self.attempt_mut(id) else {
            return;
        };
        if next.status != stored.attempt.status {
            stored.asks = 0;
        }
        stored.ask_at = next_look(stored, &next, now, own_lease);
        stored.unknown_since = unknown_since(stored, &next, now);
        stored.attempt = next;
        let order = stored.order_id.clone();
        self.changed(&order);
    }

    pub(crate) fn save_order(&mut self, id: &OrderId) {
        let Some(status) = self.order(id).map(|order| order.status()) else {
            return;
        };
        if let Some(order) = self.orders.get_mut(id)
            && order.status != status
        {
            order.status = status;
            self.changed(id);
        }
    }

    pub(crate) fn census(&self) -> Census {
        let unknown = self
            .attempts
            .iter()
            .filter(|record| record.attempt.status == AttemptStatus::Unknown);
        Census {
            unknown: unknown.clone().count() as u64,
            oldest_unknown: unknown.filter_map(|record| record.unknown_since).min(),
            webhooks_waiting: self
                .webhooks
                .values()
                .filter(|row| row.next_at.is_some())
                .count() as u64,
            refunds_open: self.open_refunds().count() as u64,
            oldest_refund: self.open_refunds().map(|row| row.created_at).min(),
        }
    }

    /// Ends a ready attempt whose window has closed.
    fn expire(&mut self, record: &AttemptRecord, now: EpochMs) {
        let step = record
            .attempt
            .apply(Event::WindowClosed, LateSuccess::Cancel);
        self.save_attempt(record.id, step.next, now, None);
        self.tell(record.id, "window_closed", &Evidence::plain("clock", now));
    }
}

fn row(id: AttemptId) -> usize {
    usize::try_from(id.0 - 1).unwrap_or(usize::MAX)
}
