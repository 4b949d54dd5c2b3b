//! The change feed: which orders changed, in the order of the commits.

use payment::id::OrderId;
use sqlx::Row as _;
use sqlx::sqlite::SqlitePool;

use super::{failed, rows};
use crate::clock::EpochMs;
use crate::store::StoreError;

/// Entries taken in one reading.
const BATCH: i64 = 1_000;

/// The changes after a position, oldest first; at most a batch.
pub(super) async fn after(
    db: &SqlitePool,
    position: i64,
) -> Result<Vec<(i64, OrderId)>, StoreError> {
    let rows = sqlx::query(
        "-- changes_after\nSELECT seq, order_id FROM order_changes WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )
    .bind(position)
    .bind(BATCH)
    .fetch_all(db)
    .await
    .map_err(|error| failed("reading the change feed", error))?;
    rows.iter()
        .map(|row| {
            Ok((
                row.try_get("seq")?,
                rows::order_id(row.try_get("order_id")?)?,
            ))
        })
        .collect::<Result<_, sqlx::Error>>()
        .map_err(|error| failed("reading the change feed", error))
}

/// The position of the newest change.
pub(super) async fn end(db: &SqlitePool) -> Result<i64, StoreError> {
    // The sequence outlives the rows that were swept.
    sqlx::query_scalar(
        "-- end_of_changes\nSELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'order_changes'), 0)",
    )
    .fetch_one(db)
    .await
    .map_err(|error| failed("reading the change feed", error))
}

/// Drops the entries from before a moment.
pub(super) async fn sweep(db: &SqlitePool, before: EpochMs) -> Result<(), StoreError> {
    sqlx::query("-- sweep_changes\nDELETE FROM order_changes WHERE at < ?1")
        .bind(before.0)
        .execute(db)
        .await
        .map(|_| ())
        .map_err(|error| failed("sweeping the change feed", error))
}
