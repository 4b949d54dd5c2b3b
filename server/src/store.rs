//! The port to the database: verbs of the domain. Expected results are values; [`StoreError`] is for faults only.
//!
//! Knows no HTTP, no gateway and no policy. Every change of an attempt goes through the shared machine inside one
//! committed transaction: row, stock, order status, evidence and outbox together or not at all.

use async_trait::async_trait;
use bytes::Bytes;
use payment::attempt::{Attempt, Event, LateSuccess};
use payment::id::{
    AttemptReference, GatewayHandle, GatewayName, GatewayOrderId, IdempotencyKey, OrderId,
    PaymentKey, Sku,
};
use payment::money::Won;
use payment::order::OrderStatus;
use payment::time::Millis;

use crate::clock::EpochMs;
use crate::gateway::deposit::{Account, Deposit};
use crate::gateway::secret::Secret;
use crate::gateway::{PaymentNames, Window};
use effects::{Effect, EffectEnd, EffectsWaiting, NotificationRow};

pub mod console;
pub mod desk;
pub mod effects;
pub mod merchant;
pub mod open;
pub mod postgres;
mod refunds;
pub mod rules;
pub mod sql;
pub mod sqlite;

pub use refunds::{Asker, NewRefund, RefundAsked, RefundCall, RefundId, RefundRow, RefundWord};

/// A fault of the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No connection, or the writer, within the database wait.
    #[error("the database is busy")]
    Busy,
    /// Anything else; the cause is for the log.
    #[error("the database failed while {doing}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A stored row that the code cannot read.
    #[error("a stored {what} cannot be read")]
    Corrupt {
        /// What it should be.
        what: &'static str,
    },
}

/// Who owns an order: a guest shopper's random id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// A stored attempt's row number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub i64);

/// One product as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductRow {
    /// What.
    pub sku: Sku,
    /// Name in Korean and English.
    pub name: [String; 2],
    /// One sentence in Korean and English.
    pub blurb: [String; 2],
    /// Price of one.
    pub price: Won,
    /// How many can be bought now.
    pub available: u64,
}

/// One line of an order as stored, with the product's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRow {
    /// What.
    pub sku: Sku,
    /// Name in Korean and English.
    pub name: [String; 2],
    /// How many.
    pub quantity: u32,
    /// Price of one when the order was made.
    pub price: Won,
}

/// An order with its attempts, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRecord {
    /// The order.
    pub id: OrderId,
    /// Who owns it.
    pub owner: Owner,
    /// What it costs.
    pub amount: Won,
    /// When it was made.
    pub created_at: EpochMs,
    /// Until when it can be paid.
    pub expires_at: EpochMs,
    /// Whether it was ended for that.
    pub lapsed: bool,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
}

impl OrderRecord {
    /// Its status, derived from its attempts.
    #[must_use]
    pub fn status(&self) -> OrderStatus {
        let attempts: Vec<Attempt> = self.attempts.iter().map(|record| record.attempt).collect();
        payment::order::derive(&attempts, self.lapsed)
    }
}

/// An attempt as stored: the machine's part and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its row.
    pub id: AttemptId,
    /// Its order.
    pub order_id: OrderId,
    /// Its number within the order, from 1.
    pub number: u32,
    /// Through which gateway.
    pub gateway: GatewayName,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// The unguessable part of its return URL.
    pub reference: AttemptReference,
    /// The gateway's own name for it, where the gateway opened it by a call.
    pub handle: Option<GatewayHandle>,
    /// Where the shopper authenticates, where the gateway opened that by a call.
    pub window: Option<Window>,
    /// Known from the claim on.
    pub payment_key: Option<PaymentKey>,
    /// Fixed by the claim.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The machine's part.
    pub attempt: Attempt,
    /// Fixed when a cancel was decided.
    pub cancel_key: Option<IdempotencyKey>,
    /// Since when that key may be in use.
    pub cancel_key_at: Option<EpochMs>,
    /// Until when the payment window may be used.
    pub window_until: EpochMs,
    /// When a confirm claimed it; its only sends begin within moments of that.
    pub claimed_at: Option<EpochMs>,
    /// When its resend began, if there was one.
    pub resent_at: Option<EpochMs>,
    /// Since when it is unknown.
    pub unknown_since: Option<EpochMs>,
    /// When the gateway is to be asked next.
    pub ask_at: Option<EpochMs>,
    /// For when somebody outside last made it due, by saying that it moved.
    pub hint_at: Option<EpochMs>,
    /// How often it was asked without a result.
    pub asks: u32,
    /// How many looks at it were begun: the number of the newest, which goes with whatever that one records.
    pub looks: u32,
    /// The virtual account that was issued for it.
    pub deposit: Option<Account>,
}

impl AttemptRecord {
    /// The names by which its gateway knows it.
    #[must_use]
    pub fn names(&self) -> PaymentNames {
        PaymentNames {
            handle: self.handle.clone(),
            payment_key: self.payment_key.clone(),
            gateway_order_id: self.gateway_order_id.clone(),
        }
    }
}

/// What a new order is made of.
#[derive(Debug, Clone)]
pub struct NewOrderRow {
    /// Its id.
    pub id: OrderId,
    /// Who makes it.
    pub owner: Owner,
    /// What and how many; each sku once.
    pub items: Vec<(Sku, u32)>,
    /// Now.
    pub at: EpochMs,
    /// Until when it can be paid.
    pub expires_at: EpochMs,
    /// The tag of the shopper's language, if it is known.
    pub language: Option<&'static str>,
}

/// What became of a new order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderMade {
    /// It is stored and costs this much.
    Made(Won),
    /// There is no such product.
    UnknownSku(Sku),
    /// There is not enough of it.
    OutOfStock(Sku),
    /// The sum is beyond what can be paid.
    TooMuch,
}

/// What opening an attempt needs.
#[derive(Debug, Clone)]
pub struct NewAttemptRow {
    /// The order.
    pub order_id: OrderId,
    /// Who asks.
    pub owner: Owner,
    /// Through which gateway.
    pub gateway: GatewayName,
    /// Whether that gateway opens its window by a call; then [`Store::keep_window`] follows.
    pub by_call: bool,
    /// An attempt of it whose window the shopper left for good: that one is not ready any more.
    pub left: Option<AttemptReference>,
    /// For its return URL.
    pub reference: AttemptReference,
    /// Now.
    pub at: EpochMs,
    /// Until when its payment window may be used.
    pub window_until: EpochMs,
}

/// What a gateway answered to the call that opened an attempt's window.
#[derive(Debug, Clone)]
pub struct OpenedWindow {
    /// Its own name for the payment.
    pub handle: Option<GatewayHandle>,
    /// Where the shopper authenticates.
    pub window: Window,
    /// Until when.
    pub window_until: EpochMs,
    /// Now.
    pub at: EpochMs,
}

/// Why an order takes no attempt or no confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// No such order, or another's.
    NotFound,
    /// It is paid.
    Paid,
    /// It was canceled.
    Canceled,
    /// Its time is over.
    Expired,
    /// The window of the attempt closed before the confirm.
    AttemptExpired,
    /// An attempt is open or unknown.
    InProgress,
}

/// What became of opening an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// The ready attempt: a new one, or the one that was ready already.
    Ready(Box<AttemptRecord>),
    /// The order takes none.
    Closed(Closed),
}

/// What a claim needs.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who asks.
    pub owner: Owner,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// The gateway's handle.
    pub payment_key: PaymentKey,
    /// The amount in the request; compared, never trusted.
    pub amount: Won,
    /// For a new attempt, if the claim has to make one: the first configured gateway.
    pub gateway: GatewayName,
    /// The gateways that open their windows by a call: of theirs only an attempt that was opened can be claimed.
    pub by_call: Vec<GatewayName>,
    /// Fixed by this claim.
    pub idempotency_key: IdempotencyKey,
    /// For a new attempt.
    pub reference: AttemptReference,
    /// Which node will send it.
    pub node: String,
    /// Now.
    pub at: EpochMs,
}

/// What became of a claim. Nothing is changed unless it is granted (an expired window is noted as such).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Committed: this attempt may be sent, once.
    Granted {
        /// The order as it is now.
        order: Box<OrderRecord>,
        /// The attempt to send.
        attempt: Box<AttemptRecord>,
    },
    /// The same payment again: its present truth.
    Repeated {
        /// The order as it is.
        order: Box<OrderRecord>,
        /// The attempt of that payment.
        attempt: Box<AttemptRecord>,
    },
    /// The order takes no confirm.
    Closed(Closed),
    /// The amount is not the order's.
    AmountMismatch,
    /// The payment key belongs to another order.
    KeyUsed,
    /// The gateway order id was sent with another key, or no window was opened under it.
    NewAttemptNeeded,
    /// Not enough stock.
    OutOfStock,
}

/// What was asked, so that an answer is taken only for what it was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// About which payment.
    pub payment_key: PaymentKey,
    /// As which claim.
    pub claimed_at: Option<EpochMs>,
    /// In which look: a word of an older look than the last one recorded is dropped.
    pub look: u32,
    /// Until when the asker holds the row's next look; anything else there is a newer hint and stays.
    pub lease: EpochMs,
}

impl Asked {
    /// The names of the payment that is asked about: of that attempt, with the payment key of the question.
    #[must_use]
    pub fn names(&self, attempt: &AttemptRecord) -> PaymentNames {
        PaymentNames {
            payment_key: Some(self.payment_key.clone()),
            ..attempt.names()
        }
    }

    /// The same question, after a record of the asker's own: a next look that it has set itself is no newer hint.
    #[must_use]
    pub fn holding(&self, recorded: &Recorded) -> Self {
        let own = recorded.after.ask_at.filter(|_| !recorded.hinted);
        Self {
            lease: own.unwrap_or(self.lease),
            ..self.clone()
        }
    }
}

/// Whose turn it is to call for a cancel.
#[derive(Debug, Clone)]
pub struct CancelTake {
    /// The key that the taker found, before it asked the gateway: a call that was made since has another.
    pub found: Option<IdempotencyKey>,
    /// The key of this call: the same, where the gateway knows a repeated call by it; else a new one, which tells calls apart.
    pub key: IdempotencyKey,
}

/// Where a piece of evidence comes from, and what was literally said.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// For an inquiry's or a cancel's answer: what was asked. An answer about another payment, an older claim, or an
    /// attempt that is not the key's owner any more is dropped.
    pub asked: Option<Asked>,
    /// For a confirm's outcome: when its resend began, if there was one.
    pub resent_at: Option<EpochMs>,
    /// Confirm, inquiry, cancel, clock, start, shopper, operator.
    pub source: &'static str,
    /// What the gateway literally said.
    pub told: String,
    /// What it says of refunds that people asked for.
    pub refunds: RefundWord,
    /// What it says of a virtual account.
    pub deposit: Option<Box<Deposit>>,
    /// Now.
    pub at: EpochMs,
}

impl Evidence {
    /// What was learned without asking anybody and without a word of a gateway.
    #[must_use]
    pub const fn plain(source: &'static str, at: EpochMs) -> Self {
        Self {
            asked: None,
            resent_at: None,
            source,
            told: String::new(),
            refunds: RefundWord {
                answers: None,
                listed: None,
                running: Vec::new(),
                aborted: Vec::new(),
            },
            deposit: None,
            at,
        }
    }
}

/// What the record of an event did.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The attempt before.
    pub before: Attempt,
    /// The attempt as stored now.
    pub after: AttemptRecord,
    /// The order as it is now.
    pub order: OrderRecord,
    /// What must be raised.
    pub alarm: Option<payment::attempt::Alarm>,
    /// Whether a hint had come since the asker's look began: the next look is the hint's, not the record's.
    pub hinted: bool,
    /// The refunds that came to their end by it.
    pub ended: Vec<RefundRow>,
}

/// One entry of an order's evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceRow {
    /// When.
    pub at: EpochMs,
    /// Where it comes from.
    pub source: String,
    /// The machine's event.
    pub event: String,
    /// The attempt's state after it.
    pub status: String,
    /// What was literally said; for operators, not for pages.
    pub told: String,
}

/// A webhook as it came.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// From which gateway it claims to be.
    pub gateway: GatewayName,
    /// The sender's own id of the transmission.
    pub transmission: Option<String>,
    /// When it came.
    pub at: EpochMs,
    /// Its headers that matter, as JSON.
    pub headers: String,
    /// Its body, untouched.
    pub body: Bytes,
}

/// A stored webhook that is to be applied.
#[derive(Debug, Clone)]
pub struct WebhookRow {
    /// Its row.
    pub id: i64,
    /// From which gateway it claims to be.
    pub gateway: GatewayName,
    /// When it came.
    pub received_at: EpochMs,
    /// Its body.
    pub body: Vec<u8>,
    /// How often it found no row.
    pub tries: u32,
}

/// What becomes of a webhook that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookEnd {
    /// It pointed to this attempt, which is asked about now, or at the end of a pause.
    Hint(AttemptId),
    /// It proved to be the gateway's word about this attempt, which is asked about at once.
    Proven(AttemptId),
    /// It claimed to be the gateway's word about a virtual account, without its secret: it causes nothing.
    Forged,
    /// Its row is not there yet: look again.
    Parked(EpochMs),
    /// It concerns nothing of ours, or waited too long.
    Ignored,
}

/// Figures for the gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Attempts whose result is unknown.
    pub unknown: u64,
    /// Since when the oldest of them is.
    pub oldest_unknown: Option<EpochMs>,
    /// Webhooks not yet applied.
    pub webhooks_waiting: u64,
    /// Refunds that people asked for and whose result is still to come.
    pub refunds_open: u64,
    /// When the oldest of them was asked for.
    pub oldest_refund: Option<EpochMs>,
}

/// What waits longer than it should, and what nobody owns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overdue {
    /// Attempts that have been unknown since before the bound.
    pub unknown: u64,
    /// Stored webhooks that name no attempt of ours.
    pub strangers: u64,
    /// When the oldest webhook came that still waits for its attempt.
    pub oldest_parked: Option<EpochMs>,
}

/// How far the change feed was read; only the store reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPosition(pub String);

/// What a node says of itself as it renews its lease.
#[derive(Debug, Clone)]
pub struct Beat {
    /// The node.
    pub node: String,
    /// Now; a database with a clock of its own goes by that one.
    pub at: EpochMs,
    /// For how long its slots stay its own.
    pub lease: Millis,
    /// Of each gateway: the cap of all nodes, and what it has in flight.
    pub slots: Vec<HeldSlots>,
}

/// One gateway's slots as a node holds them.
#[derive(Debug, Clone)]
pub struct HeldSlots {
    /// The gateway.
    pub gateway: GatewayName,
    /// The cap of all nodes together.
    pub cap: u32,
    /// What the node may still have in flight until it hears the answer: its present share, or more if it shrank.
    pub in_use: u32,
}

/// One gateway's slots as a node may use them from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSlots {
    /// The gateway.
    pub gateway: GatewayName,
    /// How many.
    pub slots: u32,
    /// How many nodes are alive.
    pub nodes: u32,
}

/// One pool of connections, for the gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolCensus {
    /// What it is for.
    pub pool: &'static str,
    /// Connections at work.
    pub busy: u32,
    /// Connections that wait for work.
    pub idle: u32,
    /// Most connections.
    pub most: u32,
}

/// The database.
#[async_trait]
pub trait Store: Send + Sync {
    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;
    /// The shelf.
    async fn products(&self) -> Result<Vec<ProductRow>, StoreError>;
    /// Makes an order; nothing is reserved yet.
    async fn make_order(&self, order: NewOrderRow) -> Result<OrderMade, StoreError>;
    /// One order, whoever owns it.
    async fn order(&self, id: &OrderId) -> Result<Option<OrderRecord>, StoreError>;
    /// The lines of an order.
    async fn lines(&self, id: &OrderId) -> Result<Vec<LineRow>, StoreError>;
    /// The evidence of an order, oldest first.
    async fn evidence(&self, id: &OrderId) -> Result<Vec<EvidenceRow>, StoreError>;
    /// Orders of a shopper, of one of these states or of any, newest first.
    async fn orders_of(
        &self,
        owner: &Owner,
        among: Option<[OrderStatus; 2]>,
        skip: u32,
        most: u32,
    ) -> Result<Vec<OrderRecord>, StoreError>;

    /// The ready attempt of an order, made if there is none.
    async fn open_attempt(&self, attempt: NewAttemptRow) -> Result<Opened, StoreError>;
    /// Stores where the window of a ready attempt was opened, unless it was opened already or is ready no more; the attempt
    /// as it is then.
    async fn keep_window(
        &self,
        attempt: AttemptId,
        opened: OpenedWindow,
    ) -> Result<AttemptRecord, StoreError>;
    /// Checks and claims in one committed transaction.
    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError>;
    /// Applies an event to an attempt, with stock, order, evidence and outbox, in one committed transaction.
    async fn record(
        &self,
        attempt: AttemptId,
        event: Event,
        evidence: Evidence,
        late: LateSuccess,
    ) -> Result<Recorded, StoreError>;

    /// One attempt.
    async fn attempt(&self, id: AttemptId) -> Result<Option<AttemptRecord>, StoreError>;
    /// The attempts with a payment key, oldest first.
    async fn attempts_by_key(
        &self,
        gateway: &GatewayName,
        key: &PaymentKey,
    ) -> Result<Vec<AttemptRecord>, StoreError>;
    /// The attempts with a gateway order id, oldest first.
    async fn attempts_by_gateway_order(
        &self,
        id: &GatewayOrderId,
    ) -> Result<Vec<AttemptRecord>, StoreError>;

    /// Attempts about which the gateway is to be asked by `now`, the longest due first; among them those whose look lies
    /// farther ahead than any is ever set, as after a step back of the wall clock.
    async fn due(
        &self,
        gateway: &GatewayName,
        now: EpochMs,
        most: u32,
    ) -> Result<Vec<AttemptRecord>, StoreError>;
    /// When the next attempt of a gateway is due.
    async fn next_due(&self, gateway: &GatewayName) -> Result<Option<EpochMs>, StoreError>;
    /// The gateways of which attempts wait for a look, configured here or not.
    async fn gateways_waiting(&self) -> Result<Vec<GatewayName>, StoreError>;
    /// The attempt of a gateway that has waited longest to be known, whether it is due or not.
    async fn oldest_waiting(
        &self,
        gateway: &GatewayName,
    ) -> Result<Option<AttemptRecord>, StoreError>;
    /// Moves an attempt's next look from `from` to `to`, if it still is at `from`: a hint that came meanwhile stays.
    /// `asks` is the number of looks without a result so far. Whether it was moved; then its look number is one higher, so
    /// that whoever takes a look by this has a number of its own.
    async fn move_look(
        &self,
        attempt: AttemptId,
        from: EpochMs,
        to: Option<EpochMs>,
        asks: u32,
    ) -> Result<bool, StoreError>;
    /// Gives every waiting attempt without a next look one; returns how many had none.
    async fn rearm(&self, now: EpochMs) -> Result<u64, StoreError>;
    /// Makes every waiting attempt of a gateway due now; returns how many.
    async fn wake_waiting(&self, gateway: &GatewayName, now: EpochMs) -> Result<u64, StoreError>;
    /// Takes the call of a cancel that the shop owes, from `now` for as long as an answer may come, and fixes its key, so
    /// that a resend after a crash is the same cancel. False where nothing is owed any more, while somebody else's call may be
    /// in flight, on whichever node, and when one was made with another key since the taker looked.
    async fn take_cancel_call(
        &self,
        attempt: AttemptId,
        take: CancelTake,
        span: (EpochMs, EpochMs),
    ) -> Result<bool, StoreError>;
    /// Gives back a cancel's call that was taken `until` then: its answer was heard, or will never be. A new key is for the
    /// next call.
    async fn end_cancel_call(
        &self,
        attempt: AttemptId,
        until: EpochMs,
        new_key: Option<IdempotencyKey>,
    ) -> Result<(), StoreError>;
    /// Stores a wish to have money back and reserves its amount, in one committed transaction; begins it if no other one
    /// of the same charge is under way.
    async fn ask_refund(&self, refund: NewRefund) -> Result<RefundAsked, StoreError>;
    /// One refund.
    async fn refund(&self, id: RefundId) -> Result<Option<RefundRow>, StoreError>;
    /// The refunds of an order, oldest first.
    async fn refunds_of(&self, order: &OrderId) -> Result<Vec<RefundRow>, StoreError>;
    /// The refund of an attempt that is under way at the gateway.
    async fn refund_under_way(&self, attempt: AttemptId) -> Result<Option<RefundRow>, StoreError>;
    /// Takes the call of the refund that is under way, for as long as an answer may come: `None` while somebody else's call
    /// for it may be in flight, on whichever node.
    async fn take_refund_call(
        &self,
        attempt: AttemptId,
        now: EpochMs,
        until: EpochMs,
    ) -> Result<Option<RefundRow>, StoreError>;
    /// Gives a call back that was taken `until` then: its answer was heard, or will never be.
    async fn end_refund_call(&self, refund: RefundId, until: EpochMs) -> Result<(), StoreError>;
    /// Gives back every call of a refund or a cancel that was taken: whoever took one is dead. Only where one process owns
    /// the database.
    async fn free_calls(&self) -> Result<u64, StoreError>;
    /// Gives a refund a new key under what is left, if `call` is its present one: the gateway's word was that it did not
    /// execute that. Whether it was.
    async fn renew_refund_key(
        &self,
        call: RefundCall,
        told: &str,
        at: EpochMs,
    ) -> Result<bool, StoreError>;
    /// Attempts that have been approving since before a moment: nobody works on them any more.
    async fn approving_since(&self, before: EpochMs) -> Result<Vec<AttemptId>, StoreError>;
    /// Attempts that are approving and were claimed by a node that is dead: one whose lease is over, or where one process
    /// owns the database any but `own`.
    async fn approving_of_dead_nodes(
        &self,
        own: &str,
        now: EpochMs,
    ) -> Result<Vec<AttemptId>, StoreError>;
    /// Ready attempts whose window has closed.
    async fn lapsed_windows(&self, now: EpochMs, most: u32) -> Result<Vec<AttemptId>, StoreError>;
    /// Ends the pending orders whose time is over, that have no open attempt, and of whose attempts that were ever sent the
    /// gateway was heard since; returns how many.
    async fn lapse_orders(&self, now: EpochMs) -> Result<u64, StoreError>;
    /// Makes due what keeps such orders from ending: attempts that were sent through this gateway and have ended, of which it
    /// was not heard since and that nobody asks about. Not more than `most` wait for an answer at a time, beside those that
    /// were asked about in vain for minutes; returns how many were made due.
    async fn ask_before_lapse(
        &self,
        gateway: &GatewayName,
        now: EpochMs,
        most: u32,
    ) -> Result<u64, StoreError>;

    /// Takes side effects that are due for as long as the lease, in the order in which they happened: nobody else takes them
    /// meanwhile. A database that nodes share goes by its own clock.
    async fn take_effects(
        &self,
        now: EpochMs,
        lease: Millis,
        most: u32,
    ) -> Result<Vec<Effect>, StoreError>;
    /// Ends what was taken, each with its notification, which is stored once; whether each was still the caller's. What
    /// somebody took since, or ended, stays as it is.
    async fn end_effects(&self, ends: &[EffectEnd], now: EpochMs) -> Result<Vec<bool>, StoreError>;
    /// The side effects that are not done.
    async fn effects_waiting(&self) -> Result<EffectsWaiting, StoreError>;
    /// What the shop's own systems are told of an order, in the order in which it happened.
    async fn notifications(&self, order: &OrderId) -> Result<Vec<NotificationRow>, StoreError>;

    /// Stores a webhook; false when the same transmission is stored already.
    async fn keep_webhook(&self, webhook: NewWebhook) -> Result<bool, StoreError>;
    /// Webhooks to apply by `now`.
    async fn webhooks_due(&self, now: EpochMs, most: u32) -> Result<Vec<WebhookRow>, StoreError>;
    /// Ends looks at webhooks, all in one transaction; each hint makes its attempt due in it, as [`Store::hint`] does. For
    /// each, whether that look has to wait.
    async fn end_webhooks(
        &self,
        ends: &[(i64, WebhookEnd)],
        now: EpochMs,
    ) -> Result<Vec<bool>, StoreError>;
    /// Makes an attempt due because somebody outside said that it moved: at once, or, when a hint did so a moment ago, at
    /// the end of a pause (one second while it is open, ten when it has ended). Whether it has to wait; `pause: false`
    /// never waits.
    async fn hint(&self, attempt: AttemptId, now: EpochMs, pause: bool)
    -> Result<bool, StoreError>;
    /// The secret by which a gateway's own webhooks about an attempt's virtual account are known; `None` where none is held.
    async fn deposit_secret(&self, attempt: AttemptId) -> Result<Option<Secret>, StoreError>;
    /// How many raw webhooks of an attempt are stored.
    async fn webhooks_of(&self, attempt: AttemptId) -> Result<u64, StoreError>;
    /// Drops webhooks that are done with and came before a moment, at most so many; returns how many.
    async fn sweep_webhooks(&self, before: EpochMs, most: u32) -> Result<u64, StoreError>;

    /// The orders that changed after a position, and the position to read on from. No change that is ever committed is
    /// left out, and what changed before the position was returned can be read by whoever reads it now.
    async fn changes_after(
        &self,
        position: &FeedPosition,
    ) -> Result<(Vec<OrderId>, FeedPosition), StoreError>;
    /// The position of the newest change.
    async fn end_of_changes(&self) -> Result<FeedPosition, StoreError>;
    /// Drops the changes that were kept this long.
    async fn sweep_changes(&self, kept: Millis, now: EpochMs) -> Result<(), StoreError>;

    /// Whether several nodes may share this database.
    fn is_shared(&self) -> bool;
    /// The time by the clock that all who share this database go by; `own` is the caller's.
    async fn now(&self, own: EpochMs) -> Result<EpochMs, StoreError>;
    /// Renews a node's lease and gives it the slots that it may use from now on.
    async fn beat(&self, beat: Beat) -> Result<Vec<NodeSlots>, StoreError>;
    /// Ends a node's lease at once: its calls have ended.
    async fn leave(&self, node: &str) -> Result<(), StoreError>;

    /// Its pools of connections.
    fn pools(&self) -> Vec<PoolCensus>;
    /// The figures for the gauges.
    async fn census(&self) -> Result<Census, StoreError>;
    /// What waits longer than it should: attempts unknown since before `unknown_before`, and webhooks.
    async fn overdue(&self, unknown_before: EpochMs) -> Result<Overdue, StoreError>;
    /// A fact of the installation, stored now if it is not there yet.
    async fn setting(&self, name: &str, if_absent: &str) -> Result<String, StoreError>;
}
