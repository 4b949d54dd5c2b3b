//! Attempts that wait for the gateway's word: which are due, and when to ask again.

use async_trait::async_trait;
use payment::id::GatewayName;

use super::commit;
use super::engine::{Columns as _, Engine, Lock, Sql, Tx, values};
use super::group::{Change, Done};
use super::rows::{self, attempts, ids, select_attempts};
use crate::clock::EpochMs;
use crate::store::{AttemptId, AttemptRecord, Census, Overdue, StoreError};

/// Attempts about which a gateway is to be asked by `now`, the longest due first. Nothing is taken by looking: who asks
/// is decided by [`move_look`], whichever node looked. No look is ever set twenty minutes ahead, or for a deposit two hours:
/// one that lies farther was set by a clock that was wrong, and is due.
pub(super) async fn due<C: Sql>(
    db: &mut C,
    gateway: &GatewayName,
    now: EpochMs,
    most: u32,
) -> Result<Vec<AttemptRecord>, StoreError> {
    let sql = select_attempts!(
        "due",
        "WHERE gateway = $1 AND (ask_at <= $2 OR (ask_at > $2 + 1200000 \
         AND (status <> 'awaiting_deposit' OR ask_at > $2 + 7200000))) ORDER BY ask_at LIMIT $3"
    );
    let doing = "looking for attempts to ask about";
    let values = values![gateway.as_str(), now, most];
    attempts(&db.rows(doing, sql, values).await?)
}

/// The gateways of which attempts wait for a look.
pub(super) async fn gateways_waiting<C: Sql>(db: &mut C) -> Result<Vec<GatewayName>, StoreError> {
    let sql = "-- gateways_waiting\nSELECT DISTINCT gateway FROM attempts WHERE ask_at IS NOT NULL ORDER BY gateway";
    let doing = "looking for gateways that are waited for";
    let rows = db.rows(doing, sql, &[]).await?;
    rows.iter()
        .map(|row| rows::gateway(row.text("gateway")?))
        .collect()
}

/// When the next attempt of a gateway is due.
pub(super) async fn next_due<C: Sql>(
    db: &mut C,
    gateway: &GatewayName,
) -> Result<Option<EpochMs>, StoreError> {
    let sql = "-- next_due\nSELECT min(ask_at) AS at FROM attempts WHERE gateway = $1 AND ask_at IS NOT NULL";
    let doing = "looking for the next inquiry";
    let row = db.row(doing, sql, values![gateway.as_str()]).await?;
    row.map_or(Ok(None), |row| Ok(row.integer_or_null("at")?.map(EpochMs)))
}

/// The attempt of a gateway that has waited longest to be known.
pub(super) async fn oldest_waiting<C: Sql>(
    db: &mut C,
    gateway: &GatewayName,
) -> Result<Option<AttemptRecord>, StoreError> {
    let sql = select_attempts!(
        "oldest_waiting",
        "WHERE gateway = $1 AND ask_at IS NOT NULL AND status IN ('unknown', 'mischarged', 'cancel_requested') \
         ORDER BY coalesce(unknown_since, 0), id LIMIT 1"
    );
    let doing = "looking for the oldest unknown";
    let rows = db.rows(doing, sql, values![gateway.as_str()]).await?;
    Ok(attempts(&rows)?.pop())
}

/// A next look that moves, if it still is where the asker left it.
pub(super) struct LookMoved {
    pub(super) attempt: AttemptId,
    pub(super) from: EpochMs,
    pub(super) to: Option<EpochMs>,
    pub(super) asks: u32,
}

#[async_trait]
impl<D: Engine> Change<D> for LookMoved {
    type Answer = bool;
    const DOING: &'static str = "noting when to ask again";
    const ONE_STATEMENT: bool = true;

    async fn make(&self, db: &mut D::Connection) -> Result<Done<bool>, StoreError> {
        move_look(db, self).await.map(Done::Keep)
    }
}

async fn move_look<C: Sql>(db: &mut C, look: &LookMoved) -> Result<bool, StoreError> {
    let sql = "-- move_look\nUPDATE attempts SET ask_at = $3, asks = $4, looks = looks + 1 \
               WHERE id = $1 AND ask_at = $2";
    let values = values![look.attempt.0, look.from, look.to, look.asks];
    let moved = db.execute("noting when to ask again", sql, values).await?;
    Ok(moved == 1)
}

/// Gives every waiting attempt without a next look one.
pub(super) async fn rearm<D: Engine>(mut tx: Tx<D>, now: EpochMs) -> Result<u64, StoreError> {
    let doing = "arming what waits";
    tx.lock(Lock::Unarmed).await?;
    let sql = "-- rearm\nUPDATE attempts SET ask_at = $1 WHERE ask_at IS NULL AND payment_key IS NOT NULL AND status IN \
               ('unknown', 'awaiting_deposit', 'mischarged', 'cancel_requested')";
    let armed = tx.execute(doing, sql, values![now]).await?;
    commit::<D>(tx, doing).await?;
    Ok(armed)
}

/// Makes every waiting attempt of a gateway due now.
pub(super) async fn wake_waiting<D: Engine>(
    mut tx: Tx<D>,
    gateway: &GatewayName,
    now: EpochMs,
) -> Result<u64, StoreError> {
    let doing = "waking the unknown attempts";
    tx.lock(Lock::Waiting(gateway, now)).await?;
    let sql = "-- wake_waiting\nUPDATE attempts SET ask_at = $2 WHERE gateway = $1 AND ask_at > $2 AND status IN \
               ('unknown', 'mischarged', 'cancel_requested')";
    let values = values![gateway.as_str(), now];
    let woken = tx.execute(doing, sql, values).await?;
    commit::<D>(tx, doing).await?;
    Ok(woken)
}

/// Attempts that have been approving since before a moment.
pub(super) async fn approving_since<C: Sql>(
    db: &mut C,
    before: EpochMs,
) -> Result<Vec<AttemptId>, StoreError> {
    let sql = "-- approving_since\nSELECT id FROM attempts WHERE status = 'approving' AND claimed_at < $1 ORDER BY id";
    let doing = "looking for interrupted attempts";
    ids(&db.rows(doing, sql, values![before]).await?)
}

/// Ready attempts whose window has closed.
pub(super) async fn lapsed_windows<C: Sql>(
    db: &mut C,
    now: EpochMs,
    most: u32,
) -> Result<Vec<AttemptId>, StoreError> {
    let sql = "-- lapsed_windows\nSELECT id FROM attempts WHERE status = 'ready' AND window_until <= $1 \
               ORDER BY window_until LIMIT $2";
    let doing = "looking for closed windows";
    ids(&db.rows(doing, sql, values![now, most]).await?)
}

/// The figures for the gauges.
pub(super) async fn census<C: Sql>(db: &mut C) -> Result<Census, StoreError> {
    let sql = "-- census\nSELECT (SELECT count(*) FROM attempts WHERE status = 'unknown') AS in_doubt, \
               (SELECT min(unknown_since) FROM attempts WHERE status = 'unknown') AS oldest, \
               (SELECT count(*) FROM webhooks WHERE next_at IS NOT NULL) AS webhooks, \
               (SELECT count(*) FROM refunds WHERE state IN ('waiting', 'asked')) AS refunds, \
               (SELECT min(created_at) FROM refunds WHERE state IN ('waiting', 'asked')) AS oldest_refund";
    let Some(row) = db.row("counting", sql, &[]).await? else {
        return Ok(Census::default());
    };
    Ok(Census {
        unknown: u64::try_from(row.integer("in_doubt")?).unwrap_or(0),
        oldest_unknown: row.integer_or_null("oldest")?.map(EpochMs),
        webhooks_waiting: u64::try_from(row.integer("webhooks")?).unwrap_or(0),
        refunds_open: u64::try_from(row.integer("refunds")?).unwrap_or(0),
        oldest_refund: row.integer_or_null("oldest_refund")?.map(EpochMs),
    })
}

/// What waits longer than it should.
pub(super) async fn overdue<C: Sql>(
    db: &mut C,
    unknown_before: EpochMs,
) -> Result<Overdue, StoreError> {
    let sql = "-- overdue\nSELECT (SELECT count(*) FROM attempts WHERE status = 'unknown' AND unknown_since < $1) AS late, \
               (SELECT count(*) FROM webhooks WHERE attempt_id IS NULL) AS strangers, \
               (SELECT min(received_at) FROM webhooks WHERE next_at IS NOT NULL AND state = 'parked') AS parked";
    let row = db.row("counting", sql, values![unknown_before]).await?;
    let Some(row) = row else {
        return Ok(Overdue::default());
    };
    Ok(Overdue {
        unknown: u64::try_from(row.integer("late")?).unwrap_or(0),
        strangers: u64::try_from(row.integer("strangers")?).unwrap_or(0),
        oldest_parked: row.integer_or_null("parked")?.map(EpochMs),
    })
}
