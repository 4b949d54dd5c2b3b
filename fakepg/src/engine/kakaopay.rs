//! KakaoPay's rules for online single payments: who may call, what `ready`, `approve`, `order` and
//! `cancel` do. There is no idempotency key, no look-up by order and no webhook.

pub(super) mod book;
pub(crate) mod codes;
mod fields;
mod window;
mod wire;

use super::plan::Plan;
use super::{Answer, Call, Operation, Target};
use crate::ledger::Ledger;
use crate::scenario::{
    BodyFault, DeclineLeaves, ExpiredOrder, KakaoPaySwitches, PgToken, Scenario,
};
use book::{Amount, Book, Payment, Status};
use codes::Code;
use fields::Fields;
pub(crate) use window::View;

/// Added to a charge that is booked with a wrong amount.
const WRONG_BY_WON: u64 = 1_000;

/// What a decline without a code says.
pub(super) const DECLINE: &str = "-780";

/// A merchant of KakaoPay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merchant {
    /// Its contract; the test contract is `TC0ONETIME`.
    pub cid: String,
    /// Its secret key.
    pub secret_key: String,
    /// The contract's secret, where it has one.
    pub cid_secret: Option<String>,
}

impl Default for Merchant {
    fn default() -> Self {
        Self {
            cid: "TC0ONETIME".to_owned(),
            secret_key: "DEV_fake".to_owned(),
            cid_secret: None,
        }
    }
}

/// What a call on KakaoPay's wire asks for; names and amounts are in its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KakaoPayCall {
    /// Opens a payment; its pages are served below this base URL.
    Ready {
        /// Without a slash at its end.
        base: String,
    },
    /// Charges an authenticated payment.
    Approve,
    /// Tells about a payment.
    Order,
    /// Gives back all or a part.
    Cancel,
    /// The shopper does something in the window.
    Page {
        /// Names the payment to its pages.
        page: String,
        /// What.
        step: PageStep,
    },
}

impl KakaoPayCall {
    /// Which operation it belongs to.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Ready { .. } => Operation::Ready,
            Self::Approve => Operation::Confirm,
            Self::Order => Operation::Get,
            Self::Cancel => Operation::Cancel,
            Self::Page { .. } => Operation::Window,
        }
    }
}

/// What a shopper does in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStep {
    /// Opens it.
    Show,
    /// Authenticates, with the method `CARD` or `MONEY`.
    Pay(String),
    /// Goes back to the shop with a made-up token, without authenticating.
    Forge,
    /// Fails to authenticate.
    Refuse,
    /// Closes it.
    Close,
    /// Waits until the payment is over.
    Expire,
}

/// What a call says about itself, readable before it is judged.
pub(super) fn name_in(body: &[u8], name: &str) -> Option<String> {
    fields::name_in(body, name)
}

/// Checks the headers; gives the code to refuse with.
pub(super) fn admit(
    book: &Book,
    call: &Call,
    merchant: &Merchant,
    switches: &KakaoPaySwitches,
) -> Result<(), Code> {
    let Target::KakaoPay(asked) = &call.target else {
        return Ok(());
    };
    if matches!(asked, KakaoPayCall::Page { .. }) {
        return Ok(());
    }
    let authorization = call.authorization.as_deref();
    let key = authorization
        .ok_or_else(|| Code::bare(-400))?
        .split_once(' ')
        .filter(|(scheme, _)| matches!(*scheme, "SECRET_KEY" | "DEV_SECRET_KEY"))
        .map(|(_, key)| key.trim());
    if key != Some(merchant.secret_key.as_str()) {
        return Err(Code::bare(-401));
    }
    if matches!(asked, KakaoPayCall::Approve | KakaoPayCall::Cancel) {
        let tid = name_in(&call.body, "tid");
        let payment = tid.as_deref().and_then(|tid| book.payment(tid));
        if payment.is_some_and(Payment::is_contended) {
            return Err(read(&switches.concurrent_code));
        }
    }
    Ok(())
}

/// An error answer with a code that a scenario names.
pub(super) fn coded(code: &str, switches: &KakaoPaySwitches) -> Answer {
    codes::error(&read(code), switches)
}

/// An error answer with a code and a status of the scenario's choice; a code of another wire is an
/// internal error here.
pub(super) fn coded_with(status: u16, code: &str) -> Answer {
    codes::error_with(status, &read(code), None)
}

fn read(code: &str) -> Code {
    code.parse().unwrap_or_else(|_| Code::bare(-500))
}

/// One call while it is being done.
struct Desk<'a> {
    book: &'a mut Book,
    ledger: &'a mut Ledger,
    scenario: &'a Scenario,
    merchant: &'a Merchant,
    call: &'a Call,
    plan: &'a Plan,
    now_ms: u64,
}

/// Why a call is refused.
#[derive(Debug)]
enum Refusal {
    /// With a code of the tables.
    Code(Code),
    /// Its fields are wrong.
    Invalid(String),
}

impl From<i32> for Refusal {
    fn from(number: i32) -> Self {
        Self::Code(Code::bare(number))
    }
}

/// Does what a call asks for and books it.
pub(super) fn perform(
    books: (&mut Book, &mut Ledger),
    scenario: &Scenario,
    merchant: &Merchant,
    (call, plan): (&Call, &Plan),
    now_ms: u64,
) -> Answer {
    let (book, ledger) = books;
    let mut desk = Desk {
        book,
        ledger,
        scenario,
        merchant,
        call,
        plan,
        now_ms,
    };
    let done = match &call.target {
        Target::KakaoPay(KakaoPayCall::Ready { base }) => desk.ready(base),
        Target::KakaoPay(KakaoPayCall::Approve) => desk.approve(),
        Target::KakaoPay(KakaoPayCall::Order) => desk.order(),
        Target::KakaoPay(KakaoPayCall::Cancel) => desk.cancel(),
        Target::KakaoPay(KakaoPayCall::Page { page, step }) => desk.page(page, step),
        _ => Err((-404).into()),
    };
    done.unwrap_or_else(|refusal| match refusal {
        Refusal::Code(code) => codes::error(&code, &scenario.kakaopay),
        Refusal::Invalid(why) => {
            let code = read(&scenario.kakaopay.invalid_request_code);
            let status = codes::error(&code, &scenario.kakaopay).status;
            codes::error_with(status, &code, Some(&why))
        }
    })
}

/// Makes an authenticated payment of the latest `ready` of an order, and gives its token.
pub(super) fn authenticate(book: &mut Book, order: &str, amount: u64) -> Result<String, String> {
    let latest = book.latest_of(order);
    let payment = latest.as_deref().and_then(|tid| book.payment(tid));
    let payment = payment.ok_or_else(|| {
        format!("no payment of order {order} was made ready: call /online/v1/payment/ready first")
    })?;
    let tid = payment.tid.clone();
    if payment.expired || !payment.status.is_open() {
        let status = if payment.expired {
            "expired"
        } else {
            payment.status.name()
        };
        return Err(format!(
            "the latest payment of order {order} is {status}: make another one ready"
        ));
    }
    if payment.amount.total != amount {
        return Err(format!(
            "the latest payment of order {order} was made ready for {} won, not {amount}",
            payment.amount.total
        ));
    }
    Ok(book.authenticate(&tid, None))
}

/// Lets `order` show a status, whatever the truth is, for the latest payment of an order.
pub(super) fn show(book: &mut Book, order: &str, status: Option<String>) -> bool {
    let latest = book.latest_of(order);
    if let Some(tid) = &latest {
        book.show(tid, status);
    }
    latest.is_some()
}

impl Desk<'_> {
    /// Reads the body's fields and checks the contract.
    fn fields(&mut self, expected: &[fields::Field]) -> Result<Fields, Refusal> {
        let read = Fields::read(&self.call.body, expected).map_err(Refusal::Invalid)?;
        for name in read.unknown(expected) {
            tracing::warn!(%name, "KakaoPay knows no such field");
            self.ledger.unknown_field(self.call.gateway, name);
        }
        if read.text("cid") != self.merchant.cid {
            return Err((-731).into());
        }
        let secret = self.merchant.cid_secret.as_deref();
        if secret.is_some() && read.given("cid_secret") != secret {
            return Err((-733).into());
        }
        Ok(read)
    }

    fn switches(&self) -> &KakaoPaySwitches {
        &self.scenario.kakaopay
    }

    fn payment(&self, tid: &str) -> Result<&Payment, Refusal> {
        self.book.payment(tid).ok_or_else(|| (-721).into())
    }

    /// What the scenario makes of a call that could be done.
    fn declined(&self) -> Result<(), Refusal> {
        match &self.plan.decline {
            Some(code) => Err(Refusal::Code(read(code))),
            None => Ok(()),
        }
    }

    fn ready(&mut self, base: &str) -> Result<Answer, Refusal> {
        let asked = self.fields(fields::READY)?;
        let (total, tax_free) = (asked.won("total_amount"), asked.won("tax_free_amount"));
        if tax_free > total {
            return Err((-722).into());
        }
        let usual = (total - tax_free + 5) / 11;
        let vat = asked.number("vat_amount").unwrap_or(usual);
        if tax_free + vat > total {
            return Err((-722).into());
        }
        self.declined()?;
        let amount = Amount {
            total,
            tax_free,
            vat,
            green_deposit: asked.won("green_deposit"),
        };
        let tid = self.book.ready(&asked, amount, self.now_ms);
        let payment = self.payment(&tid)?;
        Ok(Answer::json(
            200,
            wire::ready(payment, base, self.switches()),
        ))
    }

    fn approve(&mut self) -> Result<Answer, Refusal> {
        let asked = self.fields(fields::APPROVE)?;
        let tid = asked.text("tid").to_owned();
        let payment = self.payment(&tid)?;
        if payment.order_id != asked.text("partner_order_id") {
            return Err((-706).into());
        }
        if payment.user_id != asked.text("partner_user_id") {
            return Err((-707).into());
        }
        match payment.status {
            Status::Success | Status::PartCanceled | Status::Canceled => return Err((-702).into()),
            Status::FailAuth | Status::Quit | Status::Failed => return Err((-783).into()),
            _ if payment.expired => return Err((-723).into()),
            Status::Ready | Status::OpenPayment | Status::SelectMethod => {
                return Err((-701).into());
            }
            Status::AuthPassword => {}
        }
        let spent = payment.token_used && self.switches().pg_token == PgToken::Once;
        if spent || payment.token.as_deref() != asked.given("pg_token") {
            return Err((-708).into());
        }
        if asked
            .number("total_amount")
            .is_some_and(|amount| amount != payment.amount.total)
        {
            return Err((-725).into());
        }
        self.book.use_token(&tid);
        self.declined().inspect_err(|refusal| {
            let ends = matches!(refusal, Refusal::Code(code) if code.ends_the_payment());
            if ends && self.scenario.kakaopay.decline_leaves == DeclineLeaves::Failed {
                self.book.fail(&tid, self.now_ms);
            }
        })?;
        let wrong = self.plan.body == Some(BodyFault::WrongAmount);
        let more = if wrong { WRONG_BY_WON } else { 0 };
        self.book
            .charge(&tid, more, asked.given("payload"), self.now_ms);
        let payment = self.book.payment(&tid).ok_or(-721)?;
        let key = self.call.idempotency_key.as_deref();
        self.ledger
            .charged(&payment.order_id, key, payment.amount.total);
        Ok(Answer::json(200, wire::approved(payment, self.switches())))
    }

    fn order(&mut self) -> Result<Answer, Refusal> {
        let asked = self.fields(fields::ORDER)?;
        let payment = self.payment(asked.text("tid"))?;
        let since = |at_ms: u64, millis: u64| self.now_ms < at_ms.saturating_add(millis);
        let switches = self.switches();
        if let Some((at_ms, before)) = payment.booked {
            if since(at_ms, self.scenario.not_found_for_ms) {
                return Err((-721).into());
            }
            if since(at_ms, switches.stale_for_ms) && payment.shown.is_none() {
                let told = wire::order_before(payment, before.name(), switches);
                return Ok(Answer::json(200, told));
            }
        }
        let over = payment.expired && payment.status.is_open();
        let status = match switches.expired_order {
            ExpiredOrder::Refused if over => return Err((-723).into()),
            ExpiredOrder::FailPayment if over => Status::Failed,
            _ => payment.status,
        };
        let shown = payment.shown.as_deref().unwrap_or(status.name());
        Ok(Answer::json(200, wire::order(payment, shown, switches)))
    }

    fn cancel(&mut self) -> Result<Answer, Refusal> {
        let asked = self.fields(fields::CANCEL)?;
        let tid = asked.text("tid").to_owned();
        let payment = self.payment(&tid)?;
        match payment.status {
            Status::Success | Status::PartCanceled => {}
            Status::Canceled => {
                return Err(Refusal::Code(read(&self.switches().cancel_again_code)));
            }
            _ => return Err((-784).into()),
        }
        let (won, tax_free) = (
            asked.won("cancel_amount"),
            asked.won("cancel_tax_free_amount"),
        );
        let left = payment.available();
        if won > payment.amount.total {
            return Err((-711).into());
        }
        // The balance which the caller expects is a lock: another balance means another cancel.
        let expected = asked.number("cancel_available_amount");
        if won > left.total || expected.is_some_and(|expected| expected != left.total) {
            return Err((-710).into());
        }
        if tax_free > won.min(left.tax_free) {
            return Err((-722).into());
        }
        // A deposit for a cup is given back with the whole, never by parts.
        if payment.amount.green_deposit > 0 && won < payment.amount.total {
            return Err((-784).into());
        }
        let whole = won == left.total;
        let usual = if whole {
            left.vat
        } else {
            (won - tax_free + 5) / 11
        };
        let amount = Amount {
            total: won,
            tax_free,
            vat: asked
                .number("cancel_vat_amount")
                .unwrap_or(usual)
                .min(left.vat),
            green_deposit: payment.amount.green_deposit,
        };
        let order = payment.order_id.clone();
        self.declined()?;
        let payload = asked.given("payload");
        let nothing_left = self.book.cancel(&tid, amount, payload, self.now_ms);
        self.ledger.canceled(&order, won, nothing_left);
        let payment = self.payment(&tid)?;
        Ok(Answer::json(200, wire::canceled(payment, self.switches())))
    }
}
