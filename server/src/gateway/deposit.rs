//! A virtual account as a gateway tells of it.

use super::secret::Secret;
use crate::clock::EpochMs;

/// The most that is kept of each text of an account.
const LONGEST: usize = 64;

/// An account that the shopper is to pay into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The bank, by the gateway's code.
    pub bank: String,
    /// Its number.
    pub number: String,
    /// Whose name it bears, if the gateway tells.
    pub holder: Option<String>,
    /// Until when it takes a deposit, if the gateway tells.
    pub due: Option<EpochMs>,
}

impl Account {
    /// An account from a gateway's texts, without what no such text has; `None` without a bank or a number.
    #[must_use]
    pub fn of(
        bank: &str,
        number: &str,
        holder: Option<&str>,
        due: Option<EpochMs>,
    ) -> Option<Self> {
        let (bank, number) = (plain(bank), plain(number));
        if bank.is_empty() || number.is_empty() {
            return None;
        }
        Some(Self {
            bank,
            number,
            holder: holder.map(plain).filter(|holder| !holder.is_empty()),
            due,
        })
    }
}

fn plain(text: &str) -> String {
    let visible = text.trim().chars().filter(|c| !c.is_control());
    visible.take(LONGEST).collect()
}

/// What a gateway's word says of a virtual account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// The account.
    pub account: Account,
    /// By which the gateway's own webhooks about it are told from forged ones; never shown and never logged.
    pub secret: Option<Secret>,
    /// Whether the gateway says that its due date is over.
    pub over: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_account_is_none_and_what_could_break_a_page_is_left_out() {
        let of = |bank, number| Account::of(bank, number, Some(" 김\u{0}토스 "), None);
        assert_eq!(of("", "X1"), None);
        assert_eq!(of("20", " "), None);
        let account = of("20", "X1\n2").expect("an account");
        assert_eq!(account.number, "X12");
        assert_eq!(account.holder.as_deref(), Some("김토스"));
        let long = of("20", &"1".repeat(500)).expect("an account");
        assert_eq!(long.number.len(), LONGEST);
    }

    #[test]
    fn a_secret_never_prints() {
        let deposit = Deposit {
            account: Account::of("20", "X1", None, None).expect("an account"),
            secret: Some(Secret::new("ps_1")),
            over: false,
        };
        assert!(!format!("{deposit:?}").contains("ps_1"));
    }
}
