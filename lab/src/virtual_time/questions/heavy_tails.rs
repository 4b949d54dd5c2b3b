//! Question 7: heavy-tailed gateway latency (log-normal, Pareto) instead of a constant.

use payment::time::Times;
use payment::wire::ProblemCode;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use simulation::scene::{Arrivals, Client, Delay, Load, Pg, Ran, Scene, Shoppers};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{hold_in_steps, refused_share, rounded, share};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, erlang_loss, line, measure, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "heavy-tails",
    plan,
    run,
};

/// All have this mean, ms, before the PG timeout cuts their tail.
const MEAN_MS: f64 = 2_000.0;
/// Shoppers a second: 32, 40 and 56 of demand for 40 slots.
const RATES: [u32; 3] = [16, 20, 28];
const CAP: u32 = 40;
/// How many draws the mean of a cut distribution is taken from.
const DRAWS: usize = 100_000;

fn delays() -> [(&'static str, Delay); 5] {
    [
        ("constant", Delay::Fixed(2_000)),
        ("exponential", Delay::Exponential(MEAN_MS)),
        ("log-normal, σ 1", Delay::log_normal(MEAN_MS, 1.0)),
        ("log-normal, σ 1.8", Delay::log_normal(MEAN_MS, 1.8)),
        ("Pareto, α 1.5", Delay::pareto(MEAN_MS, 1.5)),
    ]
}

const EVEN: &str = "constant, even arrivals";

/// The mean hold of a slot, s: the distribution's, cut at the PG timeout.
fn hold(delay: Delay) -> f64 {
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    let longest = Times::DEFAULT.pg_timeout;
    let draws = (0..DRAWS).map(|_| delay.draw(&mut dice).min(longest).get() as f64);
    draws.sum::<f64>() / DRAWS as f64 / 1_000.0
}

fn name(distribution: &str, rate: u32) -> String {
    format!("{distribution}, {rate}/s")
}

/// Refused, %: Erlang's loss formula, which knows of a distribution nothing but its mean.
fn formula(delay: Delay, rate: u32) -> f64 {
    100.0 * erlang_loss(CAP, f64::from(rate) * hold(delay))
}

/// The load's length, and from when on refusals count: the slots fill for as long as a hold.
const fn lengths(size: Size) -> (u32, u64) {
    (size.pick(180, 60), size.pick(60, 20))
}

/// Nobody may be refused for a slow minority; whether the circuit opens for it when nobody comes is a finding.
fn of_circuit(case: &str) -> [Criterion; 2] {
    let none = Rule::exactly(0.0);
    let refused = format!("{case}: refused by the circuit");
    let opened = format!("{case}: times that the circuit opened");
    [
        Criterion::new(case, &format!("circuit {case}"), &refused, none),
        Criterion::new(case, &format!("opened {case}"), &opened, none)
            .finding()
            .because("The circuit judges the calls that ended within 30 s and those in flight for longer. Half a minute after the last arrival only the slowest calls of the tail are left to judge, ten of them are enough, and all of them are slow: it opens when nobody comes any more. The row of what it refused tells whether anybody met it."),
    ]
}

fn plan(size: Size) -> Plan {
    let tolerance = size.pick(3.0, 6.0);
    let mut criteria = Vec::new();
    for rate in RATES {
        for (distribution, delay) in delays() {
            let case = name(distribution, rate);
            let rule = Rule::Within {
                target: rounded(formula(delay, rate)),
                tolerance,
            };
            criteria.push(
                Criterion::new(
                    &case,
                    &format!("refused {case}"),
                    &format!("{case}: refused by the cap, %"),
                    rule,
                )
                .published("not published (Erlang's loss formula)"),
            );
            criteria.extend(of_circuit(&case));
        }
        let case = name(EVEN, rate);
        // A slot is held for 1 to 3 ms beyond the delay, and comes free between two arrivals.
        let refused = |hold| 100.0 * refused_share(CAP, rate, hold);
        let rule = Rule::Between {
            least: rounded((refused(2.0) - 0.5).max(0.0)),
            most: rounded(refused(hold_in_steps(rate, 2.003)) + 0.5),
        };
        criteria.push(
            Criterion::new(
                &case,
                &format!("refused {case}"),
                &format!("{case}: refused by the cap, %"),
                rule,
            )
            .published("1 − cap ÷ (rate × delay)"),
        );
    }
    let (seconds, from) = lengths(size);
    Plan {
        question: "Does the formula of the cap hold when the gateway's latency has a heavy tail?".to_owned(),
        setup: vec![
            format!("16, 20 and 28 confirms/s of bare clients, Poisson, for {seconds} s (counted from {from} s on); cap {CAP}, all else as shipped; every distribution has a mean of 2 s, its tail is cut by the PG timeout of 60 s"),
            "formula: Erlang's loss formula for Poisson arrivals, whatever the distribution; for a constant delay and even arrivals 1 − cap ÷ (rate × delay)".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria,
    }
}

fn scene(delay: Delay, rate: u32, arrivals: Arrivals, size: Size) -> Scene {
    Scene {
        load: Load {
            rate,
            seconds: lengths(size).0,
            arrivals,
            ..Load::default()
        },
        pg: Pg {
            delay,
            ..Pg::default()
        },
        shoppers: Shoppers {
            client: Client::Raw(None),
            ..Shoppers::default()
        },
        ..Scene::default()
    }
}

fn figures(from: u64, ran: &Ran) -> Figures {
    let inside = |seen: &simulation::scene::Seen| seen.at.get() >= from * 1_000;
    let cap = |seen: &simulation::scene::Seen| seen.refused(ProblemCode::PgCapReached);
    let opened = ["slow", "unknown", "probe"];
    let opened = opened.map(|why| ran.counter("circuit_opened_total", why));
    vec![
        (
            "refusedPercent",
            100.0
                * share(
                    ran.count(|seen| inside(seen) && cap(seen)),
                    ran.count(inside),
                ),
        ),
        (
            "unknownPercent",
            100.0 * share(ran.ever_unknown, ran.seen.len() as u64),
        ),
        ("circuitOpened", opened.iter().sum::<u64>() as f64),
        (
            "circuitRefused",
            ran.counter("pg_not_sent_total", "circuit") as f64,
        ),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut cases = Vec::new();
    for rate in RATES {
        for (distribution, delay) in delays() {
            cases.push(Case::new(
                name(distribution, rate),
                scene(delay, rate, Arrivals::Poisson, size),
            ));
        }
        cases.push(Case::new(
            name(EVEN, rate),
            scene(Delay::Fixed(2_000), rate, Arrivals::Even, size),
        ));
    }
    let from = lengths(size).1;
    let table = measure(size, &cases, &mut findings, |_, ran| figures(from, ran));
    for case in &cases {
        let name = &case.name;
        for (id, figure) in [
            ("refused", "refusedPercent"),
            ("circuit", "circuitRefused"),
            ("opened", "circuitOpened"),
        ] {
            table.judge(&mut findings, &format!("{id} {name}"), name, figure);
        }
    }
    let across = |distribution: &str| {
        let of = |rate: u32| {
            (
                f64::from(rate),
                table.median(&name(distribution, rate), "refusedPercent"),
            )
        };
        RATES.map(of).to_vec()
    };
    let curve = (10..=30).map(|rate| (f64::from(rate), formula(Delay::Fixed(2_000), rate)));
    let even = (10..=30).map(|rate| (f64::from(rate), 100.0 * refused_share(CAP, rate, 2.0)));
    let mut lines = vec![
        line("Erlang's formula, mean 2 s", Mark::Curve, curve.collect()),
        line("1 − cap ÷ demand", Mark::Curve, even.collect()),
        line(EVEN, Mark::Dots, across(EVEN)),
    ];
    lines.extend(
        delays().map(|(distribution, _)| line(distribution, Mark::Dots, across(distribution))),
    );
    findings.plots.push(Plot {
        title: "Refusals depend on the mean and on how arrivals come, not on the tail".to_owned(),
        across: "shoppers a second (20/s is the cap's whole demand)".to_owned(),
        up: "refused by the cap, %".to_owned(),
        log_across: false,
        lines,
    });
    let refused = |distribution: &str| table.median(&name(distribution, 20), "refusedPercent");
    findings.answer = Some(format!(
        "The tail does not matter, chance does: at a demand of exactly the cap even arrivals at a constant 2 s are refused {:.1} %, Poisson ones {:.1} % (constant), {:.1} % (exponential), {:.1} % (log-normal, σ 1.8) and {:.1} % (Pareto, whose tail the timeout of 60 s cuts); Erlang says {:.1}. Of Pareto's {:.2} % become unknown at that timeout. The circuit refused {:.0} of all of them; where it opened, it did so when the load was over and only the tail's slowest calls were left to judge (log-normal, σ 1.8, 28/s: {:.0} times).",
        refused(EVEN),
        refused("constant"),
        refused("exponential"),
        refused("log-normal, σ 1.8"),
        refused("Pareto, α 1.5"),
        formula(Delay::Fixed(2_000), 20),
        table.median(&name("Pareto, α 1.5", 20), "unknownPercent"),
        cases
            .iter()
            .map(|case| table.median(&case.name, "circuitRefused"))
            .sum::<f64>(),
        table.median(&name("log-normal, σ 1.8", 28), "circuitOpened"),
    ));
    findings
}
