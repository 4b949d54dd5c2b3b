//! The only place that reads a clock: monotonic for deadlines, wall time for what is stored.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use payment::time::Millis;
use tokio::time::Instant;

/// A moment of wall time, in milliseconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EpochMs(pub i64);

impl EpochMs {
    /// The moment `span` later.
    #[must_use]
    pub fn plus(self, span: Millis) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(span.get()).unwrap_or(i64::MAX)),
        )
    }

    /// The moment `span` earlier.
    #[must_use]
    pub fn minus(self, span: Millis) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(span.get()).unwrap_or(i64::MAX)),
        )
    }

    /// The moment in Korean time, as `2026-10-09T23:59:59+09:00`; `None` beyond the years that have four digits.
    #[must_use]
    pub fn in_korea(self) -> Option<String> {
        // Korea has one time zone and no daylight saving: a fixed offset needs no time zone database.
        let at = jiff::Timestamp::from_millisecond(self.0).ok()?;
        let at = jiff::tz::offset(9).to_datetime(at);
        Some(at.strftime("%Y-%m-%dT%H:%M:%S+09:00").to_string())
    }

    /// How long it is from `earlier` to this; zero when it is not later (clocks may step back).
    #[must_use]
    pub fn since(self, earlier: Self) -> Millis {
        Millis::new(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// What a clock's shared start is before it was ever aligned.
const NOT_ALIGNED: i64 = i64::MIN;

/// The clocks of one process. Copies are one clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    /// The start by the clock that all nodes go by, ms since 1970; [`NOT_ALIGNED`] where the machine's own counts. A process
    /// has a clock or two, for as long as it runs.
    shared: &'static AtomicI64,
    /// Under virtual time: the wall time at the start, and how far a node's wall clock is off.
    #[cfg(feature = "simulation")]
    wall: Option<(EpochMs, &'static AtomicI64)>,
}

impl Clock {
    /// Starts the monotonic clock at zero.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "starting a clock is an act, not a default"
    )]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            shared: Box::leak(Box::new(AtomicI64::new(NOT_ALIGNED))),
            #[cfg(feature = "simulation")]
            wall: None,
        }
    }

    /// Starts the clocks of a simulated node: wall time is `wall` now and goes with the runtime's virtual time, off by
    /// `skew` ms until the clock is aligned, which `shared` keeps.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub fn simulated(wall: EpochMs, skew: &'static AtomicI64, shared: &'static AtomicI64) -> Self {
        shared.store(NOT_ALIGNED, Ordering::Relaxed);
        Self {
            start: Instant::now(),
            shared,
            wall: Some((wall, skew)),
        }
    }

    /// Time since the start; never goes back.
    #[must_use]
    pub fn now(&self) -> Millis {
        Millis::new(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Goes by another clock from now on, which read `read` at some moment within the last `ago`: the database's that
    /// several nodes share. From here to the next reading the monotonic clock counts, so no step of the machine's own
    /// clock is seen any more.
    pub fn align(&self, read: EpochMs, ago: Millis) {
        let right = self.epoch().clamp(read, read.plus(ago));
        let now = i64::try_from(self.now().get()).unwrap_or(i64::MAX);
        self.shared
            .store(right.0.saturating_sub(now), Ordering::Relaxed);
    }

    /// Wall time; may step, unless it goes by the database's clock.
    #[must_use]
    pub fn epoch(&self) -> EpochMs {
        let shared = self.shared.load(Ordering::Relaxed);
        if shared != NOT_ALIGNED {
            return EpochMs(shared).plus(self.now());
        }
        #[cfg(feature = "simulation")]
        if let Some((wall, skew)) = self.wall {
            let true_time = wall.plus(self.now());
            return EpochMs(true_time.0.saturating_add(skew.load(Ordering::Relaxed)));
        }
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        EpochMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_clock_goes_by_the_other_and_moves_no_more_than_it_must() {
        let clock = Clock::new();
        let hour = Millis::from_secs(3_600);
        let minute = Millis::from_secs(60);
        let about = |expected: EpochMs| {
            let now = clock.epoch();
            assert!(
                now >= expected && now < expected.plus(minute),
                "{now:?}, not {expected:?}"
            );
        };
        let start = clock.epoch();
        clock.align(start.plus(hour), Millis::new(20));
        about(start.plus(hour));
        // Within what a reading allows nothing moves.
        clock.align(start, hour.times(2));
        about(start.plus(hour));
        // It was ahead: no farther back than the reading says.
        clock.align(start, minute);
        about(start.plus(minute));
    }
}
