//! Opening and claiming attempts: what an order allows, decided under its lock.

use async_trait::async_trait;
use payment::attempt::{AttemptStatus, Event, Holding, LateSuccess};
use payment::id::{GatewayHandle, GatewayOrderId, OrderId};

use super::engine::{Columns as _, Engine, Lock, Sql, values};
use super::group::{Change, Done};
use super::record::{add_evidence, lock, save_attempt};
use super::rows;
use super::rows::attempt_columns;
use super::stock::move_stock;
use crate::clock::EpochMs;
use crate::store::rules::claims::{
    Verdict, gateway_of, is_same_window, judge, next_gateway_order_id, opened_before, order_closed,
    takes_window,
};
use crate::store::{
    AttemptId, AttemptRecord, Claim, Claimed, Closed, Evidence, NewAttemptRow, Opened,
    OpenedWindow, OrderRecord, Owner, StoreError,
};

/// An order of this shopper, locked and then read: what it allows stays so until the transaction ends.
async fn locked_order<C: Sql>(
    db: &mut C,
    id: &OrderId,
    owner: &Owner,
) -> Result<Option<OrderRecord>, StoreError> {
    db.lock(Lock::Order(id)).await?;
    db.lock(Lock::Attempts(id)).await?;
    let order = rows::order(db, id).await?;
    Ok(order.filter(|order| order.owner == *owner))
}

#[async_trait]
impl<D: Engine> Change<D> for NewAttemptRow {
    type Answer = Opened;
    const DOING: &'static str = "opening an attempt";

    async fn make(&self, db: &mut D::Connection) -> Result<Done<Opened>, StoreError> {
        open_attempt(db, self).await
    }
}

/// The ready attempt of an order, made if there is none.
async fn open_attempt<C: Sql>(db: &mut C, new: &NewAttemptRow) -> Result<Done<Opened>, StoreError> {
    let Some(order) = locked_order(db, &new.order_id, &new.owner).await? else {
        return Ok(Done::Undo(Opened::Closed(Closed::NotFound)));
    };
    if let Some(closed) = order_closed(&order, new.at) {
        return Ok(Done::Undo(Opened::Closed(closed)));
    }
    for ready in order
        .attempts
        .iter()
        .filter(|record| record.attempt.status == AttemptStatus::Ready)
    {
        if is_same_window(ready, new) {
            return Ok(Done::Undo(Opened::Ready(Box::new(ready.clone()))));
        }
        expire(db, ready, new.at).await?;
    }
    let id = next_gateway_order_id(&order, &new.gateway);
    let made = insert(db, &order, new, &id, None).await?;
    if !new.by_call {
        say_opened(db, &made, new.at).await?;
    }
    Ok(Done::Keep(Opened::Ready(Box::new(made))))
}

async fn say_opened<C: Sql>(
    db: &mut C,
    opened: &AttemptRecord,
    at: EpochMs,
) -> Result<(), StoreError> {
    let evidence = Evidence::plain("shopper", at);
    let why = "a payment window was opened";
    add_evidence(db, opened, "window_opened", &evidence, why).await
}

/// A window that was opened for an attempt.
pub(super) struct WindowOf(pub(super) AttemptId, pub(super) OpenedWindow);

#[async_trait]
impl<D: Engine> Change<D> for WindowOf {
    type Answer = AttemptRecord;
    const DOING: &'static str = "keeping a payment window";

    async fn make(&self, db: &mut D::Connection) -> Result<Done<AttemptRecord>, StoreError> {
        keep_window(db, self.0, &self.1).await.map(Done::Keep)
    }
}

/// Stores where the window of a ready attempt was opened.
async fn keep_window<C: Sql>(
    db: &mut C,
    id: AttemptId,
    opened: &OpenedWindow,
) -> Result<AttemptRecord, StoreError> {
    let (_, stored) = lock(db, id).await?;
    if !takes_window(&stored) {
        return Ok(stored);
    }
    let sql = "-- keep_window\nUPDATE attempts SET handle = $2, window_desktop = $3, window_mobile = $4, \
               window_until = $5 WHERE id = $1";
    let values = values![
        id.0,
        opened.handle.as_ref().map(GatewayHandle::as_str),
        opened.window.desktop.as_str(),
        opened.window.mobile.as_str(),
        opened.window_until,
    ];
    db.execute("keeping a payment window", sql, values).await?;
    let (_, kept) = read_back(db, &stored.order_id, id).await?;
    say_opened(db, &kept, opened.at).await?;
    Ok(kept)
}

/// Makes an attempt; one for a payment that was opened before goes on with its window.
async fn insert<C: Sql>(
    db: &mut C,
    order: &OrderRecord,
    new: &NewAttemptRow,
    gateway_order_id: &GatewayOrderId,
    before: Option<&AttemptRecord>,
) -> Result<AttemptRecord, StoreError> {
    let doing = "making an attempt";
    let number = order.attempts.last().map_or(1, |last| last.number + 1);
    let sql = concat!(
        "-- insert_attempt\nINSERT INTO attempts (order_id, number, gateway, gateway_order_id, reference, status, reach, \
         amount_won, created_at, window_until, handle, window_desktop, window_mobile) \
         VALUES ($1, $2, $3, $4, $5, 'ready', 'not_sent', $6, $7, $8, $9, $10, $11) RETURNING ",
        attempt_columns!()
    );
    let window = before.and_then(|before| before.window.as_ref());
    let handle = before.and_then(|before| before.handle.as_ref());
    let values = values![
        order.id.as_str(),
        number,
        new.gateway.as_str(),
        gateway_order_id.as_str(),
        new.reference.as_str(),
        order.amount.get(),
        new.at,
        new.window_until,
        handle.map(GatewayHandle::as_str),
        window.map(|window| window.desktop.as_str()),
        window.map(|window| window.mobile.as_str()),
    ];
    let made = db.row(doing, sql, values).await?;
    let made = made.ok_or(StoreError::Corrupt {
        what: "new attempt",
    })?;
    rows::attempt_record(&made)
}

async fn expire<C: Sql>(db: &mut C, ready: &AttemptRecord, at: EpochMs) -> Result<(), StoreError> {
    let step = ready
        .attempt
        .apply(Event::WindowClosed, LateSuccess::Cancel);
    save_attempt(db, ready, &step.next, at, None).await?;
    let after = AttemptRecord {
        attempt: step.next,
        ..ready.clone()
    };
    let evidence = Evidence::plain("clock", at);
    add_evidence(db, &after, "window_closed", &evidence, step.why).await
}

#[async_trait]
impl<D: Engine> Change<D> for Claim {
    type Answer = Claimed;
    const DOING: &'static str = "claiming an attempt";

    async fn make(&self, db: &mut D::Connection) -> Result<Done<Claimed>, StoreError> {
        claim(db, self).await
    }
}

/// Checks and claims in one transaction.
async fn claim<C: Sql>(db: &mut C, claim: &Claim) -> Result<Done<Claimed>, StoreError> {
    let Some(order) = find_order(db, claim).await? else {
        return Ok(Done::Undo(Claimed::Closed(Closed::NotFound)));
    };
    if key_of_other_order(db, &order, claim).await? {
        return Ok(Done::Undo(Claimed::KeyUsed));
    }
    let taken = match judge(&order, claim) {
        Verdict::Answer(answer) => return Ok(Done::Undo(answer)),
        Verdict::Take(ready) if ready.window_until <= claim.at => {
            expire(db, &ready, claim.at).await?;
            return Ok(Done::Keep(Claimed::Closed(Closed::AttemptExpired)));
        }
        Verdict::Take(ready) => *ready,
        Verdict::Make => make(db, &order, claim).await?,
    };
    // Another order's claim of the same key may have been committed since it was looked up.
    if !take_key(db, &taken, claim).await? && key_of_other_order(db, &order, claim).await? {
        return Ok(Done::Undo(Claimed::KeyUsed));
    }
    save_claim(db, taken.id, claim).await?;
    let step = taken.attempt.apply(Event::Claimed, LateSuccess::Cancel);
    save_attempt(db, &taken, &step.next, claim.at, None).await?;
    let (order, attempt) = read_back(db, &order.id, taken.id).await?;
    let evidence = Evidence::plain("confirm", claim.at);
    let why = "claimed by a confirm";
    add_evidence(db, &attempt, "claimed", &evidence, why).await?;
    // The stock last: other orders wait for it, so it is held for the shortest time.
    if !move_stock(db, &order.id, Holding::Nothing, Holding::Reserved).await? {
        return Ok(Done::Undo(Claimed::OutOfStock));
    }
    Ok(Done::Keep(Claimed::Granted {
        order: Box::new(order),
        attempt: Box::new(attempt),
    }))
}

/// An order and one of its attempts as they are now.
pub(super) async fn read_back<C: Sql>(
    db: &mut C,
    order: &OrderId,
    attempt: AttemptId,
) -> Result<(OrderRecord, AttemptRecord), StoreError> {
    let order = rows::order(db, order).await?.ok_or(StoreError::Corrupt {
        what: "order that changed",
    })?;
    let attempt = order.attempts.iter().find(|record| record.id == attempt);
    let attempt = attempt.cloned().ok_or(StoreError::Corrupt {
        what: "attempt that changed",
    })?;
    Ok((order, attempt))
}

/// The order of a gateway order id: looked up, never parsed out of it; an order's own id is its first one.
async fn find_order<C: Sql>(db: &mut C, claim: &Claim) -> Result<Option<OrderRecord>, StoreError> {
    let attempts = rows::attempts_by_gateway_order(db, &claim.gateway_order_id).await?;
    let id = match attempts.first() {
        Some(record) => Some(record.order_id.clone()),
        None => OrderId::parse(claim.gateway_order_id.as_str()).ok(),
    };
    let Some(id) = id else { return Ok(None) };
    locked_order(db, &id, &claim.owner).await
}

async fn key_of_other_order<C: Sql>(
    db: &mut C,
    order: &OrderRecord,
    claim: &Claim,
) -> Result<bool, StoreError> {
    let sql =
        "-- key_owner\nSELECT order_id FROM payment_keys WHERE gateway = $1 AND payment_key = $2";
    let values = values![
        gateway_of(order, claim).as_str(),
        claim.payment_key.as_str()
    ];
    let row = db.row("looking up a payment key", sql, values).await?;
    row.map_or(Ok(false), |row| {
        Ok(row.text("order_id")? != order.id.as_str())
    })
}

async fn make<C: Sql>(
    db: &mut C,
    order: &OrderRecord,
    claim: &Claim,
) -> Result<AttemptRecord, StoreError> {
    let new = NewAttemptRow {
        order_id: order.id.clone(),
        owner: claim.owner.clone(),
        gateway: gateway_of(order, claim).clone(),
        by_call: false,
        left: None,
        reference: claim.reference.clone(),
        at: claim.at,
        // It is claimed in this very transaction.
        window_until: claim.at,
    };
    let before = opened_before(order, claim);
    insert(db, order, &new, &claim.gateway_order_id, before).await
}

/// Binds a payment key to its order for ever; false when it was bound already.
async fn take_key<C: Sql>(
    db: &mut C,
    taken: &AttemptRecord,
    claim: &Claim,
) -> Result<bool, StoreError> {
    let sql = "-- claim_key\nINSERT INTO payment_keys (gateway, payment_key, order_id) VALUES ($1, $2, $3) \
               ON CONFLICT DO NOTHING";
    let values = values![
        taken.gateway.as_str(),
        claim.payment_key.as_str(),
        taken.order_id.as_str(),
    ];
    let taken = db.execute("claiming a payment key", sql, values).await?;
    Ok(taken == 1)
}

async fn save_claim<C: Sql>(db: &mut C, id: AttemptId, claim: &Claim) -> Result<(), StoreError> {
    let sql = "-- claim\nUPDATE attempts SET payment_key = $2, idempotency_key = $3, claimed_at = $4, node = $5 \
               WHERE id = $1";
    let values = values![
        id.0,
        claim.payment_key.as_str(),
        claim.idempotency_key.as_str(),
        claim.at,
        claim.node.as_str(),
    ];
    db.execute("claiming an attempt", sql, values).await?;
    Ok(())
}
