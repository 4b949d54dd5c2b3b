//! The store over SQL: pools by purpose, and every verb once for all databases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use metrics::histogram;
use payment::attempt::{Event, LateSuccess};
use payment::id::{GatewayName, GatewayOrderId, IdempotencyKey, OrderId, PaymentKey};
use payment::order::OrderStatus;
use payment::time::Millis;
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::{Connection, Pool, Transaction};

use super::effects::{Effect, EffectEnd, EffectsWaiting, NotificationRow};
use super::{
    AttemptId, AttemptRecord, Beat, CancelTake, Census, Claim, Claimed, Evidence, EvidenceRow,
    FeedPosition, LineRow, NewAttemptRow, NewOrderRow, NewRefund, NewWebhook, NodeSlots, Opened,
    OpenedWindow, OrderMade, OrderRecord, Overdue, Owner, PoolCensus, ProductRow, Recorded,
    RefundAsked, RefundCall, RefundId, RefundRow, Store, StoreError, WebhookEnd, WebhookRow,
};
use crate::clock::EpochMs;
use crate::gateway::secret::Secret;
use engine::{Columns as _, Engine, Sql, Tx, failed, fault};

mod cancels;
mod changes;
mod claim;
mod console;
mod deliveries;
mod deposits;
mod desk;
pub(super) mod effects;
pub mod engine;
mod group;
mod merchant;
mod nodes;
mod orders;
mod record;
mod refunds;
mod rows;
mod stock;
mod waiting;
mod webhooks;

/// How many connections of one purpose read at once: more would only take turns on the same disk.
const READERS: u32 = 4;

type Options<D> = <<D as sqlx::Database>::Connection as Connection>::Options;

/// A store over SQL. Clones share its pools; each purpose has readers of its own, so that none can starve another.
#[derive(Debug)]
pub struct SqlStore<D: Engine> {
    writer: Pool<D>,
    readers: Pool<D>,
    purpose: &'static str,
    options: Options<D>,
    wait: Duration,
    /// Who waits for the writer; shared by all that share it.
    queue: Arc<group::Queue<D>>,
}

impl<D: Engine> Clone for SqlStore<D> {
    fn clone(&self) -> Self {
        Self {
            writer: self.writer.clone(),
            readers: self.readers.clone(),
            options: self.options.clone(),
            queue: Arc::clone(&self.queue),
            ..*self
        }
    }
}

impl<D: Engine> SqlStore<D> {
    /// A store that writes by one pool and reads by another, which may be the same; `options` open further readers.
    pub(super) fn over(
        writer: Pool<D>,
        readers: Pool<D>,
        options: Options<D>,
        wait: Duration,
    ) -> Self {
        Self {
            writer,
            readers,
            purpose: "core",
            options,
            wait,
            queue: Arc::default(),
        }
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

    /// Whether the database is at this program's version; one that several nodes share may be ahead of it.
    pub(super) async fn check_version(
        &self,
        ours: &sqlx::migrate::Migrator,
    ) -> Result<(), StoreError> {
        let doing = "reading the database's version";
        let newest = ours.iter().map(|migration| migration.version).max();
        let sql = "-- version\nSELECT max(version) AS version FROM _sqlx_migrations";
        let mut db = self.reader().await?;
        let row = db.row(doing, sql, &[]).await?;
        let stored = row.map_or(Ok(None), |row| row.integer_or_null("version"))?;
        if stored == newest || (D::SHARED && stored > newest) {
            return Ok(());
        }
        let told = |version: Option<i64>| version.map_or("none".to_owned(), |at| at.to_string());
        let why = format!(
            "it is at version {}, this program at {}: start the server or `jari migrate` of this version first",
            told(stored),
            told(newest)
        );
        Err(fault(doing, why))
    }

    async fn write(&self) -> Result<Tx<D>, StoreError> {
        let begun = self.writer.begin_with(D::BEGIN).await;
        begun.map_err(|error| not_taken::<D>("beginning a transaction", error))
    }

    async fn writer(&self) -> Result<PoolConnection<D>, StoreError> {
        let taken = self.writer.acquire().await;
        taken.map_err(|error| not_taken::<D>("taking the writer", error))
    }

    async fn reader(&self) -> Result<PoolConnection<D>, StoreError> {
        let taken = self.readers.acquire().await;
        taken.map_err(|error| not_taken::<D>("taking a reader", error))
    }
}

/// A connection that could not be had: nothing was asked of the database yet.
fn not_taken<D: Engine>(doing: &'static str, error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::Io(_) => StoreError::Busy,
        error => failed::<D::Connection>(doing, error),
    }
}

/// Commits, and measures how long that took: it is a write to the disk.
async fn commit<D: Engine>(tx: Transaction<'_, D>, doing: &'static str) -> Result<(), StoreError> {
    let begun = Instant::now();
    let committed = tx.commit().await;
    histogram!("database_commit_seconds").record(begun.elapsed().as_secs_f64());
    committed.map_err(|error| {
        if D::Connection::commit_refused(&error) {
            StoreError::Busy
        } else {
            fault(doing, error)
        }
    })
}

/// A pool of at most so many connections.
pub(super) fn pool<D: Engine>(size: u32, wait: Duration) -> PoolOptions<D> {
    PoolOptions::new()
        .max_connections(size)
        .min_connections(1)
        .acquire_timeout(wait)
        // SQLite rolls back by itself when the disk is full or fails. The driver then never learns that the transaction is
        // over and begins no other on that connection: it is replaced, or nothing more could be stored until a restart.
        .before_acquire(|db: &mut D::Connection, _| {
            Box::pin(std::future::ready(Ok(!db.is_in_transaction())))
        })
}

/// Connections for one purpose.
pub(super) async fn readers<D: Engine>(
    options: &Options<D>,
    wait: Duration,
) -> Result<Pool<D>, StoreError> {
    let opened = pool(READERS, wait).connect_with(options.clone()).await;
    opened.map_err(|error| fault("opening the database to read", error))
}

fn census_of<D: Engine>(pool: &'static str, of: &Pool<D>) -> PoolCensus {
    let idle = u32::try_from(of.num_idle()).unwrap_or(u32::MAX);
    PoolCensus {
        pool,
        busy: of.size().saturating_sub(idle),
        idle,
        most: of.options().get_max_connections(),
    }
}

#[async_trait]
impl<D: Engine> Store for SqlStore<D> {
    async fn ping(&self) -> Result<(), StoreError> {
        let mut db = self.reader().await?;
        let doing = "asking whether the database answers";
        db.execute(doing, "-- ping\nSELECT 1", &[]).await?;
        Ok(())
    }

    async fn products(&self) -> Result<Vec<ProductRow>, StoreError> {
        orders::products(&mut *self.reader().await?).await
    }

    async fn make_order(&self, order: NewOrderRow) -> Result<OrderMade, StoreError> {
        self.change(order).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderRecord>, StoreError> {
        rows::order(&mut *self.reader().await?, id).await
    }

    async fn lines(&self, id: &OrderId) -> Result<Vec<LineRow>, StoreError> {
        orders::lines(&mut *self.reader().await?, id).await
    }

    async fn evidence(&self, id: &OrderId) -> Result<Vec<EvidenceRow>, StoreError> {
        orders::evidence(&mut *self.reader().await?, id).await
    }

    async fn orders_of(
        &self,
        owner: &Owner,
        among: Option<[OrderStatus; 2]>,
        skip: u32,
        most: u32,
    ) -> Result<Vec<OrderRecord>, StoreError> {
        orders::orders_of(&mut *self.reader().await?, owner, among, (skip, most)).await
    }

    async fn open_attempt(&self, attempt: NewAttemptRow) -> Result<Opened, StoreError> {
        self.change(attempt).await
    }

    async fn keep_window(
        &self,
        attempt: AttemptId,
        opened: OpenedWindow,
    ) -> Result<AttemptRecord, StoreError> {
        self.change(claim::WindowOf(attempt, opened)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.change(claim).await
    }

    async fn record(
        &self,
        attempt: AttemptId,
        event: Event,
        evidence: Evidence,
        late: LateSuccess,
    ) -> Result<Recorded, StoreError> {
        let learned = record::Learned {
            attempt,
            event,
            evidence,
            late,
        };
        self.change(learned).await
    }

    async fn attempt(&self, id: AttemptId) -> Result<Option<AttemptRecord>, StoreError> {
        rows::attempt(&mut *self.reader().await?, id).await
    }

    async fn attempts_by_key(
        &self,
        gateway: &GatewayName,
        key: &PaymentKey,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        rows::attempts_by_key(&mut *self.reader().await?, gateway, key).await
    }

    async fn attempts_by_gateway_order(
        &self,
        id: &GatewayOrderId,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        rows::attempts_by_gateway_order(&mut *self.reader().await?, id).await
    }

    async fn due(
        &self,
        gateway: &GatewayName,
        now: EpochMs,
        most: u32,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        waiting::due(&mut *self.reader().await?, gateway, now, most).await
    }

    async fn next_due(&self, gateway: &GatewayName) -> Result<Option<EpochMs>, StoreError> {
        waiting::next_due(&mut *self.reader().await?, gateway).await
    }

    async fn gateways_waiting(&self) -> Result<Vec<GatewayName>, StoreError> {
        waiting::gateways_waiting(&mut *self.reader().await?).await
    }

    async fn oldest_waiting(
        &self,
        gateway: &GatewayName,
    ) -> Result<Option<AttemptRecord>, StoreError> {
        waiting::oldest_waiting(&mut *self.reader().await?, gateway).await
    }

    async fn move_look(
        &self,
        attempt: AttemptId,
        from: EpochMs,
        to: Option<EpochMs>,
        asks: u32,
    ) -> Result<bool, StoreError> {
        let look = waiting::LookMoved {
            attempt,
            from,
            to,
            asks,
        };
        self.change(look).await
    }

    async fn rearm(&self, now: EpochMs) -> Result<u64, StoreError> {
        waiting::rearm(self.write().await?, now).await
    }

    async fn wake_waiting(&self, gateway: &GatewayName, now: EpochMs) -> Result<u64, StoreError> {
        waiting::wake_waiting(self.write().await?, gateway, now).await
    }

    async fn take_cancel_call(
        &self,
        attempt: AttemptId,
        take: CancelTake,
        (now, until): (EpochMs, EpochMs),
    ) -> Result<bool, StoreError> {
        cancels::take_call(&mut *self.writer().await?, attempt, &take, (now, until)).await
    }

    async fn end_cancel_call(
        &self,
        attempt: AttemptId,
        until: EpochMs,
        new_key: Option<IdempotencyKey>,
    ) -> Result<(), StoreError> {
        cancels::end_call(&mut *self.writer().await?, attempt, until, new_key.as_ref()).await
    }

    async fn ask_refund(&self, refund: NewRefund) -> Result<RefundAsked, StoreError> {
        refunds::ask(self.write().await?, &refund).await
    }

    async fn refund(&self, id: RefundId) -> Result<Option<RefundRow>, StoreError> {
        refunds::refund(&mut *self.reader().await?, id).await
    }

    async fn refunds_of(&self, order: &OrderId) -> Result<Vec<RefundRow>, StoreError> {
        refunds::of_order(&mut *self.reader().await?, order).await
    }

    async fn refund_under_way(&self, attempt: AttemptId) -> Result<Option<RefundRow>, StoreError> {
        refunds::under_way(&mut *self.reader().await?, attempt).await
    }

    async fn take_refund_call(
        &self,
        attempt: AttemptId,
        now: EpochMs,
        until: EpochMs,
    ) -> Result<Option<RefundRow>, StoreError> {
        refunds::take_call(self.write().await?, attempt, now, until).await
    }

    async fn end_refund_call(&self, refund: RefundId, until: EpochMs) -> Result<(), StoreError> {
        refunds::end_call(&mut *self.writer().await?, refund, until).await
    }

    async fn free_calls(&self) -> Result<u64, StoreError> {
        let db = &mut *self.writer().await?;
        Ok(refunds::free_calls(db).await? + cancels::free_calls(db).await?)
    }

    async fn renew_refund_key(
        &self,
        call: RefundCall,
        told: &str,
        at: EpochMs,
    ) -> Result<bool, StoreError> {
        refunds::renew_key(self.write().await?, call, (told, at)).await
    }

    async fn approving_since(&self, before: EpochMs) -> Result<Vec<AttemptId>, StoreError> {
        waiting::approving_since(&mut *self.reader().await?, before).await
    }

    async fn approving_of_dead_nodes(
        &self,
        own: &str,
        now: EpochMs,
    ) -> Result<Vec<AttemptId>, StoreError> {
        nodes::approving_of_dead_nodes(&mut *self.reader().await?, own, now).await
    }

    async fn lapsed_windows(&self, now: EpochMs, most: u32) -> Result<Vec<AttemptId>, StoreError> {
        waiting::lapsed_windows(&mut *self.reader().await?, now, most).await
    }

    async fn lapse_orders(&self, now: EpochMs) -> Result<u64, StoreError> {
        let to_lapse = orders::to_lapse(&mut *self.reader().await?, now).await?;
        if to_lapse.is_empty() {
            return Ok(0);
        }
        orders::lapse(self.write().await?, &to_lapse, now).await
    }

    async fn ask_before_lapse(
        &self,
        gateway: &GatewayName,
        now: EpochMs,
        most: u32,
    ) -> Result<u64, StoreError> {
        let unheard = orders::unheard(&mut *self.reader().await?, gateway, now, most).await?;
        if unheard.is_empty() {
            return Ok(0);
        }
        orders::ask_about(self.write().await?, &unheard, now).await
    }

    async fn take_effects(
        &self,
        now: EpochMs,
        lease: Millis,
        most: u32,
    ) -> Result<Vec<Effect>, StoreError> {
        if !effects::is_any_due(&mut *self.reader().await?, now).await? {
            return Ok(Vec::new());
        }
        effects::take(self.write().await?, now, lease, most).await
    }

    async fn end_effects(&self, ends: &[EffectEnd], now: EpochMs) -> Result<Vec<bool>, StoreError> {
        effects::end(self.write().await?, ends, now).await
    }

    async fn effects_waiting(&self) -> Result<EffectsWaiting, StoreError> {
        effects::waiting(&mut *self.reader().await?).await
    }

    async fn notifications(&self, order: &OrderId) -> Result<Vec<NotificationRow>, StoreError> {
        effects::notifications(&mut *self.reader().await?, order).await
    }

    async fn keep_webhook(&self, webhook: NewWebhook) -> Result<bool, StoreError> {
        self.change(webhook).await
    }

    async fn webhooks_due(&self, now: EpochMs, most: u32) -> Result<Vec<WebhookRow>, StoreError> {
        webhooks::due(&mut *self.reader().await?, now, most).await
    }

    async fn end_webhooks(
        &self,
        ends: &[(i64, WebhookEnd)],
        now: EpochMs,
    ) -> Result<Vec<bool>, StoreError> {
        webhooks::end(self.write().await?, ends, now).await
    }

    async fn hint(
        &self,
        attempt: AttemptId,
        now: EpochMs,
        pause: bool,
    ) -> Result<bool, StoreError> {
        webhooks::hint(self.write().await?, attempt, now, pause).await
    }

    async fn deposit_secret(&self, attempt: AttemptId) -> Result<Option<Secret>, StoreError> {
        deposits::secret(&mut *self.reader().await?, attempt).await
    }

    async fn webhooks_of(&self, attempt: AttemptId) -> Result<u64, StoreError> {
        webhooks::count_of(&mut *self.reader().await?, attempt).await
    }

    async fn sweep_webhooks(&self, before: EpochMs, most: u32) -> Result<u64, StoreError> {
        webhooks::sweep(&mut *self.writer().await?, before, most).await
    }

    async fn changes_after(
        &self,
        position: &FeedPosition,
    ) -> Result<(Vec<OrderId>, FeedPosition), StoreError> {
        changes::after(&mut *self.reader().await?, position).await
    }

    async fn end_of_changes(&self) -> Result<FeedPosition, StoreError> {
        changes::end(&mut *self.reader().await?).await
    }

    async fn sweep_changes(&self, kept: Millis, now: EpochMs) -> Result<(), StoreError> {
        changes::sweep(&mut *self.writer().await?, kept, now).await
    }

    fn is_shared(&self) -> bool {
        D::SHARED
    }

    async fn now(&self, own: EpochMs) -> Result<EpochMs, StoreError> {
        self.reader().await?.clock(own).await
    }

    async fn beat(&self, beat: Beat) -> Result<Vec<NodeSlots>, StoreError> {
        nodes::beat(self.write().await?, &beat).await
    }

    async fn leave(&self, node: &str) -> Result<(), StoreError> {
        nodes::leave(self.write().await?, node).await
    }

    fn pools(&self) -> Vec<PoolCensus> {
        let mut pools = vec![census_of(D::WRITER, &self.writer)];
        if self.purpose != D::WRITER {
            pools.push(census_of(self.purpose, &self.readers));
        }
        pools
    }

    async fn census(&self) -> Result<Census, StoreError> {
        waiting::census(&mut *self.reader().await?).await
    }

    async fn overdue(&self, unknown_before: EpochMs) -> Result<Overdue, StoreError> {
        waiting::overdue(&mut *self.reader().await?, unknown_before).await
    }

    async fn setting(&self, name: &str, if_absent: &str) -> Result<String, StoreError> {
        orders::setting(self.write().await?, name, if_absent).await
    }
}
