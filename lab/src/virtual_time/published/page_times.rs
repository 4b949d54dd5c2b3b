//! What the page says and when, behind a gateway that takes 20 or 40 s (measurements A3).

use payment::time::Millis;
use payment::view::Stage;
use simulation::scene::{Delay, Load, Pg, Ran, Scene};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::verdict::Rule;
use crate::virtual_time::{Case, Figures, Size, Virtual, line, measure, spaced, valid_only_if};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "page-times",
    plan,
    run,
};

/// The gateway's delay, when the page says that it is paid by its own steps (15 s, then every 2 s), and the published
/// moment.
const DELAYS: [(u64, f64, &str); 2] = [(20, 21.0, "21.6 s"), (40, 41.0, "41.6 s")];
/// What a browser adds to the page's own steps, s: published are 0.5 and 0.6.
const BROWSER: f64 = 0.7;

fn name(delay: u64) -> String {
    format!("gateway {delay} s")
}

fn plan(size: Size) -> Plan {
    let near = |target| Rule::Within {
        target,
        tolerance: BROWSER,
    };
    let of = |(delay, done, published): (u64, f64, &str)| {
        let case = name(delay);
        let one = |id: &str, says: &str, rule| {
            Criterion::new(
                &case,
                &format!("{id}-{delay}"),
                &format!("{case}: {says}"),
                rule,
            )
        };
        [
            one(
                "checking",
                "the page says that it is checking after, s (the latest)",
                near(15.0),
            )
            .published("15.5 s"),
            one(
                "done",
                "the page says that it is paid after, s (the latest)",
                near(done),
            )
            .published(published),
            one(
                "charges",
                "orders without exactly one charge",
                Rule::exactly(0.0),
            )
            .published("one payment per order"),
        ]
    };
    Plan {
        question: "When does the page say that it is checking, and when that it is paid, if the gateway takes 20 or 40 s?".to_owned(),
        setup: vec![
            "pages at their shipped times (15 s + 25 × 2 s), 2/s for 10 s; all settings as shipped".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: DELAYS.into_iter().flat_map(of).collect(),
    }
}

fn figures(ran: &Ran) -> Figures {
    let seconds = |span: Millis| span.get() as f64 / 1_000.0;
    let latest = |of: &dyn Fn(&simulation::scene::Seen) -> Option<Millis>| {
        let all: Option<Vec<_>> = ran.seen.iter().map(of).collect();
        let latest = all.and_then(|all| all.into_iter().max());
        latest.map_or(f64::INFINITY, seconds)
    };
    vec![
        ("checkingSeconds", latest(&|seen| seen.checking)),
        (
            "paidSeconds",
            latest(&|seen| (seen.stage == Stage::Paid).then_some(seen.took)),
        ),
        (
            "notOneCharge",
            ran.count(|seen| seen.charged_ever != 1) as f64,
        ),
    ]
}

fn scene(delay: u64) -> Scene {
    Scene {
        load: Load {
            rate: 2,
            seconds: 10,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(delay * 1_000),
            ..Pg::default()
        },
        ..Scene::default()
    }
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let case = |(delay, ..): (u64, f64, &str)| Case::new(name(delay), scene(delay));
    let table = measure(size, &DELAYS.map(case), &mut findings, |_, ran| {
        figures(ran)
    });
    for (delay, ..) in DELAYS {
        let case = name(delay);
        table.judge(
            &mut findings,
            &format!("checking-{delay}"),
            &case,
            "checkingSeconds",
        );
        table.judge(
            &mut findings,
            &format!("done-{delay}"),
            &case,
            "paidSeconds",
        );
        table.judge(
            &mut findings,
            &format!("charges-{delay}"),
            &case,
            "notOneCharge",
        );
    }
    let points = |figure| {
        let of = |(delay, ..): (u64, f64, &str)| (delay as f64, table.median(&name(delay), figure));
        DELAYS.map(of).to_vec()
    };
    findings.plots.push(Plot {
        title: "The page says paid with its first look after the gateway has answered".to_owned(),
        across: "the gateway's delay, s".to_owned(),
        up: "after the confirm began, s".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "published, checking",
                Mark::Dots,
                vec![(20.0, 15.5), (40.0, 15.5)],
            ),
            line(
                "published, paid",
                Mark::Dots,
                vec![(20.0, 21.6), (40.0, 41.6)],
            ),
            line("checking", Mark::Dots, points("checkingSeconds")),
            line("paid", Mark::Dots, points("paidSeconds")),
        ],
    });
    findings.answer = Some(format!(
        "Checking after {:.1} s, paid after {:.1} s (gateway 20 s) and {:.1} s (gateway 40 s), each order charged once; a browser adds about half a second.",
        table.median(&name(20), "checkingSeconds"),
        table.median(&name(20), "paidSeconds"),
        table.median(&name(40), "paidSeconds"),
    ));
    findings
}
