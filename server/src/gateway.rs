//! The port to payment gateways: what the server asks of one, and what an answer can be.
//!
//! An unknown outcome is a value, never an error: nothing here returns `Result`, so no `?` can turn "we do not know"
//! into "it failed".

pub mod circuit;
pub mod deposit;
mod exchange;
pub mod kakaopay;
mod meter;
pub mod refund_account;
pub mod secret;
pub mod slots;
pub mod stripe;
pub mod toss;
pub mod webhook;

use async_trait::async_trait;
use deposit::Deposit;
use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayName, GatewayOrderId, IdempotencyKey, PaymentKey};
use payment::money::Won;
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use refund_account::RefundAccount;
use webhook::{Admission, Incoming, Notice};

use crate::clock::EpochMs;

/// The names that a payment has at the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentNames {
    /// The gateway's own, where it opened the payment before the shopper authenticated.
    pub handle: Option<GatewayHandle>,
    /// What the shopper came back with, once there was a confirm.
    pub payment_key: Option<PaymentKey>,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
}

/// One confirm, complete before the first byte leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmCall {
    /// The gateway's own name for the payment, where it opened it by a call.
    pub handle: Option<GatewayHandle>,
    /// What the shopper came back with after authentication.
    pub payment_key: PaymentKey,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// What the order asks for.
    pub amount: Won,
    /// Fixed when the attempt was claimed.
    pub idempotency_key: IdempotencyKey,
}

/// What became of one send of a confirm.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmOutcome {
    /// No byte can have reached the gateway.
    NotSent(NotSent),
    /// The gateway refused it before processing (429 and its kin).
    Refused(Told),
    /// The gateway's word.
    Found(Finding, Told),
    /// It may have been processed; only an inquiry tells.
    Lost(Lost, Told),
}

/// What an inquiry brought.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InquiryOutcome {
    /// The gateway's word. `Pending` and `NotFound` come with `settled: false`; the caller knows the times.
    Found(Finding, Told),
    /// The gateway answered, but said nothing about the payment (429, 5xx, a contradiction).
    NoWord(Told),
    /// The gateway could not be reached or did not answer.
    NoAnswer(Told),
}

/// One cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelCall {
    /// The gateway's own name for the payment, where it opened it by a call.
    pub handle: Option<GatewayHandle>,
    /// The charge.
    pub payment_key: PaymentKey,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// How much is to go back now; `None` is everything that is left.
    pub amount: Option<Won>,
    /// What the gateway holds of the charge before this cancel, as an optimistic lock; `None` when it is not known.
    pub balance: Option<Won>,
    /// Why, for the shopper's statement; at most 200 characters.
    pub reason: String,
    /// Where it is to go, of a deposit that has no card to go back to.
    pub account: Option<RefundAccount>,
    /// Fixed when the cancel was decided.
    pub idempotency_key: IdempotencyKey,
}

/// The reference that the reason of a cancel ends with in brackets, if it has one: by that a list of cancels is read.
#[must_use]
pub fn reference_in(reason: &str) -> Option<&str> {
    let reason = reason.trim_end().strip_suffix(']')?;
    Some(reason.rsplit_once('[')?.1)
}

/// What became of one cancel.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The gateway's word after the cancel.
    Found(Finding, Told),
    /// Whether it happened must be asked; it may be tried again with the same key.
    Unknown(Told),
    /// Not executed; may be tried again with a new key after an inquiry.
    RetryWithNewKey(Told),
    /// Refused for good.
    Refused(Told),
}

/// What the gateway literally said, for the evidence: HTTP status and code, never secrets or card data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The gateway's own code, or our word for what happened on the wire.
    pub code: String,
    /// Whether an operator must look at it.
    pub alarm: bool,
    /// The reasons of all cancels that it lists as done, as we gave them; `None` where it lists none at all.
    pub given_back: Option<Vec<String>>,
    /// The reasons of the cancels that it lists as still under way.
    pub running: Vec<String>,
    /// The reasons of the cancels that it lists as aborted: by those nothing was given back, and nothing will be.
    pub aborted: Vec<String>,
    /// The virtual account that it names, if it names one.
    pub deposit: Option<Box<Deposit>>,
}

/// What a payment window needs to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRequest {
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// What is bought, for people; at most 100 characters.
    pub order_name: String,
    /// How many pieces, at least one.
    pub quantity: u32,
    /// What it costs.
    pub amount: Won,
    /// Until when the shopper may authenticate, for a gateway that closes its window at a time of ours.
    pub authenticate_by: EpochMs,
    /// Where the shopper comes back after authentication.
    pub success_url: String,
    /// Where the shopper comes back after a refusal.
    pub fail_url: String,
    /// Where the shopper comes back after closing the window, where the gateway tells that apart from a refusal.
    pub close_url: String,
    /// A page of ours for this payment, for a gateway whose window is opened by its own script.
    pub page_url: String,
}

/// What a page of ours needs to open a window by the gateway's own script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowScript {
    /// Where the script is.
    pub src: &'static str,
    /// The hosts that it loads from, sends to and frames, as a content security policy names them.
    pub hosts: &'static str,
    /// The public half of the shop's keys.
    pub client_key: String,
    /// What is bought, for people.
    pub order_name: String,
}

/// Where the shopper authenticates: one address per kind of device, equal where the gateway does not tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// For a computer.
    pub desktop: String,
    /// For a phone or a tablet.
    pub mobile: String,
}

/// What became of opening a payment window. However it ended, nothing was charged and nothing can be: only a confirm
/// moves money.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenOutcome {
    /// The shopper can authenticate.
    Opened {
        /// Where.
        window: Window,
        /// The gateway's own name for the payment, where opening was a call that made one.
        handle: Option<GatewayHandle>,
    },
    /// The gateway answered, but opened nothing that can be used.
    Refused(Told),
    /// It could not be reached or did not answer. A payment that it may have opened is known to nobody and lapses.
    NoAnswer(Told),
}

/// What a kind of webhook proves by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookProof {
    /// Nothing: it is a hint to ask.
    Hint,
    /// That its sender knows the secret that came with the confirm's answer.
    Secret,
    /// That its gateway sent it, a moment ago and in these bytes: it bears a signature, and without a good one it is not
    /// taken in.
    Signature,
}

/// One kind of webhook that a gateway sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookKind {
    /// The gateway's word for it.
    pub name: &'static str,
    /// What it proves.
    pub proof: WebhookProof,
}

/// What a gateway can do and how long its words take to be true. Policy reads this, never a gateway's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// How long it remembers an idempotency key; `None` when it has none, so that nothing may be resent blindly.
    pub idempotency: Option<Millis>,
    /// Whether a payment can be looked up by our order id.
    pub inquiry_by_order: bool,
    /// Whether a window needs a call to the gateway first; then an attempt that was not opened cannot be claimed.
    pub opens_by_call: bool,
    /// How long after authentication it still accepts a confirm; where it opens by call, how long after that.
    pub confirm_window: Millis,
    /// Whether part of a charge can be given back.
    pub partial_cancel: bool,
    /// After which it gives up on a call by itself, where that is known.
    pub platform_timeout: Option<Millis>,
    /// The kinds of webhooks that it sends; empty where it sends none.
    pub webhooks: &'static [WebhookKind],
    /// Whether it has payments that wait for a deposit.
    pub deposits: bool,
}

/// A payment gateway.
#[async_trait]
pub trait Gateway: Send + Sync {
    /// Its short name.
    fn name(&self) -> &GatewayName;

    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Opens a payment window: with a call where [`Capabilities::opens_by_call`] says so, else without.
    async fn open(&self, request: &WindowRequest) -> OpenOutcome;

    /// Makes one send of a confirm: from starting to connect to the last byte of the answer within the gateway timeout.
    async fn confirm(&self, call: &ConfirmCall) -> ConfirmOutcome;

    /// Asks what became of a payment, by every name that the gateway can look it up by.
    async fn inquire(&self, payment: &PaymentNames) -> InquiryOutcome;

    /// Asks what became of a payment whose confirm window is over, and sees to it that it is never charged after that.
    ///
    /// Where a payment lapses by itself, as at most gateways, that is an inquiry. Where an authorisation outlives the
    /// window, the adapter ends it first: then "not charged" is the gateway's own word, and no late call can undo it.
    async fn close(&self, payment: &PaymentNames) -> InquiryOutcome {
        self.inquire(payment).await
    }

    /// Gives money back.
    async fn cancel(&self, call: &CancelCall) -> CancelOutcome;

    /// Whether a webhook that has just come is taken in: what is not, is answered with a refusal and forgotten. A gateway
    /// that signs its webhooks refuses here whatever has no good signature.
    fn admit(&self, _webhook: &Incoming<'_>) -> Admission {
        Admission::PLAIN
    }

    /// What the body of a webhook that was taken in speaks of; `None` when that is no payment.
    fn notice(&self, _body: &[u8]) -> Option<Notice> {
        None
    }

    /// What a page of ours needs to open the window; `None` where the window has an address of its own.
    fn window_script(&self, _request: &WindowRequest) -> Option<WindowScript> {
        None
    }

    /// The origins of its payment windows, for the pages' `form-action` policy.
    fn window_origins(&self) -> Vec<String>;
}
