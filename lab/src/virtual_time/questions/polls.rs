//! Open question 15: what the polls of waiting shoppers cost, and what a server saves that says when to poll again.

use payment::resend::Policy;
use payment::time::{Millis, PageTimes, Times};
use simulation::scene::{CircuitMode, Delay, Load, Pg, Processor, Ran, Scene, Server, When};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::asked::{Asked, ask, lines, said, seconds, wrongs};
use crate::virtual_time::{Figures, Size, Virtual, line};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "waiting",
    plan,
    run: answer,
};

/// What a poll takes of a core, µs: 133 ms for 1,000, as measured with real processes by the experiment `waiting`.
const COST_US: u64 = 133;
/// A machine three times as slow.
const SLOW_US: u64 = 400;
/// All of them arrive within so many seconds.
const ARRIVE: u32 = 10;
/// Steps between polls, s; the page's whole wait stays 65 s.
const STEPS: [u32; 3] = [2, 5, 10];
/// How many shoppers learn a late answer for each step.
const LEARNERS: u32 = 1_000;

/// How many wait.
fn crowds(size: Size) -> [u32; 2] {
    size.pick([1_000, 10_000], [200, 2_000])
}

fn name(shoppers: u32, step: u32) -> String {
    format!("{shoppers} shoppers, every {step} s")
}

fn page(step: u32) -> PageTimes {
    PageTimes {
        poll_interval: Millis::from_secs(u64::from(step)),
        poll_count: 50 / step,
        ..PageTimes::DEFAULT
    }
}

const CROWDED: &str = "crowded";
const LEARNED: [&str; 3] = [
    "learned, every 2 s",
    "learned, every 5 s",
    "learned, every 10 s",
];

/// Polls of one shopper who is told at once that nobody knows: one each step, and one at the end.
fn polls_each(step: u32) -> Rule {
    let whole = f64::from(65 / step);
    Rule::Between {
        least: whole,
        most: whole + 1.0,
    }
}

/// A core whose polls take so long that the crowd would need two of it.
fn crowded(size: Size) -> Processor {
    let [_, many] = crowds(size);
    let polls_a_second = u64::from(many / STEPS[0]);
    Processor {
        cores: 1,
        confirm: SLOW_US,
        webhook: SLOW_US,
        poll: 2_000_000 / polls_a_second,
        read: SLOW_US,
    }
}

fn plan(size: Size) -> Plan {
    let [few, many] = crowds(size);
    let near = |target: f64, tolerance: f64| Rule::Within {
        target: rounded(target),
        tolerance: rounded(tolerance),
    };
    let mut criteria = Vec::new();
    for shoppers in [few, many] {
        for step in STEPS {
            let (name, id) = (name(shoppers, step), format!("wait{shoppers}-{step}"));
            let says = format!("polls of each: {name}");
            criteria.push(Criterion::new(
                &name,
                &format!("{id}-each"),
                &says,
                polls_each(step),
            ));
            // Those of each over its whole wait; a fiftieth is the confirm's own time.
            let a_poll = f64::from(shoppers) / 65.0;
            let whole = f64::from(65 / step);
            let rule = Rule::Between {
                least: rounded(0.98 * a_poll * whole),
                most: rounded(1.02 * a_poll * (whole + 1.0)),
            };
            let says = format!("polls a second while all wait: {name}");
            criteria.push(Criterion::new(&name, &format!("{id}-rate"), &says, rule));
        }
    }
    criteria.extend([
        Criterion::new(&name(many, 2), &format!("wait{many}-2-shed"), "polls refused with two cores", Rule::exactly(0.0)),
        Criterion::new(LEARNED[1], "later-5", "how much later a late answer is learned with steps of 5 s than of 2 s, mean, s: half the difference", near(1.5, 0.3)).and(LEARNED[0]),
        Criterion::new(LEARNED[2], "later-10", "the same with steps of 10 s, s", near(4.0, 0.5)).and(LEARNED[0]),
        Criterion::new(CROWDED, "crowded-each", "polls of each where the crowd needs two cores and has one, by the server's own hints", Rule::AtMost { most: 0.6 * 33.0 }),
        Criterion::new(CROWDED, "crowded-shed", "polls refused there, % of all", Rule::AtMost { most: 20.0 }).finding(),
        Criterion::new(CROWDED, "crowded-confirms", "confirms refused for load there", Rule::exactly(0.0)),
    ]);
    Plan {
        question: "What do the polls of thousands of waiting shoppers cost, and what does a server save that says when to poll again?".to_owned(),
        setup: lines(&[
            &format!("{few} and {many} shoppers arrive within {ARRIVE} s, every confirm is lost, and their pages poll until 65 s; inquiries take 1 s and tell nothing"),
            &format!("steps of 2 s as shipped, 5 s and 10 s; two cores, a poll takes {COST_US} µs of one (measured with real processes by the experiment of the same name)"),
            &format!("learned: {LEARNERS} shoppers whose gateway answers after 16 to 60 s; the same seeds for each step"),
            &format!("crowded: {many} shoppers, polls that would take two cores, and one core; the server's production judgement stretches pollAfterMs"),
            &format!("{} runs of each, medians", runs(size)),
        ]),
        valid_only_if: lines(&["the gateway saw confirms", "shoppers came"]),
        criteria,
    }
}

/// A run of ten thousand pages takes a while.
const fn runs(size: Size) -> u64 {
    size.pick(30, 2)
}

fn lost(shoppers: u32, step: u32, processor: Processor, seed: u64) -> Scene {
    Scene {
        seed,
        load: Load {
            rate: shoppers / ARRIVE,
            seconds: ARRIVE,
            drain: Millis::ZERO,
            ..Load::default()
        },
        pg: Pg {
            loss: Some((1.0, When::Before)),
            inquiry: Delay::Fixed(1_000),
            ..Pg::default()
        },
        server: server(step, processor),
        ..Scene::default()
    }
}

fn server(step: u32, processor: Processor) -> Server {
    Server {
        times: Times {
            page: page(step),
            cap: None,
            reserve: 0,
            ..Times::DEFAULT
        },
        resend: Policy::Off,
        circuit: CircuitMode::Off,
        lanes: true,
        processor: Some(processor),
        ..Server::default()
    }
}

fn polls(ran: &Ran) -> u64 {
    let sources = ran.counters.iter();
    let answered = sources.filter(|((name, _), _)| name == "poll_answers_total");
    answered.map(|(_, count)| count).sum::<u64>() + ran.counter("http_shed_total", "poll")
}

fn figures(ran: &Ran, cost: u64) -> Figures {
    let polls = polls(ran) as f64;
    let shoppers = ran.seen.len().max(1) as f64;
    let shed = ran.counter("http_shed_total", "poll") as f64;
    // Each waits for 65 s in all, so the crowd is whole between the last arrival and the first end.
    let waits = ran.seen.iter().map(|seen| seconds(seen.took)).sum::<f64>() / shoppers;
    let rate = polls / waits.max(1.0);
    vec![
        ("each", polls / shoppers),
        ("rate", rate),
        ("cores", rate * cost as f64 / 1e6),
        ("shed", 100.0 * shed / polls.max(1.0)),
        ("confirms", ran.counter("http_shed_total", "confirm") as f64),
        ("wrongs", wrongs(ran)),
    ]
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    let two = Processor {
        cores: 2,
        confirm: COST_US,
        webhook: COST_US,
        poll: COST_US,
        read: COST_US,
    };
    let mut drawn = Vec::new();
    for shoppers in crowds(size) {
        let mut points = Vec::new();
        for step in STEPS {
            let (name, id) = (name(shoppers, step), format!("wait{shoppers}-{step}"));
            let asked = Asked {
                name: &name,
                id: &id,
                runs: runs(size),
                drains: false,
            };
            ask(
                &mut findings,
                &asked,
                |seed| lost(shoppers, step, two, seed),
                |ran, _| figures(ran, COST_US),
            );
            let rate = findings.value(&format!("{id}-rate")).unwrap_or(f64::NAN);
            points.push((f64::from(step), rate));
        }
        let formula = (2..=10).map(|step| {
            let each = f64::from(65 / step + 1);
            (f64::from(step), f64::from(shoppers) * each / 65.0)
        });
        drawn.push(line(&format!("{shoppers} shoppers"), Mark::Dots, points));
        drawn.push(line(
            &format!("{shoppers} shoppers, formula"),
            Mark::Curve,
            formula.collect(),
        ));
    }
    learn(size, two, &mut findings);
    let [_, many] = crowds(size);
    let narrow = crowded(size);
    let asked = Asked {
        name: CROWDED,
        id: "crowded",
        runs: runs(size),
        drains: false,
    };
    ask(
        &mut findings,
        &asked,
        |seed| lost(many, STEPS[0], narrow, seed),
        |ran, _| figures(ran, narrow.poll),
    );
    findings.plots.push(Plot {
        title: "Polls a second of waiting shoppers, against the step between two polls of one"
            .to_owned(),
        across: "step, seconds".to_owned(),
        up: "polls a second".to_owned(),
        log_across: false,
        lines: drawn,
    });
    findings.answer = Some(words(size, &findings));
    findings
}

/// How much later a late answer is learned with longer steps.
fn learn(size: Size, processor: Processor, findings: &mut Findings) {
    for (name, step) in LEARNED.into_iter().zip(STEPS) {
        let scene = |seed| {
            let mut scene = lost(LEARNERS, step, processor, seed);
            scene.pg.loss = None;
            scene.pg.delay = Delay::Uniform(16_000, 60_000);
            scene.load.drain = Millis::from_secs(900);
            scene
        };
        let id = format!("learn-{step}");
        let asked = Asked {
            name,
            id: &id,
            runs: runs(size),
            drains: true,
        };
        ask(findings, &asked, scene, |ran, _| {
            let all = ran.seen.iter().map(|seen| seconds(seen.took)).sum::<f64>();
            vec![
                ("took", all / ran.seen.len().max(1) as f64),
                ("wrongs", wrongs(ran)),
            ]
        });
    }
    let took = |step: u32| {
        findings
            .value(&format!("learn-{step}-took"))
            .unwrap_or(f64::NAN)
    };
    let (five, ten) = (took(5) - took(2), took(10) - took(2));
    findings.measure("later-5", five);
    findings.measure("later-10", ten);
}

fn words(size: Size, findings: &Findings) -> String {
    let of = |id: &str| said(findings, id);
    let [few, many] = crowds(size);
    let at = |shoppers: u32, step: u32, what: &str| of(&format!("wait{shoppers}-{step}-{what}"));
    format!(
        "{few} waiting shoppers make {} polls a second with steps of 2 s and {many} make {}: {} and {} cores at {COST_US} µs a poll, as real processes measured it (`waiting`). Steps of 5 s take {} of the {} polls of each away and tell a late answer {} s later in the mean; 10 s leave {} polls and cost {} s. So a longer step for all saves little that is needed and delays everybody; the server stretches it only when it must: where {many} shoppers would need two cores and there is one, its hints bring each down to {} polls, with {} % refused and {} confirms.",
        at(few, 2, "rate"),
        at(many, 2, "rate"),
        at(few, 2, "cores"),
        at(many, 2, "cores"),
        {
            let all = findings
                .value(&format!("wait{many}-2-each"))
                .unwrap_or(f64::NAN);
            let left = findings
                .value(&format!("wait{many}-5-each"))
                .unwrap_or(f64::NAN);
            format!("{:.1}", all - left)
        },
        at(many, 2, "each"),
        of("later-5"),
        at(many, 10, "each"),
        of("later-10"),
        of("crowded-each"),
        of("crowded-shed"),
        of("crowded-confirms"),
    )
}
