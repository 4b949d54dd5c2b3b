//! Cancels: booked at once, or accepted and ended later.

use super::{Books, Payment, Status};
use crate::scenario::{AsyncCancels, BalanceFalls, CancelEnd, Scenario};

/// How far a cancel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Standing {
    Done,
    InProgress,
    Aborted,
}

impl Standing {
    pub(in crate::engine) fn name(self) -> &'static str {
        match self {
            Self::Done => "DONE",
            Self::InProgress => "IN_PROGRESS",
            Self::Aborted => "ABORTED",
        }
    }
}

/// One cancel.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Cancel {
    pub(in crate::engine) transaction: String,
    pub(in crate::engine) amount: u64,
    pub(in crate::engine) reason: String,
    pub(in crate::engine) at_ms: u64,
    pub(in crate::engine) left: u64,
    pub(in crate::engine) standing: Standing,
    /// Whether the balance has fallen for it.
    fallen: bool,
}

impl Payment {
    /// What can still be cancelled: the balance, less what is under way.
    pub(in crate::engine) fn available(&self) -> u64 {
        let waits = |cancel: &&Cancel| cancel.standing == Standing::InProgress && !cancel.fallen;
        let held: u64 = self
            .cancels
            .iter()
            .filter(waits)
            .map(|cancel| cancel.amount)
            .sum();
        self.balance.saturating_sub(held)
    }

    /// The status by what was given back, or is about to be.
    fn settle_status(&mut self) {
        let counts = self.cancels.iter().filter(|cancel| cancel.fallen).count();
        self.status = match (self.balance, counts) {
            (_, 0) => Status::Done,
            (0, 1) => Status::Canceled,
            // Partial first, then the rest: Toss keeps the partial status, with balance 0.
            (_, _) => Status::PartialCanceled,
        };
    }
}

impl Books {
    /// Books a cancel of this many won, at most what is available; or accepts it, to be ended later.
    pub(in crate::engine) fn cancel(
        &mut self,
        key: &str,
        (won, reason): (u64, &str),
        scenario: &Scenario,
        now_ms: u64,
    ) {
        let transaction = self.fresh("txrd_c");
        let Some(payment) = self.payments.get(key) else {
            return;
        };
        // Of an account that nobody paid into nothing goes back: it is only closed.
        let charged = payment.status != Status::WaitingForDeposit;
        let later = scenario.async_cancels.filter(|_| payment.account.is_none());
        let fallen = later.is_none_or(|later| later.balance == BalanceFalls::AtOnce);
        let (mut order, mut left, mut index) = (String::new(), 0, 0);
        let apply = |payment: &mut Payment| {
            payment.balance -= if fallen { won } else { 0 };
            payment.last_transaction = Some(transaction.clone());
            left = payment.balance;
            index = payment.cancels.len();
            payment.cancels.push(Cancel {
                transaction,
                amount: won,
                reason: reason.to_owned(),
                at_ms: now_ms,
                left,
                standing: match later {
                    Some(_) => Standing::InProgress,
                    None => Standing::Done,
                },
                fallen,
            });
            if fallen {
                payment.settle_status();
            }
            order.clone_from(&payment.order_id);
        };
        self.change(key, apply);
        if later.is_some() {
            self.under_way.insert((now_ms, key.to_owned(), index));
        } else if charged {
            self.ledger.canceled(&order, won, left == 0);
        }
    }

    /// Ends the cancels that are due.
    pub(in crate::engine) fn end_cancels(&mut self, scenario: &Scenario, now_ms: u64) {
        let how = scenario.async_cancels.unwrap_or_default();
        while let Some((at_ms, ..)) = self.under_way.first()
            && at_ms.saturating_add(how.after_ms) <= now_ms
            && let Some((_, key, index)) = self.under_way.pop_first()
        {
            self.end_cancel(&key, index, how);
        }
    }

    fn end_cancel(&mut self, key: &str, index: usize, how: AsyncCancels) {
        let (mut order, mut won, mut left) = (String::new(), 0, 0);
        let done = how.ends == CancelEnd::Done;
        self.change(key, |payment| {
            let Some(cancel) = payment.cancels.get_mut(index) else {
                return;
            };
            won = cancel.amount;
            match (done, cancel.fallen) {
                (true, false) => payment.balance -= won,
                (false, true) => payment.balance += won,
                (true, true) | (false, false) => {}
            }
            cancel.fallen = done;
            cancel.left = payment.balance;
            cancel.standing = if done {
                Standing::Done
            } else {
                Standing::Aborted
            };
            payment.settle_status();
            order.clone_from(&payment.order_id);
            left = payment.available();
        });
        if done {
            self.ledger.canceled(&order, won, left == 0);
        }
        self.ended_cancels.push((key.to_owned(), index));
    }

    /// When the next cancel ends.
    pub(in crate::engine) fn next_cancel_end(&self, scenario: &Scenario) -> Option<u64> {
        let after_ms = scenario.async_cancels.unwrap_or_default().after_ms;
        let first = self.under_way.first();
        first.map(|(at_ms, ..)| at_ms.saturating_add(after_ms))
    }

    /// Takes the cancels that ended since last asked: whose, and which of them.
    pub(in crate::engine) fn take_ended_cancels(&mut self) -> Vec<(String, usize)> {
        std::mem::take(&mut self.ended_cancels)
    }
}
