//! The webhook inbox: kept raw, looked at afterwards.

use super::engine::{Columns, Engine, Sql, Tx, values};
use super::{commit, rows};
use crate::clock::EpochMs;
use crate::store::{NewWebhook, StoreError, WebhookEnd, WebhookRow};

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
/// stays as that node left it.
pub(super) async fn end<D: Engine>(
    mut tx: Tx<D>,
    webhook: i64,
    end: WebhookEnd,
    now: EpochMs,
) -> Result<(), StoreError> {
    let doing = "applying a webhook";
    let (state, next_at, attempt) = match end {
        WebhookEnd::Hint(attempt) => ("applied", None, Some(attempt.0)),
        WebhookEnd::Parked(until) => ("parked", Some(until), None),
        WebhookEnd::Ignored => ("ignored", None, None),
    };
    let sql = "-- end_webhook\nUPDATE webhooks SET state = $2, next_at = $3, attempt_id = $4, tries = tries + 1 \
               WHERE id = $1 AND next_at IS NOT NULL";
    let values = values![webhook, state, next_at, attempt];
    let ended = tx.execute(doing, sql, values).await?;
    if let Some(attempt) = attempt
        && ended == 1
    {
        let sql = "-- webhook_hint\nUPDATE attempts SET ask_at = $2 WHERE id = $1";
        tx.execute(doing, sql, values![attempt, now]).await?;
    }
    commit::<D>(tx, doing).await
}
