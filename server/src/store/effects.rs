//! Side effects as stored: written with the outcome that causes them, taken by one node at a time, ended once.

use payment::id::OrderId;
use payment::money::Won;
use payment::time::Millis;

use super::{AttemptId, LineRow};
use crate::clock::EpochMs;

/// What happened to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectKind {
    /// It was paid.
    Paid,
    /// A deposit was undone: it is not paid any more.
    Unpaid,
    /// Part of the money went back.
    PartiallyCanceled,
    /// All of the money went back.
    Canceled,
    /// A charge that did not stand went back: the order never counted as paid by it.
    Returned,
    /// An operator must look.
    Alarm,
}

impl EffectKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Paid,
        Self::Unpaid,
        Self::PartiallyCanceled,
        Self::Canceled,
        Self::Returned,
        Self::Alarm,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paid => "order_paid",
            Self::Unpaid => "order_unpaid",
            Self::PartiallyCanceled => "order_partially_canceled",
            Self::Canceled => "order_canceled",
            Self::Returned => "charge_returned",
            Self::Alarm => "alarm",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A side effect that was taken, with what it tells. Nobody else does it until the lease is over; who takes it then counts
/// one take more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its row; of one order's effects the later one has the higher number.
    pub id: i64,
    /// Its key: once in all.
    pub key: String,
    /// How often it was taken, this time included: the fence.
    pub takes: u32,
    /// What happened.
    pub kind: EffectKind,
    /// To which order.
    pub order_id: OrderId,
    /// By which attempt.
    pub attempt_id: AttemptId,
    /// The attempt's number within the order.
    pub attempt_number: u32,
    /// What the order costs.
    pub amount: Won,
    /// The tag of the shopper's language, if it is known.
    pub language: Option<String>,
    /// Of money that went back how much in all.
    pub canceled: Option<Won>,
    /// Of an alarm its name.
    pub alarm: Option<String>,
    /// When it happened.
    pub at: EpochMs,
    /// The order's lines.
    pub lines: Vec<LineRow>,
}

/// What becomes of an effect that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectEnd {
    /// Its row.
    pub id: i64,
    /// The take that ends; an older one than the row's is not believed.
    pub takes: u32,
    /// `None` is done; else it is taken again after so long.
    pub again: Option<Millis>,
    /// What the shop's own systems are told, as JSON; stored once, in the same transaction.
    pub notification: String,
}

/// What waits, for the gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EffectsWaiting {
    /// How many.
    pub count: u64,
    /// When the oldest of them happened.
    pub oldest: Option<EpochMs>,
}

/// A notification as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationRow {
    /// The key of the effect.
    pub key: String,
    /// What happened.
    pub kind: String,
    /// What is told, as JSON.
    pub body: String,
}
