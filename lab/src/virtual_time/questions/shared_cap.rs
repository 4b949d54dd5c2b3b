//! Question 6: two to eight nodes that share one cap, and one that dies.

use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Arrivals, Client, Death, Delay, Load, Pg, Ran, Scene, Server, Shoppers};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{rounded, share};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Virtual, erlang_loss, line, measure, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "shared-cap",
    plan,
    run,
};

const NODES: [u32; 4] = [1, 2, 4, 8];
const CAP: u32 = 40;
/// Shoppers a second, and the gateway's delay: 60 of demand for 40 slots.
const RATE: u32 = 30;
const DELAY_MS: u64 = 2_000;
/// When the node dies; its lease of 65 s ends with the last renewal's, and the others' shares grow within two beats of 1 s.
const DEATH_S: u64 = 30;
const LEASE_S: u64 = 65;
/// How long a share stays out of reach at most after the lease, s.
const BEATS_S: u64 = 4;
/// The load's length, s.
const SECONDS: u32 = 150;

fn name(nodes: u32, dies: bool) -> String {
    let dies = if dies { ", one dies" } else { "" };
    format!("{nodes} nodes{dies}")
}

fn cases() -> impl Iterator<Item = (u32, bool)> {
    let alive = NODES.into_iter().map(|nodes| (nodes, false));
    alive.chain(NODES.into_iter().skip(1).map(|nodes| (nodes, true)))
}

/// Refused, %, where the cap is divided by `shares` (equal parts, the remainder to the first) and `living` nodes each have
/// one part of the demand.
fn formula(shares: u32, living: u32) -> f64 {
    let demand = f64::from(RATE) * DELAY_MS as f64 / 1_000.0 / f64::from(living);
    let of = |node| erlang_loss(CAP / shares + u32::from(node < CAP % shares), demand);
    100.0 * (0..living).map(of).sum::<f64>() / f64::from(living)
}

fn plan(size: Size) -> Plan {
    let within = |target: f64| Rule::Within {
        target: rounded(target),
        tolerance: 2.5,
    };
    let mut criteria = Vec::new();
    for (nodes, dies) in cases() {
        let case = name(nodes, dies);
        let one = |id: &str, says: &str, rule| {
            Criterion::new(
                &case,
                &format!("{id} {case}"),
                &format!("{case}: {says}"),
                rule,
            )
        };
        let most = Rule::AtMost {
            most: f64::from(CAP),
        };
        criteria.push(one("most", "confirms in flight at once, most", most));
        let before = one(
            "before",
            "refused by the cap, %",
            within(formula(nodes, nodes)),
        );
        criteria
            .push(before.published("not published (Erlang's loss formula for each node's share)"));
        if dies {
            let living = nodes - 1;
            criteria.push(one(
                "dead",
                "refused while the dead node's share is its own, %",
                within(formula(nodes, living)),
            ));
            criteria.push(one(
                "after",
                "refused when its share is back, %",
                within(formula(living, living)),
            ));
            let back = Rule::Between {
                least: LEASE_S as f64 - 1.0,
                most: (LEASE_S + BEATS_S) as f64,
            };
            criteria.push(one(
                "back",
                "until more than the living's old shares are in flight, s",
                back,
            ));
        }
    }
    Plan {
        question: "What does it cost to divide one cap among nodes, and how long does a dead node's share stay away?".to_owned(),
        setup: vec![
            format!("{RATE} confirms/s of bare clients, Poisson, for {SECONDS} s, to any living node by chance; gateway {DELAY_MS} ms, cap {CAP} shared by 1 to 8 nodes, leases as shipped (65 s)"),
            format!("one node dies {DEATH_S} s after the beginning and does not come back"),
            "in flight: counted at the port of all nodes together, calls of the dead one included until the gateway ends them".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria,
    }
}

fn scene(nodes: u32, dies: bool) -> Scene {
    Scene {
        load: Load {
            rate: RATE,
            seconds: SECONDS,
            arrivals: Arrivals::Poisson,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(DELAY_MS),
            ..Pg::default()
        },
        server: Server {
            nodes: nodes as usize,
            deaths: dies
                .then_some(Death {
                    node: 0,
                    at: Millis::from_secs(DEATH_S),
                    back: None,
                })
                .into_iter()
                .collect(),
            ..Server::published(Millis::from_secs(60), Some(CAP))
        },
        shoppers: Shoppers {
            client: Client::Raw(None),
            ..Shoppers::default()
        },
        ..Scene::default()
    }
}

fn figures(nodes: usize, dies: bool, ran: &Ran) -> Figures {
    let refused = |from: u64, until: u64| {
        let inside =
            |seen: &simulation::scene::Seen| (from * 1_000..until * 1_000).contains(&seen.at.get());
        let cap = |seen: &simulation::scene::Seen| seen.refused(ProblemCode::PgCapReached);
        let all = ran.count(inside);
        100.0 * share(ran.count(|seen| inside(seen) && cap(seen)), all)
    };
    let mut figures = vec![("mostInFlight", f64::from(ran.slots_peak))];
    let end = u64::from(SECONDS);
    if !dies {
        figures.push(("refusedPercent", refused(5, end)));
        return figures;
    }
    let old = u64::from(CAP) * (nodes as u64 - 1) / nodes as u64;
    let death = Millis::from_secs(DEATH_S);
    // The dead node's slots are not sampled any more.
    let back = ran
        .slots
        .iter()
        .find(|(at, taken)| *at > death.plus(Millis::from_secs(1)) && u64::from(*taken) > old);
    let back = back.map_or(f64::INFINITY, |(at, _)| {
        at.less(death).get() as f64 / 1_000.0
    });
    figures.extend([
        ("refusedPercent", refused(5, DEATH_S)),
        (
            "refusedWhileDeadPercent",
            refused(DEATH_S + 5, DEATH_S + LEASE_S),
        ),
        ("refusedAfterPercent", refused(DEATH_S + LEASE_S + 10, end)),
        ("backSeconds", back),
    ]);
    figures
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let all: Vec<_> = cases()
        .map(|(nodes, dies)| Case::new(name(nodes, dies), scene(nodes, dies)))
        .collect();
    let table = measure(size, &all, &mut findings, |case, ran| {
        let dies = !case.scene.server.deaths.is_empty();
        figures(case.scene.server.nodes, dies, ran)
    });
    for (nodes, dies) in cases() {
        let case = name(nodes, dies);
        let mut judge = |id: &str, figure| {
            table.judge(&mut findings, &format!("{id} {case}"), &case, figure);
        };
        judge("most", "mostInFlight");
        judge("before", "refusedPercent");
        if dies {
            judge("dead", "refusedWhileDeadPercent");
            judge("after", "refusedAfterPercent");
            judge("back", "backSeconds");
        }
    }
    let across = |dies, figure| {
        let of = |nodes| (f64::from(nodes), table.median(&name(nodes, dies), figure));
        let nodes = NODES.into_iter().skip(usize::from(dies));
        nodes.map(of).collect::<Vec<_>>()
    };
    findings.plots.push(Plot {
        title: "Dividing a cap costs what small groups of slots lose, and a dead node its share for one lease".to_owned(),
        across: "nodes".to_owned(),
        up: "refused by the cap, %".to_owned(),
        log_across: true,
        lines: vec![
            line("Erlang's formula", Mark::Curve, NODES.map(|nodes| (f64::from(nodes), formula(nodes, nodes))).to_vec()),
            line("all alive", Mark::Dots, across(false, "refusedPercent")),
            line("one dead, share kept", Mark::Dots, across(true, "refusedWhileDeadPercent")),
            line("one dead, share back", Mark::Dots, across(true, "refusedAfterPercent")),
        ],
    });
    let of = |nodes, dies, figure| table.median(&name(nodes, dies), figure);
    findings.answer = Some(format!(
        "One node refuses {:.1} %, eight with a share of 5 each {:.1} % at the same demand (formula {:.1} and {:.1}). When one of two dies, the other refuses {:.1} % until the share is back after {:.0} s, then {:.1} %. Never were more than {:.0} in flight.",
        of(1, false, "refusedPercent"),
        of(8, false, "refusedPercent"),
        formula(1, 1),
        formula(8, 8),
        of(2, true, "refusedWhileDeadPercent"),
        of(2, true, "backSeconds"),
        of(2, true, "refusedAfterPercent"),
        cases()
            .map(|(nodes, dies)| of(nodes, dies, "mostInFlight"))
            .fold(0.0, f64::max),
    ));
    findings
}
