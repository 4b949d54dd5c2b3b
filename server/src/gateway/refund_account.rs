//! The bank account that a deposit goes back to, as its owner named it. It never prints.

use super::secret::Secret;

/// Toss's limit of an account number, in digits.
const LONGEST_NUMBER: usize = 20;
/// Toss's limit of a holder's name, in characters.
const LONGEST_HOLDER: usize = 60;
/// How many of a number's last digits a mark shows.
const SHOWN: usize = 4;

/// A bank account that money is to be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundAccount {
    bank: String,
    number: Secret,
    holder: Secret,
}

impl RefundAccount {
    /// An account by a bank's code (two or three digits), a number (digits, hyphens and blanks left out) and a name.
    #[must_use]
    pub fn of(bank: &str, number: &str, holder: &str) -> Option<Self> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number: String = number.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
        let holder = holder.trim();
        let named = (1..=LONGEST_HOLDER).contains(&holder.chars().count())
            && !holder.chars().any(char::is_control);
        let numbered = digits(&number) && number.len() <= LONGEST_NUMBER;
        (digits(bank) && matches!(bank.len(), 2 | 3) && numbered && named).then(|| Self {
            bank: bank.to_owned(),
            number: Secret::new(&number),
            holder: Secret::new(holder),
        })
    }

    /// The bank, by the gateway's code.
    #[must_use]
    pub fn bank(&self) -> &str {
        &self.bank
    }

    /// Its number; for the call that sends money there, and for the store that keeps it until then.
    #[must_use]
    pub fn number(&self) -> &str {
        self.number.expose()
    }

    /// Whose name it bears; for the same two.
    #[must_use]
    pub fn holder(&self) -> &str {
        self.holder.expose()
    }

    /// What people may see of it, and what stays of it: the bank and the last digits of the number.
    #[must_use]
    pub fn mark(&self) -> String {
        let number = self.number.expose();
        let start = number.len().saturating_sub(SHOWN.min(number.len() / 2));
        format!(
            "{} ****{}",
            self.bank,
            number.get(start..).unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_a_code_digits_and_a_name() {
        let account = RefundAccount::of("20", "1000-123 456789", " 김토스 ").expect("an account");
        assert_eq!(account.number(), "1000123456789");
        assert_eq!((account.bank(), account.holder()), ("20", "김토스"));
        let longest = "김".repeat(60);
        assert!(RefundAccount::of("088", &"1".repeat(20), &longest).is_some());
        for (bank, number, holder) in [
            ("", "1", "a"),
            ("2", "1", "a"),
            ("kb", "1", "a"),
            ("20", "", "a"),
            ("20", "12x", "a"),
            ("20", &"1".repeat(21), "a"),
            ("20", "1", " "),
            ("20", "1", "a\nb"),
            ("20", "1", &"a".repeat(61)),
        ] {
            assert_eq!(
                RefundAccount::of(bank, number, holder),
                None,
                "{bank} {number}"
            );
        }
    }

    #[test]
    fn neither_debug_nor_mark_shows_number_or_name() {
        let account = RefundAccount::of("20", "1000123456789", "김토스").expect("an account");
        assert_eq!(account.mark(), "20 ****6789");
        let printed = format!("{account:?} {}", account.mark());
        assert!(
            !printed.contains("100012345") && !printed.contains("김토스"),
            "{printed}"
        );
        // Of a short one half at most is shown.
        let short = RefundAccount::of("20", "12345", "a").expect("an account");
        assert_eq!(short.mark(), "20 ****45");
    }
}
