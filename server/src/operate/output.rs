//! What commands print: to people as lines, to programs as JSON; payment keys are masked.

use payment::id::PaymentKey;
use payment::money::Won;

use crate::store::AttemptRecord;

/// Prints one line.
#[expect(clippy::print_stdout, reason = "printing is what the commands are for")]
pub fn line(text: &str) {
    println!("{text}");
}

/// Enough of a payment key to recognise it, too little to use it.
#[must_use]
pub fn masked(key: Option<&PaymentKey>) -> String {
    let Some(key) = key else {
        return "none".to_owned();
    };
    let all: Vec<char> = key.as_str().chars().collect();
    // Of a short one hardly anything may be shown.
    let shown = if all.len() >= 16 { 4 } else { 1 };
    let begin: String = all.iter().take(shown).collect();
    let end: String = all.iter().skip(all.len().saturating_sub(shown)).collect();
    format!("{begin}***{end}")
}

/// A text from outside on one line: what could move a terminal's cursor or forge a line is left out.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let kept = text.chars().filter(|c| !c.is_control());
    kept.take(most).collect::<String>().trim().to_owned()
}

/// An attempt in one phrase.
#[must_use]
pub fn attempt(record: &AttemptRecord) -> String {
    format!(
        "attempt {} (order {}, number {}, at {} as {}, {} won, {})",
        record.id.0,
        record.order_id,
        record.number,
        record.gateway,
        record.gateway_order_id,
        record.attempt.expected.amount,
        record.attempt.status.as_str()
    )
}

/// An amount that may not be known.
#[must_use]
pub fn amount(amount: Option<Won>) -> String {
    amount.map_or_else(|| "none".to_owned(), |amount| amount.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_and_texts_stay_on_their_line() {
        let key = |text| PaymentKey::parse(text).unwrap();
        assert_eq!(
            masked(Some(&key("tviva20261002101500Ab3dE"))),
            "tviv***b3dE"
        );
        assert_eq!(masked(Some(&key("abc"))), "a***c");
        assert_eq!(masked(None), "none");
        assert_eq!(plain(" a\u{1b}[2J\nb ", 9), "a[2Jb");
    }
}
