//! Virtual accounts: issued by a confirm, paid by a deposit, which the bank may take back; over at their due date.

use super::{Books, Payment, Status};
use crate::scenario::{ExpiredAccounts, Scenario};

/// A virtual account as it was issued.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Account {
    pub(in crate::engine) number: String,
    pub(in crate::engine) due_ms: u64,
    /// Whether a look-up says that its due date is over.
    pub(in crate::engine) expired: bool,
}

/// Why there can be no deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDeposit {
    /// No such order, or no account of it.
    #[error("this order has no virtual account")]
    NoAccount,
    /// It is deposited, cancelled, or not deposited yet.
    #[error("the account is in another state")]
    WrongState,
    /// Its due date is over: the bank takes no deposit.
    #[error("the account's due date is over")]
    Over,
}

impl Books {
    /// Issues the account of a confirmed payment.
    pub(in crate::engine) fn issue(&mut self, key: &str, won: u64, due_ms: u64, now_ms: u64) {
        self.change(key, |payment| {
            payment.status = Status::WaitingForDeposit;
            payment.total = won;
            payment.balance = won;
            payment.booked_ms = Some(now_ms);
            payment.account = Some(Account {
                // Accounts of the test environment begin with an X.
                number: format!("X{:013}", payment.serial),
                due_ms,
                expired: false,
            });
        });
        self.accounts.insert((due_ms, key.to_owned()));
    }

    /// The account of an order that was issued last.
    fn account_of(&self, order: &str) -> Result<&Payment, NoDeposit> {
        let keys = self.by_order.get(order).ok_or(NoDeposit::NoAccount)?;
        let payments = keys.iter().rev().filter_map(|key| self.payments.get(key));
        let mut issued = payments.filter(|payment| payment.account.is_some());
        issued.next().ok_or(NoDeposit::NoAccount)
    }

    /// Books a deposit of the whole amount.
    pub(in crate::engine) fn deposit(&mut self, order: &str, now_ms: u64) -> Result<(), NoDeposit> {
        let payment = self.account_of(order)?;
        if payment.status != Status::WaitingForDeposit {
            return Err(NoDeposit::WrongState);
        }
        let over = |account: &Account| account.due_ms <= now_ms;
        if payment.account.as_ref().is_some_and(over) {
            return Err(NoDeposit::Over);
        }
        let (key, won) = (payment.key.clone(), payment.total);
        let transaction = self.fresh("txrd_a");
        self.change(&key, |payment| {
            payment.status = Status::Done;
            payment.approved_ms = Some(now_ms);
            payment.booked_ms = Some(now_ms);
            payment.last_transaction = Some(transaction);
        });
        self.ledger.charged(order, None, won);
        Ok(())
    }

    /// The bank takes a deposit back: the account waits again.
    pub(in crate::engine) fn undo_deposit(
        &mut self,
        order: &str,
        now_ms: u64,
    ) -> Result<(), NoDeposit> {
        let payment = self.account_of(order)?;
        if payment.status != Status::Done {
            return Err(NoDeposit::WrongState);
        }
        let (key, won) = (payment.key.clone(), payment.total);
        self.change(&key, |payment| {
            payment.status = Status::WaitingForDeposit;
            payment.approved_ms = None;
            payment.booked_ms = Some(now_ms);
        });
        self.ledger.undone(order, won);
        Ok(())
    }

    /// Notes which due dates are over. Nobody is told: the payment goes on waiting.
    pub(in crate::engine) fn expire_accounts(&mut self, scenario: &Scenario, now_ms: u64) {
        while let Some((due_ms, _)) = self.accounts.first()
            && *due_ms <= now_ms
            && let Some((_, key)) = self.accounts.pop_first()
        {
            let flagged = scenario.deposits.expired == ExpiredAccounts::Flagged;
            let account = self.payments.get_mut(&key);
            if let Some(account) = account.and_then(|payment| payment.account.as_mut()) {
                account.expired = flagged;
            }
        }
    }
}
