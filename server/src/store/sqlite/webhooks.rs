//! The webhook inbox: kept raw, looked at afterwards.

use sqlx::Row as _;
use sqlx::sqlite::SqlitePool;

use super::{Tx, commit, failed};
use crate::clock::EpochMs;
use crate::store::{NewWebhook, StoreError, WebhookEnd, WebhookRow};

/// Stores a webhook; false when the same transmission is stored already.
pub(super) async fn keep(db: &SqlitePool, webhook: NewWebhook) -> Result<bool, StoreError> {
    sqlx::query(
        "-- keep_webhook\nINSERT INTO webhooks (gateway, transmission, received_at, headers, body, next_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?3) ON CONFLICT DO NOTHING",
    )
    .bind(webhook.gateway.as_str())
    .bind(webhook.transmission)
    .bind(webhook.at.0)
    .bind(webhook.headers)
    .bind(webhook.body.as_ref())
    .execute(db)
    .await
    .map(|done| done.rows_affected() == 1)
    .map_err(|error| failed("keeping a webhook", error))
}

/// Webhooks to apply by `now`.
pub(super) async fn due(
    db: &SqlitePool,
    now: EpochMs,
    most: u32,
) -> Result<Vec<WebhookRow>, StoreError> {
    let doing = "looking for webhooks";
    let rows = sqlx::query(
        "-- webhooks_due\nSELECT id, gateway, received_at, body, tries FROM webhooks WHERE next_at <= ?1 ORDER BY next_at, id LIMIT ?2",
    )
    .bind(now.0)
    .bind(i64::from(most))
    .fetch_all(db)
    .await
    .map_err(|error| failed(doing, error))?;
    let read = |row: &sqlx::sqlite::SqliteRow| {
        let gateway: &str = row.try_get("gateway")?;
        Ok::<_, sqlx::Error>(WebhookRow {
            id: row.try_get("id")?,
            gateway: payment::id::GatewayName::parse(gateway)
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            received_at: EpochMs(row.try_get("received_at")?),
            body: row.try_get("body")?,
            tries: u32::try_from(row.try_get::<i64, _>("tries")?).unwrap_or(0),
        })
    };
    rows.iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|error| failed(doing, error))
}

/// Ends a look at a webhook; a hint makes its attempt due in the same transaction. What another node has ended meanwhile
/// stays so: a look that found no row is older than one that did.
pub(super) async fn end(
    mut tx: Tx,
    webhook: i64,
    end: WebhookEnd,
    now: EpochMs,
) -> Result<(), StoreError> {
    let doing = "applying a webhook";
    let (state, next_at, attempt) = match end {
        WebhookEnd::Hint(attempt) => ("applied", None, Some(attempt.0)),
        WebhookEnd::Parked(until) => ("parked", Some(until.0), None),
        WebhookEnd::Ignored => ("ignored", None, None),
    };
    sqlx::query(
        "-- end_webhook\nUPDATE webhooks SET state = ?2, next_at = ?3, attempt_id = ?4, tries = tries + 1 \
         WHERE id = ?1 AND next_at IS NOT NULL",
    )
    .bind(webhook)
    .bind(state)
    .bind(next_at)
    .bind(attempt)
    .execute(&mut *tx)
    .await
    .map_err(|error| failed(doing, error))?;
    if let Some(attempt) = attempt {
        sqlx::query("-- webhook_hint\nUPDATE attempts SET ask_at = ?2 WHERE id = ?1")
            .bind(attempt)
            .bind(now.0)
            .execute(&mut *tx)
            .await
            .map_err(|error| failed(doing, error))?;
    }
    commit(tx, doing).await
}
