//! Question 1: the share of departed shoppers swept from 0 to 60 %.

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::verdict::Rule;
use crate::virtual_time::published::departed::{figures, scene};
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

/// Refused by the cap, % of those who stayed, by the formula: without the check all demand counts, with it what stayed.
fn refused(share: u32, check: bool) -> f64 {
    let left = if check { f64::from(share) / 100.0 } else { 0.0 };
    let demand = DEMAND * (1.0 - left);
    (100.0 * (1.0 - CAP / demand)).max(0.0)
}

fn name(share: u32, check: bool) -> String {
    format!("{share} %, check {}", if check { "on" } else { "off" })
}

fn plan(size: Size) -> Plan {
    let mut criteria = Vec::new();
    for share in SHARES {
        for check in [false, true] {
            let case = name(share, check);
            // The warm-up asks for half the cap, and is not refused: its 150 of all arrivals dilute the formula.
            let all = f64::from(150 + 30 * size.pick(60, 20));
            let diluted = refused(share, check) * (1.0 - 150.0 / all);
            let rule = Rule::Within {
                target: crate::stats::rounded(diluted),
                tolerance: 3.0,
            };
            let says = format!("{case}: refused by the cap, % of those who stayed");
            criteria.push(
                Criterion::new(&case, &format!("refused {case}"), &says, rule)
                    .published("not published (1 − cap ÷ demand)"),
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
            "formula: with the check demand falls to 60 × (1 − share), so that the cap's 40 suffice from a third on".to_owned(),
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
    findings.plots.push(plot(&table));
    let refused =
        |share, check| 100.0 - table.median(&name(share, check), "remainingReachedPercent");
    let spared = SHARES.into_iter().find(|share| refused(*share, true) < 0.5);
    findings.answer = Some(format!(
        "With the check the cap refuses {:.1} % of those who stay at 0 % departed, {:.1} % at 20 %, and {}; without it {:.1} % whatever the share: the slots of those who left are the slots of those who stay.",
        refused(0, true),
        refused(20, true),
        spared.map_or_else(
            || "never none".to_owned(),
            |share| format!("none from {share} % on (a third by the formula)")
        ),
        refused(60, false),
    ));
    findings
}

fn plot(table: &Table) -> Plot {
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
    let formula = SHARES
        .into_iter()
        .map(|share| (f64::from(share), refused(share, true)))
        .collect();
    Plot {
        title: "With the check, refusals of those who stay vanish at a third of departed shoppers"
            .to_owned(),
        across: "departed shoppers, %".to_owned(),
        up: "refused by the cap of those who stayed, %".to_owned(),
        log_across: false,
        lines: vec![
            line("formula, check on", Mark::Curve, formula),
            line("check on", Mark::Dots, measured(true)),
            line("check off", Mark::Dots, measured(false)),
        ],
    }
}
