//! Every payment the gateway knows, and how each moves from one status to the next.

pub(super) mod cancels;
pub(super) mod deposits;

use std::collections::{BTreeSet, HashMap};

use super::{Gateway, Method, NewPayment};
use crate::ledger::{Ledger, PaymentEntry};
pub(super) use cancels::Cancel;
pub(super) use deposits::Account;

/// Status of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    WaitingForDeposit,
    Done,
    Canceled,
    PartialCanceled,
    Aborted,
    Expired,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InProgress => "IN_PROGRESS",
            Self::WaitingForDeposit => "WAITING_FOR_DEPOSIT",
            Self::Done => "DONE",
            Self::Canceled => "CANCELED",
            Self::PartialCanceled => "PARTIAL_CANCELED",
            Self::Aborted => "ABORTED",
            Self::Expired => "EXPIRED",
        }
    }
}

/// One payment.
#[derive(Clone, Debug)]
pub(super) struct Payment {
    pub(super) gateway: Gateway,
    pub(super) key: String,
    pub(super) serial: u64,
    pub(super) order_id: String,
    pub(super) order_name: String,
    /// What the shopper authenticated, then what was charged.
    pub(super) total: u64,
    pub(super) balance: u64,
    pub(super) status: Status,
    pub(super) authenticated_ms: u64,
    pub(super) approved_ms: Option<u64>,
    /// When an approval or refusal was booked.
    pub(super) booked_ms: Option<u64>,
    pub(super) last_transaction: Option<String>,
    pub(super) cancels: Vec<Cancel>,
    pub(super) failure: Option<(String, String)>,
    pub(super) method: Method,
    /// The virtual account, once it was issued.
    pub(super) account: Option<Account>,
    /// Confirms that have begun and not ended: while there are any, it does not expire.
    confirming: u32,
}

/// All payments and the ledger.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) ledger: Ledger,
    payments: HashMap<String, Payment>,
    by_order: HashMap<String, Vec<String>>,
    /// Unconfirmed payments nobody is confirming, by time of authentication.
    waiting: BTreeSet<(u64, String)>,
    /// Payments whose status changed and nobody was told yet.
    changed: Vec<String>,
    touched: BTreeSet<String>,
    /// Accounts that wait for their deposit, by due date.
    accounts: BTreeSet<(u64, String)>,
    /// Cancels that were accepted and have not ended: when, whose, and which of its cancels.
    under_way: BTreeSet<(u64, String, usize)>,
    /// Cancels that ended later than they were accepted, and nobody was told yet.
    ended_cancels: Vec<(String, usize)>,
    /// Part of every key, so that keys of two runs of the program differ.
    prefix: String,
    serial: u64,
}

impl Books {
    pub(super) fn new(seed: u64, now_ms: u64) -> Self {
        Self {
            ledger: Ledger::default(),
            payments: HashMap::new(),
            by_order: HashMap::new(),
            waiting: BTreeSet::new(),
            changed: Vec::new(),
            touched: BTreeSet::new(),
            accounts: BTreeSet::new(),
            under_way: BTreeSet::new(),
            ended_cancels: Vec::new(),
            prefix: format!("{now_ms:x}{:04x}", scatter(seed) & 0xffff),
            serial: 0,
        }
    }

    /// An id nobody had before.
    pub(super) fn fresh(&mut self, kind: &str) -> String {
        self.serial += 1;
        let tail = scatter(self.serial) & 0xff_ffff;
        format!("{kind}{}{:06}{tail:06x}", self.prefix, self.serial)
    }

    /// The shopper authenticated a payment.
    pub(super) fn authenticate(
        &mut self,
        gateway: Gateway,
        new: NewPayment,
        now_ms: u64,
    ) -> String {
        let key = self.fresh("tfake");
        self.by_order
            .entry(new.order_id.clone())
            .or_default()
            .push(key.clone());
        self.waiting.insert((now_ms, key.clone()));
        self.touched.insert(key.clone());
        let payment = Payment {
            gateway,
            key: key.clone(),
            serial: self.serial,
            order_id: new.order_id,
            order_name: new.order_name,
            total: new.amount,
            balance: new.amount,
            status: Status::InProgress,
            authenticated_ms: now_ms,
            approved_ms: None,
            booked_ms: None,
            last_transaction: None,
            cancels: Vec::new(),
            failure: None,
            method: new.method,
            account: None,
            confirming: 0,
        };
        self.payments.insert(key.clone(), payment);
        key
    }

    pub(super) fn payment(&self, key: &str) -> Option<&Payment> {
        self.payments.get(key)
    }

    /// The payment of an order: the charged one, else the latest.
    pub(super) fn of_order(&self, order: &str) -> Option<&Payment> {
        let keys = self.by_order.get(order)?;
        let payments = || keys.iter().filter_map(|key| self.payments.get(key));
        payments()
            .find(|payment| payment.approved_ms.is_some())
            .or_else(|| payments().find(|payment| payment.status == Status::WaitingForDeposit))
            .or_else(|| payments().next_back())
    }

    /// Whether another payment of the order holds the shopper's money.
    pub(super) fn charged_elsewhere(&self, order: &str, key: &str) -> bool {
        let keys = self
            .by_order
            .get(order)
            .map(Vec::as_slice)
            .unwrap_or_default();
        keys.iter()
            .filter(|other| *other != key)
            .filter_map(|other| self.payments.get(other))
            .any(|other| {
                let charged = matches!(other.status, Status::Done | Status::PartialCanceled);
                (charged && other.balance > 0) || other.status == Status::WaitingForDeposit
            })
    }

    /// A confirm began: from here the payment cannot expire.
    pub(super) fn confirm_began(&mut self, key: &str) -> bool {
        let Some(payment) = self.payments.get_mut(key) else {
            return false;
        };
        payment.confirming += 1;
        self.waiting
            .remove(&(payment.authenticated_ms, payment.key.clone()));
        true
    }

    /// A confirm ended, whatever came of it.
    pub(super) fn confirm_ended(&mut self, key: &str) {
        let Some(payment) = self.payments.get_mut(key) else {
            return;
        };
        payment.confirming = payment.confirming.saturating_sub(1);
        if payment.confirming == 0 && payment.status == Status::InProgress {
            self.waiting
                .insert((payment.authenticated_ms, payment.key.clone()));
        }
    }

    /// Expires what was authenticated longer ago than the window.
    pub(super) fn expire(&mut self, window_ms: u64, now_ms: u64) {
        while let Some((at_ms, _)) = self.waiting.first()
            && at_ms.saturating_add(window_ms) <= now_ms
            && let Some((_, key)) = self.waiting.pop_first()
        {
            let failure = (
                "EXPIRED_PAYMENT".to_owned(),
                "결제가 만료되었습니다.".to_owned(),
            );
            self.change(&key, |payment| {
                payment.status = Status::Expired;
                payment.failure = Some(failure);
            });
        }
    }

    /// When the next payment expires.
    pub(super) fn next_expiry(&self, window_ms: u64) -> Option<u64> {
        self.waiting
            .first()
            .map(|(at_ms, _)| at_ms.saturating_add(window_ms))
    }

    /// Books a charge of this many won.
    pub(super) fn charge(&mut self, key: &str, won: u64, idempotency: Option<&str>, now_ms: u64) {
        let transaction = self.fresh("txrd_a");
        let mut order = String::new();
        self.change(key, |payment| {
            payment.status = Status::Done;
            payment.total = won;
            payment.balance = won;
            payment.approved_ms = Some(now_ms);
            payment.booked_ms = Some(now_ms);
            payment.last_transaction = Some(transaction);
            order.clone_from(&payment.order_id);
        });
        self.ledger.charged(&order, idempotency, won);
    }

    /// Books a refusal that ends the payment.
    pub(super) fn abort(&mut self, key: &str, code: &str, message: &str, now_ms: u64) {
        self.change(key, |payment| {
            payment.status = Status::Aborted;
            payment.booked_ms = Some(now_ms);
            payment.failure = Some((code.to_owned(), message.to_owned()));
        });
    }

    /// Takes the payments whose status changed since last asked.
    pub(super) fn take_changed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.changed)
    }

    /// The ledger, with the payments touched since the last reset.
    pub(super) fn snapshot(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        for payment in self.touched.iter().filter_map(|key| self.payments.get(key)) {
            let entry = PaymentEntry {
                order_id: payment.order_id.clone(),
                status: payment.status.name().to_owned(),
                total_amount: payment.total,
                balance_amount: payment.balance,
            };
            ledger.payments.insert(payment.key.clone(), entry);
        }
        ledger
    }

    /// Starts the counting anew; payments stay.
    pub(super) fn reset_ledger(&mut self) {
        self.ledger = Ledger::default();
        self.touched.clear();
    }

    fn change(&mut self, key: &str, change: impl FnOnce(&mut Payment)) {
        if let Some(payment) = self.payments.get_mut(key) {
            change(payment);
            self.changed.push(key.to_owned());
            self.touched.insert(key.to_owned());
        }
    }
}

/// Spreads a counter over 64 bits (the finalizer of SplitMix64).
pub(super) fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
