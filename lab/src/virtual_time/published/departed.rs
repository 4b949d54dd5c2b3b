//! Shoppers who have left (measurements A1): what it saves not to send for them.

use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Client, Delay, Load, Pg, Ran, Scene, Server, Shoppers, WARM_UP};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::share;
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, line, measure, note, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "departed",
    plan,
    run,
};

/// Confirms a second (measurements A1).
const RATE: u32 = 30;
/// For how long, after the warm-up (measurements A1).
const SECONDS: u32 = 60;
/// With fewer calls in flight (mean) the cap was not full; published 37–38 of 40.
const FULL: Rule = Rule::Between {
    least: 36.0,
    most: 40.0,
};

/// The scene of A1 with this share of departed shoppers, the check on or off.
pub(in crate::virtual_time) fn scene(share: f64, check: bool, seconds: u32) -> Scene {
    Scene {
        load: Load {
            rate: RATE,
            seconds,
            warm_up: Some(WARM_UP),
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(5_000),
            goes_on: false,
            confirm_window: Millis::from_secs(5),
            ..Pg::default()
        },
        server: Server {
            deadline_check: check,
            ..Server::published(Millis::from_secs(2), Some(40))
        },
        shoppers: Shoppers {
            client: Client::Raw(Some(Millis::from_secs(30))),
            departed: share,
            ..Shoppers::default()
        },
        ..Scene::default()
    }
}

/// The figures of A1.
pub(in crate::virtual_time) fn figures(ran: &Ran) -> Figures {
    let of = |departed: bool, test: &dyn Fn(&simulation::scene::Seen) -> bool| {
        let all = ran.count(|seen| seen.departed == departed);
        100.0
            * share(
                ran.count(|seen| seen.departed == departed && test(seen)),
                all,
            )
    };
    let cap = |seen: &simulation::scene::Seen| seen.refused(ProblemCode::PgCapReached);
    let departed = ran.count(|seen| seen.departed);
    let late = ran.counter("pg_not_sent_total", "deadline");
    // The slots are full from a hold after the warm-up on.
    let from = Millis::from_secs(u64::from(WARM_UP.1) + 3);
    let until = ran.seen.last().map_or(Millis::ZERO, |last| last.at);
    vec![
        ("pgCalls", ran.books.received as f64),
        (
            "capRefusals",
            ran.counter("pg_not_sent_total", "cap") as f64,
        ),
        ("departed", departed as f64),
        ("lateLessDeparted", late as f64 - departed as f64),
        ("late", late as f64),
        ("remainingReachedPercent", of(false, &|seen| !cap(seen))),
        (
            "departedUnknownPercent",
            of(true, &|seen| {
                !cap(seen) && !seen.refused(ProblemCode::DeadlinePassed)
            }),
        ),
        (
            "meanInFlight",
            ran.mean_in_flight(from, until).unwrap_or(f64::NAN),
        ),
    ]
}

fn plan(size: Size) -> Plan {
    let within = |target, tolerance| Rule::Within { target, tolerance };
    let fall = Rule::Between {
        least: 4.0,
        most: 14.0,
    };
    let both = |case: &str, id: &str, says: &str, rule, published: &str| {
        let says = format!("{says}, check {case}");
        Criterion::new(case, &format!("{id}-{case}"), &says, rule).published(published)
    };
    let reached = "remaining shoppers who reached the PG, %";
    let unknown = "departed who ended unknown, %";
    let in_flight = "calls in flight, mean of 40";
    Plan {
        question: "What does the gateway save when nothing is sent for shoppers who have left?".to_owned(),
        setup: vec![
            format!(
                "confirms evenly spaced, 10/s for 15 s, then {RATE}/s for {} s (all counted); each takes 5 s, PG timeout 2 s, cap 40, reserve 4",
                SECONDS
            ),
            "3 of every 10 confirms carry X-Request-Timeout-Ms 0 (which ones: by the seed), the others 30000; a bare client that never polls".to_owned(),
            "deadline check off and on; circuit off, resends by the budget; the gateway drops what its caller gave up".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: vec![
            Criterion::new("off", "calls-fall", "PG calls saved by the check, %", fall)
                .and("on")
                .published("8.4 % (8.3 % before the resend budget)"),
            Criterion::new("off", "refusals-fall", "cap refusals saved by the check, %", Rule::Above { bound: 50.0 })
                .and("on")
                .published("609 → 169: 72 %"),
            Criterion::new("on", "departed-refused", "refused for the deadline less departed", Rule::exactly(0.0))
                .published("615 = all departed"),
            Criterion::new("off", "departed-refused-off", "refused for the deadline without the check", Rule::exactly(0.0))
                .published("0"),
            both("off", "reached", reached, within(68.3, 5.0), "68.3 %"),
            both("on", "reached", reached, within(87.4, 5.0), "87.4 %"),
            both("off", "unknown", unknown, within(69.9, 5.0), "69.9 %"),
            both("on", "unknown", unknown, Rule::exactly(0.0), "0"),
            both("off", "in-flight", in_flight, FULL, "37–38"),
            both("on", "in-flight", in_flight, FULL, "37–38"),
        ],
    }
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases = [("off", false), ("on", true)]
        .map(|(name, check)| Case::new(name, scene(0.3, check, SECONDS)));
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    let fall = |figure| {
        table.pairs(("off", figure), ("on", figure), |off, on| {
            100.0 * (off - on) / off
        })
    };
    note(&mut findings, "calls-fall", &fall("pgCalls"));
    note(&mut findings, "refusals-fall", &fall("capRefusals"));
    table.judge(&mut findings, "departed-refused", "on", "lateLessDeparted");
    table.judge(&mut findings, "departed-refused-off", "off", "late");
    for case in ["off", "on"] {
        let judge = |findings: &mut Findings, id: &str, figure| {
            table.judge(findings, &format!("{id}-{case}"), case, figure);
        };
        judge(&mut findings, "reached", "remainingReachedPercent");
        judge(&mut findings, "unknown", "departedUnknownPercent");
        judge(&mut findings, "in-flight", "meanInFlight");
    }
    let at = |case| if case == "off" { 0.0 } else { 1.0 };
    let cases = ["off", "on"].map(|case| (at(case), case));
    findings.plots.push(Plot {
        title: "Remaining shoppers reach the gateway when nothing is sent for those who left"
            .to_owned(),
        across: "deadline check: 0 off, 1 on".to_owned(),
        up: "remaining shoppers who reached the PG, %".to_owned(),
        log_across: false,
        lines: vec![
            line("published", Mark::Dots, vec![(0.0, 68.3), (1.0, 87.4)]),
            line(
                "measured",
                Mark::Dots,
                table.points(cases, "remainingReachedPercent"),
            ),
        ],
    });
    let value = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "The check saves {:.1} % of the calls and {:.0} % of the cap's refusals: {:.1} % of the shoppers who stayed reach the gateway instead of {:.1} %, and {:.0} % of those who left end unknown instead of {:.1} %.",
        value("calls-fall"),
        value("refusals-fall"),
        value("reached-on"),
        value("reached-off"),
        value("unknown-on"),
        value("unknown-off"),
    ));
    findings
}
