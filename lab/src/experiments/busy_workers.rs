//! How many workers a slow gateway keeps busy (measurements C1): Little's law, rate × time.

use std::time::Duration;

use futures::FutureExt as _;
use serde_json::json;

use super::{Experiment, lines, pages, pictures};
use crate::harness::regret;
use crate::harness::sampler::Sampler;
use crate::harness::validity::{self, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Pace, soon};
use crate::plan::{Condition, Criterion, Findings, Line, Mark, Plan};
use crate::stats::rounded;
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "busy-workers",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Confirms a second (measurements C1).
const RATE: u32 = 30;
/// The published server's worker threads.
const WORKERS: u32 = 100;
/// How long the gateway takes, ms; the last is beyond what the workers can hold (100 ÷ 30 = 3.3 s).
const DELAYS: [u32; 5] = [500, 1_000, 2_000, 3_000, 4_000];
/// How far off the law a mean may be, part of it: what a busy machine adds to each hold.
const TOLERANCE: f64 = 0.07;
/// How often the confirms in flight are counted.
const STEP: Duration = Duration::from_millis(200);
/// Connections to the database, published 5–10.
const CONNECTIONS: f64 = 10.0;

fn name(delay: u32) -> String {
    format!("{delay} ms")
}

/// Rate × time, and not more than there are workers.
fn law(delay: u32) -> f64 {
    let busy = f64::from(RATE) * f64::from(delay) / 1_000.0;
    busy.min(f64::from(WORKERS))
}

fn plan(lab: &Lab) -> Plan {
    let of = |delay: u32| {
        let condition = name(delay);
        let published = match delay {
            3_000 => "86.6 (90 by formula)",
            4_000 => "100 workers last until about 3.3 s",
            _ => "not published",
        };
        let busy = Rule::Within {
            target: law(delay),
            tolerance: rounded(law(delay) * TOLERANCE),
        };
        let connections = Rule::AtMost { most: CONNECTIONS };
        [
            Criterion::new(
                &condition,
                &format!("busy-{delay}"),
                &format!("gateway {condition}: workers busy with confirms, mean"),
                busy,
            )
            .published(published),
            Criterion::new(
                &condition,
                &format!("connections-{delay}"),
                &format!("gateway {condition}: connections to the database in use, most"),
                connections,
            )
            .published("5–10 at any delay"),
        ]
    };
    let names = DELAYS.map(name);
    let told = regret::criterion(names.iter().map(String::as_str));
    Plan {
        question: "How many workers does a slow gateway keep busy: rate × time?".to_owned(),
        setup: lines(&[
            &format!(
                "{RATE} confirms/s evenly spaced for {} s by pages at their shipped times",
                seconds(lab)
            ),
            &format!(
                "no cap, JARI_LAB_WORKERS={WORKERS}, JARI_LANES=off, JARI_CIRCUIT=off; the gateway drops what its caller gave up"
            ),
            "busy: confirms in flight, counted every 0.2 s from when the first hold is over until the arrivals end; at 4 s the law asks for 120 of 100 workers",
        ]),
        valid_only_if: guard(&["at least 10 counts were taken"]),
        criteria: DELAYS.into_iter().flat_map(of).chain([told]).collect(),
    }
}

fn seconds(lab: &Lab) -> u32 {
    lab.pick(30, 12)
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut slots = Vec::new();
    for delay in DELAYS {
        slots.push(measure(lab, delay, &mut findings).await?);
    }
    let busy = |delay: u32| {
        let busy = findings.value(&format!("busy-{delay}"))?;
        Some((f64::from(delay) / 1_000.0, busy))
    };
    let measured: Vec<_> = DELAYS.into_iter().filter_map(busy).collect();
    let formula = [(0.0, 0.0), (10.0 / 3.0, 100.0), (4.0, 100.0)];
    let at = |seconds: f64| {
        let found = measured.iter().find(|(at, _)| (at - seconds).abs() < 0.01);
        found.map_or(f64::NAN, |(_, busy)| *busy)
    };
    findings.answer = Some(format!(
        "Yes: at {RATE}/s a gateway of 1 s kept {:.1} workers busy, one of 3 s {:.1} (90 by the law, 86.6 published), and one of 4 s {:.1} of {WORKERS}.",
        at(1.0),
        at(3.0),
        at(4.0)
    ));
    findings.plots.push(pictures::plot(
        "Busy workers are the rate times the gateway's time, until there are no more",
        "the gateway's delay, s",
        "workers busy, mean",
        vec![
            pictures::line("formula", Mark::Curve, formula.to_vec()),
            pictures::line("published", Mark::Dots, vec![(3.0, 86.6)]),
            pictures::line("measured", Mark::Dots, measured),
        ],
    ));
    findings.plots.push(pictures::slots_plot(slots));
    Ok(findings)
}

async fn measure(lab: &Lab, delay: u32, findings: &mut Findings) -> anyhow::Result<Line> {
    let workers = WORKERS.to_string();
    let settings = [
        ("JARI_CIRCUIT", "off"),
        ("JARI_LANES", "off"),
        ("JARI_PG_CAP", "off"),
        ("JARI_LAB_WORKERS", workers.as_str()),
    ];
    let stage = Stage::open(lab, &settings).await?;
    let pace = Pace::steady(RATE, seconds(lab));
    let orders = stage.prepare(pace.len()).await?;
    let scenario = json!({"delayMs": delay, "continueAfterDisconnect": false});
    stage.gateway.set(&scenario).await?;
    let start = soon();
    let busy = Sampler::confirms_in_flight(&stage, STEP);
    let connections = Sampler::of(&stage, STEP, |scrape| {
        scrape.sum("db_pool_connections", &[("state", "busy")])
    });
    let seen = pages(&stage, &pace, start, orders).await?;
    let (busy, connections) = (busy.end().await?, connections.end().await?);
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
    let limit = Duration::from_secs(60);
    let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
    regret::note(seen.outcomes(), &ended.ledger, &mut condition, findings);
    let from = Duration::from_millis(u64::from(delay) + 500);
    let until = Duration::from_secs(u64::from(pace.seconds()));
    let within = |(at, _): &&(f64, f64)| (from.as_secs_f64()..until.as_secs_f64()).contains(at);
    let points = busy.points(start);
    let counts = points.iter().filter(within).count();
    condition.check("counts were taken", counts >= 10, counts);
    let mean = busy.mean(start + from, start + until);
    findings.measure_if(&format!("busy-{delay}"), mean);
    condition.figure("busyMean", mean.map(rounded));
    condition.figure("busyByLaw", law(delay));
    let most = connections.points(start);
    let most = most.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    findings.measure(&format!("connections-{delay}"), most);
    condition.figure("connectionsInUseMost", most);
    findings.add(name(delay), condition);
    Ok(pictures::slots(
        &format!("gateway takes {delay} ms"),
        &busy,
        start,
    ))
}
