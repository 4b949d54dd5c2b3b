//! Attempts that wait for the gateway's word: which are due, and when to ask again.

use payment::id::{GatewayName, IdempotencyKey};
use sqlx::Row as _;
use sqlx::sqlite::SqlitePool;

use super::rows::select_attempts;
use super::{Tx, commit, failed};
use crate::clock::EpochMs;
use crate::store::{AttemptId, AttemptRecord, Census, StoreError};

/// Attempts about which the gateway is to be asked by `now`, the longest due first. No look is ever set twenty minutes
/// ahead: one that lies farther was set by a clock that was wrong, and is due.
pub(super) async fn due(
    db: &SqlitePool,
    now: EpochMs,
    most: u32,
) -> Result<Vec<AttemptRecord>, StoreError> {
    sqlx::query_as(select_attempts!(
        "due",
        "WHERE ask_at <= ?1 OR ask_at > ?1 + 1200000 ORDER BY ask_at LIMIT ?2"
    ))
    .bind(now.0)
    .bind(i64::from(most))
    .fetch_all(db)
    .await
    .map_err(|error| failed("looking for attempts to ask about", error))
}

/// When the next attempt is due.
pub(super) async fn next_due(db: &SqlitePool) -> Result<Option<EpochMs>, StoreError> {
    sqlx::query_scalar("-- next_due\nSELECT min(ask_at) FROM attempts WHERE ask_at IS NOT NULL")
        .fetch_one(db)
        .await
        .map(|at: Option<i64>| at.map(EpochMs))
        .map_err(|error| failed("looking for the next inquiry", error))
}

/// The attempt of a gateway that has waited longest to be known.
pub(super) async fn oldest_waiting(
    db: &SqlitePool,
    gateway: &GatewayName,
) -> Result<Option<AttemptRecord>, StoreError> {
    sqlx::query_as(select_attempts!(
        "oldest_waiting",
        "WHERE gateway = ?1 AND ask_at IS NOT NULL AND status IN ('unknown', 'mischarged', 'cancel_requested') \
         ORDER BY unknown_since, id LIMIT 1"
    ))
    .bind(gateway.as_str())
    .fetch_optional(db)
    .await
    .map_err(|error| failed("looking for the oldest unknown", error))
}

/// Moves an attempt's next look, if it still is where the asker left it.
pub(super) async fn move_look(
    db: &SqlitePool,
    attempt: AttemptId,
    from: EpochMs,
    to: Option<EpochMs>,
    asks: u32,
) -> Result<bool, StoreError> {
    sqlx::query(
        "-- move_look\nUPDATE attempts SET ask_at = ?3, asks = ?4 WHERE id = ?1 AND ask_at = ?2",
    )
    .bind(attempt.0)
    .bind(from.0)
    .bind(to.map(|at| at.0))
    .bind(i64::from(asks))
    .execute(db)
    .await
    .map(|done| done.rows_affected() == 1)
    .map_err(|error| failed("noting when to ask again", error))
}

/// Gives every waiting attempt without a next look one.
pub(super) async fn rearm(db: &SqlitePool, now: EpochMs) -> Result<u64, StoreError> {
    sqlx::query(
        "-- rearm\nUPDATE attempts SET ask_at = ?1 WHERE ask_at IS NULL AND payment_key IS NOT NULL AND status IN \
         ('unknown', 'awaiting_deposit', 'mischarged', 'cancel_requested')",
    )
    .bind(now.0)
    .execute(db)
    .await
    .map(|done| done.rows_affected())
    .map_err(|error| failed("arming what waits", error))
}

/// Makes every waiting attempt of a gateway due now.
pub(super) async fn wake_waiting(
    db: &SqlitePool,
    gateway: &GatewayName,
    now: EpochMs,
) -> Result<u64, StoreError> {
    sqlx::query(
        "-- wake_waiting\nUPDATE attempts SET ask_at = ?2 WHERE gateway = ?1 AND ask_at > ?2 AND status IN \
         ('unknown', 'mischarged', 'cancel_requested')",
    )
    .bind(gateway.as_str())
    .bind(now.0)
    .execute(db)
    .await
    .map(|done| done.rows_affected())
    .map_err(|error| failed("waking the unknown attempts", error))
}

/// Fixes the key of a cancel, so that a resend after a crash is the same cancel.
pub(super) async fn cancel_key(
    mut tx: Tx,
    attempt: AttemptId,
    key: IdempotencyKey,
    replace: bool,
) -> Result<IdempotencyKey, StoreError> {
    let doing = "fixing the key of a cancel";
    sqlx::query("-- cancel_key\nUPDATE attempts SET cancel_key = ?2 WHERE id = ?1 AND (?3 OR cancel_key IS NULL)")
        .bind(attempt.0)
        .bind(key.as_str())
        .bind(replace)
        .execute(&mut *tx)
        .await
        .map_err(|error| failed(doing, error))?;
    let stored: String =
        sqlx::query_scalar("-- cancel_key_now\nSELECT cancel_key FROM attempts WHERE id = ?1")
            .bind(attempt.0)
            .fetch_one(&mut *tx)
            .await
            .map_err(|error| failed(doing, error))?;
    commit(tx, doing).await?;
    IdempotencyKey::parse(&stored).map_err(|_| StoreError::Corrupt { what: "cancel key" })
}

/// Attempts that have been approving since before a moment.
pub(super) async fn approving_since(
    db: &SqlitePool,
    before: EpochMs,
) -> Result<Vec<AttemptId>, StoreError> {
    sqlx::query_scalar(
        "-- approving_since\nSELECT id FROM attempts WHERE status = 'approving' AND claimed_at < ?1 ORDER BY id",
    )
    .bind(before.0)
    .fetch_all(db)
    .await
    .map(|ids: Vec<i64>| ids.into_iter().map(AttemptId).collect())
    .map_err(|error| failed("looking for interrupted attempts", error))
}

/// Ready attempts whose window has closed.
pub(super) async fn lapsed_windows(
    db: &SqlitePool,
    now: EpochMs,
    most: u32,
) -> Result<Vec<AttemptId>, StoreError> {
    sqlx::query_scalar(
        "-- lapsed_windows\nSELECT id FROM attempts WHERE status = 'ready' AND window_until <= ?1 ORDER BY window_until LIMIT ?2",
    )
    .bind(now.0)
    .bind(i64::from(most))
    .fetch_all(db)
    .await
    .map(|ids: Vec<i64>| ids.into_iter().map(AttemptId).collect())
    .map_err(|error| failed("looking for closed windows", error))
}

/// The figures for the gauges.
pub(super) async fn census(db: &SqlitePool) -> Result<Census, StoreError> {
    let row = sqlx::query(
        "-- census\nSELECT (SELECT count(*) FROM attempts WHERE status = 'unknown') AS unknown, \
         (SELECT min(unknown_since) FROM attempts WHERE status = 'unknown') AS oldest, \
         (SELECT count(*) FROM webhooks WHERE next_at IS NOT NULL) AS webhooks",
    )
    .fetch_one(db)
    .await
    .map_err(|error| failed("counting", error))?;
    let count = |name| {
        row.try_get::<i64, _>(name)
            .map(|n| u64::try_from(n).unwrap_or(0))
    };
    let read = || {
        Ok::<_, sqlx::Error>(Census {
            unknown: count("unknown")?,
            oldest_unknown: row.try_get::<Option<i64>, _>("oldest")?.map(EpochMs),
            webhooks_waiting: count("webhooks")?,
        })
    };
    read().map_err(|error| failed("counting", error))
}
