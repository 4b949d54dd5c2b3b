//! The cap against the gateway's delay (measurements C2, C3): 1 − cap ÷ (rate × delay).

use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Beside, Delay, Load, Pg, Ran, Scene, Server};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{hold_in_steps, refused_share, rounded, share, whole_holds};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, line, measure, percentile, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "cap-sweep",
    plan,
    run,
};

/// Confirms and reads a second (measurements C2; the reads' rate is not published).
const RATE: u32 = 50;
const READS: u32 = 10;
/// Seconds of load (measurements C2).
const SECONDS: u32 = 45;
/// The gateway's delay, ms, and the cap.
const SWEEP: [(u64, u32); 8] = [
    (500, 40),
    (800, 40),
    (1_000, 40),
    (2_000, 40),
    (3_000, 40),
    (5_000, 40),
    (3_000, 20),
    (5_000, 20),
];

fn name(delay: u64, cap: u32) -> String {
    format!("{delay} ms, cap {cap}")
}

/// Refused by the formula, %; from the delay itself to what evenly spaced arrivals make of it.
fn formula(delay: u64, cap: u32) -> (f64, f64) {
    let hold = delay as f64 / 1_000.0;
    let of = |hold| 100.0 * refused_share(cap, RATE, hold);
    // A slot that comes free in the very ms of an arrival may be a moment too late for it.
    (of(hold), of(hold_in_steps(RATE, hold + 0.001)))
}

const fn published(delay: u64, cap: u32) -> &'static str {
    match (delay, cap) {
        (500, _) => "0 %",
        (800, _) => "starts here",
        (1_000, 40) => "486 and 488 of 2,250: 21.6 %",
        (3_000, 40) => "1,651 and 1,650 of 2,250: 73.4 %",
        (5_000, 40) => "84.0 %",
        (3_000, 20) => "1,951 of 2,250: 86.7 %",
        _ => "not published",
    }
}

fn plan(size: Size) -> Plan {
    let of = |(delay, cap): (u64, u32)| {
        let case = name(delay, cap);
        let (low, high) = formula(delay, cap);
        let rule = Rule::Between {
            least: rounded((low - 0.5).max(0.0)),
            most: rounded(high + 0.5),
        };
        let refused = format!("{case}: refused over whole holds, %");
        let reads = format!("{case}: p95 of light reads, ms");
        [
            Criterion::new(&case, &format!("refused {case}"), &refused, rule)
                .published(published(delay, cap)),
            Criterion::new(
                &case,
                &format!("reads {case}"),
                &reads,
                Rule::AtMost { most: 10.0 },
            )
            .published("7–8 ms (cap 40), 18.6 ms (cap 20)"),
        ]
    };
    Plan {
        question: "Does the cap refuse exactly 1 − cap ÷ (rate × delay), and leave reads alone?".to_owned(),
        setup: vec![
            format!("{RATE} confirms/s and {READS} reads/s evenly spaced for {SECONDS} s, circuit off, resends by the budget, PG timeout 60 s"),
            "between: the formula with the delay, and with what evenly spaced arrivals make of it (a slot that is freed in the ms of an arrival may serve the next one)".to_owned(),
            "what a server without a cap does is asked in `thread-pool`; reads cost nothing here but what they wait for".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: SWEEP.into_iter().flat_map(of).collect(),
    }
}

fn figures(delay: u64, ran: &Ran) -> Figures {
    let window = whole_holds(f64::from(SECONDS), delay as f64 / 1_000.0);
    let inside = |seen: &simulation::scene::Seen| (seen.at.get() as f64) < window * 1_000.0;
    let cap = |seen: &simulation::scene::Seen| seen.refused(ProblemCode::PgCapReached);
    let refused = ran.count(|seen| inside(seen) && cap(seen));
    let reads = ran.reads.served.iter().map(|span| span.get() as f64);
    vec![
        ("refusedPercent", 100.0 * share(refused, ran.count(inside))),
        ("refusedOfAll", ran.count(cap) as f64),
        ("arrivals", ran.seen.len() as f64),
        ("readsP95Ms", percentile(reads, 95.0).unwrap_or(f64::NAN)),
    ]
}

fn scene(delay: u64, cap: u32) -> Scene {
    Scene {
        load: Load {
            rate: RATE,
            seconds: SECONDS,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(delay),
            goes_on: false,
            ..Pg::default()
        },
        server: Server::published(Millis::from_secs(60), Some(cap)),
        beside: Beside {
            reads: READS,
            ..Beside::default()
        },
        ..Scene::default()
    }
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let case = |(delay, cap): (u64, u32)| Case::new(name(delay, cap), scene(delay, cap));
    let delay_of = |case: &Case| {
        let found = SWEEP
            .into_iter()
            .find(|(delay, cap)| name(*delay, *cap) == case.name);
        found.map_or(0, |(delay, _)| delay)
    };
    let table = measure(size, &SWEEP.map(case), &mut findings, |case, ran| {
        figures(delay_of(case), ran)
    });
    let mut measured = Vec::new();
    let mut curve = Vec::new();
    for (delay, cap) in SWEEP {
        let case = name(delay, cap);
        table.judge(
            &mut findings,
            &format!("refused {case}"),
            &case,
            "refusedPercent",
        );
        table.judge(&mut findings, &format!("reads {case}"), &case, "readsP95Ms");
        if cap == 40 {
            let seconds = delay as f64 / 1_000.0;
            measured.push((seconds, table.median(&case, "refusedPercent")));
            curve.push((seconds, formula(delay, cap).0));
        }
    }
    findings.plots.push(Plot {
        title: "The cap refuses what the formula says".to_owned(),
        across: "the gateway's delay, s".to_owned(),
        up: "refused, %".to_owned(),
        log_across: false,
        lines: vec![
            line("formula", Mark::Curve, curve),
            line(
                "published",
                Mark::Dots,
                vec![(0.5, 0.0), (1.0, 21.6), (3.0, 73.4), (5.0, 84.0)],
            ),
            line("measured", Mark::Dots, measured),
        ],
    });
    let refused = |delay, cap| table.median(&name(delay, cap), "refusedPercent");
    findings.answer = Some(format!(
        "Yes: {:.1} % at 1 s, {:.1} % at 3 s (73.3 by the formula), {:.1} % at 5 s (84.0); with a cap of 20 {:.1} % at 3 s. Reads never wait.",
        refused(1_000, 40),
        refused(3_000, 40),
        refused(5_000, 40),
        refused(3_000, 20),
    ));
    findings
}
