//! The port for the operators' console: who is signed in, and what was done there.

use async_trait::async_trait;
use payment::id::OrderId;

use super::desk::DeskStore;
use super::{AttemptId, StoreError};
use crate::clock::EpochMs;

/// An operator who is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorSession {
    /// The name that they gave.
    pub operator: String,
    /// When they signed in.
    pub opened_at: EpochMs,
    /// When the session was last used, to the minute.
    pub seen_at: EpochMs,
}

/// What an operator can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Signed in.
    SignIn,
    /// Signed out.
    SignOut,
    /// Had the gateway asked.
    Ask,
    /// Ended a doubt.
    Resolve,
    /// Asked for money to be given back.
    Refund,
}

impl Action {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SignIn => "sign_in",
            Self::SignOut => "sign_out",
            Self::Ask => "ask",
            Self::Resolve => "resolve",
            Self::Refund => "refund",
        }
    }
}

/// Something that an operator is about to do.
#[derive(Debug, Clone)]
pub struct NewAction {
    /// When.
    pub at: EpochMs,
    /// Who, by the name of the session.
    pub operator: String,
    /// What.
    pub action: Action,
    /// With which order.
    pub order_id: Option<OrderId>,
    /// With which attempt.
    pub attempt: Option<AttemptId>,
    /// In which words, and why.
    pub detail: String,
}

/// Something that an operator did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRow {
    /// When.
    pub at: EpochMs,
    /// Who.
    pub operator: String,
    /// What, by its stable name.
    pub action: String,
    /// With which order.
    pub order_id: Option<String>,
    /// With which attempt.
    pub attempt: Option<AttemptId>,
    /// In which words, and why.
    pub detail: String,
    /// What it came to; `None` when the process died in between.
    pub result: Option<String>,
}

/// What the console asks of the database, beyond what operators' commands do.
#[async_trait]
pub trait ConsoleStore: DeskStore {
    /// Keeps a session by the hash of its token, and drops those that were last used before `dead`.
    async fn open_session(
        &self,
        token_hash: &str,
        session: &OperatorSession,
        dead: EpochMs,
    ) -> Result<(), StoreError>;
    /// The session of a token's hash.
    async fn session(&self, token_hash: &str) -> Result<Option<OperatorSession>, StoreError>;
    /// Notes that a session was used.
    async fn session_seen(&self, token_hash: &str, at: EpochMs) -> Result<(), StoreError>;
    /// Ends a session.
    async fn close_session(&self, token_hash: &str) -> Result<(), StoreError>;
    /// Keeps what an operator is about to do; its number.
    async fn act(&self, action: NewAction) -> Result<i64, StoreError>;
    /// Keeps what it came to.
    async fn acted(&self, number: i64, result: &str) -> Result<(), StoreError>;
    /// What operators did, with one order or with all, the newest first, at most so many.
    async fn actions(
        &self,
        order: Option<&OrderId>,
        most: u32,
    ) -> Result<Vec<ActionRow>, StoreError>;
}
