//! The PG read timeout (measurements E): what 5 s and 60 s sell, and what they cost the gateway.

use std::time::Duration;

use futures::FutureExt as _;
use payment::wire::ProblemCode;
use serde_json::{Value, json};

use super::{Experiment, answers, lines, pages, pictures, refusals, refused};
use crate::harness::regret;
use crate::harness::sampler::Sampler;
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, soon};
use crate::plan::{Condition, Criterion, Findings, Line, Mark, Plan};
use crate::shopper::Seen;
use crate::stats::{Latencies, ms, rounded, share};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "read-timeout",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Not published; 3,150 arrivals with the warm-up fit the published 2,634 calls and what the cap must have refused.
const RATE: u32 = 50;
const SECONDS: u32 = 60;
/// Not published either: the share of the tail is read off the published 10.2 %, its delay is our choice, ms.
const TAIL: f64 = 0.1;
const TAIL_MS: u32 = 8_000;
/// The brownout, ms, and the gateway's assumed contract (measurements E).
const BROWNOUT_MS: u32 = 20_000;
const CONTRACT: u32 = 60;
/// The shipped cap.
const CAP: u32 = 40;

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Illness {
    /// Some approvals are slow.
    Tail,
    /// All are, and the gateway works on so many at once.
    Brownout,
    /// All are, and the gateway takes whatever comes.
    NoLimit,
}

const CASES: [(Illness, u32); 6] = [
    (Illness::Tail, 5),
    (Illness::Tail, 60),
    (Illness::Brownout, 5),
    (Illness::Brownout, 60),
    (Illness::NoLimit, 5),
    (Illness::NoLimit, 60),
];

impl Illness {
    const fn says(self) -> &'static str {
        match self {
            Self::Tail => "slow tail",
            Self::Brownout => "brownout",
            Self::NoLimit => "brownout without a limit",
        }
    }

    fn scenario(self) -> Value {
        match self {
            Self::Tail => json!({"slowTail": {"ratio": TAIL, "delayMs": TAIL_MS}, "seed": 1}),
            Self::Brownout => json!({"delayMs": BROWNOUT_MS, "contractLimit": CONTRACT}),
            Self::NoLimit => json!({"delayMs": BROWNOUT_MS}),
        }
    }
}

fn name((illness, timeout): (Illness, u32)) -> String {
    format!("{}, {timeout} s", illness.says())
}

fn pace(lab: &Lab) -> Pace {
    // A brownout shows itself only after its first 20 s.
    Pace::warmed(RATE, lab.pick(SECONDS, 30), lab.quick)
}

/// So many whole rounds of the brownout begin while the load is on, and each sells what the gateway holds.
fn sold(lab: &Lab, at_once: u32, every_s: u32) -> f64 {
    let rounds = pace(lab).seconds().div_ceil(every_s);
    f64::from(at_once * rounds)
}

fn plan(lab: &Lab) -> Plan {
    let names = CASES.map(name);
    let mut criteria = of_tail();
    criteria.extend(of_brownout(lab));
    criteria.extend(of_cost(lab));
    criteria.extend(of_no_limit(lab));
    criteria.push(regret::criterion(names.iter().map(String::as_str)));
    Plan {
        question: "What does a read timeout of 5 s sell and cost against one of 60 s?".to_owned(),
        setup: lines(&[
            &format!(
                "pages at their shipped times, {}, all counted; cap {CAP}, recovery as shipped, JARI_CIRCUIT=off (it would open on timeouts of 5 s), JARI_RESEND=budget",
                pace(lab).says()
            ),
            "the gateway goes on with calls that we cut, answers 409 for their key meanwhile, and with the first result afterwards",
            &format!(
                "slow tail: {} % of the approvals take {TAIL_MS} ms, the others none; neither rate nor tail is published, both are our choice",
                100.0 * TAIL
            ),
            &format!(
                "brownout: every approval takes {BROWNOUT_MS} ms, and the gateway refuses (429) beyond {CONTRACT} at once; without a limit: as many as come"
            ),
            "sold by rounds: what the gateway holds at once, as often as a round of 20 s begins while the load is on (5 s where only our cap bounds it)",
        ]),
        valid_only_if: guard(&["payments became unknown with 5 s"]),
        criteria,
    }
}

/// A criterion of one condition, by its name.
fn one(condition: &str, id: &str, says: &str, rule: Rule) -> Criterion {
    Criterion::new(condition, id, &format!("{condition}: {says}"), rule)
}

/// Not further off than a part of it.
fn near(target: f64, part: f64) -> Rule {
    Rule::Within {
        target: rounded(target),
        tolerance: rounded(target * part),
    }
}

const fn between(least: f64, most: f64) -> Rule {
    Rule::Between { least, most }
}

fn of_tail() -> Vec<Criterion> {
    let [tail5, tail60, ..] = CASES.map(name);
    let says = "payments that became unknown, %";
    let unknown = Rule::Within {
        target: 10.2,
        tolerance: 2.0,
    };
    let none = Rule::exactly(0.0);
    vec![
        one(&tail5, "tail-unknown-5", says, unknown).published("10.2 %"),
        one(&tail60, "tail-unknown-60", says, none).published("0"),
        one(&tail5, "at-least-5", says, between(5.0, 100.0))
            .published("10.2 % (the first of the two that decided for 60 s)"),
        // Erlang's loss formula for 40 slots and 50/s × 10 % × 8 s = 40 of demand: 12 %.
        one(
            &tail60,
            "tail-refused-60",
            "refused by the cap, %",
            between(5.0, 17.0),
        )
        .published("not published")
        .finding(),
    ]
}

/// What the brownout sells.
fn of_brownout(lab: &Lab) -> Vec<Criterion> {
    let [_, _, brown5, brown60, ..] = CASES.map(name);
    let until = "until the sold were known, median, s";
    let all = Rule::exactly(100.0);
    let twice = Rule::AtMost { most: 2.0 };
    vec![
        one(
            &brown5,
            "sold-5",
            "sold",
            near(sold(lab, CONTRACT, 20), 0.06),
        )
        .published("240"),
        one(&brown60, "sold-60", "sold", near(sold(lab, CAP, 20), 0.06)).published("160"),
        one(
            &brown5,
            "at-most-twice",
            "sold as many times as with 60 s",
            twice,
        )
        .and(&brown60)
        .published("1.5 (the second of the two that decided for 60 s)"),
        one(
            &brown5,
            "through-unknown",
            "of the sold, through unknown, %",
            all,
        )
        .published("all"),
        one(&brown5, "known-5", until, between(19.0, 30.0))
            .published("about 2 min")
            .finding(),
        one(&brown60, "known-60", until, between(19.5, 24.0)).published("about 20 s"),
    ]
}

/// Why two published counts are not ours: they are told as findings.
pub(crate) const RATE_IS_OURS: &str = "How many arrive is not published, and these counts follow it: what the gateway refuses at its limit gives its slot back at once, so nearly every further arrival is one more call. PG calls are the arrivals less what the cap refuses, and the resends; published are 240 sold + 2,216 refused + 178 others, so that fewer first sends came than our choice of 50/s for 60 s and the warm-up makes. The ratio to 60 s, the sales and the doubt do not hang on it.";

/// What the brownout costs the gateway.
fn of_cost(lab: &Lab) -> Vec<Criterion> {
    let [_, _, brown5, brown60, ..] = CASES.map(name);
    let limited = "refused by the contract limit";
    let more = "PG calls as many times those with 60 s";
    let mut criteria = vec![
        one(&brown5, "more-calls", more, between(12.0, 20.0))
            .and(&brown60)
            .published("2,634: 16×"),
        one(&brown60, "limited-60", limited, Rule::exactly(0.0)).published("0"),
        one(
            &brown60,
            "calls-60",
            "PG calls",
            near(sold(lab, CAP, 20), 0.06),
        )
        .published("160"),
    ];
    if !lab.quick {
        let calls = one(&brown5, "calls-5", "PG calls", near(2_634.0, 0.1));
        let refused = one(&brown5, "limited-5", limited, near(2_216.0, 0.1));
        // Findings: both rest on how many arrive, which is not published.
        let both = [calls.published("2,634"), refused.published("2,216")];
        criteria.extend(both.map(|one| one.finding().because(RATE_IS_OURS)));
    }
    criteria
}

fn of_no_limit(lab: &Lab) -> Vec<Criterion> {
    let [.., free5, free60] = CASES.map(name);
    let peak = near(f64::from(CAP * 4), 0.06);
    vec![
        one(&free5, "sold-free-5", "sold", near(sold(lab, CAP, 5), 0.06)).published("600"),
        one(
            &free5,
            "peak-free-5",
            "worked on at the gateway at once",
            peak,
        )
        .published("160"),
        one(
            &free60,
            "sold-free-60",
            "sold",
            near(sold(lab, CAP, 20), 0.06),
        )
        .published("160"),
    ]
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let (mut known, mut slots) = (Vec::new(), Vec::new());
    for case in CASES {
        let drawn = measure(lab, case, &mut findings).await?;
        known.push(drawn.0);
        slots.push(drawn.1);
    }
    let of = |id: &str| findings.value(id);
    let ratio = |one: &str, other: &str| {
        let both = of(one).zip(of(other)).filter(|(_, other)| *other > 0.0);
        both.map(|(one, other)| rounded(one / other))
    };
    let (calls, more) = (ratio("calls-5", "calls-60"), ratio("sold-5", "sold-60"));
    findings.measure_if("more-calls", calls);
    findings.measure_if("at-most-twice", more);
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    let sold = [of("sold-5"), of("sold-60")];
    findings.answer = Some(format!(
        "In the brownout 5 s sold {} and 60 s {} ({:.2} times), with {:.1} times the calls, and all through unknown; in the slow tail 5 s made {:.1} % unknown and 60 s {:.1} %. What 60 s cost: in that tail the cap refused {:.1} %, since slow calls keep their slots. The calls themselves ({} with 5 s) follow from how many arrive, which is not published.",
        of("sold-5"),
        of("sold-60"),
        of("at-most-twice"),
        of("more-calls"),
        of("tail-unknown-5"),
        of("tail-unknown-60"),
        of("tail-refused-60"),
        of("calls-5")
    ));
    findings.plots.push(pictures::known_plot(known));
    findings.plots.push(pictures::slots_plot(slots));
    let bars = |name: &str, points: [f64; 2]| {
        let points = [5.0, 60.0].into_iter().zip(points).collect();
        pictures::line(name, Mark::Bars, points)
    };
    findings.plots.push(pictures::plot(
        "What a brownout sells with each read timeout",
        "read timeout, s",
        "payments sold",
        vec![
            bars("measured", sold),
            pictures::line("published", Mark::Dots, vec![(5.0, 240.0), (60.0, 160.0)]),
        ],
    ));
    Ok(findings)
}

async fn measure(
    lab: &Lab,
    case: (Illness, u32),
    findings: &mut Findings,
) -> anyhow::Result<(Line, Line)> {
    let timeout = (case.1 * 1_000).to_string();
    let settings = [
        ("JARI_CIRCUIT", "off"),
        ("JARI_PG_TIMEOUT_MS", timeout.as_str()),
    ];
    let stage = Stage::open(lab, &settings).await?;
    let pace = pace(lab);
    let orders = stage.prepare(pace.len()).await?;
    stage.gateway.set(&case.0.scenario()).await?;
    let start = soon();
    let sampler = Sampler::confirms_in_flight(&stage, Duration::from_millis(500));
    let seen = pages(&stage, &pace, start, orders).await?;
    let samples = sampler.end().await?;
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
    let limit = Duration::from_secs(300);
    let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
    regret::note(seen.outcomes(), &ended.ledger, &mut condition, findings);
    judge(case, &seen, &ended, &mut condition, findings);
    let name = name(case);
    let lines = (
        pictures::known(&name, seen.outcomes()),
        pictures::slots(&name, &samples, start),
    );
    findings.add(name, condition);
    Ok(lines)
}

fn judge(
    case: (Illness, u32),
    seen: &Driven<Seen>,
    ended: &Ended,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let (illness, timeout) = case;
    let all = seen.arrived.len() as u64;
    validity::latencies(condition, "confirmAnswers", &answers(seen.outcomes()));
    condition.figure("refusals", refusals(seen.outcomes()));
    let unknown = ended.books.ever_unknown;
    if timeout == 5 {
        condition.check("payments became unknown", unknown > 0, unknown);
    }
    let sold = ended.books.orders_in("paid");
    let calls = ended.ledger.confirms("received");
    let limited = ended.ledger.confirms("limited");
    let refused = refused(seen.outcomes(), ProblemCode::PgCapReached);
    let percent = |part| rounded(100.0 * share(part, all));
    let paid = Latencies::of(
        seen.outcomes()
            .filter(|seen| seen.told_paid)
            .map(|seen| seen.took),
    );
    condition.figure("untilPaidIsKnown", paid.summary());
    condition.figure("refusedByTheContractLimit", limited);
    condition.figure("unknownPercent", percent(unknown));
    condition.figure("refusedByTheCapPercent", percent(refused));
    let median = paid.percentile_ms(50.0).map(|median| median / 1_000.0);
    let mut note = |id: String, value: f64| findings.measure(&id, value);
    match illness {
        Illness::Tail => {
            note(format!("tail-unknown-{timeout}"), percent(unknown));
            note(format!("tail-refused-{timeout}"), percent(refused));
            if timeout == 5 {
                note("at-least-5".to_owned(), percent(unknown));
            }
        }
        Illness::Brownout => {
            note(format!("sold-{timeout}"), sold as f64);
            note(format!("calls-{timeout}"), calls as f64);
            note(format!("limited-{timeout}"), limited as f64);
            note(format!("known-{timeout}"), median.unwrap_or(f64::INFINITY));
            if timeout == 5 {
                // Paid by the confirm's own answer is not through unknown.
                let at_once = seen.outcomes().filter(|seen| seen.paid).count() as u64;
                let through = sold.saturating_sub(at_once);
                note(
                    "through-unknown".to_owned(),
                    rounded(100.0 * share(through, sold)),
                );
            }
        }
        Illness::NoLimit => {
            note(format!("sold-free-{timeout}"), sold as f64);
            note(
                format!("peak-free-{timeout}"),
                ended.ledger.peak_confirms() as f64,
            );
        }
    }
    let longest = seen.outcomes().map(|seen| seen.doubt).max();
    condition.figure(
        "longestDoubtMs",
        longest.map(|longest| rounded(ms(longest))),
    );
}
