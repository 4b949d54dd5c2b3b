//! Question 8: webhooks against payments and reads under overload: who is shed first, and what it costs each.

use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{
    Beside, CircuitMode, Client, Delay, Load, Pg, Processor, Ran, Scene, Server, Shoppers, Side,
};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{rounded, share};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, line, measure, percentile, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "shed-first",
    plan,
    run,
};

/// A slow machine, so that overload is a few hundred requests a second: 200 reads, or 400 webhooks.
const MACHINE: Processor = Processor {
    cores: 2,
    confirm: 10_000,
    webhook: 5_000,
    poll: 2_000,
    read: 10_000,
};
const PAYMENTS: u32 = 20;
const SECONDS: u32 = 20;
/// The gateway's delay, ms.
const GATEWAY_MS: u64 = 500;

/// What comes beside the payments: reads and webhooks a second.
const LOADS: [(&str, u32, u32); 4] = [
    ("calm", 50, 10),
    ("reads, twice as many as can be", 400, 10),
    ("webhooks, twice as many as can be", 50, 800),
    ("both", 400, 800),
];

fn name(load: &str, lanes: bool) -> String {
    format!("{load}, lanes {}", if lanes { "on" } else { "off" })
}

fn plan(size: Size) -> Plan {
    let mut criteria = Vec::new();
    for (load, reads, webhooks) in LOADS {
        let (on, off) = (name(load, true), name(load, false));
        let one = |case: &str, id: &str, says: &str, rule| {
            Criterion::new(
                case,
                &format!("{id} {case}"),
                &format!("{case}: {says}"),
                rule,
            )
        };
        let none = Rule::exactly(0.0);
        criteria.push(one(&on, "confirmsShed", "confirms shed", none));
        let confirm = "p95 of confirms' answers, ms";
        // The gateway's time, and the turn of a few dozen requests that are worked on before it.
        let soon = Rule::AtMost {
            most: GATEWAY_MS as f64 + 500.0,
        };
        criteria.push(one(&on, "confirmsP95", confirm, soon));
        if reads > 200 {
            criteria.push(one(
                &on,
                "readsShed",
                "reads shed, %",
                Rule::Between {
                    least: 40.0,
                    most: 100.0,
                },
            ));
        } else if webhooks < 400 {
            criteria.push(one(&on, "readsShed", "reads shed, %", none));
        }
        if webhooks > 400 {
            criteria.push(
                one(
                    &on,
                    "webhooksShed",
                    "webhooks shed, %",
                    Rule::Between {
                        least: 30.0,
                        most: 80.0,
                    },
                )
                .finding(),
            );
        } else {
            criteria.push(one(&on, "webhooksShed", "webhooks shed, %", none));
        }
        if load != "calm" {
            // An open queue: what comes at t waits t × (load − 1) at least.
            criteria.push(one(
                &off,
                "confirmsP95",
                confirm,
                Rule::Above { bound: 5_000.0 },
            ));
        }
    }
    Plan {
        question: "Under overload by reads or webhooks, who is refused first, and what does it cost the payments?".to_owned(),
        setup: vec![
            format!("{PAYMENTS} confirms/s (gateway {GATEWAY_MS} ms) for {SECONDS} s by bare clients, beside them reads and webhooks, evenly spaced; lanes on and off, circuit off"),
            "a machine of two cores on which a confirm or a read keeps one busy for 10 ms and a webhook for 5 ms: slow on purpose, so that 200 reads or 400 webhooks a second are all it can do".to_owned(),
            "published for comparison (C4): without a cap 26 % of the webhooks took over 10 s, with it none; there all that is short is threads".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria,
    }
}

fn scene(reads: u32, webhooks: u32, lanes: bool) -> Scene {
    Scene {
        load: Load {
            rate: PAYMENTS,
            seconds: SECONDS,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(GATEWAY_MS),
            ..Pg::default()
        },
        server: Server {
            circuit: CircuitMode::Off,
            lanes,
            processor: Some(MACHINE),
            ..Server::default()
        },
        shoppers: Shoppers {
            client: Client::Raw(Some(Millis::from_secs(65))),
            ..Shoppers::default()
        },
        beside: Beside {
            reads,
            webhooks,
            polls: 0,
        },
        ..Scene::default()
    }
}

fn p95(spans: impl Iterator<Item = Millis>) -> f64 {
    percentile(spans.map(|span| span.get() as f64), 95.0).unwrap_or(f64::INFINITY)
}

fn figures(ran: &Ran) -> Figures {
    let shed = |side: &Side| 100.0 * share(side.shed, side.asked);
    vec![
        (
            "confirmsP95Ms",
            p95(ran.seen.iter().filter_map(|seen| seen.answered)),
        ),
        ("confirmsShed", ran.refused(ProblemCode::Overloaded) as f64),
        ("readsP95Ms", p95(ran.reads.served.iter().copied())),
        ("readsShedPercent", shed(&ran.reads)),
        ("webhooksP95Ms", p95(ran.webhooks.served.iter().copied())),
        ("webhooksShedPercent", shed(&ran.webhooks)),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut cases = Vec::new();
    for (load, reads, webhooks) in LOADS {
        for lanes in [true, false] {
            cases.push(Case::new(name(load, lanes), scene(reads, webhooks, lanes)));
        }
    }
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for case in &cases {
        for (id, figure) in [
            ("confirmsShed", "confirmsShed"),
            ("confirmsP95", "confirmsP95Ms"),
            ("readsShed", "readsShedPercent"),
            ("webhooksShed", "webhooksShedPercent"),
        ] {
            table.judge(
                &mut findings,
                &format!("{id} {}", case.name),
                &case.name,
                figure,
            );
        }
    }
    let across = |lanes, figure| {
        let of = |(at, (load, ..)): (usize, (&str, u32, u32))| {
            (at as f64, rounded(table.median(&name(load, lanes), figure)))
        };
        let points = LOADS.into_iter().enumerate().map(of);
        points.filter(|(_, up)| up.is_finite()).collect::<Vec<_>>()
    };
    findings.plots.push(Plot {
        title: "With lanes payments keep their pace whatever overloads the machine".to_owned(),
        across: "0 calm, 1 reads, 2 webhooks, 3 both, each twice what can be done".to_owned(),
        up: "p95 of confirms' answers, ms".to_owned(),
        log_across: false,
        lines: vec![
            line("lanes on", Mark::Dots, across(true, "confirmsP95Ms")),
            line("lanes off", Mark::Dots, across(false, "confirmsP95Ms")),
        ],
    });
    findings.plots.push(Plot {
        title: "Reads are refused first, then webhooks, confirms never".to_owned(),
        across: "0 calm, 1 reads, 2 webhooks, 3 both, each twice what can be done".to_owned(),
        up: "refused for load, %".to_owned(),
        log_across: false,
        lines: vec![
            line("reads", Mark::Dots, across(true, "readsShedPercent")),
            line("webhooks", Mark::Dots, across(true, "webhooksShedPercent")),
        ],
    });
    let of = |load: usize, lanes, figure| table.median(&name(LOADS[load].0, lanes), figure);
    findings.answer = Some(format!(
        "Reads first: at twice the reads that can be {:.0} % of them are refused, no webhook and no confirm, and confirms keep a p95 of {:.0} ms ({:.0} ms without lanes). At twice the webhooks {:.0} % of those and {:.0} % of the reads are refused, and confirms take {:.0} ms ({:.0}). A gateway sends a refused webhook again; recovery asks meanwhile.",
        of(1, true, "readsShedPercent"),
        of(1, true, "confirmsP95Ms"),
        of(1, false, "confirmsP95Ms"),
        of(2, true, "webhooksShedPercent"),
        of(2, true, "readsShedPercent"),
        of(2, true, "confirmsP95Ms"),
        of(2, false, "confirmsP95Ms"),
    ));
    findings
}
