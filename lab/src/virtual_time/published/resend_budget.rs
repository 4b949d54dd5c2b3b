//! The resend budget (measurements B): what a second send costs a slow gateway and gives a lossy one.

use payment::resend::Policy;
use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Arrivals, Delay, Load, Pg, Ran, Scene, Server, WARM_UP, When};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::share;
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Table, Virtual, line, measure, note, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "resend-budget",
    plan,
    run,
};

/// How far off a published share is still the same, points (measurements B).
const TOLERANCE: f64 = 1.5;
const POLICIES: [(&str, Policy); 3] = [
    ("off", Policy::Off),
    ("always", Policy::Always),
    ("budget", Policy::Budget),
];
/// The one case whose arrivals are not even.
const POISSON: &str = "slow/always/drops, Poisson";

/// The slow or the lossy gateway of B, with a server of this policy.
pub(in crate::virtual_time) fn scene(slow: bool, goes_on: bool, resend: Policy) -> Scene {
    Scene {
        load: Load {
            rate: 30,
            seconds: 60,
            warm_up: Some(WARM_UP),
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(if slow { 5_000 } else { 0 }),
            loss: (!slow).then_some((0.15, When::Before)),
            goes_on,
            confirm_window: Millis::from_secs(5),
            ..Pg::default()
        },
        server: Server {
            resend,
            ..Server::published(Millis::from_secs(2), Some(40))
        },
        ..Scene::default()
    }
}

/// Shares in %, counted when nothing is unknown any more.
pub(in crate::virtual_time) fn figures(ran: &Ran) -> Figures {
    let all = ran.seen.len() as u64;
    let percent = |part| 100.0 * share(part, all);
    vec![
        (
            "refusedPercent",
            percent(ran.refused(ProblemCode::PgCapReached)),
        ),
        ("notPaidPercent", percent(all - ran.sold())),
        ("pgCalls", ran.books.received as f64),
        ("resent", ran.counter("pg_resend_total", "sent") as f64),
        (
            "skipped",
            ran.counter("pg_resend_total", "no_free_slots") as f64,
        ),
        ("everUnknown", ran.ever_unknown as f64),
    ]
}

fn name(slow: bool, resend: &str, goes_on: bool) -> String {
    let illness = if slow { "slow" } else { "lossy" };
    let after = if goes_on { "goes-on" } else { "drops" };
    format!("{illness}/{resend}/{after}")
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for slow in [true, false] {
        for goes_on in [false, true] {
            for (policy, resend) in POLICIES {
                cases.push(Case::new(
                    name(slow, policy, goes_on),
                    scene(slow, goes_on, resend),
                ));
            }
        }
    }
    let mut poisson = Case::new(POISSON, scene(true, false, Policy::Always));
    poisson.scene.load.arrivals = Arrivals::Poisson;
    cases.push(poisson);
    cases
}

/// One policy against another.
fn compared() -> [Criterion; 3] {
    let near = |tolerance| Rule::Within {
        target: 0.0,
        tolerance,
    };
    [
        Criterion::new(
            "slow/budget/drops",
            "budget-slow",
            "failed on a slow gateway: budget less off, points",
            near(1.0),
        )
        .and("slow/off/drops")
        .published("0.16"),
        Criterion::new(
            "lossy/always/drops",
            "calls-lossy",
            "PG calls on a lossy gateway: one resend over none, %",
            Rule::Within {
                target: 14.4,
                tolerance: TOLERANCE,
            },
        )
        .and("lossy/off/drops")
        .published("14.4 % (first run)")
        .finding(),
        Criterion::new(
            "slow/always/goes-on",
            "always-slow-goes-on",
            "failed on a slow gateway that goes on: always less off, points",
            near(3.0),
        )
        .and("slow/off/goes-on")
        .published("not published")
        .finding(),
    ]
}

fn plan(size: Size) -> Plan {
    let within = |target| Rule::Within {
        target,
        tolerance: TOLERANCE,
    };
    let failed = |name: &str, rule, published: &str| {
        let says = format!("{name}: failed, %");
        Criterion::new(name, &format!("failed {name}"), &says, rule).published(published)
    };
    let skipped = |name: &str, rule, published: &str| {
        let says = format!("{name}: resends skipped for want of free slots");
        Criterion::new(name, &format!("skipped {name}"), &says, rule).published(published)
    };
    let between = |least, most| Rule::Between { least, most };
    let mut criteria = vec![
        failed("lossy/off/drops", within(14.29), "14.29 %"),
        failed("lossy/always/drops", within(1.9), "1.90 %"),
        failed("lossy/budget/drops", within(2.82), "2.82 %"),
        skipped("slow/budget/drops", Rule::Above { bound: 0.0 }, "1,176"),
        skipped("lossy/budget/drops", Rule::exactly(0.0), "0"),
    ];
    criteria.extend(compared());
    criteria.extend([
        failed("slow/off/drops", within(31.56), "31.56 %"),
        failed("slow/budget/drops", within(31.4), "31.40 %"),
        failed(
            "slow/always/drops",
            between(47.0, 57.0),
            "55.23 % (48 % for evenly spaced arrivals by a slot model)",
        ),
        failed(POISSON, between(47.0, 57.0), "56 % by a slot model"),
    ]);
    Plan {
        question: "Does the resend budget keep the gain on a lossy gateway without the harm on a slow one?".to_owned(),
        setup: vec![
            "pages at their shipped times, 10/s for 15 s, then 30/s for 60 s, all counted; cap 40, reserve 4, PG timeout 2 s, circuit off".to_owned(),
            "slow: every confirm takes 5 s; lossy: 15 % are reset at once, before anything; drops / goes-on: what becomes of work whose caller hung up".to_owned(),
            "failed on a slow gateway: refused by the cap; on a lossy one: not paid when nothing is unknown any more".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria,
    }
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases = cases();
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for case in &cases {
        let name = &case.name;
        let slow = name.starts_with("slow");
        let failed = if slow {
            "refusedPercent"
        } else {
            "notPaidPercent"
        };
        table.judge(&mut findings, &format!("failed {name}"), name, failed);
        table.judge(&mut findings, &format!("skipped {name}"), name, "skipped");
    }
    let apart = |one: &str, other: &str| {
        table.pairs(
            (one, "refusedPercent"),
            (other, "refusedPercent"),
            |one, other| one - other,
        )
    };
    note(
        &mut findings,
        "budget-slow",
        &apart("slow/budget/drops", "slow/off/drops"),
    );
    note(
        &mut findings,
        "always-slow-goes-on",
        &apart("slow/always/goes-on", "slow/off/goes-on"),
    );
    let calls = (
        ("lossy/always/drops", "pgCalls"),
        ("lossy/off/drops", "pgCalls"),
    );
    let more = table.pairs(calls.0, calls.1, |always, off| 100.0 * (always - off) / off);
    note(&mut findings, "calls-lossy", &more);
    findings.plots.push(plot(&table));
    let median = |case: &str, figure| table.median(case, figure);
    findings.answer = Some(format!(
        "Yes: on a slow gateway the budget fails {:.1} % (off {:.1} %, always {:.1} %), on a lossy one {:.1} % (off {:.1} %, always {:.1} %). With a gateway that goes on, always costs {:.1} % instead of {:.1} %: a resend is answered 409 at once and holds no slot.",
        median("slow/budget/drops", "refusedPercent"),
        median("slow/off/drops", "refusedPercent"),
        median("slow/always/drops", "refusedPercent"),
        median("lossy/budget/drops", "notPaidPercent"),
        median("lossy/off/drops", "notPaidPercent"),
        median("lossy/always/drops", "notPaidPercent"),
        median("slow/always/goes-on", "refusedPercent"),
        median("slow/always/drops", "refusedPercent"),
    ));
    findings
}

fn plot(table: &Table) -> Plot {
    let bars = |slow, goes_on| {
        let failed = if slow {
            "refusedPercent"
        } else {
            "notPaidPercent"
        };
        let of = |(at, (policy, _)): (usize, (&str, Policy))| {
            (
                at as f64,
                table.median(&name(slow, policy, goes_on), failed),
            )
        };
        POLICIES.into_iter().enumerate().map(of).collect::<Vec<_>>()
    };
    Plot {
        title: "The budget fails as little as no resend on a slow gateway and as little as one on a lossy one".to_owned(),
        across: "resend: 0 off, 1 always, 2 budget".to_owned(),
        up: "failed, %".to_owned(),
        log_across: false,
        lines: vec![
            line("published, slow", Mark::Dots, vec![(0.0, 31.56), (1.0, 55.23), (2.0, 31.4)]),
            line("published, lossy", Mark::Dots, vec![(0.0, 14.29), (1.0, 1.9), (2.0, 2.82)]),
            line("slow, drops", Mark::Dots, bars(true, false)),
            line("slow, goes on", Mark::Dots, bars(true, true)),
            line("lossy, drops", Mark::Dots, bars(false, false)),
        ],
    }
}
