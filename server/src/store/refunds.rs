//! Refunds that people ask for, as stored: the intents, and what of an answer speaks of them.

use payment::id::{IdempotencyKey, OrderId};
use payment::money::Won;
use payment::refund::Refund;
use payment::time::Millis;

use super::{AttemptId, Closed, OrderRecord, Owner};
use crate::clock::EpochMs;
use crate::gateway::reference_in;
use crate::gateway::refund_account::RefundAccount;

/// A stored refund's row number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefundId(pub i64);

/// Who asks for money back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// The order's own shopper: all that is left, and only so long after the confirm.
    Shopper(Owner, Millis),
    /// Whoever runs the shop: any amount, at any time.
    Operator,
}

impl Asker {
    /// The stable name.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Shopper(..) => "shopper",
            Self::Operator => "operator",
        }
    }
}

/// What a new refund needs.
#[derive(Debug, Clone)]
pub struct NewRefund {
    /// The order.
    pub order_id: OrderId,
    /// Who asks.
    pub asker: Asker,
    /// The asker's own key of this wish; unique for the order.
    pub client_key: IdempotencyKey,
    /// How much; `None` is all that is left.
    pub amount: Option<Won>,
    /// Why, for people; at most 160 characters.
    pub reason: String,
    /// Where a deposit is to go back to.
    pub account: Option<RefundAccount>,
    /// By which the gateway's list names it: 16 hexadecimal digits.
    pub reference: String,
    /// Now.
    pub at: EpochMs,
}

/// A refund as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundRow {
    /// Its row.
    pub id: RefundId,
    /// Its order.
    pub order_id: OrderId,
    /// The attempt whose charge is given back.
    pub attempt: AttemptId,
    /// What was asked for; `None` is all that was left.
    pub asked: Option<Won>,
    /// Why.
    pub reason: String,
    /// By which the gateway's list names it.
    pub reference: String,
    /// The machine's part.
    pub refund: Refund,
    /// Where it is to go, of a deposit; held only until it has an end.
    pub account: Option<RefundAccount>,
    /// What may be seen of that account, and stays.
    pub account_mark: Option<String>,
    /// What the gateway last said of it.
    pub told: String,
    /// Since when its present key may be in use.
    pub key_at: EpochMs,
    /// When it was asked for.
    pub created_at: EpochMs,
    /// When it came to its end.
    pub ended_at: Option<EpochMs>,
}

impl RefundRow {
    /// The key of its call: the same for every repeat, another one only after proof that the last was not executed.
    #[must_use]
    pub fn gateway_key(&self) -> Option<IdempotencyKey> {
        let text = format!("refund-{}-{}", self.reference, self.refund.keys);
        IdempotencyKey::parse(&text).ok()
    }

    /// Its reason as the gateway keeps it, with the reference by which its list is read.
    #[must_use]
    pub fn gateway_reason(&self) -> String {
        let reason: String = self.reason.chars().take(160).collect();
        format!("{reason} [{}]", self.reference)
    }

    /// Whether a cancel of the gateway's list is this one: by the reference, whatever became of the words before it.
    #[must_use]
    pub fn is_listed_as(&self, reason: &str) -> bool {
        reference_in(reason) == Some(self.reference.as_str())
    }

    /// The call that its present key names.
    #[must_use]
    pub const fn call(&self) -> RefundCall {
        RefundCall {
            refund: self.id,
            keys: self.refund.keys,
        }
    }
}

/// One call for a refund: an answer is taken only while its key is the refund's present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundCall {
    /// The refund.
    pub refund: RefundId,
    /// Its key's number.
    pub keys: u32,
}

/// What an answer says of refunds beside the money itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefundWord {
    /// The call that it answers.
    pub answers: Option<RefundCall>,
    /// The reasons of all cancels that the gateway lists as done; `None` where it lists none at all.
    pub listed: Option<Vec<String>>,
    /// The reasons of those that it lists as still under way.
    pub running: Vec<String>,
    /// The reasons of those that it lists as aborted.
    pub aborted: Vec<String>,
}

/// What became of asking for a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundAsked {
    /// Stored, its amount reserved: the order as it is now, and the refund.
    Reserved(Box<OrderRecord>, Box<RefundRow>),
    /// The same wish again: its present truth.
    Repeated(Box<OrderRecord>, Box<RefundRow>),
    /// The same key with another body.
    KeyReused,
    /// More than is left of the charge, or nothing was charged.
    ExceedsBalance,
    /// A shopper asked for a part.
    OnlyWhole,
    /// It was paid by a deposit, which goes back only to an account that its owner names.
    NeedsAccount,
    /// An account was named for a charge that goes back to where it came from.
    TakesNoAccount,
    /// The shopper's time for it is over.
    TooLate,
    /// The order has nothing to give back.
    Closed(Closed),
}
