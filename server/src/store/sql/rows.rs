//! How stored rows become records, and the look-ups that others build on.

use payment::attempt::{Attempt, AttemptStatus, CameFrom};
use payment::id::{
    AttemptReference, GatewayHandle, GatewayName, GatewayOrderId, IdempotencyKey, OrderId,
    PaymentKey,
};
use payment::money::{Currency, Money, Won};
use payment::reach::{Reach, Reason};

use super::deposits;
use super::engine::{Columns, Sql, Statement, order_named, values};
use crate::clock::EpochMs;
use crate::gateway::Window;
use crate::store::{AttemptId, AttemptRecord, OrderRecord, Owner, StoreError};

/// The columns of a whole attempt.
macro_rules! attempt_columns {
    () => {
        "id, order_id, number, gateway, gateway_order_id, reference, payment_key, idempotency_key, \
         status, reach, reason, amount_won, charged_won, charged_in_won, canceled_won, deposit, void, \
         cancel_won, cancel_from, cancel_key, cancel_key_at, window_until, claimed_at, resent_at, unknown_since, ask_at, hint_at, asks, looks, \
         handle, window_desktop, window_mobile, deposit_bank, deposit_number, deposit_holder, deposit_due"
    };
}
pub(super) use attempt_columns;

/// A statement that selects whole attempts; the tail says which.
macro_rules! select_attempts {
    ($name:literal, $($tail:expr),+) => {
        concat!(
            "-- ",
            $name,
            "\nSELECT ",
            $crate::store::sql::rows::attempt_columns!(),
            " FROM attempts ",
            $($tail),+
        )
    };
}
pub(super) use select_attempts;

fn corrupt(what: &'static str) -> StoreError {
    StoreError::Corrupt { what }
}

/// Reads an amount.
pub(super) fn won(value: i64) -> Result<Won, StoreError> {
    Won::new(value).map_err(|_| corrupt("amount"))
}

/// Reads an amount that may not be there.
fn won_or_null<R: Columns>(row: &R, name: &'static str) -> Result<Option<Won>, StoreError> {
    row.integer_or_null(name)?.map(won).transpose()
}

fn parsed<T, E>(
    text: &str,
    parse: fn(&str) -> Result<T, E>,
    what: &'static str,
) -> Result<T, StoreError> {
    parse(text).map_err(|_| corrupt(what))
}

/// Reads a text by its parser, where there is one.
fn parsed_or_null<R: Columns, T, E>(
    row: &R,
    name: &'static str,
    parse: fn(&str) -> Result<T, E>,
) -> Result<Option<T>, StoreError> {
    let text = row.text_or_null(name)?;
    text.map(|text| parsed(text, parse, name)).transpose()
}

/// Reads an order id.
pub(super) fn order_id(text: &str) -> Result<OrderId, StoreError> {
    parsed(text, OrderId::parse, "order id")
}

/// Reads a gateway's name.
pub(super) fn gateway(text: &str) -> Result<GatewayName, StoreError> {
    parsed(text, GatewayName::parse, "gateway")
}

/// Reads a count.
pub(super) fn count<R: Columns>(row: &R, name: &'static str) -> Result<u32, StoreError> {
    u32::try_from(row.integer(name)?).map_err(|_| corrupt(name))
}

fn moment<R: Columns>(row: &R, name: &'static str) -> Result<Option<EpochMs>, StoreError> {
    Ok(row.integer_or_null(name)?.map(EpochMs))
}

/// The ids of attempts.
pub(super) fn ids<R: Columns>(rows: &[R]) -> Result<Vec<AttemptId>, StoreError> {
    let ids = rows.iter().map(|row| row.integer("id").map(AttemptId));
    ids.collect()
}

fn machine<R: Columns>(row: &R) -> Result<Attempt, StoreError> {
    let status = |text| AttemptStatus::parse(text).ok_or_else(|| corrupt("status"));
    let currency = if row.integer_or_null("charged_in_won")? == Some(1) {
        Currency::Krw
    } else {
        Currency::Other
    };
    let charged = won_or_null(row, "charged_won")?;
    let cancel_from = row.text_or_null("cancel_from")?;
    let cancel = match (won_or_null(row, "cancel_won")?, cancel_from) {
        (Some(amount), Some(from)) => {
            let from = CameFrom::of(status(from)?).ok_or_else(|| corrupt("origin"))?;
            Some((amount, from))
        }
        _ => None,
    };
    let reason = row.text_or_null("reason")?;
    Ok(Attempt {
        status: status(row.text("status")?)?,
        reach: Reach::parse(row.text("reach")?).ok_or_else(|| corrupt("reach"))?,
        reason: reason
            .map(|name| Reason::parse(name).ok_or_else(|| corrupt("reason")))
            .transpose()?,
        expected: Money::won(won(row.integer("amount_won")?)?),
        charged: charged.map(|amount| Money { amount, currency }),
        canceled: won(row.integer("canceled_won")?)?,
        deposit: row.integer("deposit")? == 1,
        void: row.integer("void")? == 1,
        cancel,
    })
}

fn window<R: Columns>(row: &R) -> Result<Option<Window>, StoreError> {
    let desktop = row.text_or_null("window_desktop")?.map(str::to_owned);
    let mobile = row.text_or_null("window_mobile")?.map(str::to_owned);
    Ok(desktop
        .zip(mobile)
        .map(|(desktop, mobile)| Window { desktop, mobile }))
}

/// A row as an attempt.
pub(super) fn attempt_record<R: Columns>(row: &R) -> Result<AttemptRecord, StoreError> {
    Ok(AttemptRecord {
        id: AttemptId(row.integer("id")?),
        order_id: order_id(row.text("order_id")?)?,
        number: count(row, "number")?,
        gateway: gateway(row.text("gateway")?)?,
        gateway_order_id: parsed(
            row.text("gateway_order_id")?,
            GatewayOrderId::parse,
            "gateway order id",
        )?,
        reference: parsed(row.text("reference")?, AttemptReference::parse, "reference")?,
        handle: parsed_or_null(row, "handle", GatewayHandle::parse)?,
        window: window(row)?,
        payment_key: parsed_or_null(row, "payment_key", PaymentKey::parse)?,
        idempotency_key: parsed_or_null(row, "idempotency_key", IdempotencyKey::parse)?,
        attempt: machine(row)?,
        cancel_key: parsed_or_null(row, "cancel_key", IdempotencyKey::parse)?,
        cancel_key_at: moment(row, "cancel_key_at")?,
        window_until: EpochMs(row.integer("window_until")?),
        claimed_at: moment(row, "claimed_at")?,
        resent_at: moment(row, "resent_at")?,
        unknown_since: moment(row, "unknown_since")?,
        ask_at: moment(row, "ask_at")?,
        hint_at: moment(row, "hint_at")?,
        asks: count(row, "asks")?,
        looks: count(row, "looks")?,
        deposit: deposits::account(row)?,
    })
}

/// Rows as attempts.
pub(super) fn attempts<R: Columns>(rows: &[R]) -> Result<Vec<AttemptRecord>, StoreError> {
    rows.iter().map(attempt_record).collect()
}

/// A statement that selects one order with its attempts, oldest first, as one row each; an order without any is a row
/// without one. `$id` is an expression.
macro_rules! select_order {
    ($name:literal, $($id:expr),+) => {
        concat!(
            "-- ",
            $name,
            "\nSELECT whole.*, ",
            $crate::store::sql::rows::attempt_columns!(),
            " FROM (SELECT id AS its_id, owner, amount_won AS its_won, created_at AS its_created_at, expires_at, lapsed_at \
             FROM orders WHERE id = ",
            $($id),+,
            ") whole LEFT JOIN attempts ON order_id = its_id ORDER BY number"
        )
    };
}

const READING: &str = "reading an order";

/// The statement that reads one order.
pub(super) fn reading(id: &OrderId) -> Statement<'_> {
    // Whoever may not see an order must not learn by the time that there is one: it is one statement in any case.
    let sql = select_order!("order", "$1");
    Statement::new(READING, sql, values![id.as_str()])
}

/// The statement that reads the order of an attempt.
pub(super) fn reading_of(attempt: AttemptId) -> Statement<'static> {
    let sql = select_order!("order_of", "(SELECT order_id FROM attempts WHERE id = $1)");
    Statement::new(READING, sql, values![attempt.0])
}

/// The statement that reads the order that a gateway order id names.
pub(super) fn reading_named(id: &GatewayOrderId) -> Statement<'_> {
    let sql = select_order!("order_named", order_named!());
    Statement::new(READING, sql, values![id.as_str()])
}

/// One order with its attempts.
pub(super) async fn order<C: Sql>(
    db: &mut C,
    id: &OrderId,
) -> Result<Option<OrderRecord>, StoreError> {
    read_order(db, &reading(id)).await
}

/// The order that a statement reads.
pub(super) async fn read_order<C: Sql>(
    db: &mut C,
    reading: &Statement<'_>,
) -> Result<Option<OrderRecord>, StoreError> {
    let rows = db.rows(reading.doing, reading.sql, &reading.values).await?;
    whole_order(&rows)
}

/// Rows of [`select_order`] as one record.
pub(super) fn whole_order<R: Columns>(rows: &[R]) -> Result<Option<OrderRecord>, StoreError> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let attempts = if first.integer_or_null("id")?.is_some() {
        attempts(rows)?
    } else {
        Vec::new()
    };
    Ok(Some(OrderRecord {
        id: order_id(first.text("its_id")?)?,
        owner: Owner(first.text("owner")?.to_owned()),
        amount: won(first.integer("its_won")?)?,
        created_at: EpochMs(first.integer("its_created_at")?),
        expires_at: EpochMs(first.integer("expires_at")?),
        lapsed: first.integer_or_null("lapsed_at")?.is_some(),
        attempts,
    }))
}

/// An order's row and its attempts as one record.
pub(super) fn order_record<R: Columns>(
    row: &R,
    attempts: Vec<AttemptRecord>,
) -> Result<OrderRecord, StoreError> {
    Ok(OrderRecord {
        id: order_id(row.text("id")?)?,
        owner: Owner(row.text("owner")?.to_owned()),
        amount: won(row.integer("amount_won")?)?,
        created_at: EpochMs(row.integer("created_at")?),
        expires_at: EpochMs(row.integer("expires_at")?),
        lapsed: row.integer_or_null("lapsed_at")?.is_some(),
        attempts,
    })
}

/// One attempt.
pub(super) async fn attempt<C: Sql>(
    db: &mut C,
    id: AttemptId,
) -> Result<Option<AttemptRecord>, StoreError> {
    let sql = select_attempts!("attempt", "WHERE id = $1");
    let row = db.row("reading an attempt", sql, values![id.0]).await?;
    row.as_ref().map(attempt_record).transpose()
}

/// The attempts with a payment key, oldest first.
pub(super) async fn attempts_by_key<C: Sql>(
    db: &mut C,
    gateway: &GatewayName,
    key: &PaymentKey,
) -> Result<Vec<AttemptRecord>, StoreError> {
    let sql = select_attempts!(
        "attempts_by_key",
        "WHERE gateway = $1 AND payment_key = $2 ORDER BY id"
    );
    let values = values![gateway.as_str(), key.as_str()];
    attempts(&db.rows("looking up a payment key", sql, values).await?)
}

/// The attempts with a gateway order id, oldest first.
pub(super) async fn attempts_by_gateway_order<C: Sql>(
    db: &mut C,
    id: &GatewayOrderId,
) -> Result<Vec<AttemptRecord>, StoreError> {
    let sql = select_attempts!(
        "attempts_by_gateway_order",
        "WHERE gateway_order_id = $1 ORDER BY id"
    );
    let doing = "looking up a gateway order id";
    attempts(&db.rows(doing, sql, values![id.as_str()]).await?)
}
