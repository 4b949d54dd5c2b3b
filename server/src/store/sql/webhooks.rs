//! The webhook inbox: kept raw, looked at afterwards.

use async_trait::async_trait;
use payment::attempt::AttemptStatus;

use super::engine::{Columns, Engine, Lock, Sql, Statement, Tx, values};
use super::group::{Change, Done};
use super::{commit, rows};
use crate::clock::EpochMs;
use crate::store::rules::hints::{self, Hinted};
use crate::store::{AttemptId, NewWebhook, StoreError, WebhookEnd, WebhookRow};

/// What is being done, for errors.
const HINTING: &str = "passing a hint on";

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
    let db = &mut *tx;
    let statements: Vec<_> = order
        .iter()
        .map(|index| ending(ends[*index].0, ends[*index].1))
        .collect();
    let ended = db.run(&statements).await?;
    let mut hints = Vec::new();
    for (index, ended) in order.iter().zip(&ended) {
        match ends[*index].1 {
            WebhookEnd::Hint(attempt) if ended.changed == 1 => hints.push((*index, attempt, true)),
            WebhookEnd::Proven(attempt) if ended.changed == 1 => {
                hints.push((*index, attempt, false));
            }
            _ => {}
        }
    }
    let waited = hint_all(db, &hints, now).await?;
    commit::<D>(tx, doing).await?;
    let mut waits = vec![false; ends.len()];
    for ((index, ..), waited) in hints.iter().zip(waited) {
        waits[*index] = waited;
    }
    Ok(waits)
}

/// The statement that ends a look at one webhook.
fn ending(webhook: i64, end: WebhookEnd) -> Statement<'static> {
    let (state, next_at, attempt) = match end {
        WebhookEnd::Hint(attempt) | WebhookEnd::Proven(attempt) => ("applied", None, Some(attempt)),
        WebhookEnd::Parked(until) => ("parked", Some(until), None),
        WebhookEnd::Ignored => ("ignored", None, None),
        WebhookEnd::Forged => ("forged", None, None),
    };
    let sql = "-- end_webhook\nUPDATE webhooks SET state = $2, next_at = $3, attempt_id = $4, tries = tries + 1 \
               WHERE id = $1 AND next_at IS NOT NULL";
    let values = values![webhook, state, next_at, attempt.map(|id| id.0)];
    Statement::new("applying a webhook", sql, values)
}

/// Makes an attempt due because somebody outside said that it moved.
pub(super) async fn hint<D: Engine>(
    mut tx: Tx<D>,
    attempt: AttemptId,
    now: EpochMs,
    pause: bool,
) -> Result<bool, StoreError> {
    let waits = hint_all(&mut *tx, &[((), attempt, pause)], now).await?;
    commit::<D>(tx, HINTING).await?;
    Ok(waits == [true])
}

/// Passes hints on, one after the other; which of their looks have to wait. `hints` is in the order of the attempts' ids.
async fn hint_all<C: Sql, T>(
    db: &mut C,
    hints: &[(T, AttemptId, bool)],
    now: EpochMs,
) -> Result<Vec<bool>, StoreError> {
    let mut attempts: Vec<AttemptId> = hints.iter().map(|(_, attempt, _)| *attempt).collect();
    attempts.dedup();
    let mut found = read_hinted(db, &attempts).await?;
    let mut waits = Vec::with_capacity(hints.len());
    for (_, attempt, pause) in hints {
        let Some(found) = found.iter_mut().find(|(id, _)| id == attempt) else {
            waits.push(false);
            continue;
        };
        let hint = hints::set(&found.1, now, *pause);
        found.1.ask_at = Some(hint.ask_at);
        found.1.hint_at = Some(hint.hint_at);
        waits.push(hint.hint_at > now);
    }
    let sql = "-- hint\nUPDATE attempts SET ask_at = $2, hint_at = $3 WHERE id = $1";
    let saving = found.iter().map(|(attempt, hinted)| {
        Statement::new(
            HINTING,
            sql,
            values![attempt.0, hinted.ask_at, hinted.hint_at],
        )
    });
    db.run(&saving.collect::<Vec<_>>()).await?;
    Ok(waits)
}

/// Locks attempts, and reads what hints find of those that there are.
async fn read_hinted<C: Sql>(
    db: &mut C,
    attempts: &[AttemptId],
) -> Result<Vec<(AttemptId, Hinted)>, StoreError> {
    let sql = "-- hinted\nSELECT id, status, ask_at, hint_at FROM attempts WHERE id = $1";
    let mut statements = Vec::with_capacity(attempts.len());
    for attempt in attempts {
        statements.extend(C::locking(Lock::Attempt(*attempt)));
        statements.push(Statement::new(HINTING, sql, values![attempt.0]));
    }
    let mut found = Vec::with_capacity(attempts.len());
    for (statement, ran) in statements.iter().zip(db.run(&statements).await?) {
        if let Some(row) = ran.rows.first().filter(|_| statement.sql == sql) {
            found.push((AttemptId(row.integer("id")?), hinted(row)?));
        }
    }
    Ok(found)
}

fn hinted<R: Columns>(row: &R) -> Result<Hinted, StoreError> {
    let status = AttemptStatus::parse(row.text("status")?);
    Ok(Hinted {
        status: status.ok_or(StoreError::Corrupt { what: "status" })?,
        ask_at: row.integer_or_null("ask_at")?.map(EpochMs),
        hint_at: row.integer_or_null("hint_at")?.map(EpochMs),
    })
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
