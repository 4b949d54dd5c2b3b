//! Open question 14 (c): a stampede in which reconnects and session restores are mixed with the confirms.

use std::time::Duration;

use super::runs;
use super::waves::{BIN, CLIENTS, FIRST, guard, histogram, published, retry, together};
use crate::plan::{Condition, Criterion, Findings, Mark, Plan, Plot};
use crate::stampede::{Hang, Kind, Ran, Scene, Schedule, expected_peak, run, sliding_peak};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::asked::{lines, said, tell};
use crate::virtual_time::{Size, Virtual, line};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "mixed-stampede",
    plan,
    run: answer,
};

/// Clients that were cut off: each connects again, and has its session restored once it is connected.
const CUT_OFF: usize = 2 * CLIENTS;
/// The gateway is back before any retry.
const BACK: Duration = Duration::from_secs(3);
/// How many it works on at once; a confirm takes 50 ms, a connection or a session 5 ms.
const WORKERS: usize = 20;
const WORK: Duration = Duration::from_millis(50);

/// Who jitters.
const CONDITIONS: [(&str, &str, Schedule, Schedule); 3] = [
    (
        "nobody jitters",
        "none",
        Schedule::Exponential,
        Schedule::Exponential,
    ),
    (
        "confirms jitter",
        "confirms",
        Schedule::Full,
        Schedule::Exponential,
    ),
    ("everybody jitters", "all", Schedule::Full, Schedule::Full),
];

/// What is expected.
fn criteria() -> Vec<Criterion> {
    let [none, confirms, all] = CONDITIONS.map(|(name, ..)| name);
    let (payers, cut_off) = (CLIENTS as f64, CUT_OFF as f64);
    let jittered = expected_peak(CLIENTS, FIRST, BIN);
    // Each of the others asks twice, one right after the other: no more than twice the peak of as many.
    let twice = 2.0 * expected_peak(CUT_OFF, FIRST, BIN);
    let mean = (payers + 2.0 * cut_off) * BIN.as_secs_f64() / FIRST.as_secs_f64();
    let between = |least: f64, most: f64| Rule::Between {
        least: rounded(least),
        most: rounded(most),
    };
    let everything = payers + cut_off;
    let criteria = vec![
        Criterion::new(
            none,
            "none-peak",
            "requests in the fullest 100 ms, nobody jitters",
            between(everything, payers + 2.0 * cut_off),
        ),
        Criterion::new(
            confirms,
            "confirms-peak",
            "the same, only confirms jitter",
            between(cut_off, 2.0 * cut_off + jittered),
        ),
        Criterion::new(
            all,
            "all-peak",
            "the same, everybody jitters",
            between(mean, jittered + twice),
        ),
        Criterion::new(
            confirms,
            "confirms-own",
            "confirms in the fullest 100 ms, only they jitter",
            Rule::Within {
                target: rounded(jittered),
                tolerance: rounded(jittered / 10.0),
            },
        )
        .published("38 without the others"),
        Criterion::new(
            confirms,
            "confirms-saved",
            "peak with only confirms jittering ÷ with nobody",
            Rule::Above { bound: 0.6 },
        )
        .and(none),
        // The bounds of the two peaks, by each other.
        Criterion::new(
            all,
            "all-saved",
            "peak with everybody jittering ÷ with nobody",
            Rule::AtMost {
                most: rounded((jittered + twice) / everything),
            },
        )
        .and(none),
        Criterion::new(
            all,
            "all-requests",
            "requests: everybody jittering less nobody",
            Rule::exactly(0.0),
        )
        .and(none),
    ];
    criteria
}

fn plan(size: Size) -> Plan {
    Plan {
        question: "What does a stampede look like in which reconnects and session restores are mixed, and whose jitter helps?".to_owned(),
        setup: lines(&[
            &format!("{CLIENTS} confirms and {CUT_OFF} clients that were cut off begin at once; patience 3 s, 3 tries, steps of 0.5 and 1 s"),
            "who was cut off connects, and asks for its session once connected; each of these takes a tenth of a confirm",
            "the gateway stands still until 3 s and then serves 20 at a time, 50 ms a confirm",
            "nobody jitters; only the confirms do (full jitter); everybody does",
            &format!("{} runs of each, medians", runs(size)),
        ]),
        valid_only_if: lines(&[
            "the gateway saw every client",
            "every client came to its end",
            "everybody was served in the end",
        ]),
        criteria: criteria(),
    }
}

fn scene(confirms: Schedule, others: Schedule, seed: u64) -> Scene {
    let mut scene = published(retry(confirms, FIRST, 3), seed);
    let others = retry(others, FIRST, 3);
    let asks = [Kind::Connect, Kind::Restore];
    scene
        .crowds
        .push(together(CUT_OFF, Duration::ZERO, &asks, others));
    scene.gateway.workers = Some(WORKERS);
    scene.gateway.work = WORK;
    scene.gateway.hang = scene.gateway.hang.map(|hang| Hang {
        until: Some(BACK),
        ..hang
    });
    scene
}

/// What comes once the gateway is back.
fn after(ran: &Ran, kind: Option<Kind>) -> Vec<Duration> {
    ran.moments(|one| one.at >= BACK && kind.is_none_or(|kind| kind == one.kind))
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut drawn = Vec::new();
    let mut requests = Vec::new();
    for (name, id, confirms, others) in CONDITIONS {
        let scene = |seed| scene(confirms, others, seed);
        let ran: Vec<_> = (0..runs(size)).map(|seed| run(&scene(seed))).collect();
        let mut condition = Condition::default();
        guard(&mut condition, &scene(0), &ran);
        let served = ran.iter().all(|ran| ran.given_up == 0);
        condition.check("everybody was served in the end", served, served);
        let peaks = |kind| {
            ran.iter()
                .map(move |ran| sliding_peak(&after(ran, kind), BIN) as f64)
        };
        tell(
            &mut findings,
            &mut condition,
            &format!("{id}-peak"),
            peaks(None),
        );
        let own = format!("{id}-own");
        tell(
            &mut findings,
            &mut condition,
            &own,
            peaks(Some(Kind::Confirm)),
        );
        let waits = ran
            .iter()
            .map(|ran| ran.longest_wait.as_secs_f64() * 1_000.0);
        tell(&mut findings, &mut condition, &format!("{id}-wait"), waits);
        let asked = ran.iter().map(|ran| ran.arrivals.len() as f64);
        requests.push(tell(
            &mut findings,
            &mut condition,
            &format!("{id}-requests-sent"),
            asked,
        ));
        findings.add(name, condition);
        let shown = after(&ran[0], None);
        drawn.push(line(name, Mark::Steps, histogram(&shown, BIN)));
    }
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    let saved = ["confirms", "all"].map(|id| of(&format!("{id}-peak")) / of("none-peak"));
    findings.measure("confirms-saved", saved[0]);
    findings.measure("all-saved", saved[1]);
    findings.measure("all-requests", requests[2] - requests[0]);
    findings.plots.push(Plot {
        title: "Requests that reach a gateway in each 100 ms after it came back, one run each"
            .to_owned(),
        across: "seconds since the stampede began".to_owned(),
        up: "requests per 100 ms".to_owned(),
        log_across: false,
        lines: drawn,
    });
    let of = |id: &str| said(&findings, id);
    findings.answer = Some(format!(
        "Reconnects and restores are the greater part of the wave: {} requests in the fullest 100 ms when nobody jitters. Jitter of the confirms alone lowers their own peak to {} and that of all to {} ({} of what it was); the longest wait in the gateway's queue goes from {} to {} ms. Only when everybody jitters does the peak fall, to {} ({}), and the wait to {} ms. What the confirms' client does is worth little while the connections beneath it come back as one.",
        of("none-peak"),
        of("confirms-own"),
        of("confirms-peak"),
        of("confirms-saved"),
        of("none-wait"),
        of("confirms-wait"),
        of("all-peak"),
        of("all-saved"),
        of("all-wait"),
    ));
    findings
}
