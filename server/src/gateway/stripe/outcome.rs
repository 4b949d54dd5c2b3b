//! What Stripe's answers mean. Pure: a call and what was heard in, an outcome out.
//!
//! What is not provably an end is unknown: unlisted words, unlisted pairs of status and word, unlisted status words, answers
//! about another payment, answers that contradict themselves, and every 5xx.

mod codes;
mod refund;

use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayOrderId};
use payment::money::{Currency, Money, Won};
use payment::reach::{Decline, Lost, NotSent};
use reqwest::Url;

use super::ORDER;
use super::wire::{Charge, ErrorWord, Intent, Session};
use crate::gateway::exchange::{Answer, Heard, alarming, redirected, told, unheard, word};
use crate::gateway::{ConfirmOutcome, InquiryOutcome, OpenOutcome, Told, Window};
use codes::CaptureClass;
use refund::reasons;
pub(super) use refund::refunded;

/// A payment as its names tell it apart from every other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The PaymentIntent's id.
    pub(super) intent: &'a GatewayHandle,
    /// Our order, which we wrote beside it.
    pub(super) order: &'a GatewayOrderId,
}

/// What a capture's exchange brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Captured {
    /// An end of the call.
    Ended(ConfirmOutcome),
    /// It was not executed; what that comes to, the payment's state tells.
    Refused(Refusal),
}

/// A capture that was not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Why, as a decline; `None` where only the payment's state says so.
    decline: Option<Decline>,
    told: Told,
}

impl Refusal {
    /// Whether it says by itself why nothing was charged.
    pub(super) const fn is_decline(&self) -> bool {
        self.decline.is_some()
    }
}

/// What a look-up brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LookedUp {
    pub(super) outcome: InquiryOutcome,
    /// Whether the payment is authorised or being worked on, so that it may still come to be charged.
    pub(super) chargeable: bool,
}

impl From<InquiryOutcome> for LookedUp {
    fn from(outcome: InquiryOutcome) -> Self {
        Self {
            outcome,
            chargeable: false,
        }
    }
}

/// What was read of an answer.
enum Read {
    /// A 200 with this body.
    Good(Vec<u8>),
    /// An error with its word.
    Error(ErrorWord),
    /// Something that says nothing. An undocumented status or a redirect alarms.
    Nothing(Lost, Told),
}

/// Reads an answer. A body that holds an error is an error whatever its status, and then the pair of both decides.
fn read(answer: &Answer) -> Read {
    let status = answer.status;
    if let Some(told) = redirected(status) {
        return Read::Nothing(Lost::Inconclusive, told);
    }
    let body = match &answer.body {
        Ok(body) => body,
        Err(lost) => return Read::Nothing(*lost, told(status, word(*lost))),
    };
    if let Some(error) = ErrorWord::parse(body) {
        return Read::Error(error);
    }
    if status == 200 {
        return Read::Good(body.clone());
    }
    Read::Nothing(Lost::Unreadable, told(status, word(Lost::Unreadable)))
}

/// What creating a session brought. Nothing can have been charged by it: a session that nobody was told of ends by itself.
pub(super) fn opened(heard: Heard, amount: Won, allowed: impl Fn(&Url) -> bool) -> OpenOutcome {
    let answer = match heard {
        Heard::NotConnected => return OpenOutcome::NoAnswer(not_connected()),
        Heard::Nothing(lost) => return OpenOutcome::NoAnswer(unheard(lost)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    let body = match read(&answer) {
        Read::Good(body) => body,
        Read::Error(error) => {
            let quiet = told(status, &error.told());
            let passes = status == 429 || status == 409 || status >= 500;
            return OpenOutcome::Refused(if passes { quiet } else { alarming(quiet) });
        }
        Read::Nothing(Lost::TimedOut, told) => return OpenOutcome::NoAnswer(told),
        Read::Nothing(_, told) => return OpenOutcome::Refused(told),
    };
    let unusable = |why| OpenOutcome::Refused(alarming(told(status, why)));
    let Some(session) = Session::parse(&body) else {
        return unusable(word(Lost::Unreadable));
    };
    // Without it nothing could ever be captured or asked about.
    let handle = session.payment_intent.as_deref();
    let Some(Ok(handle)) = handle.map(GatewayHandle::parse) else {
        return unusable("session_without_payment");
    };
    if session.total() != Some(amount) || currency(session.currency.as_deref()) != Currency::Krw {
        return unusable("session_of_another_amount");
    }
    // The pages' policy would let no form go anywhere else, so the shopper would press a button that does nothing.
    let url = session.url.unwrap_or_default();
    if !Url::parse(&url).is_ok_and(|url| allowed(&url)) {
        return unusable("window_elsewhere");
    }
    OpenOutcome::Opened {
        window: Window {
            desktop: url.clone(),
            mobile: url,
        },
        handle: Some(handle),
    }
}

/// What a capture's exchange means.
pub(super) fn captured(named: Named<'_>, amount: Won, heard: Heard) -> Captured {
    let ended = Captured::Ended;
    let lost = |how, told| ended(ConfirmOutcome::Lost(how, told));
    let answer = match heard {
        Heard::NotConnected => return ended(ConfirmOutcome::NotSent(NotSent::Connect)),
        Heard::Nothing(how) => return lost(how, unheard(how)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    let error = match read(&answer) {
        Read::Good(body) => return ended(captured_payment(named, amount, &body)),
        // Too many requests says all it says by its head.
        Read::Nothing(..) if status == 429 => {
            return ended(ConfirmOutcome::Refused(told(status, "too_many_requests")));
        }
        Read::Nothing(how, told) => return lost(how, told),
        Read::Error(error) => error,
    };
    let quiet = told(status, &error.told());
    let refused = |decline, told| Captured::Refused(Refusal { decline, told });
    match codes::class_of(codes::CAPTURE, status, &error.word) {
        Some(CaptureClass::Refused(class)) => refused(Some(class), quiet),
        Some(CaptureClass::Fault(class)) => refused(Some(class), alarming(quiet)),
        Some(CaptureClass::State) => refused(None, quiet),
        Some(CaptureClass::TooMany) => ended(ConfirmOutcome::Refused(quiet)),
        Some(CaptureClass::SetUp) => ended(ConfirmOutcome::Refused(alarming(quiet))),
        Some(CaptureClass::InProgress) => lost(Lost::InProgress, quiet),
        Some(CaptureClass::Ask) => lost(Lost::Inconclusive, quiet),
        None if status >= 500 => lost(Lost::Inconclusive, quiet),
        None => lost(Lost::Inconclusive, alarming(quiet)),
    }
}

fn captured_payment(named: Named<'_>, amount: Won, body: &[u8]) -> ConfirmOutcome {
    let contradicts = |what| ConfirmOutcome::Lost(Lost::Inconclusive, alarming(told(200, what)));
    let Some(intent) = Intent::parse(body) else {
        let told = alarming(told(200, word(Lost::Unreadable)));
        return ConfirmOutcome::Lost(Lost::Unreadable, told);
    };
    match said(&intent, named) {
        Ok(finding @ Finding::Charged { charged, .. }) => {
            let quiet = listing(&intent);
            let alarm = charged != Money::won(amount);
            ConfirmOutcome::Found(finding, Told { alarm, ..quiet })
        }
        Ok(_) => contradicts("capture_not_seen"),
        Err(contradiction) => contradicts(contradiction),
    }
}

/// What a capture that was not executed comes to after the payment was asked about.
pub(super) fn refused(refusal: Refusal, amount: Won, asked: LookedUp) -> ConfirmOutcome {
    let Refusal { decline, told } = refusal;
    let unsure = |more: &Told| {
        let alarm = told.alarm || more.alarm;
        ConfirmOutcome::Lost(
            Lost::Inconclusive,
            Told {
                alarm,
                ..told.clone()
            },
        )
    };
    match asked.outcome {
        InquiryOutcome::Found(finding @ Finding::Charged { charged, .. }, word) => {
            let alarm = word.alarm || charged != Money::won(amount);
            ConfirmOutcome::Found(finding, Told { alarm, ..word })
        }
        InquiryOutcome::Found(Finding::Lapsed | Finding::Declined(_), word) => {
            let decline = decline.unwrap_or(Decline::SessionExpired);
            let alarm = told.alarm || word.alarm;
            ConfirmOutcome::Found(Finding::Declined(decline), Told { alarm, ..told })
        }
        // It could be charged still. Where nothing was wrong with the capture but the payment's state, refusal and look-up
        // contradict each other.
        InquiryOutcome::Found(Finding::Pending { .. }, word) if asked.chargeable => {
            let alarm = word.alarm || decline.is_none();
            unsure(&Told { alarm, ..word })
        }
        InquiryOutcome::Found(Finding::Pending { .. }, word) => {
            let decline = decline.unwrap_or(Decline::AuthenticationFailed);
            let alarm = told.alarm || word.alarm;
            ConfirmOutcome::Found(Finding::Declined(decline), Told { alarm, ..told })
        }
        InquiryOutcome::Found(
            Finding::NotFound { .. } | Finding::AwaitingDeposit | Finding::Closed,
            word,
        )
        | InquiryOutcome::NoWord(word)
        | InquiryOutcome::NoAnswer(word) => unsure(&word),
    }
}

/// What a look-up's exchange means.
pub(super) fn looked_up(named: Named<'_>, heard: Heard) -> LookedUp {
    let answer = match heard {
        Heard::NotConnected => return InquiryOutcome::NoAnswer(not_connected()).into(),
        Heard::Nothing(lost) => return InquiryOutcome::NoAnswer(unheard(lost)).into(),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    let error = match read(&answer) {
        Read::Good(body) => return found(named, &body),
        Read::Nothing(Lost::Inconclusive, told) => return InquiryOutcome::NoWord(told).into(),
        Read::Nothing(_, told) if status == 429 => return InquiryOutcome::NoWord(told).into(),
        Read::Nothing(_, told) => return InquiryOutcome::NoAnswer(told).into(),
        Read::Error(error) => error,
    };
    let quiet = told(status, &error.told());
    let outcome = match (status, &*error.word) {
        // Stripe itself gave the name, so an operator must see that it has forgotten it.
        (404, "resource_missing") => {
            InquiryOutcome::Found(Finding::NotFound { settled: false }, alarming(quiet))
        }
        (429 | 500.., _) => InquiryOutcome::NoWord(quiet),
        // The rest says that something is wrong with us (key, permission), never "not charged".
        _ => InquiryOutcome::NoWord(alarming(quiet)),
    };
    outcome.into()
}

fn found(named: Named<'_>, body: &[u8]) -> LookedUp {
    let Some(intent) = Intent::parse(body) else {
        let told = told(200, word(Lost::Unreadable));
        return InquiryOutcome::NoAnswer(told).into();
    };
    match said(&intent, named) {
        Ok(finding) => LookedUp {
            chargeable: matches!(&*intent.status, AUTHORISED | "processing"),
            outcome: InquiryOutcome::Found(finding, listing(&intent)),
        },
        Err(contradiction) => InquiryOutcome::NoWord(alarming(told(200, contradiction))).into(),
    }
}

/// Whether an authorisation was ended, by the answer to the call that ends it. Anything else is asked about.
pub(super) fn ended(named: Named<'_>, heard: Heard) -> Option<InquiryOutcome> {
    let Heard::Answer(answer) = heard else {
        return None;
    };
    let Read::Good(body) = read(&answer) else {
        return None;
    };
    let intent = Intent::parse(&body)?;
    let over = said(&intent, named) == Ok(Finding::Lapsed);
    over.then(|| InquiryOutcome::Found(Finding::Lapsed, listing(&intent)))
}

/// The status of a payment that can be captured.
const AUTHORISED: &str = "requires_capture";

/// What a payment says of itself, or how it contradicts itself.
fn said(intent: &Intent, named: Named<'_>) -> Result<Finding, &'static str> {
    if intent.id != named.intent.as_str() {
        return Err("another_payment");
    }
    if intent.metadata.get(ORDER).map(String::as_str) != Some(named.order.as_str()) {
        return Err("another_order");
    }
    match intent.status.as_str() {
        "succeeded" => charged(intent),
        // A card that was refused in the window leads back to the first: the shopper may take another.
        "requires_payment_method"
        | "requires_confirmation"
        | "requires_action"
        | "processing"
        | AUTHORISED => Ok(Finding::Pending { settled: false }),
        "canceled" => Ok(Finding::Lapsed),
        _ => Err("unknown_status"),
    }
}

fn charged(intent: &Intent) -> Result<Finding, &'static str> {
    let charge = the_charge(intent).ok_or("charge_not_listed")?;
    let (Some(amount), Some(canceled)) = (intent.received(), charge.refunded()) else {
        return Err("charge_without_amounts");
    };
    if amount == Won::ZERO || canceled > amount {
        return Err("charge_beside_another_sum");
    }
    Ok(Finding::Charged {
        charged: Money {
            amount,
            currency: currency(intent.currency.as_deref()),
        },
        canceled,
    })
}

/// The one charge of a payment that was captured.
fn the_charge(intent: &Intent) -> Option<&Charge> {
    let charges = intent.charges.as_ref()?;
    let mut captured = charges.data.iter().filter(|charge| charge.captured);
    captured.next().filter(|_| captured.next().is_none())
}

/// Evidence of an answer about our payment, with the reasons of its refunds.
fn listing(intent: &Intent) -> Told {
    let charge = the_charge(intent);
    let canceled = charge.and_then(Charge::refunded);
    let both = charge.zip(canceled);
    Told {
        given_back: both.and_then(|(charge, canceled)| reasons(charge, canceled)),
        ..told(200, &intent.status)
    }
}

/// Stripe writes currencies in small letters.
fn currency(code: Option<&str>) -> Currency {
    Currency::of(&code.unwrap_or_default().to_ascii_uppercase())
}

fn not_connected() -> Told {
    Told {
        code: "not_connected".to_owned(),
        ..Told::default()
    }
}
