//! Every payment that a `ready` made, and how each moves from one status to the next.

use std::collections::{BTreeSet, HashMap};

use super::fields::Fields;
use crate::engine::books::scatter;
use crate::ledger::{Ledger, PaymentEntry};

/// Status of a payment, as far as this gateway moves one by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    OpenPayment,
    SelectMethod,
    AuthPassword,
    Success,
    PartCanceled,
    Canceled,
    FailAuth,
    Quit,
    Failed,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::OpenPayment => "OPEN_PAYMENT",
            Self::SelectMethod => "SELECT_METHOD",
            Self::AuthPassword => "AUTH_PASSWORD",
            Self::Success => "SUCCESS_PAYMENT",
            Self::PartCanceled => "PART_CANCEL_PAYMENT",
            Self::Canceled => "CANCEL_PAYMENT",
            Self::FailAuth => "FAIL_AUTH_PASSWORD",
            Self::Quit => "QUIT_PAYMENT",
            Self::Failed => "FAIL_PAYMENT",
        }
    }

    /// Neither charged nor ended.
    pub(super) fn is_open(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::OpenPayment | Self::SelectMethod | Self::AuthPassword
        )
    }
}

/// How the shopper pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Method {
    #[default]
    Card,
    Money,
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Card => "CARD",
            Self::Money => "MONEY",
        }
    }
}

/// Won, divided as KakaoPay does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) total: u64,
    pub(super) tax_free: u64,
    pub(super) vat: u64,
    pub(super) green_deposit: u64,
}

impl Amount {
    /// The sum of two.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            tax_free: self.tax_free + other.tax_free,
            vat: self.vat + other.vat,
            green_deposit: self.green_deposit + other.green_deposit,
        }
    }

    /// What is left of this one.
    pub(super) fn less(self, other: Self) -> Self {
        Self {
            total: self.total.saturating_sub(other.total),
            tax_free: self.tax_free.saturating_sub(other.tax_free),
            vat: self.vat.saturating_sub(other.vat),
            green_deposit: self.green_deposit.saturating_sub(other.green_deposit),
        }
    }
}

/// A booked approval or cancel.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) aid: String,
    pub(super) is_cancel: bool,
    pub(super) amount: Amount,
    pub(super) at_ms: u64,
    pub(super) payload: Option<String>,
}

/// One payment.
#[derive(Clone, Debug)]
pub(super) struct Payment {
    pub(super) tid: String,
    /// Names its pages, so that a browser never sees the tid.
    pub(super) page: String,
    pub(super) serial: u64,
    pub(super) cid: String,
    pub(super) order_id: String,
    pub(super) user_id: String,
    pub(super) item_name: String,
    pub(super) item_code: Option<String>,
    pub(super) quantity: u64,
    pub(super) approval_url: String,
    pub(super) cancel_url: String,
    pub(super) fail_url: String,
    pub(super) install_month: u64,
    /// The only method that the shop allows.
    pub(super) only: Option<Method>,
    pub(super) method: Method,
    /// What was asked for, then what was charged.
    pub(super) amount: Amount,
    pub(super) status: Status,
    /// The token of the latest authentication.
    pub(super) token: Option<String>,
    /// Whether an approve with that token came as far as the payment method.
    pub(super) token_used: bool,
    pub(super) ready_ms: u64,
    pub(super) approved_ms: Option<u64>,
    /// When the last approval, refusal or cancel was booked, and the status before it.
    pub(super) booked: Option<(u64, Status)>,
    pub(super) expired: bool,
    pub(super) actions: Vec<Action>,
    /// Shown by `order` in place of the status.
    pub(super) shown: Option<String>,
    /// Approves and cancels that have begun and not ended.
    busy: u32,
}

impl Payment {
    /// What was given back so far.
    pub(super) fn canceled(&self) -> Amount {
        self.actions
            .iter()
            .filter(|action| action.is_cancel)
            .fold(Amount::default(), |sum, action| sum.plus(action.amount))
    }

    /// What can still be given back; nothing before the charge.
    pub(super) fn available(&self) -> Amount {
        if self.approved_ms.is_some() {
            self.amount.less(self.canceled())
        } else {
            Amount::default()
        }
    }

    fn last_canceled(&self) -> Option<&Action> {
        self.actions.iter().rfind(|action| action.is_cancel)
    }

    /// When it was last cancelled.
    pub(super) fn canceled_ms(&self) -> Option<u64> {
        self.last_canceled().map(|action| action.at_ms)
    }

    /// Whether another approve or cancel of it is running beside the one that asks.
    pub(super) fn is_contended(&self) -> bool {
        self.busy > 1
    }

    fn book(&mut self, status: Status, now_ms: u64) {
        self.booked = Some((now_ms, self.status));
        self.status = status;
    }
}

/// All payments.
#[derive(Debug, Default)]
pub(in crate::engine) struct Book {
    payments: HashMap<String, Payment>,
    by_order: HashMap<String, Vec<String>>,
    by_page: HashMap<String, String>,
    /// Open payments that nobody is approving, by time of their `ready`.
    waiting: BTreeSet<(u64, String)>,
    touched: BTreeSet<String>,
    /// Part of every name, so that names of two runs of the program differ.
    salt: u64,
    serial: u64,
}

impl Book {
    pub(in crate::engine) fn new(seed: u64, now_ms: u64) -> Self {
        Self {
            salt: scatter(now_ms ^ scatter(seed)),
            ..Self::default()
        }
    }

    /// A name nobody had before: a letter and 19 hexadecimal digits, as real ones are.
    pub(super) fn fresh(&mut self, letter: &str) -> String {
        self.serial += 1;
        let salt = self.salt & 0xfff_ffff_ffff;
        format!("{letter}{salt:011x}{:08x}", self.serial & 0xffff_ffff)
    }

    /// A token that nobody can guess from the names above.
    fn token(&mut self) -> String {
        self.serial += 1;
        let scattered = scatter(self.salt ^ scatter(self.serial));
        format!("{scattered:016x}{:04x}", self.serial & 0xffff)
    }

    /// A payment begins; gives its tid.
    pub(super) fn ready(&mut self, fields: &Fields, amount: Amount, now_ms: u64) -> String {
        let (tid, page) = (self.fresh("T"), self.token() + &self.token());
        let only = fields
            .given("payment_method_type")
            .map(|method| match method {
                "MONEY" => Method::Money,
                _ => Method::Card,
            });
        let owned = |name: &str| fields.text(name).to_owned();
        let payment = Payment {
            tid: tid.clone(),
            page: page.clone(),
            serial: self.serial,
            cid: owned("cid"),
            order_id: owned("partner_order_id"),
            user_id: owned("partner_user_id"),
            item_name: owned("item_name"),
            item_code: fields.given("item_code").map(str::to_owned),
            quantity: fields.won("quantity"),
            approval_url: owned("approval_url"),
            cancel_url: owned("cancel_url"),
            fail_url: owned("fail_url"),
            install_month: fields.won("install_month"),
            only,
            method: only.unwrap_or_default(),
            amount,
            status: Status::Ready,
            token: None,
            token_used: false,
            ready_ms: now_ms,
            approved_ms: None,
            booked: None,
            expired: false,
            actions: Vec::new(),
            shown: None,
            busy: 0,
        };
        let of_order = self.by_order.entry(payment.order_id.clone()).or_default();
        of_order.push(tid.clone());
        self.by_page.insert(page, tid.clone());
        self.waiting.insert((now_ms, tid.clone()));
        self.touched.insert(tid.clone());
        self.payments.insert(tid.clone(), payment);
        tid
    }

    pub(super) fn payment(&self, tid: &str) -> Option<&Payment> {
        self.payments.get(tid)
    }

    pub(super) fn tid_of_page(&self, page: &str) -> Option<String> {
        self.by_page.get(page).cloned()
    }

    /// The latest payment of an order.
    pub(super) fn latest_of(&self, order: &str) -> Option<String> {
        self.by_order.get(order)?.last().cloned()
    }

    /// An approve or cancel began; false for one that came too late to keep its payment alive.
    pub(in crate::engine) fn began(&mut self, tid: &str) -> bool {
        let Some(payment) = self.payments.get_mut(tid).filter(|one| !one.expired) else {
            return false;
        };
        payment.busy += 1;
        self.waiting
            .remove(&(payment.ready_ms, payment.tid.clone()));
        true
    }

    /// An approve or cancel ended, whatever came of it.
    pub(in crate::engine) fn ended(&mut self, tid: &str) {
        let Some(payment) = self.payments.get_mut(tid) else {
            return;
        };
        payment.busy = payment.busy.saturating_sub(1);
        if payment.busy == 0 && payment.status.is_open() {
            self.waiting.insert((payment.ready_ms, payment.tid.clone()));
        }
    }

    /// Expires what is open longer than a payment lives.
    pub(in crate::engine) fn expire(&mut self, life_ms: u64, now_ms: u64) {
        while let Some((at_ms, _)) = self.waiting.first()
            && at_ms.saturating_add(life_ms) <= now_ms
            && let Some((_, tid)) = self.waiting.pop_first()
        {
            self.end_early(&tid);
        }
    }

    /// Ends the life of an open payment now.
    pub(super) fn end_early(&mut self, tid: &str) {
        self.change(tid, |payment| payment.expired |= payment.status.is_open());
    }

    /// When the next payment expires.
    pub(in crate::engine) fn next_expiry(&self, life_ms: u64) -> Option<u64> {
        let first = self.waiting.first();
        first.map(|(at_ms, _)| at_ms.saturating_add(life_ms))
    }

    /// Moves an open payment on; one that is further keeps its place.
    pub(super) fn walk(&mut self, tid: &str, to: Status) {
        self.change(tid, |payment| {
            let before = matches!(payment.status, Status::Ready | Status::OpenPayment);
            if before || !to.is_open() {
                payment.status = to;
            }
        });
    }

    /// The shopper authenticated; gives the token of it.
    pub(super) fn authenticate(&mut self, tid: &str, method: Option<Method>) -> String {
        let token = self.token();
        self.change(tid, |payment| {
            payment.method = payment.only.or(method).unwrap_or(payment.method);
            payment.status = Status::AuthPassword;
            payment.token = Some(token.clone());
            payment.token_used = false;
        });
        token
    }

    /// An approve came as far as the payment method.
    pub(super) fn use_token(&mut self, tid: &str) {
        self.change(tid, |payment| payment.token_used = true);
    }

    /// Books a charge of so many won more than was asked for.
    pub(super) fn charge(&mut self, tid: &str, more: u64, payload: Option<&str>, now_ms: u64) {
        let aid = self.fresh("A");
        self.change(tid, |payment| {
            payment.amount.total += more;
            payment.book(Status::Success, now_ms);
            payment.approved_ms = Some(now_ms);
            payment.actions.push(Action {
                aid,
                is_cancel: false,
                amount: payment.amount,
                at_ms: now_ms,
                payload: payload.map(str::to_owned),
            });
        });
    }

    /// Books a refusal that ends the payment.
    pub(super) fn fail(&mut self, tid: &str, now_ms: u64) {
        self.change(tid, |payment| payment.book(Status::Failed, now_ms));
    }

    /// Books a cancel of at most what is left; true when nothing is left.
    pub(super) fn cancel(
        &mut self,
        tid: &str,
        amount: Amount,
        payload: Option<&str>,
        now_ms: u64,
    ) -> bool {
        let aid = self.fresh("A");
        let mut nothing_left = false;
        self.change(tid, |payment| {
            payment.actions.push(Action {
                aid,
                is_cancel: true,
                amount,
                at_ms: now_ms,
                payload: payload.map(str::to_owned),
            });
            nothing_left = payment.available().total == 0;
            let status = if nothing_left {
                Status::Canceled
            } else {
                Status::PartCanceled
            };
            payment.book(status, now_ms);
        });
        nothing_left
    }

    /// Shows a status in `order` whatever the truth is; none shows the truth again.
    pub(super) fn show(&mut self, tid: &str, status: Option<String>) {
        self.change(tid, |payment| payment.shown = status);
    }

    /// Adds the payments touched since the last reset to a ledger.
    pub(in crate::engine) fn write_to(&self, ledger: &mut Ledger) {
        for payment in self.touched.iter().filter_map(|tid| self.payments.get(tid)) {
            let balance = if payment.approved_ms.is_some() {
                payment.available().total
            } else {
                payment.amount.total
            };
            let status = if payment.expired && payment.status.is_open() {
                "EXPIRED"
            } else {
                payment.status.name()
            };
            let entry = PaymentEntry {
                order_id: payment.order_id.clone(),
                status: status.to_owned(),
                total_amount: payment.amount.total,
                balance_amount: balance,
            };
            ledger.payments.insert(payment.tid.clone(), entry);
        }
    }

    /// Starts the counting anew; payments stay.
    pub(in crate::engine) fn reset(&mut self) {
        self.touched.clear();
    }

    fn change(&mut self, tid: &str, change: impl FnOnce(&mut Payment)) {
        if let Some(payment) = self.payments.get_mut(tid) {
            change(payment);
            self.touched.insert(tid.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_twenty_characters_and_differ_between_runs() {
        let (mut one, mut other) = (
            Book::new(1, 1_790_903_700_000),
            Book::new(2, 1_790_903_700_000),
        );
        let names = [
            one.fresh("T"),
            one.fresh("T"),
            one.fresh("A"),
            other.fresh("T"),
            one.token(),
        ];
        for (place, name) in names.iter().enumerate() {
            assert_eq!(name.len(), 20, "{name}");
            assert!(!names[..place].contains(name), "{name}");
        }
    }
}
