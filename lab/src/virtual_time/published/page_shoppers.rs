//! Shoppers who behave as the page does (measurements A2): whether the deadline ever stands for a real page, and what those
//! hear who gave their answer up.

use payment::time::{Millis, PageTimes, Times};
use payment::view::Stage;
use payment::wire::ProblemCode;
use simulation::scene::{Delay, Load, Pg, Ran, Scene, Server, Shoppers};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::share;
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, line, measure, percentile, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "page-shoppers",
    plan,
    run,
};

/// The published page: 15 s for the response, then ten looks 1.2 s apart.
const TIMES: PageTimes = PageTimes {
    response_wait: Millis::from_secs(15),
    poll_interval: Millis::new(1_200),
    poll_count: 10,
    poll_limit: Millis::from_secs(5),
};
const HEALTHY: &str = "gateway 0.5 s";
const DROPS: &str = "gateway 8 s, drops";
const GOES_ON: &str = "gateway 8 s, goes on";
const MINUTELY: &str = "gateway 8 s, goes on, recovery every 60 s";
const STARVED: &str = "workers starved";
/// The same, but every look of the page waits as long as it takes.
const PATIENT: &str = "workers starved, looks wait";
const ALL: [&str; 6] = [HEALTHY, DROPS, GOES_ON, MINUTELY, STARVED, PATIENT];
/// Longer than the queue of a starved pool ever is.
const PATIENT_LOOK: Millis = Millis::from_secs(300);

fn scene(name: &str, size: Size) -> Scene {
    let delay = match name {
        HEALTHY => 500,
        // 50/s × 3 s is half as much again as 100 workers hold.
        STARVED | PATIENT => 3_000,
        _ => 8_000,
    };
    let starved = matches!(name, STARVED | PATIENT);
    let poll_limit = if name == PATIENT {
        PATIENT_LOOK
    } else {
        TIMES.poll_limit
    };
    let published = Server::published(Millis::from_secs(5), (!starved).then_some(40));
    Scene {
        load: Load {
            // The queue of a starved pool grows with the load's length.
            seconds: if starved { 60 } else { size.pick(60, 20) },
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(delay),
            goes_on: matches!(name, GOES_ON | MINUTELY),
            confirm_window: Millis::from_secs(5),
            ..Pg::default()
        },
        server: Server {
            times: Times {
                page: PageTimes {
                    poll_limit,
                    ..TIMES
                },
                ..published.times
            },
            recovery_every: (name == MINUTELY).then_some(Millis::from_secs(60)),
            workers: starved.then_some(100),
            ..published
        },
        shoppers: Shoppers {
            departed: 0.02,
            ..Shoppers::default()
        },
        ..Scene::default()
    }
}

fn criteria() -> Vec<Criterion> {
    let none = Rule::exactly(0.0);
    let within = |target, tolerance| Rule::Within { target, tolerance };
    let mut criteria = Vec::new();
    for case in ALL {
        let one = |id: &str, says: &str| {
            Criterion::new(
                case,
                &format!("{id} {case}"),
                &format!("{case}: {says}"),
                none,
            )
        };
        criteria.push(
            one("late", "pages refused for a passed deadline").published("0 in every condition"),
        );
        criteria.push(one("control", "controls that were charged").published("0: all left out"));
    }
    criteria.extend([
        Criterion::new(
            DROPS,
            "longest",
            "gateway 8 s, drops: the longest answer, ms",
            Rule::AtMost { most: 10_100.0 },
        )
        .published("10.1 s: two read timeouts and the pause between"),
        // By arithmetic: of 50/s the controls hold no worker, so what comes at t waits t × (49 × 3 ÷ 100 − 1), and whoever
        // comes after 25.5 of the 60 s is cut.
        Criterion::new(
            STARVED,
            "cut",
            "workers starved: pages cut at 15 s, %",
            within(57.4, 4.0),
        )
        .published("62 %"),
        Criterion::new(
            STARVED,
            "learned",
            "workers starved: of those cut, learned of success by polling, %",
            within(100.0, 0.5),
        )
        .published("all 1,300")
        .finding()
        .because("Our page gives a look up after 5 s, and its looks wait in the same queue as the confirms, longer than that; the published page let a look wait. The condition in which ours do so as well has the published outcome beside it."),
        Criterion::new(
            PATIENT,
            "learned-patient",
            "workers starved, looks wait: of those cut, learned of success by polling, %",
            within(100.0, 0.5),
        )
        .published("all 1,300")
        .finding(),
        Criterion::new(
            MINUTELY,
            "minutely",
            "recovery every 60 s: of those answered 202, learned it from the page, %",
            within(0.0, 0.5),
        )
        .published("none of 480")
        .finding()
        .because("Who hears hangs on where the minute falls: recovery looks at whole minutes, and whoever came within the page's wait before one hears of it. The published runs do not say when their minute began; by back-off everybody hears."),
        Criterion::new(
            GOES_ON,
            "backed-off",
            "recovery by back-off from 1 s: of those answered 202, learned it from the page, %",
            within(100.0, 0.5),
        )
        .published("not published"),
    ]);
    criteria
}

fn plan(size: Size) -> Plan {
    Plan {
        question: "Does the deadline ever stand for shoppers who behave as the page does, and what do those hear who gave the answer up?".to_owned(),
        setup: vec![
            format!("50/s evenly spaced for {} s (starved: 60 s), cap 40, PG timeout 5 s, circuit off, resends by the budget", size.pick(60, 20)),
            "the page waits 15 s, then looks ten times 1.2 s apart; one of fifty is the control and carries 0 ms left".to_owned(),
            "looks wait: the page gives no look up, instead of after 5 s".to_owned(),
            "starved: 100 workers that each hold a request, no cap, gateway 3 s; a worker does not notice that its caller left".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: criteria(),
    }
}

fn figures(ran: &Ran) -> Figures {
    let late = |seen: &simulation::scene::Seen| seen.refused(ProblemCode::DeadlinePassed);
    let stays = |seen: &simulation::scene::Seen| !seen.departed;
    let cut = ran.count(|seen| stays(seen) && seen.said.is_none());
    let cut_paid =
        ran.count(|seen| stays(seen) && seen.said.is_none() && seen.stage == Stage::Paid);
    let doubt =
        |seen: &simulation::scene::Seen| seen.said == Some(simulation::scene::Said::InDoubt);
    let in_doubt = ran.count(doubt);
    let told = ran.count(|seen| doubt(seen) && seen.stage == Stage::Paid);
    let answered = ran.seen.iter().filter_map(|seen| seen.answered);
    vec![
        (
            "pagesLate",
            ran.count(|seen| stays(seen) && late(seen)) as f64,
        ),
        (
            "controlsCharged",
            ran.count(|seen| seen.departed && seen.charged_ever > 0) as f64,
        ),
        (
            "longestAnswerMs",
            percentile(answered.map(|span| span.get() as f64), 100.0).unwrap_or(f64::NAN),
        ),
        ("cutPercent", 100.0 * share(cut, ran.count(stays))),
        ("cutWhoLearnedPercent", 100.0 * share(cut_paid, cut)),
        ("answeredInDoubt", in_doubt as f64),
        ("inDoubtWhoLearnedPercent", 100.0 * share(told, in_doubt)),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases = ALL.map(|name| Case::new(name, scene(name, size)));
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for case in ALL {
        table.judge(&mut findings, &format!("late {case}"), case, "pagesLate");
        table.judge(
            &mut findings,
            &format!("control {case}"),
            case,
            "controlsCharged",
        );
    }
    table.judge(&mut findings, "longest", DROPS, "longestAnswerMs");
    table.judge(&mut findings, "cut", STARVED, "cutPercent");
    for (id, case) in [("learned", STARVED), ("learned-patient", PATIENT)] {
        table.judge(&mut findings, id, case, "cutWhoLearnedPercent");
    }
    table.judge(
        &mut findings,
        "minutely",
        MINUTELY,
        "inDoubtWhoLearnedPercent",
    );
    table.judge(
        &mut findings,
        "backed-off",
        GOES_ON,
        "inDoubtWhoLearnedPercent",
    );
    let learned = |case| table.median(case, "inDoubtWhoLearnedPercent");
    findings.plots.push(Plot {
        title: "Whoever is answered 202 hears the result from the page when recovery does not wait a minute".to_owned(),
        across: "recovery: 0 every 60 s, 1 by back-off from 1 s".to_owned(),
        up: "of those answered 202, learned it from the page, %".to_owned(),
        log_across: false,
        lines: vec![
            line("published", Mark::Dots, vec![(0.0, 0.0)]),
            line("measured", Mark::Dots, vec![(0.0, learned(MINUTELY)), (1.0, learned(GOES_ON))]),
        ],
    });
    findings.answer = Some(format!(
        "The deadline never stood for a page. With starved workers {:.1} % were cut at 15 s (57 by arithmetic, 62 published) and {:.1} % of them learned of success by polling, since a look is given up after 5 s and waits in the same queue; where looks wait as long as it takes {:.1} % did (all 1,300 published). Behind a gateway of 8 s {:.0} were answered 202: with recovery every 60 s {:.1} % of them learned it from the page, by back-off {:.1} %.",
        table.median(STARVED, "cutPercent"),
        table.median(STARVED, "cutWhoLearnedPercent"),
        table.median(PATIENT, "cutWhoLearnedPercent"),
        table.median(MINUTELY, "answeredInDoubt"),
        learned(MINUTELY),
        learned(GOES_ON),
    ));
    findings
}
