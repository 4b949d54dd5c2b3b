//! Open question 14 (a): the burst of resends 20–60 ms after every connection to the gateway was reset at once.

use std::time::Duration;

use payment::resend;
use payment::time::Millis;
use simulation::scene::{Delay, Load, Pg};

use super::runs;
use super::waves::{BIN, FINE, guard};
use crate::plan::{Condition, Criterion, Findings, Mark, Plan, Plot};
use crate::stampede::{
    Begin, Crowd, Gateway, Kind, Ran, Retry, Scene, Schedule, expected_peak, run, sliding_peak,
};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::asked::{Asked, ask, lines, said, tell, wrongs};
use crate::virtual_time::{Size, Virtual, line};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "resend-burst",
    plan,
    run: answer,
};

/// The shipped cap, and how many slots must be free as a resend takes one.
const CAP: usize = 40;
const RESERVE: usize = 4;
/// Resends of one shop after all of its calls were reset: each takes a slot as long as the reserve is free.
const RESENDS: usize = CAP - RESERVE + 1;
/// How many such shops lose their connections at once.
const SHOPS: [usize; 2] = [1, 10];
/// The conditions with production code, and whether the gateway goes on with what was cut: then a resend is refused at once,
/// since the first send is still worked on.
const SERVER: [(&str, &str, bool); 2] = [
    ("the server, a gateway that goes on", "server-on", true),
    (
        "the server, a gateway that drops what was cut",
        "server-anew",
        false,
    ),
];
/// Widths of the window of resends, ms; the first is the shipped one of 20 to 60 ms.
const WIDTHS: [u64; 5] = [40, 80, 200, 500, 1_000];

/// The peak that a formula expects of all resends of some shops.
fn expected(shops: usize, width: u64, window: Duration) -> f64 {
    expected_peak(RESENDS * shops, Duration::from_millis(width), window)
}

fn name(shops: usize, width: u64) -> String {
    format!("{shops} × {RESENDS} over {width} ms")
}

fn plan(size: Size) -> Plan {
    let mut criteria = Vec::new();
    for shops in SHOPS {
        for width in WIDTHS {
            let spans = [("10 ms", "fine", FINE), ("100 ms", "coarse", BIN)];
            for (says, id, window) in spans {
                let target = expected(shops, width, window);
                // A count is whole: less than one off is right where the formula speaks of few.
                let tolerance = (target / 10.0).max(0.75);
                let rule = if window >= Duration::from_millis(width) {
                    Rule::exactly(target)
                } else {
                    Rule::Within {
                        target: rounded(target),
                        tolerance: rounded(tolerance),
                    }
                };
                let says = format!("resends in the fullest {says}: {}", name(shops, width));
                let id = format!("{id}-{shops}-{width}");
                criteria.push(Criterion::new(&name(shops, width), &id, &says, rule));
            }
        }
    }
    criteria.push(Criterion::new(
        &name(1, 40),
        "answered",
        "resends answered while the gateway still works on the first, %",
        Rule::exactly(0.0),
    ));
    let resent = [
        // Each resend that is refused at once gives its slot back at once, so the reserve is never touched.
        Rule::exactly(CAP as f64),
        // Each holds its slot, and so does each first send that comes meanwhile: 50 a second for 60 ms at most.
        Rule::Between {
            least: RESENDS as f64 - 4.0,
            most: RESENDS as f64,
        },
    ];
    for ((name, id, _), rule) in SERVER.into_iter().zip(resent) {
        let says = format!("resends of the server itself: {name}");
        criteria.push(Criterion::new(name, &format!("{id}-resent"), &says, rule));
        let target = expected(1, WIDTHS[0], FINE);
        let rule = Rule::Within {
            target: rounded(target),
            tolerance: 3.0,
        };
        let says = format!("its calls in the fullest 10 ms after the reset: {name}");
        criteria.push(Criterion::new(name, &format!("{id}-fine"), &says, rule));
        let says = format!("its shoppers told wrongly, or charged twice: {name}");
        let none = Rule::exactly(0.0);
        criteria.push(Criterion::new(name, &format!("{id}-wrongs"), &says, none));
    }
    let (shortest, longest) = resend::DELAY;
    Plan {
        question: "How high is the burst of resends after a mass reset, and what would a wider window change?".to_owned(),
        setup: lines(&[
            &format!("{CAP} confirms of each shop are open (the cap) and all are reset at once; with a reserve of {RESERVE} slots {RESENDS} are resent: each as long as {RESERVE} are free, the one it takes included"),
            &format!("one shop, and ten; resends {} to {} ms after the reset as shipped, and over wider windows", shortest.get(), longest.get()),
            "the gateway goes on with what it had begun and takes 5 s; a window of 10 ms, and one of 100 ms, slides over what arrives",
            "the server itself: production code, 50 confirms/s at such a gateway, every connection reset at 20 s",
            "expected by Wallenstein and Neff's formula, within a tenth or less than one",
            &format!("{} runs of each, medians", runs(size)),
        ]),
        valid_only_if: lines(&[
            "the gateway saw every client",
            "every client came to its end",
            "everything that was open was sent again, once",
        ]),
        criteria,
    }
}

fn scene(shops: usize, width: u64, seed: u64) -> Scene {
    let (shortest, _) = resend::DELAY;
    let first = shortest.to_duration();
    let crowd = Crowd {
        clients: RESENDS * shops,
        begin: Begin::Evenly {
            over: Duration::from_millis(800),
        },
        asks: vec![Kind::Confirm],
        retry: Retry {
            schedule: Schedule::Between,
            first,
            longest: first + Duration::from_millis(width),
            tries: 2,
            timeout: Duration::from_secs(60),
        },
    };
    Scene {
        crowds: vec![crowd],
        gateway: Gateway::healthy(Duration::from_secs(5)),
        reset_at: Some(Duration::from_secs(1)),
        seed,
    }
}

/// The server in front of such a gateway.
fn server(size: Size, findings: &mut Findings) {
    const RESET: u64 = 20_000;
    for (name, id, goes_on) in SERVER {
        let scene = |seed| simulation::scene::Scene {
            seed,
            load: Load {
                seconds: 40,
                ..Load::default()
            },
            pg: Pg {
                delay: Delay::Fixed(5_000),
                resets: vec![Millis::new(RESET)],
                goes_on,
                ..Pg::default()
            },
            ..simulation::scene::Scene::default()
        };
        ask(findings, &Asked::new(name, id, size), scene, |ran, _| {
            let (_, longest) = resend::DELAY;
            let until = RESET + longest.get() + 10;
            let after = ran.books.arrivals.iter();
            let after: Vec<_> = after
                .filter(|at| (RESET..until).contains(at))
                .map(|at| Duration::from_millis(*at))
                .collect();
            let kept_back = ran.counter("pg_resend_total", "no_free_slots");
            vec![
                ("resent", ran.counter("pg_resend_total", "sent") as f64),
                ("kept-back", kept_back as f64),
                ("fine", sliding_peak(&after, FINE) as f64),
                ("in-progress", ran.books.in_progress as f64),
                ("wrongs", wrongs(ran)),
            ]
        });
    }
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut drawn = Vec::new();
    for shops in SHOPS {
        let mut measured = Vec::new();
        for width in WIDTHS {
            let ran: Vec<_> = (0..runs(size))
                .map(|seed| run(&scene(shops, width, seed)))
                .collect();
            let mut condition = Condition::default();
            guard(&mut condition, &scene(shops, width, 0), &ran);
            let all = ran.iter().all(|ran| ran.retries().len() == RESENDS * shops);
            condition.check("everything that was open was sent again, once", all, all);
            for (id, window) in [("fine", FINE), ("coarse", BIN)] {
                let peaks = ran
                    .iter()
                    .map(|ran| sliding_peak(&ran.retries(), window) as f64);
                let id = format!("{id}-{shops}-{width}");
                let median = tell(&mut findings, &mut condition, &id, peaks);
                if window == FINE {
                    measured.push((width as f64, median));
                }
            }
            if (shops, width) == (1, WIDTHS[0]) {
                let answered = |ran: &Ran| {
                    let served = ran.took.len() - ran.given_up;
                    100.0 * served as f64 / ran.took.len().max(1) as f64
                };
                let answered = ran.iter().map(answered);
                tell(&mut findings, &mut condition, "answered", answered);
            }
            findings.add(name(shops, width), condition);
        }
        let formula = WIDTHS.map(|width| (width as f64, expected(shops, width, FINE)));
        let shop = if shops == 1 { "one shop" } else { "ten shops" };
        drawn.push(line(&format!("{shop}, measured"), Mark::Dots, measured));
        drawn.push(line(
            &format!("{shop}, formula"),
            Mark::Curve,
            formula.to_vec(),
        ));
    }
    server(size, &mut findings);
    findings.plots.push(Plot {
        title: "Resends in the fullest 10 ms after a mass reset, against the width of their window"
            .to_owned(),
        across: "width of the window of resends, ms".to_owned(),
        up: "resends in the fullest 10 ms".to_owned(),
        log_across: true,
        lines: drawn,
    });
    let of = |id: &str| said(&findings, id);
    findings.answer = Some(format!(
        "The cap bounds the burst before any jitter does: of {CAP} calls that are reset, {RESENDS} are sent again where the gateway takes its time with them, {} of them within the fullest 10 ms and {} within 100 ms. A window of 200 ms would lower that to {} and {}, one of a second to {} and {}; ten shops at once make {} within 10 ms, and {} over a second. Wider windows pay only for a gateway that counts in 10 ms; and while it still works on the first sends a resend brings no answer: {} % of them were answered. The server itself sends {} of {CAP} again where they are refused at once, and {} where each holds its slot, {} of them within 10 ms.",
        of("fine-1-40"),
        of("coarse-1-40"),
        of("fine-1-200"),
        of("coarse-1-200"),
        of("fine-1-1000"),
        of("coarse-1-1000"),
        of("fine-10-40"),
        of("fine-10-1000"),
        of("answered"),
        of("server-on-resent"),
        of("server-anew-resent"),
        of("server-anew-fine"),
    ));
    findings
}
