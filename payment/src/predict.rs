//! What the settings mean under load, by Little's law: calls in flight = rate × time. Pure.
//!
//! The published measurements found the refused share of a full cap right to one decimal (their part C).

use crate::time::Millis;

/// The share of confirms that a cap refuses, 0 to 1: 1 − cap ÷ (rate × hold), at a fixed rate of arrivals a second.
#[must_use]
pub fn refused_share(rate: f64, hold: Millis, cap: Option<u32>) -> f64 {
    let demand = in_flight(rate, hold);
    match cap {
        Some(cap) if demand > f64::from(cap) => 1.0 - f64::from(cap) / demand,
        Some(_) | None => 0.0,
    }
}

/// How many confirms are in flight at once when none is refused.
#[must_use]
pub fn in_flight(rate: f64, hold: Millis) -> f64 {
    rate.max(0.0) * hold.to_duration().as_secs_f64()
}

/// The least cap with which at most `share` (0 to 1) is refused.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and no cap is near the limit"
)]
pub fn cap_needed(rate: f64, hold: Millis, share: f64) -> u32 {
    let needed = in_flight(rate, hold) * (1.0 - share.clamp(0.0, 1.0));
    // What a binary fraction adds must not cost a slot.
    (needed - 1e-9).ceil().max(1.0) as u32
}

/// The longest hold at which nothing is refused yet; `None` without a cap or without arrivals.
#[must_use]
pub fn longest_hold(rate: f64, cap: Option<u32>) -> Option<Millis> {
    let cap = f64::from(cap?);
    (rate > 0.0).then(|| {
        let seconds = core::time::Duration::try_from_secs_f64(cap / rate).unwrap_or_default();
        Millis::new(u64::try_from(seconds.as_millis()).unwrap_or(u64::MAX))
    })
}

/// The share of the cap up to which first sends may fill it before resends stop, 0 to 1.
#[must_use]
pub fn resend_room(cap: u32, reserve: u32) -> f64 {
    if cap == 0 {
        return 0.0;
    }
    f64::from(cap.saturating_sub(reserve)) / f64::from(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(share: f64) -> f64 {
        (share * 1_000.0).round() / 10.0
    }

    /// Part C of the published measurements: 50 a second against a cap of 40.
    #[test]
    fn the_published_shares_come_out() {
        let at = |ms| percent(refused_share(50.0, Millis::new(ms), Some(40)));
        assert_eq!((at(0), at(500), at(800)), (0.0, 0.0, 0.0));
        assert_eq!(
            (at(1_000), at(2_000), at(3_000), at(5_000)),
            (20.0, 60.0, 73.3, 84.0)
        );
        // A gateway that stops for longer than its timeout.
        assert_eq!(at(60_000), 98.7);
        assert!(refused_share(50.0, Millis::from_secs(60), None) < f64::EPSILON);
    }

    #[test]
    fn the_cap_for_a_target_and_the_longest_hold_are_the_formula_turned_around() {
        assert_eq!(cap_needed(30.0, Millis::from_secs(1), 0.0), 30);
        assert_eq!(cap_needed(50.0, Millis::from_secs(5), 0.01), 248);
        assert_eq!(cap_needed(50.0, Millis::ZERO, 0.0), 1);
        assert_eq!(longest_hold(50.0, Some(40)), Some(Millis::new(800)));
        assert_eq!(longest_hold(50.0, None), None);
        assert_eq!(longest_hold(0.0, Some(40)), None);
        let share = refused_share(
            50.0,
            Millis::from_secs(5),
            Some(cap_needed(50.0, Millis::from_secs(5), 0.1)),
        );
        assert!(share <= 0.1);
    }

    #[test]
    fn nine_tenths_of_the_cap_may_be_full_before_resends_stop() {
        assert_eq!(percent(resend_room(40, 4)), 90.0);
        assert_eq!(percent(resend_room(0, 0)), 0.0);
    }
}
