//! What reaches the gateway and what it answers, free of any HTTP library.

use base64::Engine as _;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::kakaopay::KakaoPayCall;
use super::stripe::StripeCall;

/// The wires spoken.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Gateway {
    /// Toss Payments.
    #[default]
    Toss,
    /// KakaoPay.
    KakaoPay,
    /// Stripe.
    Stripe,
}

impl Gateway {
    /// Every wire.
    pub const ALL: [Self; 3] = [Self::Toss, Self::KakaoPay, Self::Stripe];

    /// Whose wire a path belongs to; everything but KakaoPay's and Stripe's is Toss's.
    pub fn of_path(path: &str) -> Self {
        let kakaopay = ["/online/", "/window/kakaopay/"];
        let stripe = [
            "/v1/checkout/",
            "/v1/payment_intents",
            "/v1/refunds",
            "/window/stripe/",
        ];
        let is_of = |starts: &[&str]| starts.iter().any(|start| path.starts_with(start));
        if is_of(&kakaopay) {
            Self::KakaoPay
        } else if is_of(&stripe) {
            Self::Stripe
        } else {
            Self::Toss
        }
    }

    /// The name used in paths and in the control API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Toss => "toss",
            Self::KakaoPay => "kakaopay",
            Self::Stripe => "stripe",
        }
    }
}

/// The kinds of call which faults can be aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// The call that opens a payment, at KakaoPay and Stripe.
    Ready,
    /// The approval call.
    Confirm,
    /// An inquiry.
    Get,
    /// A cancel, full or partial.
    Cancel,
    /// A request of the hosted window.
    Window,
}

impl Operation {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Ready,
        Self::Confirm,
        Self::Get,
        Self::Cancel,
        Self::Window,
    ];
}

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Approve the payment named in the body.
    Confirm,
    /// Tell about a payment by its key.
    Payment(String),
    /// Tell about a payment by its order.
    Order(String),
    /// Cancel a payment by its key.
    Cancel(String),
    /// Show the window (none), or authenticate a payment in it.
    Window(Option<NewPayment>),
    /// A call on KakaoPay's wire.
    KakaoPay(KakaoPayCall),
    /// A call on Stripe's wire.
    Stripe(StripeCall),
}

/// How the shopper pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Method {
    /// By card: charged when it is confirmed.
    #[default]
    Card,
    /// Into a virtual account: a confirm issues it, a deposit pays it.
    VirtualAccount,
}

/// A payment as the shopper authenticates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayment {
    /// Gateway order id.
    pub order_id: String,
    /// What the shopper buys.
    pub order_name: String,
    /// Won.
    pub amount: u64,
    /// By which method.
    pub method: Method,
}

/// One call: the parts of an HTTP request which the gateway looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which wire.
    pub gateway: Gateway,
    /// What is asked for.
    pub target: Target,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The `Idempotency-Key` header.
    pub idempotency_key: Option<String>,
    /// The `TossPayments-Test-Code` header.
    pub test_code: Option<String>,
    /// The `Stripe-Version` header.
    pub version: Option<String>,
    /// The body as it came.
    pub body: Bytes,
}

impl Call {
    /// A call without headers or body.
    pub fn new(gateway: Gateway, target: Target) -> Self {
        Self {
            gateway,
            target,
            authorization: None,
            idempotency_key: None,
            test_code: None,
            version: None,
            body: Bytes::new(),
        }
    }

    /// The same call with a merchant's key, as Toss wants it.
    #[must_use]
    pub fn authorized(mut self, secret_key: &str) -> Self {
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{secret_key}:"));
        self.authorization = Some(format!("Basic {encoded}"));
        self
    }

    /// Which operation it belongs to.
    pub fn operation(&self) -> Operation {
        match &self.target {
            Target::Confirm => Operation::Confirm,
            Target::Payment(_) | Target::Order(_) => Operation::Get,
            Target::Cancel(_) => Operation::Cancel,
            Target::Window(_) => Operation::Window,
            Target::KakaoPay(asked) => asked.operation(),
            Target::Stripe(asked) => asked.operation(),
        }
    }
}

/// One answer, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: &'static str,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body.
    pub body: Bytes,
    /// The `Retry-After` header, in seconds.
    pub retry_after_s: Option<u64>,
    /// Time between two bytes of the body; written at once when absent.
    pub drip_ms: Option<u64>,
    /// Trace id; "new, original" on a replay.
    pub trace: String,
    /// The idempotency key that is echoed.
    pub idempotency_key: Option<String>,
    /// Whether it was given before under the same key, where the gateway says so.
    pub replayed: bool,
    /// Whether nothing was executed, so that no key is bound to it.
    pub unbound: bool,
}

const JSON: &str = "application/json;charset=utf-8";
const HTML: &str = "text/html;charset=utf-8";

impl Answer {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: JSON,
            location: None,
            body: body.into(),
            retry_after_s: None,
            drip_ms: None,
            trace: String::new(),
            idempotency_key: None,
            replayed: false,
            unbound: false,
        }
    }

    /// The page of some proxy in front of the gateway.
    pub fn html(status: u16) -> Self {
        let page = format!("<!doctype html><title>{status}</title><h1>{status}</h1>");
        Self {
            content_type: HTML,
            ..Self::json(status, page)
        }
    }

    /// A redirect without a body.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self {
            location: Some(location.to_owned()),
            ..Self::json(status, "")
        }
    }
}
