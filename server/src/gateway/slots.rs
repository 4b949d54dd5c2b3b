//! The cap on confirms in flight: a slot is taken at once or not at all, never queued for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug, Default)]
struct Counts {
    in_flight: AtomicU32,
    peak: AtomicU32,
}

/// The slots of one gateway.
#[derive(Debug, Clone)]
pub struct Slots {
    cap: Option<u32>,
    counts: Arc<Counts>,
}

/// One taken slot; free again when dropped, however that comes about.
#[derive(Debug)]
#[must_use]
pub struct Slot {
    counts: Arc<Counts>,
}

impl Slots {
    /// As many slots as the cap; `None` is no cap.
    #[must_use]
    pub fn new(cap: Option<u32>) -> Self {
        Self {
            cap,
            counts: Arc::default(),
        }
    }

    /// Takes a slot if one is free.
    #[must_use]
    pub fn try_take(&self) -> Option<Slot> {
        self.try_take_if_free(1)
    }

    /// Takes a slot if at least `reserve` are free at that moment: the test and the take are one atomic step.
    #[must_use]
    pub fn try_take_leaving(&self, reserve: u32) -> Option<Slot> {
        self.try_take_if_free(reserve.max(1))
    }

    fn try_take_if_free(&self, needed: u32) -> Option<Slot> {
        let most = self
            .cap
            .map_or(Some(u32::MAX - 1), |cap| cap.checked_sub(needed))?;
        let taken =
            self.counts
                .in_flight
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                    (now <= most).then(|| now + 1)
                });
        let now = taken.ok()? + 1;
        self.counts.peak.fetch_max(now, Ordering::Relaxed);
        Some(Slot {
            counts: Arc::clone(&self.counts),
        })
    }

    /// Slots in use now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.counts.in_flight.load(Ordering::Acquire)
    }

    /// The most that were ever in use at once.
    #[must_use]
    pub fn peak(&self) -> u32 {
        self.counts.peak.load(Ordering::Relaxed)
    }

    /// The cap.
    #[must_use]
    pub const fn cap(&self) -> Option<u32> {
        self.cap
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.counts.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cap_refuses_at_once_and_a_dropped_slot_is_free_again() {
        let slots = Slots::new(Some(2));
        let (first, second) = (slots.try_take(), slots.try_take());
        assert!(first.is_some() && second.is_some() && slots.try_take().is_none());
        drop(first);
        assert!(slots.try_take().is_some());
        assert_eq!(slots.peak(), 2);
    }

    #[test]
    fn a_resend_needs_the_reserve_free_before_it_takes_its_own() {
        let slots = Slots::new(Some(5));
        let held: Vec<_> = (0..2).map(|_| slots.try_take()).collect();
        assert!(slots.try_take_leaving(4).is_none());
        assert!(slots.try_take_leaving(3).is_some());
        assert_eq!(held.len(), 2);
    }

    #[test]
    fn threads_never_exceed_the_cap() {
        let slots = Slots::new(Some(3));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        if let Some(slot) = slots.try_take() {
                            assert!(slots.in_flight() <= 3);
                            drop(slot);
                        }
                    }
                });
            }
        });
        assert_eq!(slots.in_flight(), 0);
        assert!(slots.peak() <= 3);
    }

    #[test]
    fn without_a_cap_every_slot_is_had() {
        let slots = Slots::new(None);
        let held: Vec<_> = (0..1_000).filter_map(|_| slots.try_take()).collect();
        assert_eq!(held.len(), 1_000);
    }
}
