//! Whether one payment is the same in both books. Pure: what is stored and what the gateway says in, a difference out.

use std::fmt;

use payment::attempt::{Attempt, AttemptStatus, Finding};
use payment::money::{Currency, Money, Won};
use serde_json::{Value, json};

use crate::operate::output::{amount, masked};
use crate::store::AttemptRecord;

/// In which way two books differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The gateway has a charge that we know nothing of.
    ChargeNotInBooks,
    /// We have a charge that the gateway knows nothing of.
    ChargeNotAtGateway,
    /// Both have a charge, of other amounts or currencies.
    AmountDiffers,
    /// Both have the charge, but not the same was given back of it.
    GivenBackDiffers,
    /// A virtual account is open in one of the books only.
    DepositDiffers,
    /// The result is not known yet.
    StillUnknown,
    /// Money is owed that has not gone back yet.
    StillOwed,
    /// Two charges of one order stand.
    ChargedTwice,
    /// The gateway has a charge under our order id with a payment key that we never sent.
    ChargeUnderAnotherKey,
    /// The stock does not add up.
    Stock,
}

impl Kind {
    /// The stable name.
    const fn as_str(self) -> &'static str {
        match self {
            Self::ChargeNotInBooks => "charge_not_in_books",
            Self::ChargeNotAtGateway => "charge_not_at_gateway",
            Self::AmountDiffers => "amount_differs",
            Self::GivenBackDiffers => "given_back_differs",
            Self::DepositDiffers => "deposit_differs",
            Self::StillUnknown => "still_unknown",
            Self::StillOwed => "still_owed",
            Self::ChargedTwice => "charged_twice",
            Self::ChargeUnderAnotherKey => "charge_under_another_key",
            Self::Stock => "stock",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Break {
    kind: Kind,
    /// The order, or the product.
    subject: String,
    /// The attempt, its gateway order id and its masked key.
    payment: Option<(i64, String, String)>,
    detail: String,
}

impl Break {
    pub(super) fn of(kind: Kind, record: &AttemptRecord, detail: String) -> Self {
        let key = masked(record.payment_key.as_ref());
        Self {
            kind,
            subject: record.order_id.to_string(),
            payment: Some((record.id.0, record.gateway_order_id.to_string(), key)),
            detail,
        }
    }

    pub(super) fn stock(sku: &str, detail: String) -> Self {
        Self {
            kind: Kind::Stock,
            subject: sku.to_owned(),
            payment: None,
            detail,
        }
    }

    pub(super) fn as_json(&self) -> Value {
        let payment = self.payment.as_ref();
        let subject = if payment.is_some() { "orderId" } else { "sku" };
        json!({
            "kind": self.kind.as_str(),
            subject: self.subject,
            "attempt": payment.map(|(id, ..)| id),
            "gatewayOrderId": payment.map(|(_, order, _)| order),
            "paymentKey": payment.map(|(.., key)| key),
            "detail": self.detail,
        })
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<24} {}", self.kind.as_str(), self.subject)?;
        if let Some((id, order, key)) = &self.payment {
            write!(f, " attempt {id} as {order} key {key}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// What the gateway holds, as far as it says.
pub(super) const fn charge_of(finding: Finding) -> Option<(Money, Won)> {
    match finding {
        Finding::Charged { charged, canceled } => Some((charged, canceled)),
        Finding::AwaitingDeposit
        | Finding::Closed
        | Finding::Declined(_)
        | Finding::Lapsed
        | Finding::Pending { .. }
        | Finding::NotFound { .. } => None,
    }
}

/// How what is stored differs from what the gateway says, and in which words.
pub(super) fn difference(ours: &Attempt, finding: Finding) -> Option<(Kind, String)> {
    let told = match (ours.charged, charge_of(finding)) {
        (None, Some((charged, canceled))) => {
            let detail = format!(
                "the gateway charged {} and gave {canceled} back, the books say {}",
                money(charged),
                ours.status.as_str()
            );
            return Some((Kind::ChargeNotInBooks, detail));
        }
        (Some(charged), None) => {
            let detail = format!(
                "the books have {} as {}, the gateway says {}",
                money(charged),
                ours.status.as_str(),
                word(finding)
            );
            return Some((Kind::ChargeNotAtGateway, detail));
        }
        (Some(charged), Some((theirs, _))) if charged != theirs => {
            let detail = format!(
                "the books have {}, the gateway {}",
                money(charged),
                money(theirs)
            );
            return Some((Kind::AmountDiffers, detail));
        }
        (Some(charged), Some((_, canceled))) => (charged, canceled),
        (None, None) => return uncharged(ours, finding),
    };
    let (charged, canceled) = told;
    if ours.canceled != canceled {
        let detail = format!(
            "the books gave {} back, the gateway {canceled}",
            ours.canceled
        );
        return Some((Kind::GivenBackDiffers, detail));
    }
    // A payment that counts must be of the order's amount, whatever both books agree on.
    if ours.counts_as_paid() && charged != ours.expected {
        let detail = format!(
            "{} was charged for an order of {}",
            money(charged),
            money(ours.expected)
        );
        return Some((Kind::AmountDiffers, detail));
    }
    unfinished(ours)
}

fn uncharged(ours: &Attempt, finding: Finding) -> Option<(Kind, String)> {
    let (here, there) = (
        ours.status == AttemptStatus::AwaitingDeposit || ours.closes_account(),
        finding == Finding::AwaitingDeposit,
    );
    let may_follow = matches!(
        ours.status,
        AttemptStatus::Unknown | AttemptStatus::Approving
    );
    if here != there && !may_follow {
        let detail = format!(
            "the books say {}, the gateway {}",
            ours.status.as_str(),
            word(finding)
        );
        return Some((Kind::DepositDiffers, detail));
    }
    unfinished(ours)
}

fn unfinished(ours: &Attempt) -> Option<(Kind, String)> {
    let kind = match ours.status {
        AttemptStatus::Unknown | AttemptStatus::Approving => Kind::StillUnknown,
        AttemptStatus::Mischarged | AttemptStatus::CancelRequested => Kind::StillOwed,
        AttemptStatus::Ready
        | AttemptStatus::AwaitingDeposit
        | AttemptStatus::Approved
        | AttemptStatus::PartiallyCanceled
        | AttemptStatus::Canceled => return None,
        // A late success whose cancel was refused.
        AttemptStatus::Failed | AttemptStatus::Expired if ours.holds_money() => Kind::StillOwed,
        AttemptStatus::Failed | AttemptStatus::Expired => return None,
    };
    let held = ours.charged.map(|money| money.amount.less(ours.canceled));
    let detail = format!(
        "the books say {}, charged and not given back: {}",
        ours.status.as_str(),
        amount(held)
    );
    Some((kind, detail))
}

fn money(money: Money) -> String {
    match money.currency {
        Currency::Krw => format!("{} won", money.amount),
        Currency::Other => format!("{} of a foreign currency", money.amount),
    }
}

const fn word(finding: Finding) -> &'static str {
    match finding {
        Finding::Charged { .. } => "charged",
        Finding::AwaitingDeposit => "awaiting a deposit",
        Finding::Closed => "closed unpaid",
        Finding::Declined(_) => "declined",
        Finding::Lapsed => "lapsed",
        Finding::Pending { .. } => "not charged yet",
        Finding::NotFound { .. } => "not found",
    }
}

#[cfg(test)]
mod tests {
    use payment::reach::Decline;
    use payment::transitions::example;

    use super::*;

    fn won(amount: i64) -> Won {
        Won::new(amount).unwrap()
    }

    fn charged(amount: i64, canceled: i64) -> Finding {
        Finding::Charged {
            charged: Money::won(won(amount)),
            canceled: won(canceled),
        }
    }

    fn kind(status: AttemptStatus, finding: Finding) -> Option<Kind> {
        difference(&example(status), finding).map(|(kind, _)| kind)
    }

    #[test]
    fn every_state_agrees_with_what_the_gateway_says_of_it_and_with_nothing_else() {
        use AttemptStatus::*;
        let absent = Finding::NotFound { settled: false };
        let declined = Finding::Declined(Decline::Other);
        for (status, finding) in [
            (Approved, charged(10_000, 0)),
            (PartiallyCanceled, charged(10_000, 4_000)),
            (Canceled, charged(10_000, 10_000)),
            (AwaitingDeposit, Finding::AwaitingDeposit),
            (Ready, absent),
            (Failed, declined),
            (Failed, absent),
            (Failed, Finding::Pending { settled: false }),
            (Expired, Finding::Lapsed),
        ] {
            assert_eq!(kind(status, finding), None, "{status:?} {finding:?}");
        }
        for (status, finding, expected) in [
            (Failed, charged(10_000, 0), Kind::ChargeNotInBooks),
            (Ready, charged(10_000, 0), Kind::ChargeNotInBooks),
            (Unknown, charged(10_000, 0), Kind::ChargeNotInBooks),
            (AwaitingDeposit, charged(10_000, 0), Kind::ChargeNotInBooks),
            (Approved, absent, Kind::ChargeNotAtGateway),
            (Canceled, declined, Kind::ChargeNotAtGateway),
            (Approved, charged(9_000, 0), Kind::AmountDiffers),
            (Approved, charged(10_000, 1), Kind::GivenBackDiffers),
            (Canceled, charged(10_000, 9_999), Kind::GivenBackDiffers),
            (Failed, Finding::AwaitingDeposit, Kind::DepositDiffers),
            (AwaitingDeposit, absent, Kind::DepositDiffers),
            (Unknown, absent, Kind::StillUnknown),
            (CancelRequested, charged(10_000, 0), Kind::StillOwed),
            (Mischarged, charged(9_000, 0), Kind::StillOwed),
        ] {
            assert_eq!(
                kind(status, finding),
                Some(expected),
                "{status:?} {finding:?}"
            );
        }
    }

    #[test]
    fn a_paid_order_of_another_amount_is_a_break_though_both_agree() {
        let attempt = Attempt {
            expected: Money::won(won(12_000)),
            ..example(AttemptStatus::Approved)
        };
        let told = difference(&attempt, charged(10_000, 0));
        assert_eq!(told.map(|(kind, _)| kind), Some(Kind::AmountDiffers));
    }
}
