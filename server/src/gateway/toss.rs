//! Toss Payments: the adapter as a whole. What each answer means is in `outcome`, the wire's shapes in `wire`, the
//! exchange itself in `client`.

use async_trait::async_trait;
use payment::attempt::Finding;
use payment::id::{GatewayName, GatewayOrderId, PaymentKey};
use payment::reach::NotSent;
use payment::time::Millis;
use reqwest::{Method, Url};

use super::secret::Secret;
use super::{
    CancelCall, CancelOutcome, Capabilities, ConfirmCall, ConfirmOutcome, Gateway, InquiryOutcome,
    Told, WindowRequest,
};

mod client;
mod outcome;
mod wire;

use client::{Client, Exchange};

/// How long an inquiry may take: it moves no money, so it can simply be asked again.
pub const INQUIRY_TIMEOUT: Millis = Millis::from_secs(10);
/// Toss remembers an idempotency key for 15 days; a day is left as margin.
const KEY_LIFE: Millis = Millis::from_secs(14 * 24 * 3_600);

/// What the adapter needs to know.
#[derive(Debug, Clone)]
pub struct TossConfig {
    /// Its short name.
    pub name: GatewayName,
    /// The API's address.
    pub base_url: String,
    /// The payment window's address.
    pub window_url: String,
    /// The public key.
    pub client_key: String,
    /// The secret key.
    pub secret_key: Secret,
    /// From starting to connect to the last byte of the answer.
    pub pg_timeout: Millis,
    /// To connect; part of the above.
    pub connect_timeout: Millis,
    /// The same as `pg_timeout` for inquiries.
    pub inquiry_timeout: Millis,
    /// How long after authentication a confirm is accepted.
    pub confirm_window: Millis,
}

/// Settings the adapter cannot work with.
#[derive(Debug, thiserror::Error)]
pub enum TossConfigError {
    /// An address is none.
    #[error("{what} is not an http(s) address")]
    Address {
        /// Which.
        what: &'static str,
    },
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built")]
    Client(#[source] reqwest::Error),
}

/// The adapter.
pub struct Toss {
    name: GatewayName,
    capabilities: Capabilities,
    base: Url,
    window: Url,
    client_key: String,
    client: Client,
}

impl Toss {
    /// Sets the adapter up; nothing is sent.
    ///
    /// # Errors
    /// [`TossConfigError`] for settings it cannot work with.
    pub fn new(config: TossConfig) -> Result<Self, TossConfigError> {
        let capabilities = Capabilities {
            idempotency: Some(KEY_LIFE),
            inquiry_by_order: true,
            confirm_window: config.confirm_window,
            partial_cancel: true,
        };
        Ok(Self {
            base: address(&config.base_url, "the API's address")?,
            window: address(&config.window_url, "the payment window's address")?,
            client_key: config.client_key.clone(),
            client: Client::new(&config).map_err(TossConfigError::Client)?,
            name: config.name,
            capabilities,
        })
    }

    /// The address of a path whose segments are escaped.
    fn at(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty()
                .extend(["v1", "payments"])
                .extend(segments);
        }
        url
    }

    async fn get(&self, segments: &[&str]) -> Exchange {
        self.client
            .exchange("get", Method::GET, self.at(segments), None, None)
            .await
    }
}

fn address(text: &str, what: &'static str) -> Result<Url, TossConfigError> {
    let url = Url::parse(text).map_err(|_| TossConfigError::Address { what })?;
    let http = matches!(url.scheme(), "http" | "https") && url.has_host();
    if http {
        Ok(url)
    } else {
        Err(TossConfigError::Address { what })
    }
}

#[async_trait]
impl Gateway for Toss {
    fn name(&self) -> &GatewayName {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn confirm(&self, call: &ConfirmCall) -> ConfirmOutcome {
        let body = wire::confirm(call);
        let key = Some(&call.idempotency_key);
        match self
            .client
            .exchange(
                "confirm",
                Method::POST,
                self.at(&["confirm"]),
                Some(body),
                key,
            )
            .await
        {
            Exchange::NotSent(_) => ConfirmOutcome::NotSent(NotSent::Connect),
            Exchange::Lost(how, told) => ConfirmOutcome::Lost(how, told),
            Exchange::Answered(answer) => {
                outcome::confirm(&answer, &call.payment_key, &call.gateway_order_id)
            }
        }
    }

    async fn inquire(&self, key: Option<&PaymentKey>, order: &GatewayOrderId) -> InquiryOutcome {
        if let Some(key) = key {
            let by_key = read(self.get(&[key.as_str()]).await, Some(key), order);
            // "Not found" counts only when every way to ask agrees.
            if !matches!(by_key, InquiryOutcome::Found(Finding::NotFound { .. }, _)) {
                return by_key;
            }
        }
        read(self.get(&["orders", order.as_str()]).await, key, order)
    }

    async fn cancel(&self, call: &CancelCall) -> CancelOutcome {
        let body = wire::cancel(call);
        let url = self.at(&[call.payment_key.as_str(), "cancel"]);
        match self
            .client
            .exchange(
                "cancel",
                Method::POST,
                url,
                Some(body),
                Some(&call.idempotency_key),
            )
            .await
        {
            Exchange::NotSent(told) | Exchange::Lost(_, told) => CancelOutcome::Unknown(told),
            Exchange::Answered(answer) => outcome::cancel(&answer, call),
        }
    }

    fn window_url(&self, request: &WindowRequest) -> String {
        let mut url = self.window.clone();
        url.query_pairs_mut()
            .append_pair("gateway", self.name.as_str())
            .append_pair("clientKey", &self.client_key)
            .append_pair("orderId", request.gateway_order_id.as_str())
            .append_pair(
                "orderName",
                &request.order_name.chars().take(100).collect::<String>(),
            )
            .append_pair("amount", &request.amount.to_string())
            .append_pair("successUrl", &request.success_url)
            .append_pair("failUrl", &request.fail_url);
        url.into()
    }

    fn window_origin(&self) -> String {
        self.window.origin().ascii_serialization()
    }
}

fn read(exchange: Exchange, key: Option<&PaymentKey>, order: &GatewayOrderId) -> InquiryOutcome {
    match exchange {
        Exchange::NotSent(told) | Exchange::Lost(_, told) => InquiryOutcome::NoAnswer(told),
        Exchange::Answered(answer) => outcome::inquiry(&answer, key, order),
    }
}

impl Told {
    fn wire(word: &str) -> Self {
        Self {
            status: None,
            code: word.to_owned(),
            alarm: false,
        }
    }
}
