//! What shops' endpoints are told: taken under a lease, and ended by whoever took it last.

use payment::id::OrderId;
use payment::time::Millis;

use super::engine::{Columns, Engine, Sql, Statement, Tx, values};
use super::{commit, rows};
use crate::clock::EpochMs;
use crate::gateway::secret::Secret;
use crate::store::StoreError;
use crate::store::merchant::{
    DeliveriesWaiting, Delivery, DeliveryEnd, DeliveryFilter, DeliveryRow, DeliveryState, Endpoint,
};

const TAKING: &str = "taking deliveries";

/// The statement that queues what an effect tells the endpoint of its order's shop, if it has one; it belongs into the
/// transaction that stores its notification, behind that. Alarms are for whoever runs this server.
pub(super) fn queueing(effect: i64, now: EpochMs) -> Statement<'static> {
    let sql = "-- queue_delivery\nINSERT INTO deliveries (seq, key, shop_id, order_id, created_at, since, next_at) \
               SELECT e.id, e.key, s.id, e.order_id, e.created_at, $2, $2 FROM outbox e \
               JOIN shop_orders o ON o.order_id = e.order_id JOIN shops s ON s.id = o.shop_id \
               WHERE e.id = $1 AND e.kind <> 'alarm' AND s.webhook_url IS NOT NULL ON CONFLICT DO NOTHING";
    Statement::new("queueing a delivery", sql, values![effect, now])
}

/// Whether anything is to be taken, so that the writer is left alone when nothing is.
pub(super) async fn is_any_due<C: Sql>(db: &mut C, now: EpochMs) -> Result<bool, StoreError> {
    let now = db.clock(now).await?;
    let sql = "-- is_delivery_due\nSELECT seq FROM deliveries WHERE state = 'waiting' AND next_at <= $1 LIMIT 1";
    Ok(db.row(TAKING, sql, values![now]).await?.is_some())
}

/// Takes what is due. The last conditions are judged once more on the row as it is when it is locked: what another node took
/// meanwhile is not taken again.
pub(super) async fn take<D: Engine>(
    mut tx: Tx<D>,
    now: EpochMs,
    lease: Millis,
    of_shop: u32,
) -> Result<Vec<Delivery>, StoreError> {
    let db = &mut *tx;
    let now = db.clock(now).await?;
    let sql = "-- take_deliveries\nUPDATE deliveries SET next_at = $2, taken_until = $2, takes = takes + 1, tries = tries + 1 WHERE seq IN \
               (SELECT seq FROM (SELECT d.seq, row_number() OVER (PARTITION BY d.shop_id ORDER BY d.next_at, d.seq) AS place, \
               (SELECT count(*) FROM deliveries f WHERE f.shop_id = d.shop_id AND f.state = 'waiting' AND f.taken_until > $1) AS busy \
               FROM deliveries d WHERE d.state = 'waiting' AND d.next_at <= $1 AND NOT EXISTS (SELECT 1 FROM deliveries o \
               WHERE o.order_id = d.order_id AND o.seq < d.seq AND o.state = 'waiting')) due WHERE place + busy <= $3) \
               AND state = 'waiting' AND next_at <= $1 RETURNING seq";
    let values = values![now, now.plus(lease), of_shop];
    let taken = db.rows(TAKING, sql, values).await?;
    let mut deliveries = Vec::with_capacity(taken.len());
    for row in &taken {
        deliveries.push(read(db, row.integer("seq")?, now).await?);
    }
    commit::<D>(tx, TAKING).await?;
    Ok(deliveries)
}

async fn read<C: Sql>(db: &mut C, seq: i64, now: EpochMs) -> Result<Delivery, StoreError> {
    let sql = "-- delivery\nSELECT d.seq, d.takes, d.tries, d.since, d.order_id, o.reference, n.body, s.webhook_url, \
               s.webhook_secret, s.webhook_old_secret, s.webhook_old_until FROM deliveries d \
               JOIN shop_orders o ON o.order_id = d.order_id JOIN shops s ON s.id = d.shop_id \
               JOIN notifications n ON n.key = d.key WHERE d.seq = $1";
    let row = db.row(TAKING, sql, values![seq]).await?;
    let row = row.ok_or(StoreError::Corrupt { what: "delivery" })?;
    let old_until = row.integer_or_null("webhook_old_until")?.map(EpochMs);
    let old = row
        .text_or_null("webhook_old_secret")?
        .filter(|_| old_until.is_some_and(|until| now < until));
    let secrets = row.text_or_null("webhook_secret")?.into_iter().chain(old);
    let secrets: Vec<_> = secrets.map(Secret::new).collect();
    let url = row.text_or_null("webhook_url")?;
    Ok(Delivery {
        seq,
        takes: rows::count(&row, "takes")?,
        tries: rows::count(&row, "tries")?,
        since: EpochMs(row.integer("since")?),
        endpoint: url.map(|url| Endpoint {
            url: url.to_owned(),
            secrets,
        }),
        order_id: rows::order_id(row.text("order_id")?)?,
        reference: row.text("reference")?.to_owned(),
        notification: row.text("body")?.to_owned(),
    })
}

/// Ends a take that is still the last one of its row.
pub(super) async fn end<C: Sql>(
    db: &mut C,
    end: &DeliveryEnd,
    now: EpochMs,
) -> Result<bool, StoreError> {
    let now = db.clock(now).await?;
    let waits = end.state == DeliveryState::Waiting;
    let sql = "-- end_delivery\nUPDATE deliveries SET state = $3, next_at = $4, taken_until = 0, told = $5, ended_at = $6 \
               WHERE seq = $1 AND takes = $2 AND state = 'waiting'";
    let values = values![
        end.seq,
        end.takes,
        end.state.as_str(),
        now.plus(end.again),
        end.told.as_str(),
        (!waits).then_some(now),
    ];
    Ok(db.execute("ending a delivery", sql, values).await? == 1)
}

/// What waits.
pub(super) async fn waiting<C: Sql>(db: &mut C) -> Result<DeliveriesWaiting, StoreError> {
    let sql = "-- deliveries_waiting\nSELECT count(*) AS waiting, min(since) AS oldest FROM deliveries \
               WHERE state = 'waiting'";
    let Some(row) = db.row("counting deliveries", sql, &[]).await? else {
        return Ok(DeliveriesWaiting::default());
    };
    Ok(DeliveriesWaiting {
        count: u64::try_from(row.integer("waiting")?).unwrap_or(0),
        oldest: row.integer_or_null("oldest")?.map(EpochMs),
    })
}

/// The deliveries that a filter lets through: `$1` number, `$2` shop, `$3` since, `$4` state, `$5` order, each
/// or NULL; `$6` whether only those that were tried.
macro_rules! is_wanted {
    () => {
        "(CAST($1 AS BIGINT) IS NULL OR d.seq = $1) AND (CAST($2 AS TEXT) IS NULL OR d.shop_id IN (SELECT s.id FROM shops s \
         WHERE s.name = $2)) AND (CAST($3 AS BIGINT) IS NULL OR d.created_at >= $3) AND (CAST($4 AS TEXT) IS NULL \
         OR d.state = $4) AND (CAST($5 AS TEXT) IS NULL OR d.order_id = $5) \
         AND (CAST($6 AS BIGINT) = 0 OR d.told <> '')"
    };
}

/// Deliveries, the newest first.
pub(super) async fn list<C: Sql>(
    db: &mut C,
    which: &DeliveryFilter,
    most: u32,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let sql = concat!(
        "-- deliveries\nSELECT d.seq, s.name AS shop, d.order_id, n.kind, d.state, d.tries, d.told, d.created_at \
         FROM deliveries d JOIN shops s ON s.id = d.shop_id JOIN notifications n ON n.key = d.key WHERE ",
        is_wanted!(),
        " ORDER BY d.seq DESC LIMIT $7"
    );
    let state = which.state.map(DeliveryState::as_str);
    let order = which.order.as_ref().map(OrderId::as_str);
    let values = values![
        which.seq,
        which.shop.as_deref(),
        which.since,
        state,
        order,
        i64::from(which.tried),
        most
    ];
    let rows = db.rows("listing deliveries", sql, values).await?;
    let delivery = |row: &C::Row| {
        let state = DeliveryState::parse(row.text("state")?);
        Ok(DeliveryRow {
            seq: row.integer("seq")?,
            shop: row.text("shop")?.to_owned(),
            order_id: rows::order_id(row.text("order_id")?)?,
            kind: row.text("kind")?.to_owned(),
            state: state.ok_or(StoreError::Corrupt { what: "state" })?,
            tries: rows::count(row, "tries")?,
            told: row.text("told")?.to_owned(),
            created_at: EpochMs(row.integer("created_at")?),
        })
    };
    rows.iter().map(delivery).collect()
}

/// Makes deliveries due again; a take that is under way is not believed any more.
pub(super) async fn replay<C: Sql>(
    db: &mut C,
    which: &DeliveryFilter,
    now: EpochMs,
) -> Result<u64, StoreError> {
    let now = db.clock(now).await?;
    let sql = concat!(
        "-- replay_deliveries\nUPDATE deliveries AS d SET state = 'waiting', next_at = $7, since = $7, tries = 0, \
         taken_until = 0, takes = takes + 1, ended_at = NULL WHERE ",
        is_wanted!()
    );
    let state = which.state.map(DeliveryState::as_str);
    let order = which.order.as_ref().map(OrderId::as_str);
    let values = values![
        which.seq,
        which.shop.as_deref(),
        which.since,
        state,
        order,
        i64::from(which.tried),
        now
    ];
    db.execute("replaying deliveries", sql, values).await
}
