//! The embedded database: one writer, several readers, write-ahead log, every commit on disk before it is believed.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use metrics::histogram;
use payment::attempt::{Event, LateSuccess};
use payment::id::{GatewayName, GatewayOrderId, IdempotencyKey, OrderId, PaymentKey};
use payment::time::Millis;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Sqlite, Transaction};

use super::{
    AttemptId, AttemptRecord, Beat, Census, Claim, Claimed, Evidence, EvidenceRow, LineRow,
    NewAttemptRow, NewOrderRow, NewWebhook, NodeSlots, Opened, OrderMade, OrderRecord, Owner,
    PoolCensus, ProductRow, Recorded, Store, StoreError, WebhookEnd, WebhookRow,
};
use crate::clock::EpochMs;

mod changes;
mod claim;
mod nodes;
mod orders;
mod record;
mod rows;
mod waiting;
mod webhooks;

/// How many connections of one purpose read at once: more would only take turns on the same disk.
const READERS: u32 = 4;

/// The SQLite store. Clones share the writer; each purpose has readers of its own, so that none can starve another.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    purpose: &'static str,
    options: SqliteConnectOptions,
    wait: Duration,
}

type Tx = Transaction<'static, Sqlite>;

impl SqliteStore {
    /// Opens the file that `url` names (`sqlite://jari.db`), makes it if it is not there, and migrates it.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be opened or migrated.
    pub async fn open(url: &str, database_wait: Millis) -> Result<Self, StoreError> {
        let wait = database_wait.to_duration();
        let options = SqliteConnectOptions::from_str(url)
            .map_err(|error| failed("reading DATABASE_URL", error))?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // With less a committed payment can vanish when the power fails.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(wait);
        let writer = pool(1, wait).connect_with(options.clone()).await;
        let writer = writer.map_err(|error| failed("opening the database", error))?;
        sqlx::migrate!("migrations/sqlite")
            .run(&writer)
            .await
            .map_err(|error| StoreError::Failed {
                doing: "migrating",
                source: Box::new(error),
            })?;
        let options = options.read_only(true).create_if_missing(false);
        Ok(Self {
            writer,
            readers: readers(&options, wait).await?,
            purpose: "core",
            options,
            wait,
        })
    }

    /// The same database with readers of its own for a purpose.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be opened.
    pub async fn beside(&self, purpose: &'static str) -> Result<Self, StoreError> {
        Ok(Self {
            readers: readers(&self.options, self.wait).await?,
            purpose,
            ..self.clone()
        })
    }

    /// Opens a database file at `path`.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_file(path: &Path, database_wait: Millis) -> Result<Self, StoreError> {
        Self::open(&format!("sqlite://{}", path.display()), database_wait).await
    }

    /// A transaction that takes the write lock at its start: one that reads first and writes later can fail at once,
    /// whatever the busy timeout.
    async fn write(&self) -> Result<Tx, StoreError> {
        self.writer
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|error| failed("taking the writer", error))
    }
}

/// The file that an address names; `None` for a database in memory.
#[must_use]
pub fn file_of(url: &str) -> Option<PathBuf> {
    let options = SqliteConnectOptions::from_str(url).ok()?;
    let file = options.get_filename();
    let named = !file.as_os_str().is_empty() && !url.contains(":memory:");
    named.then(|| file.to_owned())
}

/// Commits, and measures how long that took: it is a write to the disk, and the one queue that all writers share.
async fn commit(tx: Tx, doing: &'static str) -> Result<(), StoreError> {
    let begun = Instant::now();
    let committed = tx.commit().await;
    histogram!("database_commit_seconds").record(begun.elapsed().as_secs_f64());
    committed.map_err(|error| failed(doing, error))
}

async fn readers(options: &SqliteConnectOptions, wait: Duration) -> Result<SqlitePool, StoreError> {
    pool(READERS, wait)
        .connect_with(options.clone())
        .await
        .map_err(|error| failed("opening the database to read", error))
}

fn census_of(pool: &'static str, of: &SqlitePool) -> PoolCensus {
    let idle = u32::try_from(of.num_idle()).unwrap_or(u32::MAX);
    PoolCensus {
        pool,
        busy: of.size().saturating_sub(idle),
        idle,
        most: of.options().get_max_connections(),
    }
}

fn pool(size: u32, wait: Duration) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(size)
        .min_connections(1)
        .acquire_timeout(wait)
}

/// Turns a driver's error into ours: busy is told apart, since it proves that nothing was done.
fn failed(doing: &'static str, error: sqlx::Error) -> StoreError {
    let busy = match &error {
        sqlx::Error::PoolTimedOut => true,
        // SQLITE_BUSY and its extended codes end in 5.
        sqlx::Error::Database(error) => error
            .code()
            .and_then(|code| code.parse::<u32>().ok())
            .is_some_and(|code| code & 0xff == 5),
        _ => false,
    };
    if busy {
        StoreError::Busy
    } else {
        StoreError::Failed {
            doing,
            source: Box::new(error),
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("-- ping\nSELECT 1")
            .execute(&self.readers)
            .await
            .map(|_| ())
            .map_err(|error| failed("asking whether the database answers", error))
    }

    async fn products(&self) -> Result<Vec<ProductRow>, StoreError> {
        orders::products(&self.readers).await
    }

    async fn make_order(&self, order: NewOrderRow) -> Result<OrderMade, StoreError> {
        orders::make_order(self.write().await?, order).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderRecord>, StoreError> {
        let mut reader = self.reader().await?;
        rows::order(&mut reader, id).await
    }

    async fn lines(&self, id: &OrderId) -> Result<Vec<LineRow>, StoreError> {
        orders::lines(&self.readers, id).await
    }

    async fn evidence(&self, id: &OrderId) -> Result<Vec<EvidenceRow>, StoreError> {
        orders::evidence(&self.readers, id).await
    }

    async fn orders_of(
        &self,
        owner: &Owner,
        skip: u32,
        most: u32,
    ) -> Result<Vec<OrderRecord>, StoreError> {
        let mut reader = self.reader().await?;
        orders::orders_of(&mut reader, owner, skip, most).await
    }

    async fn open_attempt(&self, attempt: NewAttemptRow) -> Result<Opened, StoreError> {
        claim::open_attempt(self.write().await?, attempt).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        claim::claim(self.write().await?, claim).await
    }

    async fn record(
        &self,
        attempt: AttemptId,
        event: Event,
        evidence: Evidence,
        late: LateSuccess,
    ) -> Result<Recorded, StoreError> {
        record::record(self.write().await?, attempt, event, evidence, late).await
    }

    async fn attempt(&self, id: AttemptId) -> Result<Option<AttemptRecord>, StoreError> {
        let mut reader = self.reader().await?;
        rows::attempt(&mut reader, id).await
    }

    async fn attempts_by_key(
        &self,
        gateway: &GatewayName,
        key: &PaymentKey,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        rows::attempts_by_key(&self.readers, gateway, key).await
    }

    async fn attempts_by_gateway_order(
        &self,
        id: &GatewayOrderId,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let mut reader = self.reader().await?;
        rows::attempts_by_gateway_order(&mut reader, id).await
    }

    async fn due(&self, now: EpochMs, most: u32) -> Result<Vec<AttemptRecord>, StoreError> {
        waiting::due(&self.readers, now, most).await
    }

    async fn next_due(&self) -> Result<Option<EpochMs>, StoreError> {
        waiting::next_due(&self.readers).await
    }

    async fn oldest_waiting(
        &self,
        gateway: &GatewayName,
    ) -> Result<Option<AttemptRecord>, StoreError> {
        waiting::oldest_waiting(&self.readers, gateway).await
    }

    async fn move_look(
        &self,
        attempt: AttemptId,
        from: EpochMs,
        to: Option<EpochMs>,
        asks: u32,
    ) -> Result<bool, StoreError> {
        waiting::move_look(&self.writer, attempt, from, to, asks).await
    }

    async fn rearm(&self, now: EpochMs) -> Result<u64, StoreError> {
        waiting::rearm(&self.writer, now).await
    }

    async fn wake_waiting(&self, gateway: &GatewayName, now: EpochMs) -> Result<u64, StoreError> {
        waiting::wake_waiting(&self.writer, gateway, now).await
    }

    async fn cancel_key(
        &self,
        attempt: AttemptId,
        key: IdempotencyKey,
        replace: bool,
    ) -> Result<IdempotencyKey, StoreError> {
        waiting::cancel_key(self.write().await?, attempt, key, replace).await
    }

    async fn approving_since(&self, before: EpochMs) -> Result<Vec<AttemptId>, StoreError> {
        waiting::approving_since(&self.readers, before).await
    }

    async fn lapsed_windows(&self, now: EpochMs, most: u32) -> Result<Vec<AttemptId>, StoreError> {
        waiting::lapsed_windows(&self.readers, now, most).await
    }

    async fn lapse_orders(&self, now: EpochMs) -> Result<u64, StoreError> {
        orders::lapse(&self.writer, now).await
    }

    async fn keep_webhook(&self, webhook: NewWebhook) -> Result<bool, StoreError> {
        webhooks::keep(&self.writer, webhook).await
    }

    async fn webhooks_due(&self, now: EpochMs, most: u32) -> Result<Vec<WebhookRow>, StoreError> {
        webhooks::due(&self.readers, now, most).await
    }

    async fn end_webhook(
        &self,
        webhook: i64,
        end: WebhookEnd,
        now: EpochMs,
    ) -> Result<(), StoreError> {
        webhooks::end(self.write().await?, webhook, end, now).await
    }

    async fn changes_after(&self, position: i64) -> Result<Vec<(i64, OrderId)>, StoreError> {
        changes::after(&self.readers, position).await
    }

    async fn end_of_changes(&self) -> Result<i64, StoreError> {
        changes::end(&self.readers).await
    }

    async fn sweep_changes(&self, before: EpochMs) -> Result<(), StoreError> {
        changes::sweep(&self.writer, before).await
    }

    /// One process owns the file.
    fn is_shared(&self) -> bool {
        false
    }

    async fn beat(&self, beat: Beat) -> Result<Vec<NodeSlots>, StoreError> {
        nodes::beat(self.write().await?, beat).await
    }

    async fn leave(&self, node: &str) -> Result<(), StoreError> {
        nodes::leave(self.write().await?, node).await
    }

    fn pools(&self) -> Vec<PoolCensus> {
        vec![
            census_of("writer", &self.writer),
            census_of(self.purpose, &self.readers),
        ]
    }

    async fn census(&self) -> Result<Census, StoreError> {
        waiting::census(&self.readers).await
    }

    async fn setting(&self, name: &str, if_absent: &str) -> Result<String, StoreError> {
        orders::setting(self.write().await?, name, if_absent).await
    }
}

impl SqliteStore {
    async fn reader(&self) -> Result<sqlx::pool::PoolConnection<Sqlite>, StoreError> {
        self.readers
            .acquire()
            .await
            .map_err(|error| failed("taking a reader", error))
    }
}
