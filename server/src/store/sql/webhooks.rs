//! The webhook inbox: kept raw, looked at afterwards.

use async_trait::async_trait;
use payment::attempt::AttemptStatus;

use super::engine::{Columns, Engine, Lock, Sql, Tx, values};
use super::group::{Change, Done};
use super::{commit, rows};
use crate::clock::EpochMs;
use crate::store::rules::hints::{self, Hinted};
use crate::store::{AttemptId, NewWebhook, StoreError, WebhookEnd, WebhookRow};

#[async_trait]
impl<D: Engine> Change<D> for NewWebhook {
    type Answer = bool;
    const DOING: &'static str = "keeping a webhook";
    const ONE_STATEMENT: bool = true;

    async fn make(&self, db: &mut D::Connection) -> Result<Done<bool>, StoreError> {
        keep(db, self).await.map(Done::Keep)
    }
}

/// Stores a webhook; false when the same transmission is stored already.
async fn keep<C: Sql>(db: &mut C, webhook: &NewWebhook) -> Result<bool, StoreError> {
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

/// Ends looks at webhooks; each hint makes its attempt due in the same transaction. One that another node ended meanwhile
/// stays as that node left it. For each, whether the hinted look has to wait.
pub(super) async fn end<D: Engine>(
    mut tx: Tx<D>,
    ends: &[(i64, WebhookEnd)],
    now: EpochMs,
) -> Result<Vec<bool>, StoreError> {
    let doing = "applying webhooks";
    // All nodes lock the attempts in one order, so that none waits for another in a circle.
    let hinted = |index: &usize| match ends[*index].1 {
        WebhookEnd::Hint(attempt) | WebhookEnd::Proven(attempt) => attempt.0,
        WebhookEnd::Parked(_) | WebhookEnd::Ignored | WebhookEnd::Forged => 0,
    };
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by_key(hinted);
    let mut waits = vec![false; ends.len()];
    for index in order {
        let (webhook, end) = ends[index];
        waits[index] = end_one(&mut *tx, webhook, end, now).await?;
    }
    commit::<D>(tx, doing).await?;
    Ok(waits)
}

async fn end_one<C: Sql>(
    db: &mut C,
    webhook: i64,
    end: WebhookEnd,
    now: EpochMs,
) -> Result<bool, StoreError> {
    let (state, next_at, attempt) = match end {
        WebhookEnd::Hint(attempt) | WebhookEnd::Proven(attempt) => ("applied", None, Some(attempt)),
        WebhookEnd::Parked(until) => ("parked", Some(until), None),
        WebhookEnd::Ignored => ("ignored", None, None),
        WebhookEnd::Forged => ("forged", None, None),
    };
    let sql = "-- end_webhook\nUPDATE webhooks SET state = $2, next_at = $3, attempt_id = $4, tries = tries + 1 \
               WHERE id = $1 AND next_at IS NOT NULL";
    let values = values![webhook, state, next_at, attempt.map(|id| id.0)];
    let ended = db.execute("applying a webhook", sql, values).await?;
    let pause = !matches!(end, WebhookEnd::Proven(_));
    match attempt {
        Some(attempt) if ended == 1 => hint_in(db, attempt, now, pause).await,
        Some(_) | None => Ok(false),
    }
}

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
    let found = Hinted {
        status: status.ok_or(StoreError::Corrupt { what: "status" })?,
        ask_at: row.integer_or_null("ask_at")?.map(EpochMs),
        hint_at: row.integer_or_null("hint_at")?.map(EpochMs),
    };
    let hint = hints::set(&found, now, pause);
    let sql = "-- hint\nUPDATE attempts SET ask_at = $2, hint_at = $3 WHERE id = $1";
    db.execute(doing, sql, values![attempt.0, hint.ask_at, hint.hint_at])
        .await?;
    Ok(hint.hint_at > now)
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
