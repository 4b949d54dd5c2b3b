//! The attempt machine: one try to pay one order, from the claim to the gateway's final word.
//!
//! [`Attempt::apply`] (in `apply`) is a function from a stored row and an event to the next row. Everything learned about money goes
//! through it, so that the confirm's answer, a webhook, an inquiry and an operator can come in any order and number.

mod apply;

use serde::{Deserialize, Serialize};

use crate::money::{Money, Won};
use crate::reach::{Decline, Lost, NotSent, Reach, Reason};

/// The states of an attempt (spec section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStatus {
    /// The payment window may be open; nothing was sent.
    Ready,
    /// Claimed: a send is being made.
    Approving,
    /// A send may have reached the gateway and its result is not known.
    Unknown,
    /// A virtual account was issued; the shopper has yet to pay into it.
    AwaitingDeposit,
    /// Another amount or currency was charged: to be cancelled, never shown as paid.
    Mischarged,
    /// Paid.
    Approved,
    /// Money is to be given back; the gateway has not confirmed it yet.
    CancelRequested,
    /// Part of the money was given back.
    PartiallyCanceled,
    /// All of the money was given back, by the gateway's word.
    Canceled,
    /// Not charged, proven.
    Failed,
    /// The payment window closed before anything was sent.
    Expired,
}

impl AttemptStatus {
    /// Every state, in the order of the generated table.
    pub const ALL: [Self; 11] = [
        Self::Ready,
        Self::Approving,
        Self::Unknown,
        Self::AwaitingDeposit,
        Self::Mischarged,
        Self::Approved,
        Self::CancelRequested,
        Self::PartiallyCanceled,
        Self::Canceled,
        Self::Failed,
        Self::Expired,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Approving => "approving",
            Self::Unknown => "unknown",
            Self::AwaitingDeposit => "awaiting_deposit",
            Self::Mischarged => "mischarged",
            Self::Approved => "approved",
            Self::CancelRequested => "cancel_requested",
            Self::PartiallyCanceled => "partially_canceled",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether money may still move or come back: an order has at most one such attempt, and never expires with it.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Approving
            | Self::Unknown
            | Self::AwaitingDeposit
            | Self::Mischarged
            | Self::CancelRequested => true,
            Self::Ready
            | Self::Approved
            | Self::PartiallyCanceled
            | Self::Canceled
            | Self::Failed
            | Self::Expired => false,
        }
    }
}

/// What the gateway says about one payment key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The gateway holds a charge of `charged`, of which `canceled` was given back.
    Charged {
        /// The first amount, with its currency.
        charged: Money,
        /// What was given back of it.
        canceled: Won,
    },
    /// A virtual account was issued.
    AwaitingDeposit,
    /// A virtual account was closed before anybody paid into it: nothing was charged, nothing was given back, and nobody can
    /// pay into it any more.
    Closed,
    /// Declined or aborted: not charged, and it will not be.
    Declined(Decline),
    /// The gateway let the payment lapse: not charged, and it will not be.
    Lapsed,
    /// Authenticated or in progress: no charge yet. `settled` once the settling time since the last send has passed.
    Pending {
        /// Whether the gateway can no longer accept a confirm of it.
        settled: bool,
    },
    /// The gateway knows no such payment; weak evidence until `settled`.
    NotFound {
        /// Whether the gateway's settling time has passed.
        settled: bool,
    },
}

/// Whether a finding answers the attempt's own confirm or was asked for beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The answer to the attempt's only unanswered send.
    Answer,
    /// An inquiry, caused by a webhook, recovery or an operator.
    Inquiry,
}

/// What an operator says of an attempt that no gateway tells about any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperatorWord {
    /// The order's amount was charged.
    Charged,
    /// Nothing was charged, and nothing will be.
    NotCharged,
}

/// Something that happened to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A confirm claimed it.
    Claimed,
    /// The payment window closed unused.
    WindowClosed,
    /// The first send was refused before a byte left.
    SendRefused(NotSent),
    /// The gateway refused the first send before processing it (429 and its kin).
    RefusedByGateway,
    /// The answer to a send was lost.
    AnswerLost(Lost),
    /// The process that claimed it died.
    Interrupted,
    /// The gateway's word.
    Found(Finding, Source),
    /// An operator ends the doubt. It weighs less than any word of the gateway: it moves nothing but an unknown attempt.
    OperatorSaid(OperatorWord),
    /// Somebody wants this much back.
    CancelAsked(Won),
    /// The order of a virtual account is to be cancelled before anybody has paid into it.
    CloseAsked,
    /// The gateway refused to give money back.
    CancelRefused,
    /// The cancel that people asked for has come to its end: the gateway did it, or it is proven that it never will.
    CancelEnded,
}

/// What to do with an approval that comes after the attempt had ended as failed or expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateSuccess {
    /// Give the money back (the default, and always when another attempt has paid the order).
    Cancel,
    /// Let it pay the order; only when nothing else of the order may, and the stock can be had again.
    Revive,
}

/// Where the stock of an attempt's order lines is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// Free for others.
    Nothing,
    /// Reserved for this attempt.
    Reserved,
    /// Sold by this attempt.
    Sold,
}

/// What an operator must be told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// Another amount or currency was charged than the order asked for.
    WrongAmount,
    /// The gateway charged an attempt that had ended without a charge.
    LateSuccess,
    /// Two final facts contradict each other; the one that holds money stands.
    Conflict,
    /// The gateway refused to give money back that is owed.
    CancelRefused,
}

impl Alarm {
    /// Every alarm.
    pub const ALL: [Self; 4] = [
        Self::WrongAmount,
        Self::LateSuccess,
        Self::Conflict,
        Self::CancelRefused,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WrongAmount => "wrong_amount",
            Self::LateSuccess => "late_success",
            Self::Conflict => "conflict",
            Self::CancelRefused => "cancel_refused",
        }
    }
}

/// One attempt as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Its state.
    pub status: AttemptStatus,
    /// The highest reach over its sends; pessimistic from the claim on, since a crash cannot tell.
    pub reach: Reach,
    /// Why it is in its state.
    pub reason: Option<Reason>,
    /// What the order asks for.
    pub expected: Money,
    /// What the gateway says it charged.
    pub charged: Option<Money>,
    /// What the gateway says it gave back.
    pub canceled: Won,
    /// Whether a virtual account was issued: only then may the gateway's word lead back from approved.
    pub deposit: bool,
    /// Whether its charge never counts as payment of the order (mischarged, or a late success that is given back).
    pub void: bool,
    /// How much is to be given back in all while a cancel is requested, and the state it came from.
    pub cancel: Option<(Won, CameFrom)>,
}

/// The state that a refused cancel leads back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CameFrom {
    /// Paid.
    Approved,
    /// Part was given back before.
    PartiallyCanceled,
    /// A virtual account that waits: nothing is given back, it is only closed.
    AwaitingDeposit,
    /// A wrong charge.
    Mischarged,
    /// A late success after a failure.
    Failed,
    /// A late success after the window closed.
    Expired,
}

impl CameFrom {
    /// The state.
    #[must_use]
    pub const fn status(self) -> AttemptStatus {
        match self {
            Self::Approved => AttemptStatus::Approved,
            Self::PartiallyCanceled => AttemptStatus::PartiallyCanceled,
            Self::AwaitingDeposit => AttemptStatus::AwaitingDeposit,
            Self::Mischarged => AttemptStatus::Mischarged,
            Self::Failed => AttemptStatus::Failed,
            Self::Expired => AttemptStatus::Expired,
        }
    }

    /// The origin that a state is.
    #[must_use]
    pub const fn of(status: AttemptStatus) -> Option<Self> {
        match status {
            AttemptStatus::Approved => Some(Self::Approved),
            AttemptStatus::PartiallyCanceled => Some(Self::PartiallyCanceled),
            AttemptStatus::AwaitingDeposit => Some(Self::AwaitingDeposit),
            AttemptStatus::Mischarged => Some(Self::Mischarged),
            AttemptStatus::Failed => Some(Self::Failed),
            AttemptStatus::Expired => Some(Self::Expired),
            AttemptStatus::Ready
            | AttemptStatus::Approving
            | AttemptStatus::Unknown
            | AttemptStatus::CancelRequested
            | AttemptStatus::Canceled => None,
        }
    }
}

/// The result of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The row to store.
    pub next: Attempt,
    /// What must be raised.
    pub alarm: Option<Alarm>,
    /// Why, in one sentence; stored with the evidence.
    pub why: &'static str,
}

impl Step {
    /// Whether the order became paid by this step.
    #[must_use]
    pub fn pays(&self, before: &Attempt) -> bool {
        !before.counts_as_paid() && self.next.counts_as_paid()
    }
}

impl Attempt {
    /// A new attempt to pay `expected`.
    #[must_use]
    pub const fn new(expected: Money) -> Self {
        Self {
            status: AttemptStatus::Ready,
            reach: Reach::NotSent,
            reason: None,
            expected,
            charged: None,
            canceled: Won::ZERO,
            deposit: false,
            void: false,
            cancel: None,
        }
    }

    /// The same attempt once the gateway has named a virtual account of it, also beside a charge: its deposit may be undone.
    #[must_use]
    pub const fn with_account(self) -> Self {
        Self {
            deposit: true,
            ..self
        }
    }

    /// Where the stock of its lines is.
    #[must_use]
    pub const fn holding(&self) -> Holding {
        match self.status {
            AttemptStatus::Ready
            | AttemptStatus::Failed
            | AttemptStatus::Expired
            | AttemptStatus::Canceled => Holding::Nothing,
            AttemptStatus::Approving
            | AttemptStatus::Unknown
            | AttemptStatus::AwaitingDeposit
            | AttemptStatus::Mischarged => Holding::Reserved,
            AttemptStatus::Approved | AttemptStatus::PartiallyCanceled => Holding::Sold,
            AttemptStatus::CancelRequested => match self.cancel {
                Some((_, CameFrom::Approved | CameFrom::PartiallyCanceled)) => Holding::Sold,
                Some((_, CameFrom::AwaitingDeposit | CameFrom::Mischarged)) => Holding::Reserved,
                Some((_, CameFrom::Failed | CameFrom::Expired)) | None => Holding::Nothing,
            },
        }
    }

    /// Whether its charge pays the order (a requested cancel of such a charge still counts until the gateway confirms).
    #[must_use]
    pub const fn counts_as_paid(&self) -> bool {
        !self.void && matches!(self.holding(), Holding::Sold)
    }

    /// Whether the gateway is known to hold money of it, whatever its state: then nothing else may be charged.
    #[must_use]
    pub fn holds_money(&self) -> bool {
        self.charged
            .is_some_and(|money| self.canceled < money.amount)
    }

    /// What of its charge the gateway still holds, by what is known.
    #[must_use]
    pub fn balance(&self) -> Won {
        let charged = self.charged.map_or(Won::ZERO, |money| money.amount);
        charged.less(self.canceled)
    }

    /// Whether a cancel is under way that people asked for, of a charge that pays the order.
    #[must_use]
    pub const fn cancels_on_request(&self) -> bool {
        let from_paid = matches!(
            self.cancel,
            Some((_, CameFrom::Approved | CameFrom::PartiallyCanceled))
        );
        from_paid && matches!(self.status, AttemptStatus::CancelRequested)
    }

    /// Whether its virtual account is being closed before its deposit, because its order is to be cancelled.
    #[must_use]
    pub const fn closes_account(&self) -> bool {
        let waited = matches!(self.cancel, Some((_, CameFrom::AwaitingDeposit)));
        waited && matches!(self.status, AttemptStatus::CancelRequested)
    }

    /// Whether its virtual account was closed before its deposit, or is being closed: no money is known to have come, so none
    /// goes back.
    #[must_use]
    pub const fn ends_unpaid(&self) -> bool {
        let closed = matches!(self.status, AttemptStatus::Canceled) && self.charged.is_none();
        closed || self.closes_account()
    }

    /// Whether the gateway holds money of it that is to go back without anybody asking.
    #[must_use]
    pub const fn owes_cancel(&self) -> bool {
        matches!(
            self.status,
            AttemptStatus::Mischarged | AttemptStatus::CancelRequested
        )
    }
}
