//! The webhook inbox: kept raw, looked at afterwards.

use payment::attempt::AttemptStatus;
use payment::time::Millis;

use super::engine::{Columns, Engine, Lock, Sql, Tx, values};
use super::{commit, rows};
use crate::clock::EpochMs;
use crate::store::{AttemptId, NewWebhook, StoreError, WebhookEnd, WebhookRow};

/// Stores a webhook; false when the same transmission is stored already.
pub(super) async fn keep<C: Sql>(db: &mut C, webhook: &NewWebhook) -> Result<bool, StoreError> {
    let sql = "-- keep_webhook\nINSERT INTO webhooks (gateway, transmission, received_at, headers, body, next_at) \
               VALUES ($1, $2, $3, $4, $5, $3) ON CONFLICT DO NOTHING";
    let values = values![
        webhook.gateway.as_str(),
        webhook.transmission.as_deref(),
        webhook.at,
        webhook.headers.as_str(),
        webhook.body.as_ref(),
    ];
    let kept = db.execute("keeping a webhook", sql, values).await?;
    Ok(kept == 1)
}

/// Webhooks to apply by `now`.
pub(super) async fn due<C: Sql>(
    db: &mut C,
    now: EpochMs,
    most: u32,
) -> Result<Vec<WebhookRow>, StoreError> {
    let sql = "-- webhooks_due\nSELECT id, gateway, received_at, body, tries FROM webhooks WHERE next_at <= $1 \
               ORDER BY next_at, id LIMIT $2";
    let doing = "looking for webhooks";
    let rows = db.rows(doing, sql, values![now, most]).await?;
    rows.iter().map(webhook).collect()
}

fn webhook<R: Columns>(row: &R) -> Result<WebhookRow, StoreError> {
    Ok(WebhookRow {
        id: row.integer("id")?,
        gateway: rows::gateway(row.text("gateway")?)?,
        received_at: EpochMs(row.integer("received_at")?),
        body: row.bytes("body")?,
        tries: u32::try_from(row.integer("tries")?).unwrap_or(0),
    })
}

/// Ends a look at a webhook; a hint makes its attempt due in the same transaction. One that another node ended meanwhile
/// stays as that node left it. Whether the hinted look has to wait.
pub(super) async fn end<D: Engine>(
    mut tx: Tx<D>,
    webhook: i64,
    end: WebhookEnd,
    now: EpochMs,
) -> Result<bool, StoreError> {
    let doing = "applying a webhook";
    let (state, next_at, attempt) = match end {
        WebhookEnd::Hint(attempt) | WebhookEnd::Proven(attempt) => ("applied", None, Some(attempt)),
        WebhookEnd::Parked(until) => ("parked", Some(until), None),
        WebhookEnd::Ignored => ("ignored", None, None),
        WebhookEnd::Forged => ("forged", None, None),
    };
    let sql = "-- end_webhook\nUPDATE webhooks SET state = $2, next_at = $3, attempt_id = $4, tries = tries + 1 \
               WHERE id = $1 AND next_at IS NOT NULL";
    let values = values![webhook, state, next_at, attempt.map(|id| id.0)];
    let ended = tx.execute(doing, sql, values).await?;
    let mut waits = false;
    if let Some(attempt) = attempt
        && ended == 1
    {
        let pause = !matches!(end, WebhookEnd::Proven(_));
        waits = hint_in(&mut *tx, attempt, now, pause).await?;
    }
    commit::<D>(tx, doing).await?;
    Ok(waits)
}

/// How long after a look that a hint caused the next one may be caused, while the attempt is open.
const OPEN_PAUSE: Millis = Millis::from_secs(1);
/// The same when it has ended.
const ENDED_PAUSE: Millis = Millis::from_secs(10);

/// Makes an attempt due because somebody outside said that it moved.
pub(super) async fn hint<D: Engine>(
    mut tx: Tx<D>,
    attempt: AttemptId,
    now: EpochMs,
    pause: bool,
) -> Result<bool, StoreError> {
    let waits = hint_in(&mut *tx, attempt, now, pause).await?;
    commit::<D>(tx, "passing a hint on").await?;
    Ok(waits)
}

async fn hint_in<C: Sql>(
    db: &mut C,
    attempt: AttemptId,
    now: EpochMs,
    pause: bool,
) -> Result<bool, StoreError> {
    let doing = "passing a hint on";
    db.lock(Lock::Attempt(attempt)).await?;
    let sql = "-- hinted\nSELECT status, ask_at, hint_at FROM attempts WHERE id = $1";
    let Some(row) = db.row(doing, sql, values![attempt.0]).await? else {
        return Ok(false);
    };
    let status = AttemptStatus::parse(row.text("status")?);
    let open = status.is_some_and(AttemptStatus::is_open);
    let last = row.integer_or_null("hint_at")?.map(EpochMs);
    let length = if open { OPEN_PAUSE } else { ENDED_PAUSE };
    let due = match last {
        _ if !pause => now,
        // A look is set for the end of the pause already: this hint is among those that it is for.
        Some(set) if set > now && set <= now.plus(ENDED_PAUSE) => set,
        // Farther ahead than any is ever set: by a clock that was wrong.
        Some(before) if before <= now => now.max(before.plus(length)),
        Some(_) | None => now,
    };
    // One that waits for its turn keeps its place in the queue. A look in progress has asked before the hint, perhaps: it
    // holds a moment ahead, or, while it gives money back, one that it has set itself.
    let gives_back = matches!(
        status,
        Some(AttemptStatus::Mischarged | AttemptStatus::CancelRequested)
    );
    let queued = row.integer_or_null("ask_at")?.map(EpochMs);
    let queued = queued.filter(|at| *at <= now && !gives_back);
    let ask_at = queued.unwrap_or(due);
    let sql = "-- hint\nUPDATE attempts SET ask_at = $2, hint_at = $3 WHERE id = $1";
    db.execute(doing, sql, values![attempt.0, ask_at, due])
        .await?;
    Ok(due > now)
}

/// How many raw webhooks of an attempt are stored.
pub(super) async fn count_of<C: Sql>(db: &mut C, attempt: AttemptId) -> Result<u64, StoreError> {
    let sql = "-- webhooks_of\nSELECT count(*) AS n FROM webhooks WHERE attempt_id = $1";
    let row = db.row("counting webhooks", sql, values![attempt.0]).await?;
    let n = row.map_or(Ok(0), |row| row.integer("n"))?;
    Ok(u64::try_from(n).unwrap_or(0))
}

/// Drops webhooks that are done with and came before a moment.
pub(super) async fn sweep<C: Sql>(
    db: &mut C,
    before: EpochMs,
    most: u32,
) -> Result<u64, StoreError> {
    let sql = "-- sweep_webhooks\nDELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks WHERE next_at IS NULL \
               AND received_at < $1 ORDER BY received_at LIMIT $2)";
    db.execute("sweeping webhooks", sql, values![before, most])
        .await
}
