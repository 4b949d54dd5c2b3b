//! What the documentation leaves open about the real gateway: a switch for each, so that both readings can be tried.
//!
//! Those that have a name of their own elsewhere in the scenario are `bindServerErrors`, `unconfirmed`, `mismatchCode`,
//! `allowDuplicateOrder` and the readings of `deposits`.

use serde::{Deserialize, Serialize};

/// One reading of each open question; the default is the likelier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Uncertain {
    /// What a confirm of a charged payment is answered once the confirm window is over.
    pub repeat_after_window: RepeatAfterWindow,
    /// Which refusals end a payment, so that it cannot be confirmed again.
    pub after_refusal: AfterRefusal,
    /// The body of a 429.
    pub limited_body: LimitedBody,
    /// The `Retry-After` of a 429, in seconds; none when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    /// Whether a webhook keeps its transmission id over its resends.
    pub stable_transmission_id: bool,
    /// Whether any 2xx counts as received, not 200 alone.
    pub any_2xx_received: bool,
    /// Whether an order id may hold `=`.
    pub order_id_equals: bool,
    /// Whether the window sends the shopper back with `paymentType`.
    pub payment_type: bool,
    /// Whether a closed window sends the shopper back with `orderId`.
    pub order_id_on_close: bool,
    /// Whether `refundableAmount` is compared with the balance.
    pub refundable_amount: bool,
    /// Whether a cancel's entry has a `cancelStatus`.
    pub cancel_status: bool,
}

impl Default for Uncertain {
    fn default() -> Self {
        Self {
            repeat_after_window: RepeatAfterWindow::Processed,
            after_refusal: AfterRefusal::FinalWords,
            limited_body: LimitedBody::Json,
            retry_after_s: None,
            stable_transmission_id: true,
            any_2xx_received: false,
            order_id_equals: false,
            payment_type: false,
            order_id_on_close: false,
            refundable_amount: true,
            cancel_status: true,
        }
    }
}

/// What a confirm of a charged payment is answered once the confirm window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RepeatAfterWindow {
    /// `ALREADY_PROCESSED_PAYMENT` (default).
    Processed,
    /// `NOT_FOUND_PAYMENT_SESSION`.
    Session,
}

/// Which refusals end a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AfterRefusal {
    /// The issuer's last words (default).
    FinalWords,
    /// Every one, `PROVIDER_ERROR` too.
    Every,
    /// None: it can always be confirmed again.
    None,
}

/// The body of a 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LimitedBody {
    /// An error as any other (default).
    Json,
    /// Nothing.
    Empty,
    /// A page.
    Html,
}
