//! Stripe: a hosted Checkout Session authorises, a capture of its PaymentIntent charges. Must not know: orders, our own HTTP,
//! the database, when to send again.
//!
//! **How it fits.** Only the server's confirm may move money, so a session is made with `capture_method=manual`: what the
//! shopper does in Stripe's window blocks the amount on the card, and the confirm is the capture. The payment's name is the
//! PaymentIntent's id, which the session brings with it; what the shopper comes back with is the session's id, which proves
//! nothing and need not: a payment that nobody authorised cannot be captured.
//!
//! **What is unknown** is asked about by that id. Stripe's search by our order is behind by up to a minute or more by its own
//! word, so it is no way to ask. A key is remembered for 24 hours at least, and a repeat is answered as the first was.
//!
//! **The end.** An authorisation lives for about seven days (the card's brand decides), far longer than anybody waits: when
//! the confirm window is over it is ended here ([`Gateway::close`]), and after that no capture can succeed; a decline ends it
//! at once. One whose shopper never came back, or whose capture never left or came at a bad moment (429), is left to lapse
//! by itself. Nothing else is voided: money that was charged goes back as a refund.
//!
//! **Won** have no minor unit at Stripe either: 33,000 won are `33000`.

mod client;
mod outcome;
mod webhook;
mod wire;

use async_trait::async_trait;
use payment::id::{GatewayHandle, GatewayName, GatewayOrderId};
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use payment::wire::RETURN_TOKEN;
use reqwest::Url;
use tokio::time::Instant;

use super::exchange::{self, TooShort, base_address, connect_limit, long_enough};
use super::meter::{self, Meter, Operation};
use super::secret::Secret;
use super::webhook::{Admission, Incoming, Notice};
use super::{
    CancelCall, CancelOutcome, Capabilities, ConfirmCall, ConfirmOutcome, Gateway, InquiryOutcome,
    OpenOutcome, PaymentNames, Told, WindowRequest,
};
use client::Client;
use outcome::{Captured, LookedUp, Named, Refusal};

/// For how long a key may be used again: Stripe may forget one "after it is at least 24 hours old"; the last hour is left out
/// because clocks differ.
const IDEMPOTENCY: Millis = Millis::from_secs(23 * 3_600);
/// Under this name our order id stands beside the payment and each of its refunds.
const ORDER: &str = "order";
/// Under this name the reason of a refund stands beside it: Stripe's own reasons are three words.
const REASON: &str = "reason";
/// The longest value that Stripe keeps beside an object, in characters.
const METADATA_LIMIT: usize = 500;
/// The longest name of a product, in characters; Stripe names no limit, and its page shows a line.
const NAME_LIMIT: usize = 100;
/// The domain of Stripe's API, and the one host of its payment windows. A domain of the shop's own for them is not supported.
const API_DOMAIN: &str = ".stripe.com";
const WINDOWS: &str = "https://checkout.stripe.com";
/// In an address of ours Stripe puts the session's id in its place.
const SESSION: &str = "{CHECKOUT_SESSION_ID}";

/// What is needed to speak to Stripe for one account.
#[derive(Debug, Clone)]
pub struct StripeConfig {
    /// The short name: a label, and the `gateway` in addresses.
    pub name: GatewayName,
    /// `https://api.stripe.com`, or a fake that speaks its wire.
    pub base_url: String,
    /// The secret key, or a restricted one that may write sessions, payments and refunds.
    pub secret_key: Secret,
    /// What the webhooks of this server's endpoint are signed with.
    pub webhook_secret: Secret,
    /// For a confirm or a cancel, from starting to connect to the last byte of the answer.
    pub pg_timeout: Millis,
    /// To connect; the smaller of the two counts.
    pub connect_timeout: Millis,
    /// For what moves no money, likewise; see [`StripeConfig::INQUIRY_TIMEOUT`].
    pub inquiry_timeout: Millis,
    /// How long after authentication a confirm is still sent.
    pub confirm_window: Millis,
}

impl StripeConfig {
    /// The inquiry timeout unless set: a look-up moves no money, so it need not wait as long as a confirm.
    pub const INQUIRY_TIMEOUT: Millis = Millis::from_secs(10);
}

/// Why a configuration cannot be used. Never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum StripeConfigError {
    /// An address that cannot be called.
    #[error("base_url must be an http or https address without query, fragment or user")]
    BadUrl,
    /// A secret is empty or holds characters that no key has.
    #[error("the secret key and the webhook secret must be visible ASCII")]
    BadSecret,
    /// A time that would end every call before it begins.
    #[error(transparent)]
    TooShort(#[from] TooShort),
    /// The HTTP client could not be made.
    #[error("making the HTTP client for Stripe")]
    Client(#[source] reqwest::Error),
}

/// The adapter.
#[derive(Debug)]
pub struct Stripe {
    name: GatewayName,
    capabilities: Capabilities,
    client: Client,
    webhook_secret: Secret,
    /// Where payment windows are.
    windows: String,
    pg_timeout: Millis,
    inquiry_timeout: Millis,
}

impl Stripe {
    /// An adapter that calls nobody yet.
    ///
    /// # Errors
    /// [`StripeConfigError`] when the address, a secret or a time cannot be used.
    pub fn new(config: StripeConfig) -> Result<Self, StripeConfigError> {
        let base = base_address(&config.base_url).ok_or(StripeConfigError::BadUrl)?;
        for secret in [&config.secret_key, &config.webhook_secret] {
            let secret = secret.expose();
            if secret.is_empty() || !secret.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(StripeConfigError::BadSecret);
            }
        }
        long_enough([
            ("pg_timeout", config.pg_timeout),
            ("connect_timeout", config.connect_timeout),
            ("inquiry_timeout", config.inquiry_timeout),
        ])?;
        let shorter = config.pg_timeout.min(config.inquiry_timeout);
        let connect = connect_limit(config.connect_timeout, shorter);
        Ok(Self {
            windows: windows_of(&base),
            client: Client::new(base, &config.secret_key, connect)?,
            name: config.name,
            capabilities: Capabilities {
                idempotency: Some(IDEMPOTENCY),
                inquiry_by_order: false,
                opens_by_call: true,
                confirm_window: config.confirm_window,
                partial_cancel: true,
                platform_timeout: None,
                webhooks: &webhook::KINDS,
                deposits: false,
            },
            webhook_secret: config.webhook_secret,
            pg_timeout: config.pg_timeout,
            inquiry_timeout: config.inquiry_timeout,
        })
    }

    /// Asks for the payment.
    async fn look_up(&self, named: Named<'_>) -> LookedUp {
        let meter = Meter::start(&self.name, Operation::Inquire);
        let path = ["v1", "payment_intents", named.intent.as_str()];
        let heard = self.client.get(&path, self.inquiry_timeout).await;
        let looked_up = outcome::looked_up(named, heard);
        meter.end(meter::inquiry_label(&looked_up.outcome));
        looked_up
    }

    async fn capture(&self, call: &ConfirmCall, named: Named<'_>) -> ConfirmOutcome {
        let until = Instant::now() + self.pg_timeout.to_duration();
        let amount = call.amount.to_string();
        let path = ["v1", "payment_intents", named.intent.as_str(), "capture"];
        let form = [("amount_to_capture", amount.as_str())];
        let key = Some(&call.idempotency_key);
        let heard = self.client.post(&path, key, &form, self.pg_timeout).await;
        match outcome::captured(named, call.amount, heard) {
            Captured::Ended(outcome) => outcome,
            Captured::Refused(refusal) => {
                // Within the time of the confirm itself, whose slot is held; without an answer it stays unknown.
                let asked = self.after_refusal(&refusal, named);
                let asked = tokio::time::timeout_at(until, asked).await;
                let asked = asked.unwrap_or_else(|_| {
                    InquiryOutcome::NoAnswer(exchange::unheard(Lost::TimedOut)).into()
                });
                outcome::refused(refusal, call.amount, asked)
            }
        }
    }

    /// What stands after a capture that was refused. A decline ends the authorisation too, which else would block the
    /// shopper's money for days, and could be captured by nobody but a mistake.
    async fn after_refusal(&self, refusal: &Refusal, named: Named<'_>) -> LookedUp {
        let asked = self.look_up(named).await;
        if !(refusal.is_decline() && asked.chargeable) {
            return asked;
        }
        match self.end(named).await {
            Some(ended) => ended.into(),
            None => asked,
        }
    }

    /// Ends an authorisation. Without a key: a second time it finds it ended.
    async fn end(&self, named: Named<'_>) -> Option<InquiryOutcome> {
        let meter = Meter::start(&self.name, Operation::Cancel);
        let path = ["v1", "payment_intents", named.intent.as_str(), "cancel"];
        let form = [("cancellation_reason", "abandoned")];
        let heard = self.client.post(&path, None, &form, self.pg_timeout).await;
        let ended = outcome::ended(named, heard);
        meter.end(if ended.is_some() {
            "canceled"
        } else {
            "unknown"
        });
        ended
    }

    async fn give_back(&self, call: &CancelCall, named: Named<'_>) -> CancelOutcome {
        let meter = Meter::start(&self.name, Operation::Cancel);
        let reason: String = call.reason.chars().take(METADATA_LIMIT).collect();
        // What is left is named too: a refund of all would otherwise be one of whatever is left then.
        let amount = call
            .amount
            .or(call.balance)
            .map(|amount| amount.to_string());
        let mut form = vec![
            ("payment_intent", named.intent.as_str()),
            ("reason", "requested_by_customer"),
            ("metadata[order]", named.order.as_str()),
            ("metadata[reason]", &reason),
            ("expand[]", "charge"),
        ];
        if let Some(amount) = &amount {
            form.push(("amount", amount));
        }
        let key = Some(&call.idempotency_key);
        let path = ["v1", "refunds"];
        let heard = self.client.post(&path, key, &form, self.pg_timeout).await;
        let outcome = outcome::refunded(named, call, heard);
        meter.end(meter::cancel_label(&outcome));
        outcome
    }

    /// The payment's names; without Stripe's own nothing can be asked of it.
    fn named<'a>(
        &self,
        intent: Option<&'a GatewayHandle>,
        order: &'a GatewayOrderId,
    ) -> Option<Named<'a>> {
        if intent.is_none() {
            tracing::error!(gateway = %self.name, %order, "a payment without its id");
        }
        Some(Named {
            intent: intent?,
            order,
        })
    }
}

#[async_trait]
impl Gateway for Stripe {
    fn name(&self) -> &GatewayName {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open(&self, request: &WindowRequest) -> OpenOutcome {
        let meter = Meter::start(&self.name, Operation::Open);
        let order = request.gateway_order_id.as_str();
        let name: String = request.order_name.chars().take(NAME_LIMIT).collect();
        let amount = request.amount.to_string();
        let until = (request.authenticate_by.0 / 1_000).to_string();
        let success_url = format!("{}?{RETURN_TOKEN}={SESSION}", request.success_url);
        let form = [
            ("mode", "payment"),
            // The only method here whose authorisations last for days and may be ended by us.
            ("payment_method_types[0]", "card"),
            ("line_items[0][quantity]", "1"),
            ("line_items[0][price_data][currency]", "krw"),
            ("line_items[0][price_data][unit_amount]", &amount),
            ("line_items[0][price_data][product_data][name]", &name),
            ("payment_intent_data[capture_method]", "manual"),
            ("payment_intent_data[metadata][order]", order),
            ("client_reference_id", order),
            ("success_url", &success_url),
            ("cancel_url", &request.close_url),
            ("expires_at", &until),
        ];
        let path = ["v1", "checkout", "sessions"];
        let heard = self.client.post(&path, None, &form, self.inquiry_timeout);
        let allowed = |url: &Url| url.origin().ascii_serialization() == self.windows;
        let outcome = outcome::opened(heard.await, request.amount, allowed);
        meter.end(meter::open_label(&outcome));
        outcome
    }

    async fn confirm(&self, call: &ConfirmCall) -> ConfirmOutcome {
        let meter = Meter::start(&self.name, Operation::Confirm);
        let outcome = match self.named(call.handle.as_ref(), &call.gateway_order_id) {
            Some(named) => self.capture(call, named).await,
            // Nothing is sent; only an attempt that was opened can be claimed.
            None => ConfirmOutcome::NotSent(NotSent::Connect),
        };
        meter.end(outcome.label());
        outcome
    }

    async fn inquire(&self, payment: &PaymentNames) -> InquiryOutcome {
        match self.named(payment.handle.as_ref(), &payment.gateway_order_id) {
            Some(named) => self.look_up(named).await.outcome,
            None => InquiryOutcome::NoWord(without_id()),
        }
    }

    async fn close(&self, payment: &PaymentNames) -> InquiryOutcome {
        let Some(named) = self.named(payment.handle.as_ref(), &payment.gateway_order_id) else {
            return InquiryOutcome::NoWord(without_id());
        };
        let looked_up = self.look_up(named).await;
        if !looked_up.chargeable {
            return looked_up.outcome;
        }
        if let Some(ended) = self.end(named).await {
            return ended;
        }
        // Refused, or its answer was lost: as long as it can be captured, that it was not is no end.
        let again = self.look_up(named).await;
        match again.outcome {
            InquiryOutcome::Found(_, told) if again.chargeable => InquiryOutcome::NoWord(told),
            outcome => outcome,
        }
    }

    async fn cancel(&self, call: &CancelCall) -> CancelOutcome {
        match self.named(call.handle.as_ref(), &call.gateway_order_id) {
            Some(named) => self.give_back(call, named).await,
            None => CancelOutcome::Unknown(without_id()),
        }
    }

    fn admit(&self, webhook: &Incoming<'_>) -> Admission {
        webhook::admit(&self.webhook_secret, webhook)
    }

    fn notice(&self, body: &[u8]) -> Option<Notice> {
        webhook::notice(body)
    }

    fn window_origins(&self) -> Vec<String> {
        vec![self.windows.clone()]
    }
}

/// Where the windows of the API at this address are: Stripe's at its own host, a fake's beside it.
fn windows_of(base: &Url) -> String {
    let real = base
        .host_str()
        .is_some_and(|host| host.ends_with(API_DOMAIN));
    if real {
        WINDOWS.to_owned()
    } else {
        base.origin().ascii_serialization()
    }
}

fn without_id() -> Told {
    Told {
        code: "no_payment_intent".to_owned(),
        alarm: true,
        ..Told::default()
    }
}

#[cfg(test)]
mod tests;
