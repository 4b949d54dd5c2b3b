//! KakaoPay, online single payment. Must not know: orders, our own HTTP, the database, when to send again.
//!
//! A payment is opened by a call (`ready`) that names it (`tid`); the shopper authenticates in KakaoPay's window and comes
//! back with a token, and `approve` charges. There is no idempotency key, no look-up by our order id and no webhook: what
//! is unknown is asked about by the `tid`, and nothing is ever sent a second time without having asked.

mod client;
mod outcome;
mod wire;

use async_trait::async_trait;
use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayName, GatewayOrderId};
use payment::money::Won;
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use reqwest::Url;
use tokio::time::Instant;

use super::exchange::{self, TooShort, base_address, connect_limit, long_enough};
use super::meter::{self, Meter, Operation};
use super::secret::Secret;
use super::{
    CancelCall, CancelOutcome, Capabilities, ConfirmCall, ConfirmOutcome, Gateway, InquiryOutcome,
    OpenOutcome, PaymentNames, Told, WindowRequest,
};
use client::{Call, Client};
use outcome::{Approved, GiveBack, Named};
use wire::{ApproveBody, CancelBody, OrderBody, ReadyBody};

/// After this KakaoPay's platform gives up on a request.
const PLATFORM_TIMEOUT: Millis = Millis::from_secs(11);
/// KakaoPay's limit of `item_name`, in characters.
const ITEM_NAME_LIMIT: usize = 100;
/// KakaoPay's limit of `payload`, in characters.
const PAYLOAD_LIMIT: usize = 200;
/// KakaoPay's limit of a return address, in bytes.
const URL_LIMIT: usize = 255;
/// The length of a shop's code.
const CID_LENGTH: usize = 10;
/// The domain of KakaoPay's API.
const API_DOMAIN: &str = ".kakaopay.com";
/// Where its payment windows are: hosts of these two domains were seen, and which one a payment gets it does not promise.
const WINDOW_DOMAINS: [&str; 2] = [API_DOMAIN, ".kakao.com"];

/// What is needed to speak to KakaoPay for one shop.
#[derive(Debug, Clone)]
pub struct KakaoPayConfig {
    /// The short name: a label, and the `gateway` in addresses.
    pub name: GatewayName,
    /// `https://open-api.kakaopay.com`, or a fake that speaks its wire.
    pub base_url: String,
    /// The shop's code, 10 characters; `TC0ONETIME` in tests.
    pub cid: String,
    /// The secret key.
    pub secret_key: Secret,
    /// For a confirm or a cancel, from starting to connect to the last byte of the answer.
    pub pg_timeout: Millis,
    /// To connect; the smaller of the two counts.
    pub connect_timeout: Millis,
    /// For a ready or an order look-up, likewise: neither moves money.
    pub inquiry_timeout: Millis,
    /// How long after a ready the payment can still be approved.
    pub confirm_window: Millis,
}

impl KakaoPayConfig {
    /// The confirm window unless set: a payment lives for 15 minutes from its ready.
    pub const CONFIRM_WINDOW: Millis = Millis::from_secs(15 * 60);
    /// The inquiry timeout unless set: longer than that would outlast the platform's own.
    pub const INQUIRY_TIMEOUT: Millis = Millis::from_secs(10);
}

/// Why a configuration cannot be used. Never holds the secret.
#[derive(Debug, thiserror::Error)]
pub enum KakaoPayConfigError {
    /// An address that cannot be called.
    #[error("base_url must be an http or https address without query, fragment or user")]
    BadUrl,
    /// A shop's code that KakaoPay never made.
    #[error("cid must be {CID_LENGTH} letters and digits")]
    BadCid,
    /// The secret key is empty or holds characters that no key has.
    #[error("the secret key must be visible ASCII")]
    BadSecret,
    /// A time that would end every call before it begins.
    #[error(transparent)]
    TooShort(#[from] TooShort),
    /// The HTTP client could not be made.
    #[error("making the HTTP client for KakaoPay")]
    Client(#[source] reqwest::Error),
}

/// The adapter.
#[derive(Debug)]
pub struct KakaoPay {
    name: GatewayName,
    capabilities: Capabilities,
    client: Client,
    windows: Windows,
    cid: String,
    pg_timeout: Millis,
    inquiry_timeout: Millis,
}

/// Where payment windows may be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Windows {
    /// At KakaoPay's own domains.
    KakaoPay,
    /// Where the API is: a fake.
    Beside(String),
}

impl Windows {
    fn of(base: &Url) -> Self {
        let real = base
            .host_str()
            .is_some_and(|host| host.ends_with(API_DOMAIN));
        if real {
            Self::KakaoPay
        } else {
            Self::Beside(base.origin().ascii_serialization())
        }
    }

    fn allow(&self, url: &Url) -> bool {
        match self {
            Self::KakaoPay => {
                let host = url.host_str().unwrap_or_default();
                url.scheme() == "https"
                    && WINDOW_DOMAINS.iter().any(|domain| host.ends_with(domain))
            }
            Self::Beside(origin) => url.origin().ascii_serialization() == *origin,
        }
    }

    fn origins(&self) -> Vec<String> {
        match self {
            Self::KakaoPay => WINDOW_DOMAINS
                .iter()
                .map(|domain| format!("https://*{domain}"))
                .collect(),
            Self::Beside(origin) => vec![origin.clone()],
        }
    }
}

impl KakaoPay {
    /// An adapter that calls nobody yet.
    ///
    /// # Errors
    /// [`KakaoPayConfigError`] when the address, the shop's code, the secret or a time cannot be used.
    pub fn new(config: KakaoPayConfig) -> Result<Self, KakaoPayConfigError> {
        let base = base_address(&config.base_url).ok_or(KakaoPayConfigError::BadUrl)?;
        let plain = config.cid.bytes().all(|b| b.is_ascii_alphanumeric());
        if !plain || config.cid.len() != CID_LENGTH {
            return Err(KakaoPayConfigError::BadCid);
        }
        let secret = config.secret_key.expose();
        if secret.is_empty() || !secret.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(KakaoPayConfigError::BadSecret);
        }
        long_enough([
            ("pg_timeout", config.pg_timeout),
            ("connect_timeout", config.connect_timeout),
            ("inquiry_timeout", config.inquiry_timeout),
        ])?;
        let shorter = config.pg_timeout.min(config.inquiry_timeout);
        let connect = connect_limit(config.connect_timeout, shorter);
        Ok(Self {
            windows: Windows::of(&base),
            client: Client::new(base, &config.secret_key, connect)?,
            name: config.name,
            capabilities: Capabilities {
                idempotency: None,
                inquiry_by_order: false,
                opens_by_call: true,
                confirm_window: config.confirm_window,
                partial_cancel: true,
                platform_timeout: Some(PLATFORM_TIMEOUT),
                webhooks: &[],
                deposits: false,
            },
            cid: config.cid,
            pg_timeout: config.pg_timeout,
            inquiry_timeout: config.inquiry_timeout,
        })
    }

    /// Asks for the order.
    async fn order(&self, named: Named<'_>) -> InquiryOutcome {
        let meter = Meter::start(&self.name, Operation::Inquire);
        let body = OrderBody {
            cid: named.cid,
            tid: named.tid.as_str(),
        };
        let heard = self
            .client
            .post(Call::Order, &body, self.inquiry_timeout)
            .await;
        let outcome = outcome::looked_up(named, heard);
        meter.end(meter::inquiry_label(&outcome));
        outcome
    }

    async fn approve(&self, call: &ConfirmCall, named: Named<'_>) -> ConfirmOutcome {
        let order = &call.gateway_order_id;
        let until = Instant::now() + self.pg_timeout.to_duration();
        let body = ApproveBody {
            cid: named.cid,
            tid: named.tid.as_str(),
            partner_order_id: order.as_str(),
            partner_user_id: &partner_user_id(order),
            pg_token: call.payment_key.as_str(),
            payload: payload_of_approve(order),
            total_amount: call.amount.get(),
        };
        let heard = self
            .client
            .post(Call::Approve, &body, self.pg_timeout)
            .await;
        match outcome::approved(named, call.amount, heard) {
            Approved::Ended(outcome) => outcome,
            Approved::Refused(decline, told) => {
                // Within the time of the confirm itself, whose slot is held; without an answer it stays unknown.
                let asked = tokio::time::timeout_at(until, self.order(named)).await;
                let asked = asked.unwrap_or_else(|_| {
                    InquiryOutcome::NoAnswer(exchange::unheard(Lost::TimedOut))
                });
                outcome::refused(decline, told, call.amount, asked)
            }
        }
    }

    /// How much to give back, of how much: asked for first where the caller does not know what is left.
    async fn to_give_back(
        &self,
        call: &CancelCall,
        named: Named<'_>,
    ) -> Result<GiveBack, CancelOutcome> {
        if let Some(balance) = call.balance {
            let amount = call.amount.unwrap_or(balance);
            return Ok(GiveBack { amount, balance });
        }
        match self.order(named).await {
            InquiryOutcome::Found(finding @ Finding::Charged { charged, canceled }, told) => {
                let balance = charged.amount.less(canceled);
                let amount = call.amount.unwrap_or(balance);
                if amount == Won::ZERO {
                    return Err(CancelOutcome::Found(finding, told));
                }
                Ok(GiveBack { amount, balance })
            }
            InquiryOutcome::Found(_, told)
            | InquiryOutcome::NoWord(told)
            | InquiryOutcome::NoAnswer(told) => Err(CancelOutcome::Unknown(told)),
        }
    }

    async fn give_back(&self, call: &CancelCall, named: Named<'_>) -> CancelOutcome {
        let give = match self.to_give_back(call, named).await {
            Ok(give) => give,
            Err(outcome) => return outcome,
        };
        let payload: String = call.reason.chars().take(PAYLOAD_LIMIT).collect();
        let body = CancelBody {
            cid: named.cid,
            tid: named.tid.as_str(),
            cancel_amount: give.amount.get(),
            cancel_tax_free_amount: 0,
            cancel_available_amount: give.balance.get(),
            payload: &payload,
        };
        let heard = self.client.post(Call::Cancel, &body, self.pg_timeout).await;
        outcome::canceled(named, give, heard)
    }

    /// The payment's names; without KakaoPay's own nothing can be asked of it.
    fn named<'a>(
        &'a self,
        handle: Option<&'a GatewayHandle>,
        order: Option<&'a GatewayOrderId>,
    ) -> Option<Named<'a>> {
        if handle.is_none() {
            let order = order.map(GatewayOrderId::as_str);
            tracing::error!(gateway = %self.name, order, "a payment without its tid");
        }
        Some(Named {
            cid: &self.cid,
            tid: handle?,
            order,
        })
    }
}

#[async_trait]
impl Gateway for KakaoPay {
    fn name(&self) -> &GatewayName {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open(&self, request: &WindowRequest) -> OpenOutcome {
        let urls = [&request.success_url, &request.close_url, &request.fail_url];
        if urls.iter().any(|url| url.len() > URL_LIMIT) {
            return OpenOutcome::Refused(Told {
                code: "return_address_too_long".to_owned(),
                alarm: true,
                ..Told::default()
            });
        }
        let meter = Meter::start(&self.name, Operation::Open);
        let item_name: String = request.order_name.chars().take(ITEM_NAME_LIMIT).collect();
        let body = ReadyBody {
            cid: &self.cid,
            partner_order_id: request.gateway_order_id.as_str(),
            partner_user_id: &partner_user_id(&request.gateway_order_id),
            item_name: &item_name,
            quantity: request.quantity,
            total_amount: request.amount.get(),
            tax_free_amount: 0,
            approval_url: &request.success_url,
            cancel_url: &request.close_url,
            fail_url: &request.fail_url,
        };
        let heard = self
            .client
            .post(Call::Ready, &body, self.inquiry_timeout)
            .await;
        let outcome = outcome::opened(heard, |url| self.windows.allow(url));
        meter.end(meter::open_label(&outcome));
        outcome
    }

    async fn confirm(&self, call: &ConfirmCall) -> ConfirmOutcome {
        let meter = Meter::start(&self.name, Operation::Confirm);
        let outcome = match self.named(call.handle.as_ref(), Some(&call.gateway_order_id)) {
            Some(named) => self.approve(call, named).await,
            // Nothing is sent; only an attempt that was opened can be claimed.
            None => ConfirmOutcome::NotSent(NotSent::Connect),
        };
        meter.end(outcome.label());
        outcome
    }

    async fn inquire(&self, payment: &PaymentNames) -> InquiryOutcome {
        match self.named(payment.handle.as_ref(), Some(&payment.gateway_order_id)) {
            Some(named) => self.order(named).await,
            None => InquiryOutcome::NoWord(without_tid()),
        }
    }

    async fn cancel(&self, call: &CancelCall) -> CancelOutcome {
        let meter = Meter::start(&self.name, Operation::Cancel);
        let outcome = match self.named(call.handle.as_ref(), None) {
            Some(named) => self.give_back(call, named).await,
            None => CancelOutcome::Unknown(without_tid()),
        };
        meter.end(meter::cancel_label(&outcome));
        outcome
    }

    fn window_origins(&self) -> Vec<String> {
        self.windows.origins()
    }
}

/// Who buys, as KakaoPay is told: it must be the same at ready and approve and be nobody's name, so it follows from the
/// gateway order id.
fn partner_user_id(order: &GatewayOrderId) -> String {
    format!("u_{order}")
}

/// What is kept beside the charge itself.
fn payload_of_approve(order: &GatewayOrderId) -> &str {
    order.as_str()
}

fn without_tid() -> Told {
    Told {
        code: "no_tid".to_owned(),
        alarm: true,
        ..Told::default()
    }
}

#[cfg(test)]
mod tests;
