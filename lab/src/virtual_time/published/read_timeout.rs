//! The PG read timeout (measurements E): what 5 s and 60 s sell, and what they cost the gateway.

use payment::time::Millis;
use payment::view::Stage;
use payment::wire::ProblemCode;
use simulation::scene::{Delay, Load, Pg, Ran, Scene, Server, WARM_UP};

use crate::experiments::read_timeout::RATE_IS_OURS;
use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{rounded, share};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, line, measure, note, percentile, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "read-timeout",
    plan,
    run,
};

/// Not published; 3,150 arrivals with the warm-up fit the published 2,634 calls and what the cap must have refused.
const RATE: u32 = 50;
/// Not published either: the share of the tail is read off the published 10.2 %, its delay is our choice, ms.
const TAIL: (f64, Delay) = (0.1, Delay::Fixed(8_000));
/// The gateway's assumed contract (measurements E), and the shipped cap.
const CONTRACT: u32 = 60;
const CAP: u32 = 40;

const CASES: [(&str, u64); 6] = [
    ("slow tail", 5),
    ("slow tail", 60),
    ("brownout", 5),
    ("brownout", 60),
    ("brownout without a limit", 5),
    ("brownout without a limit", 60),
];

fn name((illness, timeout): (&str, u64)) -> String {
    format!("{illness}, {timeout} s")
}

fn scene((illness, timeout): (&str, u64)) -> Scene {
    let tail = illness == "slow tail";
    Scene {
        load: Load {
            rate: RATE,
            seconds: 60,
            warm_up: Some(WARM_UP),
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(if tail { 0 } else { 20_000 }),
            slow_tail: tail.then_some(TAIL),
            contract: (illness == "brownout").then_some(CONTRACT),
            ..Pg::default()
        },
        server: Server::published(Millis::from_secs(timeout), Some(CAP)),
        ..Scene::default()
    }
}

/// So many whole rounds of a brownout begin while the load is on, and each sells what is held at once.
fn sold(at_once: u32, every_s: u32) -> f64 {
    f64::from(at_once * (WARM_UP.1 + 60).div_ceil(every_s))
}

fn plan(size: Size) -> Plan {
    let [tail5, tail60, brown5, brown60, free5, free60] = CASES.map(name);
    let near = |target: f64, part: f64| Rule::Within {
        target: rounded(target),
        tolerance: rounded(target * part),
    };
    let one = |case: &str, id: &str, says: &str, rule| {
        Criterion::new(case, id, &format!("{case}: {says}"), rule)
    };
    let between = |least, most| Rule::Between { least, most };
    let none = Rule::exactly(0.0);
    Plan {
        question: "What does a read timeout of 5 s sell and cost against one of 60 s?".to_owned(),
        setup: vec![
            format!("pages at their shipped times, 10/s for 15 s, then {RATE}/s for 60 s, all counted; cap {CAP}, recovery as shipped, circuit off, resends by the budget"),
            "the gateway goes on with calls that we cut, answers 409 for their key meanwhile, and with the first result afterwards".to_owned(),
            "slow tail: 10 % of the approvals take 8 s, the others none; neither rate nor tail is published, both are our choice".to_owned(),
            format!("brownout: every approval takes 20 s, and the gateway refuses (429) beyond {CONTRACT} at once; without a limit: as many as come"),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: vec![
            one(&tail5, "tail-unknown-5", "payments that became unknown, %", Rule::Within { target: 10.2, tolerance: 2.0 }).published("10.2 %"),
            one(&tail60, "tail-unknown-60", "payments that became unknown, %", none).published("0"),
            one(&brown5, "sold-5", "sold", near(sold(CONTRACT, 20), 0.06)).published("240"),
            one(&brown60, "sold-60", "sold", near(sold(CAP, 20), 0.06)).published("160"),
            one(&brown5, "through-unknown", "of the sold, through unknown, %", Rule::exactly(100.0)).published("all"),
            one(&brown5, "known-5", "until the sold were known, median, s", between(19.0, 30.0)).published("about 2 min").finding().because("A booking is at 20 s, and the back-off asks at 1, 3, 7, 15 and 31 s after the doubt began (here 5 s after the confirm): who asked just before the booking hears of it one step later. Published was a recovery every 60 s."),
            one(&brown60, "known-60", "until the sold were known, median, s", between(19.5, 24.0)).published("about 20 s"),
            one(&brown5, "calls-5", "PG calls", near(2_634.0, 0.1)).published("2,634").finding().because(RATE_IS_OURS),
            one(&brown5, "limited-5", "refused by the contract limit", near(2_216.0, 0.1)).published("2,216; the arrivals' rate is not, and this follows it")
                .finding().because(RATE_IS_OURS),
            one(&brown5, "calls-balance", "PG calls less (arrivals − refused by the cap + resends)", none).published("not published"),
            one(&brown5, "more-calls", "PG calls as many times those with 60 s", between(12.0, 20.0)).and(&brown60).published("2,634: 16×"),
            one(&brown60, "limited-60", "refused by the contract limit", none).published("0"),
            one(&brown60, "calls-60", "PG calls", near(sold(CAP, 20), 0.06)).published("160"),
            one(&free5, "sold-free-5", "sold", near(sold(CAP, 5), 0.06)).published("600"),
            one(&free5, "peak-free-5", "worked on at the gateway at once", near(f64::from(CAP * 4), 0.06)).published("160"),
            one(&free60, "sold-free-60", "sold", near(sold(CAP, 20), 0.06)).published("160"),
            one(&brown5, "at-most-twice", "sold as many times as with 60 s", Rule::AtMost { most: 2.0 })
                .and(&brown60)
                .published("1.5 (the first of the two that decided for 60 s)"),
            one(&tail5, "at-least-5", "payments that became unknown, %", between(5.0, 100.0)).published("10.2 % (the second)"),
        ],
    }
}

fn figures(ran: &Ran) -> Figures {
    let sold = |seen: &&simulation::scene::Seen| seen.charged > 0;
    let paid = ran.seen.iter().filter(sold);
    let known = paid.clone().filter(|seen| seen.stage == Stage::Paid);
    let known = known.map(|seen| seen.took.get() as f64 / 1_000.0);
    let all = ran.seen.len() as u64;
    vec![
        ("sold", ran.sold() as f64),
        ("pgCalls", ran.books.received as f64),
        ("limited", ran.books.limited as f64),
        (
            "callsBalance",
            ran.books.received as f64
                - (all as f64 - ran.counter("pg_not_sent_total", "cap") as f64
                    + ran.counter("pg_resend_total", "sent") as f64),
        ),
        ("peakAtGateway", f64::from(ran.books.peak)),
        ("unknownPercent", 100.0 * share(ran.ever_unknown, all)),
        (
            "throughUnknownPercent",
            100.0 * share(ran.ever_unknown.min(ran.sold()), ran.sold()),
        ),
        (
            "knownSeconds",
            percentile(known, 50.0).unwrap_or(f64::INFINITY),
        ),
        (
            "refusedByCapPercent",
            100.0 * share(ran.refused(ProblemCode::PgCapReached), all),
        ),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let [tail5, tail60, brown5, brown60, free5, free60] = CASES.map(name);
    let cases = CASES.map(|case| Case::new(name(case), scene(case)));
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for (id, case, figure) in [
        ("tail-unknown-5", &tail5, "unknownPercent"),
        ("tail-unknown-60", &tail60, "unknownPercent"),
        ("sold-5", &brown5, "sold"),
        ("sold-60", &brown60, "sold"),
        ("through-unknown", &brown5, "throughUnknownPercent"),
        ("known-5", &brown5, "knownSeconds"),
        ("known-60", &brown60, "knownSeconds"),
        ("calls-5", &brown5, "pgCalls"),
        ("limited-5", &brown5, "limited"),
        ("calls-balance", &brown5, "callsBalance"),
        ("limited-60", &brown60, "limited"),
        ("calls-60", &brown60, "pgCalls"),
        ("sold-free-5", &free5, "sold"),
        ("peak-free-5", &free5, "peakAtGateway"),
        ("sold-free-60", &free60, "sold"),
        ("at-least-5", &tail5, "unknownPercent"),
    ] {
        table.judge(&mut findings, id, case, figure);
    }
    let times = |figure| {
        table.pairs((&brown5, figure), (&brown60, figure), |five, sixty| {
            five / sixty
        })
    };
    note(&mut findings, "more-calls", &times("pgCalls"));
    note(&mut findings, "at-most-twice", &times("sold"));
    let both = |figure| {
        vec![
            (5.0, table.median(&brown5, figure)),
            (60.0, table.median(&brown60, figure)),
        ]
    };
    findings
        .plots
        .push(picture(&both("pgCalls"), &both("sold")));
    findings.answer = Some(format!(
        "In a brownout 5 s sell {:.0} and 60 s sell {:.0}, for {:.0} and {:.0} calls ({:.1} times; published 2,634 and 160, 16 times: the rate of arrivals is not published, and the calls follow it); in a usual slow tail 5 s leave {:.1} % unknown and 60 s {:.1} %. What 5 s sell is known after {:.0} s (recovery backs off from 1 s; about 2 min published), with 60 s after {:.0} s.",
        table.median(&brown5, "sold"),
        table.median(&brown60, "sold"),
        table.median(&brown5, "pgCalls"),
        table.median(&brown60, "pgCalls"),
        table.median(&brown5, "pgCalls") / table.median(&brown60, "pgCalls"),
        table.median(&tail5, "unknownPercent"),
        table.median(&tail60, "unknownPercent"),
        table.median(&brown5, "knownSeconds"),
        table.median(&brown60, "knownSeconds"),
    ));
    findings
}

/// Calls and sales by the timeout, beside the published ones.
fn picture(calls: &[(f64, f64)], sold: &[(f64, f64)]) -> Plot {
    Plot {
        title: "In a brownout a short timeout sells half as much again for sixteen times the calls"
            .to_owned(),
        across: "PG read timeout, s".to_owned(),
        up: "in a brownout with a contract limit".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "published, PG calls",
                Mark::Dots,
                vec![(5.0, 2_634.0), (60.0, 160.0)],
            ),
            line(
                "published, sold",
                Mark::Dots,
                vec![(5.0, 240.0), (60.0, 160.0)],
            ),
            line("PG calls", Mark::Dots, calls.to_vec()),
            line("sold", Mark::Dots, sold.to_vec()),
        ],
    }
}
