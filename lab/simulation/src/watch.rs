//! The checks that are made as things happen. What is true is what the ledger says; what we know is in the tables.

use std::collections::{BTreeMap, BTreeSet};

use payment::attempt::{AttemptStatus, CameFrom};
use payment::reach::Reach;
use payment::time::Millis;
use payment::view::{Stage, View};
use server::store::{AttemptRecord, Recorded};

use crate::tables::Tables;
use crate::world::{World, lock};

/// How old a poll's answer may be where several nodes share the store: one second by the change feed's promise.
const STALE: u64 = 1_000;

/// What is followed beside ledger and tables.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Confirms in flight on our side: which node's, since when.
    in_flight: BTreeMap<u64, (usize, u32, u64)>,
    next_call: u64,
    /// Per payment key: until when one of its shoppers waits, in true time.
    waits_until: BTreeMap<String, u64>,
    /// Per idempotency key: which incarnation sent it, and how often.
    sent_by: BTreeMap<String, ((usize, u32), u32)>,
    /// Per payment key: the only tab that asked for its confirm; none where another did, or a copy is on its way.
    asked_by: BTreeMap<String, Option<u64>>,
    /// The payment keys of which a cancel was sent, and nothing was heard since.
    unheard_cancels: BTreeSet<String>,
    /// The tabs that offer to pay now.
    offering: BTreeSet<u64>,
    pub(crate) confirms: u64,
    pub(crate) became_unknown: u64,
}

impl World {
    /// A page asked for a confirm: until `until` its shopper waits.
    pub(crate) fn watch_request(&self, key: &str, until: u64) {
        let mut watch = lock(&self.watch);
        let latest = watch.waits_until.entry(key.to_owned()).or_default();
        *latest = (*latest).max(until);
    }

    /// A tab asks for a confirm. Of two tabs neither can know of the other's.
    pub(crate) fn watch_asked(&self, tab: u64, key: &str) {
        let mut watch = lock(&self.watch);
        let asker = watch.asked_by.entry(key.to_owned()).or_insert(Some(tab));
        if *asker != Some(tab) {
            *asker = None;
        }
    }

    /// A copy of a confirm is on its way: no page can know of it.
    pub(crate) fn watch_copied(&self, key: &str) {
        lock(&self.watch).asked_by.insert(key.to_owned(), None);
    }

    /// A tab is closed, or shows something else.
    pub(crate) fn watch_closed(&self, tab: u64) {
        lock(&self.watch).offering.remove(&tab);
    }

    /// A node is about to call the gateway with a confirm. Returns the call's number.
    pub(crate) fn watch_send(&self, (node, life): (usize, u32), key: &str, idem: &str) -> u64 {
        let now = self.now().get();
        let mut watch = lock(&self.watch);
        watch.confirms += 1;
        if now >= watch.waits_until.get(key).copied().unwrap_or(0) {
            self.wrong(format_args!(
                "a confirm of {key} was sent after its deadline"
            ));
        }
        let asker = watch.asked_by.get(key).copied().flatten();
        // What is answered already is only repeated to a second send.
        let answered = matches!(lock(&self.ledger).idem.get(idem), Some(Some(_)));
        if let Some(tab) = asker.filter(|tab| !answered && watch.offering.contains(tab)) {
            self.wrong(format_args!(
                "tab {tab} offers to pay while its own confirm of {key} is sent"
            ));
        }
        let sender = watch
            .sent_by
            .entry(idem.to_owned())
            .or_insert(((node, life), 0));
        sender.1 += 1;
        if sender.0 != (node, life) || sender.1 > 2 {
            self.wrong(format_args!(
                "{idem} was sent {} times, or by two processes",
                sender.1
            ));
        }
        watch.next_call += 1;
        let call = watch.next_call;
        watch.in_flight.insert(call, (node, life, now));
        self.check_cap(&mut watch, now);
        call
    }

    /// A node is about to call the gateway with a cancel. Without keys, it must have heard what became of the last one.
    pub(crate) fn watch_cancel(&self, key: &str) {
        let new = lock(&self.watch).unheard_cancels.insert(key.to_owned());
        if self.plan.keyless && !new {
            self.wrong(format_args!("a cancel of {key} was sent again unasked"));
        }
    }

    /// A node heard what the gateway holds of a payment.
    pub(crate) fn watch_heard(&self, key: &str) {
        lock(&self.watch).unheard_cancels.remove(key);
    }

    /// Calls of a dead process count while the gateway may work on them, but only among nodes that share a cap.
    fn check_cap(&self, watch: &mut Watch, now: u64) {
        let lives = lock(&self.nodes).lives();
        let shared = lives.len() > 1;
        let limit = self.plan.times.pg_timeout.get();
        watch.in_flight.retain(|_, (node, life, begun)| {
            lives[*node] == *life || (shared && now < *begun + limit)
        });
        if let Some(cap) = self.plan.times.cap
            && watch.in_flight.len() > cap as usize
        {
            self.wrong(format_args!(
                "{} confirms in flight, the cap is {cap}",
                watch.in_flight.len()
            ));
        }
    }

    /// A confirm's call has ended on our side.
    pub(crate) fn watch_ended(&self, call: u64) {
        lock(&self.watch).in_flight.remove(&call);
    }

    /// Before the first byte leaves there must be a committed claim of that very key.
    pub(crate) fn check_claimed(&self, key: &str, idem: &str) {
        let tables = lock(&self.tables);
        let claimed = tables.attempts.iter().any(|record| {
            record
                .idempotency_key
                .as_ref()
                .is_some_and(|stored| stored.as_str() == idem)
                && record
                    .payment_key
                    .as_ref()
                    .is_some_and(|stored| stored.as_str() == key)
        });
        drop(tables);
        if !claimed {
            self.wrong(format_args!("{idem} was sent without a stored claim"));
        }
    }

    /// A charge was booked.
    pub(crate) fn check_booked(&self, order: &str, idem: &str, late: bool) {
        let standing = lock(&self.ledger).standing(order);
        let in_time = standing.iter().filter(|charge| !charge.late).count();
        if in_time > 1 {
            self.wrong(format_args!("order {order} is charged {in_time} times"));
        }
        if late {
            return;
        }
        let tables = lock(&self.tables);
        let attempt = tables.attempts.iter().find(|record| has_key(record, idem));
        let ended = attempt
            .map(|record| record.attempt.status)
            .filter(|status| {
                matches!(
                    status,
                    AttemptStatus::Failed | AttemptStatus::Expired | AttemptStatus::Ready
                )
            });
        drop(tables);
        if let Some(status) = ended {
            self.wrong(format_args!(
                "{idem} was charged while its attempt is {}",
                status.as_str()
            ));
        }
    }

    /// Money was given back: only what was not to stand may be.
    pub(crate) fn check_given_back(&self, order_amount: u64, charge: &crate::ledger::Charge) {
        if charge.canceled > charge.amount {
            self.wrong(format_args!(
                "more was given back of {} than charged",
                charge.idem
            ));
        }
        if charge.amount != order_amount {
            return;
        }
        let tables = lock(&self.tables);
        let attempt = tables
            .attempts
            .iter()
            .find(|record| has_key(record, &charge.idem));
        let wanted = attempt.is_some_and(|record| record.attempt.cancel.is_some());
        drop(tables);
        if !wanted {
            self.wrong(format_args!(
                "the good charge of {} was given back",
                charge.idem
            ));
        }
    }

    /// An attempt was recorded.
    pub(crate) fn check_record(&self, recorded: &Recorded) {
        if let Some(stage) = &self.stage {
            return stage.note_record(self.now(), recorded);
        }
        let (before, after) = (recorded.before.status, recorded.after.attempt.status);
        let record = &recorded.after;
        let idem = record
            .idempotency_key
            .as_ref()
            .map_or("-", |key| key.as_str());
        if before != after {
            self.note(
                "store",
                format_args!(
                    "attempt {} {} -> {} {}",
                    record.id.0,
                    before.as_str(),
                    after.as_str(),
                    record
                        .attempt
                        .reason
                        .map_or("", payment::reach::Reason::as_str)
                ),
            );
        }
        if after == AttemptStatus::Unknown && before != after {
            lock(&self.watch).became_unknown += 1;
        }
        if !may_follow(before, after) {
            self.wrong(format_args!(
                "a money fact was lost: {before:?} became {after:?}"
            ));
        }
        if after == AttemptStatus::Failed && before != after && !record.attempt.void {
            let now = self.now().get();
            let ledger = lock(&self.ledger);
            if ledger.may_be_charged(idem, now) {
                drop(ledger);
                self.wrong(format_args!("{idem} failed while it is or may be charged"));
            } else if record.attempt.reach == Reach::NotSent && ledger.was_sent(idem) {
                drop(ledger);
                self.wrong(format_args!(
                    "{idem} is not_sent, but it left for the gateway"
                ));
            }
        }
    }

    /// Reserved + sold + free = total, recomputed from the attempts.
    pub(crate) fn check_stock(&self, tables: &Tables) {
        if self.stage.is_some() {
            return;
        }
        let mut held = vec![(0, 0); tables.products.len()];
        for order in tables.orders.values() {
            for attempt in &order.attempts {
                let holding = holding(&tables.attempts[*attempt]);
                for (index, quantity) in &order.lines {
                    match holding {
                        Held::Nothing => {}
                        Held::Reserved => held[*index].0 += quantity,
                        Held::Sold => held[*index].1 += quantity,
                    }
                }
            }
        }
        for (product, (reserved, sold)) in tables.products.iter().zip(held) {
            if (product.reserved, product.sold) != (reserved, sold) || product.free() < 0 {
                self.wrong(format_args!(
                    "stock of {}: {} reserved and {} sold, the attempts say {reserved} and {sold}",
                    product.sku, product.reserved, product.sold
                ));
            }
        }
        let mut open = BTreeMap::new();
        for record in &tables.attempts {
            if matches!(
                record.attempt.status,
                AttemptStatus::Approving | AttemptStatus::Unknown | AttemptStatus::AwaitingDeposit
            ) && open.insert(&record.order_id, record.id).is_some()
            {
                self.wrong(format_args!(
                    "order {} has two open attempts",
                    record.order_id
                ));
            }
        }
    }

    /// A server said that an order is payable: nothing of it may be charged, nor may anything become a charge.
    pub(crate) fn check_payable(&self, order: &str) {
        let now = self.now().get();
        let tolerance = if self.plan.nodes > 1 { STALE } else { 0 };
        let since = lock(&self.ledger).charged_since(order, now);
        if let Some(since) = since.filter(|since| since + tolerance < now) {
            self.wrong(format_args!(
                "{order} was called payable, but it may be charged since {since} ms"
            ));
        }
    }

    /// A confirm was answered: at the latest when its shopper leaves, give or take what one moment takes.
    pub(crate) fn check_answered(&self, order: &str, took: Millis, longest: Millis) {
        if took > longest.plus(Millis::new(250)) {
            self.wrong(format_args!(
                "a confirm of {order} was answered after {took}, {longest} allowed"
            ));
        }
    }

    /// An order's time is over: nothing of it may be charged.
    pub(crate) fn check_lapsed(&self, order: &str) {
        if self.stage.is_some() {
            return;
        }
        let now = self.now().get();
        if lock(&self.ledger).charged_since(order, now).is_some() {
            self.wrong(format_args!(
                "{order} expired while it is or may be charged"
            ));
        }
    }

    /// A webhook is looked at: one that was applied must not be.
    pub(crate) fn check_hook(&self, ended: u32) {
        if ended > 0 {
            self.wrong(format_args!("a webhook is applied again"));
        }
    }

    /// What a tab shows now.
    pub(crate) fn check_shown(&self, tab: u64, order: &str, amount: u64, view: &View) {
        self.note(
            "page",
            format_args!(
                "tab {tab} of {order} shows {:?}{}",
                view.stage,
                button(view)
            ),
        );
        if view.stage == Stage::Paid {
            let standing = lock(&self.ledger).standing(order);
            // One that is being given back on request may be shown as paid until that is known.
            let asked_back = lock(&self.tables)
                .refunds
                .iter()
                .any(|refund| refund.row.order_id.as_str() == order)
                || lock(&self.ledger).given_at_desk.contains(order);
            if !asked_back && !standing.iter().any(|charge| charge.amount == amount) {
                self.wrong(format_args!(
                    "tab {tab} shows {order} as paid without a charge"
                ));
            }
        }
        let offers = view.button.is_some() || matches!(view.stage, Stage::NotCharged(_));
        let mut watch = lock(&self.watch);
        if offers {
            watch.offering.insert(tab);
        } else {
            watch.offering.remove(&tab);
        }
    }
}

const fn button(view: &View) -> &'static str {
    if view.button.is_some() {
        " with a button"
    } else {
        ""
    }
}

pub(crate) fn has_key(record: &AttemptRecord, idem: &str) -> bool {
    record
        .idempotency_key
        .as_ref()
        .is_some_and(|key| key.as_str() == idem)
}

enum Held {
    Nothing,
    Reserved,
    Sold,
}

fn holding(record: &AttemptRecord) -> Held {
    match record.attempt.status {
        AttemptStatus::Approving
        | AttemptStatus::Unknown
        | AttemptStatus::AwaitingDeposit
        | AttemptStatus::Mischarged => Held::Reserved,
        AttemptStatus::Approved | AttemptStatus::PartiallyCanceled => Held::Sold,
        AttemptStatus::CancelRequested => match record.attempt.cancel {
            Some((_, CameFrom::Approved | CameFrom::PartiallyCanceled)) => Held::Sold,
            Some((_, CameFrom::AwaitingDeposit | CameFrom::Mischarged)) => Held::Reserved,
            Some((_, CameFrom::Failed | CameFrom::Expired)) | None => Held::Nothing,
        },
        AttemptStatus::Ready
        | AttemptStatus::Canceled
        | AttemptStatus::Failed
        | AttemptStatus::Expired => Held::Nothing,
    }
}

/// Whether a state may follow a money fact, by the contract's list.
fn may_follow(before: AttemptStatus, after: AttemptStatus) -> bool {
    use AttemptStatus as S;
    match before {
        S::Approved => {
            matches!(
                after,
                S::Approved | S::CancelRequested | S::PartiallyCanceled | S::Canceled
            )
        }
        S::PartiallyCanceled => {
            matches!(
                after,
                S::CancelRequested | S::PartiallyCanceled | S::Canceled
            )
        }
        S::Canceled => after == S::Canceled,
        S::Mischarged => matches!(after, S::Mischarged | S::CancelRequested | S::Canceled),
        _ => true,
    }
}
