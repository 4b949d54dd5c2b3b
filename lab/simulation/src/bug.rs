//! Planted bugs: what the simulation must catch to be believed. They live in the simulated store and gateway, never in
//! the production code.

use clap::ValueEnum;

/// A fault of ours, put in on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Bug {
    /// A repeated confirm is sent again instead of being answered from the claim.
    SkipClaim,
    /// A time-out is recorded as "not charged".
    TimeoutIsFailed,
    /// The second send has another idempotency key.
    NewKeyOnResend,
    /// An inquiry's answer is recorded whatever the row has become since.
    NoFence,
    /// A webhook that was applied is applied again.
    WebhookTwice,
    /// A resent webhook is stored again.
    WebhookStoredTwice,
    /// A confirm is sent although its shopper has left.
    NoDeadline,
    /// "Not found" counts at once.
    NotFoundIsFinal,
    /// The sheet of a gateway without idempotency keys says that it knows them.
    ResendWithoutKey,
}

impl Bug {
    /// Every planted bug.
    pub const ALL: [Self; 9] = [
        Self::SkipClaim,
        Self::TimeoutIsFailed,
        Self::NewKeyOnResend,
        Self::NoFence,
        Self::WebhookTwice,
        Self::WebhookStoredTwice,
        Self::NoDeadline,
        Self::NotFoundIsFinal,
        Self::ResendWithoutKey,
    ];
}
