//! What the checkout's live part starts from, and what it shows: the same values make the page without script and the
//! first picture in the browser.

use payment::checkout::Checkout;
use payment::id::{AttemptReference, GatewayName, GatewayOrderId, OrderId, PaymentKey};
use payment::money::Won;
use payment::time::{Millis, PageTimes};
use payment::view::{Stage, View};
use payment::wire::{OrderState, ProblemCode};
use serde::{Deserialize, Serialize};

use crate::data::Seller;
use crate::text::{Lang, Say};

/// The authenticated payment that a return address carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// The gateway's handle.
    pub payment_key: PaymentKey,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// The amount that the window named; the server compares it with the order.
    pub amount: Won,
    /// The unguessable part of the address.
    pub reference: AttemptReference,
}

/// Something worth saying beside the stage, where paying is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Notice {
    /// The shopper closed the payment window.
    WindowClosed,
    /// The payment window reported a refusal.
    WindowRefused,
    /// The gateway opened no payment window.
    WindowNotOpened,
    /// The server did not take a request.
    Refused(ProblemCode),
}

/// A text that is no [`Notice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotANotice;

impl std::fmt::Display for NotANotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an unknown notice")
    }
}

impl TryFrom<String> for Notice {
    type Error = NotANotice;

    fn try_from(name: String) -> Result<Self, NotANotice> {
        match name.as_str() {
            "window_closed" => Ok(Self::WindowClosed),
            "window_refused" => Ok(Self::WindowRefused),
            "window_not_opened" => Ok(Self::WindowNotOpened),
            code => ProblemCode::parse(code)
                .map(Self::Refused)
                .ok_or(NotANotice),
        }
    }
}

impl From<Notice> for String {
    fn from(notice: Notice) -> Self {
        match notice {
            Notice::WindowClosed => "window_closed".to_owned(),
            Notice::WindowRefused => "window_refused".to_owned(),
            Notice::WindowNotOpened => "window_not_opened".to_owned(),
            Notice::Refused(code) => code.as_str().to_owned(),
        }
    }
}

impl Notice {
    /// What the payment window's failure code means. Its message is never shown: anyone can write one.
    #[must_use]
    pub fn of_window(code: &str) -> Self {
        match code {
            "PAY_PROCESS_CANCELED" | "USER_CANCEL" => Self::WindowClosed,
            _ => Self::WindowRefused,
        }
    }

    /// What the end of a window means that a gateway opened by a call.
    #[must_use]
    pub fn of_end(how: &str) -> Self {
        match how {
            "closed" => Self::WindowClosed,
            _ => Self::WindowRefused,
        }
    }

    /// Its words, where it has any.
    #[must_use]
    pub const fn text(self, lang: Lang) -> Option<&'static str> {
        match self {
            Self::WindowClosed => Some(lang.say(Say::WindowClosed)),
            Self::WindowRefused => Some(lang.say(Say::WindowRefused)),
            Self::WindowNotOpened => Some(lang.say(Say::WindowNotOpened)),
            Self::Refused(code) => lang.refusal(code),
        }
    }
}

/// Everything that the checkout's live part needs; written into the page by the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed {
    /// The order.
    pub order_id: OrderId,
    /// The page's language.
    pub lang: Lang,
    /// What it costs.
    pub amount: Won,
    /// The page's times.
    pub times: PageTimes,
    /// The order's state when the page was made.
    pub state: OrderState,
    /// How long ago the open attempt was claimed.
    pub confirming_for: Option<Millis>,
    /// On a return page with a complete query: the authenticated payment.
    pub confirm: Option<Returned>,
    /// Whether the confirm begins by itself, as nothing was sent for this attempt yet.
    pub start: bool,
    /// What to say beside the stage.
    pub notice: Option<Notice>,
    /// Through which gateways it can be paid, first choice first.
    pub methods: Vec<GatewayName>,
    /// The attempt from whose window the shopper came back without having paid.
    pub left: Option<AttemptReference>,
    /// The shop that the order comes from; `None` is this one.
    pub seller: Option<Seller>,
}

impl Seed {
    /// The page machine as the server's state sets it up.
    #[must_use]
    pub fn checkout(&self) -> Checkout {
        Checkout::new(self.times, Some(self.state.clone()), self.confirming_for)
    }

    /// What the page shows before any script runs.
    #[must_use]
    pub fn screen(&self) -> Screen {
        let view = self.checkout().view();
        Screen {
            view,
            // Where no proof allows a button, no form may begin a payment either.
            complete: self.start && self.confirm.is_some() && view.button.is_some(),
            notice: self.notice,
        }
    }
}

/// What the checkout's live part shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// The machine's view.
    pub view: View,
    /// Whether an authenticated payment waits to be completed: shown until its confirm begins.
    pub complete: bool,
    /// What to say beside the stage.
    pub notice: Option<Notice>,
}

/// The stable name of a stage, as the page's `data-stage` carries it.
#[must_use]
pub const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Offer => "offer",
        Stage::Confirming => "confirming",
        Stage::Checking => "checking",
        Stage::Looking => "looking",
        Stage::Paid => "paid",
        Stage::PartiallyRefunded => "partially_refunded",
        Stage::Refunded => "refunded",
        Stage::ReturningMoney => "returning_money",
        Stage::AwaitingDeposit => "awaiting_deposit",
        Stage::ClosingAccount => "closing_account",
        Stage::ClosedUnpaid => "closed_unpaid",
        Stage::NotCharged(_) => "not_charged",
        Stage::StillUnknown => "still_unknown",
        Stage::Expired => "expired",
    }
}

/// Whether a stage waits for a result, so that the page must be shown anew by itself.
#[must_use]
pub const fn waits(stage: Stage) -> bool {
    match stage {
        Stage::Confirming
        | Stage::Checking
        | Stage::Looking
        | Stage::ReturningMoney
        | Stage::ClosingAccount => true,
        Stage::Offer
        | Stage::Paid
        | Stage::PartiallyRefunded
        | Stage::Refunded
        | Stage::AwaitingDeposit
        | Stage::ClosedUnpaid
        | Stage::NotCharged(_)
        | Stage::StillUnknown
        | Stage::Expired => false,
    }
}
