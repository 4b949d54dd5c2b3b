//! Opening and claiming attempts, by the same rules as the databases'.

use payment::attempt::{Attempt, AttemptStatus, Event, Holding, LateSuccess};
use payment::id::{GatewayName, GatewayOrderId, OrderId};
use payment::money::Money;
use payment::order::OrderStatus;
use payment::reach::{Reach, Reason};
use server::clock::EpochMs;
use server::store::{
    AttemptId, AttemptRecord, Claim, Claimed, Closed, Evidence, NewAttemptRow, Opened, OrderRecord,
};

use super::Tables;

/// Whether the order as a whole takes another attempt.
fn order_closed(order: &OrderRecord, now: EpochMs) -> Option<Closed> {
    let busy =
        |record: &AttemptRecord| record.attempt.status.is_open() || record.attempt.holds_money();
    match order.status() {
        OrderStatus::Paid | OrderStatus::PartiallyCanceled => Some(Closed::Paid),
        OrderStatus::Canceled => Some(Closed::Canceled),
        OrderStatus::Expired => Some(Closed::Expired),
        OrderStatus::Pending if order.attempts.iter().any(busy) => Some(Closed::InProgress),
        OrderStatus::Pending if now >= order.expires_at => Some(Closed::Expired),
        OrderStatus::Pending => None,
    }
}

/// The gateway order id for a new payment window: the last one while nothing was sent under it, else a new one.
fn next_gateway_order_id(order: &OrderRecord) -> GatewayOrderId {
    let of = |id: &GatewayOrderId| {
        let id = id.clone();
        order
            .attempts
            .iter()
            .filter(move |record| record.gateway_order_id == id)
    };
    if let Some(last) = order.attempts.last() {
        let id = &last.gateway_order_id;
        if of(id).all(|record| record.attempt.reach == Reach::NotSent) {
            return id.clone();
        }
    }
    let mut ids = (1..).map(|n| order.id.gateway_order_id(n));
    ids.find(|id| of(id).next().is_none())
        .unwrap_or_else(|| order.id.gateway_order_id(1))
}

/// What a claim finds before it changes anything.
enum Verdict {
    Answer(Claimed),
    Take(Box<AttemptRecord>),
    Make,
}

fn judge(order: &OrderRecord, claim: &Claim) -> Verdict {
    if claim.amount != order.amount {
        return Verdict::Answer(Claimed::AmountMismatch);
    }
    let same_key =
        |record: &&AttemptRecord| record.payment_key.as_ref() == Some(&claim.payment_key);
    let mut again = false;
    for record in order.attempts.iter().rev().filter(same_key) {
        match record.attempt.status {
            AttemptStatus::Failed if unprocessed(&record.attempt) => {
                if record.gateway_order_id != claim.gateway_order_id {
                    return Verdict::Answer(Claimed::NewAttemptNeeded);
                }
                again = true;
            }
            AttemptStatus::Canceled if order.status() == OrderStatus::Canceled => {}
            AttemptStatus::Canceled => return Verdict::Answer(Claimed::NewAttemptNeeded),
            _ => {
                return Verdict::Answer(Claimed::Repeated {
                    order: Box::new(order.clone()),
                    attempt: Box::new(record.clone()),
                });
            }
        }
    }
    if let Some(closed) = order_closed(order, claim.at) {
        return Verdict::Answer(Claimed::Closed(closed));
    }
    let under_id: Vec<&AttemptRecord> = order
        .attempts
        .iter()
        .filter(|record| record.gateway_order_id == claim.gateway_order_id)
        .collect();
    if under_id
        .iter()
        .any(|record| record.attempt.reach > Reach::NotSent && !same_key(record))
    {
        return Verdict::Answer(Claimed::NewAttemptNeeded);
    }
    if let Some(ready) = under_id
        .iter()
        .find(|record| record.attempt.status == AttemptStatus::Ready)
    {
        return Verdict::Take(Box::new((*ready).clone()));
    }
    match under_id.last() {
        Some(last) if last.attempt.status == AttemptStatus::Expired && !again => {
            Verdict::Answer(Claimed::Closed(Closed::AttemptExpired))
        }
        _ => Verdict::Make,
    }
}

/// Whether the gateway processed nothing of a failed attempt.
fn unprocessed(attempt: &Attempt) -> bool {
    attempt.reach == Reach::NotSent || attempt.reason == Some(Reason::PgRefused)
}

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
            if ready.window_until > new.at && ready.gateway == new.gateway {
                return Opened::Ready(Box::new(ready.clone()));
            }
            self.expire(ready, new.at);
        }
        let id = next_gateway_order_id(&order);
        let at = new.at;
        let made = self.insert(&order, new, id);
        let evidence = Evidence::plain("shopper", at);
        self.tell(made.id, "window_opened", &evidence);
        Opened::Ready(Box::new(made))
    }

    fn insert(
        &mut self,
        order: &OrderRecord,
        new: NewAttemptRow,
        gateway_order_id: GatewayOrderId,
    ) -> AttemptRecord {
        let record = AttemptRecord {
            id: AttemptId(0),
            order_id: order.id.clone(),
            number: order.attempts.last().map_or(1, |last| last.number + 1),
            gateway: new.gateway,
            gateway_order_id,
            reference: new.reference,
            payment_key: None,
            idempotency_key: None,
            attempt: Attempt::new(Money::won(order.amount)),
            cancel_key: None,
            window_until: new.window_until,
            claimed_at: None,
            resent_at: None,
            unknown_since: None,
            ask_at: None,
            asks: 0,
            looks: 0,
        };
        let id = self.insert_attempt(record.clone());
        AttemptRecord { id, ..record }
    }

    /// The order of a gateway order id, if it is the claimer's.
    pub(crate) fn find_order(&self, claim: &Claim) -> Option<OrderRecord> {
        let under_id = self
            .attempts
            .iter()
            .find(|record| record.gateway_order_id == claim.gateway_order_id);
        let id = match under_id {
            Some(record) => record.order_id.clone(),
            None => OrderId::parse(claim.gateway_order_id.as_str()).ok()?,
        };
        self.order(&id).filter(|order| order.owner == claim.owner)
    }

    pub(crate) fn claim(&mut self, claim: &Claim) -> Claimed {
        let Some(order) = self.find_order(claim) else {
            return Claimed::Closed(Closed::NotFound);
        };
        let gateway = gateway_of(&order, claim);
        let key = (gateway.clone(), claim.payment_key.clone());
        if self.keys.get(&key).is_some_and(|owner| *owner != order.id) {
            return Claimed::KeyUsed;
        }
        let verdict = judge(&order, claim);
        let (taken, made) = match verdict {
            Verdict::Answer(answer) => return answer,
            Verdict::Take(ready) if ready.window_until <= claim.at => {
                self.expire(&ready, claim.at);
                return Claimed::Closed(Closed::AttemptExpired);
            }
            Verdict::Take(ready) => (Some(*ready), false),
            Verdict::Make => (None, true),
        };
        // The stock first: nothing is changed where there is none.
        if !self.move_stock(&order.id, Holding::Nothing, Holding::Reserved) {
            return Claimed::OutOfStock;
        }
        let taken = match taken {
            Some(ready) if !made => ready,
            _ => {
                let new = NewAttemptRow {
                    order_id: order.id.clone(),
                    owner: claim.owner.clone(),
                    gateway,
                    reference: claim.reference.clone(),
                    at: claim.at,
                    window_until: claim.at,
                };
                self.insert(&order, new, claim.gateway_order_id.clone())
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

/// The gateway of a gateway order id: its latest attempt's, else the one a new attempt would get.
fn gateway_of(order: &OrderRecord, claim: &Claim) -> GatewayName {
    let mut same = order.attempts.iter().rev();
    same.find(|record| record.gateway_order_id == claim.gateway_order_id)
        .map_or_else(|| claim.gateway.clone(), |record| record.gateway.clone())
}
