//! The order's status, derived from its attempts; and to which attempt the gateway's word about a payment key belongs.

use serde::{Deserialize, Serialize};

use crate::attempt::{Attempt, AttemptStatus};
use crate::reach::Reach;

/// The states of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// Not paid, and not over.
    Pending,
    /// Paid.
    Paid,
    /// Part of the money went back.
    PartiallyCanceled,
    /// All of the money went back.
    Canceled,
    /// Over without a payment.
    Expired,
}

impl OrderStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Paid,
        Self::PartiallyCanceled,
        Self::Canceled,
        Self::Expired,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::PartiallyCanceled => "partially_canceled",
            Self::Canceled => "canceled",
            Self::Expired => "expired",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// The order's status. `lapsed` says that its time to be paid is over; an open attempt outlasts that.
#[must_use]
pub fn derive(attempts: &[Attempt], lapsed: bool) -> OrderStatus {
    let paying = |attempt: &&Attempt| attempt.counts_as_paid();
    if let Some(paid) = attempts.iter().find(paying) {
        let partly = paid.canceled > crate::money::Won::ZERO;
        return if partly {
            OrderStatus::PartiallyCanceled
        } else {
            OrderStatus::Paid
        };
    }
    if attempts
        .iter()
        .any(|attempt| attempt.status == AttemptStatus::Canceled && !attempt.void)
    {
        return OrderStatus::Canceled;
    }
    if lapsed && !attempts.iter().any(|attempt| attempt.status.is_open()) {
        return OrderStatus::Expired;
    }
    OrderStatus::Pending
}

/// Whether a late success may pay its order after all, as far as the `others` of the order go: none of them paid it, is
/// open, or has money at the gateway. Of two that could both end charged, the late one goes back.
#[must_use]
pub fn may_revive(others: &[Attempt]) -> bool {
    others.iter().all(|other| match other.status {
        AttemptStatus::Ready | AttemptStatus::Failed | AttemptStatus::Expired => {
            !other.holds_money()
        }
        // A wrong charge that went back paid nothing; an order that was paid and given back is closed.
        AttemptStatus::Canceled => other.void && !other.holds_money(),
        AttemptStatus::Approving
        | AttemptStatus::Unknown
        | AttemptStatus::AwaitingDeposit
        | AttemptStatus::Mischarged
        | AttemptStatus::Approved
        | AttemptStatus::CancelRequested
        | AttemptStatus::PartiallyCanceled => false,
    })
}

/// Which of the attempts with the same payment key the gateway's word about that key belongs to: the one that sent it.
///
/// An attempt that is proven not sent takes no word while another has the key; of several that sent it (a definite
/// refusal may be followed by a new attempt with the same key) the newest one does. `None` for an empty list.
#[must_use]
pub fn owner_of_key(same_key: &[Attempt]) -> Option<usize> {
    let sent = same_key
        .iter()
        .rposition(|attempt| attempt.reach > Reach::NotSent);
    sent.or_else(|| same_key.len().checked_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::{Event, Finding, LateSuccess, Source};
    use crate::money::{Money, Won};
    use crate::reach::NotSent;

    fn expected() -> Money {
        Money::won(Won::new(10_000).unwrap())
    }

    fn after(events: &[Event]) -> Attempt {
        let step =
            |attempt: Attempt, event: &Event| attempt.apply(*event, LateSuccess::Cancel).next;
        events.iter().fold(Attempt::new(expected()), step)
    }

    fn charge(amount: i64, canceled: i64) -> Event {
        let charged = Money::won(Won::new(amount).unwrap());
        Event::Found(
            Finding::Charged {
                charged,
                canceled: Won::new(canceled).unwrap(),
            },
            Source::Answer,
        )
    }

    #[test]
    fn a_wrong_charge_given_back_leaves_the_order_payable_and_a_right_one_closes_it() {
        let wrong = after(&[Event::Claimed, charge(9_999, 0), charge(9_999, 9_999)]);
        assert_eq!(derive(&[wrong], false), OrderStatus::Pending);
        let right = after(&[Event::Claimed, charge(10_000, 0), charge(10_000, 10_000)]);
        assert_eq!(derive(&[right], false), OrderStatus::Canceled);
        let part = after(&[Event::Claimed, charge(10_000, 1)]);
        assert_eq!(derive(&[wrong, part], true), OrderStatus::PartiallyCanceled);
    }

    #[test]
    fn an_open_attempt_outlasts_the_orders_time() {
        assert_eq!(
            derive(&[after(&[Event::Claimed])], true),
            OrderStatus::Pending
        );
        assert_eq!(derive(&[after(&[])], true), OrderStatus::Expired);
        assert_eq!(derive(&[], false), OrderStatus::Pending);
    }

    #[test]
    fn a_late_success_pays_only_an_order_that_nothing_else_pays_or_may_pay() {
        let declined = Event::Found(
            Finding::Declined(crate::reach::Decline::CardRefused),
            Source::Answer,
        );
        let failed = after(&[Event::Claimed, declined]);
        let wrong_and_back = after(&[Event::Claimed, charge(9_999, 0), charge(9_999, 9_999)]);
        assert!(may_revive(&[]));
        assert!(may_revive(&[after(&[]), failed, wrong_and_back]));
        let late = after(&[Event::Claimed, declined, charge(10_000, 0)]);
        let others = [
            after(&[Event::Claimed]),
            after(&[Event::Claimed, Event::Interrupted]),
            after(&[Event::Claimed, charge(9_999, 0)]),
            after(&[Event::Claimed, charge(10_000, 0)]),
            after(&[Event::Claimed, charge(10_000, 1)]),
            after(&[Event::Claimed, charge(10_000, 10_000)]),
            late,
            // Its cancel was refused: the money is still there.
            late.apply(Event::CancelRefused, LateSuccess::Cancel).next,
        ];
        for other in others {
            assert!(!may_revive(&[failed, other]), "{other:?}");
        }
    }

    #[test]
    fn the_gateways_word_goes_to_the_attempt_that_sent_the_key() {
        let refused = after(&[Event::Claimed, Event::SendRefused(NotSent::Cap)]);
        let sent = after(&[Event::Claimed]);
        assert_eq!(owner_of_key(&[sent, refused]), Some(0));
        assert_eq!(owner_of_key(&[refused, sent, refused]), Some(1));
        assert_eq!(owner_of_key(&[refused, refused]), Some(1));
        assert_eq!(owner_of_key(&[]), None);
    }
}
