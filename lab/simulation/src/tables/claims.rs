//! Opening and claiming attempts, by the same rules as the databases'.

use payment::attempt::{Attempt, AttemptStatus, Event, Holding, LateSuccess};
use payment::id::{GatewayOrderId, OrderId};
use payment::money::Money;
use server::store::rules::claims::{
    Verdict, gateway_of, is_same_window, judge, next_gateway_order_id, opened_before, order_closed,
    takes_window,
};
use server::store::{
    AttemptId, AttemptRecord, Claim, Claimed, Closed, Evidence, NewAttemptRow, Opened,
    OpenedWindow, OrderRecord,
};

use super::Tables;

impl Tables {
    pub(crate) fn open_attempt(&mut self, new: NewAttemptRow) -> Opened {
        let order = self
            .order(&new.order_id)
            .filter(|order| order.owner == new.owner);
        let Some(order) = order else {
            return Opened::Closed(Closed::NotFound);
        };
        if let Some(closed) = order_closed(&order, new.at) {
            return Opened::Closed(closed);
        }
        let is_ready = |record: &&AttemptRecord| record.attempt.status == AttemptStatus::Ready;
        for ready in order.attempts.iter().filter(is_ready) {
            if is_same_window(ready, &new) {
                return Opened::Ready(Box::new(ready.clone()));
            }
            self.expire(ready, new.at);
        }
        let id = next_gateway_order_id(&order, &new.gateway);
        let (at, by_call) = (new.at, new.by_call);
        let made = self.insert(&order, new, id, None);
        if !by_call {
            let evidence = Evidence::plain("shopper", at);
            self.tell(made.id, "window_opened", &evidence);
        }
        Opened::Ready(Box::new(made))
    }

    /// `None` for no such attempt.
    pub(crate) fn keep_window(
        &mut self,
        id: AttemptId,
        opened: OpenedWindow,
    ) -> Option<AttemptRecord> {
        let stored = self.attempt_mut(id)?;
        if takes_window(stored) {
            stored.handle = opened.handle;
            stored.window = Some(opened.window);
            stored.window_until = opened.window_until;
            let evidence = Evidence::plain("shopper", opened.at);
            self.tell(id, "window_opened", &evidence);
        }
        self.attempt(id).cloned()
    }

    fn insert(
        &mut self,
        order: &OrderRecord,
        new: NewAttemptRow,
        gateway_order_id: GatewayOrderId,
        before: Option<&AttemptRecord>,
    ) -> AttemptRecord {
        let record = AttemptRecord {
            id: AttemptId(0),
            order_id: order.id.clone(),
            number: order.attempts.last().map_or(1, |last| last.number + 1),
            gateway: new.gateway,
            gateway_order_id,
            reference: new.reference,
            handle: before.and_then(|before| before.handle.clone()),
            window: before.and_then(|before| before.window.clone()),
            payment_key: None,
            idempotency_key: None,
            attempt: Attempt::new(Money::won(order.amount)),
            cancel_key: None,
            cancel_key_at: None,
            window_until: new.window_until,
            claimed_at: None,
            resent_at: None,
            unknown_since: None,
            ask_at: None,
            asks: 0,
            hint_at: None,
            looks: 0,
            deposit: None,
        };
        let id = self.insert_attempt(record.clone());
        AttemptRecord { id, ..record }
    }

    /// The order of a gateway order id, if it is the claimer's.
    pub(crate) fn find_order(&self, claim: &Claim) -> Option<OrderRecord> {
        let under_id = self.index.of_gateway_order.get(&claim.gateway_order_id);
        let id = match under_id {
            Some(row) => self.attempts[*row].order_id.clone(),
            None => OrderId::parse(claim.gateway_order_id.as_str()).ok()?,
        };
        self.order(&id).filter(|order| order.owner == claim.owner)
    }

    pub(crate) fn claim(&mut self, claim: &Claim) -> Claimed {
        let Some(order) = self.find_order(claim) else {
            return Claimed::Closed(Closed::NotFound);
        };
        let gateway = gateway_of(&order, claim).clone();
        let key = (gateway.clone(), claim.payment_key.clone());
        if self.keys.get(&key).is_some_and(|owner| *owner != order.id) {
            return Claimed::KeyUsed;
        }
        let ready = match judge(&order, claim) {
            Verdict::Answer(answer) => return answer,
            Verdict::Take(ready) if ready.window_until <= claim.at => {
                self.expire(&ready, claim.at);
                return Claimed::Closed(Closed::AttemptExpired);
            }
            Verdict::Take(ready) => Some(*ready),
            Verdict::Make => None,
        };
        // The stock first: nothing is changed where there is none.
        if !self.move_stock(&order.id, Holding::Nothing, Holding::Reserved) {
            return Claimed::OutOfStock;
        }
        let taken = match ready {
            Some(ready) => ready,
            None => {
                let new = NewAttemptRow {
                    order_id: order.id.clone(),
                    owner: claim.owner.clone(),
                    gateway,
                    by_call: false,
                    left: None,
                    reference: claim.reference.clone(),
                    at: claim.at,
                    window_until: claim.at,
                };
                let before = opened_before(&order, claim);
                self.insert(&order, new, claim.gateway_order_id.clone(), before)
            }
        };
        self.keys.entry(key).or_insert_with(|| order.id.clone());
        self.take(&taken, claim)
    }

    fn take(&mut self, taken: &AttemptRecord, claim: &Claim) -> Claimed {
        self.beside.entry(taken.id).or_default().node = Some(claim.node.clone());
        if let Some(record) = self.attempt_mut(taken.id) {
            record.payment_key = Some(claim.payment_key.clone());
            record.idempotency_key = Some(claim.idempotency_key.clone());
            record.claimed_at = Some(claim.at);
        }
        let step = taken.attempt.apply(Event::Claimed, LateSuccess::Cancel);
        self.save_attempt(taken.id, step.next, claim.at, None);
        let evidence = Evidence::plain("confirm", claim.at);
        self.tell(taken.id, "claimed", &evidence);
        let order = self.order(&taken.order_id).map(Box::new);
        let attempt = self.attempt(taken.id).cloned().map(Box::new);
        match (order, attempt) {
            (Some(order), Some(attempt)) => Claimed::Granted { order, attempt },
            _ => Claimed::Closed(Closed::NotFound),
        }
    }

    /// A planted bug: the claim of a payment that is claimed already, granted once more under a key of its own.
    pub(crate) fn claim_again(&mut self, attempt: &AttemptRecord, claim: &Claim) -> Claimed {
        let again = AttemptRecord {
            idempotency_key: Some(claim.idempotency_key.clone()),
            ..attempt.clone()
        };
        match self.order(&attempt.order_id) {
            Some(order) => Claimed::Granted {
                order: Box::new(order),
                attempt: Box::new(again),
            },
            None => Claimed::Closed(Closed::NotFound),
        }
    }
}
