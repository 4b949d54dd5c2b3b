//! What a shopper sees when the gateway takes longer than the page holds the response (measurements A3).

use std::time::Duration;

use futures::FutureExt as _;
use serde_json::json;

use super::{Experiment, lines, pages, pictures};
use crate::harness::regret;
use crate::harness::validity::{self, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Pace, soon};
use crate::plan::{Condition, Criterion, Findings, Plan};
use crate::shopper::Seen;
use crate::stats::{ms, rounded};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "page-times",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// How long the gateway takes, s (measurements A3), with when the published pages were done, s.
const DELAYS: [(u32, f64); 2] = [(20, 21.6), (40, 41.6)];
/// When the published pages said that they were checking, s.
const CHECKING: f64 = 15.5;
/// The browser's own part of the published times, and what a busy machine adds, s.
const TOLERANCE: f64 = 1.0;
/// Shoppers a second.
const RATE: u32 = 1;

fn name(delay: u32) -> String {
    format!("{delay} s")
}

fn plan(lab: &Lab) -> Plan {
    let near = |target| Rule::Within {
        target,
        tolerance: TOLERANCE,
    };
    let of = |(delay, done): (u32, f64)| {
        let condition = name(delay);
        let one = |id: &str, says: &str, rule| {
            let says = format!("gateway {condition}: {says}");
            Criterion::new(&condition, &format!("{id}-{delay}"), &says, rule)
        };
        let published = format!("{done} s");
        [
            one(
                "checking",
                "the page says that it is checking after, s (the latest)",
                near(CHECKING),
            )
            .published("15.5 s"),
            one(
                "done",
                "the page says that it is paid after, s (the latest)",
                near(done),
            )
            .published(&published),
            one(
                "charges",
                "orders without exactly one charge",
                Rule::exactly(0.0),
            )
            .published("one payment per order"),
        ]
    };
    let names = DELAYS.map(|(delay, _)| name(delay));
    let told = regret::criterion(names.iter().map(String::as_str));
    Plan {
        question: "When does the page say that it is checking, and when that it is paid, if the gateway takes 20 or 40 s?".to_owned(),
        setup: lines(&[
            &format!("{} pages at their shipped times (15 s + 25 × 2 s), {RATE}/s; all settings as shipped", lab.pick(8, 2)),
            "the published page was a browser: what it shows is also tried in the browser tests",
        ]),
        valid_only_if: guard(&["every page was checking, so the confirm's own answer came too late"]),
        criteria: DELAYS.into_iter().flat_map(of).chain([told]).collect(),
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut known = Vec::new();
    for (delay, _) in DELAYS {
        let stage = Stage::open(lab, &[]).await?;
        let pace = Pace::steady(RATE, lab.pick(8, 2));
        let orders = stage.prepare(pace.len()).await?;
        stage
            .gateway
            .set(&json!({"delayMs": delay * 1_000}))
            .await?;
        let seen = pages(&stage, &pace, soon(), orders).await?;
        let mut condition = Condition::default();
        validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
        let limit = Duration::from_secs(90);
        let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
        regret::note(
            seen.outcomes(),
            &ended.ledger,
            &mut condition,
            &mut findings,
        );
        let checking = latest(seen.outcomes().map(|seen| seen.checking));
        let done = latest(
            seen.outcomes()
                .map(|seen| seen.told_paid.then_some(seen.took)),
        );
        condition.check(
            "every page was checking",
            checking.is_some(),
            format!("{checking:?}"),
        );
        let charged = |seen: &&Seen| ended.ledger.charges(&seen.order) != 1;
        let charges = seen.outcomes().filter(charged).count();
        for (id, value) in [("checking", checking), ("done", done)] {
            let value = value.unwrap_or(f64::INFINITY);
            findings.measure(&format!("{id}-{delay}"), value);
            condition.figure(id, rounded(value));
        }
        findings.measure(&format!("charges-{delay}"), charges as f64);
        let label = format!("gateway takes {delay} s");
        known.push(pictures::known(&label, seen.outcomes()));
        findings.add(name(delay), condition);
    }
    findings.plots.push(pictures::known_plot(known));
    let of = |id: &str| findings.value(id).unwrap_or(f64::INFINITY);
    findings.answer = Some(format!(
        "Checking after {:.1} s and {:.1} s, paid after {:.1} s (gateway 20 s) and {:.1} s (gateway 40 s): each page hears of it with its next look.",
        of("checking-20"),
        of("checking-40"),
        of("done-20"),
        of("done-40")
    ));
    Ok(findings)
}

/// The latest of moments that all must have come, in seconds.
fn latest(moments: impl Iterator<Item = Option<Duration>>) -> Option<f64> {
    let all: Option<Vec<_>> = moments.collect();
    let latest = all?.into_iter().max()?;
    Some(ms(latest) / 1_000.0)
}
