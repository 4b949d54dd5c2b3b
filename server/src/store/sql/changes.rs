//! The change feed: which orders changed since a position. How a position is made is the database's affair.

use payment::id::OrderId;
use payment::time::Millis;

use super::engine::{Columns as _, Sql, values};
use super::rows;
use crate::clock::EpochMs;
use crate::store::{FeedPosition, StoreError};

const DOING: &str = "reading the change feed";

/// The orders that changed after a position, and the position to read on from.
pub(super) async fn after<C: Sql>(
    db: &mut C,
    position: &FeedPosition,
) -> Result<(Vec<OrderId>, FeedPosition), StoreError> {
    let values = values![position.0.as_str()];
    let rows = db.rows(DOING, C::CHANGES_AFTER, values).await?;
    let reached = rows.first().ok_or(StoreError::Corrupt {
        what: "change feed",
    })?;
    let reached = FeedPosition(reached.text("position")?.to_owned());
    let mut changed = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(id) = row.text_or_null("order_id")? {
            changed.push(rows::order_id(id)?);
        }
    }
    Ok((changed, reached))
}

/// The position of the newest change.
pub(super) async fn end<C: Sql>(db: &mut C) -> Result<FeedPosition, StoreError> {
    let row = db.row(DOING, C::END_OF_CHANGES, &[]).await?;
    let row = row.ok_or(StoreError::Corrupt {
        what: "change feed",
    })?;
    Ok(FeedPosition(row.text("position")?.to_owned()))
}

/// Drops the entries that were kept long enough, by the clock that wrote them.
pub(super) async fn sweep<C: Sql>(
    db: &mut C,
    kept: Millis,
    now: EpochMs,
) -> Result<(), StoreError> {
    let before = db.clock(now).await?.minus(kept);
    let sql = "-- sweep_changes\nDELETE FROM order_changes WHERE at < $1";
    db.execute("sweeping the change feed", sql, values![before])
        .await?;
    Ok(())
}
