//! The cap on confirms in flight at one gateway: full means refused at once, never queued.
//!
//! Where several nodes share the cap, each has a limit below it that moves as nodes come and go; what is in flight above a
//! limit that shrank simply ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use payment::time::Millis;

/// The slots of one gateway; clones share them.
#[derive(Debug, Clone)]
pub struct Slots {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cap: Option<u32>,
    /// This node's share of the cap; `u32::MAX` without a cap.
    limit: AtomicU32,
    /// How many slots must be free as a resend takes one.
    reserve: AtomicU32,
    /// Until when the share may be used, by the process's clock; `u64::MAX` for ever.
    lent_until: AtomicU64,
    in_flight: AtomicU32,
    peak: AtomicU32,
}

/// One confirm's place; dropping it gives the place back.
#[must_use = "a slot is given back as soon as it is dropped"]
#[derive(Debug)]
pub struct Slot {
    shared: Arc<Shared>,
}

impl Slots {
    /// As many slots as `cap` says; `None` counts without ever refusing. `reserve` is what resends leave free.
    #[must_use]
    pub fn new(cap: Option<u32>, reserve: u32) -> Self {
        Self {
            shared: Arc::new(Shared {
                cap,
                limit: AtomicU32::new(cap.unwrap_or(u32::MAX)),
                reserve: AtomicU32::new(reserve),
                lent_until: AtomicU64::new(u64::MAX),
                in_flight: AtomicU32::new(0),
                peak: AtomicU32::new(0),
            }),
        }
    }

    /// Takes a slot for a first send; `None` at once when all are taken.
    pub fn try_take(&self) -> Option<Slot> {
        self.try_take_leaving(0)
    }

    /// Takes a slot for a resend, only if at least `reserve` slots are free at that moment (the one taken included).
    ///
    /// Test and take are one atomic step, so two resends can never both count on the same free slots.
    pub fn try_take_leaving(&self, reserve: u32) -> Option<Slot> {
        let shared = &self.shared;
        // Without a reserve the slot itself must still be free.
        let needed = reserve.max(1);
        let taken = shared
            .in_flight
            .try_update(Ordering::AcqRel, Ordering::Acquire, |in_flight| {
                let limit = shared.limit.load(Ordering::Acquire);
                (limit.saturating_sub(in_flight) >= needed).then(|| in_flight + 1)
            })
            .ok()?;
        shared.peak.fetch_max(taken + 1, Ordering::AcqRel);
        Some(Slot {
            shared: Arc::clone(shared),
        })
    }

    /// Takes a slot as [`Slots::try_take_leaving`] does, while this node's share is its own: a process that stood still
    /// must not use at its first step what others may have by now.
    pub fn try_take_at(&self, now: Millis, reserve: u32) -> Option<Slot> {
        self.is_lent_at(now)
            .then(|| self.try_take_leaving(reserve))
            .flatten()
    }

    /// Whether this node's share is its own.
    #[must_use]
    pub fn is_lent_at(&self, now: Millis) -> bool {
        now.get() < self.shared.lent_until.load(Ordering::Acquire)
    }

    /// Until when this node's share may be used, by the process's clock.
    pub fn lend_until(&self, until: Millis) {
        self.shared.lent_until.store(until.get(), Ordering::Release);
    }

    /// How many slots are taken now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.shared.in_flight.load(Ordering::Acquire)
    }

    /// The most slots that were ever taken at once.
    #[must_use]
    pub fn peak(&self) -> u32 {
        self.shared.peak.load(Ordering::Acquire)
    }

    /// How many slots there are for all nodes; `None` is no cap.
    #[must_use]
    pub fn cap(&self) -> Option<u32> {
        self.shared.cap
    }

    /// How many of them this node may use now.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.shared.limit.load(Ordering::Acquire)
    }

    /// How many must be free as a resend takes one.
    #[must_use]
    pub fn reserve(&self) -> u32 {
        self.shared.reserve.load(Ordering::Acquire)
    }

    /// Gives this node another share of cap and reserve; without a cap there is nothing to share.
    pub fn set_share(&self, limit: u32, reserve: u32) {
        if let Some(cap) = self.shared.cap {
            self.shared.reserve.store(reserve, Ordering::Release);
            self.shared.limit.store(limit.min(cap), Ordering::Release);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_full_cap_refuses_at_once_and_a_dropped_slot_is_free_again() {
        let slots = Slots::new(Some(2), 1);
        let first = slots.try_take().unwrap();
        let second = slots.try_take().unwrap();
        assert!(slots.try_take().is_none());
        assert_eq!((slots.in_flight(), slots.peak()), (2, 2));
        drop(first);
        assert_eq!(slots.in_flight(), 1);
        let third = slots.try_take();
        assert!(third.is_some());
        drop((second, third));
        assert_eq!((slots.in_flight(), slots.peak()), (0, 2));
    }

    #[test]
    fn a_resend_needs_the_reserve_free_and_a_first_send_does_not() {
        let slots = Slots::new(Some(5), 4);
        let _first = slots.try_take().unwrap();
        // Four are free: exactly the reserve.
        let resend = slots.try_take_leaving(4);
        assert!(resend.is_some());
        assert!(slots.try_take_leaving(4).is_none());
        assert!(slots.try_take().is_some());
        drop(resend);
        assert!(slots.try_take_leaving(4).is_some());
    }

    #[test]
    fn no_reserve_never_means_more_than_the_cap_and_no_slots_means_none() {
        assert!(Slots::new(Some(0), 0).try_take_leaving(0).is_none());
        let slots = Slots::new(Some(1), 0);
        let _only = slots.try_take_leaving(0).unwrap();
        assert!(slots.try_take_leaving(0).is_none());
    }

    #[test]
    fn a_share_that_shrinks_refuses_until_enough_has_ended_and_never_exceeds_the_cap() {
        let slots = Slots::new(Some(4), 1);
        let mut taken: Vec<_> = (0..4).map(|_| slots.try_take().unwrap()).collect();
        slots.set_share(2, 1);
        assert!(slots.try_take().is_none());
        taken.truncate(2);
        assert!(slots.try_take().is_none(), "two of two are taken");
        taken.truncate(1);
        taken.push(slots.try_take().unwrap());
        slots.set_share(9, 1);
        assert_eq!((slots.limit(), slots.cap()), (4, Some(4)));
        slots.set_share(0, 0);
        taken.clear();
        assert!(slots.try_take().is_none());
    }

    #[test]
    fn a_share_is_not_used_after_its_time() {
        let slots = Slots::new(Some(4), 1);
        assert!(slots.try_take_at(Millis::new(u64::MAX - 1), 0).is_some());
        slots.lend_until(Millis::new(5_000));
        let first = slots.try_take_at(Millis::new(4_999), 0);
        assert!(first.is_some());
        assert!(slots.try_take_at(Millis::new(5_000), 0).is_none());
        slots.lend_until(Millis::new(6_000));
        assert!(slots.try_take_at(Millis::new(5_000), 3).is_some());
        assert!(slots.try_take_at(Millis::new(5_000), 4).is_none());
    }

    #[test]
    fn without_a_cap_everything_is_counted_and_nothing_refused() {
        let slots = Slots::new(None, 0);
        let taken: Vec<_> = (0..1_000)
            .map(|_| slots.try_take_leaving(100).unwrap())
            .collect();
        assert_eq!((slots.cap(), slots.in_flight()), (None, 1_000));
        drop(taken);
        assert_eq!((slots.in_flight(), slots.peak()), (0, 1_000));
    }

    #[test]
    fn many_threads_never_exceed_the_cap_and_all_slots_come_back() {
        const THREADS: usize = 8;
        const CAP: u32 = 3;
        let slots = Slots::new(Some(CAP), 1);
        let holding = AtomicU32::new(0);
        let start = Barrier::new(THREADS);
        let granted: u32 = thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|worker| {
                    let (slots, holding, start) = (slots.clone(), &holding, &start);
                    scope.spawn(move || {
                        start.wait();
                        let mut granted = 0;
                        for round in 0..2_000 {
                            let reserve = u32::try_from((worker + round) % 3).unwrap();
                            if let Some(slot) = slots.try_take_leaving(reserve) {
                                // Counted apart from the slots, so that they cannot vouch for themselves.
                                let now = holding.fetch_add(1, Ordering::SeqCst) + 1;
                                assert!(now <= CAP, "{now} slots were held at once");
                                thread::yield_now();
                                holding.fetch_sub(1, Ordering::SeqCst);
                                drop(slot);
                                granted += 1;
                            }
                        }
                        granted
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .sum()
        });
        assert!(granted > 0);
        assert!(slots.peak() <= CAP);
        assert_eq!(slots.in_flight(), 0);
        let all: Vec<_> = (0..CAP).map(|_| slots.try_take().unwrap()).collect();
        assert!(slots.try_take().is_none());
        drop(all);
    }
}
