//! Moving an order's stock between free, reserved and sold.

use payment::attempt::Holding;
use payment::id::OrderId;

use super::engine::{Columns as _, Lock, Sql, values};
use crate::store::StoreError;
use crate::store::rules::stock::{added, takes_more};

const DOING: &str = "moving stock";

/// Moves the stock of an order's lines; false, and nothing moved, when there is not enough.
pub(super) async fn move_stock<C: Sql>(
    db: &mut C,
    order: &OrderId,
    from: Holding,
    to: Holding,
) -> Result<bool, StoreError> {
    if from == to {
        return Ok(true);
    }
    let (reserved, sold) = added(from, to);
    db.lock(Lock::Stock(order)).await?;
    if takes_more(from, to) && !is_enough(db, order).await? {
        return Ok(false);
    }
    let sql = "-- move_stock\nUPDATE products SET \
         reserved = reserved + $2 * (SELECT quantity FROM order_lines l WHERE l.order_id = $1 AND l.sku = products.sku), \
         sold = sold + $3 * (SELECT quantity FROM order_lines l WHERE l.order_id = $1 AND l.sku = products.sku) \
         WHERE sku IN (SELECT sku FROM order_lines WHERE order_id = $1)";
    let values = values![order.as_str(), reserved, sold];
    db.execute(DOING, sql, values).await?;
    Ok(true)
}

async fn is_enough<C: Sql>(db: &mut C, order: &OrderId) -> Result<bool, StoreError> {
    let sql = "-- is_stock_enough\nSELECT count(*) AS short FROM order_lines l JOIN products p ON p.sku = l.sku \
               WHERE l.order_id = $1 AND p.total - p.reserved - p.sold < l.quantity";
    let row = db.row(DOING, sql, values![order.as_str()]).await?;
    row.map_or(Ok(false), |row| Ok(row.integer("short")? == 0))
}
