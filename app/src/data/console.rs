//! What the operators' console shows. Ids, states and events are shown by their stable names: operators search logs for
//! them.

use payment::id::OrderId;
use payment::money::Won;

use super::Answer;

/// What came of an operator's form, by a stable name in the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Not this password.
    WrongPassword,
    /// Too many tries to sign in.
    TooOften,
    /// The session is over.
    SignedOut,
    /// No such order.
    NotFound,
    /// The gateway is asked.
    Asked,
    /// Nothing was ever sent: there is nothing to ask about.
    NothingSent,
    /// The doubt is over.
    Resolved,
    /// It was not unknown.
    NotUnknown,
    /// The gateway may still charge it.
    TooEarly,
    /// A reason is missing.
    NoReason,
    /// No amount of money.
    NoAmount,
    /// The refund is under way.
    RefundAsked,
    /// The refund was not begun.
    RefundRefused,
}

impl Notice {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::WrongPassword,
        Self::TooOften,
        Self::SignedOut,
        Self::NotFound,
        Self::Asked,
        Self::NothingSent,
        Self::Resolved,
        Self::NotUnknown,
        Self::TooEarly,
        Self::NoReason,
        Self::NoAmount,
        Self::RefundAsked,
        Self::RefundRefused,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WrongPassword => "wrong_password",
            Self::TooOften => "too_often",
            Self::SignedOut => "signed_out",
            Self::NotFound => "not_found",
            Self::Asked => "asked",
            Self::NothingSent => "nothing_sent",
            Self::Resolved => "resolved",
            Self::NotUnknown => "not_unknown",
            Self::TooEarly => "too_early",
            Self::NoReason => "no_reason",
            Self::NoAmount => "no_amount",
            Self::RefundAsked => "refund_asked",
            Self::RefundRefused => "refund_refused",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }

    /// Whether something was done.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Asked | Self::Resolved | Self::RefundAsked)
    }
}

/// A page of the console, as whoever asks may see it.
#[derive(Debug, Clone)]
pub enum Seen<T> {
    /// There is no console.
    Absent,
    /// Nobody is signed in.
    Outside,
    /// An operator is.
    Inside {
        /// Their name.
        operator: String,
        /// The page's data.
        data: T,
    },
}

/// A gateway's limits now.
#[derive(Debug, Clone)]
pub struct Gauge {
    /// Which gateway.
    pub gateway: String,
    /// Confirms in flight from this node.
    pub in_flight: u32,
    /// Most that this node may have in flight; `None` is no limit.
    pub limit: Option<u32>,
    /// The circuit's state.
    pub circuit: &'static str,
    /// Whether its last inquiry went without an answer.
    pub silent: bool,
}

/// A payment that is not final.
#[derive(Debug, Clone)]
pub struct OpenPayment {
    /// Its number.
    pub attempt: i64,
    /// Its order.
    pub order_id: String,
    /// Through which gateway.
    pub gateway: String,
    /// Its state.
    pub status: &'static str,
    /// How much.
    pub amount: Won,
    /// Since when, written for people.
    pub since: String,
    /// For how long, in seconds.
    pub age: u64,
    /// How often the gateway was asked without a result.
    pub asks: u32,
    /// What was learned of it last.
    pub last: String,
}

/// The first page.
#[derive(Debug, Clone)]
pub struct Overview {
    /// Each gateway's limits.
    pub gauges: Vec<Gauge>,
    /// Attempts whose result is unknown.
    pub unknown: u64,
    /// Stored webhooks that were not looked at yet.
    pub webhooks_new: u64,
    /// Stored webhooks that wait for their attempt.
    pub webhooks_parked: u64,
    /// Refunds whose result is still to come.
    pub refunds_open: u64,
    /// What shops' endpoints are still to be told.
    pub shop_webhooks: u64,
    /// Those of them that an endpoint did not take when it was told, the newest first.
    pub late: Vec<ShopWebhook>,
    /// What is not final, the oldest first.
    pub open: Vec<OpenPayment>,
    /// Whether there are more than are shown.
    pub more: bool,
}

impl Overview {
    /// Of nothing.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            gauges: Vec::new(),
            unknown: 0,
            webhooks_new: 0,
            webhooks_parked: 0,
            refunds_open: 0,
            shop_webhooks: 0,
            late: Vec::new(),
            open: Vec::new(),
            more: false,
        }
    }
}

/// One attempt to pay.
#[derive(Debug, Clone)]
pub struct AttemptRow {
    /// Its number among all.
    pub attempt: i64,
    /// Its number within the order.
    pub number: u32,
    /// Through which gateway.
    pub gateway: String,
    /// The order id that the gateway sees.
    pub gateway_order_id: String,
    /// Enough of the payment key to recognise it.
    pub payment_key: String,
    /// Its state.
    pub status: &'static str,
    /// Why it ended so.
    pub reason: &'static str,
    /// What was charged, and given back.
    pub charged: Option<Won>,
    /// What was given back.
    pub given_back: Won,
    /// When the gateway is asked next, written for people.
    pub next_look: Option<String>,
    /// Whether the gateway can be asked.
    pub can_ask: bool,
    /// Whether an operator may end the doubt.
    pub can_resolve: bool,
    /// Whether "not charged" may be said: the gateway accepts no confirm of it any more.
    pub is_over: bool,
}

/// One thing that was learned.
#[derive(Debug, Clone)]
pub struct Learned {
    /// When, written for people.
    pub at: String,
    /// From whom.
    pub source: String,
    /// What.
    pub event: String,
    /// The attempt's state after it.
    pub status: String,
    /// What was literally said.
    pub told: String,
}

/// One refund.
#[derive(Debug, Clone)]
pub struct RefundRow {
    /// How much.
    pub amount: Won,
    /// How far it has come.
    pub status: &'static str,
    /// Why.
    pub reason: String,
    /// When it was asked for, written for people.
    pub asked: String,
}

/// What the endpoint of another shop is told of one of its orders.
#[derive(Debug, Clone)]
pub struct ShopWebhook {
    /// Its number, by which it is sent again.
    pub id: i64,
    /// The shop's name.
    pub shop: String,
    /// About which order.
    pub order_id: String,
    /// What happened.
    pub event: String,
    /// How far telling it has come.
    pub status: &'static str,
    /// How often it was tried.
    pub tries: u32,
    /// What the endpoint said last.
    pub told: String,
    /// When it happened, written for people.
    pub at: String,
}

/// The other shop that an order comes from.
#[derive(Debug, Clone)]
pub struct ShopFacts {
    /// What shoppers call it.
    pub title: String,
    /// Its own name for the order.
    pub reference: String,
    /// What its endpoint is told, the newest first.
    pub webhooks: Vec<ShopWebhook>,
}

/// Something that an operator did.
#[derive(Debug, Clone)]
pub struct Deed {
    /// When, written for people.
    pub at: String,
    /// Who.
    pub operator: String,
    /// What, by its stable name.
    pub action: String,
    /// With which order.
    pub order_id: Option<String>,
    /// In which words.
    pub detail: String,
    /// What it came to.
    pub result: String,
}

/// One order.
#[derive(Debug, Clone)]
pub struct OrderDesk {
    /// The order.
    pub order_id: OrderId,
    /// Its state.
    pub status: &'static str,
    /// What it costs.
    pub amount: Won,
    /// When it was made, written for people.
    pub created: String,
    /// Its attempts, the first first.
    pub attempts: Vec<AttemptRow>,
    /// The shop that it comes from; `None` is this one.
    pub shop: Option<ShopFacts>,
    /// What was learned, the oldest first.
    pub evidence: Vec<Learned>,
    /// Its refunds, the oldest first.
    pub refunds: Vec<RefundRow>,
    /// How much may still be given back; `None` is nothing.
    pub refundable: Option<Won>,
    /// A key of this rendering: its refund button pressed twice is one wish.
    pub key: String,
    /// What operators did with it, the newest first.
    pub deeds: Vec<Deed>,
}

/// The data of one operator's request.
pub trait ConsoleData: Send + Sync {
    /// The first page.
    fn overview(&self) -> Answer<Seen<Overview>>;
    /// One order; `None` when there is no such order.
    fn order(&self, order: Option<OrderId>) -> Answer<Seen<Option<OrderDesk>>>;
    /// What operators did, the newest first.
    fn deeds(&self) -> Answer<Seen<Vec<Deed>>>;
}
