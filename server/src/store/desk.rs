//! The port for operators: what their commands read and mark, beside a running server or without one.

use async_trait::async_trait;
use payment::id::{GatewayName, Sku};

use super::merchant::MerchantStore;
use super::{AttemptId, AttemptRecord, EvidenceRow, Store, StoreError};
use crate::clock::EpochMs;

/// An attempt that is not final, with what was learned of it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// The attempt.
    pub attempt: AttemptRecord,
    /// Since when it is in doubt; for one that was claimed and never told more, since the claim.
    pub since: EpochMs,
    /// The newest entry of its evidence.
    pub last: Option<EvidenceRow>,
}

/// What a stored webhook has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum WebhookState {
    /// Not looked at yet.
    New,
    /// Its attempt was asked about.
    Applied,
    /// It waits for its attempt.
    Parked,
    /// It concerns nothing of ours.
    Ignored,
    /// It claimed to be about a virtual account and did not know its secret.
    Forged,
}

impl WebhookState {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Applied => "applied",
            Self::Parked => "parked",
            Self::Ignored => "ignored",
            Self::Forged => "forged",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::New, Self::Applied, Self::Parked, Self::Ignored];
        all.into_iter()
            .chain([Self::Forged])
            .find(|state| state.as_str() == name)
    }
}

/// Which webhooks; whatever is absent leaves none out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookFilter {
    /// This one.
    pub id: Option<i64>,
    /// Those that came at this moment or later.
    pub since: Option<EpochMs>,
    /// Those that have come to this.
    pub state: Option<WebhookState>,
}

/// A webhook as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWebhook {
    /// Its row.
    pub id: i64,
    /// From which gateway it claims to be.
    pub gateway: GatewayName,
    /// The sender's own id of the transmission.
    pub transmission: Option<String>,
    /// When it came.
    pub received_at: EpochMs,
    /// Its body.
    pub body: Vec<u8>,
    /// What it has come to.
    pub state: WebhookState,
    /// How often it was looked at.
    pub tries: u32,
    /// The attempt that it speaks of.
    pub attempt: Option<AttemptId>,
}

/// One product's stock as counted, and as the attempts that hold it say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockCount {
    /// What.
    pub sku: Sku,
    /// How many there are in all.
    pub total: i64,
    /// How many are counted as reserved and as sold.
    pub counted: (i64, i64),
    /// How many the lines of the attempts that hold stock come to, reserved and sold.
    pub held: (i64, i64),
}

/// What operators' commands ask of the database, beyond what the server itself does.
#[async_trait]
pub trait DeskStore: Store + MerchantStore {
    /// The attempts that are not final, the oldest first: unknown, to be given back, awaiting a deposit, and approving.
    /// Those in doubt since before a moment, at most so many.
    async fn unresolved(&self, before: EpochMs, most: u32) -> Result<Vec<Unresolved>, StoreError>;
    /// Stored webhooks, the newest first, at most so many.
    async fn webhooks(
        &self,
        which: WebhookFilter,
        most: u32,
    ) -> Result<Vec<StoredWebhook>, StoreError>;
    /// How many webhooks those are.
    async fn count_webhooks(&self, which: WebhookFilter) -> Result<u64, StoreError>;
    /// Makes stored webhooks due again; returns how many.
    async fn replay_webhooks(&self, which: WebhookFilter, now: EpochMs) -> Result<u64, StoreError>;
    /// The attempts that were claimed from one moment until before another, and those that were made then and never
    /// claimed, by id: at most so many after `after`.
    async fn attempts_between(
        &self,
        from: EpochMs,
        until: EpochMs,
        after: AttemptId,
        most: u32,
    ) -> Result<Vec<AttemptRecord>, StoreError>;
    /// Every product's stock, all read at one moment.
    async fn stock(&self) -> Result<Vec<StockCount>, StoreError>;
}
