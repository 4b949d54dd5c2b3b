//! The port for shops that sell through this checkout: their keys, their orders, and what their endpoints are told.
//!
//! Beside [`super::Store`]: nothing here changes an attempt, so no rule about money rests on it.

use async_trait::async_trait;
use payment::id::{IdempotencyKey, OrderId};
use payment::money::Won;
use payment::time::Millis;

use super::StoreError;
use crate::clock::EpochMs;
use crate::gateway::secret::Secret;

/// A shop's row number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShopId(pub i64);

/// A key's row number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub i64);

/// A shop as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShopRow {
    /// Its row.
    pub id: ShopId,
    /// What operators call it.
    pub name: String,
    /// What shoppers read.
    pub title: String,
    /// The origins that its shoppers may be led back to.
    pub return_origins: Vec<String>,
    /// Where it is told what happens to its orders.
    pub webhook_url: Option<String>,
}

/// A key as stored, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The part of it that is no secret.
    pub handle: String,
    /// The name of its shop.
    pub shop: String,
    /// What it is for.
    pub name: String,
    /// When it was made.
    pub created_at: EpochMs,
    /// When it was last used, to the minute.
    pub used_at: Option<EpochMs>,
    /// Since when it opens nothing.
    pub revoked_at: Option<EpochMs>,
}

/// What a new key is made of.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Whose it is.
    pub shop: ShopId,
    /// The part of it that is no secret.
    pub handle: String,
    /// The SHA-256 of the whole key, as hexadecimal digits.
    pub hash: Secret,
    /// What it is for.
    pub name: String,
    /// Now.
    pub at: EpochMs,
}

/// A key that opens something, with its shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Its row.
    pub id: KeyId,
    /// The SHA-256 of the whole key, as hexadecimal digits.
    pub hash: Secret,
    /// When it was last used, to the minute.
    pub used_at: Option<EpochMs>,
    /// Its shop.
    pub shop: ShopRow,
}

/// One line of a shop's order: by its own name and price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShopLine {
    /// What.
    pub name: String,
    /// How many.
    pub quantity: u32,
    /// Price of one.
    pub price: Won,
}

/// What a shop's new order is made of.
#[derive(Debug, Clone)]
pub struct NewShopOrder {
    /// Its id, unless the wish is stored already.
    pub id: OrderId,
    /// Whose it is.
    pub shop: ShopId,
    /// Whoever brings this may see and pay it; part of its link.
    pub link: String,
    /// By which the shop names the wish.
    pub idempotency_key: IdempotencyKey,
    /// The SHA-256 of what the shop asked for.
    pub body_hash: String,
    /// The shop's own name for it.
    pub reference: String,
    /// Where its shopper is led back to.
    pub return_url: String,
    /// Its lines; at least one.
    pub lines: Vec<ShopLine>,
    /// Their sum.
    pub amount: Won,
    /// The tag of the shopper's language, if the shop knows it.
    pub language: Option<&'static str>,
    /// Now.
    pub at: EpochMs,
    /// Until when it can be paid.
    pub expires_at: EpochMs,
}

/// What became of a shop's new order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShopOrderMade {
    /// It is stored.
    Made,
    /// The same wish was stored before, as this order.
    Repeated(OrderId),
    /// The key names another wish.
    KeyReused,
}

/// What a shop's order has beyond an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShopOrder {
    /// The order.
    pub order_id: OrderId,
    /// Whose it is.
    pub shop: ShopId,
    /// What shoppers read of the shop.
    pub title: String,
    /// The shop's own name for it.
    pub reference: String,
    /// Where its shopper is led back to.
    pub return_url: String,
    /// The tag of the shopper's language, if the shop knows it.
    pub language: Option<String>,
}

/// How far telling an endpoint has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is still to be told.
    Waiting,
    /// It said that it has it.
    Delivered,
    /// It did not say so for too long.
    GivenUp,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Delivered, Self::GivenUp];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::GivenUp => "given_up",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// Where a shop is told, and by which secrets it knows that it is us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address.
    pub url: String,
    /// Each signs; the newest first.
    pub secrets: Vec<Secret>,
}

/// A delivery that was taken. Nobody else sends it until the lease is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its row: of one order's the later one has the higher number.
    pub seq: i64,
    /// How often it was taken, this time included: the fence.
    pub takes: u32,
    /// How often it was tried since it was made or replayed.
    pub tries: u32,
    /// From when its age counts.
    pub since: EpochMs,
    /// To whom; `None` when the shop has no endpoint any more.
    pub endpoint: Option<Endpoint>,
    /// About which order.
    pub order_id: OrderId,
    /// The shop's own name for that.
    pub reference: String,
    /// What the shop's own systems are told, as JSON.
    pub notification: String,
}

/// What becomes of a delivery that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryEnd {
    /// Its row.
    pub seq: i64,
    /// The take that ends; an older one than the row's is not believed.
    pub takes: u32,
    /// What it has come to.
    pub state: DeliveryState,
    /// While it waits: after how long it is tried again.
    pub again: Millis,
    /// What the endpoint said: a status, or why there was none.
    pub told: String,
}

/// What waits, for the gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveriesWaiting {
    /// How many.
    pub count: u64,
    /// When the oldest of them happened.
    pub oldest: Option<EpochMs>,
}

/// Which deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// This one.
    pub seq: Option<i64>,
    /// Of this shop.
    pub shop: Option<String>,
    /// About this order.
    pub order: Option<OrderId>,
    /// Only those of which an endpoint has said something, or was not reached.
    pub tried: bool,
    /// Of what happened at that moment or later.
    pub since: Option<EpochMs>,
    /// Those that have come to this.
    pub state: Option<DeliveryState>,
}

/// A delivery as stored, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Its row.
    pub seq: i64,
    /// The name of the shop.
    pub shop: String,
    /// About which order.
    pub order_id: OrderId,
    /// What happened.
    pub kind: String,
    /// What it has come to.
    pub state: DeliveryState,
    /// How often it was tried since it was made or replayed.
    pub tries: u32,
    /// What the endpoint last said.
    pub told: String,
    /// When it happened.
    pub created_at: EpochMs,
}

/// What the server and the operator ask of the database about shops.
#[async_trait]
pub trait MerchantStore: Send + Sync {
    /// A key that was not revoked, with its shop.
    async fn key(&self, handle: &str) -> Result<Option<KnownKey>, StoreError>;
    /// Notes that a key was used.
    async fn key_used(&self, id: KeyId, at: EpochMs) -> Result<(), StoreError>;
    /// Stores a shop's order, once for each of its idempotency keys.
    async fn make_shop_order(&self, order: NewShopOrder) -> Result<ShopOrderMade, StoreError>;
    /// What an order of a shop has beyond an order; `None` for one that was made here.
    async fn shop_order(&self, id: &OrderId) -> Result<Option<ShopOrder>, StoreError>;
    /// A shop's orders by its own name for them, newest first.
    async fn orders_by_reference(
        &self,
        shop: ShopId,
        reference: &str,
        most: u32,
    ) -> Result<Vec<OrderId>, StoreError>;

    /// Takes deliveries that are due for as long as the lease: of each order the oldest that waits, of each shop at most
    /// `of_shop`.
    async fn take_deliveries(
        &self,
        now: EpochMs,
        lease: Millis,
        of_shop: u32,
    ) -> Result<Vec<Delivery>, StoreError>;
    /// Ends what was taken; whether it still was the caller's.
    async fn end_delivery(&self, end: DeliveryEnd, now: EpochMs) -> Result<bool, StoreError>;
    /// The deliveries that wait.
    async fn deliveries_waiting(&self) -> Result<DeliveriesWaiting, StoreError>;

    /// A shop by its name.
    async fn shop(&self, name: &str) -> Result<Option<ShopRow>, StoreError>;
    /// Makes a shop, or gives one that is there this title and these origins.
    async fn save_shop(
        &self,
        name: &str,
        title: &str,
        return_origins: &[String],
        now: EpochMs,
    ) -> Result<ShopId, StoreError>;
    /// Stores a new key.
    async fn new_key(&self, key: NewKey) -> Result<(), StoreError>;
    /// All keys, the oldest first.
    async fn keys(&self) -> Result<Vec<KeyRow>, StoreError>;
    /// Revokes a key; whether there was one that opened something.
    async fn revoke_key(&self, handle: &str, now: EpochMs) -> Result<bool, StoreError>;
    /// Sets where a shop is told; the secret only where it has none yet. Whether it was set.
    async fn set_endpoint(
        &self,
        shop: ShopId,
        url: Option<&str>,
        secret_if_none: &Secret,
    ) -> Result<bool, StoreError>;
    /// Gives a shop another secret; the one before goes on signing until then.
    async fn rotate_secret(
        &self,
        shop: ShopId,
        secret: &Secret,
        old_until: EpochMs,
    ) -> Result<(), StoreError>;
    /// Deliveries, the newest first.
    async fn deliveries(
        &self,
        which: DeliveryFilter,
        most: u32,
    ) -> Result<Vec<DeliveryRow>, StoreError>;
    /// Makes deliveries due again, whatever they had come to; returns how many.
    async fn replay_deliveries(
        &self,
        which: DeliveryFilter,
        now: EpochMs,
    ) -> Result<u64, StoreError>;
}
