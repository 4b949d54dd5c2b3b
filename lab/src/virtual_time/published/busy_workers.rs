//! How many workers a slow gateway keeps busy (measurements C1): Little's law, rate × time.

use payment::time::Millis;
use simulation::scene::{Delay, Load, Pg, Ran, Scene, Server};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::{Case, Figures, Size, Virtual, line, measure, spaced, valid_only_if};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "busy-workers",
    plan,
    run,
};

/// Confirms a second, and the published server's worker threads (measurements C1).
const RATE: u32 = 30;
const WORKERS: u32 = 100;
/// How long the gateway takes, ms; the last is beyond what the workers can hold (100 ÷ 30 = 3.3 s).
const DELAYS: [u64; 6] = [500, 1_000, 2_000, 3_000, 3_300, 4_000];

fn name(delay: u64) -> String {
    format!("{delay} ms")
}

/// Rate × time, and not more than there are workers.
fn law(delay: u64) -> f64 {
    (f64::from(RATE) * delay as f64 / 1_000.0).min(f64::from(WORKERS))
}

fn plan(size: Size) -> Plan {
    let of = |delay: u64| {
        let case = name(delay);
        let published = match delay {
            3_000 => "86.6 (90 by formula)",
            4_000 => "100 workers last until about 3.3 s",
            _ => "not published",
        };
        let busy = Rule::Within {
            target: law(delay),
            tolerance: rounded(law(delay) * 0.02),
        };
        let says = format!("gateway {case}: workers busy with confirms, mean");
        Criterion::new(&case, &format!("busy-{delay}"), &says, busy).published(published)
    };
    Plan {
        question: "How many workers does a slow gateway keep busy: rate × time?".to_owned(),
        setup: vec![
            format!("{RATE} confirms/s evenly spaced for {} s, no cap, a pool of {WORKERS} workers that queues, circuit off", size.pick(60, 20)),
            "busy: confirms in flight, counted ten times a second from when the first hold is over until the arrivals end".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: DELAYS.into_iter().map(of).collect(),
    }
}

fn figures(delay: u64, ran: &Ran) -> Figures {
    let until = ran.seen.last().map_or(Millis::ZERO, |last| last.at);
    let busy = ran.mean_in_flight(Millis::new(delay + 500), until);
    vec![
        ("busy", busy.unwrap_or(f64::NAN)),
        ("most", f64::from(ran.slots_peak)),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases = DELAYS.map(|delay| {
        let scene = Scene {
            load: Load {
                rate: RATE,
                seconds: size.pick(60, 20),
                ..Load::default()
            },
            pg: Pg {
                delay: Delay::Fixed(delay),
                goes_on: false,
                ..Pg::default()
            },
            server: Server {
                workers: Some(WORKERS),
                ..Server::published(Millis::from_secs(60), None)
            },
            ..Scene::default()
        };
        Case::new(name(delay), scene)
    });
    let delay_of = |case: &Case| DELAYS.into_iter().find(|delay| name(*delay) == case.name);
    let table = measure(size, &cases, &mut findings, |case, ran| {
        figures(delay_of(case).unwrap_or(0), ran)
    });
    let seconds = |delay: u64| delay as f64 / 1_000.0;
    let mut measured = Vec::new();
    for delay in DELAYS {
        table.judge(
            &mut findings,
            &format!("busy-{delay}"),
            &name(delay),
            "busy",
        );
        measured.push((seconds(delay), table.median(&name(delay), "busy")));
    }
    findings.plots.push(Plot {
        title: "Busy workers are the rate times the gateway's time, until there are no more"
            .to_owned(),
        across: "the gateway's delay, s".to_owned(),
        up: "workers busy, mean".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "formula",
                Mark::Curve,
                vec![(0.0, 0.0), (10.0 / 3.0, 100.0), (4.0, 100.0)],
            ),
            line("published", Mark::Dots, vec![(3.0, 86.6)]),
            line("measured", Mark::Dots, measured),
        ],
    });
    findings.answer = Some(format!(
        "Yes: at {RATE}/s a gateway of 1 s kept {:.1} workers busy, one of 3 s {:.1} (90 by the law, 86.6 published), and one of 4 s {:.1} of {WORKERS}.",
        table.median(&name(1_000), "busy"),
        table.median(&name(3_000), "busy"),
        table.median(&name(4_000), "busy"),
    ));
    findings
}
