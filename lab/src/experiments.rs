//! The experiments by name, and what several of them share.

mod beside;
mod busy_workers;
mod cap_sweep;
mod departed;
mod disconnects;
mod kills;
mod known;
mod nodes;
mod page_shoppers;
mod page_times;
mod pg_stop;
mod pictures;
pub(crate) mod read_timeout;
mod resend_budget;
mod slow_heads;
mod stampede;
mod thread_pool;
mod waiting;
mod webhooks;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use futures::future::LocalBoxFuture;
use payment::time::PageTimes;
use payment::wire::ProblemCode;

use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, drive};
use crate::plan::{Findings, Plan, is_success};
use crate::report::Report;
use crate::shopper::{Prepared, Seen, shop};
use crate::stats::Latencies;

/// One experiment.
pub(crate) struct Experiment {
    /// Its name on the command line and of its files.
    pub(crate) name: &'static str,
    /// What it promises, before it runs.
    pub(crate) plan: fn(&Lab) -> Plan,
    /// Runs it.
    run: for<'a> fn(&'a Lab) -> LocalBoxFuture<'a, anyhow::Result<Findings>>,
}

/// Every experiment.
pub(crate) const ALL: [Experiment; 18] = [
    departed::EXPERIMENT,
    page_shoppers::EXPERIMENT,
    page_times::EXPERIMENT,
    resend_budget::EXPERIMENT,
    busy_workers::EXPERIMENT,
    cap_sweep::EXPERIMENT,
    thread_pool::EXPERIMENT,
    stampede::EXPERIMENT,
    read_timeout::EXPERIMENT,
    pg_stop::EXPERIMENT,
    waiting::EXPERIMENT,
    slow_heads::EXPERIMENT,
    disconnects::EXPERIMENT,
    kills::ON_SQLITE,
    kills::ON_POSTGRES,
    known::EXPERIMENT,
    nodes::EXPERIMENT,
    webhooks::EXPERIMENT,
];

/// The experiment of a name.
pub(crate) fn find(name: &str) -> anyhow::Result<&'static Experiment> {
    let found = ALL.iter().find(|experiment| experiment.name == name);
    found.with_context(|| format!("there is no experiment {name}; `lab list` names them"))
}

/// Runs an experiment, writes its report, and gives the report's text and whether everything was as expected.
pub(crate) async fn run(
    experiment: &Experiment,
    lab: &Lab,
    out: &Path,
) -> anyhow::Result<(String, bool)> {
    let plan = (experiment.plan)(lab);
    let mut report = Report {
        name: experiment.name,
        quick: lab.quick,
        plan: &plan,
        findings: None,
    };
    // The promise is on disk before anything is measured.
    report.write(out)?;
    let began = std::time::Instant::now();
    let mut findings = (experiment.run)(lab)
        .await
        .with_context(|| format!("running {}", experiment.name))?;
    findings.took_seconds = Some(crate::stats::rounded(began.elapsed().as_secs_f64()));
    report.findings = Some(&findings);
    report.write(out)?;
    Ok((report.markdown(), is_success(&report.judged(), &findings)))
}

/// Lines for a plan.
fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Runs the checkout page of one shopper for each order, at the page's shipped times.
async fn pages(
    stage: &Stage,
    pace: &Pace,
    start: std::time::Instant,
    orders: Vec<Prepared>,
) -> anyhow::Result<Driven<Seen>> {
    let (client, url) = (stage.client.clone(), stage.shop.clone());
    let page = move |order, due| shop(client.clone(), url.clone(), order, PageTimes::DEFAULT, due);
    drive(pace, start, orders, page).await
}

/// How many pages were refused, by code.
fn refusals<'a>(seen: impl Iterator<Item = &'a Seen>) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for code in seen.filter_map(|seen| seen.refused) {
        *counts.entry(code.as_str()).or_default() += 1;
    }
    counts
}

/// How many pages were refused with one code.
fn refused<'a>(seen: impl Iterator<Item = &'a Seen>, code: ProblemCode) -> u64 {
    seen.filter(|seen| seen.refused == Some(code)).count() as u64
}

/// How long the confirms' own answers took.
fn answers<'a>(seen: impl Iterator<Item = &'a Seen>) -> Latencies {
    Latencies::of(seen.filter_map(|seen| seen.answered))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_plan_has_a_question_a_guard_and_criteria_with_ids_of_their_own() {
        for quick in [false, true] {
            let lab = Lab {
                bin_dir: PathBuf::new(),
                quick,
                shoppers: None,
            };
            for experiment in &ALL {
                let plan = (experiment.plan)(&lab);
                assert!(plan.question.ends_with('?'), "{}", experiment.name);
                assert!(!plan.valid_only_if.is_empty() && !plan.criteria.is_empty());
                let ids: BTreeSet<_> = plan.criteria.iter().map(|one| &one.id).collect();
                assert_eq!(ids.len(), plan.criteria.len(), "{}", experiment.name);
                assert!(plan.criteria.iter().all(|one| !one.rests_on.is_empty()));
            }
        }
    }
}
