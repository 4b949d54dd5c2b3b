//! Opening and claiming attempts: what an order allows, decided under the write lock.

use payment::attempt::{Attempt, AttemptStatus, Event, Holding, LateSuccess};
use payment::id::{GatewayOrderId, OrderId};
use payment::money::Money;
use payment::order::OrderStatus;
use payment::reach::{Reach, Reason};
use sqlx::Row as _;

use super::record::{add_evidence, move_stock, save_attempt};
use super::rows;
use super::{Tx, commit, failed};
use crate::clock::EpochMs;
use crate::store::{
    AttemptId, AttemptRecord, Claim, Claimed, Closed, Evidence, NewAttemptRow, Opened, OrderRecord,
    StoreError,
};

/// Whether the order as a whole takes another attempt.
fn order_closed(order: &OrderRecord, expires_at: EpochMs, now: EpochMs) -> Option<Closed> {
    match order.status() {
        OrderStatus::Paid | OrderStatus::PartiallyCanceled => Some(Closed::Paid),
        OrderStatus::Canceled => Some(Closed::Canceled),
        OrderStatus::Expired => Some(Closed::Expired),
        OrderStatus::Pending
            if order
                .attempts
                .iter()
                .any(|record| record.attempt.status.is_open() || record.attempt.holds_money()) =>
        {
            Some(Closed::InProgress)
        }
        OrderStatus::Pending if now >= expires_at => Some(Closed::Expired),
        OrderStatus::Pending => None,
    }
}

async fn expires_at(tx: &mut Tx, order: &OrderId) -> Result<EpochMs, StoreError> {
    sqlx::query_scalar("-- expires_at\nSELECT expires_at FROM orders WHERE id = ?1")
        .bind(order.as_str())
        .fetch_one(&mut **tx)
        .await
        .map(EpochMs)
        .map_err(|error| failed("reading an order", error))
}

/// The gateway order id for a new payment window: the last one while nothing was sent under it, else a new one.
fn next_gateway_order_id(order: &OrderRecord) -> GatewayOrderId {
    let sent = |id: &GatewayOrderId| {
        order
            .attempts
            .iter()
            .any(|record| record.gateway_order_id == *id && record.attempt.reach > Reach::NotSent)
    };
    let unsent = order
        .attempts
        .last()
        .map(|record| &record.gateway_order_id)
        .filter(|id| !sent(id));
    if let Some(id) = unsent {
        return id.clone();
    }
    let used = |id: &GatewayOrderId| {
        order
            .attempts
            .iter()
            .any(|record| record.gateway_order_id == *id)
    };
    (1..)
        .map(|n| order.id.gateway_order_id(n))
        .find(|id| !used(id))
        .unwrap_or_else(|| order.id.gateway_order_id(1))
}

/// The ready attempt of an order, made if there is none.
pub(super) async fn open_attempt(mut tx: Tx, new: NewAttemptRow) -> Result<Opened, StoreError> {
    let order = rows::order(&mut tx, &new.order_id).await?;
    let Some(order) = order.filter(|order| order.owner == new.owner) else {
        return Ok(Opened::Closed(Closed::NotFound));
    };
    let expires_at = expires_at(&mut tx, &order.id).await?;
    if let Some(closed) = order_closed(&order, expires_at, new.at) {
        return Ok(Opened::Closed(closed));
    }
    for ready in order
        .attempts
        .iter()
        .filter(|record| record.attempt.status == AttemptStatus::Ready)
    {
        if ready.window_until > new.at && ready.gateway == new.gateway {
            return Ok(Opened::Ready(Box::new(ready.clone())));
        }
        expire(&mut tx, ready, new.at).await?;
    }
    let id = next_gateway_order_id(&order);
    let id = insert(&mut tx, &order, &new, &id).await?;
    let made = rows::attempt(&mut tx, id)
        .await?
        .ok_or(StoreError::Corrupt {
            what: "new attempt",
        })?;
    let evidence = Evidence::plain("shopper", new.at);
    add_evidence(
        &mut tx,
        &made,
        "window_opened",
        &evidence,
        "a payment window was opened",
    )
    .await?;
    commit(tx, "opening an attempt").await?;
    Ok(Opened::Ready(Box::new(made)))
}

async fn insert(
    tx: &mut Tx,
    order: &OrderRecord,
    new: &NewAttemptRow,
    gateway_order_id: &GatewayOrderId,
) -> Result<AttemptId, StoreError> {
    let number = order.attempts.last().map_or(1, |last| last.number + 1);
    sqlx::query(
        "-- insert_attempt\nINSERT INTO attempts (order_id, number, gateway, gateway_order_id, reference, status, reach, \
         amount_won, created_at, window_until) VALUES (?1, ?2, ?3, ?4, ?5, 'ready', 'not_sent', ?6, ?7, ?8) RETURNING id",
    )
    .bind(order.id.as_str())
    .bind(i64::from(number))
    .bind(new.gateway.as_str())
    .bind(gateway_order_id.as_str())
    .bind(new.reference.as_str())
    .bind(order.amount.get())
    .bind(new.at.0)
    .bind(new.window_until.0)
    .fetch_one(&mut **tx)
    .await
    .and_then(|row| row.try_get("id"))
    .map(AttemptId)
    .map_err(|error| failed("making an attempt", error))
}

async fn expire(tx: &mut Tx, ready: &AttemptRecord, at: EpochMs) -> Result<(), StoreError> {
    let step = ready
        .attempt
        .apply(Event::WindowClosed, LateSuccess::Cancel);
    save_attempt(tx, ready, &step.next, at, None).await?;
    let after = AttemptRecord {
        attempt: step.next,
        ..ready.clone()
    };
    let evidence = Evidence::plain("clock", at);
    add_evidence(tx, &after, "window_closed", &evidence, step.why).await
}

/// What a claim finds before it changes anything.
enum Verdict {
    Answer(Claimed),
    /// Claim this ready attempt.
    Take(Box<AttemptRecord>),
    /// Nothing is ready: make an attempt.
    Make,
}

/// Checks and claims in one committed transaction.
pub(super) async fn claim(mut tx: Tx, claim: Claim) -> Result<Claimed, StoreError> {
    let Some(order) = find_order(&mut tx, &claim).await? else {
        return Ok(Claimed::Closed(Closed::NotFound));
    };
    let expires_at = expires_at(&mut tx, &order.id).await?;
    if key_of_other_order(&mut tx, &order, &claim).await? {
        return Ok(Claimed::KeyUsed);
    }
    let taken = match judge(&order, expires_at, &claim) {
        Verdict::Answer(answer) => return Ok(answer),
        Verdict::Take(ready) if ready.window_until <= claim.at => {
            expire(&mut tx, &ready, claim.at).await?;
            commit(tx, "ending an attempt").await?;
            return Ok(Claimed::Closed(Closed::AttemptExpired));
        }
        Verdict::Take(ready) => *ready,
        Verdict::Make => make(&mut tx, &order, &claim).await?,
    };
    let claimed = Attempt {
        ..taken
            .attempt
            .apply(Event::Claimed, LateSuccess::Cancel)
            .next
    };
    if !move_stock(&mut tx, &order.id, Holding::Nothing, Holding::Reserved).await? {
        return Ok(Claimed::OutOfStock);
    }
    save_claim(&mut tx, &taken, &claim).await?;
    save_attempt(&mut tx, &taken, &claimed, claim.at, None).await?;
    let attempt = rows::attempt(&mut tx, taken.id)
        .await?
        .ok_or(StoreError::Corrupt {
            what: "claimed attempt",
        })?;
    let evidence = Evidence::plain("confirm", claim.at);
    add_evidence(
        &mut tx,
        &attempt,
        "claimed",
        &evidence,
        "claimed by a confirm",
    )
    .await?;
    let order = rows::order(&mut tx, &order.id)
        .await?
        .ok_or(StoreError::Corrupt {
            what: "claimed order",
        })?;
    commit(tx, "claiming an attempt").await?;
    Ok(Claimed::Granted {
        order: Box::new(order),
        attempt: Box::new(attempt),
    })
}

/// The order of a gateway order id: looked up, never parsed out of it; an order's own id is its first one.
async fn find_order(tx: &mut Tx, claim: &Claim) -> Result<Option<OrderRecord>, StoreError> {
    let attempts = rows::attempts_by_gateway_order(tx, &claim.gateway_order_id).await?;
    let id = match attempts.first() {
        Some(record) => Some(record.order_id.clone()),
        None => OrderId::parse(claim.gateway_order_id.as_str()).ok(),
    };
    let Some(id) = id else { return Ok(None) };
    Ok(rows::order(tx, &id)
        .await?
        .filter(|order| order.owner == claim.owner))
}

async fn key_of_other_order(
    tx: &mut Tx,
    order: &OrderRecord,
    claim: &Claim,
) -> Result<bool, StoreError> {
    let gateway = gateway_of(order, claim);
    let owner: Option<String> = sqlx::query_scalar(
        "-- key_owner\nSELECT order_id FROM payment_keys WHERE gateway = ?1 AND payment_key = ?2",
    )
    .bind(gateway)
    .bind(claim.payment_key.as_str())
    .fetch_optional(&mut **tx)
    .await
    .map_err(|error| failed("looking up a payment key", error))?;
    Ok(owner.is_some_and(|owner| owner != order.id.as_str()))
}

/// The gateway of a gateway order id: its latest attempt's, else the one a new attempt would get.
fn gateway_of<'a>(order: &'a OrderRecord, claim: &'a Claim) -> &'a str {
    let same = order
        .attempts
        .iter()
        .rev()
        .find(|record| record.gateway_order_id == claim.gateway_order_id);
    same.map_or(claim.gateway.as_str(), |record| record.gateway.as_str())
}

fn judge(order: &OrderRecord, expires_at: EpochMs, claim: &Claim) -> Verdict {
    if claim.amount != order.amount {
        return Verdict::Answer(Claimed::AmountMismatch);
    }
    let under_id: Vec<&AttemptRecord> = order
        .attempts
        .iter()
        .filter(|record| record.gateway_order_id == claim.gateway_order_id)
        .collect();
    let same_key = order
        .attempts
        .iter()
        .filter(|record| record.payment_key.as_ref() == Some(&claim.payment_key));
    let repeated = |record: &AttemptRecord| {
        Verdict::Answer(Claimed::Repeated {
            order: Box::new(order.clone()),
            attempt: Box::new(record.clone()),
        })
    };
    let mut again = false;
    for record in same_key.rev() {
        match record.attempt.status {
            // Nothing of it was processed: the same payment may be confirmed by a new attempt, under the same id.
            AttemptStatus::Failed if unprocessed(&record.attempt) => {
                if record.gateway_order_id != claim.gateway_order_id {
                    return Verdict::Answer(Claimed::NewAttemptNeeded);
                }
                again = true;
            }
            AttemptStatus::Canceled if order.status() == OrderStatus::Canceled => {}
            AttemptStatus::Canceled => return Verdict::Answer(Claimed::NewAttemptNeeded),
            _ => return repeated(record),
        }
    }
    if let Some(closed) = order_closed(order, expires_at, claim.at) {
        return Verdict::Answer(Claimed::Closed(closed));
    }
    let bound = |record: &&&AttemptRecord| {
        record.attempt.reach > Reach::NotSent
            && record.payment_key.as_ref() != Some(&claim.payment_key)
    };
    if under_id.iter().find(bound).is_some() {
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

/// Whether the gateway processed nothing of a failed attempt: its key and gateway order id may be used again.
fn unprocessed(attempt: &Attempt) -> bool {
    attempt.reach == Reach::NotSent || attempt.reason == Some(Reason::PgRefused)
}

async fn make(
    tx: &mut Tx,
    order: &OrderRecord,
    claim: &Claim,
) -> Result<AttemptRecord, StoreError> {
    let gateway = payment::id::GatewayName::parse(gateway_of(order, claim))
        .map_err(|_| StoreError::Corrupt { what: "gateway" })?;
    let new = NewAttemptRow {
        order_id: order.id.clone(),
        owner: claim.owner.clone(),
        gateway,
        reference: claim.reference.clone(),
        at: claim.at,
        // It is claimed in this very transaction.
        window_until: claim.at,
    };
    let id = insert(tx, order, &new, &claim.gateway_order_id).await?;
    rows::attempt(tx, id).await?.ok_or(StoreError::Corrupt {
        what: "new attempt",
    })
}

async fn save_claim(tx: &mut Tx, taken: &AttemptRecord, claim: &Claim) -> Result<(), StoreError> {
    debug_assert_eq!(taken.attempt.expected, Money::won(claim.amount));
    let doing = "claiming an attempt";
    sqlx::query(
        "-- claim_key\nINSERT INTO payment_keys (gateway, payment_key, order_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )
    .bind(taken.gateway.as_str())
    .bind(claim.payment_key.as_str())
    .bind(taken.order_id.as_str())
    .execute(&mut **tx)
    .await
    .map_err(|error| failed(doing, error))?;
    sqlx::query(
        "-- claim\nUPDATE attempts SET payment_key = ?2, idempotency_key = ?3, claimed_at = ?4 WHERE id = ?1",
    )
    .bind(taken.id.0)
    .bind(claim.payment_key.as_str())
    .bind(claim.idempotency_key.as_str())
    .bind(claim.at.0)
    .execute(&mut **tx)
    .await
    .map(|_| ())
    .map_err(|error| failed(doing, error))
}
