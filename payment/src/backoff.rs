//! When to ask again: exponential with full jitter, as a function of the count and a random number.

use crate::time::Millis;

/// How long to wait before the next inquiry about one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first step.
    pub first: Millis,
    /// The longest step.
    pub longest: Millis,
}

impl Backoff {
    /// Inquiries: about 1 s after an attempt became unknown, then up to 60 s apart.
    pub const INQUIRY: Self = Self {
        first: Millis::from_secs(1),
        longest: Millis::from_secs(60),
    };

    /// Inquiries about a virtual account: a deposit takes days, and a webhook tells of it. From a minute up to an hour apart.
    pub const DEPOSIT: Self = Self {
        first: Millis::from_secs(60),
        longest: Millis::from_secs(3_600),
    };

    /// The wait after `tries` inquiries without a result; `random` is uniform over all of `u32`.
    ///
    /// Half of the step is fixed and half is random, so that many attempts lost at one moment spread out.
    #[must_use]
    pub fn after(&self, tries: u32, random: u32) -> Millis {
        let step = self
            .first
            .get()
            .saturating_mul(1_u64.checked_shl(tries.min(32)).unwrap_or(u64::MAX));
        let step = step.min(self.longest.get());
        let half = step / 2;
        Millis::new(half + half * u64::from(random) / u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_to_the_longest_and_never_beyond() {
        let backoff = Backoff::INQUIRY;
        assert_eq!(backoff.after(0, u32::MAX), Millis::new(1_000));
        assert_eq!(backoff.after(0, 0), Millis::new(500));
        assert_eq!(backoff.after(3, u32::MAX), Millis::new(8_000));
        for tries in 0..200 {
            assert!(backoff.after(tries, u32::MAX) <= backoff.longest);
            assert!(backoff.after(tries, 0) >= Millis::new(500));
        }
    }
}
