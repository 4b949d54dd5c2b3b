//! The words about a virtual account, and the names of banks.

use super::Lang;

/// The name of one fact about an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DepositWord {
    /// The bank.
    Bank,
    /// The account's number.
    Number,
    /// Whose name it bears.
    Holder,
    /// How much is to be paid into it.
    Amount,
    /// Until when.
    Due,
}

/// Banks by Toss Payments' codes: Korean and English name.
const BANKS: [(&str, &str, &str); 24] = [
    ("02", "KDB산업은행", "KDB Bank"),
    ("03", "IBK기업은행", "IBK"),
    ("04", "KB국민은행", "KB Kookmin Bank"),
    ("06", "KB국민은행", "KB Kookmin Bank"),
    ("07", "Sh수협은행", "Suhyup Bank"),
    ("11", "NH농협은행", "NH NongHyup Bank"),
    ("12", "단위농협", "Local NongHyup"),
    ("20", "우리은행", "Woori Bank"),
    ("23", "SC제일은행", "SC First Bank"),
    ("27", "씨티은행", "Citibank Korea"),
    ("31", "iM뱅크(대구)", "iM Bank (Daegu)"),
    ("32", "부산은행", "Busan Bank"),
    ("34", "광주은행", "Kwangju Bank"),
    ("35", "제주은행", "Jeju Bank"),
    ("37", "전북은행", "Jeonbuk Bank"),
    ("39", "경남은행", "Kyongnam Bank"),
    ("45", "새마을금고", "Saemaul Geumgo (MG)"),
    ("48", "신협", "Shinhyup"),
    ("71", "우체국", "Korea Post"),
    ("81", "하나은행", "Hana Bank"),
    ("88", "신한은행", "Shinhan Bank"),
    ("89", "케이뱅크", "K bank"),
    ("90", "카카오뱅크", "KakaoBank"),
    ("92", "토스뱅크", "Toss Bank"),
];

impl Lang {
    /// The name of a fact about an account.
    #[must_use]
    pub const fn deposit(self, word: DepositWord) -> &'static str {
        match (self, word) {
            (Self::Ko, DepositWord::Bank) => "은행",
            (Self::En, DepositWord::Bank) => "Bank",
            (Self::Ko, DepositWord::Number) => "계좌번호",
            (Self::En, DepositWord::Number) => "Account number",
            (Self::Ko, DepositWord::Holder) => "예금주",
            (Self::En, DepositWord::Holder) => "Account holder",
            (Self::Ko, DepositWord::Amount) => "입금할 금액",
            (Self::En, DepositWord::Amount) => "Amount to pay",
            (Self::Ko, DepositWord::Due) => "입금 기한",
            (Self::En, DepositWord::Due) => "Pay before",
        }
    }

    /// A bank's name; one that we do not know by name is shown by its code.
    #[must_use]
    pub fn bank(self, code: &str) -> String {
        let bank = BANKS.iter().find(|(known, _, _)| *known == code);
        match (self, bank) {
            (Self::Ko, Some((_, ko, _))) => (*ko).to_owned(),
            (Self::En, Some((_, _, en))) => (*en).to_owned(),
            (Self::Ko, None) => format!("은행 코드 {code}"),
            (Self::En, None) => format!("Bank code {code}"),
        }
    }

    /// A due date of the form `2026-10-09T23:59:59+09:00`, for people; `None` for any other form.
    #[must_use]
    pub fn due(self, at: &str) -> Option<String> {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let (date, time) = at.split_once('T')?;
        let time = time.get(..5)?;
        let mut parts = date.splitn(3, '-');
        let year = parts.next()?;
        let month: usize = parts.next()?.parse().ok()?;
        let day: u32 = parts.next()?.parse().ok()?;
        let name = MONTHS.get(month.checked_sub(1)?)?;
        Some(match self {
            Self::Ko => format!("{year}년 {month}월 {day}일 {time}까지"),
            Self::En => format!("{day} {name} {year}, {time} (Korean time)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_date_is_told_as_people_write_it_and_a_strange_one_not_at_all() {
        let at = "2026-10-09T23:59:59+09:00";
        assert_eq!(
            Lang::Ko.due(at).as_deref(),
            Some("2026년 10월 9일 23:59까지")
        );
        assert_eq!(
            Lang::En.due(at).as_deref(),
            Some("9 Oct 2026, 23:59 (Korean time)")
        );
        for strange in ["", "T", "2026-13-01T10:00:00", "2026-10-09"] {
            assert_eq!(Lang::Ko.due(strange), None, "{strange}");
        }
    }

    #[test]
    fn a_bank_that_nobody_knows_is_shown_by_its_code() {
        assert_eq!(Lang::Ko.bank("20"), "우리은행");
        assert_eq!(Lang::En.bank("88"), "Shinhan Bank");
        assert_eq!(Lang::En.bank("XX"), "Bank code XX");
    }
}
