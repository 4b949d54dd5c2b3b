//! Whether the whole process has more work than it can do, whatever the kind: the one thing that no lane can see alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metrics::gauge;
use payment::time::Millis;

use crate::app::App;

/// How often the runtime's delay is measured.
const TICK: Duration = Duration::from_millis(50);
/// How many ticks make one judgement: one second. The *least* delay of them counts, so that a hiccup is no overload.
const TICKS: u32 = 20;
/// From this least delay on reads are refused and polls are asked to come less often, ms: an idle runtime has 1 or 2, and a
/// page still feels prompt.
const BUSY: u64 = 50;
/// From this least delay on polls are refused as well, ms: a poll's own limit is 5 s, and confirms pass through too.
const OVERLOADED: u64 = 250;
/// How fast polls are slowed down and let back, per second, in percent of the interval.
const SLOWER: u64 = 150;
const FASTER: u64 = 80;

/// How much is being asked of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// All is served.
    Calm,
    /// Reads are refused.
    Busy,
    /// Polls are refused as well.
    Overloaded,
}

/// What the last second showed.
#[derive(Debug, Default)]
pub struct Pressure {
    /// The least delay of the runtime in the last second, ms.
    lag: AtomicU64,
    /// How far the poll interval is stretched, in percent beyond 100.
    stretch: AtomicU64,
}

impl Pressure {
    /// What is being asked of the process now.
    #[must_use]
    pub fn level(&self) -> Level {
        match self.lag.load(Ordering::Relaxed) {
            OVERLOADED.. => Level::Overloaded,
            BUSY.. => Level::Busy,
            _ => Level::Calm,
        }
    }

    /// When a poller is to come again: the page's own step, longer while too many come. 1 to 60 s by the contract.
    #[must_use]
    pub fn poll_after(&self, step: Millis) -> Millis {
        let stretch = self.stretch.load(Ordering::Relaxed);
        let longest = Millis::from_secs(60).max(step);
        Millis::new(step.get().saturating_mul(100 + stretch) / 100).min(longest)
    }

    /// As a simulated processor is felt.
    #[cfg(feature = "simulation")]
    pub fn felt(&self, lag: Millis, polls_crowded: bool) {
        self.judge(lag, polls_crowded);
    }

    /// Takes one second's figures: the least delay, and whether the lane of polls was more than half full.
    fn judge(&self, lag: Millis, polls_crowded: bool) {
        self.lag.store(lag.get(), Ordering::Relaxed);
        let whole = 100 + self.stretch.load(Ordering::Relaxed);
        let whole = if polls_crowded || self.level() > Level::Calm {
            whole * SLOWER / 100
        } else {
            whole * FASTER / 100
        };
        // Thirty times two seconds are the longest hint.
        self.stretch
            .store(whole.clamp(100, 3_000) - 100, Ordering::Relaxed);
    }
}

/// Measures for as long as the process lives.
pub async fn run(app: Arc<App>) {
    loop {
        let mut least = Duration::MAX;
        for _ in 0..TICKS {
            let due = Instant::now() + TICK;
            tokio::time::sleep_until(due.into()).await;
            least = least.min(due.elapsed());
        }
        let lag = Millis::new(u64::try_from(least.as_millis()).unwrap_or(u64::MAX));
        app.pressure.judge(lag, app.lanes.polls_are_crowded());
        gauge!("runtime_lag_seconds").set(least.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Millis = Millis::from_secs(2);

    #[test]
    fn reads_go_first_polls_are_slowed_and_then_refused() {
        let pressure = Pressure::default();
        assert_eq!(pressure.level(), Level::Calm);
        pressure.judge(Millis::new(60), false);
        assert_eq!(pressure.level(), Level::Busy);
        assert_eq!(pressure.poll_after(STEP), Millis::from_secs(3));
        pressure.judge(Millis::new(300), false);
        assert_eq!(pressure.level(), Level::Overloaded);
    }

    #[test]
    fn a_crowd_of_polls_is_spread_up_to_a_minute_and_let_back_when_it_is_gone() {
        let pressure = Pressure::default();
        for _ in 0..20 {
            pressure.judge(Millis::ZERO, true);
        }
        assert_eq!(pressure.poll_after(STEP), Millis::from_secs(60));
        for _ in 0..20 {
            pressure.judge(Millis::ZERO, false);
        }
        assert_eq!(pressure.poll_after(STEP), STEP);
        assert_eq!(pressure.level(), Level::Calm);
    }
}
