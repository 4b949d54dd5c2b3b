//! A server with 100 threads that each hold one request (measurements C2's column without a cap, C3, C4), beside Jari: who
//! waits behind confirms that a slow gateway holds.

use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Beside, Client, Delay, Load, Pg, Ran, Scene, Server, Shoppers, Side};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{rounded, share};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, line, measure, percentile, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "thread-pool",
    plan,
    run,
};

/// The published server's worker threads; confirms, reads and webhooks a second; seconds of load (measurements C).
const WORKERS: u32 = 100;
const RATE: u32 = 50;
const READS: u32 = 10;
const WEBHOOKS: u32 = 10;
const SECONDS: u32 = 45;

/// One server at one gateway.
#[derive(Debug, Clone, Copy)]
struct Setting {
    name: &'static str,
    delay_ms: u64,
    cap: Option<u32>,
    threads: bool,
    timeout_ms: u64,
    rate: u32,
}

const fn threads(name: &'static str, delay_ms: u64, cap: Option<u32>) -> Setting {
    Setting {
        name,
        delay_ms,
        cap,
        threads: true,
        timeout_ms: 60_000,
        rate: RATE,
    }
}

const FREE_2: Setting = threads("threads, no cap, 2 s", 2_000, None);
const FREE_3: Setting = threads("threads, no cap, 3 s", 3_000, None);
const FREE_5: Setting = threads("threads, no cap, 5 s", 5_000, None);
const CAP_40: Setting = threads("threads, cap 40, 5 s", 5_000, Some(40));
const CAP_20: Setting = threads("threads, cap 20, 3 s", 3_000, Some(20));
/// At 30/s all of 45 s are the 1,351 unknown of C3.
const SHORT: Setting = Setting {
    rate: 30,
    timeout_ms: 2_000,
    ..threads("threads, no cap, 30/s, 5 s, timeout 2 s", 5_000, None)
};
const SHIPPED: Setting = Setting {
    threads: false,
    ..threads("as shipped, cap 40, 5 s", 5_000, Some(40))
};
const ALL: [Setting; 7] = [FREE_2, FREE_3, FREE_5, CAP_40, CAP_20, SHORT, SHIPPED];

impl Setting {
    fn scene(self) -> Scene {
        Scene {
            load: Load {
                rate: self.rate,
                seconds: SECONDS,
                ..Load::default()
            },
            pg: Pg {
                delay: Delay::Fixed(self.delay_ms),
                goes_on: false,
                confirm_window: Millis::from_secs(5),
                ..Pg::default()
            },
            server: Server {
                workers: self.threads.then_some(WORKERS),
                lanes: !self.threads,
                resend: payment::resend::Policy::Off,
                ..Server::published(Millis::new(self.timeout_ms), self.cap)
            },
            shoppers: Shoppers {
                client: Client::Raw(None),
                ..Shoppers::default()
            },
            beside: Beside {
                reads: READS,
                webhooks: WEBHOOKS,
                polls: 0,
            },
            ..Scene::default()
        }
    }

    /// What the request at a share of the load waits for a worker, ms, by arithmetic: 100 at a time are served, each
    /// hundred a hold after the one before, and came 100 ÷ rate after it.
    fn waits_ms(self, at: f64) -> f64 {
        let hold = self.delay_ms.min(self.timeout_ms) as f64 / 1_000.0;
        let hundreds = (at * f64::from(self.rate * SECONDS) / f64::from(WORKERS)).floor();
        let each = hold - f64::from(WORKERS) / f64::from(self.rate);
        1_000.0 * (hundreds * each).max(0.0)
    }
}

fn near(target: f64) -> Rule {
    Rule::Within {
        target: rounded(target),
        tolerance: rounded((target * 0.1).max(100.0)),
    }
}

fn plan(size: Size) -> Plan {
    let one = |case: Setting, id: &str, says: &str, rule| {
        let (id, says) = (
            format!("{id} {}", case.name),
            format!("{}: {says}", case.name),
        );
        Criterion::new(case.name, &id, &says, rule)
    };
    let (read, webhook) = ("p95 of light reads, ms", "p95 of webhooks, ms");
    let too_late = "webhooks over 10 s, %";
    let at_once = Rule::AtMost { most: 20.0 };
    let p95 = |case: Setting| near(case.waits_ms(0.95));
    // The first request that waits longer than 10 s.
    let ten = (0..1_000).find(|at| FREE_5.waits_ms(f64::from(*at) / 1_000.0) > 10_000.0);
    let late = 100.0 - f64::from(ten.unwrap_or(1_000)) / 10.0;
    Plan {
        question: "Who waits behind the confirms that a slow gateway holds, if each request holds a thread?".to_owned(),
        setup: vec![
            format!("{RATE} confirms/s (30 where it says so) of bare clients, {READS} reads/s and {WEBHOOKS} webhooks/s, evenly spaced for {SECONDS} s; circuit off, no resends"),
            format!("threads: one pool of {WORKERS} workers that queues without bound; as shipped: no pool, lanes on"),
            "without a cap the expectation is the queue's arithmetic for an open loop; the published load was bounded by its own virtual users, so its waits are shorter".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria: vec![
            one(FREE_2, "read", read, at_once).published("about 1 s: exactly as much as the workers hold").finding(),
            one(FREE_3, "read", read, p95(FREE_3)).published("about 7 s (7.31, 7.72, 7.85 s)"),
            one(FREE_5, "read", read, p95(FREE_5)).published("about 14 s"),
            one(CAP_40, "read", read, at_once).published("7–8 ms"),
            one(CAP_20, "read", read, at_once).published("18.6 ms"),
            one(SHIPPED, "read", read, at_once).published("not published"),
            one(FREE_5, "webhook", webhook, p95(FREE_5)).published("13 s"),
            one(FREE_5, "late", too_late, Rule::Within { target: rounded(late), tolerance: 3.0 }).published("26.11 %, again 26.77 %"),
            one(CAP_40, "webhook", webhook, at_once).published("9 ms"),
            one(CAP_40, "late", too_late, Rule::exactly(0.0)).published("0.00 %, twice"),
            one(SHIPPED, "webhook", webhook, at_once).published("not published"),
            one(SHORT, "confirm", "p95 of confirms, ms", Rule::Between { least: 2_000.0, most: 2_150.0 }).published("2.13 s (14.26 s with a timeout of 5 s)"),
            one(SHORT, "unknown", "confirms that became unknown", Rule::exactly(f64::from(30 * SECONDS))).published("1,351"),
            one(CAP_20, "refused", "refused by the cap, of 2,250", Rule::Within { target: 1_950.0, tolerance: 25.0 }).published("1,951"),
        ],
    }
}

fn p95(side: &Side) -> f64 {
    let served = side.served.iter().map(|span| span.get() as f64);
    percentile(served, 95.0).unwrap_or(f64::INFINITY)
}

fn figures(ran: &Ran) -> Figures {
    let answered = ran.seen.iter().filter_map(|seen| seen.answered);
    let answers = answered.map(|span| span.get() as f64);
    let late = ran
        .webhooks
        .served
        .iter()
        .filter(|span| span.get() > 10_000);
    vec![
        ("readsP95Ms", p95(&ran.reads)),
        ("webhooksP95Ms", p95(&ran.webhooks)),
        (
            "webhooksLatePercent",
            100.0 * share(late.count() as u64, ran.webhooks.asked),
        ),
        (
            "confirmsP95Ms",
            percentile(answers, 95.0).unwrap_or(f64::INFINITY),
        ),
        ("everUnknown", ran.ever_unknown as f64),
        ("refused", ran.refused(ProblemCode::PgCapReached) as f64),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases = ALL.map(|setting| Case::new(setting.name, setting.scene()));
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for (id, figure) in [
        ("read", "readsP95Ms"),
        ("webhook", "webhooksP95Ms"),
        ("late", "webhooksLatePercent"),
        ("confirm", "confirmsP95Ms"),
        ("unknown", "everUnknown"),
        ("refused", "refused"),
    ] {
        for setting in ALL {
            table.judge(
                &mut findings,
                &format!("{id} {}", setting.name),
                setting.name,
                figure,
            );
        }
    }
    let seconds = |setting: Setting| {
        let read = table.median(setting.name, "readsP95Ms") / 1_000.0;
        (setting.delay_ms as f64 / 1_000.0, read)
    };
    findings.plots.push(Plot {
        title: "Without a cap everything waits behind the confirms; with one nothing does"
            .to_owned(),
        across: "the gateway's delay, s".to_owned(),
        up: "p95 of light reads, s".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "published, no cap",
                Mark::Dots,
                vec![(2.0, 1.0), (3.0, 7.72), (5.0, 14.0)],
            ),
            line(
                "queue's arithmetic",
                Mark::Curve,
                [FREE_2, FREE_3, FREE_5]
                    .map(|one| (one.delay_ms as f64 / 1_000.0, one.waits_ms(0.95) / 1_000.0))
                    .to_vec(),
            ),
            line(
                "threads, no cap",
                Mark::Dots,
                [FREE_2, FREE_3, FREE_5].map(seconds).to_vec(),
            ),
            line(
                "threads, with a cap",
                Mark::Dots,
                [CAP_20, CAP_40].map(seconds).to_vec(),
            ),
            line("as shipped", Mark::Dots, vec![seconds(SHIPPED)]),
        ],
    });
    let read = |one: Setting| table.median(one.name, "readsP95Ms");
    findings.answer = Some(format!(
        "Everything does: at 5 s without a cap reads have a p95 of {:.0} s and {:.0} % of the webhooks take over 10 s, as an open queue must (the published 14 s and 26 % come from a load that waits in line); with cap 40 {:.0} ms and {:.0} %. A read timeout of 2 s answers in {:.2} s, and {:.0} payments become unknown.",
        read(FREE_5) / 1_000.0,
        table.median(FREE_5.name, "webhooksLatePercent"),
        read(CAP_40),
        table.median(CAP_40.name, "webhooksLatePercent"),
        table.median(SHORT.name, "confirmsP95Ms") / 1_000.0,
        table.median(SHORT.name, "everUnknown"),
    ));
    findings
}
