//! What every store must do, told once and run on each of them: here on both databases, and with the feature `in-memory`,
//! which is the crate `simulation`'s, on the store that the simulated nodes share.

#![expect(
    clippy::unwrap_used,
    reason = "the bodies of tests, outside of what is marked as one since each runs on two databases"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use payment::attempt::{Event, Finding, LateSuccess, Source};
use payment::id::{
    AttemptReference, GatewayName, GatewayOrderId, IdempotencyKey, OrderId, PaymentKey, Sku,
};
use payment::money::{Money, Won};
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::{
    Asked, AttemptId, AttemptRecord, Claim, Claimed, Evidence, NewAttemptRow, NewOrderRow, Opened,
    OrderMade, OrderRecord, Owner, Recorded, Store,
};

mod claims;
#[cfg(not(feature = "in-memory"))]
mod console;
mod deposits;
mod effects;
#[cfg(not(feature = "in-memory"))]
mod faults;
mod feed;
mod kept;
mod lapse;
mod late;
#[cfg(not(feature = "in-memory"))]
mod merchant;
mod nodes;
#[cfg(not(feature = "in-memory"))]
mod operator;
mod outcomes;
#[cfg(not(feature = "in-memory"))]
#[path = "../support/postgres.rs"]
mod postgres;
#[cfg(not(feature = "in-memory"))]
#[path = "../support/postgres_server.rs"]
mod postgres_server;
mod refunds;
mod together;
mod windows;

/// Runs each of the tests on each of the databases.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        #[cfg(not(feature = "in-memory"))]
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::Db::sqlite().await).await;
            })*
        }

        #[cfg(not(feature = "in-memory"))]
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::Db::postgres().await).await;
            })*
        }

        #[cfg(feature = "in-memory")]
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::Db::memory()).await;
            })*
        }
    };
}
pub(crate) use on_both;

/// Now, in the tests; what is later is `NOW.plus(…)`.
pub(crate) const NOW: EpochMs = EpochMs(1_700_000_000_000);
/// The price of a mug.
pub(crate) const PRICE: i64 = 18_000;

pub(crate) struct Db {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) url: String,
    /// What must outlive the store.
    _kept: Box<dyn std::any::Any + Send + Sync>,
}

#[cfg(not(feature = "in-memory"))]
impl Db {
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite://{}", folder.path().join("jari.db").display());
        Self::open(url, Box::new(folder)).await
    }

    pub(crate) async fn postgres() -> Self {
        let database = postgres::Database::make().await;
        Self::open(database.url.clone(), Box::new(database)).await
    }

    async fn open(url: String, kept: Box<dyn std::any::Any + Send + Sync>) -> Self {
        use server::config::DatabaseUrl;
        use server::store::open::{Stores, open};
        // Patient: the tests' machines are slow, and what is refused for haste proves nothing here.
        let opened = open(&DatabaseUrl::new(&url), Millis::from_secs(20), true).await;
        let Stores { core, .. } = opened.expect("a store");
        Self {
            store: core,
            url,
            _kept: kept,
        }
    }
}

#[cfg(feature = "in-memory")]
impl Db {
    pub(crate) fn memory() -> Self {
        Self {
            store: simulation::store(),
            url: "memory".to_owned(),
            _kept: Box::new(()),
        }
    }
}

impl Db {
    /// An order of a shopper called as the order.
    pub(crate) async fn order(&self, id: &str, sku: &str, quantity: u32) -> OrderId {
        let id = OrderId::parse(id).expect("an order id");
        let order = NewOrderRow {
            id: id.clone(),
            owner: owner(&id),
            items: vec![(Sku::parse(sku).expect("a sku"), quantity)],
            at: NOW,
            expires_at: NOW.plus(Millis::from_secs(600)),
            language: None,
        };
        let made = self.store.make_order(order).await.expect("stored");
        assert!(matches!(made, OrderMade::Made(_)), "{made:?}");
        id
    }

    pub(crate) async fn read(&self, id: &OrderId) -> OrderRecord {
        let order = self.store.order(id).await.expect("read");
        order.expect("an order")
    }

    pub(crate) async fn attempt(&self, id: AttemptId) -> AttemptRecord {
        let attempt = self.store.attempt(id).await.expect("read");
        attempt.expect("an attempt")
    }

    pub(crate) async fn open_attempt(&self, order: &OrderId) -> Opened {
        self.store
            .open_attempt(window(order))
            .await
            .expect("opened")
    }

    pub(crate) async fn claim(&self, claim: Claim) -> Claimed {
        self.store.claim(claim).await.expect("claimed")
    }

    /// An attempt of a new order that was claimed.
    pub(crate) async fn claimed(&self, order: &str, sku: &str) -> AttemptRecord {
        let id = self.order(order, sku, 1).await;
        let amount = self.read(&id).await.amount;
        let claim = Claim {
            amount,
            ..claim(&id, &format!("key_{order}"))
        };
        match self.claim(claim).await {
            Claimed::Granted { attempt, .. } => *attempt,
            other => panic!("not granted: {other:?}"),
        }
    }

    pub(crate) async fn record(&self, id: AttemptId, event: Event) -> Recorded {
        self.record_as(id, event, Evidence::plain("confirm", NOW))
            .await
    }

    pub(crate) async fn record_as(
        &self,
        id: AttemptId,
        event: Event,
        evidence: Evidence,
    ) -> Recorded {
        let recorded = self
            .store
            .record(id, event, evidence, LateSuccess::Cancel)
            .await;
        recorded.expect("recorded")
    }

    /// How many pieces are free.
    pub(crate) async fn free(&self, sku: &str) -> u64 {
        let shelf = self.store.products().await.expect("the shelf");
        let product = shelf.iter().find(|product| product.sku.as_str() == sku);
        product.expect("a product").available
    }
}

pub(crate) fn owner(order: &OrderId) -> Owner {
    Owner(format!("owner of {}", order.as_str()))
}

pub(crate) fn toss() -> GatewayName {
    GatewayName::parse("toss").expect("a name")
}

/// What nobody has used yet.
fn fresh() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn reference() -> AttemptReference {
    AttemptReference::parse(&format!("{:032x}", fresh())).expect("a reference")
}

pub(crate) fn idempotency_key() -> IdempotencyKey {
    IdempotencyKey::parse(&format!("confirm-{:016x}", fresh())).expect("a key")
}

pub(crate) fn key(text: &str) -> PaymentKey {
    PaymentKey::parse(text).expect("a payment key")
}

pub(crate) fn window(order: &OrderId) -> NewAttemptRow {
    NewAttemptRow {
        order_id: order.clone(),
        owner: owner(order),
        gateway: toss(),
        by_call: false,
        left: None,
        reference: reference(),
        at: NOW,
        window_until: NOW.plus(Millis::from_secs(300)),
    }
}

/// A confirm of an order of one mug, under its first gateway order id.
pub(crate) fn claim(order: &OrderId, payment_key: &str) -> Claim {
    Claim {
        owner: owner(order),
        gateway_order_id: GatewayOrderId::parse(order.as_str()).expect("an id"),
        payment_key: key(payment_key),
        amount: Won::new(PRICE).expect("an amount"),
        gateway: toss(),
        by_call: Vec::new(),
        idempotency_key: idempotency_key(),
        reference: reference(),
        node: "node".to_owned(),
        at: NOW,
    }
}

/// The gateway's word that it charged so much.
pub(crate) fn charged(amount: Won) -> Event {
    let finding = Finding::Charged {
        charged: Money::won(amount),
        canceled: Won::ZERO,
    };
    Event::Found(finding, Source::Answer)
}

/// The evidence of an inquiry about an attempt as it is, answered at that moment.
pub(crate) fn asked(attempt: &AttemptRecord, at: EpochMs) -> Evidence {
    let asked = Asked {
        payment_key: attempt.payment_key.clone().expect("it was claimed"),
        claimed_at: attempt.claimed_at,
        lease: at.plus(Millis::from_secs(60)),
        look: attempt.looks,
    };
    Evidence {
        asked: Some(asked),
        ..Evidence::plain("inquiry", at)
    }
}
