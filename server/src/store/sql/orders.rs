//! The shelf, orders and their lists.

use std::collections::HashMap;

use async_trait::async_trait;
use payment::id::{GatewayName, OrderId, Sku};
use payment::money::Won;
use payment::order::OrderStatus;

use super::commit;
use super::engine::{Columns, Engine, Lock, Sql, Statement, Tx, values};
use super::group::{Change, Done};
use super::rows::{attempts, order_id, order_record, select_attempts, won};
use crate::clock::EpochMs;
use crate::store::{
    AttemptId, AttemptRecord, EvidenceRow, LineRow, NewOrderRow, OrderMade, OrderRecord, Owner,
    ProductRow, StoreError,
};

/// What is being done, for errors.
const LINES: &str = "reading an order's lines";
/// Most orders ended in one step: they are locked together.
const LAPSES: u32 = 256;

/// The shelf.
pub(super) async fn products<C: Sql>(db: &mut C) -> Result<Vec<ProductRow>, StoreError> {
    let sql = "-- products\nSELECT sku, name_ko, name_en, blurb_ko, blurb_en, price_won, total - reserved - sold AS free \
               FROM products ORDER BY position";
    let rows = db.rows("reading the shelf", sql, &[]).await?;
    rows.iter().map(product).collect()
}

fn sku<R: Columns>(row: &R) -> Result<Sku, StoreError> {
    Sku::parse(row.text("sku")?).map_err(|_| StoreError::Corrupt { what: "sku" })
}

fn both<R: Columns>(
    row: &R,
    korean: &'static str,
    english: &'static str,
) -> Result<[String; 2], StoreError> {
    Ok([row.text(korean)?.to_owned(), row.text(english)?.to_owned()])
}

fn product<R: Columns>(row: &R) -> Result<ProductRow, StoreError> {
    Ok(ProductRow {
        sku: sku(row)?,
        name: both(row, "name_ko", "name_en")?,
        blurb: both(row, "blurb_ko", "blurb_en")?,
        price: won(row.integer("price_won")?)?,
        available: u64::try_from(row.integer("free")?).unwrap_or(0),
    })
}

#[async_trait]
impl<D: Engine> Change<D> for NewOrderRow {
    type Answer = OrderMade;
    const DOING: &'static str = "storing an order";

    async fn make(&self, db: &mut D::Connection) -> Result<Done<OrderMade>, StoreError> {
        make_order(db, self).await.map(Done::Keep)
    }
}

/// Makes an order at the shelf's prices; writes only when nothing stands against it.
async fn make_order<C: Sql>(db: &mut C, order: &NewOrderRow) -> Result<OrderMade, StoreError> {
    let sql = "-- make_order_price\nSELECT price_won, total - reserved - sold AS free FROM products WHERE sku = $1";
    let pricing = order
        .items
        .iter()
        .map(|(sku, _)| Statement::new("pricing an order", sql, values![sku.as_str()]));
    let priced = db.run(&pricing.collect::<Vec<_>>()).await?;
    let mut sum = Won::ZERO;
    let mut prices = Vec::with_capacity(order.items.len());
    for ((sku, quantity), priced) in order.items.iter().zip(&priced) {
        let Some(row) = priced.rows.first() else {
            return Ok(OrderMade::UnknownSku(sku.clone()));
        };
        if row.integer("free")? < i64::from(*quantity) {
            return Ok(OrderMade::OutOfStock(sku.clone()));
        }
        let price = won(row.integer("price_won")?)?;
        let Some(total) = price.times(*quantity).and_then(|line| sum.plus(line)) else {
            return Ok(OrderMade::TooMuch);
        };
        sum = total;
        prices.push(price);
    }
    insert_order(db, order, sum, &prices).await?;
    Ok(OrderMade::Made(sum))
}

async fn insert_order<C: Sql>(
    db: &mut C,
    order: &NewOrderRow,
    sum: Won,
    prices: &[Won],
) -> Result<(), StoreError> {
    let doing = "storing an order";
    let id = order.id.as_str();
    let owner = order.owner.0.as_str();
    let sql = "-- make_order\nINSERT INTO orders (id, owner, amount_won, created_at, expires_at, language) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![
        id,
        owner,
        sum.get(),
        order.at,
        order.expires_at,
        order.language,
    ];
    let mut statements = vec![Statement::new(doing, sql, values)];
    let sql = "-- make_order_line\nINSERT INTO order_lines (order_id, sku, quantity, price_won) VALUES ($1, $2, $3, $4)";
    let lines = order
        .items
        .iter()
        .zip(prices)
        .map(|((sku, quantity), price)| {
            Statement::new(
                doing,
                sql,
                values![id, sku.as_str(), *quantity, price.get()],
            )
        });
    statements.extend(lines);
    db.run(&statements).await?;
    Ok(())
}

/// A statement that selects the lines of an order; `$id` is an expression. Another shop's own lines are on no shelf: one name
/// in both languages, and the picture of whatever is not known.
macro_rules! select_lines {
    ($name:literal, $id:literal) => {
        concat!(
            "-- ",
            $name,
            "\nSELECT l.sku, p.name_ko, p.name_en, l.quantity, l.price_won, p.position FROM order_lines l \
             JOIN products p ON p.sku = l.sku WHERE l.order_id = ",
            $id,
            " UNION ALL SELECT 'line', name, name, quantity, price_won, position FROM shop_lines WHERE order_id = ",
            $id,
            " ORDER BY position"
        )
    };
}

/// The lines of an order.
pub(super) async fn lines<C: Sql>(db: &mut C, id: &OrderId) -> Result<Vec<LineRow>, StoreError> {
    let sql = select_lines!("lines", "$1");
    line_rows(&db.rows(LINES, sql, values![id.as_str()]).await?)
}

/// The statement that reads the lines of a side effect's order.
pub(super) fn reading_lines_of_effect(effect: i64) -> Statement<'static> {
    let sql = select_lines!(
        "lines_of_effect",
        "(SELECT order_id FROM outbox WHERE id = $1)"
    );
    Statement::new(LINES, sql, values![effect])
}

/// Rows as lines.
pub(super) fn line_rows<R: Columns>(rows: &[R]) -> Result<Vec<LineRow>, StoreError> {
    let line = |row: &R| {
        Ok(LineRow {
            sku: sku(row)?,
            name: both(row, "name_ko", "name_en")?,
            quantity: u32::try_from(row.integer("quantity")?).unwrap_or(0),
            price: won(row.integer("price_won")?)?,
        })
    };
    rows.iter().map(line).collect()
}

/// The evidence of an order, oldest first.
pub(super) async fn evidence<C: Sql>(
    db: &mut C,
    id: &OrderId,
) -> Result<Vec<EvidenceRow>, StoreError> {
    let sql = "-- evidence\nSELECT at, source, event, status, told FROM evidence WHERE order_id = $1 ORDER BY id";
    let doing = "reading the evidence";
    let rows = db.rows(doing, sql, values![id.as_str()]).await?;
    rows.iter().map(evidence_row).collect()
}

/// A row as evidence.
pub(super) fn evidence_row<R: Columns>(row: &R) -> Result<EvidenceRow, StoreError> {
    Ok(EvidenceRow {
        at: EpochMs(row.integer("at")?),
        source: row.text("source")?.to_owned(),
        event: row.text("event")?.to_owned(),
        status: row.text("status")?.to_owned(),
        told: row.text("told")?.to_owned(),
    })
}

/// Which orders one page of a history shows.
macro_rules! of_history {
    () => {
        "FROM orders WHERE owner = $1 AND (CAST($4 AS TEXT) IS NULL OR status = $4 OR status = $5) \
         ORDER BY created_at DESC, id LIMIT $2 OFFSET $3"
    };
}

/// Orders of a shopper, newest first: two statements, however many orders.
pub(super) async fn orders_of<C: Sql>(
    db: &mut C,
    owner: &Owner,
    among: Option<[OrderStatus; 2]>,
    (skip, most): (u32, u32),
) -> Result<Vec<OrderRecord>, StoreError> {
    let doing = "reading the history";
    let state = |at: usize| among.map(|among| among[at].as_str());
    let values = values![owner.0.as_str(), most, skip, state(0), state(1)];
    let sql = concat!(
        "-- orders_of\nSELECT id, owner, amount_won, created_at, expires_at, lapsed_at ",
        of_history!()
    );
    let orders = db.rows(doing, sql, values).await?;
    let sql = select_attempts!(
        "orders_of_attempts",
        "WHERE order_id IN (SELECT id ",
        of_history!(),
        ") ORDER BY order_id, number"
    );
    let mut by_order: HashMap<OrderId, Vec<AttemptRecord>> = HashMap::new();
    for attempt in attempts(&db.rows(doing, sql, values).await?)? {
        let of_order = by_order.entry(attempt.order_id.clone()).or_default();
        of_order.push(attempt);
    }
    let with_attempts = |row: &C::Row| {
        let mut order = order_record(row, Vec::new())?;
        order.attempts = by_order.remove(&order.id).unwrap_or_default();
        Ok(order)
    };
    orders.iter().map(with_attempts).collect()
}

/// Pending orders whose time is over: what the statements about them share.
macro_rules! is_over {
    ($now:literal) => {
        concat!(
            "orders.status = 'pending' AND orders.lapsed_at IS NULL AND orders.expires_at <= ",
            $now,
            " AND NOT EXISTS (SELECT 1 FROM attempts b WHERE b.order_id = orders.id AND b.status IN \
             ('approving', 'unknown', 'awaiting_deposit', 'mischarged', 'cancel_requested'))"
        )
    };
}

/// That attempt `a` was sent and has ended, and that the gateway has not been heard about it since its order's time was
/// over. Of several that sent one payment key the gateway's word belongs to the newest.
macro_rules! is_unheard {
    () => {
        "a.status IN ('failed', 'expired') AND a.reach <> 'not_sent' AND a.payment_key IS NOT NULL \
         AND coalesce(a.answered_at, 0) < orders.expires_at AND NOT EXISTS (SELECT 1 FROM attempts n \
         WHERE n.order_id = a.order_id AND n.gateway = a.gateway AND n.payment_key = a.payment_key AND n.id > a.id \
         AND n.reach <> 'not_sent')"
    };
}

/// Orders to end, as far as can be seen without locking them.
pub(super) async fn to_lapse<C: Sql>(db: &mut C, now: EpochMs) -> Result<Vec<OrderId>, StoreError> {
    let sql = concat!(
        "-- orders_to_lapse\nSELECT id FROM orders WHERE ",
        is_over!("$1"),
        " AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.order_id = orders.id AND ",
        is_unheard!(),
        ") ORDER BY expires_at LIMIT $2"
    );
    let rows = db.rows(LAPSING, sql, values![now, LAPSES]).await?;
    let ids = rows.iter().map(|row| order_id(row.text("id")?));
    let mut ids = ids.collect::<Result<Vec<_>, _>>()?;
    // Locked in this order by every node, so that two of them never wait for each other.
    ids.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    Ok(ids)
}

const LAPSING: &str = "ending old orders";

/// Ends those of the orders that still are as they were seen; one with an open attempt waits for its truth.
pub(super) async fn lapse<D: Engine>(
    mut tx: Tx<D>,
    orders: &[OrderId],
    now: EpochMs,
) -> Result<u64, StoreError> {
    let mut lapsed = 0;
    for id in orders {
        // Locked before it is looked at again: a claim that was being committed meanwhile is seen.
        tx.lock(Lock::Order(id)).await?;
        let sql = concat!(
            "-- lapse_order\nUPDATE orders SET lapsed_at = $2, status = 'expired' WHERE id = $1 AND ",
            is_over!("$2"),
            " AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.order_id = $1 AND ",
            is_unheard!(),
            ")"
        );
        let values = values![id.as_str(), now];
        lapsed += tx.execute(LAPSING, sql, values).await?;
    }
    commit::<D>(tx, LAPSING).await?;
    Ok(lapsed)
}

/// What keeps orders from ending that are over: attempts of which the gateway is to be heard first, and that nobody asks
/// about yet. At most `most` are asked about at a time, with those that are already; those that were asked about in vain
/// through most of the back-off keep no place from the others.
pub(super) async fn unheard<C: Sql>(
    db: &mut C,
    gateway: &GatewayName,
    now: EpochMs,
    most: u32,
) -> Result<Vec<AttemptId>, StoreError> {
    let sql = concat!(
        "-- unheard\nSELECT a.id, a.ask_at FROM orders JOIN attempts a ON a.order_id = orders.id WHERE ",
        is_over!("$1"),
        " AND ",
        is_unheard!(),
        // Those that are asked about first, so that the limit counts them.
        " AND a.gateway = $3 AND (a.ask_at IS NULL OR a.asks < 7) \
         ORDER BY (a.ask_at IS NULL), orders.expires_at, a.id LIMIT $2"
    );
    let values = values![now, most, gateway.as_str()];
    let rows = db.rows(ASKING, sql, values).await?;
    let mut ids = Vec::new();
    for row in &rows {
        if row.integer_or_null("ask_at")?.is_none() {
            ids.push(AttemptId(row.integer("id")?));
        }
    }
    // Locked in this order by every node.
    ids.sort_unstable();
    Ok(ids)
}

const ASKING: &str = "asking before old orders end";

/// Makes attempts due that nobody asks about.
pub(super) async fn ask_about<D: Engine>(
    mut tx: Tx<D>,
    attempts: &[AttemptId],
    now: EpochMs,
) -> Result<u64, StoreError> {
    let mut armed = 0;
    for id in attempts {
        let sql = "-- ask_before_end\nUPDATE attempts SET ask_at = $2, asks = 0 WHERE id = $1 AND ask_at IS NULL";
        armed += tx.execute(ASKING, sql, values![id.0, now]).await?;
    }
    commit::<D>(tx, ASKING).await?;
    Ok(armed)
}

/// A fact of the installation, stored now if it is not there yet.
pub(super) async fn setting<D: Engine>(
    mut tx: Tx<D>,
    name: &str,
    if_absent: &str,
) -> Result<String, StoreError> {
    let doing = "reading a setting";
    let sql =
        "-- setting\nINSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    tx.execute(doing, sql, values![name, if_absent]).await?;
    let sql = "-- setting_value\nSELECT value FROM settings WHERE name = $1";
    let row = tx.row(doing, sql, values![name]).await?;
    let row = row.ok_or(StoreError::Corrupt { what: "setting" })?;
    let value = row.text("value")?.to_owned();
    commit::<D>(tx, doing).await?;
    Ok(value)
}
