//! The catalogue of messages: every word that people read, in Korean and English.
//!
//! Each message is a variant, and each language answers all of them, so a missing translation does not compile.

mod console;
mod deposit;
mod en;
mod ko;
mod mail;
mod orders;
mod wait;
mod window;

use payment::id::GatewayName;
use payment::money::Won;
use payment::reach::{Decline, NotSent, Reason};
use payment::refund::{RefundStatus, RefusedFor};
use payment::time::Millis;
use payment::view::{PayAction, Stage};
use payment::wire::ProblemCode;
use serde::{Deserialize, Serialize};

pub use console::OpsWord;
pub use deposit::DepositWord;
pub use mail::Mail;
pub use orders::OrdersWord;
pub use window::WindowWord;

use crate::data::MomentKind;

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    /// Korean, the default.
    Ko,
    /// English.
    En,
}

/// A message of the pages that are only rendered by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The shop's name.
    Shop,
    /// What the shop is, in a few words.
    Tagline,
    /// The link that jumps over the header.
    SkipToContent,
    /// The name of the header's links.
    Navigation,
    /// Link to the catalogue.
    ToShop,
    /// Link to the order history.
    ToOrders,
    /// The other language's name, in that language.
    OtherLanguage,
    /// What the language button does, for screen readers.
    SwitchLanguage,
    /// The footer's promise.
    Promise,
    /// Heading of the catalogue.
    CatalogueTitle,
    /// First sentence of the catalogue.
    CatalogueLead,
    /// Label of the quantity field.
    Quantity,
    /// The button that makes an order.
    Order,
    /// Nothing is left of a product.
    SoldOut,
    /// The catalogue is empty.
    NothingOnSale,
    /// Heading of the order summary.
    SummaryTitle,
    /// The total.
    Total,
    /// The order's number.
    OrderNumber,
    /// When the order was made.
    OrderedAt,
    /// Of an order of another shop: whose it is.
    Seller,
    /// Title of the checkout page.
    CheckoutTitle,
    /// Heading of the order history.
    HistoryTitle,
    /// The history is empty.
    NoOrders,
    /// What to do about an empty history.
    NoOrdersLead,
    /// To newer orders.
    Newer,
    /// To older orders.
    Older,
    /// Name of the history's page links.
    Paging,
    /// Heading of one order's page.
    OrderTitle,
    /// Label of the order's status.
    Status,
    /// Heading of the timeline.
    TimelineTitle,
    /// Link to the checkout of an order that may be paid.
    GoPay,
    /// Link to the checkout of an order that is in doubt.
    SeeProgress,
    /// A note that the page keeps itself up to date.
    KeptUpToDate,
    /// Title of the page for an unknown address or order.
    MissingTitle,
    /// Its text.
    MissingBody,
    /// Title of the page when the data cannot be had.
    UnavailableTitle,
    /// Its text.
    UnavailableBody,
    /// Heading of the answer to a request that came when there were too many.
    BusyTitle,
    /// Its text.
    BusyBody,
    /// Heading of an order's refunds.
    RefundsTitle,
    /// Heading of the cancel form.
    CancelTitle,
    /// Its button.
    CancelButton,
    /// Over the button that cancels an order nobody has paid yet.
    CloseLead,
}

/// A message of the development panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanelWord {
    /// Its heading.
    Title,
    /// What it is.
    Lead,
    /// The fake gateway answers.
    Reachable,
    /// The fake gateway does not answer.
    Unreachable,
    /// The fake gateway is switched on.
    Up,
    /// The fake gateway is switched off.
    Down,
    /// Heading of the presets.
    Presets,
    /// Heading of the own values.
    Custom,
    /// Label of the delay.
    Delay,
    /// Label of the share of lost answers.
    Loss,
    /// Label of the share of slow answers.
    SlowTail,
    /// Label of the hang.
    Hang,
    /// Label of the share of declines.
    Decline,
    /// The button that applies them.
    Apply,
    /// Heading of the scenario in force.
    Scenario,
    /// Heading of the ledger's counters.
    Ledger,
    /// Heading of what the gateway knows about one order.
    Truth,
    /// The gateway knows nothing of the order.
    NoTruth,
}

/// A message of the checkout page beyond those of its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Heading while a payment is authenticated and its confirm has not begun.
    CompleteTitle,
    /// Its text.
    CompleteBody,
    /// Its button.
    CompleteButton,
    /// The shopper closed the payment window.
    WindowClosed,
    /// The payment window reported a refusal.
    WindowRefused,
    /// The gateway opened no payment window.
    WindowNotOpened,
    /// Name of the choice between ways to pay.
    Methods,
    /// The button that pays in another way than the one that was authenticated.
    PayOtherwise,
    /// Name of the progress bar.
    Progress,
    /// Before a step that is done, for screen readers.
    StepDone,
    /// Before a step that is still to come, for screen readers.
    StepNext,
    /// Link to the order history.
    ToOrders,
    /// Link to the order's page.
    ToOrder,
    /// Link to the catalogue.
    ToShop,
}

/// The reason that a gateway is given for a cancel which a shopper asked for; in the gateways' own language.
pub const SHOPPERS_REASON: &str = ko::SHOPPERS_REASON;

impl Lang {
    /// Both languages.
    pub const ALL: [Self; 2] = [Self::Ko, Self::En];

    /// The BCP 47 tag.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Ko => "ko",
            Self::En => "en",
        }
    }

    /// Reads a tag such as a cookie holds.
    #[must_use]
    pub fn parse(tag: &str) -> Option<Self> {
        match tag {
            "ko" => Some(Self::Ko),
            "en" => Some(Self::En),
            _ => None,
        }
    }

    /// The language that the switch leads to.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Ko => Self::En,
            Self::En => Self::Ko,
        }
    }

    /// A message of the server-rendered pages.
    #[must_use]
    pub const fn word(self, word: Word) -> &'static str {
        match self {
            Self::Ko => ko::word(word),
            Self::En => en::word(word),
        }
    }

    /// A message of the development panel.
    #[must_use]
    pub const fn panel(self, word: PanelWord) -> &'static str {
        match self {
            Self::Ko => ko::panel(word),
            Self::En => en::panel(word),
        }
    }

    /// A message of the checkout page.
    #[must_use]
    pub const fn say(self, message: Say) -> &'static str {
        match self {
            Self::Ko => ko::say(message),
            Self::En => en::say(message),
        }
    }

    /// What the page is about, in a few words: the heading of a stage.
    #[must_use]
    pub const fn heading(self, stage: Stage) -> &'static str {
        match self {
            Self::Ko => ko::heading(stage),
            Self::En => en::heading(stage),
        }
    }

    /// The status of an order, in one or two words: the same stages as on its checkout page.
    #[must_use]
    pub const fn status(self, stage: Stage) -> &'static str {
        match self {
            Self::Ko => ko::status(stage),
            Self::En => en::status(stage),
        }
    }

    /// What a stage means for the shopper; `step` is the time between two questions to the server.
    #[must_use]
    pub fn body(self, stage: Stage, step: Millis) -> String {
        match (stage, self) {
            (Stage::Checking, Self::Ko) => ko::checking(whole_seconds(step)),
            (Stage::Checking, Self::En) => en::checking(whole_seconds(step)),
            (Stage::NotCharged(reason), _) => self.not_charged(reason),
            (stage, Self::Ko) => ko::body(stage).to_owned(),
            (stage, Self::En) => en::body(stage).to_owned(),
        }
    }

    /// Why nothing was charged, and that nothing was.
    #[must_use]
    fn not_charged(self, reason: Option<Reason>) -> String {
        let returned = matches!(reason, Some(Reason::WrongAmount | Reason::LateSuccess));
        let (why, fact) = match (self, returned) {
            (Self::Ko, false) => (reason.map(ko::reason), ko::NOTHING_CHARGED),
            (Self::Ko, true) => (reason.map(ko::reason), ko::ALL_RETURNED),
            (Self::En, false) => (reason.map(en::reason), en::NOTHING_CHARGED),
            (Self::En, true) => (reason.map(en::reason), en::ALL_RETURNED),
        };
        match why {
            Some(why) => format!("{why} {fact}"),
            None => fact.to_owned(),
        }
    }

    /// The pay button, with what it costs.
    #[must_use]
    pub fn pay(self, action: PayAction, amount: Won) -> String {
        let amount = self.won(amount);
        match self {
            Self::Ko => format!("{amount} {}", ko::pay(action)),
            Self::En => format!("{} {amount}", en::pay(action)),
        }
    }

    /// A way to pay, by its gateway's name; one that has no words here goes by that.
    #[must_use]
    pub fn method(self, gateway: &GatewayName) -> String {
        let known = match self {
            Self::Ko => ko::method(gateway.as_str()),
            Self::En => en::method(gateway.as_str()),
        };
        known.map_or_else(|| gateway.to_string(), str::to_owned)
    }

    /// Why the server did not take a request, where the shopper can do something about it.
    #[must_use]
    pub const fn refusal(self, code: ProblemCode) -> Option<&'static str> {
        match self {
            Self::Ko => ko::refusal(code),
            Self::En => en::refusal(code),
        }
    }

    /// One entry of the timeline; of a lost answer, how long it was waited for.
    #[must_use]
    pub fn moment(self, what: MomentKind, waited: Option<Millis>) -> String {
        let waited = waited.map_or(0, |waited| waited.get() / 1_000);
        match (self, what) {
            (Self::Ko, MomentKind::AnswerLost) if waited > 0 => {
                format!("{waited}초 동안 은행의 답이 없어 결과를 확인하기 시작했어요")
            }
            (Self::En, MomentKind::AnswerLost) if waited > 0 => {
                format!("The bank did not answer in {waited} s; we began to find out the result")
            }
            (Self::Ko, what) => ko::moment(what).to_owned(),
            (Self::En, what) => en::moment(what).to_owned(),
        }
    }

    /// How far a refund has come.
    #[must_use]
    pub const fn refund(self, status: RefundStatus) -> &'static str {
        match self {
            Self::Ko => ko::refund(status),
            Self::En => en::refund(status),
        }
    }

    /// What cancelling an order gives back.
    #[must_use]
    pub fn cancel_lead(self, amount: Won) -> String {
        let amount = self.won(amount);
        match self {
            Self::Ko => ko::cancel_lead(&amount),
            Self::En => en::cancel_lead(&amount),
        }
    }

    /// An amount, as shops in this language write it.
    #[must_use]
    pub fn won(self, amount: Won) -> String {
        let digits = grouped(amount.get());
        match self {
            Self::Ko => format!("{digits}원"),
            Self::En => format!("₩{digits}"),
        }
    }

    /// A span of time as developers write it.
    #[must_use]
    pub fn millis(self, span: u64) -> String {
        format!("{span} ms")
    }

    /// How many of a product are left, when that is worth knowing.
    #[must_use]
    pub fn left(self, available: u64) -> Option<String> {
        let few = (1..=5).contains(&available);
        few.then(|| match self {
            Self::Ko => format!("{available}개 남았어요"),
            Self::En => format!("{available} left"),
        })
    }

    /// The link that leads back to another shop.
    #[must_use]
    pub fn back_to(self, shop: &str) -> String {
        match self {
            // Without a particle: which one is right depends on how the name is spoken.
            Self::Ko => format!("{shop} 쇼핑몰로 돌아가기"),
            Self::En => format!("Back to {shop}"),
        }
    }

    /// The title of a browser tab.
    #[must_use]
    pub fn title(self, page: &str) -> String {
        format!("{page} · {}", self.word(Word::Shop))
    }
}

/// Whole seconds for people; never zero.
fn whole_seconds(span: Millis) -> u64 {
    span.get().div_ceil(1_000).max(1)
}

/// A number with a comma after each three digits.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_each_language_writes_them() {
        let won = |amount| Won::new(amount).unwrap();
        assert_eq!(Lang::Ko.won(won(33_000)), "33,000원");
        assert_eq!(Lang::En.won(won(33_000)), "₩33,000");
        assert_eq!(Lang::En.won(won(999)), "₩999");
        assert_eq!(Lang::Ko.won(won(1_234_567)), "1,234,567원");
        assert_eq!(Lang::Ko.won(won(0)), "0원");
    }

    #[test]
    fn a_step_is_told_in_seconds() {
        assert!(
            Lang::En
                .body(Stage::Checking, Millis::from_secs(2))
                .contains("every 2 seconds")
        );
        assert!(
            Lang::Ko
                .body(Stage::Checking, Millis::new(500))
                .contains("1초마다")
        );
    }

    #[test]
    fn every_reason_says_that_nothing_was_charged() {
        for reason in Reason::all() {
            let stage = Stage::NotCharged(Some(reason));
            for (lang, facts) in [
                (Lang::Ko, [ko::NOTHING_CHARGED, ko::ALL_RETURNED]),
                (Lang::En, [en::NOTHING_CHARGED, en::ALL_RETURNED]),
            ] {
                let body = lang.body(stage, Millis::ZERO);
                let said = |fact: &&str| body.ends_with(*fact) && body.len() > fact.len();
                assert!(facts.iter().any(said), "{reason}");
            }
        }
    }
}
