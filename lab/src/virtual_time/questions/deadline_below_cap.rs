//! Question 2: what the deadline check saves below the cap's saturation, and what above.

use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Client, Delay, Load, Pg, Ran, Scene, Server, Shoppers};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{rounded, share};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, line, measure, note, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "deadline-below-cap",
    plan,
    run,
};

/// Shoppers a second. A gateway of 2 s and a cap of 40 are full at 20/s, and without the departed at 28.6/s.
const RATES: [u32; 8] = [5, 10, 15, 20, 25, 30, 40, 60];
const DEPARTED: f64 = 0.3;
/// What 40 slots of 2 s serve in a second.
const SERVED: f64 = 20.0;

fn name(rate: u32, check: bool) -> String {
    format!("{rate}/s, check {}", if check { "on" } else { "off" })
}

/// Calls saved, %: all of the departed while there are slots, and nothing once those who stay fill the cap alone.
fn saved(rate: u32) -> f64 {
    let rate = f64::from(rate);
    let (off, on) = (rate.min(SERVED), (rate * (1.0 - DEPARTED)).min(SERVED));
    100.0 * (1.0 - on / off)
}

fn plan(size: Size) -> Plan {
    let of = |rate: u32| {
        let (off, on) = (name(rate, false), name(rate, true));
        let rule = Rule::Within {
            target: rounded(saved(rate)),
            tolerance: 3.0,
        };
        let says = format!("{rate}/s: PG calls saved, %");
        let saved = Criterion::new(&off, &format!("saved-{rate}"), &says, rule)
            .and(&on)
            .published("not published (8.4 % at 1.5 times the cap)");
        // The formula is that of a fluid: near the cap, without the departed at 28.6/s, chance leaves slots unused.
        if (25..=30).contains(&rate) {
            saved.finding().because("The formula is a fluid's. Who has departed is a matter of chance, three of every ten in any order: near the cap slots are free at one moment and full at another, and the check saves some calls that a fluid would not have made.")
        } else {
            saved
        }
    };
    Plan {
        question: "What does the deadline check save while the cap is not full?".to_owned(),
        setup: vec![
            format!("5 to 60 confirms/s evenly spaced for {} s by bare clients, 3 of 10 departed; gateway 2 s, cap 40, circuit off: the cap is full from 20/s on", size.pick(60, 30)),
            "formula: the calls are what arrives, at most 20/s; with the check the departed do not arrive".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: RATES.into_iter().map(of).collect(),
    }
}

fn scene(rate: u32, check: bool, seconds: u32) -> Scene {
    Scene {
        load: Load {
            rate,
            seconds,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(2_000),
            goes_on: false,
            ..Pg::default()
        },
        server: Server {
            deadline_check: check,
            ..Server::published(Millis::from_secs(60), Some(40))
        },
        shoppers: Shoppers {
            client: Client::Raw(Some(Millis::from_secs(30))),
            departed: DEPARTED,
            ..Shoppers::default()
        },
        ..Scene::default()
    }
}

fn figures(ran: &Ran) -> Figures {
    let stays = ran.count(|seen| !seen.departed);
    let refused = ran.count(|seen| !seen.departed && seen.refused(ProblemCode::PgCapReached));
    vec![
        ("pgCalls", ran.books.received as f64),
        ("remainingRefusedPercent", 100.0 * share(refused, stays)),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases: Vec<_> = RATES
        .into_iter()
        .flat_map(|rate| [(rate, false), (rate, true)])
        .map(|(rate, check)| Case::new(name(rate, check), scene(rate, check, size.pick(60, 30))))
        .collect();
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    let (mut measured, mut spared) = (Vec::new(), Vec::new());
    for rate in RATES {
        let (off, on) = (name(rate, false), name(rate, true));
        let saved = table.pairs((&off, "pgCalls"), (&on, "pgCalls"), |off, on| {
            100.0 * (off - on) / off
        });
        note(&mut findings, &format!("saved-{rate}"), &saved);
        let of = |case: &str| table.median(case, "remainingRefusedPercent");
        spared.push((f64::from(rate), of(&off) - of(&on)));
        measured.push((
            f64::from(rate),
            findings.value(&format!("saved-{rate}")).unwrap_or(f64::NAN),
        ));
    }
    let at = |points: &[(f64, f64)], rate: f64| {
        let found = points.iter().find(|(at, _)| (at - rate).abs() < 0.1);
        found.map_or(f64::NAN, |(_, up)| *up)
    };
    findings.answer = Some(format!(
        "Below saturation it saves the gateway all {:.0} % of the calls, and refuses nobody less; at 30/s it saves {:.1} % of the calls and spares those who stay {:.1} points of refusals; at 60/s {:.1} % and {:.1} points. It is load relief below the cap and fairness above it.",
        at(&measured, 10.0),
        at(&measured, 30.0),
        at(&spared, 30.0),
        at(&measured, 60.0),
        at(&spared, 60.0),
    ));
    findings.plots.push(Plot {
        title: "The check saves calls below the cap, and refusals above it".to_owned(),
        across: "shoppers a second (the cap is full from 20 on)".to_owned(),
        up: "%, points".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "formula, calls saved",
                Mark::Curve,
                RATES.map(|rate| (f64::from(rate), saved(rate))).to_vec(),
            ),
            line("calls saved, %", Mark::Dots, measured),
            line("refusals spared those who stay, points", Mark::Dots, spared),
        ],
    });
    findings
}
