//! What is not known about Stripe, as switches with each reading.

use serde::{Deserialize, Serialize};

/// The readings in force; each field's default is the likelier one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StripeSwitches {
    /// What becomes of the payment of a session that nobody finished in time.
    pub expired_session: ExpiredSession,
    /// The status that a card's refund begins with.
    pub refund_status: RefundStatus,
}

/// What becomes of the payment of a session that nobody finished in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpiredSession {
    /// It is canceled too (default).
    #[default]
    Canceled,
    /// It stays as it was; nobody can pay it any more.
    Kept,
}

/// The status that a card's refund begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RefundStatus {
    /// Done (default).
    #[default]
    Succeeded,
    /// On its way; it counts as refunded.
    Pending,
}

impl RefundStatus {
    /// As the wire names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Pending => "pending",
        }
    }
}
