//! How soon it is known what became of payments whose answers were lost, once the gateway answers again.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use serde_json::json;

use super::{Experiment, answers, lines, pictures};
use crate::harness::Lab;
use crate::harness::regret;
use crate::harness::site::{Engine, Site};
use crate::harness::truth;
use crate::harness::validity::{self, site_guard};
use crate::pace::{Driven, Pace, drive, soon};
use crate::plan::{Condition, Criterion, Findings, Mark, Plan};
use crate::raw::confirm;
use crate::shopper::{Prepared, Seen, shop};
use crate::stats::{Latencies, rounded, share};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "known",
    plan,
    run: |lab| run(lab).boxed_local(),
};

const ALONE: &str = "recovery alone";
const HOOKS: &str = "with webhooks";
const MANY: &str = "many";
/// Confirms at once while the unknown are made.
const AT_ONCE: usize = 24;
/// How long the gateway stays silent before it answers again, from the first confirm on.
const OUTAGE: Duration = Duration::from_secs(15);
/// What the gateway takes for anything once it answers, ms.
const DELAY_MS: u64 = 20;
/// New shoppers a second while the many are drained.
const RATE: u32 = 10;
/// How soon it is to be known, ms.
const TARGET_MS: f64 = 5_000.0;
/// How long all may take to be known.
const LIMIT: Duration = Duration::from_secs(600);

/// How many unknown of the many, and for how long new shoppers come.
fn many(lab: &Lab) -> (u32, u32) {
    (lab.pick(10_000, 200), lab.pick(60, 6))
}

fn plan(lab: &Lab) -> Plan {
    let few = lab.pick(100, 20);
    let (count, seconds) = many(lab);
    let soon = Rule::AtMost { most: TARGET_MS };
    let mut criteria = vec![
        Criterion::new(
            ALONE,
            "alone-p99",
            "from the gateway's first answer until known, p99, ms",
            soon,
        )
        .published("about 2 minutes"),
        Criterion::new(HOOKS, "hooks-p99", "the same with webhooks, p99, ms", soon),
        Criterion::new(
            ALONE,
            "alone-calls",
            "inquiries for each unknown after that moment",
            Rule::AtMost { most: 2.0 },
        ),
        Criterion::new(
            MANY,
            "many-calls",
            "the same of the many",
            Rule::AtMost { most: 2.0 },
        ),
        Criterion::new(
            MANY,
            "many-paid",
            "new shoppers meanwhile who were paid, %",
            Rule::Above { bound: 99.0 },
        ),
        Criterion::new(
            MANY,
            "many-rate",
            "the many that became known, a second",
            Rule::Above { bound: 20.0 },
        )
        .finding(),
    ];
    criteria.push(regret::criterion([MANY]));
    for condition in [ALONE, HOOKS, MANY] {
        criteria.extend(truth::criteria(condition));
    }
    Plan {
        question: "Once the gateway answers again, how soon is it known what became of the payments whose answers it lost, and what does it cost?".to_owned(),
        setup: lines(&[
            "SQLite, one process, settings as shipped but JARI_CIRCUIT=off: all of the confirms are to be sent",
            &format!("{few} confirms are booked, and every answer to a confirm and to an inquiry is lost; after {} s the gateway answers again, in {DELAY_MS} ms", OUTAGE.as_secs()),
            "recovery alone: no webhooks; with webhooks: they are sent as long after each booking as the gateway is silent",
            &format!("many: the same with {count}, without webhooks; from the gateway's return on {RATE} new shoppers/s come for {seconds} s"),
            "known is when the gateway's word was recorded, by the rows",
        ]),
        valid_only_if: site_guard(&[
            "every confirm was answered 202, and every attempt was in doubt as the gateway came back",
            "the gateway booked every one of them, and was asked in vain before",
            "every new shopper arrived",
        ]),
        criteria,
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let few = lab.pick(100, 20);
    measure(lab, ALONE, few, &mut findings).await?;
    measure(lab, HOOKS, few, &mut findings).await?;
    measure(lab, MANY, many(lab).0, &mut findings).await?;
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "99 % were known {:.1} s after the gateway's return by recovery alone, {:.1} s with webhooks, at {:.2} inquiries each (published: about 2 minutes); {} at once became known at {:.1} a second while {:.1} % of the new shoppers were paid.",
        of("alone-p99") / 1_000.0,
        of("hooks-p99") / 1_000.0,
        of("alone-calls"),
        many(lab).0,
        of("many-rate"),
        of("many-paid")
    ));
    Ok(findings)
}

/// The share that is known by the time since the gateway's return.
fn draw(name: &str, known: &Latencies, condition: &mut Condition, findings: &mut Findings) {
    condition.figure("untilKnown", known.summary());
    let points = (1..=100).filter_map(|percent| {
        let percent = f64::from(percent);
        Some((known.percentile_ms(percent)? / 1_000.0, percent))
    });
    let line = pictures::line(name, Mark::Steps, points.collect());
    match findings.plots.first_mut() {
        Some(plot) => plot.lines.push(line),
        None => findings.plots.push(pictures::plot(
            "How soon it is known what became of lost payments, from the gateway's return on",
            "time since the gateway's return, s",
            "known, %",
            vec![line],
        )),
    }
}

async fn measure(
    lab: &Lab,
    name: &'static str,
    count: u32,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let site = Site::open(lab, Engine::Sqlite, 1, &[("JARI_CIRCUIT", "off")]).await?;
    let pace = Pace::steady(RATE, many(lab).1);
    let newcomers = if name == MANY { pace.len() } else { 0 };
    let mut orders = site.prepare(count as usize + newcomers).await?;
    let new = orders.split_off(count as usize);
    let mut condition = Condition::default();
    let begun = Instant::now();
    lose(&site, name, orders, &mut condition).await?;
    tokio::time::sleep_until((begun + OUTAGE).into()).await;
    let doubtful = site.rows().await?.in_doubt().await?;
    let seen = format!("{doubtful} of {count}");
    condition.check("all were in doubt", doubtful == u64::from(count), seen);
    let before = site.gateway.ledger().await?;
    let booked = before.charged_orders();
    condition.check("all were booked", booked == u64::from(count), booked);
    let asked = before.calls("get", "received");
    condition.check("asked in vain before", asked > 0, asked);
    let hooks = if name == HOOKS { 0.0 } else { 1.0 };
    let healthy =
        json!({"operations": ["confirm", "get"], "delayMs": DELAY_MS, "webhooks": {"drop": hooks}});
    let back = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    site.gateway.set(&healthy).await?;
    let start = soon();
    let url = site.nodes[0].url.clone();
    let client = site.client.clone();
    let page = |order, due| {
        let times = payment::time::PageTimes::DEFAULT;
        shop(client.clone(), url.clone(), order, times, due)
    };
    let (seen, drained) = tokio::join!(drive(&pace, start, new, page), site.all_known(LIMIT));
    let (seen, drained) = (seen?, drained?);
    // Whoever came last may not be known yet.
    site.all_known(LIMIT).await?;
    let known = known_after(&site, back, count).await?;
    draw(name, &known, &mut condition, findings);
    condition.figure(
        "drainSeconds",
        drained.map(|took| rounded(took.as_secs_f64())),
    );
    let ledger = site.gateway.ledger().await?;
    let calls = (ledger.calls("get", "received") - asked) as f64 / f64::from(count);
    condition.figure(
        "inquiriesInVainForEach",
        rounded(asked as f64 / f64::from(count)),
    );
    condition.figure("inquiriesForEach", rounded(calls));
    let p99 = known.percentile_ms(99.0).unwrap_or(f64::INFINITY);
    match name {
        ALONE => {
            findings.measure("alone-p99", p99);
            findings.measure("alone-calls", calls);
        }
        HOOKS => findings.measure("hooks-p99", p99),
        _ => {
            findings.measure("many-calls", calls);
            let rate = known
                .percentile_ms(100.0)
                .map(|last| f64::from(count) / (last / 1_000.0));
            findings.measure_if("many-rate", rate.map(rounded));
            newcomers_fared(&pace, &seen, &mut condition, findings);
        }
    }
    let truth = validity::end_site(site, &mut condition, &ledger).await?;
    if name == MANY {
        regret::note(seen.outcomes(), &ledger, &mut condition, findings);
    }
    truth.judge(name, &ledger, &mut condition, findings);
    findings.add(name, condition);
    Ok(())
}

/// Confirms everything at a gateway that books and loses all answers.
async fn lose(
    site: &Site,
    name: &str,
    orders: Vec<Prepared>,
    condition: &mut Condition,
) -> anyhow::Result<()> {
    let hooks = if name == HOOKS {
        json!({"delayMs": u64::try_from(OUTAGE.as_millis())?})
    } else {
        json!({"drop": 1.0})
    };
    let silent =
        json!({"operations": ["confirm", "get"], "loss": {"when": "after"}, "webhooks": hooks});
    site.gateway.set(&silent).await?;
    let (client, url, count) = (&site.client, &site.nodes[0].url, orders.len());
    let doubtful = stream::iter(orders)
        .map(|order| async move { confirm(client, url, &order, None, Instant::now()).await })
        .buffer_unordered(AT_ONCE)
        .filter(|answer| std::future::ready(answer.status == Some(202)))
        .count()
        .await;
    let seen = format!("{doubtful} of {count}");
    condition.check("every confirm was answered 202", doubtful == count, seen);
    Ok(())
}

/// From the gateway's return until each of the first attempts was known.
async fn known_after(site: &Site, back: u128, count: u32) -> anyhow::Result<Latencies> {
    let sql = format!(
        "SELECT min(e.at) FROM evidence e WHERE e.event = 'charged' AND e.attempt_id IN \
         (SELECT id FROM attempts WHERE claimed_at < {back} ORDER BY id LIMIT {count}) GROUP BY e.attempt_id"
    );
    let rows: Vec<(i64,)> = site.rows().await?.all(&sql).await?;
    let after = |(at,): (i64,)| {
        let ms = u128::from(at.unsigned_abs()).saturating_sub(back);
        Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
    };
    let mut spans: Vec<_> = rows.into_iter().map(after).collect();
    // What never became known counts as the worst.
    spans.resize(count as usize, LIMIT);
    Ok(Latencies::of(spans))
}

fn newcomers_fared(
    pace: &Pace,
    seen: &Driven<Seen>,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let started = seen.arrived.len();
    let all = format!("{started} of {}", pace.len());
    condition.check("every new shopper arrived", started == pace.len(), all);
    let paid = seen.outcomes().filter(|seen| seen.paid).count() as u64;
    findings.measure("many-paid", rounded(100.0 * share(paid, started as u64)));
    condition.figure("newShoppersAnswers", answers(seen.outcomes()).summary());
}
