//! Toss Payments. Must not know: orders, our own HTTP, the database, when to send again.

mod client;
mod outcome;
pub mod webhook;
mod wire;

use async_trait::async_trait;
use payment::id::{GatewayName, GatewayOrderId, PaymentKey};
use payment::time::Millis;
use reqwest::Url;

use super::exchange::{self, TooShort, base_address, connect_limit, long_enough};
use super::meter::{self, Meter, Operation};
use super::secret::Secret;
use super::webhook::{Admission, Incoming, Notice};
use super::{
    CancelCall, CancelOutcome, Capabilities, ConfirmCall, ConfirmOutcome, Gateway, InquiryOutcome,
    OpenOutcome, PaymentNames, Told, Window, WindowRequest, WindowScript,
};
use client::{Client, Post};
use outcome::LookedUp;
use wire::{AccountBody, CancelBody, ConfirmBody};

/// For how long a key may be used again. Toss keeps one for 15 days "counted from the day of first use"; the last day is
/// left out because it does not say when that day ends.
const IDEMPOTENCY: Millis = Millis::from_secs(14 * 24 * 3_600);
/// Toss's own script, version 2.
const SCRIPT: &str = "https://js.tosspayments.com/v2/standard";
/// Toss's limit of `cancelReason`, in characters.
const REASON_LIMIT: usize = 200;
/// Toss's limit of `orderName`, in characters.
const ORDER_NAME_LIMIT: usize = 100;

/// What is needed to speak to Toss Payments for one shop.
#[derive(Debug, Clone)]
pub struct TossConfig {
    /// The short name: a label, and the `gateway` in addresses.
    pub name: GatewayName,
    /// `https://api.tosspayments.com`, or a fake that speaks its wire.
    pub base_url: String,
    /// The payment window's page; `None` opens it by Toss's own script, on a page of ours.
    pub window_url: Option<String>,
    /// The public half of the shop's keys.
    pub client_key: String,
    /// The secret half.
    pub secret_key: Secret,
    /// The error that every call that changes something is to be answered with; the test environment does that.
    pub test_code: Option<String>,
    /// For a confirm or a cancel, from starting to connect to the last byte of the answer.
    pub pg_timeout: Millis,
    /// To connect; the smaller of the two counts.
    pub connect_timeout: Millis,
    /// For one look-up, likewise; see [`TossConfig::INQUIRY_TIMEOUT`].
    pub inquiry_timeout: Millis,
    /// How long after authentication a confirm is still accepted.
    pub confirm_window: Millis,
}

impl TossConfig {
    /// The inquiry timeout unless set: a look-up moves no money, so it need not wait as long as a confirm.
    pub const INQUIRY_TIMEOUT: Millis = Millis::from_secs(10);
}

/// Why a configuration cannot be used. Never holds the secret.
#[derive(Debug, thiserror::Error)]
pub enum TossConfigError {
    /// An address that cannot be called.
    #[error("{setting} must be an http or https address without query, fragment or user")]
    BadUrl {
        /// Which one.
        setting: &'static str,
    },
    /// The secret key is empty or holds characters that no key has.
    #[error("the secret key must be visible ASCII without a colon")]
    BadSecret,
    /// A time that would end every call before it begins.
    #[error(transparent)]
    TooShort(#[from] TooShort),
    /// The HTTP client could not be made.
    #[error("making the HTTP client for Toss Payments")]
    Client(#[source] reqwest::Error),
}

/// The adapter.
#[derive(Debug)]
pub struct Toss {
    name: GatewayName,
    capabilities: Capabilities,
    client: Client,
    window: Option<Url>,
    client_key: String,
    pg_timeout: Millis,
    inquiry_timeout: Millis,
}

impl Toss {
    /// An adapter that calls nobody yet.
    ///
    /// # Errors
    /// [`TossConfigError`] when an address, the secret or a time cannot be used.
    pub fn new(config: TossConfig) -> Result<Self, TossConfigError> {
        let base = address("base_url", &config.base_url)?;
        let window = config.window_url.as_deref();
        let window = window.map(|url| address("window_url", url)).transpose()?;
        let secret = config.secret_key.expose();
        // A colon would end the user name in basic authentication.
        if secret.is_empty() || !secret.bytes().all(|b| b.is_ascii_graphic() && b != b':') {
            return Err(TossConfigError::BadSecret);
        }
        long_enough([
            ("pg_timeout", config.pg_timeout),
            ("connect_timeout", config.connect_timeout),
            ("inquiry_timeout", config.inquiry_timeout),
        ])?;
        let connect = connect_limit(config.connect_timeout, config.pg_timeout);
        Ok(Self {
            client: Client::new(base, &config.secret_key, connect)?.answered(config.test_code),
            name: config.name,
            capabilities: Capabilities {
                idempotency: Some(IDEMPOTENCY),
                inquiry_by_order: true,
                opens_by_call: false,
                confirm_window: config.confirm_window,
                partial_cancel: true,
                platform_timeout: None,
                webhooks: &webhook::KINDS,
                deposits: true,
            },
            window,
            client_key: config.client_key,
            pg_timeout: config.pg_timeout,
            inquiry_timeout: config.inquiry_timeout,
        })
    }

    async fn look_up(
        &self,
        path: &[&str],
        key: Option<&PaymentKey>,
        order: &GatewayOrderId,
    ) -> LookedUp {
        match self.client.get(path, self.inquiry_timeout).await {
            Some(heard) => outcome::looked_up(key, order, heard),
            None => LookedUp::Absent(unaddressable()),
        }
    }

    async fn find(&self, key: Option<&PaymentKey>, order: &GatewayOrderId) -> InquiryOutcome {
        if let Some(key) = key {
            let path = ["v1", "payments", key.as_str()];
            match self.look_up(&path, Some(key), order).await {
                LookedUp::Settled(outcome) => return outcome,
                // Only both routes together prove that nothing is there.
                LookedUp::Absent(_) => {}
            }
        }
        let path = ["v1", "payments", "orders", order.as_str()];
        match self.look_up(&path, key, order).await {
            LookedUp::Settled(outcome) => outcome,
            LookedUp::Absent(told) => {
                let finding = payment::attempt::Finding::NotFound { settled: false };
                InquiryOutcome::Found(finding, told)
            }
        }
    }

    fn window_of(&self, request: &WindowRequest) -> String {
        let Some(window) = &self.window else {
            return request.page_url.clone();
        };
        let order_name = order_name(request);
        let mut url = window.clone();
        url.query_pairs_mut()
            .append_pair("gateway", self.name.as_str())
            .append_pair("clientKey", &self.client_key)
            .append_pair("orderId", request.gateway_order_id.as_str())
            .append_pair("orderName", &order_name)
            .append_pair("amount", &request.amount.to_string())
            .append_pair("successUrl", &request.success_url)
            .append_pair("failUrl", &request.fail_url);
        url.into()
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

    async fn open(&self, request: &WindowRequest) -> OpenOutcome {
        let url = self.window_of(request);
        OpenOutcome::Opened {
            window: Window {
                desktop: url.clone(),
                mobile: url,
            },
            handle: None,
        }
    }

    async fn confirm(&self, call: &ConfirmCall) -> ConfirmOutcome {
        let meter = Meter::start(&self.name, Operation::Confirm);
        let body = ConfirmBody {
            payment_key: call.payment_key.as_str(),
            order_id: call.gateway_order_id.as_str(),
            amount: call.amount.get(),
        };
        let post = Post {
            idempotency_key: &call.idempotency_key,
            body: &body,
        };
        let path = ["v1", "payments", "confirm"];
        let heard = self.client.post(&path, post, self.pg_timeout).await;
        // The path is fixed and the base was checked, so there always is an address; without one nothing was sent.
        let outcome = outcome::confirmed(call, heard.unwrap_or(exchange::Heard::NotConnected));
        meter.end(outcome.label());
        outcome
    }

    async fn inquire(&self, payment: &PaymentNames) -> InquiryOutcome {
        let meter = Meter::start(&self.name, Operation::Inquire);
        let key = payment.payment_key.as_ref();
        let outcome = self.find(key, &payment.gateway_order_id).await;
        meter.end(meter::inquiry_label(&outcome));
        outcome
    }

    async fn cancel(&self, call: &CancelCall) -> CancelOutcome {
        let meter = Meter::start(&self.name, Operation::Cancel);
        let reason: String = call.reason.chars().take(REASON_LIMIT).collect();
        let body = CancelBody {
            cancel_reason: &reason,
            cancel_amount: call.amount.map(payment::money::Won::get),
            refundable_amount: call.balance.map(payment::money::Won::get),
            refund_receive_account: call.account.as_ref().map(|account| AccountBody {
                bank: account.bank(),
                account_number: account.number(),
                holder_name: account.holder(),
            }),
        };
        let post = Post {
            idempotency_key: &call.idempotency_key,
            body: &body,
        };
        let path = ["v1", "payments", call.payment_key.as_str(), "cancel"];
        let outcome = match self.client.post(&path, post, self.pg_timeout).await {
            Some(heard) => outcome::canceled(call, heard),
            None => CancelOutcome::Unknown(unaddressable()),
        };
        meter.end(meter::cancel_label(&outcome));
        outcome
    }

    fn admit(&self, webhook: &Incoming<'_>) -> Admission {
        webhook::admit(webhook)
    }

    fn notice(&self, body: &[u8]) -> Option<Notice> {
        webhook::notice(body)
    }

    fn window_script(&self, request: &WindowRequest) -> Option<WindowScript> {
        self.window.is_none().then(|| WindowScript {
            src: SCRIPT,
            hosts: "https://*.tosspayments.com",
            client_key: self.client_key.clone(),
            order_name: order_name(request),
        })
    }

    fn window_origins(&self) -> Vec<String> {
        let window = self.window.iter();
        window
            .map(|url| url.origin().ascii_serialization())
            .collect()
    }
}

fn order_name(request: &WindowRequest) -> String {
    request.order_name.chars().take(ORDER_NAME_LIMIT).collect()
}

fn address(setting: &'static str, text: &str) -> Result<Url, TossConfigError> {
    base_address(text).ok_or(TossConfigError::BadUrl { setting })
}

/// A key that no address can name (`.`, `..`): Toss never made it.
fn unaddressable() -> Told {
    Told {
        code: "unaddressable_key".to_owned(),
        alarm: true,
        ..Told::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn config() -> TossConfig {
        TossConfig {
            name: GatewayName::parse("toss").unwrap(),
            base_url: "https://api.tosspayments.com".to_owned(),
            window_url: Some("http://127.0.0.1:3900/window".to_owned()),
            client_key: "test_ck_1".to_owned(),
            secret_key: Secret::new("test_sk_1"),
            test_code: None,
            pg_timeout: Millis::from_secs(60),
            connect_timeout: Millis::from_secs(3),
            inquiry_timeout: TossConfig::INQUIRY_TIMEOUT,
            confirm_window: Millis::from_secs(600),
        }
    }

    #[test]
    fn a_connect_always_ends_before_the_whole_call() {
        let limit = |connect, whole| connect_limit(Millis::new(connect), Millis::new(whole));
        assert_eq!(limit(3_000, 60_000), Duration::from_secs(3));
        assert_eq!(limit(60_000, 60_000), Duration::from_millis(59_900));
        assert_eq!(limit(3_000, 300), Duration::from_millis(285));
        assert_eq!(limit(10, 10), Duration::from_millis(8));
    }

    #[test]
    fn a_configuration_that_cannot_work_is_refused_and_no_error_or_debug_shows_the_secret() {
        let bad_url = |url: &str| TossConfig {
            base_url: url.to_owned(),
            ..config()
        };
        for broken in [
            bad_url("api.tosspayments.com"),
            bad_url("ftp://api.tosspayments.com"),
            bad_url("https://user:secret@api.tosspayments.com"),
            bad_url("https://api.tosspayments.com?a=1"),
            TossConfig {
                secret_key: Secret::new(""),
                ..config()
            },
            TossConfig {
                secret_key: Secret::new("test_sk:1"),
                ..config()
            },
            TossConfig {
                pg_timeout: Millis::new(9),
                ..config()
            },
        ] {
            assert!(!format!("{broken:?}").contains("test_sk"));
            let error = Toss::new(broken).unwrap_err();
            assert!(!error.to_string().contains("secret@"), "{error}");
        }
        let toss = Toss::new(config()).unwrap();
        assert!(!format!("{toss:?}").contains("test_sk"));
    }
}
