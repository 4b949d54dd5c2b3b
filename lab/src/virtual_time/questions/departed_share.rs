//! Question 1: the share of departed shoppers swept from 0 to 60 %.

use simulation::scene::WARM_UP;

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::verdict::Rule;
use crate::virtual_time::published::departed::{figures, scene};
use crate::virtual_time::slot_model::{Served, SlotModel};
use crate::virtual_time::{Case, Size, Table, Virtual, line, measure, note, spaced, valid_only_if};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "departed-share",
    plan,
    run,
};

/// Departed shoppers of a hundred.
const SHARES: [u32; 7] = [0, 10, 20, 30, 40, 50, 60];
/// Cap, rate and hold of A1: the cap refuses 1 − 40 ÷ (30 × 2) = a third of what is sent to it.
const CAP: f64 = 40.0;
const DEMAND: f64 = 30.0 * 2.0;

/// Refused by the cap, % of those who stayed, by a fluid's formula: without the check all demand counts, with it what
/// stayed. It leaves resends out.
fn fluid(share: u32, check: bool) -> f64 {
    let left = if check { f64::from(share) / 100.0 } else { 0.0 };
    let demand = DEMAND * (1.0 - left);
    (100.0 * (1.0 - CAP / demand)).max(0.0)
}

/// The same by the slot model. Every call here ends at the timeout, and is sent once more while four slots are free: the
/// slots that the check spares go to resends first, up to the reserve, and what stays free is for first sends that come
/// close together.
fn refused(share: u32, check: bool, seconds: u32) -> f64 {
    let model = SlotModel {
        cap: CAP as u32,
        phases: [WARM_UP, (30, seconds)],
        kept_out: if check { share / 10 } else { 0 },
        hold_ms: 2_000,
        answered: false,
        lost: 0.0,
        resend_needs: Some(4),
    };
    model.median(Served::refused_percent)
}

fn name(share: u32, check: bool) -> String {
    format!("{share} %, check {}", if check { "on" } else { "off" })
}

fn plan(size: Size) -> Plan {
    let mut criteria = Vec::new();
    for share in SHARES {
        for check in [false, true] {
            let case = name(share, check);
            let rule = Rule::Within {
                target: refused(share, check, size.pick(60, 20)),
                tolerance: 3.0,
            };
            let says = format!("{case}: refused by the cap, % of those who stayed");
            criteria.push(
                Criterion::new(&case, &format!("refused {case}"), &says, rule)
                    .published("not published (a slot model)"),
            );
        }
        let case = name(share, true);
        let says = format!("{case}: departed who were sent");
        criteria.push(Criterion::new(
            &case,
            &format!("sent {case}"),
            &says,
            Rule::exactly(0.0),
        ));
    }
    Plan {
        question: "From which share of departed shoppers on does the deadline check spare the others every refusal?".to_owned(),
        setup: vec![
            "the conditions of `departed` (30/s, gateway 5 s, PG timeout 2 s, cap 40), 0 to 60 % of the shoppers departed".to_owned(),
            "formula: with the check demand falls to 60 × (1 − share), so that the cap's 40 suffice from a third on; it leaves out resends, and chance".to_owned(),
            "expected: by a slot model that has both (even arrivals, of every ten so many departed in any order, a hold of 2 s, one resend while four of 40 slots are free), warm-up counted".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria,
    }
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let all: Vec<_> = SHARES
        .into_iter()
        .flat_map(|share| [(share, false), (share, true)])
        .collect();
    let cases: Vec<_> = all
        .iter()
        .map(|(share, check)| {
            let scene = scene(f64::from(*share) / 100.0, *check, size.pick(60, 20));
            Case::new(name(*share, *check), scene)
        })
        .collect();
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for (share, check) in all {
        let case = name(share, check);
        let reached = table.of(&case, "remainingReachedPercent");
        let refused: Vec<_> = reached.iter().map(|reached| 100.0 - reached).collect();
        note(&mut findings, &format!("refused {case}"), &refused);
        if check {
            let late = table.of(&case, "lateLessDeparted");
            let sent: Vec<_> = late.iter().map(|less| -less).collect();
            note(&mut findings, &format!("sent {case}"), &sent);
        }
    }
    findings.plots.push(plot(&table, size));
    findings.answer = Some(answer(&table, size));
    findings
}

fn answer(table: &Table, size: Size) -> String {
    let refused_by =
        |share, check| 100.0 - table.median(&name(share, check), "remainingReachedPercent");
    let spared = SHARES
        .into_iter()
        .find(|share| refused_by(*share, true) < 0.5);
    let seconds = size.pick(60, 20);
    format!(
        "With the check the cap refuses {:.1} % of those who stay at 0 % departed, {:.1} % at 20 %, {:.1} % at 40 %, and {}; without it {:.1} % whatever the share: the slots of those who left are the slots of those who stay. A fluid's formula has none refused from a third on. It leaves out that every call here times out and is sent once more while four slots are free: resends take what the check spares up to that reserve, and first sends that come close together find less. A slot model with both expects {:.1} % at 30 % departed and {:.1} % at 40 %; measured are {:.1} and {:.1} %.",
        refused_by(0, true),
        refused_by(20, true),
        refused_by(40, true),
        spared.map_or_else(
            || "never none".to_owned(),
            |share| format!("less than half a percent from {share} % on")
        ),
        refused_by(60, false),
        refused(30, true, seconds),
        refused(40, true, seconds),
        refused_by(30, true),
        refused_by(40, true),
    )
}

fn plot(table: &Table, size: Size) -> Plot {
    let measured = |check| {
        let cases: Vec<_> = SHARES
            .into_iter()
            .map(|share| (f64::from(share), name(share, check)))
            .collect();
        let points = table.points(
            cases.iter().map(|(at, case)| (*at, case.as_str())),
            "remainingReachedPercent",
        );
        points
            .into_iter()
            .map(|(at, up)| (at, 100.0 - up))
            .collect()
    };
    let curve = |of: &dyn Fn(u32) -> f64| {
        let points = SHARES.map(|share| (f64::from(share), of(share)));
        points.to_vec()
    };
    let seconds = size.pick(60, 20);
    Plot {
        title: "With the check, the more have left the fewer of those who stay are refused"
            .to_owned(),
        across: "departed shoppers, %".to_owned(),
        up: "refused by the cap of those who stayed, %".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "fluid formula, check on",
                Mark::Curve,
                curve(&|share| fluid(share, true)),
            ),
            line(
                "slot model with resends, check on",
                Mark::Curve,
                curve(&|share| refused(share, true, seconds)),
            ),
            line("check on", Mark::Dots, measured(true)),
            line("check off", Mark::Dots, measured(false)),
        ],
    }
}
