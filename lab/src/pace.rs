//! The open loop: arrivals at fixed moments, whatever the server does.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::stats::Latencies;

/// From the last preparation to the first arrival.
const LEAD: Duration = Duration::from_millis(300);
/// The warm-up of the published runs B and E, probably A1: 10 a second for 15 seconds, included in the counts.
const WARM_UP: (u32, u32) = (10, 15);

/// Evenly spaced arrivals, in phases of (arrivals a second, seconds).
#[derive(Debug, Clone)]
pub(crate) struct Pace(Vec<(u32, u32)>);

impl Pace {
    /// One rate.
    pub(crate) fn steady(per_second: u32, seconds: u32) -> Self {
        Self(vec![(per_second, seconds)])
    }

    /// One rate after the published warm-up, which a quick run shortens.
    pub(crate) fn warmed(per_second: u32, seconds: u32, quick: bool) -> Self {
        let (rate, full) = WARM_UP;
        let warm_up = if quick { 2 } else { full };
        Self(vec![(rate, warm_up), (per_second, seconds)])
    }

    /// For people.
    pub(crate) fn says(&self) -> String {
        let phase = |(rate, seconds): &(u32, u32)| format!("{rate}/s for {seconds} s");
        let phases: Vec<_> = self.0.iter().map(phase).collect();
        phases.join(", then ")
    }

    /// How many arrive.
    pub(crate) fn len(&self) -> usize {
        self.0
            .iter()
            .map(|(rate, seconds)| (rate * seconds) as usize)
            .sum()
    }

    /// How long they arrive, in seconds.
    pub(crate) fn seconds(&self) -> u32 {
        self.0.iter().map(|(_, seconds)| seconds).sum()
    }

    /// How long the warm-up lasts: all phases but the last.
    pub(crate) fn warm_up(&self) -> Duration {
        let last = self.0.last().map_or(0, |(_, seconds)| *seconds);
        Duration::from_secs(u64::from(self.seconds() - last))
    }

    /// When the arrivals are due, from the start.
    fn offsets(&self) -> impl Iterator<Item = Duration> + '_ {
        let mut begin = 0;
        self.0.iter().flat_map(move |&(rate, seconds)| {
            let from = begin;
            begin += seconds;
            (0..rate * seconds).map(move |index| {
                Duration::from_secs_f64(f64::from(from) + f64::from(index) / f64::from(rate))
            })
        })
    }
}

/// What became of the arrivals.
#[derive(Debug)]
pub(crate) struct Driven<T> {
    /// When each was due, from the start, and what came of it; in the order of their arrival.
    pub(crate) arrived: Vec<(Duration, T)>,
    /// How much later than due each began.
    pub(crate) late: Latencies,
}

impl<T> Driven<T> {
    /// What came of all, without when.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &T> {
        self.arrived.iter().map(|(_, outcome)| outcome)
    }
}

/// The moment at which a load of several loops starts.
pub(crate) fn soon() -> Instant {
    Instant::now() + LEAD
}

/// Starts one task for each item at its moment, with that moment, and waits for all of them. Items beyond the pace's
/// arrivals do not arrive.
pub(crate) async fn drive<I, T, F, Work>(
    pace: &Pace,
    start: Instant,
    items: impl IntoIterator<Item = I>,
    work: F,
) -> anyhow::Result<Driven<T>>
where
    F: Fn(I, Instant) -> Work,
    Work: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut running = Vec::with_capacity(pace.len());
    let mut late = Vec::with_capacity(pace.len());
    for (offset, item) in pace.offsets().zip(items) {
        let due = start + offset;
        tokio::time::sleep_until(due.into()).await;
        late.push(due.elapsed());
        running.push((offset, tokio::spawn(work(item, due))));
    }
    let mut arrived = Vec::with_capacity(running.len());
    for (offset, task) in running {
        arrived.push((offset, task.await.context("an arrival's task")?));
    }
    Ok(Driven {
        arrived,
        late: Latencies::of(late),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_evenly_spaced_through_all_phases() {
        let pace = Pace(vec![(10, 2), (50, 1)]);
        let offsets: Vec<_> = pace.offsets().map(|offset| offset.as_millis()).collect();
        assert_eq!((pace.len(), pace.seconds(), offsets.len()), (70, 3, 70));
        assert_eq!(
            (offsets[1], offsets[19], offsets[20], offsets[21]),
            (100, 1_900, 2_000, 2_020)
        );
        assert_eq!(pace.warm_up(), Duration::from_secs(2));
        assert_eq!(Pace::warmed(30, 60, false).len(), 1_950);
    }

    #[tokio::test]
    async fn every_item_arrives_and_keeps_its_place() {
        let pace = Pace::steady(1_000, 1);
        let work = |item: usize, _| async move { item };
        let driven = drive(&pace, Instant::now(), 0..20, work).await.unwrap();
        let outcomes: Vec<_> = driven.outcomes().copied().collect();
        assert_eq!(outcomes, (0..20).collect::<Vec<_>>());
        assert_eq!(driven.late.len(), 20);
    }
}
