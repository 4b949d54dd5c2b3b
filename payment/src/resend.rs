//! The one resend of a confirm whose answer was lost: when it is allowed, and what each decision is called.
//!
//! Rule 0 stands above all of it: whatever becomes of the resend, the first send may have reached the gateway, so
//! nothing but the gateway's own word about money ends the attempt.

use crate::reach::Lost;
use crate::time::Millis;

/// Less time left than this, and no resend is made: the shopper would be gone before its answer (spec section 3: 10 s).
pub const LEAST_TIME_LEFT: Millis = Millis::from_secs(10);
/// The shortest and the longest wait before a resend, uniform between (spec section 3: 20–60 ms).
pub const DELAY: (Millis, Millis) = (Millis::new(20), Millis::new(60));

/// Whether a lost confirm is sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Never.
    Off,
    /// Whenever there is time and a slot, however few are left: to measure what the budget prevents.
    Always,
    /// Only while enough slots are free that first sends lose nothing by it.
    Budget,
}

impl Policy {
    /// What ships (spec section 7: `budget`).
    pub const DEFAULT: Self = Self::Budget;

    /// How many slots must be free as a resend takes one, of a reserve of `reserve`.
    #[must_use]
    pub const fn slots_needed(self, reserve: u32) -> u32 {
        match self {
            Self::Off | Self::Always => 0,
            Self::Budget => reserve,
        }
    }
}

/// What was decided about one lost confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It was sent again.
    Sent,
    /// Too little of the shopper's time is left.
    NoTime,
    /// Fewer slots are free than the reserve.
    NoFreeSlots,
    /// The circuit is open.
    Circuit,
    /// It was tried, and no connection could be made.
    Connect,
    /// Recent confirms were resent too often already.
    Ratio,
    /// Resends are switched off, or the gateway knows no idempotency key.
    Off,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Self; 7] = [
        Self::Sent,
        Self::NoTime,
        Self::NoFreeSlots,
        Self::Circuit,
        Self::Connect,
        Self::Ratio,
        Self::Off,
    ];

    /// The label in `pg_resend_total{decision}`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::NoTime => "no_time",
            Self::NoFreeSlots => "no_free_slots",
            Self::Circuit => "circuit",
            Self::Connect => "connect",
            Self::Ratio => "ratio",
            Self::Off => "off",
        }
    }
}

/// Whether a loss may be followed by a resend: only where no answer came. An answer, however unhelpful, is followed by an
/// inquiry instead.
#[must_use]
pub const fn may_follow(lost: Lost) -> bool {
    match lost {
        Lost::TimedOut | Lost::Reset | Lost::Unreadable => true,
        Lost::Inconclusive | Lost::InProgress => false,
    }
}

/// How long to wait before a resend; `random` is uniform over all of `u32`.
#[must_use]
pub fn delay(random: u32) -> Millis {
    let (shortest, longest) = DELAY;
    let span = longest.less(shortest).get() + 1;
    let extra = u64::from(random) * span / (u64::from(u32::MAX) + 1);
    shortest.plus(Millis::new(extra))
}

/// A second gate beside the reserve: at most so many resends per thousand confirms of the last ten seconds.
///
/// Off as shipped. The lab holds it against the reserve: a ratio bounds the extra load, but cannot see that the slots are
/// full.
#[derive(Debug, Clone)]
pub struct RatioGate {
    per_mille: Option<u32>,
    /// First sends and resends of one second each, by that second's number.
    seconds: [(u64, u32, u32); Self::SECONDS],
}

impl RatioGate {
    const SECONDS: usize = 10;

    /// A gate of so many resends per thousand first sends; `None` lets all through.
    #[must_use]
    pub const fn new(per_mille: Option<u32>) -> Self {
        Self {
            per_mille,
            seconds: [(0, 0, 0); Self::SECONDS],
        }
    }

    fn slot(&mut self, now: Millis) -> &mut (u64, u32, u32) {
        let second = now.get() / 1_000;
        let index = usize::try_from(second % Self::SECONDS as u64).unwrap_or(0);
        let slot = &mut self.seconds[index];
        if slot.0 != second {
            *slot = (second, 0, 0);
        }
        slot
    }

    /// Counts a first send.
    pub fn sent(&mut self, now: Millis) {
        self.slot(now).1 += 1;
    }

    /// Counts a resend in, if the ratio allows it.
    pub fn try_resend(&mut self, now: Millis) -> bool {
        let oldest = (now.get() / 1_000).saturating_sub(Self::SECONDS as u64 - 1);
        let (sends, resends) = self
            .seconds
            .iter()
            .filter(|(second, ..)| *second >= oldest)
            .fold((0_u64, 0_u64), |(sends, resends), slot| {
                (sends + u64::from(slot.1), resends + u64::from(slot.2))
            });
        let allowed = self
            .per_mille
            .is_none_or(|per_mille| (resends + 1) * 1_000 <= sends * u64::from(per_mille));
        if allowed {
            self.slot(now).2 += 1;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_before_a_resend_is_uniform_between_its_bounds() {
        assert_eq!(delay(0), Millis::new(20));
        assert_eq!(delay(u32::MAX), Millis::new(60));
        assert_eq!(delay(u32::MAX / 2), Millis::new(40));
    }

    #[test]
    fn only_a_loss_without_an_answer_is_followed_by_a_resend() {
        assert!(may_follow(Lost::TimedOut) && may_follow(Lost::Reset));
        assert!(may_follow(Lost::Unreadable));
        assert!(!may_follow(Lost::Inconclusive) && !may_follow(Lost::InProgress));
    }

    #[test]
    fn the_budget_needs_the_reserve_and_always_needs_only_its_own_slot() {
        assert_eq!(Policy::DEFAULT, Policy::Budget);
        assert_eq!(Policy::Budget.slots_needed(4), 4);
        assert_eq!(Policy::Always.slots_needed(4), 0);
    }

    #[test]
    fn a_ratio_counts_the_last_ten_seconds_and_nothing_older() {
        let mut gate = RatioGate::new(Some(100));
        let at = Millis::from_secs(1_000);
        assert!(!gate.try_resend(at), "a tenth of nothing is nothing");
        for _ in 0..20 {
            gate.sent(at);
        }
        assert!(gate.try_resend(at) && gate.try_resend(at));
        assert!(!gate.try_resend(at));
        let later = at.plus(Millis::from_secs(9));
        assert!(!gate.try_resend(later));
        for _ in 0..10 {
            gate.sent(later);
        }
        assert!(gate.try_resend(later), "three of thirty");
        let much_later = at.plus(Millis::from_secs(10));
        assert!(!gate.try_resend(much_later), "one of ten was used");
        assert!(RatioGate::new(None).try_resend(at));
    }
}
