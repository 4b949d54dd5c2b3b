//! The shopper's deadline: how `X-Request-Timeout-Ms` is read, and what is left of it.

use crate::time::Millis;

/// The header in which a page says how long its shopper will still wait, in whole milliseconds.
pub const TIMEOUT_HEADER: &str = "x-request-timeout-ms";

/// The header in which a trusted proxy says when it took the request: `t=<epoch ms>`.
pub const REQUEST_START_HEADER: &str = "x-request-start";

/// Above this the header is a mistake, not a wait (10 minutes, spec section 4).
pub const LONGEST_TIMEOUT: Millis = Millis::from_secs(600);

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLeft {
    /// No header: nothing is checked.
    Absent,
    /// Zero or below: the shopper has left already.
    Passed,
    /// This long, from receipt.
    Left(Millis),
}

/// Why the header is refused; nothing is claimed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Two headers, or two values in one.
    #[error("X-Request-Timeout-Ms is given more than once")]
    Repeated,
    /// Not whole milliseconds.
    #[error("X-Request-Timeout-Ms is not a whole number of milliseconds")]
    NotANumber,
    /// Above [`LONGEST_TIMEOUT`].
    #[error("X-Request-Timeout-Ms is above 600000")]
    TooLong,
}

/// Reads the header's values: absent, plain digits in range, or a minus sign and digits (already passed).
///
/// # Errors
/// [`HeaderError`] for all else: blanks, signs, fractions, exponents, other digits than ASCII's, two values.
pub fn parse_timeout<'v>(
    values: impl IntoIterator<Item = &'v [u8]>,
) -> Result<TimeLeft, HeaderError> {
    let mut values = values.into_iter();
    let Some(value) = values.next() else {
        return Ok(TimeLeft::Absent);
    };
    if values.next().is_some() {
        return Err(HeaderError::Repeated);
    }
    let (negative, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(HeaderError::NotANumber);
    }
    if negative {
        return Ok(TimeLeft::Passed);
    }
    let ms = digits.iter().fold(0_u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    match ms {
        0 => Ok(TimeLeft::Passed),
        ms if ms > LONGEST_TIMEOUT.get() => Err(HeaderError::TooLong),
        ms => Ok(TimeLeft::Left(Millis::new(ms))),
    }
}

/// Reads `t=<epoch ms>`; `None` when it says anything else.
#[must_use]
pub fn parse_request_start(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"t=")?;
    if digits.is_empty() || digits.len() > 16 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// When a confirm's shopper has left, on the server's own monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// No header: no send is refused for time.
    None,
    /// At this instant.
    At(Millis),
}

impl Deadline {
    /// The deadline of a request received at `received` that had already waited `queued` before us.
    #[must_use]
    pub const fn new(left: TimeLeft, received: Millis, queued: Millis) -> Self {
        match left {
            TimeLeft::Absent => Self::None,
            TimeLeft::Passed => Self::At(Millis::ZERO),
            TimeLeft::Left(ms) => Self::At(received.plus(ms).less(queued)),
        }
    }

    /// Whether a send is forbidden at `now`. It never cancels one that was made.
    #[must_use]
    pub const fn passed(self, now: Millis) -> bool {
        match self {
            Self::None => false,
            Self::At(at) => now.get() >= at.get(),
        }
    }

    /// When the answer must have been given: the deadline, or without one `fallback`.
    #[must_use]
    pub const fn answer_by(self, fallback: Millis) -> Millis {
        match self {
            Self::None => fallback,
            Self::At(at) => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that people and broken clients have really sent, and what each must mean.
    #[test]
    fn the_header_is_digits_or_refused() {
        use HeaderError::{NotANumber, TooLong};
        let left = |ms| Ok(TimeLeft::Left(Millis::new(ms)));
        let table: [(&str, Result<TimeLeft, HeaderError>); 24] = [
            ("65000", left(65_000)),
            ("1", left(1)),
            ("000500", left(500)),
            ("600000", left(600_000)),
            ("0", Ok(TimeLeft::Passed)),
            ("-1", Ok(TimeLeft::Passed)),
            ("-0", Ok(TimeLeft::Passed)),
            ("-99999999999999999999999", Ok(TimeLeft::Passed)),
            ("600001", Err(TooLong)),
            ("2147483648", Err(TooLong)),
            ("18446744073709551615", Err(TooLong)),
            ("18446744073709551616", Err(TooLong)),
            ("99999999999999999999999", Err(TooLong)),
            ("", Err(NotANumber)),
            ("-", Err(NotANumber)),
            ("+5000", Err(NotANumber)),
            (" 5000 ", Err(NotANumber)),
            ("5000.5", Err(NotANumber)),
            ("1e4", Err(NotANumber)),
            ("0x10", Err(NotANumber)),
            ("５０００", Err(NotANumber)),
            ("NaN", Err(NotANumber)),
            ("5000,5000", Err(NotANumber)),
            ("--5", Err(NotANumber)),
        ];
        for (value, expected) in table {
            assert_eq!(parse_timeout([value.as_bytes()]), expected, "{value:?}");
        }
        assert_eq!(parse_timeout([]), Ok(TimeLeft::Absent));
        assert_eq!(
            parse_timeout([b"5000".as_slice(), b"5000"]),
            Err(HeaderError::Repeated)
        );
    }

    #[test]
    fn queue_time_shortens_the_deadline_and_zero_has_passed_at_once() {
        let now = Millis::from_secs(100);
        let left = TimeLeft::Left(Millis::from_secs(5));
        let deadline = Deadline::new(left, now, Millis::from_secs(2));
        assert!(!deadline.passed(Millis::new(102_999)));
        assert!(deadline.passed(Millis::new(103_000)));
        assert!(Deadline::new(TimeLeft::Passed, now, Millis::ZERO).passed(now));
        assert!(!Deadline::new(TimeLeft::Absent, now, Millis::ZERO).passed(Millis::new(u64::MAX)));
    }

    #[test]
    fn a_request_start_is_epoch_milliseconds() {
        assert_eq!(
            parse_request_start(b"t=1790000000000"),
            Some(1_790_000_000_000)
        );
        for bad in [
            b"1790000000000".as_slice(),
            b"t=",
            b"t=-1",
            b"t=1.5",
            b"t=99999999999999999",
        ] {
            assert_eq!(parse_request_start(bad), None);
        }
    }
}
