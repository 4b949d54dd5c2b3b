//! What people see and may press, as a function of the page machine's state.
//!
//! The browser, the page without script and the order history all render this, so they cannot tell different stories.

use crate::attempt::AttemptStatus;
use crate::order::OrderStatus;
use crate::proof::{NotCharged, RetryButton};
use crate::reach::{Reach, Reason};
use crate::time::Millis;
use crate::wire::OrderState;

/// What an order's state means to its shopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A result is still to come: wait, and offer nothing.
    InDoubt,
    /// The gateway holds money that is on its way back.
    ReturningMoney,
    /// Paid.
    Paid,
    /// Part of the money went back.
    PartiallyRefunded,
    /// All of the money went back and the order is closed.
    Refunded,
    /// A virtual account waits for the shopper's deposit.
    AwaitingDeposit,
    /// Such an account is being closed, because its order is to be cancelled.
    ClosingAccount,
    /// Its account was closed before anybody paid into it: the order is over, no money came and none went back.
    ClosedUnpaid,
    /// Over without a payment.
    Expired,
    /// Proven not charged; the reason is that of the last try, if there was one.
    NotCharged(NotCharged, Option<Reason>),
}

impl Standing {
    /// Reads an order's state. Whatever proves nothing is doubt.
    #[must_use]
    pub fn of(order: &OrderState) -> Self {
        let latest = order.attempt.as_ref().map(|attempt| attempt.status);
        match order.status {
            OrderStatus::Paid | OrderStatus::PartiallyCanceled
                if latest == Some(AttemptStatus::CancelRequested) =>
            {
                Self::ReturningMoney
            }
            OrderStatus::Paid => Self::Paid,
            OrderStatus::PartiallyCanceled => Self::PartiallyRefunded,
            OrderStatus::Canceled if order.closed_unpaid => Self::ClosedUnpaid,
            OrderStatus::Canceled => Self::Refunded,
            OrderStatus::Expired => Self::Expired,
            OrderStatus::Pending => Self::of_pending(order, latest),
        }
    }

    fn of_pending(order: &OrderState, latest: Option<AttemptStatus>) -> Self {
        if let Some(proof) = NotCharged::from_wire(order) {
            let reason = order.attempt.as_ref().and_then(|attempt| attempt.reason);
            return Self::NotCharged(proof, reason);
        }
        match latest {
            Some(AttemptStatus::AwaitingDeposit) => Self::AwaitingDeposit,
            Some(AttemptStatus::CancelRequested) if order.closed_unpaid => Self::ClosingAccount,
            Some(AttemptStatus::Mischarged | AttemptStatus::CancelRequested) => {
                Self::ReturningMoney
            }
            Some(
                AttemptStatus::Ready
                | AttemptStatus::Approving
                | AttemptStatus::Unknown
                | AttemptStatus::Approved
                | AttemptStatus::PartiallyCanceled
                | AttemptStatus::Canceled
                | AttemptStatus::Failed
                | AttemptStatus::Expired,
            )
            | None => Self::InDoubt,
        }
    }
}

/// What the page is about; each has its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was tried yet: the order can be paid.
    Offer,
    /// The confirm was sent and its answer is awaited.
    Confirming,
    /// The answer did not come in time or was no result: the page asks every few seconds.
    Checking,
    /// The page came back and looks at the order before it offers anything.
    Looking,
    /// Paid.
    Paid,
    /// Part of the money went back.
    PartiallyRefunded,
    /// All of the money went back.
    Refunded,
    /// The money of a charge that must not stand is on its way back.
    ReturningMoney,
    /// A virtual account waits for the deposit.
    AwaitingDeposit,
    /// A virtual account is being closed.
    ClosingAccount,
    /// A virtual account was closed before a deposit: nothing was paid, nothing went back.
    ClosedUnpaid,
    /// Proven not charged.
    NotCharged(Option<Reason>),
    /// The wait is over and nobody knows yet: the order history will tell.
    StillUnknown,
    /// The order's time is over.
    Expired,
}

/// How far the wait has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The page clock's reading at which this page began to count.
    pub begun: Millis,
    /// What had passed before that.
    pub already: Millis,
    /// The whole wait.
    pub total: Millis,
}

impl Progress {
    /// What has passed at `now`; never more than the whole wait.
    #[must_use]
    pub fn elapsed(&self, now: Millis) -> Millis {
        self.already.plus(now.less(self.begun)).min(self.total)
    }

    /// What is left at `now`.
    #[must_use]
    pub fn left(&self, now: Millis) -> Millis {
        self.total.less(self.elapsed(now))
    }
}

/// What the pay button does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayAction {
    /// Opens the payment window for the first time.
    Pay,
    /// Opens a new payment window.
    PayAgain,
    /// Confirms the same authenticated payment again: nothing of it was sent.
    ConfirmAgain,
}

/// Everything the page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// What it is about.
    pub stage: Stage,
    /// The wait, while there is one.
    pub progress: Option<Progress>,
    /// The pay button, where a proof allows one.
    pub button: Option<(PayAction, RetryButton)>,
}

impl View {
    /// A view without wait and button.
    #[must_use]
    pub const fn plain(stage: Stage) -> Self {
        Self {
            stage,
            progress: None,
            button: None,
        }
    }

    /// The view of an order whose state is known and for which no wait runs.
    #[must_use]
    pub fn of_known(order: &OrderState) -> Self {
        match Standing::of(order) {
            Standing::InDoubt => Self::plain(Stage::Checking),
            Standing::ReturningMoney => Self::plain(Stage::ReturningMoney),
            Standing::Paid => Self::plain(Stage::Paid),
            Standing::PartiallyRefunded => Self::plain(Stage::PartiallyRefunded),
            Standing::Refunded => Self::plain(Stage::Refunded),
            Standing::AwaitingDeposit => Self::plain(Stage::AwaitingDeposit),
            Standing::ClosingAccount => Self::plain(Stage::ClosingAccount),
            Standing::ClosedUnpaid => Self::plain(Stage::ClosedUnpaid),
            Standing::Expired => Self::plain(Stage::Expired),
            Standing::NotCharged(proof, reason) => Self::of_not_charged(order, proof, reason),
        }
    }

    fn of_not_charged(order: &OrderState, proof: NotCharged, reason: Option<Reason>) -> Self {
        let button = RetryButton::new(proof);
        let tried = order
            .attempt
            .as_ref()
            .filter(|attempt| attempt.status != AttemptStatus::Ready);
        let (stage, action) = match tried {
            None => (Stage::Offer, PayAction::Pay),
            Some(attempt)
                if attempt.status == AttemptStatus::Failed
                    && (attempt.reach == Reach::NotSent || reason == Some(Reason::PgRefused)) =>
            {
                (Stage::NotCharged(reason), PayAction::ConfirmAgain)
            }
            Some(_) => (Stage::NotCharged(reason), PayAction::PayAgain),
        };
        Self {
            stage,
            progress: None,
            button: Some((action, button)),
        }
    }
}
