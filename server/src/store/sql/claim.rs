//! Opening and claiming attempts: what an order allows, decided under its lock.

use async_trait::async_trait;
use payment::attempt::{AttemptStatus, Event, Holding, LateSuccess};
use payment::id::{GatewayHandle, GatewayName, GatewayOrderId, OrderId};

use super::engine::{Columns, Engine, Lock, Sql, Statement, ran_at, values};
use super::group::{Change, Done};
use super::record::{add_evidence, adding_evidence, lock, saving_attempt};
use super::rows;
use super::rows::attempt_columns;
use super::stock::{counting_short, is_none_short, moving, was_moved};
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
        return Ok(Done::Nothing(Opened::Closed(Closed::NotFound)));
    };
    if let Some(closed) = order_closed(&order, new.at) {
        return Ok(Done::Nothing(Opened::Closed(closed)));
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
    let after = AttemptRecord {
        attempt: step.next,
        ..ready.clone()
    };
    let evidence = Evidence::plain("clock", at);
    db.run(&[
        saving_attempt(ready, &step.next, at, None),
        adding_evidence(&after, "window_closed", &evidence, step.why),
    ])
    .await?;
    Ok(())
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
    let Found {
        order,
        key_owners,
        enough,
    } = found(db, claim).await?;
    let Some(order) = order else {
        return Ok(Done::Nothing(Claimed::Closed(Closed::NotFound)));
    };
    if is_of_other_order(&order, claim, &key_owners) {
        return Ok(Done::Nothing(Claimed::KeyUsed));
    }
    let taken = match judge(&order, claim) {
        Verdict::Answer(answer) => return Ok(Done::Nothing(answer)),
        Verdict::Take(ready) if ready.window_until <= claim.at => {
            expire(db, &ready, claim.at).await?;
            return Ok(Done::Keep(Claimed::Closed(Closed::AttemptExpired)));
        }
        // Where others write at the same time it is looked at again below, locked.
        Verdict::Take(_) | Verdict::Make if !enough => {
            return Ok(Done::Nothing(Claimed::OutOfStock));
        }
        Verdict::Take(ready) => *ready,
        Verdict::Make => make(db, &order, claim).await?,
    };
    take(db, &order, &taken, claim).await
}

/// Claims an attempt that may be claimed.
async fn take<C: Sql>(
    db: &mut C,
    order: &OrderRecord,
    taken: &AttemptRecord,
    claim: &Claim,
) -> Result<Done<Claimed>, StoreError> {
    let step = taken.attempt.apply(Event::Claimed, LateSuccess::Cancel);
    let evidence = Evidence::plain("confirm", claim.at);
    let claimed = AttemptRecord {
        attempt: step.next,
        ..taken.clone()
    };
    let mut statements = vec![
        taking_key(taken, claim),
        saving_claim(taken.id, claim),
        saving_attempt(taken, &step.next, claim.at, None),
        adding_evidence(&claimed, "claimed", &evidence, "claimed by a confirm"),
        rows::reading(&order.id),
    ];
    // The stock last: other orders wait for it, so it is held for the shortest time.
    statements.extend(moving::<C>(&order.id, Holding::Nothing, Holding::Reserved));
    let ran = db.run(&statements).await?;
    // Another order's claim of the same key may have been committed since it was looked up.
    if ran_at(&ran, 0)?.changed == 0 {
        let owners = db.run(&[key_owners(claim)]).await?;
        if is_of_other_order(order, claim, &key_rows(&ran_at(&owners, 0)?.rows)?) {
            return Ok(Done::Undo(Claimed::KeyUsed));
        }
    }
    let reserved = ran.last().map_or(0, |ran| ran.changed);
    if !was_moved(db, &order.id, reserved).await? {
        return Ok(Done::Undo(Claimed::OutOfStock));
    }
    let (order, attempt) = with_attempt(rows::whole_order(&ran_at(&ran, 4)?.rows)?, taken.id)?;
    Ok(Done::Keep(Claimed::Granted {
        order: Box::new(order),
        attempt: Box::new(attempt),
    }))
}

/// An order that was read, and one of its attempts.
pub(super) fn with_attempt(
    order: Option<OrderRecord>,
    attempt: AttemptId,
) -> Result<(OrderRecord, AttemptRecord), StoreError> {
    let order = order.ok_or(StoreError::Corrupt {
        what: "order that changed",
    })?;
    let attempt = order.attempts.iter().find(|record| record.id == attempt);
    let attempt = attempt.cloned().ok_or(StoreError::Corrupt {
        what: "attempt that changed",
    })?;
    Ok((order, attempt))
}

/// An order and one of its attempts as they are now.
pub(super) async fn read_back<C: Sql>(
    db: &mut C,
    order: &OrderId,
    attempt: AttemptId,
) -> Result<(OrderRecord, AttemptRecord), StoreError> {
    with_attempt(rows::order(db, order).await?, attempt)
}

/// A gateway under which a payment key was claimed, and by which order.
type KeyOwner = (GatewayName, OrderId);

/// What a claim finds.
struct Found {
    /// The order that it names, if it is the claimer's.
    order: Option<OrderRecord>,
    /// Who owns its payment key.
    key_owners: Vec<KeyOwner>,
    /// Whether there is enough of everything on the shelf.
    enough: bool,
}

/// The order that a claim names, locked and then read, and what else decides.
async fn found<C: Sql>(db: &mut C, claim: &Claim) -> Result<Found, StoreError> {
    db.lock(Lock::OrderNamed(&claim.gateway_order_id)).await?;
    db.lock(Lock::AttemptsNamed(&claim.gateway_order_id))
        .await?;
    let reading = rows::reading_named(&claim.gateway_order_id);
    let short = counting_short(&claim.gateway_order_id);
    let ran = db.run(&[reading, key_owners(claim), short]).await?;
    let order = rows::whole_order(&ran_at(&ran, 0)?.rows)?;
    Ok(Found {
        order: order.filter(|order| order.owner == claim.owner),
        key_owners: key_rows(&ran_at(&ran, 1)?.rows)?,
        enough: is_none_short(&ran_at(&ran, 2)?.rows)?,
    })
}

/// The statement that reads who owns a payment key, under every gateway that the claim may mean.
fn key_owners(claim: &Claim) -> Statement<'_> {
    let sql = "-- key_owners\nSELECT gateway, order_id FROM payment_keys WHERE payment_key = $1 AND gateway IN \
               (SELECT gateway FROM attempts WHERE gateway_order_id = $2 UNION ALL SELECT CAST($3 AS TEXT))";
    let values = values![
        claim.payment_key.as_str(),
        claim.gateway_order_id.as_str(),
        claim.gateway.as_str(),
    ];
    Statement::new("looking up a payment key", sql, values)
}

fn key_rows<R: Columns>(rows: &[R]) -> Result<Vec<KeyOwner>, StoreError> {
    let owner = |row: &R| {
        let gateway = rows::gateway(row.text("gateway")?)?;
        Ok((gateway, rows::order_id(row.text("order_id")?)?))
    };
    rows.iter().map(owner).collect()
}

fn is_of_other_order(order: &OrderRecord, claim: &Claim, owners: &[KeyOwner]) -> bool {
    let gateway = gateway_of(order, claim);
    owners
        .iter()
        .any(|(of, owner)| of == gateway && *owner != order.id)
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

/// The statement that binds a payment key to its order for ever; it changes nothing when the key was bound already.
fn taking_key<'a>(taken: &'a AttemptRecord, claim: &'a Claim) -> Statement<'a> {
    let sql = "-- claim_key\nINSERT INTO payment_keys (gateway, payment_key, order_id) VALUES ($1, $2, $3) \
               ON CONFLICT DO NOTHING";
    let values = values![
        taken.gateway.as_str(),
        claim.payment_key.as_str(),
        taken.order_id.as_str(),
    ];
    Statement::new("claiming a payment key", sql, values)
}

fn saving_claim(id: AttemptId, claim: &Claim) -> Statement<'_> {
    let sql = "-- claim\nUPDATE attempts SET payment_key = $2, idempotency_key = $3, claimed_at = $4, node = $5 \
               WHERE id = $1";
    let values = values![
        id.0,
        claim.payment_key.as_str(),
        claim.idempotency_key.as_str(),
        claim.at,
        claim.node.as_str(),
    ];
    Statement::new("claiming an attempt", sql, values)
}
