//! Bounds on webhooks that name no payment of ours: anybody can post one, so what they may use up is fixed.
//!
//! A refusal is 503, so that a real sender comes again. What names a payment of ours passes, whatever strangers do.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::config::{Bounds, Config, Switch};

/// A burst of so many seconds' webhooks is let through at once.
const BURST_SECONDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(19);

/// How much of the inbox belongs to nobody.
#[derive(Debug)]
pub struct Strangers {
    stored: AtomicU64,
    most: u64,
    rate: Option<DefaultDirectRateLimiter>,
}

/// Which bound a webhook meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressing {
    /// As many webhooks of nobody are stored as may be.
    Full,
    /// Webhooks come faster than strangers may send them.
    Rate,
}

impl Pressing {
    /// Every bound.
    pub const ALL: [Self; 2] = [Self::Full, Self::Rate];

    /// What a refusal for it is counted as.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Full => "refused_full",
            Self::Rate => "refused_rate",
        }
    }
}

impl Strangers {
    /// The bounds of a configuration; nothing is stored yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self::within(config.bounds, config.rate_limits == Switch::On)
    }

    fn within(bounds: Bounds, limited: bool) -> Self {
        let second = bounds.webhook_rate;
        let burst = second.saturating_mul(BURST_SECONDS);
        let quota = Quota::per_second(second).allow_burst(burst);
        Self {
            stored: AtomicU64::new(0),
            most: u64::from(bounds.strangers),
            rate: limited.then(|| RateLimiter::direct(quota)),
        }
    }

    /// Takes over how many are stored, as the database counted them.
    pub fn counted(&self, stored: u64) {
        self.stored.store(stored, Ordering::Relaxed);
    }

    /// Notes one more that was stored: whose it is is found out later, so until the next count it is taken for nobody's.
    pub fn kept(&self) {
        self.stored.fetch_add(1, Ordering::Relaxed);
    }

    /// The bound that one more webhook meets; then it must name a payment of ours.
    pub fn pressing(&self) -> Option<Pressing> {
        if self.stored.load(Ordering::Relaxed) >= self.most {
            return Some(Pressing::Full);
        }
        let limited = self.rate.as_ref().is_some_and(|rate| rate.check().is_err());
        limited.then_some(Pressing::Rate)
    }
}

#[cfg(test)]
mod tests {
    use payment::time::Millis;

    use super::*;

    fn bounds(strangers: u32) -> Bounds {
        Bounds {
            unknown: Millis::ZERO,
            inquiries: 1,
            webhooks_kept: Millis::ZERO,
            strangers,
            webhook_rate: NonZeroU32::MIN,
            deposit_grace: Millis::ZERO,
        }
    }

    #[test]
    fn both_bounds_are_met_and_a_count_frees_one() {
        let strangers = Strangers::within(bounds(2), true);
        assert_eq!(strangers.pressing(), None);
        strangers.kept();
        strangers.kept();
        assert_eq!(strangers.pressing(), Some(Pressing::Full));
        strangers.counted(1);
        let met = (0..=BURST_SECONDS.get()).filter_map(|_| strangers.pressing());
        assert_eq!(met.last(), Some(Pressing::Rate));
        let unlimited = Strangers::within(bounds(2), false);
        assert!((0..1_000).all(|_| unlimited.pressing().is_none()));
    }
}
