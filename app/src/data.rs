//! What the pages need to know. The server implements [`PageData`] for one shopper's request; pages know nothing of
//! stores, gateways or cookies.

pub mod console;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use payment::id::{AttemptReference, GatewayName, GatewayOrderId, OrderId, Sku};
use payment::money::Won;
use payment::refund::RefundStatus;
use payment::time::{Millis, PageTimes};
use payment::wire::OrderState;
use serde::{Deserialize, Serialize};

use crate::text::Lang;

/// A boxed future that may move between the server's threads.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Unavailable>> + Send>>;

/// The data cannot be had now; the cause is in the server's log. Says nothing about any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

/// One product on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// What.
    pub sku: Sku,
    /// Its name in the page's language.
    pub name: String,
    /// One sentence about it in the page's language.
    pub blurb: String,
    /// Price of one.
    pub price: Won,
    /// How many can be bought now.
    pub available: u64,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What.
    pub sku: Sku,
    /// Its name in the page's language.
    pub name: String,
    /// How many.
    pub quantity: u32,
    /// Price of one when the order was made.
    pub price: Won,
}

/// An order of this shopper, for its checkout, return and detail pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderPage {
    /// The order.
    pub order_id: OrderId,
    /// What is bought.
    pub lines: Vec<Line>,
    /// What it costs in all.
    pub amount: Won,
    /// When it was made, already written for people in the page's language (Korean time).
    pub created: String,
    /// Its state, as a poll would tell.
    pub state: OrderState,
    /// How long ago the open attempt was claimed; `None` when none is open.
    pub confirming_for: Option<Millis>,
    /// The page's times, from this server's contract.
    pub times: PageTimes,
    /// What has happened, oldest first.
    pub timeline: Vec<Moment>,
    /// Through which gateways it can be paid, first choice first.
    pub methods: Vec<GatewayName>,
    /// On a return page: the attempt that the address names.
    pub returned: Option<ReturnedAttempt>,
    /// Development only: the gateway's truth about this order, one line per gateway order id.
    pub gateway_truth: Option<Vec<String>>,
    /// What people asked to have back, oldest first.
    pub refunds: Vec<RefundLine>,
    /// What the shopper may still cancel; `None` is nothing.
    pub cancel: Option<CancelOffer>,
    /// How it was paid, whatever went back since; `None` when it was not.
    pub paid: Option<PaidFacts>,
    /// The shop that the order comes from; `None` is this one.
    pub seller: Option<Seller>,
}

/// How an order was paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidFacts {
    /// When that was learned, written for people.
    pub at: String,
    /// Through which gateway.
    pub gateway: GatewayName,
    /// What went back since.
    pub given_back: Won,
}

/// Orders by what has become of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderGroup {
    /// All of them.
    All,
    /// Neither paid nor over.
    Pending,
    /// Paid.
    Paid,
    /// Some or all of the money went back.
    Returned,
    /// Over without a payment.
    Expired,
}

impl OrderGroup {
    /// All groups.
    pub const ALL: [Self; 5] = [
        Self::All,
        Self::Pending,
        Self::Paid,
        Self::Returned,
        Self::Expired,
    ];

    /// The stable name, in addresses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Returned => "refunded",
            Self::Expired => "expired",
        }
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.as_str() == name)
    }
}

/// Another shop that sells through this checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seller {
    /// What shoppers call it.
    pub title: String,
    /// Where its shopper is led back to; tells nothing of what became of the payment.
    pub back: String,
}

/// One refund of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundLine {
    /// How much.
    pub amount: Won,
    /// How far it has come.
    pub status: RefundStatus,
    /// When it was asked for, written for people.
    pub asked: String,
}

/// The cancel that a page offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelOffer {
    /// How much would go back; nothing of an account that waits for its deposit: that is only closed.
    pub amount: Won,
    /// A key of this rendering: its button pressed twice is one wish.
    pub key: String,
}

/// The attempt that a return address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnedAttempt {
    /// The unguessable part of the address.
    pub reference: AttemptReference,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// Whether nothing was sent for it yet, so that a confirm may start.
    pub ready: bool,
    /// Whether its gateway opened the payment by a call: then the address brings a token, and all else is known here.
    pub by_call: bool,
}

/// One entry of an order's timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The time of day in Korea, as `14:03:07`; behind its date where that is another than the entry's before.
    pub at: String,
    /// What was learned: a stable word, turned into plain words by the text catalogue.
    pub what: MomentKind,
    /// Of a lost answer: how long it was waited for.
    pub waited: Option<Millis>,
}

/// What an entry of the timeline says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentKind {
    /// The order was made.
    Ordered,
    /// A payment window was opened.
    WindowOpened,
    /// A confirm was claimed and handed to the gateway.
    Claimed,
    /// Nothing was sent.
    NotSent,
    /// The gateway refused before processing.
    RefusedByGateway,
    /// The gateway declined.
    Declined,
    /// The answer was lost; it is not known whether the money moved.
    AnswerLost,
    /// The server was restarted in the middle of it.
    Interrupted,
    /// The gateway was asked and had no result yet.
    AskedNoResult,
    /// A virtual account was issued.
    AccountIssued,
    /// The bank took a deposit back.
    DepositUndone,
    /// The gateway says it is paid.
    Paid,
    /// The gateway was asked and says it is paid.
    FoundPaid,
    /// The gateway says another amount was charged.
    WrongAmount,
    /// The gateway says that it never charged it.
    NeverCharged,
    /// An operator found that it was never charged.
    OperatorEnded,
    /// It ended, and a charge came after that.
    LateSuccess,
    /// Money is to be given back.
    CancelRequested,
    /// The gateway gave money back.
    Refunded,
    /// The order of a virtual account was to be cancelled before its deposit.
    CloseRequested,
    /// A virtual account was closed before anybody paid into it.
    AccountClosed,
    /// The gateway refused to close a virtual account.
    AccountNotClosed,
    /// The payment window, or the order's time, is over.
    Expired,
    /// Something else of no concern to the shopper.
    Other,
}

/// One row of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// The order.
    pub order_id: OrderId,
    /// Its first product, for the picture; `None` where it has no lines.
    pub sku: Option<Sku>,
    /// What was bought, in short, in the page's language.
    pub summary: String,
    /// What it costs.
    pub amount: Won,
    /// When it was made, written for people.
    pub created: String,
    /// Its state.
    pub state: OrderState,
}

/// One page of the history, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPage {
    /// The rows, newest first.
    pub rows: Vec<HistoryRow>,
    /// This page, from 1.
    pub page: u32,
    /// Whether there are older ones.
    pub more: bool,
}

/// Development only: what the panel shows of the fake gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Panel {
    /// Whether the fake gateway answers its control API.
    pub reachable: bool,
    /// The scenario now in force, as pretty JSON.
    pub scenario: String,
    /// Whether the fake is switched on.
    pub up: bool,
    /// The delay of confirms, in ms.
    pub delay_ms: u64,
    /// The ledger's confirm counters: name and count.
    pub counters: Vec<(String, u64)>,
}

/// The data of one shopper's request.
pub trait PageData: Send + Sync {
    /// The shelf.
    fn catalogue(&self) -> Answer<Vec<Card>>;
    /// One order of this shopper; `None` when there is no such order or it is another's. `reference` is that of a return
    /// page: an unknown one, or one of another order, gives `None` too.
    fn order(
        &self,
        order: OrderId,
        reference: Option<AttemptReference>,
    ) -> Answer<Option<OrderPage>>;
    /// The shopper's orders, of one group.
    fn history(&self, group: OrderGroup, page: u32) -> Answer<HistoryPage>;
    /// The development panel; `None` in production.
    fn panel(&self) -> Answer<Option<Panel>>;
}

/// What the server gives to each page it renders.
#[derive(Clone)]
pub struct PageContext {
    /// The data of this request.
    pub data: Arc<dyn PageData>,
    /// The operators' console.
    pub console: Arc<dyn console::ConsoleData>,
    /// The language of this request.
    pub lang: Lang,
    /// Whether this is a development server (shows the panel).
    pub development: bool,
    /// The path and query of this request, for the language switch to come back to.
    pub here: String,
    /// Sets the HTTP status of the page.
    pub set_status: Arc<dyn Fn(u16) + Send + Sync>,
}
