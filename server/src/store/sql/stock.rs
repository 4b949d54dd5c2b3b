//! Moving an order's stock between free, reserved and sold.

use payment::attempt::Holding;
use payment::id::{GatewayOrderId, OrderId};

use super::engine::{Columns, Lock, Sql, Statement, order_named, values};
use crate::store::StoreError;
use crate::store::rules::stock::{added, takes_more};

const DOING: &str = "moving stock";

/// What there is not enough of for an order.
macro_rules! short {
    ($what:literal) => {
        short!($what, "$1")
    };
    ($what:literal, $($id:expr),+) => {
        concat!(
            "SELECT ",
            $what,
            " FROM order_lines l JOIN products p ON p.sku = l.sku WHERE l.order_id = ",
            $($id),+,
            " AND p.total - p.reserved - p.sold < l.quantity"
        )
    };
}

/// The statement that moves the stock of an order's lines.
macro_rules! moved {
    ($name:literal) => {
        concat!(
            "-- ",
            $name,
            "\nUPDATE products SET \
             reserved = reserved + $2 * (SELECT quantity FROM order_lines l WHERE l.order_id = $1 AND l.sku = products.sku), \
             sold = sold + $3 * (SELECT quantity FROM order_lines l WHERE l.order_id = $1 AND l.sku = products.sku) \
             WHERE sku IN (SELECT sku FROM order_lines WHERE order_id = $1)"
        )
    };
}

/// The statements that move the stock of an order's lines, the lock before the move; none where nothing moves. A move that
/// takes more changes nothing when there is not enough.
pub(super) fn moving<C: Sql>(order: &OrderId, from: Holding, to: Holding) -> Vec<Statement<'_>> {
    if from == to {
        return Vec::new();
    }
    let (reserved, sold) = added(from, to);
    let sql = if takes_more(from, to) {
        concat!(moved!("take_stock"), " AND NOT EXISTS (", short!("1"), ")")
    } else {
        moved!("move_stock")
    };
    let values = values![order.as_str(), reserved, sold];
    let locking = C::locking(Lock::Stock(order));
    let moving = Statement::new(DOING, sql, values);
    locking.into_iter().chain([moving]).collect()
}

/// The statement that counts of what there is not enough for the order that a gateway order id names.
pub(super) fn counting_short(id: &GatewayOrderId) -> Statement<'_> {
    let sql = concat!(
        "-- short_of_named\n",
        short!("count(*) AS short", order_named!())
    );
    Statement::new(DOING, sql, values![id.as_str()])
}

/// Whether a count of what is short is none.
pub(super) fn is_none_short<R: Columns>(rows: &[R]) -> Result<bool, StoreError> {
    rows.first()
        .map_or(Ok(false), |row| Ok(row.integer("short")? == 0))
}

/// Whether a move of [`moving`] was made, by how many rows its last statement changed. An order of what is not on the shelf
/// moves nothing, and has enough.
pub(super) async fn was_moved<C: Sql>(
    db: &mut C,
    order: &OrderId,
    changed: u64,
) -> Result<bool, StoreError> {
    if changed > 0 {
        return Ok(true);
    }
    let sql = concat!("-- is_stock_enough\n", short!("count(*) AS short"));
    is_none_short(&db.rows(DOING, sql, values![order.as_str()]).await?)
}

/// Moves the stock of an order's lines; false, and nothing moved, when there is not enough.
pub(super) async fn move_stock<C: Sql>(
    db: &mut C,
    order: &OrderId,
    from: Holding,
    to: Holding,
) -> Result<bool, StoreError> {
    let moving = moving::<C>(order, from, to);
    if moving.is_empty() {
        return Ok(true);
    }
    let ran = db.run(&moving).await?;
    let changed = ran.last().map_or(0, |ran| ran.changed);
    if takes_more(from, to) {
        return was_moved(db, order, changed).await;
    }
    Ok(true)
}
