//! Plays every case from many seeds on all cores, and keeps the figures: medians judge, spreads tell how far runs lie apart.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use payment::view::Stage;
use simulation::scene::{Client, Ran, Regret as SceneRegret, Scene, play};

use crate::plan::{Condition, Findings, Line, Mark, Regret, Spread};
use crate::stats::rounded;

/// How much is run: all of it, or what shows within minutes that everything works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// The long set.
    pub(crate) full: bool,
}

/// Runs of each case in the long set, for a spread that can be trusted.
const SEEDS: u64 = 30;
/// Runs of each case in the short set: the least that has a spread.
const FEW_SEEDS: u64 = 3;

impl Size {
    /// One of two values.
    pub(crate) const fn pick<T: Copy>(self, full: T, short: T) -> T {
        if self.full { full } else { short }
    }

    /// How many runs each case has.
    pub(crate) const fn seeds(self) -> u64 {
        self.pick(SEEDS, FEW_SEEDS)
    }
}

/// One condition, played once for each seed.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Its name in the report.
    pub(crate) name: String,
    /// What is played; the seed is set for each run.
    pub(crate) scene: Scene,
    /// Whether something is to stay open at the end: then that is no fault of the run.
    pub(crate) stays_open: bool,
    /// Whether more than one charge of an order is what is measured.
    pub(crate) charges_twice: bool,
}

impl Case {
    /// A case that must come to its end.
    pub(crate) fn new(name: impl Into<String>, scene: Scene) -> Self {
        Self {
            name: name.into(),
            scene,
            stays_open: false,
            charges_twice: false,
        }
    }
}

/// The figures of one run, by name.
pub(crate) type Figures = Vec<(&'static str, f64)>;

/// What a run came to, as far as it is kept.
struct Kept {
    figures: Figures,
    regret: SceneRegret,
    faults: Vec<String>,
}

/// All figures of an experiment: by case and name, in the order of the seeds.
#[derive(Debug, Default)]
pub(crate) struct Table {
    values: BTreeMap<(String, &'static str), Vec<f64>>,
}

impl Table {
    /// The values of a figure, one for each seed; none for a figure that is not there.
    pub(crate) fn of(&self, case: &str, figure: &'static str) -> &[f64] {
        let key = (case.to_owned(), figure);
        self.values.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The median of a figure.
    pub(crate) fn median(&self, case: &str, figure: &'static str) -> f64 {
        spread(self.of(case, figure)).map_or(f64::NAN, |spread| spread.median)
    }

    /// A figure of one case against one of another, seed by seed.
    pub(crate) fn pairs(
        &self,
        one: (&str, &'static str),
        other: (&str, &'static str),
        with: impl Fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        let both = self.of(one.0, one.1).iter().zip(self.of(other.0, other.1));
        both.map(|(one, other)| with(*one, *other)).collect()
    }

    /// The medians of a figure over cases that have a place on an axis.
    pub(crate) fn points<'a>(
        &self,
        cases: impl IntoIterator<Item = (f64, &'a str)>,
        figure: &'static str,
    ) -> Vec<(f64, f64)> {
        let cases = cases.into_iter();
        cases
            .map(|(across, case)| (across, rounded(self.median(case, figure))))
            .filter(|(_, up)| up.is_finite())
            .collect()
    }

    /// Notes the median of a figure as the value of a criterion, with its spread.
    pub(crate) fn judge(
        &self,
        findings: &mut Findings,
        id: &str,
        case: &str,
        figure: &'static str,
    ) {
        note(findings, id, self.of(case, figure));
    }
}

/// Notes the median of values as the value of a criterion, with their spread.
pub(crate) fn note(findings: &mut Findings, id: &str, values: &[f64]) {
    if let Some(spread) = spread(values) {
        findings.measure(id, spread.median);
        findings.spreads.insert(id.to_owned(), spread);
    }
}

/// How far values lie apart; `None` of nothing, or where one is no number.
pub(crate) fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    if sorted.is_empty() || sorted.iter().any(|value| value.is_nan()) {
        return None;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let middle = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    };
    let mean = sorted.iter().sum::<f64>() / count;
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Spread {
        runs: sorted.len(),
        least: sorted[0],
        median,
        most: sorted[sorted.len() - 1],
        deviation: rounded((squares / (count - 1.0).max(1.0)).sqrt()),
    })
}

/// Runs `count` pieces of work on all cores; the results in the order of the pieces.
pub(crate) fn on_all_cores<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let result = work(index);
                    let mut results = results.lock().expect("no worker panics with the lock");
                    results[index] = Some(result);
                }
            });
        }
    });
    let results = results
        .into_inner()
        .expect("no worker panics with the lock");
    results.into_iter().flatten().collect()
}

/// Plays all cases from all seeds, notes a condition for each case with its checks and medians, and gives the table.
pub(crate) fn measure(
    size: Size,
    cases: &[Case],
    findings: &mut Findings,
    figures: impl Fn(&Case, &Ran) -> Figures + Sync,
) -> Table {
    let seeds = size.seeds() as usize;
    let kept = on_all_cores(cases.len() * seeds, |index| {
        let case = &cases[index / seeds];
        let scene = Scene {
            seed: (index % seeds) as u64 + 1,
            ..case.scene.clone()
        };
        let ran = play(&scene);
        Kept {
            figures: figures(case, &ran),
            regret: if scene.shoppers.client == Client::Page {
                ran.regret
            } else {
                SceneRegret::default()
            },
            faults: faults(case, &ran),
        }
    });
    let mut table = Table::default();
    let mut regret = SceneRegret::default();
    for (case, runs) in cases.iter().zip(kept.chunks(seeds)) {
        for (name, value) in runs.iter().flat_map(|run| &run.figures) {
            let values = table.values.entry((case.name.clone(), *name));
            values.or_default().push(*value);
        }
        let of_case = runs
            .iter()
            .fold(SceneRegret::default(), |sum, run| sum.and(run.regret));
        regret = regret.and(of_case);
        findings.add(case.name.clone(), condition(&case.name, runs, &table));
    }
    findings.regret = (regret.shoppers > 0).then(|| of_scenes(regret));
    table
}

fn condition(case: &str, runs: &[Kept], table: &Table) -> Condition {
    let mut condition = Condition::default();
    let faults: Vec<_> = runs.iter().flat_map(|run| &run.faults).collect();
    let seen = faults.first().map_or_else(
        || format!("{} runs", runs.len()),
        |first| format!("{} faults, the first: {first}", faults.len()),
    );
    condition.check(
        "every run saw traffic, kept the cap and the truth, and came to its end",
        faults.is_empty() && !runs.is_empty(),
        seen,
    );
    condition.figure("runs", runs.len());
    for (name, _) in runs.iter().take(1).flat_map(|run| &run.figures) {
        let found = spread(table.of(case, name));
        condition.figure(name, found.map(|spread| rounded(spread.median)));
    }
    condition
}

/// What makes a run prove nothing.
fn faults(case: &Case, ran: &Ran) -> Vec<String> {
    let mut faults = Vec::new();
    let mut unless = |holds: bool, what: String| {
        if !holds {
            faults.push(what);
        }
    };
    unless(
        ran.books.received > 0,
        "the gateway saw no traffic".to_owned(),
    );
    unless(!ran.seen.is_empty(), "nobody came".to_owned());
    let open = ran.ends.open;
    unless(
        ran.drained || case.stays_open,
        format!("{open} attempts stayed open"),
    );
    let one_node = case.scene.server.nodes <= 1;
    if let Some(cap) = case.scene.server.times.cap.filter(|_| one_node) {
        let peak = ran.slots_peak;
        unless(peak <= cap, format!("{peak} confirms in flight"));
    }
    let told = ran.regret;
    let pages = case.scene.shoppers.client == Client::Page;
    let false_words = told.false_failures + told.false_successes;
    unless(!pages || false_words == 0, format!("{told:?}"));
    let twice = ran.count(|seen| seen.charged_ever > 1);
    unless(
        twice == 0 || case.charges_twice,
        format!("{twice} orders were charged twice"),
    );
    let paid = ran.count(|seen| seen.stage == Stage::Paid);
    let sold = ran.sold();
    unless(
        paid <= sold,
        format!("{paid} pages say paid, {sold} orders are"),
    );
    faults
}

fn of_scenes(regret: SceneRegret) -> Regret {
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

/// A line of a plot.
pub(crate) fn line(name: &str, mark: Mark, points: Vec<(f64, f64)>) -> Line {
    Line {
        name: name.to_owned(),
        mark,
        points,
    }
}

/// Erlang's loss formula: the share, 0 to 1, of Poisson arrivals that find all of `slots` taken, at this demand (rate × mean
/// hold), whatever the distribution of the hold.
pub(crate) fn erlang_loss(slots: u32, demand: f64) -> f64 {
    (1..=slots).fold(1.0, |loss, slot| {
        demand * loss / (f64::from(slot) + demand * loss)
    })
}

/// The nearest-rank percentile of values, `None` of nothing.
pub(crate) fn percentile(values: impl IntoIterator<Item = f64>, percent: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * percent / 100.0).ceil().max(1.0);
    sorted.get(rank as usize - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_tells_least_middle_and_most() {
        let found = spread(&[3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!(
            (found.runs, found.least, found.median, found.most),
            (4, 1.0, 2.5, 10.0)
        );
        assert!((found.deviation - 4.082).abs() < 0.001);
        assert!(spread(&[]).is_none() && spread(&[1.0, f64::NAN]).is_none());
    }

    #[test]
    fn pieces_of_work_keep_their_order_on_any_number_of_cores() {
        assert_eq!(
            on_all_cores(50, |index| index * 2),
            (0..50).map(|n| n * 2).collect::<Vec<_>>()
        );
        assert!(on_all_cores(0, |index| index).is_empty());
    }

    #[test]
    fn erlangs_formula_gives_its_table() {
        assert!((erlang_loss(1, 1.0) - 0.5).abs() < 1e-9);
        // Table values for ten and twenty lines.
        assert!((erlang_loss(10, 10.0) - 0.2146).abs() < 1e-3);
        assert!((erlang_loss(20, 15.0) - 0.0456).abs() < 1e-3);
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        assert_eq!(percentile([3.0, 1.0, 2.0], 50.0), Some(2.0));
        assert_eq!(percentile((1..=100).map(f64::from), 95.0), Some(95.0));
        assert_eq!(percentile([], 95.0), None);
    }
}
