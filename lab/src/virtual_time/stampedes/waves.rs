//! What the stampedes of several questions share: the published crowd and gateway, and how waves are counted.

use std::time::Duration;

use crate::plan::Condition;
use crate::stampede::{
    Arrival, Begin, Crowd, Gateway, Hang, Holds, Kind, Ran, Retry, Scene, Schedule, When,
};

/// The published crowd (measurements D): so many clients at once, each with so much patience.
pub(super) const CLIENTS: usize = 150;
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);
/// The published gateway stands still for so long.
pub(super) const HANG: Duration = Duration::from_secs(8);
/// The published first step of the retries.
pub(super) const FIRST: Duration = Duration::from_millis(500);
/// How far the clients' beginnings lie apart. Not stated; two of the three published peaks without jitter, 141 and 121 of
/// 150, are a wave that a bin's edge cut, which is what three fifths of a bin's width of noise does.
pub(super) const NOISE: Duration = Duration::from_millis(60);
/// The published bins: arrivals are counted by them.
pub(super) const BIN: Duration = Duration::from_millis(100);
/// A finer one.
pub(super) const FINE: Duration = Duration::from_millis(10);

/// A retry schedule with the published patience.
pub(super) const fn retry(schedule: Schedule, first: Duration, tries: u32) -> Retry {
    Retry {
        schedule,
        first,
        longest: Duration::from_secs(60),
        tries,
        timeout: TIMEOUT,
    }
}

/// Clients that begin together at a moment.
pub(super) fn together(clients: usize, at: Duration, asks: &[Kind], retry: Retry) -> Crowd {
    Crowd {
        clients,
        begin: Begin::Together { at, noise: NOISE },
        asks: asks.to_vec(),
        retry,
    }
}

/// The published scene: everybody at once at a gateway that stands still before its work and lets go of whoever hung up.
pub(super) fn published(retry: Retry, seed: u64) -> Scene {
    let gateway = Gateway {
        hang: Some(Hang {
            when: When::Before,
            lasts: HANG,
            until: None,
        }),
        holds: Holds::Connection,
        works_on: false,
        ..Gateway::healthy(Duration::from_millis(10))
    };
    Scene {
        crowds: vec![together(CLIENTS, Duration::ZERO, &[Kind::Confirm], retry)],
        gateway,
        reset_at: None,
        seed,
    }
}

/// What every stampede must show to prove anything.
pub(super) fn guard(condition: &mut Condition, scene: &Scene, runs: &[Ran]) {
    let clients: usize = scene.crowds.iter().map(|crowd| crowd.clients).sum();
    let least = runs.iter().map(|ran| ran.arrivals.len()).min();
    let least = least.unwrap_or(0);
    condition.check("the gateway saw every client", least >= clients, least);
    let ended = runs.iter().all(|ran| ran.took.len() == clients);
    condition.check("every client came to its end", ended, ended);
    condition.figure("runs", runs.len());
}

/// How many requests came in each span of `width` of a run, as points in seconds.
pub(super) fn histogram(moments: &[Duration], width: Duration) -> Vec<(f64, f64)> {
    let number = |moment: Duration| moment.as_nanos() / width.as_nanos();
    let last = moments.last().map_or(0, |last| number(*last));
    (0..=last + 1)
        .map(|bin| {
            let count = moments.iter().filter(|one| number(**one) == bin).count();
            (bin as f64 * width.as_secs_f64(), count as f64)
        })
        .collect()
}

/// What the published count leaves out: the first second, whose wave the clients made and no retry.
pub(super) fn after_the_first(arrival: &Arrival) -> bool {
    arrival.at >= Duration::from_secs(1)
}
