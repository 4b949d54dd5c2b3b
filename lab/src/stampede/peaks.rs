//! How many requests fall into one short span: by a window that slides, by bins that stand, and by a formula.

use std::time::Duration;

/// The most moments within any window of this width. The moments come in order.
pub(crate) fn sliding_peak(moments: &[Duration], window: Duration) -> usize {
    let mut first = 0;
    let mut peak = 0;
    for (last, moment) in moments.iter().enumerate() {
        while *moment - moments[first] >= window {
            first += 1;
        }
        peak = peak.max(last + 1 - first);
    }
    peak
}

/// The most moments within one bin of this width, the first of which begins at `phase`; the moments are after it.
pub(crate) fn binned_peak(moments: &[Duration], bin: Duration, phase: Duration) -> usize {
    let number = |moment: &Duration| moment.saturating_sub(phase).as_nanos() / bin.as_nanos();
    let bins = moments.chunk_by(|one, next| number(one) == number(next));
    bins.map(<[Duration]>::len).max().unwrap_or(0)
}

/// The expected peak of a sliding window over `count` moments that are uniform over `span`, by the approximation of
/// Wallenstein and Neff (1987) for the scan statistic: with w = window ÷ span, P(peak ≥ k) ≈ (k ÷ w − count − 1) b(k) +
/// 2 B(k), where b is the binomial probability of k moments in one window and B that of k or more.
pub(crate) fn expected_peak(count: usize, span: Duration, window: Duration) -> f64 {
    let share = window.as_secs_f64() / span.as_secs_f64();
    if count == 0 || share >= 1.0 {
        return count as f64;
    }
    let n = count as f64;
    let odds = (share / (1.0 - share)).ln();
    let mut exact = vec![0.0; count + 1];
    let mut log = n * (1.0 - share).ln();
    for (k, place) in exact.iter_mut().enumerate() {
        *place = log.exp();
        log += ((n - k as f64) / (k as f64 + 1.0)).ln() + odds;
    }
    let mut or_more = 0.0;
    let mut expected = 0.0;
    for (k, exact) in exact.iter().enumerate().skip(1).rev() {
        or_more += exact;
        let reached = (k as f64 / share - n - 1.0) * exact + 2.0 * or_more;
        // Below the mean the approximation is none: a window with the mean always exists.
        let sure = k as f64 <= n * share;
        expected += if sure { 1.0 } else { reached.clamp(0.0, 1.0) };
    }
    expected
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn at(ms: &[u64]) -> Vec<Duration> {
        ms.iter().map(|ms| Duration::from_millis(*ms)).collect()
    }

    #[test]
    fn a_wave_across_the_edge_of_two_bins_is_whole_only_to_a_window_that_slides() {
        let moments = at(&[90, 95, 99, 101, 105, 110]);
        let width = Duration::from_millis(100);
        assert_eq!(sliding_peak(&moments, width), 6);
        assert_eq!(binned_peak(&moments, width, Duration::ZERO), 3);
        assert_eq!(binned_peak(&moments, width, Duration::from_millis(50)), 6);
    }

    #[test]
    fn a_window_holds_what_is_less_than_its_width_apart() {
        let width = Duration::from_millis(10);
        assert_eq!(sliding_peak(&at(&[0, 10]), width), 1);
        assert_eq!(sliding_peak(&at(&[0, 9, 10]), width), 2);
        assert_eq!(sliding_peak(&[], width), 0);
        assert_eq!(binned_peak(&[], width, Duration::ZERO), 0);
    }

    #[test]
    fn the_formula_agrees_with_drawn_moments_within_a_twentieth() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let span = Duration::from_millis(500);
        for (count, window) in [(150, 100), (150, 10), (37, 100), (300, 25), (1_000, 5)] {
            let window = Duration::from_millis(window);
            let runs = 2_000;
            let drawn: usize = (0..runs)
                .map(|_| {
                    let mut moments: Vec<_> = (0..count)
                        .map(|_| span.mul_f64(rng.random::<f64>()))
                        .collect();
                    moments.sort_unstable();
                    sliding_peak(&moments, window)
                })
                .sum();
            let mean = drawn as f64 / f64::from(runs);
            let formula = expected_peak(count, span, window);
            let off = (formula / mean - 1.0).abs();
            assert!(off <= 0.05, "{count}, {window:?}: {formula} for {mean}");
        }
        assert!((expected_peak(7, span, span) - 7.0).abs() < 1e-9);
    }
}
