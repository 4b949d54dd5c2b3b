//! What operators' commands read and mark.

use async_trait::async_trait;
use payment::id::Sku;

use super::engine::{Columns, Engine, Sql, values};
use super::rows::{self, attempts, select_attempts};
use super::{SqlStore, orders};
use crate::clock::EpochMs;
use crate::store::desk::{
    DeskStore, StockCount, StoredWebhook, Unresolved, WebhookFilter, WebhookState,
};
use crate::store::{AttemptId, AttemptRecord, EvidenceRow, StoreError};

#[async_trait]
impl<D: Engine> DeskStore for SqlStore<D> {
    async fn unresolved(&self, before: EpochMs, most: u32) -> Result<Vec<Unresolved>, StoreError> {
        unresolved(&mut *self.reader().await?, before, most).await
    }

    async fn webhooks(
        &self,
        which: WebhookFilter,
        most: u32,
    ) -> Result<Vec<StoredWebhook>, StoreError> {
        webhooks(&mut *self.reader().await?, which, most).await
    }

    async fn count_webhooks(&self, which: WebhookFilter) -> Result<u64, StoreError> {
        count_webhooks(&mut *self.reader().await?, which).await
    }

    async fn replay_webhooks(&self, which: WebhookFilter, now: EpochMs) -> Result<u64, StoreError> {
        replay(&mut *self.writer().await?, which, now).await
    }

    async fn attempts_between(
        &self,
        from: EpochMs,
        until: EpochMs,
        after: AttemptId,
        most: u32,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let db = &mut *self.reader().await?;
        attempts_between(db, (from, until), after, most).await
    }

    async fn stock(&self) -> Result<Vec<StockCount>, StoreError> {
        stock(&mut *self.reader().await?).await
    }
}

async fn unresolved<C: Sql>(
    db: &mut C,
    before: EpochMs,
    most: u32,
) -> Result<Vec<Unresolved>, StoreError> {
    let doing = "looking for what is not final";
    let sql = select_attempts!(
        "unresolved",
        "WHERE status IN ('approving', 'unknown', 'awaiting_deposit', 'mischarged', 'cancel_requested') \
         AND coalesce(unknown_since, claimed_at, created_at) < $1 \
         ORDER BY coalesce(unknown_since, claimed_at, created_at), id LIMIT $2"
    );
    let found = attempts(&db.rows(doing, sql, values![before, most]).await?)?;
    let mut told = Vec::with_capacity(found.len());
    for attempt in found {
        let last = last_evidence(db, attempt.id).await?;
        let since = attempt.unknown_since.or(attempt.claimed_at);
        told.push(Unresolved {
            since: since.unwrap_or(attempt.window_until),
            attempt,
            last,
        });
    }
    Ok(told)
}

async fn last_evidence<C: Sql>(
    db: &mut C,
    attempt: AttemptId,
) -> Result<Option<EvidenceRow>, StoreError> {
    let sql = "-- last_evidence\nSELECT e.at, e.source, e.event, e.status, e.told FROM evidence e \
               JOIN attempts a ON a.order_id = e.order_id WHERE a.id = $1 AND e.attempt_id = $1 ORDER BY e.id DESC LIMIT 1";
    let row = db
        .row("reading the evidence", sql, values![attempt.0])
        .await?;
    row.as_ref().map(orders::evidence_row).transpose()
}

/// The values of [`SELECTED`].
macro_rules! selected {
    ($which:expr $(, $more:expr)*) => {
        values![
            $which.id,
            $which.since,
            $which.state.map(WebhookState::as_str)
            $(, $more)*
        ]
    };
}

/// The webhooks that a filter of `$1` to `$3` leaves.
macro_rules! of_filter {
    ($($around:literal),*) => {
        concat!(
            $($around,)*
            "($1 IS NULL OR id = $1) AND ($2 IS NULL OR received_at >= $2) AND (CAST($3 AS TEXT) IS NULL OR state = $3)"
        )
    };
}

async fn webhooks<C: Sql>(
    db: &mut C,
    which: WebhookFilter,
    most: u32,
) -> Result<Vec<StoredWebhook>, StoreError> {
    const SQL: &str = concat!(
        of_filter!(
            "-- webhooks\nSELECT id, gateway, transmission, received_at, body, state, tries, attempt_id FROM webhooks WHERE "
        ),
        " ORDER BY id DESC LIMIT $4"
    );
    let rows = db
        .rows("reading webhooks", SQL, selected!(which, most))
        .await?;
    rows.iter().map(webhook).collect()
}

fn webhook<R: Columns>(row: &R) -> Result<StoredWebhook, StoreError> {
    let corrupt = StoreError::Corrupt {
        what: "webhook's state",
    };
    Ok(StoredWebhook {
        id: row.integer("id")?,
        gateway: rows::gateway(row.text("gateway")?)?,
        transmission: row.text_or_null("transmission")?.map(str::to_owned),
        received_at: EpochMs(row.integer("received_at")?),
        body: row.bytes("body")?,
        state: WebhookState::parse(row.text("state")?).ok_or(corrupt)?,
        tries: u32::try_from(row.integer("tries")?).unwrap_or(u32::MAX),
        attempt: row.integer_or_null("attempt_id")?.map(AttemptId),
    })
}

async fn count_webhooks<C: Sql>(db: &mut C, which: WebhookFilter) -> Result<u64, StoreError> {
    const SQL: &str = of_filter!("-- count_webhooks\nSELECT count(*) AS n FROM webhooks WHERE ");
    let row = db.row("counting webhooks", SQL, selected!(which)).await?;
    let n = row.map_or(Ok(0), |row| row.integer("n"))?;
    Ok(u64::try_from(n).unwrap_or(0))
}

/// Looked at as if they came now; to which attempt one led is kept until then.
async fn replay<C: Sql>(db: &mut C, which: WebhookFilter, now: EpochMs) -> Result<u64, StoreError> {
    const SQL: &str = of_filter!(
        "-- replay_webhooks\nUPDATE webhooks SET state = 'new', tries = 0, next_at = $4 WHERE "
    );
    db.execute("replaying webhooks", SQL, selected!(which, now))
        .await
}

async fn attempts_between<C: Sql>(
    db: &mut C,
    (from, until): (EpochMs, EpochMs),
    after: AttemptId,
    most: u32,
) -> Result<Vec<AttemptRecord>, StoreError> {
    let sql = select_attempts!(
        "attempts_between",
        "WHERE id > $3 AND coalesce(claimed_at, created_at) >= $1 AND coalesce(claimed_at, created_at) < $2 \
         ORDER BY id LIMIT $4"
    );
    let values = values![from, until, after.0, most];
    attempts(&db.rows("reading a day's attempts", sql, values).await?)
}

/// One statement, so that everything is seen as it was at one moment.
async fn stock<C: Sql>(db: &mut C) -> Result<Vec<StockCount>, StoreError> {
    let sql = "-- stock\nSELECT p.sku, p.total, p.reserved, p.sold, \
        CAST(coalesce(sum(CASE WHEN a.status IN ('approving', 'unknown', 'awaiting_deposit', 'mischarged') \
            OR (a.status = 'cancel_requested' AND a.cancel_from IN ('awaiting_deposit', 'mischarged')) THEN l.quantity END), 0) AS BIGINT) AS held_reserved, \
        CAST(coalesce(sum(CASE WHEN a.status IN ('approved', 'partially_canceled') \
            OR (a.status = 'cancel_requested' AND a.cancel_from IN ('approved', 'partially_canceled')) \
            THEN l.quantity END), 0) AS BIGINT) AS held_sold \
        FROM products p LEFT JOIN order_lines l ON l.sku = p.sku \
        LEFT JOIN attempts a ON a.order_id = l.order_id AND a.status NOT IN ('ready', 'failed', 'expired', 'canceled') \
        GROUP BY p.sku, p.total, p.reserved, p.sold ORDER BY p.sku";
    let rows = db.rows("counting the stock", sql, &[]).await?;
    let count = |row: &C::Row| {
        let sku = row.text("sku")?;
        Ok(StockCount {
            sku: Sku::parse(sku).map_err(|_| StoreError::Corrupt { what: "sku" })?,
            total: row.integer("total")?,
            counted: (row.integer("reserved")?, row.integer("sold")?),
            held: (row.integer("held_reserved")?, row.integer("held_sold")?),
        })
    };
    rows.iter().map(count).collect()
}
