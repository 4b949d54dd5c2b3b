//! How stored rows become records, and the look-ups that others build on.

use payment::attempt::{Attempt, AttemptStatus, CameFrom};
use payment::id::{
    AttemptReference, GatewayName, GatewayOrderId, IdempotencyKey, OrderId, PaymentKey,
};
use payment::money::{Currency, Money, Won};
use payment::reach::{Reach, Reason};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{FromRow, Row as _, SqliteConnection};

use super::failed;
use crate::clock::EpochMs;
use crate::store::{AttemptId, AttemptRecord, OrderRecord, Owner, StoreError};

/// A statement that selects whole attempts; the tail says which.
macro_rules! select_attempts {
    ($name:literal, $tail:literal) => {
        concat!(
            "-- ",
            $name,
            "\nSELECT id, order_id, number, gateway, gateway_order_id, reference, payment_key, idempotency_key, ",
            "status, reach, reason, amount_won, charged_won, charged_in_won, canceled_won, deposit, void, ",
            "cancel_won, cancel_from, cancel_key, window_until, claimed_at, resent_at, unknown_since, ask_at, asks ",
            "FROM attempts ",
            $tail
        )
    };
}
pub(super) use select_attempts;

fn corrupt(what: &'static str) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(StoreError::Corrupt { what }))
}

/// Reads an amount.
pub(super) fn won(value: i64) -> Result<Won, sqlx::Error> {
    Won::new(value).map_err(|_| corrupt("amount"))
}

fn parsed<T, E>(
    text: &str,
    parse: fn(&str) -> Result<T, E>,
    what: &'static str,
) -> Result<T, sqlx::Error> {
    parse(text).map_err(|_| corrupt(what))
}

/// Reads an order id.
pub(super) fn order_id(text: &str) -> Result<OrderId, sqlx::Error> {
    parsed(text, OrderId::parse, "order id")
}

fn count(value: i64) -> Result<u32, sqlx::Error> {
    u32::try_from(value).map_err(|_| corrupt("count"))
}

fn machine(row: &SqliteRow) -> Result<Attempt, sqlx::Error> {
    let status: &str = row.try_get("status")?;
    let reach: &str = row.try_get("reach")?;
    let reason: Option<&str> = row.try_get("reason")?;
    let charged: Option<i64> = row.try_get("charged_won")?;
    let in_won: Option<i64> = row.try_get("charged_in_won")?;
    let cancel: Option<i64> = row.try_get("cancel_won")?;
    let from: Option<&str> = row.try_get("cancel_from")?;
    let currency = if in_won == Some(1) {
        Currency::Krw
    } else {
        Currency::Other
    };
    let from = from.map(|from| {
        AttemptStatus::parse(from)
            .and_then(CameFrom::of)
            .ok_or_else(|| corrupt("origin"))
    });
    let cancel = match (cancel, from) {
        (Some(amount), Some(from)) => Some((won(amount)?, from?)),
        _ => None,
    };
    Ok(Attempt {
        status: AttemptStatus::parse(status).ok_or_else(|| corrupt("status"))?,
        reach: Reach::parse(reach).ok_or_else(|| corrupt("reach"))?,
        reason: reason
            .map(|name| Reason::parse(name).ok_or_else(|| corrupt("reason")))
            .transpose()?,
        expected: Money::won(won(row.try_get("amount_won")?)?),
        charged: charged
            .map(|amount| won(amount).map(|amount| Money { amount, currency }))
            .transpose()?,
        canceled: won(row.try_get("canceled_won")?)?,
        deposit: row.try_get::<i64, _>("deposit")? == 1,
        void: row.try_get::<i64, _>("void")? == 1,
        cancel,
    })
}

impl FromRow<'_, SqliteRow> for AttemptRecord {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let key: Option<&str> = row.try_get("payment_key")?;
        let idempotency: Option<&str> = row.try_get("idempotency_key")?;
        let cancel_key: Option<&str> = row.try_get("cancel_key")?;
        let keyed = |text: Option<&str>| {
            text.map(|text| parsed(text, IdempotencyKey::parse, "key"))
                .transpose()
        };
        Ok(Self {
            id: AttemptId(row.try_get("id")?),
            order_id: order_id(row.try_get("order_id")?)?,
            number: count(row.try_get("number")?)?,
            gateway: parsed(row.try_get("gateway")?, GatewayName::parse, "gateway")?,
            gateway_order_id: parsed(
                row.try_get("gateway_order_id")?,
                GatewayOrderId::parse,
                "gateway order id",
            )?,
            reference: parsed(
                row.try_get("reference")?,
                AttemptReference::parse,
                "reference",
            )?,
            payment_key: key
                .map(|key| parsed(key, PaymentKey::parse, "payment key"))
                .transpose()?,
            idempotency_key: keyed(idempotency)?,
            attempt: machine(row)?,
            cancel_key: keyed(cancel_key)?,
            window_until: EpochMs(row.try_get("window_until")?),
            claimed_at: row.try_get::<Option<i64>, _>("claimed_at")?.map(EpochMs),
            resent_at: row.try_get::<Option<i64>, _>("resent_at")?.map(EpochMs),
            unknown_since: row.try_get::<Option<i64>, _>("unknown_since")?.map(EpochMs),
            ask_at: row.try_get::<Option<i64>, _>("ask_at")?.map(EpochMs),
            asks: count(row.try_get("asks")?)?,
        })
    }
}

/// One order with its attempts.
pub(super) async fn order(
    db: &mut SqliteConnection,
    id: &OrderId,
) -> Result<Option<OrderRecord>, StoreError> {
    let row = sqlx::query(
        "-- order\nSELECT id, owner, amount_won, created_at, lapsed_at FROM orders WHERE id = ?1",
    )
    .bind(id.as_str())
    .fetch_optional(&mut *db)
    .await
    .map_err(|error| failed("reading an order", error))?;
    let Some(row) = row else { return Ok(None) };
    let attempts = sqlx::query_as(select_attempts!(
        "order_attempts",
        "WHERE order_id = ?1 ORDER BY number"
    ))
    .bind(id.as_str())
    .fetch_all(&mut *db)
    .await
    .map_err(|error| failed("reading an order's attempts", error))?;
    order_record(&row, attempts)
        .map(Some)
        .map_err(|error| failed("reading an order", error))
}

/// An order's row and its attempts as one record.
pub(super) fn order_record(
    row: &SqliteRow,
    attempts: Vec<AttemptRecord>,
) -> Result<OrderRecord, sqlx::Error> {
    Ok(OrderRecord {
        id: order_id(row.try_get("id")?)?,
        owner: Owner(row.try_get("owner")?),
        amount: won(row.try_get("amount_won")?)?,
        created_at: EpochMs(row.try_get("created_at")?),
        lapsed: row.try_get::<Option<i64>, _>("lapsed_at")?.is_some(),
        attempts,
    })
}

/// One attempt.
pub(super) async fn attempt(
    db: &mut SqliteConnection,
    id: AttemptId,
) -> Result<Option<AttemptRecord>, StoreError> {
    sqlx::query_as(select_attempts!("attempt", "WHERE id = ?1"))
        .bind(id.0)
        .fetch_optional(db)
        .await
        .map_err(|error| failed("reading an attempt", error))
}

/// The attempts with a payment key, oldest first.
pub(super) async fn attempts_by_key(
    db: &SqlitePool,
    gateway: &GatewayName,
    key: &PaymentKey,
) -> Result<Vec<AttemptRecord>, StoreError> {
    sqlx::query_as(select_attempts!(
        "attempts_by_key",
        "WHERE gateway = ?1 AND payment_key = ?2 ORDER BY id"
    ))
    .bind(gateway.as_str())
    .bind(key.as_str())
    .fetch_all(db)
    .await
    .map_err(|error| failed("looking up a payment key", error))
}

/// The attempts with a gateway order id, oldest first.
pub(super) async fn attempts_by_gateway_order(
    db: &mut SqliteConnection,
    id: &GatewayOrderId,
) -> Result<Vec<AttemptRecord>, StoreError> {
    sqlx::query_as(select_attempts!(
        "attempts_by_gateway_order",
        "WHERE gateway_order_id = ?1 ORDER BY id"
    ))
    .bind(id.as_str())
    .fetch_all(db)
    .await
    .map_err(|error| failed("looking up a gateway order id", error))
}
