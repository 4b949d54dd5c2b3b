//! Open question 11: a contract limit that is a rate, and not a number of calls at once.

use payment::time::{Millis, Times};
use payment::wire::ProblemCode;
use simulation::scene::{CircuitMode, Delay, Load, Pg, Ran, Scene, Server, Shoppers, WARM_UP};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::asked::{Asked, ask, lines, percent, said, wrongs};
use crate::virtual_time::{Figures, Size, Virtual, line};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "rate-limit",
    plan,
    run: answer,
};

const RATE: u32 = 50;
const SECONDS: u32 = 60;
const CAP: u32 = 40;
/// Limits of usual days, calls a second.
const USUAL: [u32; 6] = [10, 20, 30, 40, 50, 60];
/// Limits of a brownout, calls a second: below what the cap lets through, between, and above.
const BROWNOUT: [u32; 3] = [1, 5, 20];
/// The published concurrent limit (measurements E).
const AT_ONCE: u32 = 60;
/// In the brownout every approval takes so long, s.
const BROWN: u32 = 20;
/// Gateway timeouts that were compared, s.
const TIMEOUTS: [u32; 2] = [5, 60];

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    ASecond(u32),
    AtOnce(u32),
}

impl Limit {
    fn name(self) -> String {
        match self {
            Self::ASecond(rate) => format!("{rate}/s"),
            Self::AtOnce(most) => format!("{most} at once"),
        }
    }

    fn id(self) -> String {
        match self {
            Self::ASecond(rate) => format!("rate{rate}"),
            Self::AtOnce(most) => format!("once{most}"),
        }
    }
}

fn brown_name(timeout: u32, limit: Limit) -> String {
    format!("brownout, timeout {timeout} s, {}", limit.name())
}

fn brown_id(timeout: u32, limit: Limit) -> String {
    format!("brown{timeout}-{}", limit.id())
}

fn limits() -> impl Iterator<Item = Limit> {
    BROWNOUT
        .into_iter()
        .map(Limit::ASecond)
        .chain([Limit::AtOnce(AT_ONCE)])
}

/// Sold in a brownout of warm-up and load together, by formula: each slot serves once per hold, and no more pass than the
/// limit lets through.
fn sold_by_formula(timeout: u32, rate: u32) -> f64 {
    let seconds = f64::from(SECONDS + WARM_UP.1);
    let hold = f64::from(timeout.min(BROWN));
    // The slots are full once so often in the time: the last hold may begin in it and end later.
    let rounds = (seconds / hold).ceil();
    (f64::from(CAP) * rounds).min(f64::from(rate) * seconds)
}

/// What is expected.
fn criteria() -> Vec<Criterion> {
    let mut criteria = Vec::new();
    for rate in USUAL {
        let refused = 100.0 * (1.0 - f64::from(rate) / f64::from(RATE)).max(0.0);
        let rule = Rule::Within {
            target: rounded(refused),
            tolerance: 1.5,
        };
        let says = format!("refused with 429 on a usual day, {rate}/s, %: 1 − limit ÷ rate");
        criteria.push(Criterion::new(
            &format!("usual, {rate}/s"),
            &format!("usual{rate}-limited"),
            &says,
            rule,
        ));
    }
    criteria.extend(brownout());
    criteria.extend(beside());
    criteria
}

/// What is expected to be sold in a brownout.
fn brownout() -> Vec<Criterion> {
    let mut criteria = Vec::new();
    for timeout in TIMEOUTS {
        for rate in BROWNOUT {
            let limit = Limit::ASecond(rate);
            let sold = sold_by_formula(timeout, rate);
            // Where slots stay free each lost call is sent once more, and may take the place of a first send.
            let resends = timeout == 5 && rate * timeout < CAP;
            let rule = if resends {
                Rule::Between {
                    least: sold / 2.0,
                    most: sold,
                }
            } else {
                Rule::Within {
                    target: sold,
                    tolerance: rounded(sold * 0.06),
                }
            };
            let says = format!("sold in a {}", brown_name(timeout, limit));
            let mut criterion = Criterion::new(
                &brown_name(timeout, limit),
                &format!("{}-sold", brown_id(timeout, limit)),
                &says,
                rule,
            );
            if rate == 20 {
                criterion = criterion.published(if timeout == 5 {
                    "600 without a limit"
                } else {
                    "160"
                });
            }
            criteria.push(criterion);
        }
        let limit = Limit::AtOnce(AT_ONCE);
        let sold = if timeout == 5 { 240.0 } else { 160.0 };
        let says = format!("sold in a {}", brown_name(timeout, limit));
        let rule = Rule::Within {
            target: sold,
            tolerance: rounded(sold * 0.06),
        };
        criteria.push(
            Criterion::new(
                &brown_name(timeout, limit),
                &format!("{}-sold", brown_id(timeout, limit)),
                &says,
                rule,
            )
            .published(&sold.to_string()),
        );
    }
    criteria
}

/// What is expected beside the shares and the sales.
fn beside() -> [Criterion; 6] {
    let wide = brown_name(5, Limit::ASecond(20));
    [
        Criterion::new(
            &wide,
            "brown5-rate20-peak",
            "calls at once at the gateway, timeout 5 s, limit 20/s: the cap, four times over",
            Rule::Within {
                target: 160.0,
                tolerance: 8.0,
            },
        )
        .published("160 without a limit"),
        Criterion::new(
            &wide,
            "brown5-rate20-doubtful",
            "sales by way of doubt there, %",
            Rule::Above { bound: 99.0 },
        ),
        Criterion::new(
            &brown_name(60, Limit::ASecond(20)),
            "brown60-rate20-doubtful",
            "payments made unknown there with a timeout of 60 s",
            Rule::exactly(0.0),
        ),
        Criterion::new(
            "usual, 20/s, paying again",
            "again-calls",
            "calls for each shopper when the refused pay again up to three times",
            Rule::Between {
                least: 1.0,
                most: 4.0,
            },
        ),
        Criterion::new(
            "usual, 20/s, paying again",
            "again-sold",
            "shoppers who got through then, % (20 of 50 when nobody tries again)",
            Rule::Above { bound: 40.0 },
        )
        .finding(),
        Criterion::new(
            "usual, 20/s, paying again",
            "again-wrongs",
            "told wrongly, or charged twice, when the refused pay again",
            Rule::exactly(0.0),
        ),
    ]
}

fn plan(size: Size) -> Plan {
    Plan {
        question:
            "What if the gateway's contract limit is a rate, and not a number of calls at once?"
                .to_owned(),
        setup: lines(&[
            &format!(
                "{RATE} confirms/s evenly spaced for {SECONDS} s, pages as shipped, cap {CAP}; more calls within a second than the limit are answered 429"
            ),
            "usual day: the gateway takes 0.5 s; limits of 10 to 60 calls a second, and once with shoppers who pay again up to three times, 2 to 10 s later",
            &format!(
                "brownout as published: every approval takes {BROWN} s, also in the warm-up of 10/s for 15 s, and goes on when we hang up; timeouts of 5 and 60 s; the published limit of {AT_ONCE} at once beside it"
            ),
            "a call refused with 429 holds its slot for no time; sold by formula: cap × holds begun, or limit × time, whichever is less",
            &format!("{} runs of each, medians", size.seeds()),
        ]),
        valid_only_if: lines(&[
            "the gateway saw confirms",
            "shoppers came",
            "everything became known",
        ]),
        criteria: criteria(),
    }
}

fn scene(delay: u64, timeout: u32, limit: Limit, seed: u64) -> Scene {
    let times = Times {
        pg_timeout: Millis::from_secs(u64::from(timeout)),
        ..Times::DEFAULT
    };
    let (rate_limit, contract) = match limit {
        Limit::ASecond(rate) => (Some((rate, Millis::from_secs(1))), None),
        Limit::AtOnce(most) => (None, Some(most)),
    };
    Scene {
        seed,
        load: Load {
            rate: RATE,
            seconds: SECONDS,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(delay),
            rate_limit,
            contract,
            ..Pg::default()
        },
        server: Server {
            times,
            circuit: CircuitMode::Off,
            ..Server::default()
        },
        ..Scene::default()
    }
}

fn brown(timeout: u32, limit: Limit, seed: u64) -> Scene {
    let mut scene = scene(u64::from(BROWN) * 1_000, timeout, limit, seed);
    scene.load.warm_up = Some(WARM_UP);
    scene
}

fn figures(ran: &Ran) -> Figures {
    let shoppers = ran.seen.len() as u64;
    vec![
        (
            "limited",
            percent(ran.refused(ProblemCode::PgRefused), shoppers),
        ),
        (
            "capped",
            percent(ran.refused(ProblemCode::PgCapReached), shoppers),
        ),
        ("sold", ran.sold() as f64),
        ("peak", f64::from(ran.books.peak)),
        ("calls", ran.books.received as f64),
        ("refused-by-limit", ran.books.limited as f64),
        ("unknown", ran.ever_unknown as f64),
        ("resent", ran.counter("pg_resend_total", "sent") as f64),
        ("wrongs", wrongs(ran)),
    ]
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut points = Vec::new();
    for rate in USUAL {
        let (name, id) = (format!("usual, {rate}/s"), format!("usual{rate}"));
        let asked = Asked::new(&name, &id, size);
        let scene = |seed| scene(500, 60, Limit::ASecond(rate), seed);
        ask(&mut findings, &asked, scene, |ran, _| figures(ran));
        let limited = findings.value(&format!("{id}-limited")).unwrap_or(f64::NAN);
        points.push((f64::from(rate), limited));
    }
    for timeout in TIMEOUTS {
        for limit in limits() {
            let (name, id) = (brown_name(timeout, limit), brown_id(timeout, limit));
            let asked = Asked::new(&name, &id, size);
            ask(
                &mut findings,
                &asked,
                |seed| brown(timeout, limit, seed),
                |ran, _| {
                    let mut figures = figures(ran);
                    let doubtful = if timeout == 60 {
                        ran.ever_unknown as f64
                    } else {
                        percent(ran.ever_unknown, ran.sold()).min(100.0)
                    };
                    figures.push(("doubtful", doubtful));
                    figures
                },
            );
        }
    }
    let again = |seed| Scene {
        shoppers: Shoppers {
            pays_again: 3,
            ..Shoppers::default()
        },
        ..scene(500, 60, Limit::ASecond(20), seed)
    };
    let asked = Asked::new("usual, 20/s, paying again", "again", size);
    ask(&mut findings, &asked, again, |ran, _| {
        let shoppers = ran.seen.len() as u64;
        vec![
            ("calls", ran.books.received as f64 / shoppers.max(1) as f64),
            ("sold", percent(ran.sold(), shoppers)),
            ("wrongs", wrongs(ran)),
        ]
    });
    let formula = (10..=60).map(|rate| {
        let share = 1.0 - f64::from(rate) / f64::from(RATE);
        (f64::from(rate), 100.0 * share.max(0.0))
    });
    findings.plots.push(Plot {
        title: "Share of confirms that a limit of so many calls a second refuses, at 50 confirms a second".to_owned(),
        across: "limit, calls a second".to_owned(),
        up: "refused with 429, %".to_owned(),
        log_across: false,
        lines: vec![
            line("measured", Mark::Dots, points),
            line("formula: 1 − limit ÷ rate", Mark::Curve, formula.collect()),
        ],
    });
    findings.answer = Some(words(&findings));
    findings
}

fn words(findings: &Findings) -> String {
    let of = |id: &str| said(findings, id);
    format!(
        "On a usual day a rate refuses 1 − limit ÷ rate, at once and for no slot: {} % at 10/s, {} % at 30/s, {} % at 60/s; the cap is never reached. In the brownout it is the other way round: a timeout of 60 s sends only 2 calls a second and is not held back by 5/s or 20/s ({} and {} sold, {} with 60 at once), while 5 s sends 8 a second and sells {} under 20/s, {} with 60 at once. So a rate does not see what a concurrent limit sees: calls that we cut go on ({} at once at the gateway), and {} % of those sales go by way of doubt, where 60 s has {} in doubt. When the refused pay again up to three times, {} calls are made for each shopper and {} % get through.",
        of("usual10-limited"),
        of("usual30-limited"),
        of("usual60-limited"),
        of("brown60-rate5-sold"),
        of("brown60-rate20-sold"),
        of("brown60-once60-sold"),
        of("brown5-rate20-sold"),
        of("brown5-once60-sold"),
        of("brown5-rate20-peak"),
        of("brown5-rate20-doubtful"),
        of("brown60-rate20-doubtful"),
        of("again-calls"),
        of("again-sold"),
    )
}
