//! Open question 10: a gateway that stops for longer than its timeout. What the cap alone refuses, and what a circuit that
//! counts slow calls saves.

use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{
    CircuitMode, Delay, Load, Pg, Ran, Said, Scene, Server, Sky, Weather, play,
};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{refused_share, rounded};
use crate::verdict::Rule;
use crate::virtual_time::asked::{Asked, ask, lines, percent, said, seconds, wrongs};
use crate::virtual_time::{Figures, Size, Virtual, line};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "pg-stop",
    plan,
    run: answer,
};

const RATE: u32 = 50;
const CAP: u32 = 40;
/// The shipped gateway timeout: so long a stopped gateway holds a slot.
const HOLD: u32 = 60;
/// When the gateway stops and returns, and when the last shopper comes, s. Not a whole number of holds: what was sent last
/// is answered.
const STOP: u32 = 20;
const RETURN: u32 = 190;
const END: u32 = 230;
/// How many seeds: a run has 11,500 shoppers, and losses of whole caps hardly differ.
const fn runs(size: Size) -> u64 {
    size.pick(30, 2)
}

/// So many paid in a row are called flowing.
const FLOWING: usize = 5;

/// What the gateway does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// It accepts every call and answers none until it returns.
    Stops,
    /// It takes 90 s for a call, and books it though its caller hung up.
    Crawls,
}

const CONDITIONS: [(&str, &str, Trouble, bool); 4] = [
    ("stops, circuit off", "stops-off", Trouble::Stops, false),
    ("stops, circuit on", "stops-on", Trouble::Stops, true),
    ("crawls, circuit off", "crawls-off", Trouble::Crawls, false),
    ("crawls, circuit on", "crawls-on", Trouble::Crawls, true),
];

/// What is expected.
fn criteria() -> Vec<Criterion> {
    let [stops_off, stops_on, ..] = CONDITIONS.map(|(name, ..)| name);
    let formula = rounded(100.0 * refused_share(CAP, RATE, f64::from(HOLD)));
    let near = |target: f64, tolerance: f64| Rule::Within { target, tolerance };
    let most = |most| Rule::AtMost { most };
    let holds = (RETURN - STOP) / HOLD;
    let mut criteria = vec![
        Criterion::new(
            stops_off,
            "stops-off-refused",
            "refused while it stands, by whole holds, %",
            near(formula, 0.3),
        )
        .published("98.7 % by formula: 1 − 40 ÷ (50 × 60)"),
        Criterion::new(
            stops_off,
            "stops-off-unknown",
            "payments made unknown: the cap, once a hold",
            near(f64::from(CAP * holds), 2.0),
        ),
        Criterion::new(
            stops_on,
            "stops-on-unknown",
            "with the circuit: the cap once, and two probes whenever it is tried",
            near(44.0, 2.0),
        ),
        Criterion::new(
            stops_on,
            "stops-on-opens",
            "from the stop to the first refusal by the circuit, s",
            near(30.0, 1.0),
        ),
        Criterion::new(
            stops_on,
            "stops-on-held",
            "slots held in the mean once the first hold is over",
            most(4.5),
        ),
        Criterion::new(
            stops_off,
            "stops-off-held",
            "the same without the circuit",
            near(f64::from(CAP), 1.0),
        ),
        Criterion::new(
            stops_on,
            "stops-on-flows",
            "from the gateway's return until 5 in a row are paid, s",
            most(15.0),
        ),
        Criterion::new(
            stops_off,
            "stops-off-flows",
            "the same without the circuit, s",
            most(15.0),
        ),
    ];
    criteria.extend(crawling());
    for (name, id, ..) in CONDITIONS {
        criteria.push(Criterion::new(
            name,
            &format!("{id}-wrongs"),
            &format!("told wrongly, or charged twice: {name}"),
            Rule::exactly(0.0),
        ));
    }
    criteria
}

/// What is expected of a gateway that crawls.
fn crawling() -> [Criterion; 4] {
    let [.., crawls_off, crawls_on] = CONDITIONS.map(|(name, ..)| name);
    let near = |target: f64| Rule::Within {
        target,
        tolerance: 2.0,
    };
    let holds = (RETURN - STOP) / HOLD;
    [
        Criterion::new(
            crawls_off,
            "crawls-off-unknown",
            "payments made unknown where calls take 90 s",
            near(f64::from(CAP * (holds + 1))),
        ),
        Criterion::new(
            crawls_on,
            "crawls-on-unknown",
            "the same with the circuit",
            near(46.0),
        ),
        Criterion::new(
            crawls_on,
            "crawls-saved",
            "doubt that the circuit spares, of all time in doubt where calls take 90 s, %",
            Rule::Above { bound: 50.0 },
        )
        .and(crawls_off),
        Criterion::new(
            crawls_on,
            "crawls-unsold",
            "sales that it costs where calls take 90 s",
            Rule::Above { bound: 0.0 },
        )
        .and(crawls_off)
        .finding(),
    ]
}

fn plan(size: Size) -> Plan {
    Plan {
        question: "When the gateway stops for longer than its timeout, what does the cap refuse, and what does a circuit that counts slow calls save?".to_owned(),
        setup: lines(&[
            &format!("{RATE} confirms/s evenly spaced for {END} s, pages and settings as shipped (cap {CAP}, timeout {HOLD} s); the gateway takes 0.5 s"),
            &format!("from {STOP} to {RETURN} s it accepts every call and answers none; or it takes 90 s for each and books it though its caller hung up"),
            "the circuit off, and on: calls that run for more than 30 s count as bad before they end",
            &format!("{} runs of each, medians", runs(size)),
        ]),
        valid_only_if: lines(&["the gateway saw confirms", "shoppers came", "everything became known"]),
        criteria: criteria(),
    }
}

fn scene(trouble: Trouble, circuit: bool, seed: u64) -> Scene {
    let sky = match trouble {
        Trouble::Stops => Sky::Stopped,
        Trouble::Crawls => Sky::Slow(Delay::Fixed(90_000)),
    };
    let at = |seconds: u32| Millis::from_secs(u64::from(seconds));
    Scene {
        seed,
        load: Load {
            rate: RATE,
            seconds: END,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(500),
            weather: vec![Weather {
                from: at(STOP),
                until: at(RETURN),
                sky,
                // A gateway that crawls can still be asked.
                inquiries: trouble == Trouble::Stops,
            }],
            ..Pg::default()
        },
        server: Server {
            circuit: if circuit {
                CircuitMode::On
            } else {
                CircuitMode::Off
            },
            ..Server::default()
        },
        ..Scene::default()
    }
}

fn figures(ran: &Ran) -> Figures {
    let at = |second: u32| f64::from(second);
    let within = |from: f64, until: f64| {
        move |seen: &simulation::scene::Seen| (from..until).contains(&seconds(seen.at))
    };
    let counted = within(at(STOP), at(STOP + (RETURN - STOP) / HOLD * HOLD));
    let refused = ran.count(|seen| counted(seen) && matches!(seen.said, Some(Said::Refused(_))));
    let opens = ran
        .seen
        .iter()
        .filter(|seen| seen.refused(ProblemCode::CircuitOpen))
        .map(|seen| seconds(seen.at) - at(STOP))
        .fold(f64::INFINITY, f64::min);
    let late: Vec<_> = ran.seen.iter().collect();
    let late: Vec<_> = late
        .into_iter()
        .filter(|seen| seconds(seen.at) >= at(RETURN))
        .collect();
    let mut rows = late.windows(FLOWING);
    let flows = rows
        .find(|row| row.iter().all(|seen| seen.said == Some(Said::Paid)))
        .and_then(|row| row.first())
        .map_or(f64::INFINITY, |seen| seconds(seen.at) - at(RETURN));
    let second = |second: u32| Millis::from_secs(u64::from(second));
    let held = ran.mean_in_flight(second(STOP + HOLD + 2), second(RETURN));
    vec![
        ("refused", percent(refused, ran.count(counted))),
        ("unknown", ran.ever_unknown as f64),
        ("opens", opens),
        ("flows", flows),
        ("held", held.unwrap_or(0.0)),
        ("sold", ran.sold() as f64),
        ("doubt-seconds", ran.regret.doubt_ms as f64 / 1_000.0),
        ("wrongs", wrongs(ran)),
    ]
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut drawn = Vec::new();
    for (name, id, trouble, circuit) in CONDITIONS {
        let asked = Asked {
            runs: runs(size),
            ..Asked::new(name, id, size)
        };
        let scene = |seed| scene(trouble, circuit, seed);
        ask(&mut findings, &asked, scene, |ran, _| figures(ran));
        if trouble == Trouble::Stops {
            let ran = play(&scene(1));
            let points = (0..END).step_by(2).filter_map(|second| {
                let from = Millis::from_secs(u64::from(second));
                let until = from.plus(Millis::from_secs(2));
                Some((f64::from(second), ran.mean_in_flight(from, until)?))
            });
            drawn.push(line(name, Mark::Steps, points.collect()));
        }
    }
    let saved = {
        let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
        let doubt = of("crawls-on-doubt-seconds") / of("crawls-off-doubt-seconds");
        [
            ("crawls-saved", 100.0 * (1.0 - doubt)),
            (
                "crawls-unsold",
                of("crawls-off-sold") - of("crawls-on-sold"),
            ),
            (
                "crawls-doubtful",
                of("crawls-off-unknown") - of("crawls-on-unknown"),
            ),
        ]
    };
    for (id, value) in saved {
        findings.measure(id, value);
    }
    findings.plots.push(Plot {
        title:
            "Slots held while a gateway stands still from 20 to 190 s, with the circuit and without"
                .to_owned(),
        across: "seconds since the first shopper".to_owned(),
        up: "confirms in flight, mean of 2 s".to_owned(),
        log_across: false,
        lines: drawn,
    });
    let of = |id: &str| said(&findings, id);
    findings.answer = Some(format!(
        "The formula holds: {} % are refused while the gateway stands (98.7 % were reckoned; the same shop as real processes, `pg-stop`, is held to the same figure). The circuit cannot sell what a stopped gateway does not take; it opens {} s after the stop and spares doubt: {} payments become unknown with it and {} without, and it holds {} slots in the mean instead of {}. Payments flow {} s after the gateway's return ({} s without it). Where calls take 90 s and are booked though nobody waits, it spares {} % of all time in doubt ({} unknown instead of {}) and costs {} sales: {} of them by way of doubt, the others since it closes only once its probes are good.",
        of("stops-off-refused"),
        of("stops-on-opens"),
        of("stops-on-unknown"),
        of("stops-off-unknown"),
        of("stops-on-held"),
        of("stops-off-held"),
        of("stops-on-flows"),
        of("stops-off-flows"),
        of("crawls-saved"),
        of("crawls-on-unknown"),
        of("crawls-off-unknown"),
        of("crawls-unsold"),
        of("crawls-doubtful"),
    ));
    findings
}
