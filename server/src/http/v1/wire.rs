//! What merchants and this server say to each other. `openapi.json` says the same; a test holds every answer against it.

use serde::{Deserialize, Serialize};

/// One line of an order, by the shop's own name and price.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrderLine {
    /// What, as its shopper reads it; one line.
    pub(super) name: String,
    /// How many.
    pub(super) quantity: u32,
    /// Price of one, in won.
    pub(super) unit_amount: i64,
}

/// A language of the pages.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Language {
    /// Korean.
    Ko,
    /// English.
    En,
}

/// An order to be made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewOrder {
    /// What is bought; together 1 to 1,000,000,000 won.
    pub(super) lines: Vec<OrderLine>,
    /// The shop's own name for the order.
    pub(super) reference: String,
    /// Where the shopper is led back to, with `order=<id>` added: an address of one of the shop's origins.
    pub(super) return_url: String,
    /// The shopper's language, if the shop knows it.
    #[serde(default)]
    pub(super) language: Option<Language>,
    /// For how long the order can be paid, in seconds; the server's own time when absent.
    #[serde(default)]
    pub(super) expires_in_seconds: Option<u64>,
}

/// What an order has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// It is not paid, or not known to be; `unknown` tells the two apart.
    Pending,
    /// It is paid.
    Paid,
    /// Part of the money went back.
    PartiallyCanceled,
    /// All of the money went back.
    Canceled,
    /// Its time to be paid is over.
    Expired,
}

/// What one try to pay has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AttemptStatus {
    /// A payment window was opened; nothing was sent.
    WaitingForShopper,
    /// The payment company has it.
    InProgress,
    /// It is not known whether it was charged; it is being asked about, and must not be taken for failed.
    Unknown,
    /// A virtual account was issued, and is not paid into yet.
    AwaitingDeposit,
    /// It was charged.
    Paid,
    /// Money is being given back.
    Refunding,
    /// Part of the money went back.
    PartiallyRefunded,
    /// All of the money went back.
    Refunded,
    /// A charge that must not stand is being given back.
    ReturningMoney,
    /// It was not charged.
    NotPaid,
    /// It is over; more is told once no other try of the order is in doubt.
    Ended,
}

/// One try to pay an order.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attempt {
    /// Its number within the order, from 1.
    pub(super) number: u32,
    /// Through which payment company.
    pub(super) gateway: String,
    /// What it has come to.
    pub(super) status: AttemptStatus,
}

/// How far a refund has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RefundStatus {
    /// It waits for an earlier one, or its result is not known yet.
    Pending,
    /// The money went back.
    Done,
    /// The payment company refused it.
    Refused,
    /// Money was given back elsewhere meanwhile, so not enough was left for it.
    ExceedsBalance,
}

/// Money that is to go back.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Refund {
    /// Its name, which the payment company keeps with its reason.
    pub(super) id: String,
    /// How much, in won.
    pub(super) amount: i64,
    /// How far it has come.
    pub(super) status: RefundStatus,
    /// When it was asked for.
    pub(super) created_at: String,
}

/// An order.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Order {
    /// Its id.
    pub(super) id: String,
    /// The shop's own name for it.
    pub(super) reference: String,
    /// What it has come to.
    pub(super) status: Status,
    /// Whether a payment of it is in doubt: neither ship nor give up, and wait for the webhook.
    pub(super) unknown: bool,
    /// What it costs, in won.
    pub(super) amount: i64,
    /// Of a paid order: how much went back, in won.
    pub(super) refunded: i64,
    /// Always `KRW`.
    pub(super) currency: String,
    /// What is bought.
    pub(super) lines: Vec<OrderLine>,
    /// Where the shopper pays. Whoever has it may see and pay the order: give it to nobody else.
    pub(super) checkout_url: String,
    /// Where the shopper is led back to.
    pub(super) return_url: String,
    /// When it was made.
    pub(super) created_at: String,
    /// Until when it can be paid.
    pub(super) expires_at: String,
    /// Its tries, the oldest first.
    pub(super) attempts: Vec<Attempt>,
    /// What is to go back, the oldest first.
    pub(super) refunds: Vec<Refund>,
}

/// Orders, the newest first.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Orders {
    /// At most 20.
    pub(super) orders: Vec<Order>,
}

/// Which orders.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ByReference {
    /// The shop's own name for them.
    pub(super) reference: String,
}

/// Money to give back.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewRefund {
    /// How much, in won; all that is left when absent.
    #[serde(default)]
    pub(super) amount: Option<i64>,
    /// Why, for people; one line, which the payment company keeps.
    pub(super) reason: String,
}
