//! The database in memory: the rows, and how they are looked up and changed. One call of a method is one transaction: it
//! either answers without a change or changes everything at once.

use std::collections::BTreeMap;

use payment::attempt::{Attempt, AttemptStatus, Event, Holding, LateSuccess};
use payment::id::{GatewayName, OrderId, PaymentKey, Sku};
use payment::money::Won;
use payment::order::OrderStatus;
use server::clock::EpochMs;
use server::store::{
    AttemptId, AttemptRecord, Beat, Census, FeedPosition, NewOrderRow, NewWebhook, NodeSlots,
    OrderMade, OrderRecord, Owner, WebhookEnd, WebhookRow,
};

mod claims;
mod records;
mod waiting;

/// A product.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    pub(crate) sku: Sku,
    pub(crate) price: Won,
    pub(crate) total: i64,
    pub(crate) reserved: i64,
    pub(crate) sold: i64,
}

/// An order.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) owner: Owner,
    pub(crate) amount: Won,
    pub(crate) created_at: EpochMs,
    pub(crate) expires_at: EpochMs,
    pub(crate) lapsed: bool,
    pub(crate) lines: Vec<(usize, i64)>,
    pub(crate) attempts: Vec<usize>,
    pub(crate) status: OrderStatus,
}

/// A stored webhook.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub(crate) gateway: GatewayName,
    pub(crate) transmission: Option<String>,
    pub(crate) received_at: EpochMs,
    pub(crate) body: Vec<u8>,
    pub(crate) tries: u32,
    pub(crate) next_at: Option<EpochMs>,
    /// How often its look ended for good.
    pub(crate) ended: u32,
}

/// One entry of the change feed.
#[derive(Debug, Clone)]
struct Change {
    number: i64,
    at: EpochMs,
    order: OrderId,
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
    pub(crate) outbox: BTreeMap<String, &'static str>,
    pub(crate) webhooks: Vec<Webhook>,
    changes: Vec<Change>,
    next_change: i64,
    /// Which node claimed an attempt.
    claimed_by: BTreeMap<AttemptId, String>,
    leases: BTreeMap<String, EpochMs>,
    slots: BTreeMap<(String, GatewayName), u32>,
}

fn sku(name: &str) -> Sku {
    Sku::parse(name).expect("a plain word is a sku")
}

fn won(amount: u32) -> Won {
    Won::new(i64::from(amount)).expect("a small price is one")
}

impl Tables {
    /// A shop with a plentiful and a scarce product.
    pub(crate) fn new(scarce: u32) -> Self {
        let product = |name, price, total| Product {
            sku: sku(name),
            price: won(price),
            total,
            reserved: 0,
            sold: 0,
        };
        Self {
            products: vec![
                product("mug", 18_000, 10_000),
                product("poster", 15_000, i64::from(scarce)),
            ],
            ..Self::default()
        }
    }

    pub(crate) fn make_order(&mut self, new: NewOrderRow) -> OrderMade {
        let mut amount = Won::ZERO;
        let mut lines = Vec::new();
        for (sku, quantity) in &new.items {
            let found = self.products.iter().position(|product| product.sku == *sku);
            let Some(index) = found else {
                return OrderMade::UnknownSku(sku.clone());
            };
            let product = &self.products[index];
            let wanted = i64::from(*quantity);
            if product.total - product.reserved - product.sold < wanted {
                return OrderMade::OutOfStock(sku.clone());
            }
            let line = product.price.times(*quantity);
            let Some(sum) = line.and_then(|line| amount.plus(line)) else {
                return OrderMade::TooMuch;
            };
            amount = sum;
            lines.push((index, wanted));
        }
        let order = Order {
            owner: new.owner,
            amount,
            created_at: new.at,
            expires_at: new.expires_at,
            lapsed: false,
            lines,
            attempts: Vec::new(),
            status: OrderStatus::Pending,
        };
        self.orders.insert(new.id, order);
        OrderMade::Made(amount)
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

    pub(crate) fn attempt(&self, id: AttemptId) -> Option<&AttemptRecord> {
        self.attempts.get(row(id))
    }

    fn attempt_mut(&mut self, id: AttemptId) -> Option<&mut AttemptRecord> {
        self.attempts.get_mut(row(id))
    }

    /// Notes that an order changed, as the triggers do.
    fn changed(&mut self, order: &OrderId) {
        self.next_change += 1;
        self.changes.push(Change {
            number: self.next_change,
            at: self.now,
            order: order.clone(),
        });
    }

    /// The orders that changed after a position, and the position of the newest change.
    pub(crate) fn changes_after(&self, position: &FeedPosition) -> (Vec<OrderId>, FeedPosition) {
        let after: i64 = position.0.parse().unwrap_or(0);
        let first = self
            .changes
            .partition_point(|change| change.number <= after);
        let changed = self.changes[first..].iter();
        let changed = changed.map(|change| change.order.clone()).collect();
        (changed, self.end_of_changes())
    }

    pub(crate) fn end_of_changes(&self) -> FeedPosition {
        FeedPosition(self.next_change.to_string())
    }

    /// Drops the changes that were noted before a moment of the database's clock.
    pub(crate) fn sweep_changes(&mut self, before: EpochMs) {
        self.changes.retain(|change| change.at >= before);
    }

    pub(crate) fn insert_attempt(&mut self, record: AttemptRecord) -> AttemptId {
        let index = self.attempts.len();
        let id = AttemptId(i64::try_from(index).unwrap_or(i64::MAX) + 1);
        let order = record.order_id.clone();
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
        let moved = next.status != stored.attempt.status;
        let hint = stored.ask_at.filter(|at| Some(*at) != own_lease);
        if moved {
            stored.ask_at = [records::ask_at(&next, now), hint]
                .into_iter()
                .flatten()
                .min();
            stored.asks = 0;
        }
        stored.unknown_since =
            (next.status == AttemptStatus::Unknown).then(|| stored.unknown_since.unwrap_or(now));
        stored.attempt = next;
        let order = stored.order_id.clone();
        self.changed(&order);
    }

    /// Moves the stock of an order's lines; false, and nothing moved, when there is not enough.
    pub(crate) fn move_stock(&mut self, order: &OrderId, from: Holding, to: Holding) -> bool {
        if from == to {
            return true;
        }
        let lines = self.orders.get(order).map(|order| order.lines.clone());
        let lines = lines.unwrap_or_default();
        let sign = |holding| i64::from(to == holding) - i64::from(from == holding);
        let (reserved, sold) = (sign(Holding::Reserved), sign(Holding::Sold));
        let enough = lines.iter().all(|(index, quantity)| {
            let product = &self.products[*index];
            let free = product.total - product.reserved - product.sold;
            free >= quantity * (reserved + sold)
        });
        if enough {
            for (index, quantity) in lines {
                let product = &mut self.products[index];
                product.reserved += quantity * reserved;
                product.sold += quantity * sold;
            }
        }
        enough
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

    /// Stores a webhook; false when its transmission is stored already.
    pub(crate) fn keep_webhook(&mut self, new: NewWebhook, once: bool) -> bool {
        let same = |stored: &Webhook| {
            stored.gateway == new.gateway && stored.transmission == new.transmission
        };
        if once && new.transmission.is_some() && self.webhooks.iter().any(same) {
            return false;
        }
        self.webhooks.push(Webhook {
            gateway: new.gateway,
            transmission: new.transmission,
            received_at: new.at,
            body: new.body.to_vec(),
            tries: 0,
            next_at: Some(new.at),
            ended: 0,
        });
        true
    }

    pub(crate) fn webhooks_due(&self, now: EpochMs, most: u32) -> Vec<WebhookRow> {
        let mut due: Vec<_> = self
            .webhooks
            .iter()
            .zip(0_i64..)
            .filter(|(webhook, _)| webhook.next_at.is_some_and(|at| at <= now))
            .collect();
        due.sort_by_key(|(webhook, id)| (webhook.next_at, *id));
        due.truncate(most as usize);
        let row = |(webhook, id): (&Webhook, i64)| WebhookRow {
            id,
            gateway: webhook.gateway.clone(),
            received_at: webhook.received_at,
            body: webhook.body.clone(),
            tries: webhook.tries,
        };
        due.into_iter().map(row).collect()
    }

    pub(crate) fn end_webhook(&mut self, id: i64, end: WebhookEnd, now: EpochMs, ends: bool) {
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        let Some(webhook) = self.webhooks.get_mut(index) else {
            return;
        };
        // Another node has ended it meanwhile.
        if webhook.next_at.is_none() {
            return;
        }
        webhook.tries += 1;
        match end {
            WebhookEnd::Parked(until) => webhook.next_at = Some(until),
            WebhookEnd::Hint(_) | WebhookEnd::Ignored => {
                webhook.ended += 1;
                webhook.next_at = if ends { None } else { Some(now) };
            }
        }
        if let WebhookEnd::Hint(attempt) = end
            && let Some(record) = self.attempt_mut(attempt)
        {
            record.ask_at = Some(now);
        }
    }

    /// By the database's own clock, as several nodes need it.
    pub(crate) fn beat(&mut self, beat: &Beat) -> Vec<NodeSlots> {
        let now = self.now;
        let ended: Vec<String> = self
            .leases
            .iter()
            .filter(|(_, until)| **until < now)
            .map(|(node, _)| node.clone())
            .collect();
        for node in ended {
            self.leave(&node);
        }
        self.leases.insert(beat.node.clone(), now.plus(beat.lease));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let nodes = count(self.leases.len());
        let rank = count(self.leases.keys().filter(|id| **id < beat.node).count());
        let mut granted = Vec::new();
        for held in &beat.slots {
            let of_others = self
                .slots
                .iter()
                .filter(|((node, gateway), _)| *node != beat.node && *gateway == held.gateway);
            let others = of_others.map(|(_, slots)| *slots).sum();
            let share = payment::share::share(held.cap, nodes, rank);
            let slots = payment::share::usable(held.cap, share, others);
            let key = (beat.node.clone(), held.gateway.clone());
            self.slots.insert(key, slots.max(held.in_use));
            granted.push(NodeSlots {
                gateway: held.gateway.clone(),
                slots,
                nodes,
            });
        }
        granted
    }

    pub(crate) fn leave(&mut self, node: &str) {
        self.leases.remove(node);
        self.slots.retain(|(of, _), _| of != node);
    }

    /// Approving attempts that another node claimed whose lease is over, by the database's own clock.
    pub(crate) fn approving_of_dead_nodes(&self, own: &str) -> Vec<AttemptId> {
        let lives = |node: &String| {
            self.leases
                .get(node)
                .is_some_and(|until| *until >= self.now)
        };
        let left = |record: &&AttemptRecord| {
            record.attempt.status == AttemptStatus::Approving
                && self
                    .claimed_by
                    .get(&record.id)
                    .is_none_or(|node| node != own && !lives(node))
        };
        let left = self.attempts.iter().filter(left);
        left.map(|record| record.id).collect()
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
                .iter()
                .filter(|row| row.next_at.is_some())
                .count() as u64,
        }
    }

    /// Ends a ready attempt whose window has closed.
    fn expire(&mut self, record: &AttemptRecord, now: EpochMs) {
        let step = record
            .attempt
            .apply(Event::WindowClosed, LateSuccess::Cancel);
        self.save_attempt(record.id, step.next, now, None);
    }
}

fn row(id: AttemptId) -> usize {
    usize::try_from(id.0 - 1).unwrap_or(usize::MAX)
}
