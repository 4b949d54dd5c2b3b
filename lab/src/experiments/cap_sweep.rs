//! The cap against a gateway that gets slower (measurements C2, C4): who is refused, and what reads and webhooks notice.

use std::time::Duration;

use futures::FutureExt as _;
use payment::wire::ProblemCode;
use serde_json::json;

use super::beside::{Exchange, READS, WEBHOOKS, read, send_webhooks, spans};
use super::{Experiment, answers, lines, pages, pictures, refusals, refused};
use crate::harness::regret;
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, soon};
use crate::plan::{BUSY, Condition, Criterion, Findings, Mark, Plan};
use crate::prometheus::{Histogram, Scrape};
use crate::shopper::Seen;
use crate::stats::{hold_in_steps, refused_share, rounded, share, whole_holds};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cap-sweep",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Confirms a second (measurements C2).
const RATE: u32 = 50;
/// The shipped cap (measurements C2).
const CAP: u32 = 40;
/// How long the gateway takes, ms (measurements C2), with the published refusals.
const DELAYS: [(u64, &str); 6] = [
    (0, "0"),
    (500, "0"),
    (
        1_000,
        "486 and 488 of 2,250 in two runs (formula 20 % at 1.00 s)",
    ),
    (
        2_000,
        "59.1 % by formula over 45 s, 60.0 % without the remainder",
    ),
    (3_000, "1,651 and 1,650 of 2,250 (73.4 %) in two runs"),
    (5_000, "84.0 %"),
];
/// The slowest gateway, at which reads and webhooks are judged.
const SLOWEST: u64 = 5_000;
/// At this delay and below the slots suffice: refusals start at a hold of 0.8 s.
const FREE: u64 = 500;
/// A webhook may take this long (ms), or a commit's p99 and [`COMMIT_MARGIN_MS`] (spec section 3).
const WEBHOOK_MS: f64 = 10.0;
const COMMIT_MARGIN_MS: f64 = 5.0;

fn name(delay: u64) -> String {
    format!("delay {delay} ms")
}

fn plan(lab: &Lab) -> Plan {
    let seconds = lab.pick(45, 10);
    let by_delay = DELAYS.into_iter().flat_map(confirm_criteria);
    let names = DELAYS.map(|(delay, _)| name(delay));
    let told = regret::criterion(names.iter().map(String::as_str));
    Plan {
        question: "Does the cap refuse exactly what the gateway cannot hold, and do reads and webhooks stay fast?".to_owned(),
        setup: lines(&[
            &format!("{RATE} confirms/s evenly spaced for {seconds} s by pages at their shipped times, cap {CAP}"),
            &format!("beside them {READS} reads/s (`/` and `/api/products` in turn) and {WEBHOOKS} webhooks/s"),
            "from 1 s on counted over whole multiples of the measured hold (measurements C2); a slot that comes free between two arrivals waits for the next, so the hold counts in steps of the arrivals (20 ms)",
            "JARI_CIRCUIT=off; the gateway drops what its caller gave up (continueAfterDisconnect false)",
        ]),
        valid_only_if: guard(&[
            "no confirm is refused for anything but the cap, and all reads and webhooks are answered 200",
            "the hold was measured",
        ]),
        criteria: by_delay.chain(beside_criteria()).chain([told]).collect(),
    }
}

fn confirm_criteria((delay, published): (u64, &str)) -> [Criterion; 3] {
    let condition = name(delay);
    let near = Rule::Within {
        target: 0.0,
        tolerance: 1.0,
    };
    let (refused, rule) = if delay <= FREE {
        ("share refused, %", Rule::exactly(0.0))
    } else {
        (
            "share refused less 1 − 40 ÷ (50 × measured hold in steps of 20 ms), points",
            near,
        )
    };
    let one = |id: &str, says: &str, rule| {
        let says = format!("{condition}: {says}");
        Criterion::new(&condition, &format!("{id}-{delay}"), &says, rule)
    };
    let peak = Rule::AtMost {
        most: f64::from(CAP),
    };
    [
        one("refused", refused, rule).published(published),
        one("peak", "most confirms in flight, by the ledger", peak),
        one(
            "webhooks-lost",
            "webhooks sent but not stored",
            Rule::exactly(0.0),
        ),
    ]
}

/// Of reads and webhooks, at the slowest gateway.
fn beside_criteria() -> [Criterion; 3] {
    let condition = name(SLOWEST);
    let reads = Rule::AtMost { most: 10.0 };
    let bound = Rule::AtMost { most: 0.0 };
    let one = |id: &str, says: &str, rule| Criterion::new(&condition, id, says, rule);
    let webhooks = "delay 5000 ms: p99 of webhooks less max(10 ms, commit p99 + 5 ms), ms";
    let risen = "p95 of light reads at delay 5000 ms less that at 0 ms, ms";
    [
        one("read-p95", "delay 5000 ms: p95 of light reads, ms", reads)
            .published("7–8 ms with the cap, 14 s without")
            .because(BUSY),
        one("webhook-p99", webhooks, bound)
            .published("p95 9 ms with the cap, 13 s without (C4)")
            .because(BUSY),
        // What the machine itself costs is in both.
        one("read-p95-risen", risen, reads).and(&name(0)).finding(),
    ]
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    for (delay, _) in DELAYS {
        let condition = measure(lab, delay, &mut findings).await?;
        findings.add(name(delay), condition);
    }
    draw(&mut findings);
    Ok(findings)
}

/// A figure of every delay: the delay in seconds, and the figure.
fn by_delay(findings: &Findings, figure: &str) -> Vec<(f64, f64)> {
    let of = |(delay, _): (u64, &str)| {
        let found = findings
            .conditions
            .iter()
            .find(|(known, _)| *known == name(delay));
        let value = found?.1.figures.get(figure)?.as_f64()?;
        Some((delay as f64 / 1_000.0, value))
    };
    DELAYS.into_iter().filter_map(of).collect()
}

fn draw(findings: &mut Findings) {
    let measured = by_delay(findings, "refusedPercent");
    let formula = (0..=50).map(|tenth| {
        let seconds = f64::from(tenth) / 10.0;
        (seconds, 100.0 * refused_share(CAP, RATE, seconds))
    });
    let published = [
        (0.0, 0.0),
        (0.5, 0.0),
        (1.0, 21.6),
        (3.0, 73.4),
        (5.0, 84.0),
    ];
    findings.plots.push(pictures::plot(
        "The share of confirms that the cap refuses grows with the gateway's delay as the formula says",
        "the gateway's delay, s",
        "confirms refused, %",
        vec![
            pictures::line("formula", Mark::Curve, formula.collect()),
            pictures::line("published", Mark::Dots, published.to_vec()),
            pictures::line("measured", Mark::Dots, measured.clone()),
        ],
    ));
    let reads = by_delay(findings, "readsP95Ms");
    findings.plots.push(pictures::plot(
        "Light reads stay fast however slow the gateway is",
        "the gateway's delay, s",
        "p95 of light reads, ms",
        vec![pictures::line("measured", Mark::Dots, reads)],
    ));
    let at = |delay: u64| {
        let found = measured
            .iter()
            .find(|(seconds, _)| (seconds * 1_000.0 - delay as f64).abs() < 0.5);
        found.map_or(f64::NAN, |(_, percent)| *percent)
    };
    let reads = findings.value("read-p95").unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "At {RATE}/s and cap {CAP} it refused {:.1} % at 1 s, {:.1} % at 3 s and {:.1} % at 5 s; the largest gap to the formula was {:.2} points, and the p95 of reads at 5 s was {reads:.1} ms.",
        at(1_000),
        at(3_000),
        at(5_000),
        largest_gap(findings)
    ));
}

/// How far the refusals lie from the formula where there are any, in points.
fn largest_gap(findings: &Findings) -> f64 {
    let slow = DELAYS.iter().filter(|(delay, _)| *delay > FREE);
    let gaps = slow.filter_map(|(delay, _)| findings.value(&format!("refused-{delay}")));
    gaps.map(f64::abs).fold(0.0, f64::max)
}

async fn measure(lab: &Lab, delay: u64, findings: &mut Findings) -> anyhow::Result<Condition> {
    let stage = Stage::open(lab, &[("JARI_CIRCUIT", "off")]).await?;
    let seconds = lab.pick(45, 10);
    let pace = Pace::steady(RATE, seconds);
    let orders = stage.prepare(pace.len()).await?;
    let scenario = json!({"delayMs": delay, "continueAfterDisconnect": false});
    stage.gateway.set(&scenario).await?;
    let before = stage.scrape().await?;
    let start = soon();
    let (seen, reads, webhooks) = tokio::join!(
        pages(&stage, &pace, start, orders),
        read(&stage, seconds, start),
        send_webhooks(&stage, seconds, start)
    );
    let (seen, reads, webhooks) = (seen?, reads?, webhooks?);
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
    validity::arrivals(&mut condition, "reads", (READS * seconds) as usize, &reads);
    validity::arrivals(
        &mut condition,
        "webhooks",
        (WEBHOOKS * seconds) as usize,
        &webhooks,
    );
    let limit = Duration::from_secs(90);
    let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
    regret::note(seen.outcomes(), &ended.ledger, &mut condition, findings);
    judge_confirms(
        delay,
        seconds,
        &seen,
        (&before, &ended),
        &mut condition,
        findings,
    );
    judge_beside(
        delay,
        (&reads, &webhooks),
        (&before, &ended),
        &mut condition,
        findings,
    );
    Ok(condition)
}

fn judge_confirms(
    delay: u64,
    seconds: u32,
    seen: &Driven<Seen>,
    (before, ended): (&Scrape, &Ended),
    condition: &mut Condition,
    findings: &mut Findings,
) {
    validity::latencies(condition, "confirmAnswers", &answers(seen.outcomes()));
    let codes = refusals(seen.outcomes());
    let only_the_cap = codes
        .keys()
        .all(|code| *code == ProblemCode::PgCapReached.as_str());
    condition.check(
        "refused for nothing but the cap",
        only_the_cap,
        format!("{codes:?}"),
    );
    condition.figure("refusals", &codes);
    let hold = hold(before, &ended.scrape);
    condition.check("the hold was measured", hold.is_some(), format!("{hold:?}"));
    let Some((metric, hold)) = hold else { return };
    condition.figure("holdSeconds", rounded(hold));
    condition.figure("holdMeasuredBy", metric);
    let stepped = hold_in_steps(RATE, hold);
    let window = if delay <= FREE {
        f64::from(seconds)
    } else {
        whole_holds(f64::from(seconds), stepped)
    };
    let counted = seen
        .arrived
        .iter()
        .filter(|(due, _)| due.as_secs_f64() < window);
    let counted: Vec<&Seen> = counted.map(|(_, seen)| seen).collect();
    let refused = refused(counted.iter().copied(), ProblemCode::PgCapReached);
    let refused_percent = 100.0 * share(refused, counted.len() as u64);
    let formula = 100.0 * refused_share(CAP, RATE, stepped);
    condition.figure(
        "formulaPercentOfTheBareHold",
        rounded(100.0 * refused_share(CAP, RATE, hold)),
    );
    condition.figure("countedSeconds", rounded(window));
    condition.figure("refusedPercent", rounded(refused_percent));
    condition.figure("formulaPercent", rounded(formula));
    let value = if delay <= FREE {
        refused_percent
    } else {
        refused_percent - formula
    };
    findings.measure(&format!("refused-{delay}"), value);
    findings.measure(
        &format!("peak-{delay}"),
        ended.ledger.peak_confirms() as f64,
    );
}

fn judge_beside(
    delay: u64,
    (reads, webhooks): (&Driven<Exchange>, &Driven<Exchange>),
    (before, ended): (&Scrape, &Ended),
    condition: &mut Condition,
    findings: &mut Findings,
) {
    for (what, driven) in [("reads", reads), ("webhooks", webhooks)] {
        let bad = driven.outcomes().filter(|one| !one.ok).count();
        condition.check(&format!("all {what} are answered 200"), bad == 0, bad);
        validity::latencies(condition, what, &spans(driven));
    }
    let sent = webhooks.arrived.len() as u64;
    let lost = sent.saturating_sub(ended.books.lab_webhooks);
    findings.measure(&format!("webhooks-lost-{delay}"), lost as f64);
    let commits = since(before, &ended.scrape, "database_commit_seconds", &[]);
    let commit_p99_ms = commits
        .and_then(|commits| commits.quantile(0.99))
        .map(|p99| p99 * 1_000.0);
    match commit_p99_ms {
        Some(p99) => condition.figure("commitP99Ms", rounded(p99)),
        None => condition.figure(
            "commitP99Ms",
            "database_commit_seconds is absent: 10 ms is the bound",
        ),
    }
    let read_p95 = spans(reads).percentile_ms(95.0);
    condition.figure("readsP95Ms", read_p95.map(rounded));
    if delay == 0 {
        findings.measure_if("read-p95-at-0", read_p95);
    }
    if delay == SLOWEST {
        findings.measure_if("read-p95", read_p95);
        let risen = read_p95.zip(findings.value("read-p95-at-0"));
        findings.measure_if("read-p95-risen", risen.map(|(now, before)| now - before));
        let bound = commit_p99_ms.map_or(WEBHOOK_MS, |p99| WEBHOOK_MS.max(p99 + COMMIT_MARGIN_MS));
        let p99 = spans(webhooks).percentile_ms(99.0);
        findings.measure_if("webhook-p99", p99.map(|p99| p99 - bound));
    }
}

/// What a histogram of the shop counted between two scrapes.
fn since(
    before: &Scrape,
    after: &Scrape,
    name: &str,
    labels: &[(&str, &str)],
) -> Option<Histogram> {
    let earlier = before.histogram(name, labels);
    Some(after.histogram(name, labels)?.since(earlier.as_ref()))
}

/// How long a confirm held its slot, in seconds, and by which metric. A shop that does not measure its slots is taken
/// at the duration of its calls.
fn hold(before: &Scrape, after: &Scrape) -> Option<(&'static str, f64)> {
    let toss = ("gateway", "toss");
    let slots = since(before, after, "pg_slot_hold_seconds", &[toss]);
    if let Some(mean) = slots.and_then(|slots| slots.mean()) {
        return Some(("pg_slot_hold_seconds", mean));
    }
    let labels = [toss, ("operation", "confirm")];
    let calls = since(before, after, "pg_call_duration_seconds", &labels)?;
    Some(("pg_call_duration_seconds", calls.mean()?))
}
