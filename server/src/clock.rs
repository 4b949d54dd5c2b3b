//! The only place that reads a clock: monotonic for deadlines, wall time for what is stored.

#[cfg(feature = "simulation")]
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

/// The clocks of one process.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
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
            #[cfg(feature = "simulation")]
            wall: None,
        }
    }

    /// Starts the clocks of a simulated node: wall time is `wall` now and goes with the runtime's virtual time, off by
    /// `skew` ms.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub fn simulated(wall: EpochMs, skew: &'static AtomicI64) -> Self {
        Self {
            start: Instant::now(),
            wall: Some((wall, skew)),
        }
    }

    /// Time since the start; never goes back.
    #[must_use]
    pub fn now(&self) -> Millis {
        Millis::new(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Wall time; may step.
    #[must_use]
    pub fn epoch(&self) -> EpochMs {
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
