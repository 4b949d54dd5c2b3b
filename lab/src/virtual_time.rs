//! The experiments in virtual time: logic and in-memory store, so that a condition of a minute takes a blink, every
//! question is asked from many seeds, and the whole set runs at every test. See `simulation::scene` for what is played.
//!
//! An experiment is a [`Virtual`]: a plan whose expectations come from a published figure or from a formula, and a run that
//! makes [`Case`]s, lets [`measure`] play them, and judges the table's medians:
//!
//! ```ignore
//! fn cases(size: Size) -> Vec<Case> {
//!     [0, 1, 2].map(|delay| Case::new(format!("{delay} s"), Scene { pg: …, ..Scene::default() })).into()
//! }
//!
//! fn run(size: Size) -> Findings {
//!     let mut findings = Findings::default();
//!     let table = measure(size, &cases(size), &mut findings, |_case, ran| vec![
//!         ("refused", share(ran.refused(ProblemCode::PgCapReached), ran.seen.len() as u64)),
//!     ]);
//!     table.judge(&mut findings, "refused-2", "2 s", "refused");
//!     findings.answer = Some(format!("…{:.1} %", 100.0 * table.median("2 s", "refused")));
//!     findings
//! }
//! ```
//!
//! [`measure`] checks every run (traffic, cap, no false word, no second charge, everything known at the end) and adds the
//! condition with the medians of all figures; [`note`] judges values that are made of several cases, seed by seed.

mod asked;
mod measure;
mod published;
mod questions;
mod slot_model;
mod stampedes;

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;

use crate::plan::{Findings, Plan, is_success};
use crate::report::Report;
pub(crate) use measure::{
    Case, Figures, Size, Table, erlang_loss, line, measure, note, on_all_cores, percentile, spread,
};

/// One experiment in virtual time.
pub(crate) struct Virtual {
    /// Its name; the files are `<name>.virtual.json` and `.md`. One that is asked of the real programs too has that name.
    pub(crate) name: &'static str,
    /// What it promises, before it runs.
    pub(crate) plan: fn(Size) -> Plan,
    /// Runs it.
    pub(crate) run: fn(Size) -> Findings,
}

/// Every experiment in virtual time: what was published, then the open questions.
pub(crate) fn all() -> impl Iterator<Item = &'static Virtual> {
    let published = published::ALL.iter();
    published.chain(questions::ALL).chain(stampedes::ALL)
}

/// Whether an experiment has figures that somebody published.
pub(crate) fn is_published(name: &str) -> bool {
    published::ALL.iter().any(|one| one.name == name)
}

/// Runs one, writes its report, and gives the report's text and whether everything was as expected.
pub(crate) fn run(experiment: &Virtual, size: Size, out: &Path) -> anyhow::Result<(String, bool)> {
    let plan = (experiment.plan)(size);
    let name = format!("{}.virtual", experiment.name);
    let mut report = Report {
        name: &name,
        quick: !size.full,
        plan: &plan,
        findings: None,
    };
    // The promise is on disk before anything is measured.
    report.write(out)?;
    let began = Instant::now();
    let mut findings = (experiment.run)(size);
    let took = began.elapsed().as_secs_f64();
    findings.took_seconds = Some(crate::stats::rounded(took));
    report.findings = Some(&findings);
    report
        .write(out)
        .with_context(|| format!("writing {name}"))?;
    let text = format!("{}\ntook {took:.1} s\n", report.markdown());
    Ok((text, is_success(&report.judged(), &findings)))
}

/// A plan's line about its runs.
pub(crate) fn spaced(size: Size) -> String {
    format!(
        "virtual time, {} runs of each condition from seeds of their own; medians are judged",
        size.seeds()
    )
}

/// When a run in virtual time proves nothing.
pub(crate) fn valid_only_if() -> Vec<String> {
    [
        "every run saw traffic at the gateway and came to its end: nothing open, every page done",
        "no more confirms were in flight than the cap allows (of one node)",
        "no page said something false, and no order was charged twice, where that is not what is measured",
    ]
    .map(str::to_owned)
    .into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use simulation::scene::{Delay, Load, Pg, Scene, Shoppers, play};

    use super::*;

    #[test]
    fn every_plan_has_a_question_and_criteria_that_rest_on_conditions() {
        let mut names = BTreeSet::new();
        for experiment in all() {
            assert!(names.insert(experiment.name), "{} twice", experiment.name);
            for full in [false, true] {
                let plan = (experiment.plan)(Size { full });
                assert!(plan.question.ends_with('?'), "{}", experiment.name);
                assert!(!plan.valid_only_if.is_empty() && !plan.criteria.is_empty());
                let ids: BTreeSet<_> = plan.criteria.iter().map(|one| &one.id).collect();
                assert_eq!(ids.len(), plan.criteria.len(), "{}", experiment.name);
                assert!(plan.criteria.iter().all(|one| !one.rests_on.is_empty()));
            }
        }
    }

    #[test]
    fn the_same_seed_comes_to_the_same_figures_and_another_does_not() {
        let scene = |seed| Scene {
            seed,
            load: Load {
                rate: 20,
                seconds: 4,
                ..Load::default()
            },
            pg: Pg {
                delay: Delay::log_normal(2_000.0, 1.0),
                loss: Some((0.2, simulation::scene::When::After)),
                ..Pg::default()
            },
            shoppers: Shoppers {
                departed: 0.1,
                pays_again: 1,
                ..Shoppers::default()
            },
            ..Scene::default()
        };
        let figures = |seed| {
            let ran = play(&scene(seed));
            let took: Vec<_> = ran
                .seen
                .iter()
                .map(|seen| (seen.took, seen.doubt))
                .collect();
            (
                took,
                ran.books.arrivals,
                ran.books.inquired,
                ran.slots,
                ran.counters,
            )
        };
        assert_eq!(figures(7), figures(7));
        assert_ne!(figures(7), figures(8));
    }
}
