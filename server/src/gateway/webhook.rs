//! Webhooks in the port's own terms: whether one may be its gateway's at all, which payment it names, and how far that can
//! be believed. How one looks on the wire, only the adapters know.

use payment::id::{GatewayOrderId, PaymentKey};
use reqwest::header::HeaderMap;

use super::secret::Secret;
use crate::clock::EpochMs;

/// A webhook that has just come, before anything of it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its bytes as they came: what is signed is these, and no reading of them.
    pub body: &'a [u8],
    /// When it came.
    pub at: EpochMs,
}

impl Incoming<'_> {
    /// One header's text; `None` when it is missing or no text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Whether a webhook is taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Its gateway may have sent it; where its webhooks are signed, it has.
    Taken {
        /// The sender's own id of the transmission, the same in each repeat, where it has one.
        transmission: Option<String>,
        /// The headers to keep beside the body.
        kept: &'static [&'static str],
    },
    /// Its signature is missing, not its own or too old: nothing of it is stored.
    Forged(&'static str),
}

impl Admission {
    /// Of a gateway that marks nothing.
    pub const PLAIN: Self = Self::Taken {
        transmission: None,
        kept: &["content-type"],
    };
}

/// What a webhook speaks of. What it says of a payment's state is not looked at: the gateway is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which payment, by whatever names it.
    pub subject: Subject,
    /// What it shows for its truth.
    pub shows: Shows,
}

/// A payment as a webhook names it; at least one name is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// By its key.
    pub payment_key: Option<PaymentKey>,
    /// By the order id that the gateway sees.
    pub gateway_order_id: Option<GatewayOrderId>,
}

/// What a webhook shows for its truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shows {
    /// Nothing: anybody can have written it.
    Nothing,
    /// This secret, or none where one is due: to be compared with the one that came with the confirm's answer.
    Secret(Option<Secret>),
    /// A signature, which was checked when it was taken in.
    Signature,
}
