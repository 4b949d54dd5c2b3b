//! The proof that an order is not charged, and the one button that needs it.

use crate::attempt::{Attempt, AttemptStatus};
use crate::order::OrderStatus;
use crate::wire::OrderState;

/// Proof that an order is not charged: it is pending, and every attempt is ready, failed, expired, or fully canceled by
/// the gateway's word (an allow-list: a state that is not named here proves nothing).
///
/// There is no other way to make one, and [`RetryButton`] can only be made from one. This does not compile:
///
/// ```compile_fail
/// use payment::proof::{NotCharged, RetryButton};
/// let button = RetryButton::new(NotCharged { _private: () });
/// ```
///
/// This does, and an unknown attempt gives no button:
///
/// ```
/// use payment::attempt::AttemptStatus;
/// use payment::order::OrderStatus;
/// use payment::proof::{NotCharged, RetryButton};
/// let proof = NotCharged::prove(OrderStatus::Pending, [AttemptStatus::Failed]).expect("a failed attempt is a proof");
/// let button = RetryButton::new(proof);
/// assert!(NotCharged::prove(OrderStatus::Pending, [AttemptStatus::Failed, AttemptStatus::Unknown]).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotCharged {
    _private: (),
}

impl NotCharged {
    /// The proof, if the order's status and the states of all its attempts give it. `payable` in JSON is exactly this.
    #[must_use]
    pub fn prove(
        order: OrderStatus,
        attempts: impl IntoIterator<Item = AttemptStatus>,
    ) -> Option<Self> {
        let pending = order == OrderStatus::Pending;
        let proven = pending && attempts.into_iter().all(proves_no_charge);
        proven.then_some(Self { _private: () })
    }

    /// The proof from the attempts themselves: beside their states, none may hold money at the gateway (a late success
    /// whose cancel was refused leads back to a state that would prove it).
    #[must_use]
    pub fn of_attempts<'a>(
        order: OrderStatus,
        attempts: impl IntoIterator<Item = &'a Attempt> + Clone,
    ) -> Option<Self> {
        let held = attempts.clone().into_iter().any(Attempt::holds_money);
        let statuses = attempts.into_iter().map(|attempt| attempt.status);
        if held {
            None
        } else {
            Self::prove(order, statuses)
        }
    }

    /// The proof that the server sent: `payable` is true and nothing beside it contradicts that.
    #[must_use]
    pub fn from_wire(order: &OrderState) -> Option<Self> {
        let latest = order.attempt.as_ref().map(|attempt| attempt.status);
        if order.payable {
            Self::prove(order.status, latest)
        } else {
            None
        }
    }
}

const fn proves_no_charge(status: AttemptStatus) -> bool {
    matches!(
        status,
        AttemptStatus::Ready
            | AttemptStatus::Failed
            | AttemptStatus::Expired
            | AttemptStatus::Canceled
    )
}

/// The pay button. Only a [`NotCharged`] makes one, so a retry while the result is unknown does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryButton {
    proof: NotCharged,
}

impl RetryButton {
    /// The button that a proof allows.
    #[must_use]
    pub const fn new(proof: NotCharged) -> Self {
        Self { proof }
    }

    /// The proof it stands on.
    #[must_use]
    pub const fn proof(&self) -> NotCharged {
        self.proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_four_states_prove_that_nothing_was_charged() {
        let proving: Vec<_> = AttemptStatus::ALL
            .into_iter()
            .filter(|status| NotCharged::prove(OrderStatus::Pending, [*status]).is_some())
            .collect();
        let allowed = [
            AttemptStatus::Ready,
            AttemptStatus::Canceled,
            AttemptStatus::Failed,
            AttemptStatus::Expired,
        ];
        assert_eq!(proving, allowed);
        for order in OrderStatus::ALL
            .into_iter()
            .filter(|order| *order != OrderStatus::Pending)
        {
            assert!(NotCharged::prove(order, [AttemptStatus::Failed]).is_none());
        }
    }
}
