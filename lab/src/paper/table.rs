//! The criteria of an experiment in one table, real and virtual side by side; and all of them as CSV.

use std::collections::BTreeMap;

use super::read::{Experiment, Judged, Run};
use super::text::{field, number};
use crate::plan::Spread;
use crate::verdict::Verdict;

/// What one half says of a criterion.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// What was measured, for people.
    pub(super) measured: String,
    /// What follows.
    pub(super) verdict: Verdict,
    /// Whether nothing fails for it.
    pub(super) finding: bool,
}

/// A criterion with what each half says of it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What is measured.
    pub(super) says: String,
    /// The published figure.
    pub(super) published: String,
    /// What is right, by the real half where there is one.
    pub(super) expected: String,
    /// Each half, with its name.
    pub(super) cells: Vec<(&'static str, Cell)>,
}

/// A measured value with its spread.
fn measured(judged: &Judged, spread: Option<&Spread>) -> String {
    // Infinite is written as null: JSON has no such number.
    let value = judged.measured.map_or_else(
        || {
            if judged.verdict == Verdict::NotValid {
                "nothing".to_owned()
            } else {
                "never".to_owned()
            }
        },
        number,
    );
    spread.map_or(value.clone(), |spread| {
        format!(
            "{value} ({} to {}, {} runs)",
            number(spread.least),
            number(spread.most),
            spread.runs
        )
    })
}

fn cell(run: &Run, judged: &Judged) -> Cell {
    let spread = run.spreads.as_ref().and_then(|all| all.get(&judged.id));
    Cell {
        measured: measured(judged, spread),
        verdict: judged.verdict,
        finding: judged.finding,
    }
}

/// The criteria of an experiment: those with one id are one row.
pub(super) fn rows(experiment: &Experiment) -> Vec<Row> {
    let mut order = Vec::new();
    let mut by_id: BTreeMap<&str, Row> = BTreeMap::new();
    for (half, run) in experiment.halves() {
        for judged in &run.verdicts {
            let row = by_id.entry(judged.id.as_str()).or_insert_with(|| {
                order.push(judged.id.as_str());
                Row {
                    says: judged.says.clone(),
                    published: judged.published.clone().unwrap_or_else(|| "–".to_owned()),
                    expected: judged.rule.says(),
                    cells: Vec::new(),
                }
            });
            if judged.rule.says() != row.expected && row.cells.iter().all(|(one, _)| *one != half) {
                row.expected = format!("{}; {half}: {}", row.expected, judged.rule.says());
            }
            row.cells.push((half, cell(run, judged)));
        }
    }
    order.iter().filter_map(|id| by_id.remove(id)).collect()
}

/// A criterion that came out otherwise, for people: what was measured, expected and published, and why.
#[derive(Debug, Clone)]
pub(super) struct Otherwise {
    /// What was measured, beside what was expected and published.
    pub(super) says: String,
    /// Why, as far as it is known.
    pub(super) because: Option<String>,
    /// Whether nothing fails for it.
    pub(super) finding: bool,
}

/// What of a run came out otherwise than expected.
pub(super) fn otherwise(run: &Run) -> impl Iterator<Item = Otherwise> {
    let failed = run
        .verdicts
        .iter()
        .filter(|judged| judged.verdict == Verdict::Fail);
    failed.map(|judged| {
        let published = judged
            .published
            .as_deref()
            .map_or_else(String::new, |figure| format!("; published: {figure}"));
        Otherwise {
            says: format!(
                "{}: {} (expected {}{published})",
                judged.says,
                cell(run, judged).measured,
                judged.rule.says()
            ),
            because: judged.because.clone(),
            finding: judged.finding,
        }
    })
}

/// How the whole experiment came out: the worst that any criterion came to.
pub(super) fn outcome(experiment: &Experiment) -> Verdict {
    let mut worst = Verdict::Pass;
    for (_, run) in experiment.halves() {
        if !run.ran || run.invalid().next().is_some() {
            return Verdict::NotValid;
        }
        for judged in &run.verdicts {
            match judged.verdict {
                Verdict::NotValid => return Verdict::NotValid,
                Verdict::Fail if !judged.finding => worst = Verdict::Fail,
                Verdict::Pass | Verdict::Fail => {}
            }
        }
    }
    worst
}

/// All criteria of all experiments, a line each.
pub(super) fn csv(experiments: &[Experiment]) -> String {
    let mut out = String::from(
        "experiment,mode,criterion,published,expected,measured,least,median,most,runs,verdict,finding\n",
    );
    for experiment in experiments {
        for (half, run) in experiment.halves() {
            for judged in &run.verdicts {
                let spread = run.spreads.as_ref().and_then(|all| all.get(&judged.id));
                let of = |part: fn(&Spread) -> String| spread.map(part).unwrap_or_default();
                let fields = [
                    experiment.name.clone(),
                    half.to_owned(),
                    judged.says.clone(),
                    judged.published.clone().unwrap_or_default(),
                    judged.rule.says(),
                    judged
                        .measured
                        .map(|value| value.to_string())
                        .unwrap_or_default(),
                    of(|spread| spread.least.to_string()),
                    of(|spread| spread.median.to_string()),
                    of(|spread| spread.most.to_string()),
                    of(|spread| spread.runs.to_string()),
                    judged.verdict.as_str().to_owned(),
                    judged.finding.to_string(),
                ];
                out.push_str(&fields.map(|text| field(&text)).join(","));
                out.push('\n');
            }
        }
    }
    out
}
