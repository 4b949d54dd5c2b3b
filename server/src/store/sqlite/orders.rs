//! The shelf, orders and their lists.

use std::collections::HashMap;

use payment::id::{OrderId, Sku};
use payment::money::Won;
use sqlx::sqlite::SqlitePool;
use sqlx::{Row as _, SqliteConnection};

use super::rows::{order_record, select_attempts, won};
use super::{Tx, commit, failed};
use crate::clock::EpochMs;
use crate::store::{
    AttemptRecord, EvidenceRow, LineRow, NewOrderRow, OrderMade, OrderRecord, Owner, ProductRow,
    StoreError,
};

/// The shelf.
pub(super) async fn products(db: &SqlitePool) -> Result<Vec<ProductRow>, StoreError> {
    let rows = sqlx::query(
        "-- products\nSELECT sku, name_ko, name_en, blurb_ko, blurb_en, price_won, total - reserved - sold AS free \
         FROM products ORDER BY position",
    )
    .fetch_all(db)
    .await
    .map_err(|error| failed("reading the shelf", error))?;
    rows.iter()
        .map(product)
        .collect::<Result<_, _>>()
        .map_err(|error| failed("reading the shelf", error))
}

fn sku(text: &str) -> Result<Sku, sqlx::Error> {
    Sku::parse(text).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

fn product(row: &sqlx::sqlite::SqliteRow) -> Result<ProductRow, sqlx::Error> {
    Ok(ProductRow {
        sku: sku(row.try_get("sku")?)?,
        name: [row.try_get("name_ko")?, row.try_get("name_en")?],
        blurb: [row.try_get("blurb_ko")?, row.try_get("blurb_en")?],
        price: won(row.try_get("price_won")?)?,
        available: u64::try_from(row.try_get::<i64, _>("free")?).unwrap_or(0),
    })
}

/// Makes an order at the shelf's prices.
pub(super) async fn make_order(mut tx: Tx, order: NewOrderRow) -> Result<OrderMade, StoreError> {
    let mut sum = Won::ZERO;
    let mut prices = Vec::with_capacity(order.items.len());
    for (sku, quantity) in &order.items {
        let row = sqlx::query(
            "-- make_order_price\nSELECT price_won, total - reserved - sold AS free FROM products WHERE sku = ?1",
        )
        .bind(sku.as_str())
        .fetch_optional(&mut *tx)
        .await
        .map_err(|error| failed("pricing an order", error))?;
        let Some(row) = row else {
            return Ok(OrderMade::UnknownSku(sku.clone()));
        };
        let read = |name| {
            row.try_get::<i64, _>(name)
                .map_err(|error| failed("pricing an order", error))
        };
        if read("free")? < i64::from(*quantity) {
            return Ok(OrderMade::OutOfStock(sku.clone()));
        }
        let price = won(read("price_won")?).map_err(|error| failed("pricing an order", error))?;
        let Some(total) = price.times(*quantity).and_then(|line| sum.plus(line)) else {
            return Ok(OrderMade::TooMuch);
        };
        sum = total;
        prices.push(price);
    }
    insert_order(&mut tx, &order, sum, &prices)
        .await
        .map_err(|error| failed("storing an order", error))?;
    commit(tx, "storing an order").await?;
    Ok(OrderMade::Made(sum))
}

async fn insert_order(
    tx: &mut Tx,
    order: &NewOrderRow,
    sum: Won,
    prices: &[Won],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "-- make_order\nINSERT INTO orders (id, owner, amount_won, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(order.id.as_str())
    .bind(&order.owner.0)
    .bind(sum.get())
    .bind(order.at.0)
    .bind(order.expires_at.0)
    .execute(&mut **tx)
    .await?;
    for ((sku, quantity), price) in order.items.iter().zip(prices) {
        sqlx::query(
            "-- make_order_line\nINSERT INTO order_lines (order_id, sku, quantity, price_won) VALUES (?1, ?2, ?3, ?4)",
        )
        .bind(order.id.as_str())
        .bind(sku.as_str())
        .bind(i64::from(*quantity))
        .bind(price.get())
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// The lines of an order.
pub(super) async fn lines(db: &SqlitePool, id: &OrderId) -> Result<Vec<LineRow>, StoreError> {
    let rows = sqlx::query(
        "-- lines\nSELECT l.sku, p.name_ko, p.name_en, l.quantity, l.price_won FROM order_lines l \
         JOIN products p ON p.sku = l.sku WHERE l.order_id = ?1 ORDER BY p.position",
    )
    .bind(id.as_str())
    .fetch_all(db)
    .await
    .map_err(|error| failed("reading an order's lines", error))?;
    let line = |row: &sqlx::sqlite::SqliteRow| {
        Ok::<_, sqlx::Error>(LineRow {
            sku: sku(row.try_get("sku")?)?,
            name: [row.try_get("name_ko")?, row.try_get("name_en")?],
            quantity: u32::try_from(row.try_get::<i64, _>("quantity")?).unwrap_or(0),
            price: won(row.try_get("price_won")?)?,
        })
    };
    rows.iter()
        .map(line)
        .collect::<Result<_, _>>()
        .map_err(|error| failed("reading an order's lines", error))
}

/// The evidence of an order, oldest first.
pub(super) async fn evidence(
    db: &SqlitePool,
    id: &OrderId,
) -> Result<Vec<EvidenceRow>, StoreError> {
    let rows = sqlx::query("-- evidence\nSELECT at, source, event, status FROM evidence WHERE order_id = ?1 ORDER BY id")
        .bind(id.as_str())
        .fetch_all(db)
        .await
        .map_err(|error| failed("reading the evidence", error))?;
    let entry = |row: &sqlx::sqlite::SqliteRow| {
        Ok::<_, sqlx::Error>(EvidenceRow {
            at: EpochMs(row.try_get("at")?),
            source: row.try_get("source")?,
            event: row.try_get("event")?,
            status: row.try_get("status")?,
        })
    };
    rows.iter()
        .map(entry)
        .collect::<Result<_, _>>()
        .map_err(|error| failed("reading the evidence", error))
}

/// Orders of a shopper, newest first: two statements, however many orders.
pub(super) async fn orders_of(
    db: &mut SqliteConnection,
    owner: &Owner,
    skip: u32,
    most: u32,
) -> Result<Vec<OrderRecord>, StoreError> {
    let rows = sqlx::query(
        "-- orders_of\nSELECT id, owner, amount_won, created_at, lapsed_at FROM orders WHERE owner = ?1 \
         ORDER BY created_at DESC, id LIMIT ?2 OFFSET ?3",
    )
    .bind(&owner.0)
    .bind(i64::from(most))
    .bind(i64::from(skip))
    .fetch_all(&mut *db)
    .await
    .map_err(|error| failed("reading the history", error))?;
    let attempts: Vec<AttemptRecord> = sqlx::query_as(select_attempts!(
        "orders_of_attempts",
        "WHERE order_id IN (SELECT id FROM orders WHERE owner = ?1 ORDER BY created_at DESC, id LIMIT ?2 OFFSET ?3) \
         ORDER BY order_id, number"
    ))
    .bind(&owner.0)
    .bind(i64::from(most))
    .bind(i64::from(skip))
    .fetch_all(&mut *db)
    .await
    .map_err(|error| failed("reading the history", error))?;
    let mut by_order: HashMap<OrderId, Vec<AttemptRecord>> = HashMap::new();
    for attempt in attempts {
        by_order
            .entry(attempt.order_id.clone())
            .or_default()
            .push(attempt);
    }
    let mut orders = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut order =
            order_record(row, Vec::new()).map_err(|error| failed("reading the history", error))?;
        order.attempts = by_order.remove(&order.id).unwrap_or_default();
        orders.push(order);
    }
    Ok(orders)
}

/// Ends the pending orders whose time is over; one with an open attempt waits for its truth.
pub(super) async fn lapse(db: &SqlitePool, now: EpochMs) -> Result<u64, StoreError> {
    sqlx::query(
        "-- lapse_orders\nUPDATE orders SET lapsed_at = ?1, status = 'expired' \
         WHERE status = 'pending' AND lapsed_at IS NULL AND expires_at <= ?1 AND NOT EXISTS \
         (SELECT 1 FROM attempts a WHERE a.order_id = orders.id AND a.status IN \
         ('approving', 'unknown', 'awaiting_deposit', 'mischarged', 'cancel_requested'))",
    )
    .bind(now.0)
    .execute(db)
    .await
    .map(|done| done.rows_affected())
    .map_err(|error| failed("ending old orders", error))
}

/// A fact of the installation, stored now if it is not there yet.
pub(super) async fn setting(mut tx: Tx, name: &str, if_absent: &str) -> Result<String, StoreError> {
    let doing = "reading a setting";
    sqlx::query(
        "-- setting\nINSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )
    .bind(name)
    .bind(if_absent)
    .execute(&mut *tx)
    .await
    .map_err(|error| failed(doing, error))?;
    let value = sqlx::query_scalar("-- setting_value\nSELECT value FROM settings WHERE name = ?1")
        .bind(name)
        .fetch_one(&mut *tx)
        .await
        .map_err(|error| failed(doing, error))?;
    commit(tx, doing).await?;
    Ok(value)
}
