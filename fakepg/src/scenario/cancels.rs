//! Cancels that are accepted at once and end later, as those of overseas payment methods do.

use serde::{Deserialize, Serialize};

/// How cancels end that are under way. What is in force counts, also for those that were accepted before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AsyncCancels {
    /// From the call to its end.
    pub after_ms: u64,
    /// How it ends.
    pub ends: CancelEnd,
    /// When the balance falls; which of both is real is not known.
    pub balance: BalanceFalls,
}

/// How a cancel ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CancelEnd {
    /// The money is given back (default).
    #[default]
    Done,
    /// Nothing is given back.
    Aborted,
}

/// When the balance falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BalanceFalls {
    /// When the cancel ends as done (default).
    #[default]
    AtEnd,
    /// When it is accepted; an aborted one gives it back.
    AtOnce,
}
