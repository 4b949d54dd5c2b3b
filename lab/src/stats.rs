//! The arithmetic of the lab: percentiles, shares, and the formula that a cap is judged by.

use std::time::Duration;

use serde_json::{Value, json};

/// Spans that are sorted once and asked often.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Takes spans in any order.
    pub(crate) fn of(spans: impl IntoIterator<Item = Duration>) -> Self {
        let mut spans: Vec<_> = spans.into_iter().collect();
        spans.sort_unstable();
        Self(spans)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The nearest-rank percentile in ms; `None` of nothing.
    pub(crate) fn percentile_ms(&self, percent: f64) -> Option<f64> {
        let rank = (self.0.len() as f64 * percent / 100.0).ceil().max(1.0);
        self.0.get(rank as usize - 1).map(|span| ms(*span))
    }

    /// Share of the spans above `bound_ms`, 0 to 1; counted apart from the percentiles, so that the two can be compared.
    pub(crate) fn share_above(&self, bound_ms: f64) -> f64 {
        let above = self.0.iter().filter(|span| ms(**span) > bound_ms).count();
        share(above as u64, self.0.len() as u64)
    }

    /// Whether percentile and share tell the same story: a p95 of 13 s with 0 % over 10 s is a broken script.
    pub(crate) fn agrees(&self, percent: f64) -> bool {
        let Some(bound) = self.percentile_ms(percent) else {
            return true;
        };
        let beyond = 1.0 - percent / 100.0;
        let one = 1.0 / self.0.len() as f64;
        self.share_above(bound) <= beyond && self.share_above(bound - 0.001) >= beyond - one
    }

    /// What a report shows: count, p50, p95, p99 and the longest, in ms.
    pub(crate) fn summary(&self) -> Value {
        json!({
            "count": self.len(),
            "p50Ms": self.percentile_ms(50.0).map(rounded),
            "p95Ms": self.percentile_ms(95.0).map(rounded),
            "p99Ms": self.percentile_ms(99.0).map(rounded),
            "maxMs": self.percentile_ms(100.0).map(rounded),
        })
    }
}

/// A span in milliseconds.
pub(crate) fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

/// Three decimals: enough for ms, seconds and shares alike.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// A part of a whole, 0 to 1; nothing of nothing is 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The share, 0 to 1, that a cap refuses of arrivals at `rate` a second which each hold a slot for `hold_seconds`
/// (measurements C2): 1 − cap ÷ (rate × hold), and nothing while the slots suffice.
pub(crate) fn refused_share(cap: u32, rate: u32, hold_seconds: f64) -> f64 {
    let demand = f64::from(rate) * hold_seconds;
    if demand <= f64::from(cap) {
        0.0
    } else {
        1.0 - f64::from(cap) / demand
    }
}

/// How long a slot is out of reach, in seconds, of arrivals that come at even steps: one that comes free between two of
/// them is taken by the next. At 50/s a hold of 1.002 s is 1.02 s to them, and 40 slots refuse 21.6 %, which is what was
/// published for it (486 and 488 of 2,250), not the formula's 20.2 %.
pub(crate) fn hold_in_steps(rate: u32, hold_seconds: f64) -> f64 {
    let rate = f64::from(rate);
    // What a binary fraction adds is no step.
    (hold_seconds * rate - 1e-6).ceil() / rate
}

/// How long each of the arrivals at `rate` a second for `seconds` waits for one of `workers` that each hold an arrival for
/// `hold_seconds`, first come first served; in seconds, by arrival.
pub(crate) fn queue_waits(workers: u32, rate: u32, seconds: u32, hold_seconds: f64) -> Vec<f64> {
    let workers = workers as usize;
    let mut starts: Vec<f64> = Vec::new();
    let mut waits = Vec::new();
    for index in 0..rate * seconds {
        let arrives = f64::from(index) / f64::from(rate);
        // All hold equally long, so the worker of the arrival so many places before is the next to come free.
        let before = starts.len().checked_sub(workers);
        let free = before.map_or(0.0, |before| starts[before] + hold_seconds);
        starts.push(arrives.max(free));
        waits.push(arrives.max(free) - arrives);
    }
    waits
}

/// The longest part of a window, in seconds, that is a whole number of holds (measurements C2: what is left over
/// would count the slots of one more hold at its beginning only). All of it when not even one hold fits.
pub(crate) fn whole_holds(window_seconds: f64, hold_seconds: f64) -> f64 {
    let holds = (window_seconds / hold_seconds).floor();
    if holds.is_finite() && holds >= 1.0 {
        holds * hold_seconds
    } else {
        window_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_comes_free_between_two_arrivals_waits_for_the_next() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(hold_in_steps(50, 1.002), 1.02));
        assert!(near(hold_in_steps(50, 1.0), 1.0));
        assert!(near(hold_in_steps(50, 5.002), 5.02));
        let published = 487.0 / 2_250.0;
        assert!((refused_share(40, 50, hold_in_steps(50, 1.002)) - published).abs() < 0.001);
    }

    fn spans(ms: impl IntoIterator<Item = u64>) -> Latencies {
        Latencies::of(ms.into_iter().map(Duration::from_millis))
    }

    #[test]
    fn percentiles_are_nearest_rank_whatever_the_order() {
        let hundred = spans((1..=100).rev());
        for percent in [1.0, 50.0, 95.0, 99.0, 100.0] {
            assert_eq!(hundred.percentile_ms(percent), Some(percent));
        }
        assert_eq!(spans([7]).percentile_ms(50.0), Some(7.0));
        assert_eq!(spans([]).percentile_ms(50.0), None);
    }

    #[test]
    fn percentile_and_share_agree_on_one_set_of_spans() {
        assert!((spans(1..=100).share_above(95.0) - 0.05).abs() < 1e-9);
        assert!(spans(1..=100).agrees(95.0));
        assert!(spans([5; 40]).agrees(95.0));
        assert!(spans([]).agrees(95.0));
    }

    #[test]
    fn the_formula_gives_the_published_shares() {
        assert!((refused_share(40, 50, 5.0) - 0.84).abs() < 1e-9);
        assert!((refused_share(40, 50, 60.0) - 0.986_666).abs() < 1e-5);
        assert_eq!(refused_share(40, 50, 0.8), 0.0);
        assert_eq!(refused_share(40, 50, 0.0), 0.0);
    }

    #[test]
    fn a_queue_grows_only_when_its_workers_do_not_suffice() {
        assert!(
            queue_waits(100, 50, 45, 2.0)
                .iter()
                .all(|wait| *wait < 1e-9)
        );
        let waits = queue_waits(100, 50, 45, 3.0);
        assert!(waits[..100].iter().all(|wait| *wait < 1e-9));
        // After 45 s: 2,249 before it, of which 33.3 a second began.
        let last = waits.last().copied().unwrap();
        assert!(
            (last - (22.0 * 3.0 + 49.0 / 50.0 - 44.98)).abs() < 1e-6,
            "{last}"
        );
    }

    #[test]
    fn a_window_is_cut_to_whole_holds() {
        assert!((whole_holds(45.0, 2.0) - 44.0).abs() < 1e-9);
        assert!((whole_holds(45.0, 60.0) - 45.0).abs() < 1e-9);
        assert!((whole_holds(45.0, 0.0) - 45.0).abs() < 1e-9);
    }
}
