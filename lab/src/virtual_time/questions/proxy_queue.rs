//! Question 3: time in a queue before the server, counted by a trusted proxy's stamp.

use payment::time::{Millis, PageTimes, Times};
use payment::view::Stage;
use simulation::scene::{Delay, Load, Pg, Ran, Scene, Server};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::share;
use crate::verdict::Rule;
use crate::virtual_time::{Case, Figures, Size, Virtual, line, measure, spaced, valid_only_if};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "proxy-queue",
    plan,
    run,
};

/// The page of A2: its shoppers wait 27 s in all.
const PAGE: PageTimes = PageTimes {
    response_wait: Millis::from_secs(15),
    poll_interval: Millis::new(1_200),
    poll_count: 10,
    poll_limit: Millis::from_secs(5),
};
const SECONDS: u32 = 120;
const OFF: &str = "not stamped";
const ON: &str = "stamped";

/// Refused for the deadline, % of all. Of 50/s the workers serve 100 ÷ 3 a second; who comes at t waits t ÷ 2, which is the
/// page's 27 s at t = 54; from then on a third is refused as it comes to its turn, and the wait stays at 27 s.
fn formula() -> f64 {
    let full = 2.0 * PAGE.total_wait().get() as f64 / 1_000.0;
    100.0 * (1.0 / 3.0) * (1.0 - full / f64::from(SECONDS))
}

fn plan(size: Size) -> Plan {
    let within = |target: f64, tolerance| Rule::Within {
        target: crate::stats::rounded(target),
        tolerance,
    };
    let none = Rule::exactly(0.0);
    Plan {
        question: "What changes when the time in a proxy's queue counts against the shopper's deadline?".to_owned(),
        setup: vec![
            format!("50/s evenly spaced for {SECONDS} s before a queue with 100 places behind it (a server of 100 workers, no cap), gateway 3 s, circuit off"),
            "pages wait 15 s and then look ten times 1.2 s apart: 27 s in all".to_owned(),
            "not stamped: the server counts from when it takes the request; stamped: from when the proxy did (X-Request-Start)".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: vec![
            Criterion::new(OFF, "late-off", "not stamped: refused for the deadline, %", none).published("0: the server never noticed"),
            Criterion::new(ON, "late-on", "stamped: refused for the deadline, %", within(formula(), 3.0)).published("not published (a third from 54 s on)")
                .finding(),
            Criterion::new(OFF, "after-off", "not stamped: charged after the shopper had waited for 27 s, % of all", Rule::Above { bound: 10.0 }).published("not published"),
            Criterion::new(ON, "sent-on", "stamped: sent after the shopper had waited for 27 s, % of all", none).published("not published"),
        ],
    }
}

fn scene(stamped: bool) -> Scene {
    let published = Server::published(Millis::from_secs(5), None);
    Scene {
        load: Load {
            rate: 50,
            seconds: SECONDS,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(3_000),
            ..Pg::default()
        },
        server: Server {
            times: Times {
                page: PAGE,
                ..published.times
            },
            workers: Some(100),
            stamped,
            ..published
        },
        ..Scene::default()
    }
}

fn figures(ran: &Ran) -> Figures {
    let percent = |part| 100.0 * share(part, ran.seen.len() as u64);
    // Charged, and the page had said for good that nobody knows.
    let after = ran.count(|seen| seen.charged > 0 && seen.stage == Stage::StillUnknown);
    vec![
        (
            "latePercent",
            percent(ran.counter("pg_not_sent_total", "deadline")),
        ),
        ("chargedAfterPercent", percent(after)),
        (
            "sentLatePercent",
            percent(sent_late(ran, PAGE.total_wait())),
        ),
    ]
}

/// How many calls arrived at the gateway later after their shopper than the page waits. The queue keeps the order of
/// arrivals and nothing is resent, so the n-th call is that of the n-th shopper who was charged.
fn sent_late(ran: &Ran, total: Millis) -> u64 {
    let sent = ran.seen.iter().filter(|seen| seen.charged_ever > 0);
    let pairs = sent.zip(&ran.books.arrivals);
    let late = pairs.filter(|(seen, at)| **at > seen.at.get() + total.get());
    late.count() as u64
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases = [(OFF, false), (ON, true)].map(|(name, stamped)| Case::new(name, scene(stamped)));
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for (id, case, figure) in [
        ("late-off", OFF, "latePercent"),
        ("late-on", ON, "latePercent"),
        ("after-off", OFF, "chargedAfterPercent"),
        ("sent-on", ON, "sentLatePercent"),
    ] {
        table.judge(&mut findings, id, case, figure);
    }
    let both = |figure| {
        vec![
            (0.0, table.median(OFF, figure)),
            (1.0, table.median(ON, figure)),
        ]
    };
    findings.plots.push(Plot {
        title: "A stamp turns charges that nobody waits for into refusals in time".to_owned(),
        across: "proxy's stamp: 0 none, 1 counted".to_owned(),
        up: "of all shoppers, %".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "sent after the shopper's whole wait",
                Mark::Dots,
                both("sentLatePercent"),
            ),
            line("refused for the deadline", Mark::Dots, both("latePercent")),
            line(
                "formula, refused",
                Mark::Curve,
                vec![(0.0, 0.0), (1.0, formula())],
            ),
        ],
    });
    findings.answer = Some(format!(
        "Without the stamp the server never notices: {:.1} % of all confirms are sent after their shopper's whole wait of 27 s, and {:.1} % are charged while the page has given up. With it those are {:.1} %. Refused for the deadline are {:.1} %, where the formula expected {:.1}: it left out that an answer (202) comes at the deadline at the latest, while the send goes on. So a worker is free after what is left of the 27 s, and the queue's wait settles where that is 100 ÷ 50 = 2 s, before anybody is late.",
        table.median(OFF, "sentLatePercent"),
        table.median(OFF, "chargedAfterPercent"),
        table.median(ON, "sentLatePercent"),
        table.median(ON, "latePercent"),
        formula(),
    ));
    findings
}
