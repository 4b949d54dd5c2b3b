//! What several experiments share whose runs are not cases of one table: figures told from each run, scenes that follow
//! from their seed, and words made of figures.

use std::collections::BTreeMap;

use payment::time::Millis;
use simulation::scene::{Ran, Scene, play};

use super::measure::{Figures, Size, note, on_all_cores, percentile, spread};
use crate::plan::{Condition, Findings, Regret};
use crate::stats::{rounded, share};

/// Lines for a plan.
pub(super) fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Notes what each run gave for a criterion: the median is judged, and told among the figures of its condition.
pub(super) fn tell(
    findings: &mut Findings,
    condition: &mut Condition,
    id: &str,
    values: impl IntoIterator<Item = f64>,
) -> f64 {
    let values: Vec<_> = values.into_iter().collect();
    let median = middle(values.iter().copied());
    condition.figure(id, rounded(median));
    note(findings, id, &values);
    median
}

/// The median of values.
pub(super) fn middle(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<_> = values.into_iter().collect();
    spread(&values).map_or(f64::NAN, |spread| spread.median)
}

/// What a criterion came to, for people: as many digits as mean something.
pub(super) fn said(findings: &Findings, id: &str) -> String {
    match findings.value(id) {
        None => "nothing".to_owned(),
        Some(value) if value.is_infinite() => "never".to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) => {
            let digits = if value.abs() >= 10.0 { 1 } else { 2 };
            let text = format!("{value:.digits$}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            text.to_owned()
        }
    }
}

/// A condition whose scene follows from its seed.
pub(super) struct Asked<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// What the ids of its criteria begin with.
    pub(super) id: &'a str,
    /// How many seeds.
    pub(super) runs: u64,
    /// Whether everything must be known before a run's end.
    pub(super) drains: bool,
}

impl<'a> Asked<'a> {
    /// A condition in which everything must become known.
    pub(super) const fn new(name: &'a str, id: &'a str, size: Size) -> Self {
        Self {
            name,
            id,
            runs: size.seeds(),
            drains: true,
        }
    }
}

/// One run, reduced.
struct Reduced {
    figures: Figures,
    regret: Regret,
    received: u64,
    shoppers: usize,
    drained: bool,
}

/// Plays a scene from its seeds, notes what must hold, tells each figure, and adds the condition.
pub(super) fn ask(
    findings: &mut Findings,
    asked: &Asked<'_>,
    scene: impl Fn(u64) -> Scene + Sync,
    figures: impl Fn(&Ran, u64) -> Figures + Sync,
) {
    let reduce = |seed| {
        let ran = play(&scene(seed));
        Reduced {
            figures: figures(&ran, seed),
            regret: regret(&ran),
            received: ran.books.received,
            shoppers: ran.seen.len(),
            drained: ran.drained,
        }
    };
    let runs = usize::try_from(asked.runs).unwrap_or(usize::MAX);
    let all = on_all_cores(runs, |place| reduce(place as u64 + 1));
    let mut condition = Condition::default();
    condition.figure("runs", all.len());
    let least = all.iter().map(|one| one.received).min().unwrap_or(0);
    condition.check("the gateway saw confirms", least > 0, least);
    let fewest = all.iter().map(|one| one.shoppers).min().unwrap_or(0);
    condition.check("shoppers came", fewest > 0, fewest);
    if asked.drains {
        let drained = all.iter().all(|one| one.drained);
        condition.check("everything became known", drained, drained);
    }
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in all.iter().flat_map(|one| &one.figures) {
        values.entry(name).or_default().push(*value);
    }
    for (name, values) in values {
        let id = format!("{}-{name}", asked.id);
        tell(findings, &mut condition, &id, values);
    }
    let mut sum = findings.regret.unwrap_or_default();
    for one in &all {
        sum = add(sum, one.regret);
    }
    findings.regret = Some(sum);
    findings.add(asked.name, condition);
}

fn regret(ran: &Ran) -> Regret {
    let regret = ran.regret;
    Regret {
        shoppers: regret.shoppers,
        false_failures: regret.false_failures,
        false_successes: regret.false_successes,
        double_charges: regret.double_charges,
        in_doubt: regret.in_doubt,
        left_in_doubt: regret.left_in_doubt,
        doubt_ms: regret.doubt_ms,
        longest_doubt_ms: regret.longest_doubt_ms,
    }
}

fn add(one: Regret, other: Regret) -> Regret {
    Regret {
        shoppers: one.shoppers + other.shoppers,
        false_failures: one.false_failures + other.false_failures,
        false_successes: one.false_successes + other.false_successes,
        double_charges: one.double_charges + other.double_charges,
        in_doubt: one.in_doubt + other.in_doubt,
        left_in_doubt: one.left_in_doubt + other.left_in_doubt,
        doubt_ms: one.doubt_ms + other.doubt_ms,
        longest_doubt_ms: one.longest_doubt_ms.max(other.longest_doubt_ms),
    }
}

/// What shoppers were told wrongly, or charged twice: nothing but 0 is right.
pub(super) fn wrongs(ran: &Ran) -> f64 {
    let regret = ran.regret;
    (regret.false_failures + regret.false_successes + regret.double_charges) as f64
}

/// The nearest-rank percentile of some times, in seconds; 0 of nothing.
pub(super) fn seconds_at(times: &[Millis], percent: f64) -> f64 {
    let times = times.iter().map(|time| seconds(*time));
    percentile(times, percent).unwrap_or(0.0)
}

/// A part of a whole in percent.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    100.0 * share(part, whole)
}

/// Seconds of a span.
pub(super) fn seconds(span: Millis) -> f64 {
    span.to_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_in_an_answer_have_the_digits_that_mean_something() {
        let mut findings = Findings::default();
        let texts = [
            (9_758.674, "9759"),
            (14.52, "14.5"),
            (1.0, "1"),
            (1.152, "1.15"),
            (0.0, "0"),
            (f64::INFINITY, "never"),
        ];
        for (value, text) in texts {
            findings.measure("x", value);
            assert_eq!(said(&findings, "x"), text);
        }
        assert_eq!(said(&findings, "y"), "nothing");
    }

    #[test]
    fn what_is_told_is_judged_shown_and_spread() {
        let (mut findings, mut condition) = (Findings::default(), Condition::default());
        assert_eq!(
            tell(&mut findings, &mut condition, "x", [4.0, 1.0, 2.0]),
            2.0
        );
        assert_eq!(findings.value("x"), Some(2.0));
        assert_eq!(condition.figures["x"], 2.0);
        assert_eq!(
            (findings.spreads["x"].least, findings.spreads["x"].most),
            (1.0, 4.0)
        );
    }
}
