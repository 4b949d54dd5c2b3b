//! Open question 9: how much of what full jitter does is spreading and how much is shortening, what wider windows do, and
//! what is left of it at a gateway that is asynchronous.

use std::time::Duration;

use super::runs;
use super::waves::{BIN, CLIENTS, FINE, FIRST, after_the_first, guard, published, retry};
use crate::plan::{Condition, Criterion, Findings, Mark, Plan, Plot};
use crate::stampede::{
    Begin, Hang, Holds, Ran, Scene, Schedule, binned_peak, expected_peak, run, sliding_peak,
};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::asked::{lines, said, tell};
use crate::virtual_time::{Size, Virtual, line};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "jitter",
    plan,
    run: answer,
};

/// Each schedule with the width of its first wave in steps and its mean pause in steps.
const SCHEDULES: [(&str, Schedule, f64, f64); 6] = [
    ("exponential", Schedule::Exponential, 0.0, 1.0),
    ("halved", Schedule::Halved, 0.0, 0.5),
    ("centred", Schedule::Centred, 1.0, 1.0),
    ("full", Schedule::Full, 1.0, 0.5),
    ("equal", Schedule::Equal, 0.5, 0.75),
    ("decorrelated", Schedule::Decorrelated, 2.0, 2.0),
];
/// First steps of wider windows, ms.
const WINDOWS: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];
/// The gateway that comes back works on so many at once, each for so long: 400 a second, more than the 300 a second of
/// 150 clients over half a second.
const WORKERS: usize = 20;
const WORK: Duration = Duration::from_millis(50);
const TRIES: u32 = 3;

/// The peak of a first wave that is uniform over `width` steps of `first`; all of the crowd when it has no width.
fn wave(first: Duration, width: f64, window: Duration) -> f64 {
    if width > 0.0 {
        expected_peak(CLIENTS, first.mul_f64(width), window)
    } else {
        CLIENTS as f64
    }
}

fn tenth(target: f64) -> Rule {
    Rule::Within {
        target: rounded(target),
        tolerance: rounded(target / 10.0),
    }
}

/// What is expected.
fn criteria() -> Vec<Criterion> {
    let mut criteria = Vec::new();
    for (name, _, width, mean) in SCHEDULES {
        let peak = wave(FIRST, width, BIN);
        let rule = if width > 0.0 {
            tenth(peak)
        } else {
            Rule::exactly(peak)
        };
        criteria.push(Criterion::new(
            name,
            &format!("{name}-peak"),
            &format!("peak in 100 ms: {name}"),
            rule,
        ));
        // Two pauses, of one and of two steps; decorrelated: of two, and of half a step and one and a half times the last.
        let pauses = if name == "decorrelated" {
            0.5 * (2.0 + 0.5 + 3.0)
        } else {
            3.0 * mean * 0.5
        };
        let rule = Rule::Within {
            target: 9_000.0 + 1_000.0 * pauses,
            tolerance: 150.0,
        };
        criteria.push(Criterion::new(
            name,
            &format!("{name}-took"),
            &format!("a client's time, mean, ms: {name}"),
            rule,
        ));
    }
    for first in WINDOWS {
        let peak = wave(Duration::from_millis(first), 1.0, BIN);
        criteria.push(Criterion::new(
            &format!("window {first}"),
            &format!("window-{first}"),
            &format!("peak in 100 ms, first retries, full jitter over {first} ms"),
            tenth(peak),
        ));
    }
    let rounds = CLIENTS.div_ceil(WORKERS) - 1;
    let wait = rounds as f64 * WORK.as_secs_f64() * 1_000.0;
    criteria.extend([
        Criterion::new(
            "asynchronous, exponential",
            "queue-exponential",
            "longest wait in the gateway's queue, ms, exponential",
            Rule::exactly(wait.round()),
        ),
        Criterion::new(
            "asynchronous, full",
            "queue-full",
            "the same with full jitter, ms",
            Rule::AtMost {
                most: (wait / 3.0).round(),
            },
        ),
        Criterion::new(
            "asynchronous, full",
            "open-full",
            "most connections open while it stands still, full jitter",
            Rule::exactly(CLIENTS as f64),
        ),
        Criterion::new(
            "threads, full",
            "threads-full",
            "most threads held while it stands still, full jitter",
            Rule::exactly(3.0 * CLIENTS as f64),
        ),
    ]);
    criteria
}

fn plan(size: Size) -> Plan {
    Plan {
        question: "How much of jitter's lower peak is spreading and how much is shortening, and what do wider windows and an asynchronous gateway change?".to_owned(),
        setup: lines(&[
            "the published stampede (150 clients at exactly one moment, patience 3 s, 3 tries, a gateway that stands still), with other schedules",
            "pairs of equal mean: exponential (1 step, no width) and centred (½ to 1½ steps); halved (½ step, no width) and full jitter (0 to 1 step)",
            "also equal jitter (½ to 1 step) and decorrelated jitter (1 step to 3 times the last pause)",
            "wider windows: full jitter with first steps of 0.5 to 8 s; judged are the first retries, since wide waves run into one another",
            "asynchronous: the gateway comes back at 3 s, before any retry; 20 at a time, 50 ms each; what hung holds a connection and no worker. Threads: what hangs holds a thread for all of the 8 s",
            "expected peaks by Wallenstein and Neff's formula for the first wave, within a tenth",
            &format!("{} runs of each, medians", runs(size)),
        ]),
        valid_only_if: lines(&["the gateway saw every client", "every client came to its end"]),
        criteria: criteria(),
    }
}

/// The published scene with everybody at exactly one moment, so that the formula's first wave is the schedule's alone.
fn exact(schedule: Schedule, first: Duration, seed: u64) -> Scene {
    let mut scene = published(retry(schedule, first, TRIES), seed);
    scene.crowds[0].begin = Begin::Together {
        at: Duration::ZERO,
        noise: Duration::ZERO,
    };
    scene
}

/// Runs a scene from every seed and notes what must hold.
fn repeat(size: Size, scene: impl Fn(u64) -> Scene) -> (Condition, Vec<Ran>) {
    let ran: Vec<_> = (0..runs(size)).map(|seed| run(&scene(seed))).collect();
    let mut condition = Condition::default();
    guard(&mut condition, &scene(0), &ran);
    (condition, ran)
}

/// The middle of what runs gave.
fn middle(ran: &[Ran], value: impl Fn(&Ran) -> f64) -> f64 {
    crate::virtual_time::asked::middle(ran.iter().map(value))
}

fn peak(ran: &Ran, window: Duration) -> f64 {
    sliding_peak(&ran.moments(after_the_first), window) as f64
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    for (name, schedule, ..) in SCHEDULES {
        let (mut condition, ran) = repeat(size, |seed| exact(schedule, FIRST, seed));
        let peaks = ran.iter().map(|ran| peak(ran, BIN));
        tell(
            &mut findings,
            &mut condition,
            &format!("{name}-peak"),
            peaks,
        );
        let took = ran.iter().map(Ran::mean_ms);
        tell(&mut findings, &mut condition, &format!("{name}-took"), took);
        condition.figure("peakPer10Ms", middle(&ran, |ran| peak(ran, FINE)));
        let bins = |ran: &Ran| binned_peak(&ran.moments(after_the_first), BIN, Duration::ZERO);
        condition.figure("peakInBinsOf100Ms", middle(&ran, |ran| bins(ran) as f64));
        condition.figure("clientP50Ms", rounded(middle(&ran, Ran::p50_ms)));
        let requests = middle(&ran, |ran| ran.arrivals.len() as f64);
        condition.figure("requests", requests);
        findings.add(name, condition);
    }
    windows(size, &mut findings);
    asynchronous(size, &mut findings);
    threads(size, &mut findings);
    findings.answer = Some(words(&findings));
    findings
}

fn windows(size: Size, findings: &mut Findings) {
    let mut measured = [Vec::new(), Vec::new(), Vec::new()];
    for first in WINDOWS {
        let step = Duration::from_millis(first);
        let (mut condition, ran) = repeat(size, |seed| exact(Schedule::Full, step, seed));
        let waves = ran.iter().map(|ran| {
            let wave = ran.moments(|arrival| arrival.time == 2);
            sliding_peak(&wave, BIN) as f64
        });
        let wave = tell(findings, &mut condition, &format!("window-{first}"), waves);
        let whole = middle(&ran, |ran| peak(ran, BIN));
        let fine = middle(&ran, |ran| peak(ran, FINE));
        condition.figure("peakOfAllPer100Ms", whole);
        condition.figure("peakOfAllPer10Ms", fine);
        condition.figure("clientMeanMs", rounded(middle(&ran, Ran::mean_ms)));
        for (points, value) in measured.iter_mut().zip([wave, whole, fine]) {
            points.push((step.as_secs_f64(), value));
        }
        findings.add(format!("window {first}"), condition);
    }
    let [waves, whole, fine] = measured;
    let formula = |window| {
        let points = WINDOWS.map(Duration::from_millis);
        let points = points.map(|first| (first.as_secs_f64(), wave(first, 1.0, window)));
        points.to_vec()
    };
    findings.plots.push(Plot {
        title: "The peak of a stampede's retries against the width of full jitter's first window"
            .to_owned(),
        across: "first window, seconds".to_owned(),
        up: "requests in the fullest span".to_owned(),
        log_across: true,
        lines: vec![
            line("first retries, 100 ms", Mark::Dots, waves),
            line("formula, 100 ms", Mark::Curve, formula(BIN)),
            line("all retries, 100 ms", Mark::Dots, whole),
            line("published, 100 ms", Mark::Dots, vec![(0.5, 38.0)]),
            line("all retries, 10 ms", Mark::Dots, fine),
            line("formula, 10 ms", Mark::Curve, formula(FINE)),
        ],
    });
}

fn asynchronous(size: Size, findings: &mut Findings) {
    for (name, schedule) in [
        ("exponential", Schedule::Exponential),
        ("full", Schedule::Full),
    ] {
        let scene = |seed| {
            let mut scene = exact(schedule, FIRST, seed);
            scene.gateway.workers = Some(WORKERS);
            scene.gateway.work = WORK;
            scene.gateway.hang = scene.gateway.hang.map(|hang| Hang {
                until: Some(Duration::from_secs(3)),
                ..hang
            });
            scene
        };
        let (mut condition, ran) = repeat(size, scene);
        let served = ran.iter().all(|ran| ran.given_up == 0);
        condition.check("everybody was served once it came back", served, served);
        let waits = ran
            .iter()
            .map(|ran| ran.longest_wait.as_secs_f64() * 1_000.0);
        tell(findings, &mut condition, &format!("queue-{name}"), waits);
        let queue = middle(&ran, |ran| ran.longest_queue as f64);
        condition.figure("longestQueue", queue);
        if name == "full" {
            let open = ran.iter().map(|ran| ran.peak_connections as f64);
            tell(findings, &mut condition, "open-full", open);
        }
        findings.add(format!("asynchronous, {name}"), condition);
    }
}

fn threads(size: Size, findings: &mut Findings) {
    let scene = |seed| {
        let mut scene = exact(Schedule::Full, FIRST, seed);
        scene.gateway.holds = Holds::Worker;
        scene
    };
    let (mut condition, ran) = repeat(size, scene);
    let held = ran.iter().map(|ran| ran.peak_threads as f64);
    tell(findings, &mut condition, "threads-full", held);
    findings.add("threads, full", condition);
}

fn words(findings: &Findings) -> String {
    let of = |id: &str| said(findings, id);
    let value = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    let lowered = value("exponential-peak") - value("full-peak");
    let by_spreading = 100.0 * (value("exponential-peak") - value("centred-peak")) / lowered;
    let by_shortening = 100.0 * (value("exponential-peak") - value("halved-peak")) / lowered;
    format!(
        "Of what full jitter takes off the peak {by_spreading:.0} % is had by spreading alone and {by_shortening:.0} % by shortening alone. With equal means, a spread of one step lowers the peak from {} to {} (mean of a step) and from {} to {} (half a step), while halving the pauses alone leaves it at {}; halving is what makes a client's time shorter ({} to {} ms). Equal jitter, half as wide, leaves {}; decorrelated, twice as wide, {}. The peak falls with the window as the formula says: {} first retries at 0.5 s, {} at 2 s, {} at 8 s. An asynchronous gateway that comes back holds no thread, but the wave stands in its queue instead: {} ms without jitter, {} ms with it. Where each call holds a thread, jitter saves none: {} of them stand still.",
        of("exponential-peak"),
        of("centred-peak"),
        of("halved-peak"),
        of("full-peak"),
        of("halved-peak"),
        of("exponential-took"),
        of("halved-took"),
        of("equal-peak"),
        of("decorrelated-peak"),
        of("window-500"),
        of("window-2000"),
        of("window-8000"),
        of("queue-exponential"),
        of("queue-full"),
        of("threads-full"),
    )
}
