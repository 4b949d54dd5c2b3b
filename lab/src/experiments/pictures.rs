//! The pictures that several experiments draw of their figures.

use std::time::Instant;

use crate::harness::gateway::Ledger;
use crate::harness::sampler::Samples;
use crate::plan::{Line, Mark, Plot};
use crate::shopper::Seen;
use crate::stats::{ms, rounded, share};

/// More points than that of one line tell no more.
const MOST_POINTS: usize = 200;

/// A line.
pub(super) fn line(name: &str, mark: Mark, points: Vec<(f64, f64)>) -> Line {
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    let kept = kept.filter(|(index, _)| index % step == 0 || *index == last);
    Line {
        name: name.to_owned(),
        mark,
        points: kept
            .map(|(_, (across, up))| (rounded(across), rounded(up)))
            .collect(),
    }
}

/// A picture with a plain axis.
pub(super) fn plot(title: &str, across: &str, up: &str, lines: Vec<Line>) -> Plot {
    Plot {
        title: title.to_owned(),
        across: across.to_owned(),
        up: up.to_owned(),
        log_across: false,
        lines,
    }
}

/// The share of shoppers who know, by the time since their confirm.
pub(super) fn known<'a>(name: &str, seen: impl Iterator<Item = &'a Seen>) -> Line {
    let all: Vec<_> = seen.collect();
    let mut took: Vec<_> = all
        .iter()
        .filter(|one| one.is_known())
        .map(|one| one.took)
        .collect();
    took.sort_unstable();
    let point = |(index, took): (usize, &std::time::Duration)| {
        let percent = 100.0 * share(index as u64 + 1, all.len() as u64);
        (ms(*took) / 1_000.0, percent)
    };
    line(
        name,
        Mark::Steps,
        took.iter().enumerate().map(point).collect(),
    )
}

/// The picture of [`known`] lines.
pub(super) fn known_plot(lines: Vec<Line>) -> Plot {
    let title =
        "How many shoppers know what became of their payment, by the time since they confirmed";
    plot(
        title,
        "time since the confirm, s",
        "shoppers who know, %",
        lines,
    )
}

/// The slots in use over time.
pub(super) fn slots(name: &str, samples: &Samples, start: Instant) -> Line {
    line(name, Mark::Steps, samples.points(start))
}

/// The picture of [`slots`] lines.
pub(super) fn slots_plot(lines: Vec<Line>) -> Plot {
    let title = "Confirms in flight at the gateway over time, as the server counts them";
    plot(title, "time, s", "confirms in flight", lines)
}

/// The gateway's confirms in bins, from the first of them on.
pub(super) fn arrivals(name: &str, ledger: &Ledger, bin_ms: u64) -> Line {
    let bins = ledger.arrivals();
    let first = bins.first().map_or(0, |(at, _)| *at);
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    for (at, count) in bins {
        *counts.entry((at - first) / bin_ms).or_default() += count;
    }
    let point = |(bin, count): (u64, u64)| ((bin * bin_ms) as f64 / 1_000.0, count as f64);
    Line {
        name: name.to_owned(),
        mark: Mark::Bars,
        points: counts.into_iter().map(point).collect(),
    }
}
