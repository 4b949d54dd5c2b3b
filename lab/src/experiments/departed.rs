//! Shoppers who have left (measurements A1): what it saves not to send for them.

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use payment::wire::ProblemCode;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::{Experiment, lines, pictures};
use crate::harness::sampler::{Sampler, Samples};
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, drive, soon};
use crate::plan::{Condition, Criterion, Findings, Line, Mark, Plan};
use crate::raw::{Answer, confirm};
use crate::shopper::Prepared;
use crate::stats::{Latencies, rounded, share};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "departed",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Confirms a second, and for how long (measurements A1).
const RATE: u32 = 30;
const SECONDS: u32 = 60;
/// Of ten shoppers in a row so many have left (measurements A1).
const LEFT_OF_TEN: usize = 3;
/// How long the others still wait, ms (measurements A1).
const PATIENCE_MS: u64 = 30_000;
/// With fewer calls in flight (mean) the cap was not full, and refusals prove nothing; published 37–38 of 40.
const FULL: f64 = 36.0;
/// The slots are still filling up so long after the warm-up.
const FILLING: Duration = Duration::from_secs(2);
/// Which of ten have left.
const SEED: u64 = 1;

/// How long the load is on.
fn pace(lab: &Lab) -> Pace {
    Pace::warmed(RATE, lab.pick(SECONDS, 8), lab.quick)
}

fn plan(lab: &Lab) -> Plan {
    let fall = Rule::Between {
        least: 4.0,
        most: 14.0,
    };
    Plan {
        question: "What does the gateway save when nothing is sent for shoppers who have left?"
            .to_owned(),
        setup: lines(&[
            &format!(
                "confirms evenly spaced, {} (all counted); each takes 5 s, PG timeout 2 s, cap 40, reserve 4",
                pace(lab).says()
            ),
            "3 of every 10 confirms carry X-Request-Timeout-Ms 0 (which ones: seeded), the others 30000",
            "a raw client, not the page: it sends one confirm and never polls",
            "JARI_DEADLINE_CHECK off and on; JARI_CIRCUIT=off, JARI_RESEND=budget, JARI_PG_CONFIRM_WINDOW_MS=5000; the gateway drops what its caller gave up",
        ]),
        valid_only_if: guard(&[
            "without the check the cap refused some, and at least 36 of its 40 slots were held (mean)",
        ]),
        criteria: vec![
            Criterion::new("off", "calls-fall", "PG calls saved by the check, %", fall)
                .and("on")
                .published("8.4 % (8.3 % before the resend budget)"),
            Criterion::new(
                "off",
                "refusals-fall",
                "cap refusals saved by the check, %",
                Rule::Above { bound: 50.0 },
            )
            .and("on")
            .published("609 → 169: 72 %"),
            Criterion::new(
                "on",
                "departed-refused",
                "refused for the deadline less departed",
                Rule::exactly(0.0),
            )
            .published("615 = all departed"),
            Criterion::new(
                "off",
                "departed-refused-off",
                "refused for the deadline without the check",
                Rule::exactly(0.0),
            )
            .published("0"),
            reached("off", "68.3 %", 68.3),
            reached("on", "87.4 %", 87.4),
            Criterion::new(
                "off",
                "departed-unknown-off",
                "departed who ended unknown without the check, %",
                within(69.9),
            )
            .published("69.9 %"),
            Criterion::new(
                "on",
                "departed-unknown-on",
                "departed who ended unknown with the check, %",
                Rule::exactly(0.0),
            )
            .published("0"),
        ],
    }
}

/// How far off a published share is still the same, points: a run of one and a half thousand arrivals, Poisson or even.
const fn within(target: f64) -> Rule {
    Rule::Within {
        target,
        tolerance: 5.0,
    }
}

fn reached(check: &str, published: &str, target: f64) -> Criterion {
    let says = format!("check {check}: remaining shoppers who reached the PG, %");
    Criterion::new(check, &format!("reached-{check}"), &says, within(target)).published(published)
}

/// Whether each of `count` shoppers has left: in every ten in a row the same number, in a seeded order.
fn departed(count: usize) -> Vec<bool> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut all = Vec::with_capacity(count + 10);
    while all.len() < count {
        let mut ten: Vec<bool> = (0..10).map(|index| index < LEFT_OF_TEN).collect();
        ten.shuffle(&mut random);
        all.extend(ten);
    }
    all.truncate(count);
    all
}

/// What a run with the check on or off came to.
struct Ran {
    calls: f64,
    refused: f64,
    /// Confirms that got a slot: of those who remained, and of those who had left.
    slots: [f64; 2],
    slots_over_time: Option<Line>,
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut off = measure(lab, "off", &mut findings).await?;
    let mut on = measure(lab, "on", &mut findings).await?;
    let saved = |off: f64, on: f64| (off > 0.0).then(|| 100.0 * (off - on) / off);
    findings.measure_if("calls-fall", saved(off.calls, on.calls));
    findings.measure_if("refusals-fall", saved(off.refused, on.refused));
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "{:.1} % of the gateway's calls and {:.1} % of the cap's refusals: the slots were full either way, and the check changed who had them. Remaining shoppers who reached the gateway went from {:.1} % to {:.1} %, departed ones who ended unknown from {:.1} % to {:.1} %.",
        of("calls-fall"),
        of("refusals-fall"),
        of("reached-off"),
        of("reached-on"),
        of("departed-unknown-off"),
        of("departed-unknown-on")
    ));
    draw(&mut findings, [&mut off, &mut on]);
    Ok(findings)
}

fn draw(findings: &mut Findings, [off, on]: [&mut Ran; 2]) {
    let bars = |name: &str, ran: &Ran| {
        let points = [1.0, 2.0].into_iter().zip(ran.slots).collect();
        pictures::line(name, Mark::Bars, points)
    };
    findings.plots.push(pictures::plot(
        "Who used the slots: 1 shoppers who remained, 2 shoppers who had left",
        "1 remained, 2 had left",
        "confirms that were sent",
        vec![bars("check off", off), bars("check on", on)],
    ));
    let over_time = [off, on].map(|ran| ran.slots_over_time.take());
    findings.plots.push(pictures::slots_plot(
        over_time.into_iter().flatten().collect(),
    ));
}

async fn measure(lab: &Lab, check: &'static str, findings: &mut Findings) -> anyhow::Result<Ran> {
    let settings = [
        ("JARI_CIRCUIT", "off"),
        ("JARI_RESEND", "budget"),
        ("JARI_DEADLINE_CHECK", check),
        ("JARI_PG_TIMEOUT_MS", "2000"),
        ("JARI_PG_CONFIRM_WINDOW_MS", "5000"),
    ];
    let stage = Stage::open(lab, &settings).await?;
    let pace = pace(lab);
    let orders = stage.prepare(pace.len()).await?;
    let scenario = json!({"delayMs": 5_000, "continueAfterDisconnect": false});
    stage.gateway.set(&scenario).await?;
    let start = soon();
    let sampler = Sampler::confirms_in_flight(&stage, Duration::from_millis(250));
    let answers = shoppers(&stage, &pace, start, orders).await?;
    let samples = sampler.end().await?;
    stage.gateway.expire_unconfirmed().await?;
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace.len(), &answers);
    let limit = Duration::from_secs(180);
    let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
    let full = full_slots(&samples, &pace, start);
    let mut ran = judge(check, &answers, &ended, full, &mut condition, findings);
    let name = format!("check {check}");
    ran.slots_over_time = Some(pictures::slots(&name, &samples, start));
    findings.add(check, condition);
    Ok(ran)
}

/// The mean of the slots held while the load was on.
fn full_slots(samples: &Samples, pace: &Pace, start: Instant) -> Option<f64> {
    let until = start + Duration::from_secs(u64::from(pace.seconds()));
    samples.mean(start + pace.warm_up() + FILLING, until)
}

/// A shopper's answer, and whether the shopper had left.
type Left = (bool, Answer);

async fn shoppers(
    stage: &Stage,
    pace: &Pace,
    start: Instant,
    orders: Vec<Prepared>,
) -> anyhow::Result<Driven<Left>> {
    let (client, shop) = (stage.client.clone(), stage.shop.clone());
    let items: Vec<_> = orders.into_iter().zip(departed(pace.len())).collect();
    let send = move |(order, left): (Prepared, bool), due| {
        let (client, shop) = (client.clone(), shop.clone());
        let time_left = if left { 0 } else { PATIENCE_MS };
        async move {
            (
                left,
                confirm(&client, &shop, &order, Some(time_left), due).await,
            )
        }
    };
    drive(pace, start, items, send).await
}

fn judge(
    check: &str,
    answers: &Driven<Left>,
    ended: &Ended,
    full: Option<f64>,
    condition: &mut Condition,
    findings: &mut Findings,
) -> Ran {
    let departed = answers.outcomes().filter(|(left, _)| *left).count();
    let of_code = |code, left| {
        let one = |(was, answer): &&Left| *was == left && answer.code == Some(code);
        answers.outcomes().filter(one).count()
    };
    let not_sent = |reason| ended.scrape.sum("pg_not_sent_total", &[("reason", reason)]);
    let (refused, late) = (not_sent("cap"), not_sent("deadline"));
    let stayed = answers.arrived.len() - departed;
    let stopped = of_code(ProblemCode::PgCapReached, false);
    let unanswered = answers
        .outcomes()
        .filter(|(_, answer)| answer.status.is_none())
        .count();
    condition.check("every confirm was answered", unanswered == 0, unanswered);
    let took = Latencies::of(answers.outcomes().map(|(_, answer)| answer.took));
    validity::latencies(condition, "confirmAnswers", &took);
    condition.figure("departed", departed);
    condition.figure(
        "departedRefusedForDeadline",
        of_code(ProblemCode::DeadlinePassed, true),
    );
    let reached = share((stayed - stopped) as u64, stayed as u64);
    condition.figure("remainingWhoReachedThePgPercent", rounded(100.0 * reached));
    findings.measure(&format!("reached-{check}"), 100.0 * reached);
    let left_unknown = |(left, answer): &&Left| *left && answer.status == Some(202);
    let unknown = answers.outcomes().filter(left_unknown).count() as u64;
    let unknown = 100.0 * share(unknown, departed as u64);
    condition.figure("departedWhoEndedUnknownPercent", rounded(unknown));
    findings.measure(&format!("departed-unknown-{check}"), unknown);
    condition.figure("meanInFlight", full.map(rounded));
    if check == "off" {
        condition.check("the cap refused some", refused > 0.0, refused);
        let seen = format!("{full:?} held");
        condition.check(
            "the cap was full",
            full.is_some_and(|full| full >= FULL),
            seen,
        );
        findings.measure("departed-refused-off", late);
    } else {
        findings.measure("departed-refused", late - departed as f64);
    }
    let sent = |left| {
        let got = |(was, answer): &&Left| *was == left && matches!(answer.status, Some(200 | 202));
        answers.outcomes().filter(got).count() as f64
    };
    Ran {
        calls: ended.ledger.confirms("received") as f64,
        refused,
        slots: [sent(false), sent(true)],
        slots_over_time: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_every_ten_in_a_row_three_have_left_and_the_seed_decides_which() {
        let all = departed(1_950);
        assert_eq!(all.len(), 1_950);
        for ten in all.chunks(10) {
            assert_eq!(ten.iter().filter(|left| **left).count(), LEFT_OF_TEN);
        }
        assert_eq!(all, departed(1_950));
        assert!(all[..10] != all[10..20] || all[10..20] != all[20..30]);
    }
}
