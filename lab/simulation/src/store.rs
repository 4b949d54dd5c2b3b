//! The production port to the database, as one node holds it: the tables behind the faults of a database. A fault strikes
//! before a commit (nothing happened) or after it (it happened, and nobody hears of it).

use std::sync::Arc;

use async_trait::async_trait;
use payment::attempt::{Event, LateSuccess};
use payment::id::{GatewayName, GatewayOrderId, IdempotencyKey, OrderId, PaymentKey};
use payment::order::OrderStatus;
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use server::clock::EpochMs;
use server::gateway::secret::Secret;
use server::store::effects::{Effect, EffectEnd, EffectsWaiting, NotificationRow};
use server::store::{
    AttemptId, AttemptRecord, Beat, CancelTake, Census, Claim, Claimed, Evidence, EvidenceRow,
    FeedPosition, LineRow, NewAttemptRow, NewOrderRow, NewRefund, NewWebhook, NodeSlots, Opened,
    OpenedWindow, OrderMade, OrderRecord, Overdue, Owner, PoolCensus, ProductRow, Recorded,
    RefundAsked, RefundCall, RefundId, RefundRow, Store, StoreError, WebhookEnd, WebhookRow,
};

use crate::bug::Bug;
use crate::fault::Fault;
use crate::nodes::Life;
use crate::scene::Stage;
use crate::tables::Tables;
use crate::world::{START, World, lock};

/// The database as one process of a node sees it.
pub(crate) struct NodeStore {
    world: Arc<World>,
    life: Life,
}

type Answer<T> = Result<T, StoreError>;

fn failed(doing: &'static str) -> StoreError {
    StoreError::Failed {
        doing,
        source: "a simulated fault".into(),
    }
}

impl NodeStore {
    pub(crate) const fn new(world: Arc<World>, life: Life) -> Self {
        Self { world, life }
    }

    fn stage(&self) -> Option<&Stage> {
        self.world.stage.as_ref()
    }

    /// The way to the database: a connection, or its lack.
    async fn reach(&self) -> Answer<()> {
        let world = &self.world;
        self.life.hold().await;
        let wait = world.plan.times.database_wait.get();
        if world.strikes(Fault::DatabaseBusy) {
            world.pause(1, wait).await;
            self.life.hold().await;
            return Err(StoreError::Busy);
        }
        if world.strikes(Fault::DatabaseSlow) {
            world.pause(1, wait * 2).await;
        }
        Ok(())
    }

    /// The database's own clock, which is right.
    fn clock(&self) -> EpochMs {
        EpochMs(START).plus(self.world.now())
    }

    /// The clock by which leases of side effects go: several nodes need one for all.
    fn lease_clock(&self, given: EpochMs) -> EpochMs {
        if self.is_shared() {
            self.clock()
        } else {
            given
        }
    }

    async fn read<T>(&self, look: impl FnOnce(&Tables) -> T + Send) -> Answer<T> {
        self.reach().await?;
        let found = {
            let mut tables = lock(&self.world.tables);
            tables.now = self.clock();
            look(&tables)
        };
        self.life.hold().await;
        Ok(found)
    }

    /// One transaction. It is in the database's hands when the node dies on the way.
    async fn write<T: Send>(
        &self,
        doing: &'static str,
        change: impl FnOnce(&mut Tables) -> T + Send,
    ) -> Answer<T> {
        self.reach().await?;
        let world = &self.world;
        if let Some(stage) = &world.stage {
            let wait = world.plan.times.database_wait;
            stage.commit(wait).await.ok_or(StoreError::Busy)?;
        }
        self.life.may_die(Fault::CrashBeforeCommit).await;
        world.pause(0, world.plan.commit_pause).await;
        if world.strikes(Fault::FailedBeforeCommit) {
            self.life.hold().await;
            return Err(failed(doing));
        }
        let done = {
            let mut tables = lock(&world.tables);
            tables.now = self.clock();
            let done = change(&mut tables);
            tables.commit();
            world.check_stock(&tables);
            done
        };
        self.life.may_die(Fault::CrashAfterCommit).await;
        world.pause(0, world.plan.commit_pause).await;
        self.life.hold().await;
        if world.strikes(Fault::FailedAfterCommit) {
            return Err(failed(doing));
        }
        Ok(done)
    }

    /// Planted bugs in what is recorded.
    fn bent(&self, event: Event) -> Event {
        match event {
            Event::AnswerLost(Lost::TimedOut) if self.world.bug == Some(Bug::TimeoutIsFailed) => {
                Event::SendRefused(NotSent::Connect)
            }
            event => event,
        }
    }
}

/// The store without any fault, as one process that owns its database has it, for the contract suite of stores.
#[must_use]
pub fn store() -> Arc<dyn Store> {
    let world = World::at_peace();
    let life = Life::current(&world, 0);
    Arc::new(NodeStore::new(world, life))
}

#[async_trait]
impl Store for NodeStore {
    async fn ping(&self) -> Answer<()> {
        self.read(|_| ()).await
    }

    async fn products(&self) -> Answer<Vec<ProductRow>> {
        self.read(Tables::products).await
    }

    async fn make_order(&self, order: NewOrderRow) -> Answer<OrderMade> {
        self.write("making an order", |tables| tables.make_order(order))
            .await
    }

    async fn order(&self, id: &OrderId) -> Answer<Option<OrderRecord>> {
        self.read(|tables| tables.order(id)).await
    }

    async fn lines(&self, id: &OrderId) -> Answer<Vec<LineRow>> {
        self.read(|tables| tables.lines(id)).await
    }

    async fn evidence(&self, id: &OrderId) -> Answer<Vec<EvidenceRow>> {
        self.read(|tables| tables.evidence(id)).await
    }

    async fn orders_of(
        &self,
        owner: &Owner,
        among: Option<[OrderStatus; 2]>,
        skip: u32,
        most: u32,
    ) -> Answer<Vec<OrderRecord>> {
        self.read(|tables| tables.orders_of(owner, among, (skip, most)))
            .await
    }

    async fn open_attempt(&self, attempt: NewAttemptRow) -> Answer<Opened> {
        self.write("opening an attempt", |tables| tables.open_attempt(attempt))
            .await
    }

    async fn keep_window(&self, attempt: AttemptId, opened: OpenedWindow) -> Answer<AttemptRecord> {
        let kept = self.write("keeping a payment window", |tables| {
            tables.keep_window(attempt, opened)
        });
        kept.await?.ok_or(StoreError::Corrupt {
            what: "attempt to open",
        })
    }

    async fn claim(&self, claim: Claim) -> Answer<Claimed> {
        let claimed_again = self.world.bug == Some(Bug::SkipClaim);
        let claimed = self
            .write("claiming an attempt", |tables| match tables.claim(&claim) {
                Claimed::Repeated { attempt, .. }
                    if claimed_again && attempt.attempt.status.is_open() =>
                {
                    tables.claim_again(&attempt, &claim)
                }
                claimed => claimed,
            })
            .await;
        if let Ok(Claimed::Granted { attempt, .. }) = &claimed {
            self.world.note(
                "store",
                format_args!(
                    "node {} claims {} for {}",
                    self.life.who().0,
                    attempt.id.0,
                    claim.payment_key
                ),
            );
        }
        claimed
    }

    async fn record(
        &self,
        attempt: AttemptId,
        event: Event,
        evidence: Evidence,
        late: LateSuccess,
    ) -> Answer<Recorded> {
        let (event, world) = (self.bent(event), &self.world);
        let fenced = world.bug != Some(Bug::NoFence);
        let recorded = self
            .write("recording an outcome", |tables| {
                let recorded = tables.record(attempt, event, &evidence, late, fenced);
                if let Some(recorded) = &recorded {
                    world.check_record(recorded);
                }
                recorded
            })
            .await?;
        recorded.ok_or(StoreError::Corrupt {
            what: "attempt to record",
        })
    }

    async fn attempt(&self, id: AttemptId) -> Answer<Option<AttemptRecord>> {
        self.read(|tables| tables.attempt(id).cloned()).await
    }

    async fn attempts_by_key(
        &self,
        gateway: &GatewayName,
        key: &PaymentKey,
    ) -> Answer<Vec<AttemptRecord>> {
        let same = |record: &&AttemptRecord| {
            record.gateway == *gateway && record.payment_key.as_ref() == Some(key)
        };
        self.read(|tables| tables.attempts.iter().filter(same).cloned().collect())
            .await
    }

    async fn attempts_by_gateway_order(&self, id: &GatewayOrderId) -> Answer<Vec<AttemptRecord>> {
        let same = |record: &&AttemptRecord| record.gateway_order_id == *id;
        self.read(|tables| tables.attempts.iter().filter(same).cloned().collect())
            .await
    }

    async fn due(
        &self,
        gateway: &GatewayName,
        now: EpochMs,
        most: u32,
    ) -> Answer<Vec<AttemptRecord>> {
        let now = self.stage().map_or(now, |stage| stage.last_look(now));
        self.read(|tables| tables.due(gateway, now, most)).await
    }

    async fn next_due(&self, gateway: &GatewayName) -> Answer<Option<EpochMs>> {
        let due = self.read(|tables| tables.next_due(gateway)).await?;
        Ok(due.map(|at| self.stage().map_or(at, |stage| stage.next_look(at))))
    }

    async fn gateways_waiting(&self) -> Answer<Vec<GatewayName>> {
        self.read(Tables::gateways_waiting).await
    }

    async fn oldest_waiting(&self, gateway: &GatewayName) -> Answer<Option<AttemptRecord>> {
        if self.stage().is_some_and(Stage::looks_by_the_clock) {
            return Ok(None);
        }
        self.read(|tables| tables.oldest_waiting(gateway)).await
    }

    async fn move_look(
        &self,
        attempt: AttemptId,
        from: EpochMs,
        to: Option<EpochMs>,
        asks: u32,
    ) -> Answer<bool> {
        self.write("moving a look", |tables| {
            tables.move_look(attempt, from, to, asks)
        })
        .await
    }

    async fn rearm(&self, now: EpochMs) -> Answer<u64> {
        self.write("arming what waits", |tables| tables.rearm(now))
            .await
    }

    async fn wake_waiting(&self, gateway: &GatewayName, now: EpochMs) -> Answer<u64> {
        self.write("waking what waits", |tables| {
            tables.wake_waiting(gateway, now)
        })
        .await
    }

    async fn take_cancel_call(
        &self,
        attempt: AttemptId,
        take: CancelTake,
        span: (EpochMs, EpochMs),
    ) -> Answer<bool> {
        self.write("taking a cancel's call", |tables| {
            tables.take_cancel_call(attempt, take, span)
        })
        .await
    }

    async fn end_cancel_call(
        &self,
        attempt: AttemptId,
        until: EpochMs,
        new_key: Option<IdempotencyKey>,
    ) -> Answer<()> {
        self.write("ending a cancel's call", |tables| {
            tables.end_cancel_call(attempt, until, new_key);
        })
        .await
    }

    async fn ask_refund(&self, refund: NewRefund) -> Answer<RefundAsked> {
        self.write("storing a refund", |tables| tables.ask_refund(refund))
            .await
    }

    async fn refund(&self, id: RefundId) -> Answer<Option<RefundRow>> {
        self.read(|tables| tables.refund(id).cloned()).await
    }

    async fn refunds_of(&self, order: &OrderId) -> Answer<Vec<RefundRow>> {
        self.read(|tables| tables.refunds_of(order)).await
    }

    async fn refund_under_way(&self, attempt: AttemptId) -> Answer<Option<RefundRow>> {
        self.read(|tables| tables.refund_under_way(attempt)).await
    }

    async fn take_refund_call(
        &self,
        attempt: AttemptId,
        now: EpochMs,
        until: EpochMs,
    ) -> Answer<Option<RefundRow>> {
        self.write("taking a refund's call", |tables| {
            tables.take_refund_call(attempt, now, until)
        })
        .await
    }

    async fn end_refund_call(&self, refund: RefundId, until: EpochMs) -> Answer<()> {
        self.write("ending a refund's call", |tables| {
            tables.end_refund_call(refund, until);
        })
        .await
    }

    async fn free_calls(&self) -> Answer<u64> {
        self.write("freeing the gateway's calls", Tables::free_calls)
            .await
    }

    async fn renew_refund_key(&self, call: RefundCall, told: &str, at: EpochMs) -> Answer<bool> {
        self.write("renewing a refund's key", |tables| {
            tables.renew_refund_key(call, (told, at))
        })
        .await
    }

    async fn approving_since(&self, before: EpochMs) -> Answer<Vec<AttemptId>> {
        self.read(|tables| tables.approving_since(before)).await
    }

    async fn approving_of_dead_nodes(&self, own: &str, _now: EpochMs) -> Answer<Vec<AttemptId>> {
        self.read(|tables| tables.approving_of_dead_nodes(own))
            .await
    }

    async fn lapsed_windows(&self, now: EpochMs, most: u32) -> Answer<Vec<AttemptId>> {
        self.read(|tables| tables.lapsed_windows(now, most)).await
    }

    async fn lapse_orders(&self, now: EpochMs) -> Answer<u64> {
        let lapsed = self
            .write("ending old orders", |tables| tables.lapse_orders(now))
            .await?;
        for id in &lapsed {
            self.world.check_lapsed(id.as_str());
        }
        Ok(lapsed.len() as u64)
    }

    async fn ask_before_lapse(
        &self,
        gateway: &GatewayName,
        now: EpochMs,
        most: u32,
    ) -> Answer<u64> {
        self.write("asking before old orders end", |tables| {
            tables.ask_before_lapse(gateway, now, most)
        })
        .await
    }

    async fn take_effects(&self, now: EpochMs, lease: Millis, most: u32) -> Answer<Vec<Effect>> {
        let now = self.lease_clock(now);
        self.write("taking side effects", |tables| {
            tables.take_effects(now, lease, most)
        })
        .await
    }

    async fn end_effects(&self, ends: &[EffectEnd], now: EpochMs) -> Answer<Vec<bool>> {
        let now = self.lease_clock(now);
        self.write("ending side effects", |tables| {
            tables.end_effects(ends, now)
        })
        .await
    }

    async fn effects_waiting(&self) -> Answer<EffectsWaiting> {
        self.read(Tables::effects_waiting).await
    }

    async fn notifications(&self, order: &OrderId) -> Answer<Vec<NotificationRow>> {
        self.read(|tables| tables.notifications(order)).await
    }

    async fn keep_webhook(&self, webhook: NewWebhook) -> Answer<bool> {
        let once = self.world.bug != Some(Bug::WebhookStoredTwice);
        self.write("keeping a webhook", |tables| {
            tables.keep_webhook(webhook, once)
        })
        .await
    }

    async fn webhooks_due(&self, now: EpochMs, most: u32) -> Answer<Vec<WebhookRow>> {
        let due = self.read(|tables| tables.webhooks_due(now, most)).await?;
        let tables = lock(&self.world.tables);
        for row in &due {
            let stored = tables.webhooks.get(&row.id);
            self.world
                .check_hook(stored.map_or(0, |webhook| webhook.ended));
        }
        Ok(due)
    }

    async fn end_webhooks(&self, all: &[(i64, WebhookEnd)], now: EpochMs) -> Answer<Vec<bool>> {
        let ends = self.world.bug != Some(Bug::WebhookTwice);
        self.write("ending webhooks", |tables| {
            let end = |(id, end): &(i64, WebhookEnd)| tables.end_webhook(*id, *end, now, ends);
            all.iter().map(end).collect()
        })
        .await
    }

    async fn hint(&self, attempt: AttemptId, now: EpochMs, pause: bool) -> Answer<bool> {
        self.write("passing a hint on", |tables| {
            tables.hint(attempt, now, pause)
        })
        .await
    }

    async fn deposit_secret(&self, attempt: AttemptId) -> Answer<Option<Secret>> {
        self.read(|tables| tables.deposit_secret(attempt)).await
    }

    async fn webhooks_of(&self, attempt: AttemptId) -> Answer<u64> {
        self.read(|tables| tables.webhooks_of(attempt)).await
    }

    async fn sweep_webhooks(&self, before: EpochMs, most: u32) -> Answer<u64> {
        self.write("sweeping webhooks", |tables| {
            tables.sweep_webhooks(before, most)
        })
        .await
    }

    async fn changes_after(&self, position: &FeedPosition) -> Answer<(Vec<OrderId>, FeedPosition)> {
        self.read(|tables| tables.changes_after(position)).await
    }

    async fn end_of_changes(&self) -> Answer<FeedPosition> {
        self.read(Tables::end_of_changes).await
    }

    async fn sweep_changes(&self, kept: Millis, _now: EpochMs) -> Answer<()> {
        self.write("sweeping the change feed", |tables| {
            tables.sweep_changes(tables.now.minus(kept))
        })
        .await
    }

    fn is_shared(&self) -> bool {
        self.world.plan.nodes > 1
    }

    async fn now(&self, own: EpochMs) -> Answer<EpochMs> {
        if !self.is_shared() {
            return Ok(own);
        }
        self.read(|tables| tables.now).await
    }

    async fn beat(&self, beat: Beat) -> Answer<Vec<NodeSlots>> {
        self.write("dividing the cap", |tables| tables.beat(&beat))
            .await
    }

    async fn leave(&self, node: &str) -> Answer<()> {
        self.write("leaving", |tables| tables.leave(node)).await
    }

    fn pools(&self) -> Vec<PoolCensus> {
        vec![PoolCensus {
            pool: "memory",
            busy: 0,
            idle: 1,
            most: 1,
        }]
    }

    async fn census(&self) -> Answer<Census> {
        self.read(Tables::census).await
    }

    async fn overdue(&self, unknown_before: EpochMs) -> Answer<Overdue> {
        self.read(|tables| tables.overdue(unknown_before)).await
    }

    async fn setting(&self, name: &str, if_absent: &str) -> Answer<String> {
        self.write("reading a setting", |tables| {
            tables.setting(name, if_absent)
        })
        .await
    }
}
