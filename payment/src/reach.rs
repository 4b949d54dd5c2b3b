//! What can be proven about a send, and why an attempt is as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What we can prove about whether the gateway saw a send. An attempt's reach is the highest over its sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// No byte of it can have reached the gateway.
    NotSent,
    /// It may have reached the gateway; only the gateway knows.
    MayHaveBeenSent,
    /// The gateway answered.
    Answered,
}

impl Reach {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::MayHaveBeenSent => "may_have_been_sent",
            Self::Answered => "answered",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::NotSent, Self::MayHaveBeenSent, Self::Answered]
            .into_iter()
            .find(|reach| reach.as_str() == name)
    }
}

/// Why a send was refused before a byte left: a proof that it did not reach the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotSent {
    /// The cap on confirms in flight was reached.
    Cap,
    /// The circuit is open.
    Circuit,
    /// The shopper's deadline had passed.
    Deadline,
    /// The connection could not be made.
    Connect,
}

impl NotSent {
    /// The label in `pg_not_sent_total{reason}`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cap => "cap",
            Self::Circuit => "circuit",
            Self::Deadline => "deadline",
            Self::Connect => "connect",
        }
    }
}

/// How an answer was lost after a send may have reached the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lost {
    /// No complete answer within the gateway timeout.
    TimedOut,
    /// The connection broke.
    Reset,
    /// An answer came that cannot be read: cut short, not JSON, an error page.
    Unreadable,
    /// An answer was read that settles nothing: a server error, "already processed", a code nobody listed.
    Inconclusive,
    /// The gateway says it is still working on it.
    InProgress,
}

impl Lost {
    /// What is proven about the send: an answer that settles nothing still is one.
    #[must_use]
    pub const fn reach(self) -> Reach {
        match self {
            Self::TimedOut | Self::Reset | Self::Unreadable => Reach::MayHaveBeenSent,
            Self::Inconclusive | Self::InProgress => Reach::Answered,
        }
    }
}

/// The class of a decline: what a shopper can do about it, without the gateway's vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decline {
    /// The issuer refused.
    CardRefused,
    /// The card's data is wrong, expired, stopped or lost.
    CardInvalid,
    /// A limit of card, account or day is exceeded.
    LimitExceeded,
    /// Password or authentication failed.
    AuthenticationFailed,
    /// This way to pay, or this instalment plan, is not available here.
    NotAvailable,
    /// The gateway's session ended before the confirm came.
    SessionExpired,
    /// The shop's set-up is at fault, not the shopper.
    ShopSetup,
    /// Refused for another listed reason.
    Other,
}

/// Why an attempt is in its state: stable, snake_case in JSON and in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Our own refusal before the send.
    NotSent(NotSent),
    /// The gateway refused the call before processing it (too many requests).
    PgRefused,
    /// The gateway declined.
    Declined(Decline),
    /// The answer was lost.
    Lost(Lost),
    /// The process died between the claim and the record.
    Interrupted,
    /// The payment window was not finished in time.
    WindowClosed,
    /// The gateway let the payment lapse.
    PgExpired,
    /// The gateway's confirm window passed and it never saw a charge.
    NeverCharged,
    /// An operator said that it was never charged.
    OperatorEnded,
    /// Another amount or currency was charged.
    WrongAmount,
    /// An approval came after the attempt had ended.
    LateSuccess,
}

const REASONS: [(Reason, &str); 25] = [
    (Reason::NotSent(NotSent::Cap), "pg_cap_reached"),
    (Reason::NotSent(NotSent::Circuit), "circuit_open"),
    (Reason::NotSent(NotSent::Deadline), "deadline_passed"),
    (Reason::NotSent(NotSent::Connect), "pg_unreachable"),
    (Reason::PgRefused, "pg_refused"),
    (Reason::Declined(Decline::CardRefused), "card_refused"),
    (Reason::Declined(Decline::CardInvalid), "card_invalid"),
    (Reason::Declined(Decline::LimitExceeded), "limit_exceeded"),
    (
        Reason::Declined(Decline::AuthenticationFailed),
        "authentication_failed",
    ),
    (Reason::Declined(Decline::NotAvailable), "not_available"),
    (Reason::Declined(Decline::SessionExpired), "session_expired"),
    (Reason::Declined(Decline::ShopSetup), "shop_setup"),
    (Reason::Declined(Decline::Other), "declined"),
    (Reason::Lost(Lost::TimedOut), "timed_out"),
    (Reason::Lost(Lost::Reset), "connection_lost"),
    (Reason::Lost(Lost::Unreadable), "answer_unreadable"),
    (Reason::Lost(Lost::Inconclusive), "answer_inconclusive"),
    (Reason::Lost(Lost::InProgress), "in_progress_at_pg"),
    (Reason::Interrupted, "interrupted"),
    (Reason::WindowClosed, "window_closed"),
    (Reason::PgExpired, "pg_expired"),
    (Reason::NeverCharged, "never_charged"),
    (Reason::OperatorEnded, "ended_by_operator"),
    (Reason::WrongAmount, "wrong_amount"),
    (Reason::LateSuccess, "late_success"),
];

impl Reason {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        REASONS
            .iter()
            .find(|(reason, _)| *reason == self)
            .map_or("unknown_reason", |(_, name)| name)
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        REASONS
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(reason, _)| *reason)
    }

    /// Every reason, each once.
    pub fn all() -> impl Iterator<Item = Self> {
        REASONS.iter().map(|(reason, _)| *reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| serde::de::Error::custom("an unknown reason"))
    }
}
