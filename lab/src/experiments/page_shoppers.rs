//! Shoppers who behave as the page does, with a few who have left among them as the control (measurements A2): whether the
//! deadline ever stands for a real page, and what those hear who gave their answer up.

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use payment::time::{Millis, PageTimes};
use payment::wire::ProblemCode;
use serde_json::{Value, json};

use super::{Experiment, answers, lines, pictures, refusals};
use crate::harness::regret;
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, drive, soon};
use crate::plan::{Condition, Criterion, Findings, Plan};
use crate::raw::{Answer, confirm};
use crate::shopper::{Prepared, Seen, shop};
use crate::stats::{Latencies, rounded, share};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "page-shoppers",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Confirms a second, and for how long (measurements A2).
const RATE: u32 = 50;
const SECONDS: u32 = 60;
/// One of so many is the control: it has left before it asks (measurements A2: 2 %).
const CONTROL_OF: usize = 50;
/// The published page: 15 s for the response, then ten looks 1.2 s apart.
const TIMES: PageTimes = PageTimes {
    response_wait: Millis::from_secs(15),
    poll_interval: Millis::new(1_200),
    poll_count: 10,
    poll_limit: Millis::from_secs(5),
};
/// Two read timeouts and the pause between them bound an answer, ms (measurements A2); a busy machine adds some.
const LONGEST_ANSWER_MS: f64 = 10_100.0;
const BUSY_MS: f64 = 400.0;

const HEALTHY: &str = "gateway 0.5 s";
const SLOW: &str = "gateway 8 s, drops";
const GOES_ON: &str = "gateway 8 s, goes on";
const STARVED: &str = "workers starved";
const ALL: [&str; 4] = [HEALTHY, SLOW, GOES_ON, STARVED];

fn scenario(name: &str) -> Value {
    match name {
        HEALTHY => json!({"delayMs": 500, "continueAfterDisconnect": false}),
        SLOW => json!({"delayMs": 8_000, "continueAfterDisconnect": false}),
        GOES_ON => json!({"delayMs": 8_000}),
        // 50/s × 3 s is half as much again as the workers hold.
        _ => json!({"delayMs": 3_000, "continueAfterDisconnect": false}),
    }
}

fn settings(name: &str) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![
        ("JARI_CIRCUIT", "off"),
        ("JARI_PG_TIMEOUT_MS", "5000"),
        ("JARI_PG_CONFIRM_WINDOW_MS", "5000"),
        ("JARI_POLL_INTERVAL_MS", "1200"),
        ("JARI_POLL_COUNT", "10"),
    ];
    if name == STARVED {
        settings.extend([
            ("JARI_PG_CAP", "off"),
            ("JARI_LANES", "off"),
            ("JARI_LAB_WORKERS", "100"),
        ]);
    }
    settings
}

fn plan(lab: &Lab) -> Plan {
    let none = Rule::exactly(0.0);
    let mut criteria = Vec::new();
    for name in ALL {
        let one = |id: &str, says: &str| {
            Criterion::new(
                name,
                &format!("{id} {name}"),
                &format!("{name}: {says}"),
                none,
            )
        };
        criteria.push(
            one("late", "pages refused for a passed deadline").published("0 in every condition"),
        );
        criteria.push(one("control", "controls not refused for it").published("0: all left out"));
    }
    criteria.extend(of_slow(lab));
    criteria.extend(of_starved());
    criteria.push(regret::criterion(ALL));
    Plan {
        question: "Does the deadline ever stand for shoppers who behave as the page does, and what do those hear who gave the answer up?".to_owned(),
        setup: lines(&[
            &format!("{RATE} confirms/s evenly spaced for {} s, cap 40, PG timeout 5 s, JARI_CIRCUIT=off, JARI_RESEND=budget", seconds(lab)),
            "pages: 15 s for the response, then 10 looks 1.2 s apart; they send 27 s as their time left (the published pages still sent 15 s: more time can only leave fewer out)",
            "every 50th is the control: X-Request-Timeout-Ms 0",
            "the conditions but 8 s are not stated in the published text; starved: gateway 3 s, no cap, JARI_LAB_WORKERS=100, JARI_LANES=off, which by a queue's arithmetic lets about 60 % wait longer than 15 s",
            "drops / goes on: what the gateway does with work whose caller hung up (continueAfterDisconnect)",
        ]),
        valid_only_if: guard(&[
            "the deadline's counter moved by the control",
            "payments became unknown where the gateway takes 8 s",
        ]),
        criteria,
    }
}

fn seconds(lab: &Lab) -> u32 {
    lab.pick(SECONDS, 10)
}

fn of_slow(lab: &Lab) -> [Criterion; 4] {
    // 40 slots for 5 s each, for as long as the load lasts.
    let unknown = f64::from(40 * seconds(lab) / 5);
    let within = Rule::Within {
        target: unknown,
        tolerance: rounded(0.06 * unknown).max(10.0),
    };
    let bounded = Rule::AtMost {
        most: LONGEST_ANSWER_MS + BUSY_MS,
    };
    [
        Criterion::new(
            SLOW,
            "longest-answer",
            "gateway 8 s: the longest answer to a confirm, ms",
            bounded,
        )
        .published("10.1 s"),
        Criterion::new(
            SLOW,
            "unknown",
            "gateway 8 s, drops: payments that became unknown",
            within,
        )
        .published("480 got 202"),
        Criterion::new(
            SLOW,
            "learned-drops",
            "gateway 8 s, drops: of the unknown, learned while the page waited, %",
            Rule::exactly(0.0),
        )
        .published("0 of 480 (recovery every 60 s)")
        .finding()
        .because("The published recovery looked every 60 s, longer than the page waited. Ours asks from 1 s on by back-off, and with a confirm window of 5 s the gateway's word that nothing was charged is final soon after: everybody hears it while the page waits."),
        Criterion::new(
            GOES_ON,
            "learned-goes-on",
            "gateway 8 s, goes on: of the unknown, learned while the page waited, %",
            Rule::Above { bound: 95.0 },
        )
        .published("none in their 12 s of looks")
        .finding(),
    ]
}

fn of_starved() -> [Criterion; 2] {
    let cut = Rule::Within {
        target: 62.0,
        tolerance: 12.0,
    };
    [
        Criterion::new(
            STARVED,
            "cut",
            "workers starved: pages that gave the answer up at 15 s, %",
            cut,
        )
        .published("62 %"),
        Criterion::new(
            STARVED,
            "cut-learned",
            "workers starved: of those that were charged, learned it while they looked, %",
            Rule::Above { bound: 95.0 },
        )
        .published("all 1,300")
        .finding()
        .because("Our page gives a look up after 5 s, and its looks wait in the same line as the confirms, longer than that. In virtual time a condition in which looks wait as long as it takes stands beside it."),
    ]
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut known = Vec::new();
    for name in ALL {
        let stage = Stage::open(lab, &settings(name)).await?;
        let pace = Pace::steady(RATE, seconds(lab));
        let orders = stage.prepare(pace.len()).await?;
        stage.gateway.set(&scenario(name)).await?;
        let seen = shoppers(&stage, &pace, soon(), orders).await?;
        stage.gateway.expire_unconfirmed().await?;
        let mut condition = Condition::default();
        validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
        let limit = Duration::from_secs(180);
        let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
        regret::note(
            pages_of(&seen),
            &ended.ledger,
            &mut condition,
            &mut findings,
        );
        known.push(pictures::known(name, pages_of(&seen)));
        judge(name, &seen, &ended, &mut condition, &mut findings);
        findings.add(name, condition);
    }
    findings.plots.push(pictures::known_plot(known));
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    let late: f64 = ALL.iter().map(|name| of(&format!("late {name}"))).sum();
    findings.answer = Some(format!(
        "For {late} pages in all. Starved workers made {:.1} % give their answer up, and the server never noticed; of those charged {:.1} % learned it by looking, since their looks wait in the same line and a look is given up after 5 s. With a gateway of 8 s that goes on, {:.1} % of the unknown learned within their wait, with one that drops {:.1} %: recovery asks from 1 s on, and with a confirm window of 5 s it may say that nothing was charged after 10 s (published: every 60 s).",
        of("cut"),
        of("cut-learned"),
        of("learned-goes-on"),
        of("learned-drops")
    ));
    Ok(findings)
}

/// A page, or one of the control.
enum Shopper {
    Page(Seen),
    Left(Answer),
}

fn pages_of(seen: &Driven<Shopper>) -> impl Iterator<Item = &Seen> {
    seen.outcomes().filter_map(|one| match one {
        Shopper::Page(seen) => Some(seen),
        Shopper::Left(_) => None,
    })
}

async fn shoppers(
    stage: &Stage,
    pace: &Pace,
    start: Instant,
    orders: Vec<Prepared>,
) -> anyhow::Result<Driven<Shopper>> {
    let (client, url) = (stage.client.clone(), stage.shop.clone());
    let one = move |(index, order): (usize, Prepared), due| {
        let (client, url) = (client.clone(), url.clone());
        async move {
            if index % CONTROL_OF == CONTROL_OF - 1 {
                Shopper::Left(confirm(&client, &url, &order, Some(0), due).await)
            } else {
                Shopper::Page(shop(client, url, order, TIMES, due).await)
            }
        }
    };
    drive(pace, start, orders.into_iter().enumerate(), one).await
}

fn judge(
    name: &str,
    seen: &Driven<Shopper>,
    ended: &Ended,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let left: Vec<_> = seen
        .outcomes()
        .filter_map(|one| match one {
            Shopper::Left(answer) => Some(answer),
            Shopper::Page(_) => None,
        })
        .collect();
    let late = |code: Option<ProblemCode>| code == Some(ProblemCode::DeadlinePassed);
    let controls = left.iter().filter(|answer| late(answer.code)).count();
    let counted = ended
        .scrape
        .sum("pg_not_sent_total", &[("reason", "deadline")]);
    condition.check("the control moved the counter", counted > 0.0, counted);
    findings.measure(&format!("control {name}"), (left.len() - controls) as f64);
    // By the counter too: a page that gave its answer up never hears of its refusal.
    let pages = (counted - controls as f64).max(0.0);
    let told = pages_of(seen).filter(|seen| late(seen.refused)).count() as f64;
    findings.measure(&format!("late {name}"), pages.max(told));
    let took = answers(pages_of(seen));
    validity::latencies(condition, "confirmAnswers", &took);
    condition.figure("refusals", refusals(pages_of(seen)));
    condition.figure("controls", left.len());
    let doubtful: Vec<_> = pages_of(seen)
        .filter(|seen| seen.checking.is_some())
        .collect();
    let of_doubtful =
        |is: &dyn Fn(&Seen) -> bool| doubtful.iter().filter(|seen| is(seen)).count() as u64;
    let known = of_doubtful(&|seen| seen.is_known());
    condition.figure("pagesInDoubt", doubtful.len());
    condition.figure("ofThoseLearned", known);
    let percent = 100.0 * share(known, doubtful.len() as u64);
    match name {
        SLOW | GOES_ON => {
            let unknown = ended.books.ever_unknown;
            condition.check("payments became unknown", unknown > 0, unknown);
            if name == SLOW {
                findings.measure("longest-answer", took.percentile_ms(100.0).unwrap_or(0.0));
                findings.measure("unknown", unknown as f64);
                findings.measure("learned-drops", percent);
            } else {
                findings.measure("learned-goes-on", percent);
            }
        }
        STARVED => {
            let cut: Vec<_> = pages_of(seen)
                .filter(|seen| seen.answered.is_none())
                .collect();
            let pages = pages_of(seen).count() as u64;
            findings.measure("cut", 100.0 * share(cut.len() as u64, pages));
            let charged: Vec<_> = cut
                .iter()
                .filter(|seen| ended.ledger.charges(&seen.order) > 0)
                .collect();
            let learned = charged.iter().filter(|seen| seen.told_paid).count() as u64;
            condition.figure("gaveTheAnswerUp", cut.len());
            condition.figure("ofThoseCharged", charged.len());
            condition.figure("ofThoseChargedLearned", learned);
            let percent = 100.0 * share(learned, charged.len() as u64);
            findings.measure_if("cut-learned", (!charged.is_empty()).then_some(percent));
            let late = Latencies::of(charged.iter().map(|seen| seen.took));
            condition.figure("untilThoseKnew", late.summary());
        }
        _ => {}
    }
}
