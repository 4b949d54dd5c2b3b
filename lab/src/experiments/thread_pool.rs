//! A server with 100 threads that each hold one request (measurements C2's column without a cap, C3, C4), beside Jari as
//! shipped: who waits behind confirms that a slow gateway holds.

mod told;

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use payment::wire::ProblemCode;
use serde_json::json;

use super::beside::{Exchange, READS, WEBHOOKS, read, send_webhooks, spans};
use super::{Experiment, lines};
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, drive, soon};
use crate::plan::{BUSY, Condition, Criterion, Findings, Plan};
use crate::raw::{Answer, confirm};
use crate::shopper::Prepared;
use crate::stats::{Latencies, queue_waits, rounded, share};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "thread-pool",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// The published server's worker threads.
const WORKERS: u32 = 100;
/// Confirms a second (measurements C2, C4); at 30/s all of 45 s are the 1,351 unknown of C3.
const RATE: u32 = 50;
const TIMEOUT_RATE: u32 = 30;
/// Longer than that is too late for a webhook, ms (measurements C4).
const WEBHOOK_LIMIT_MS: f64 = 10_000.0;
/// Nothing waits: what a busy machine adds, ms.
const AT_ONCE_MS: f64 = 100.0;
/// How far from the queue's arithmetic a wait may be, part of it.
const TOLERANCE: f64 = 0.2;

/// One server at one gateway.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    delay_ms: u32,
    /// `None` is no cap.
    cap: Option<u32>,
    /// Whether it is the server with threads, or Jari as shipped.
    threads: bool,
    timeout_ms: u32,
    rate: u32,
}

const fn threads(name: &'static str, delay_ms: u32, cap: Option<u32>) -> Case {
    Case {
        name,
        delay_ms,
        cap,
        threads: true,
        timeout_ms: 60_000,
        rate: RATE,
    }
}

const FREE_3: Case = threads("threads, no cap, 3 s", 3_000, None);
const FREE_5: Case = threads("threads, no cap, 5 s", 5_000, None);
const CAP_40: Case = threads("threads, cap 40, 5 s", 5_000, Some(40));
const CAP_20: Case = threads("threads, cap 20, 3 s", 3_000, Some(20));
const LONG: Case = Case {
    rate: TIMEOUT_RATE,
    ..threads("threads, no cap, 30/s, 5 s", 5_000, None)
};
const SHORT: Case = Case {
    rate: TIMEOUT_RATE,
    timeout_ms: 2_000,
    ..threads("threads, no cap, 30/s, 5 s, timeout 2 s", 5_000, None)
};
const SHIPPED_FREE: Case = Case {
    threads: false,
    ..threads("as shipped but no cap, 5 s", 5_000, None)
};
const SHIPPED: Case = Case {
    threads: false,
    ..threads("as shipped, cap 40, 5 s", 5_000, Some(40))
};
const CASES: [Case; 12] = [
    threads("threads, no cap, 0 s", 0, None),
    threads("threads, no cap, 0.5 s", 500, None),
    threads("threads, no cap, 1 s", 1_000, None),
    threads("threads, no cap, 2 s", 2_000, None),
    FREE_3,
    FREE_5,
    CAP_40,
    CAP_20,
    LONG,
    SHORT,
    SHIPPED_FREE,
    SHIPPED,
];

impl Case {
    /// How long a confirm holds its worker, s.
    fn hold(self) -> f64 {
        f64::from(self.delay_ms.min(self.timeout_ms)) / 1_000.0
    }

    /// The p95 of what everything waits for a worker, in ms, by the arithmetic of one queue.
    fn wait_p95_ms(self, seconds: u32) -> f64 {
        let waits = queue_waits(WORKERS, self.rate, seconds, self.hold());
        let spans = waits.into_iter().map(Duration::from_secs_f64);
        Latencies::of(spans).percentile_ms(95.0).unwrap_or(0.0)
    }
}

fn seconds(lab: &Lab) -> u32 {
    lab.pick(45, 10)
}

fn near(target: f64) -> Rule {
    Rule::Within {
        target: rounded(target),
        tolerance: rounded((target * TOLERANCE).max(AT_ONCE_MS)),
    }
}

fn plan(lab: &Lab) -> Plan {
    let seconds = seconds(lab);
    let mut criteria = of_reads(seconds);
    criteria.extend(of_confirms(lab));
    criteria.extend(of_webhooks(lab));
    Plan {
        question: "Who waits behind confirms that a slow gateway holds, on a server with 100 threads and on Jari?".to_owned(),
        setup: lines(&[
            &format!("confirms evenly spaced for {seconds} s, {RATE}/s unless named; beside them {READS} reads/s and {WEBHOOKS} webhooks/s"),
            &format!("threads: JARI_LAB_WORKERS={WORKERS}, JARI_LANES=off: every request holds one of them until its answer, whoever comes later waits in line"),
            "a raw client that waits 90 s and never polls, so that nothing leaves the line",
            "JARI_CIRCUIT=off, JARI_RESEND=off; PG timeout 60 s unless named; the gateway drops what its caller gave up",
            "expected waits are those of one queue with 100 places, first come first served, of the arrivals of this very run; the published waits are shorter, as of a load whose clients were bounded in number",
        ]),
        valid_only_if: guard(&["confirms were refused where the cap is below the demand, and only there"]),
        criteria,
    }
}

/// A criterion of one condition.
fn one(case: Case, id: &str, says: &str, rule: Rule) -> Criterion {
    let name = case.name;
    Criterion::new(
        name,
        &format!("{id} {name}"),
        &format!("{name}: {says}"),
        rule,
    )
}

const AT_ONCE: Rule = Rule::AtMost { most: AT_ONCE_MS };

fn of_reads(seconds: u32) -> Vec<Criterion> {
    let read = |case: Case, rule, published: &str| {
        one(case, "read", "p95 of light reads, ms", rule).published(published)
    };
    let queue = |case: Case| near(case.wait_p95_ms(seconds));
    let full = Rule::AtMost { most: 5_000.0 };
    let no_thread = "not published: a confirm holds no thread";
    vec![
        read(CASES[0], AT_ONCE, "no queue below 2 s"),
        read(CASES[1], AT_ONCE, "no queue below 2 s"),
        read(CASES[2], AT_ONCE, "no queue below 2 s"),
        read(CASES[3], full, "about 1 s: just what the workers hold")
            .finding()
            .because("50/s × 2 s are the 100 workers, and reads and webhooks come on top: the line is at its turning point, where what every request costs beside the gateway's time decides whether it grows. A busy machine makes that more."),
        read(FREE_3, queue(FREE_3), "about 7 s (7.31, 7.72, 7.85 s)"),
        read(FREE_5, queue(FREE_5), "about 14 s"),
        read(CAP_40, AT_ONCE, "7–8 ms"),
        read(CAP_20, AT_ONCE, "18.6 ms"),
        read(SHIPPED_FREE, AT_ONCE, no_thread)
            .finding()
            .because(BUSY),
        read(SHIPPED, AT_ONCE, no_thread).because(BUSY),
    ]
}

fn of_confirms(lab: &Lab) -> Vec<Criterion> {
    let refused = Rule::Within {
        target: 86.7,
        // In a quick run the empty slots at its beginning count for more.
        tolerance: f64::from(lab.pick(1, 8)),
    };
    let short = Rule::Within {
        target: 2_130.0,
        tolerance: 250.0,
    };
    let long = near(LONG.wait_p95_ms(seconds(lab)) + 1_000.0 * LONG.hold());
    let p95 = "p95 of confirms, ms";
    let none = Rule::exactly(0.0);
    vec![
        one(CAP_20, "refused", "confirms refused by the cap, %", refused)
            .published("1,951 of 2,250: 86.7 %"),
        one(LONG, "confirm", p95, long).published("14.26 s"),
        one(SHORT, "confirm", p95, short).published("2.13 s"),
        one(
            SHORT,
            "unknown",
            "confirms that did not become unknown",
            none,
        )
        .published("1,351 unknown: all of 45 s at 30/s"),
    ]
}

fn of_webhooks(lab: &Lab) -> Vec<Criterion> {
    let late = "webhooks that took longer than 10 s, %";
    let lost = "webhooks sent and not stored";
    let none = Rule::exactly(0.0);
    let p95 = "p95 of webhooks, ms";
    // A quick run is over before anything has waited so long.
    let many = Rule::Above {
        bound: if lab.quick { -1.0 } else { 20.0 },
    };
    vec![
        one(FREE_5, "webhook", late, many).published("26.11 and 26.77 %"),
        one(FREE_5, "lost", lost, none)
            .published("68 of 527")
            .finding(),
        one(CAP_40, "webhook", late, none).published("0.00 %, twice"),
        one(CAP_40, "webhook-p95", p95, AT_ONCE)
            .published("9 ms")
            .because(BUSY),
        one(CAP_40, "lost", lost, none).published("0"),
        one(SHIPPED, "webhook-p95", p95, AT_ONCE)
            .published("not published")
            .because(BUSY),
    ]
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    for case in CASES {
        let condition = measure(lab, case, &mut findings).await?;
        findings.add(case.name, condition);
    }
    told::draw(lab, &mut findings);
    Ok(findings)
}

async fn measure(lab: &Lab, case: Case, findings: &mut Findings) -> anyhow::Result<Condition> {
    let workers = WORKERS.to_string();
    let cap = case
        .cap
        .map_or_else(|| "off".to_owned(), |cap| cap.to_string());
    let timeout = case.timeout_ms.to_string();
    let mut settings = vec![
        ("JARI_CIRCUIT", "off"),
        ("JARI_RESEND", "off"),
        ("JARI_PG_CAP", cap.as_str()),
        ("JARI_PG_TIMEOUT_MS", timeout.as_str()),
        ("JARI_PG_CONFIRM_WINDOW_MS", "5000"),
    ];
    if case.threads {
        settings.extend([
            ("JARI_LAB_WORKERS", workers.as_str()),
            ("JARI_LANES", "off"),
        ]);
    }
    let stage = Stage::open(lab, &settings).await?;
    let seconds = seconds(lab);
    let pace = Pace::steady(case.rate, seconds);
    let orders = stage.prepare(pace.len()).await?;
    let scenario = json!({"delayMs": case.delay_ms, "continueAfterDisconnect": false});
    stage.gateway.set(&scenario).await?;
    let start = soon();
    let (confirms, reads, webhooks) = tokio::join!(
        confirms(&stage, &pace, start, orders),
        read(&stage, seconds, start),
        send_webhooks(&stage, seconds, start)
    );
    let (confirms, reads, webhooks) = (confirms?, reads?, webhooks?);
    stage.gateway.expire_unconfirmed().await?;
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace.len(), &confirms);
    validity::arrivals(&mut condition, "reads", (READS * seconds) as usize, &reads);
    let hooks = (WEBHOOKS * seconds) as usize;
    validity::arrivals(&mut condition, "webhooks", hooks, &webhooks);
    let limit = Duration::from_secs(180);
    let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
    judge_confirms(case, &confirms, &ended, &mut condition, findings);
    judge_beside(case, (&reads, &webhooks), &ended, &mut condition, findings);
    Ok(condition)
}

async fn confirms(
    stage: &Stage,
    pace: &Pace,
    start: Instant,
    orders: Vec<Prepared>,
) -> anyhow::Result<Driven<Answer>> {
    let (client, shop) = (stage.client.clone(), stage.shop.clone());
    let one = move |order: Prepared, due| {
        let (client, shop) = (client.clone(), shop.clone());
        async move { confirm(&client, &shop, &order, None, due).await }
    };
    drive(pace, start, orders, one).await
}

fn judge_confirms(
    case: Case,
    confirms: &Driven<Answer>,
    ended: &Ended,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let all = confirms.arrived.len() as u64;
    let took = Latencies::of(confirms.outcomes().map(|answer| answer.took));
    validity::latencies(condition, "confirmAnswers", &took);
    let refused = confirms
        .outcomes()
        .filter(|answer| answer.code == Some(ProblemCode::PgCapReached))
        .count() as u64;
    let unanswered = confirms
        .outcomes()
        .filter(|answer| answer.status.is_none())
        .count();
    condition.check("every confirm was answered", unanswered == 0, unanswered);
    let above = case
        .cap
        .is_some_and(|cap| f64::from(case.rate) * case.hold() > f64::from(cap));
    condition.check(
        "refused where the demand is above the cap",
        above == (refused > 0),
        refused,
    );
    let name = case.name;
    let unknown = ended.books.ever_unknown;
    findings.measure(
        &format!("unknown {name}"),
        all.saturating_sub(unknown) as f64,
    );
    let percent = 100.0 * share(refused, all);
    condition.figure("refused", refused);
    condition.figure("refusedPercent", rounded(percent));
    findings.measure(&format!("refused {name}"), percent);
    findings.measure_if(&format!("confirm {name}"), took.percentile_ms(95.0));
}

fn judge_beside(
    case: Case,
    (reads, webhooks): (&Driven<Exchange>, &Driven<Exchange>),
    ended: &Ended,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let name = case.name;
    for (what, driven) in [("reads", reads), ("webhooks", webhooks)] {
        let bad = driven.outcomes().filter(|one| !one.ok).count();
        condition.check(&format!("all {what} are answered 200"), bad == 0, bad);
        validity::latencies(condition, what, &spans(driven));
    }
    findings.measure_if(&format!("read {name}"), spans(reads).percentile_ms(95.0));
    let took = spans(webhooks);
    let late = 100.0 * took.share_above(WEBHOOK_LIMIT_MS);
    condition.figure("webhooksAbove10SecondsPercent", rounded(late));
    findings.measure(&format!("webhook {name}"), late);
    findings.measure_if(&format!("webhook-p95 {name}"), took.percentile_ms(95.0));
    // By rows: an answer is no proof that anything was kept.
    let (sent, stored) = (webhooks.arrived.len() as u64, ended.books.lab_webhooks);
    condition.figure("webhooksStored", format!("{stored} of {sent}"));
    findings.measure(&format!("lost {name}"), sent.saturating_sub(stored) as f64);
}
