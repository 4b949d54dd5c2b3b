//! Stripe's rules for a payment that a hosted session opens: who may call, what creating a session, a capture, a look-up, a
//! cancel and a refund do.

pub(super) mod book;
pub(crate) mod codes;
mod form;
mod window;
pub(super) mod wire;

use std::collections::BTreeMap;

use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::plan::Plan;
use super::{Answer, Call, Operation, Target};
use crate::idempotency::Identity;
use crate::ledger::Ledger;
use crate::scenario::{BodyFault, Scenario};
use book::{Book, Intent, NewSession, Status};
use form::Form;
pub(crate) use window::View;

/// Added to a charge that is booked with a wrong amount.
const WRONG_BY_WON: u64 = 1_000;
/// What a decline without a code says.
pub(super) const DECLINE: &str = "card_declined";
/// Stripe's least charge is worth half a dollar; in won that moves with the rate, and is not documented as a number.
const LEAST_WON: u64 = 100;
/// From this version on a session makes its payment only when it is confirmed.
const DEFERS: &str = "2022-08-01";
/// From this version on a payment does not list its charges.
const LATEST_CHARGE: &str = "2022-11-15";
/// A session lives from 30 minutes to 24 hours.
const SESSION_MS: (u64, u64) = (1_800_000, 86_400_000);

/// A merchant of Stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeMerchant {
    /// Its secret key.
    pub secret_key: String,
    /// What its webhooks are signed with.
    pub webhook_secret: String,
}

impl Default for StripeMerchant {
    fn default() -> Self {
        Self {
            secret_key: "sk_test_fake".to_owned(),
            webhook_secret: "whsec_fake".to_owned(),
        }
    }
}

/// The `Stripe-Signature` of a body that is sent at this Unix second.
pub fn stripe_signature(secret: &str, at_s: u64, body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(format!("{at_s}.").as_bytes());
    mac.update(body);
    let signed = mac.finalize().into_bytes();
    let hex: String = signed.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at_s},v1={hex}")
}

/// What a call on Stripe's wire asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripeCall {
    /// Opens a payment; its page is served below this base URL.
    CreateSession {
        /// Without a slash at its end.
        base: String,
    },
    /// Charges what was authorised.
    Capture(String),
    /// Tells about a payment.
    Retrieve(String),
    /// Ends a payment that was not charged.
    Cancel(String),
    /// Gives back all or a part.
    Refund,
    /// The shopper does something in the window.
    Page {
        /// Names the payment to its page.
        page: String,
        /// What.
        step: StripeStep,
    },
}

/// What a shopper does in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripeStep {
    /// Opens it.
    Show,
    /// Authorises the payment.
    Pay,
    /// Goes back to the shop as if it had been authorised.
    Forge,
    /// Tries a card that is refused: the window stays.
    Refuse,
    /// Goes back to the shop.
    Close,
}

impl StripeCall {
    /// Which operation it belongs to.
    pub fn operation(&self) -> Operation {
        match self {
            Self::CreateSession { .. } => Operation::Ready,
            Self::Capture(_) => Operation::Confirm,
            Self::Retrieve(_) => Operation::Get,
            Self::Cancel(_) | Self::Refund => Operation::Cancel,
            Self::Page { .. } => Operation::Window,
        }
    }

    fn path(&self) -> String {
        match self {
            Self::CreateSession { .. } => "/v1/checkout/sessions".to_owned(),
            Self::Capture(id) => format!("/v1/payment_intents/{id}/capture"),
            Self::Retrieve(id) => format!("/v1/payment_intents/{id}"),
            Self::Cancel(id) => format!("/v1/payment_intents/{id}/cancel"),
            Self::Refund => "/v1/refunds".to_owned(),
            Self::Page { .. } => String::new(),
        }
    }
}

fn asked(call: &Call) -> Option<&StripeCall> {
    match &call.target {
        Target::Stripe(asked) => Some(asked),
        _ => None,
    }
}

/// The payment that a call captures.
pub(super) fn captured(call: &Call) -> Option<&str> {
    match asked(call)? {
        StripeCall::Capture(id) => Some(id),
        _ => None,
    }
}

/// Checks the headers; gives the identity a POST with an idempotency key has, or the answer of a refusal.
pub(super) fn admit(
    call: &Call,
    merchant: &StripeMerchant,
) -> Result<Option<Identity>, Box<Answer>> {
    let asked = match asked(call) {
        None | Some(StripeCall::Page { .. }) => return Ok(None),
        Some(asked) => asked,
    };
    let api_key = api_key(call.authorization.as_deref());
    if api_key.as_deref() != Some(merchant.secret_key.as_str()) {
        return Err(Box::new(codes::unauthorized()));
    }
    if matches!(asked, StripeCall::Retrieve(_)) {
        return Ok(None);
    }
    let key = call.idempotency_key.as_deref();
    if key.is_some_and(|key| key.chars().count() > 255) {
        let told = codes::plain("idempotency_key", "at most 255 characters");
        return Err(Box::new(told));
    }
    // One key names one request of the whole account: its address and its parameters are compared.
    Ok(key.map(|key| Identity {
        key: key.to_owned(),
        api_key: merchant.secret_key.clone(),
        method: "POST",
        url: String::new(),
    }))
}

fn api_key(authorization: Option<&str>) -> Option<String> {
    let (scheme, word) = authorization?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(word.trim().to_owned());
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(word.trim());
    let decoded = String::from_utf8(decoded.ok()?).ok()?;
    let (key, _password) = decoded.split_once(':')?;
    scheme.eq_ignore_ascii_case("basic").then(|| key.to_owned())
}

/// What two requests under one key must have in common.
pub(super) fn print(call: &Call) -> Option<Vec<u8>> {
    let path = asked(call)?.path();
    Some([path.as_bytes(), b"?", &call.body].concat())
}

/// Does what a call asks for and books it.
pub(super) fn perform(
    (book, ledger): (&mut Book, &mut Ledger),
    scenario: &Scenario,
    (call, plan): (&Call, &Plan),
    now_ms: u64,
) -> Answer {
    let mut desk = Desk {
        book,
        ledger,
        scenario,
        call,
        plan,
        now_ms,
    };
    let done = match asked(call) {
        None => return codes::error("resource_missing"),
        Some(StripeCall::CreateSession { base }) => desk.create(base),
        Some(StripeCall::Capture(id)) => desk.capture(id),
        Some(StripeCall::Retrieve(id)) => desk.retrieve(id),
        Some(StripeCall::Cancel(id)) => desk.cancel(id),
        Some(StripeCall::Refund) => desk.refund(),
        Some(StripeCall::Page { page, step }) => desk.page(page, *step),
    };
    done.unwrap_or_else(|answer| *answer)
}

/// Authorises the latest session of an order.
pub(super) fn authorise(
    book: &mut Book,
    order: &str,
    amount: u64,
    now_ms: u64,
) -> Result<String, String> {
    let id = book.latest_of(order);
    let intent = id.as_deref().and_then(|id| book.intent(id));
    let intent = intent.ok_or_else(|| format!("no session of order {order} was made"))?;
    if intent.session_status != book::SessionStatus::Open {
        let status = intent.session_status.name();
        return Err(format!("the latest session of order {order} is {status}"));
    }
    if intent.made.amount != amount {
        let won = intent.made.amount;
        return Err(format!(
            "the latest session of order {order} is for {won} won, not {amount}"
        ));
    }
    let (id, session) = (intent.id.clone(), intent.session.clone());
    book.authorise(&id, now_ms);
    Ok(session)
}

/// One call at work.
struct Desk<'a> {
    book: &'a mut Book,
    ledger: &'a mut Ledger,
    scenario: &'a Scenario,
    call: &'a Call,
    plan: &'a Plan,
    now_ms: u64,
}

type Done = Result<Answer, Box<Answer>>;

fn refused<T>(code: &str) -> Result<T, Box<Answer>> {
    Err(Box::new(codes::error(code)))
}

fn told(value: &Value) -> Answer {
    Answer::json(200, value.to_string())
}

impl Desk<'_> {
    /// Whether the caller's version is older than this one. Without the header it is the account's, which is a new one.
    fn is_before(&self, version: &str) -> bool {
        let given = self.call.version.as_deref();
        given.is_some_and(|given| given < version)
    }

    fn intent(&self, id: &str) -> Result<&Intent, Box<Answer>> {
        let missing = || Box::new(codes::error("resource_missing"));
        self.book.intent(id).ok_or_else(missing)
    }

    fn shown(&self, id: &str) -> Result<Value, Box<Answer>> {
        Ok(wire::intent(
            self.intent(id)?,
            self.is_before(LATEST_CHARGE),
        ))
    }

    /// When a session ends: at its own time, else as late as may be.
    fn expiry(&self, form: &Form) -> Result<u64, Box<Answer>> {
        let (least, most) = SESSION_MS;
        match form.number("expires_at")? {
            None => Ok(self.now_ms + most),
            Some(at_s) => {
                let ms = at_s.saturating_mul(1_000);
                // Whole seconds, so the bounds are too.
                let from = (self.now_ms + least) / 1_000 * 1_000;
                if !(from..=self.now_ms + most).contains(&ms) {
                    return Err(Box::new(codes::plain("expires_at", "not a value of it")));
                }
                Ok(ms)
            }
        }
    }

    fn create(&mut self, base: &str) -> Done {
        let price = "line_items[0][price_data]";
        let unit = format!("{price}[unit_amount]");
        let form = Form::read(
            &self.call.body,
            &[
                "mode",
                "success_url",
                "cancel_url",
                "client_reference_id",
                "expires_at",
                "locale",
                "payment_method_types[]",
                "line_items[0][quantity]",
                &format!("{price}[currency]"),
                &unit,
                &format!("{price}[product_data][name]"),
                "metadata[*]",
                "payment_intent_data[capture_method]",
                "payment_intent_data[metadata][*]",
            ],
        )?;
        let invalid = |param: &str| Box::new(codes::plain(param, "not a value of it"));
        if form.text("mode")? != "payment" {
            return Err(invalid("mode"));
        }
        if form.text(&format!("{price}[currency]"))? != "krw" {
            return Err(invalid("currency"));
        }
        let quantity = form.number("line_items[0][quantity]")?.unwrap_or(1);
        let each = form.number(&unit)?.ok_or_else(|| invalid(&unit))?;
        let amount = each.saturating_mul(quantity);
        if amount < LEAST_WON {
            return refused("amount_too_small");
        }
        if amount > 99_999_999 {
            return refused("amount_too_large");
        }
        let manual = match form.given("payment_intent_data[capture_method]") {
            Some("manual") => true,
            None | Some("automatic" | "automatic_async") => false,
            Some(_) => return Err(invalid("payment_intent_data[capture_method]")),
        };
        for name in ["success_url", "cancel_url"] {
            let url = form
                .given(name)
                .map(|url| url.replace("{CHECKOUT_SESSION_ID}", "x"));
            if url.is_some_and(|url| !is_web(&url)) {
                return refused("url_invalid");
            }
        }
        let expires_ms = self.expiry(&form)?;
        let made = NewSession {
            reference: form.given("client_reference_id").map(str::to_owned),
            name: form
                .text(&format!("{price}[product_data][name]"))?
                .to_owned(),
            amount,
            manual,
            metadata: form
                .below("payment_intent_data[metadata]")
                .into_iter()
                .collect(),
            success_url: form.text("success_url")?.to_owned(),
            cancel_url: form.given("cancel_url").map(str::to_owned),
            expires_ms,
        };
        let id = self.book.open(made, self.now_ms);
        let names_intent = self.is_before(DEFERS);
        Ok(told(&wire::session(self.intent(&id)?, names_intent, base)))
    }

    fn capture(&mut self, id: &str) -> Done {
        let form = Form::read(
            &self.call.body,
            &["amount_to_capture", "metadata[*]", "expand[]"],
        )?;
        let shown = self.shown(id)?;
        let intent = self.intent(id)?;
        if intent.status != Status::RequiresCapture {
            let code = "payment_intent_unexpected_state";
            return Err(Box::new(codes::about(code, &shown)));
        }
        let authorised = intent.made.amount;
        let won = form.number("amount_to_capture")?.unwrap_or(authorised);
        if won > authorised {
            return refused("amount_too_large");
        }
        if won < LEAST_WON {
            return refused("amount_too_small");
        }
        if let Some(code) = &self.plan.decline {
            if codes::ends_the_authorisation(code) {
                self.book.fail(id, code);
            }
            return Err(Box::new(codes::about(code, &self.shown(id)?)));
        }
        let wrong = self.plan.body == Some(BodyFault::WrongAmount);
        self.charge(id, won + if wrong { WRONG_BY_WON } else { 0 });
        Ok(told(&self.shown(id)?))
    }

    fn charge(&mut self, id: &str, won: u64) {
        self.book.charge(id, won, self.now_ms);
        let order = self.book.order_of(id).unwrap_or_default();
        let key = self.call.idempotency_key.as_deref();
        self.ledger.charged(&order, key, won);
    }

    fn retrieve(&self, id: &str) -> Done {
        let intent = self.intent(id)?;
        let hidden = intent
            .booked_ms
            .is_some_and(|at| self.now_ms < at.saturating_add(self.scenario.not_found_for_ms));
        if hidden {
            return refused("resource_missing");
        }
        Ok(told(&self.shown(id)?))
    }

    fn cancel(&mut self, id: &str) -> Done {
        Form::read(&self.call.body, &["cancellation_reason", "expand[]"])?;
        let shown = self.shown(id)?;
        // The payment of an open session ends with that, not by itself.
        if self.intent(id)?.status != Status::RequiresCapture {
            let code = "payment_intent_unexpected_state";
            return Err(Box::new(codes::about(code, &shown)));
        }
        self.book.end(id, self.now_ms);
        Ok(told(&self.shown(id)?))
    }

    fn refund(&mut self) -> Done {
        let known = [
            "payment_intent",
            "amount",
            "reason",
            "metadata[*]",
            "expand[]",
        ];
        let form = Form::read(&self.call.body, &known)?;
        let id = form.text("payment_intent")?.to_owned();
        let intent = self.intent(&id)?;
        let charge = intent.charge.clone();
        if intent.status != Status::Succeeded || charge.is_none() {
            let why = "This PaymentIntent does not have a successful charge to refund.";
            return Err(Box::new(codes::plain("payment_intent", why)));
        }
        let left = intent.received - intent.refunded();
        if left == 0 {
            return refused("charge_already_refunded");
        }
        let amount = form.number("amount")?.unwrap_or(left);
        if amount == 0 {
            return Err(Box::new(codes::parameter(
                "parameter_invalid_integer",
                "amount",
            )));
        }
        if amount > left {
            let why = "Refund amount is greater than unrefunded amount on charge";
            return Err(Box::new(codes::plain("amount", why)));
        }
        if let Some(code) = &self.plan.decline {
            return refused(code);
        }
        let metadata: BTreeMap<_, _> = form.below("metadata").into_iter().collect();
        let status = self.scenario.stripe.refund_status.name();
        let refund = self
            .book
            .refund(&id, (amount, status), metadata, self.now_ms);
        let order = self.book.order_of(&id).unwrap_or_default();
        self.ledger.canceled(&order, amount, amount == left);
        let intent = self.intent(&id)?;
        let expands = form.given("expand[]") == Some("charge")
            || form
                .below("expand")
                .iter()
                .any(|(_, what)| what == "charge");
        let shown = if expands {
            wire::charge(intent, self.is_before(LATEST_CHARGE))
        } else {
            Value::from(charge)
        };
        let booked = intent.refunds.iter().find(|one| one.id == refund);
        let missing = || Box::new(codes::error("resource_missing"));
        Ok(told(&wire::refund(
            intent,
            booked.ok_or_else(missing)?,
            shown,
        )))
    }
}

fn is_web(url: &str) -> bool {
    reqwest::Url::parse(url)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}
