//! Question 5: the reserve swept from 0 to 12; a reserve against a ratio of resends, and both.

use payment::resend::Policy;
use simulation::scene::Scene;

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::verdict::Rule;
use crate::virtual_time::published::resend_budget::{figures, scene};
use crate::virtual_time::{Case, Size, Table, Virtual, line, measure, note, spaced, valid_only_if};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "reserve-sweep",
    plan,
    run,
};

/// Slots that a resend must find free; 0 is no reserve at all.
const RESERVES: [u32; 7] = [0, 1, 2, 4, 6, 8, 12];
/// Resends per thousand confirms of the last ten seconds.
const RATIOS: [Option<u32>; 3] = [None, Some(100), Some(200)];
/// What the published budget allows, points.
const NEAR: f64 = 1.5;

fn name(slow: bool, reserve: u32, ratio: Option<u32>) -> String {
    let illness = if slow { "slow" } else { "lossy" };
    match ratio {
        None => format!("{illness}, reserve {reserve}"),
        Some(ratio) => format!("{illness}, reserve {reserve}, ratio {} %", ratio / 10),
    }
}

fn off(slow: bool) -> String {
    format!("{}, no resend", if slow { "slow" } else { "lossy" })
}

fn plan(size: Size) -> Plan {
    let above = |id: &str, case: &str, says: &str, rule| {
        Criterion::new(case, id, &format!("{case}: {says}"), rule)
            .and(&off(case.starts_with("slow")))
    };
    let harm = "refused beyond no resend, points";
    let near = Rule::Within {
        target: 0.0,
        tolerance: NEAR,
    };
    let mut criteria = vec![
        above(
            "harm-0",
            &name(true, 0, None),
            harm,
            Rule::Above { bound: 10.0 },
        )
        .published("about 24 points (one resend, always)"),
        above("harm-4", &name(true, 4, None), harm, near).published("0.16 points (reserve 4)"),
    ];
    for ratio in RATIOS.into_iter().flatten() {
        // A resend of a slow gateway holds one more slot for a timeout: so many per hundred more demand, of 60.
        let case = name(true, 0, Some(ratio));
        let rule = Rule::Above { bound: NEAR };
        criteria.push(above(&format!("harm-ratio-{ratio}"), &case, harm, rule).finding());
        let both = name(true, 4, Some(ratio));
        criteria.push(above(&format!("harm-both-{ratio}"), &both, harm, near));
        let lossy = name(false, 4, Some(ratio));
        criteria.push(
            Criterion::new(
                &lossy,
                &format!("lossy-both-{ratio}"),
                &format!("{lossy}: not paid, %"),
                Rule::Between {
                    least: 0.0,
                    most: 15.0,
                },
            )
            .finding(),
        );
    }
    for reserve in RESERVES {
        let case = name(false, reserve, None);
        let rule = Rule::Within {
            target: 2.25,
            tolerance: NEAR,
        };
        criteria.push(
            Criterion::new(
                &case,
                &format!("lossy-{reserve}"),
                &format!("{case}: not paid, %"),
                rule,
            )
            .published("2.82 % (reserve 4; 0.15² = 2.25 % by chance)"),
        );
    }
    Plan {
        question: "How large must the reserve be, and is it better than a ratio of resends?".to_owned(),
        setup: vec![
            format!("the slow and the lossy gateway of `resend-budget` (drops), {} s of load; reserve 0 to 12 of 40, without a ratio and with 10 or 20 % of the confirms of the last ten seconds", size.pick(60, 30)),
            "harm: refused by the cap beyond no resend, on a slow gateway; gain: not paid on a lossy one (no resend: about 14 %)".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria,
    }
}

fn variant(slow: bool, reserve: u32, ratio: Option<u32>, seconds: u32) -> Scene {
    let mut scene = scene(slow, false, Policy::Budget);
    scene.load.seconds = seconds;
    scene.server.times.reserve = reserve;
    scene.server.resend_per_mille = ratio;
    scene
}

fn cases(size: Size) -> Vec<Case> {
    let seconds = size.pick(60, 30);
    let mut cases = Vec::new();
    for slow in [true, false] {
        let mut never = scene(slow, false, Policy::Off);
        never.load.seconds = seconds;
        cases.push(Case::new(off(slow), never));
        for reserve in RESERVES {
            for ratio in RATIOS {
                let scene = variant(slow, reserve, ratio, seconds);
                cases.push(Case::new(name(slow, reserve, ratio), scene));
            }
        }
    }
    cases
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let cases = cases(size);
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    let harm = |reserve, ratio| {
        let (case, never) = (name(true, reserve, ratio), off(true));
        table.pairs(
            (&case, "refusedPercent"),
            (&never, "refusedPercent"),
            |one, never| one - never,
        )
    };
    note(&mut findings, "harm-0", &harm(0, None));
    note(&mut findings, "harm-4", &harm(4, None));
    for ratio in RATIOS.into_iter().flatten() {
        note(
            &mut findings,
            &format!("harm-ratio-{ratio}"),
            &harm(0, Some(ratio)),
        );
        note(
            &mut findings,
            &format!("harm-both-{ratio}"),
            &harm(4, Some(ratio)),
        );
        let lossy = name(false, 4, Some(ratio));
        table.judge(
            &mut findings,
            &format!("lossy-both-{ratio}"),
            &lossy,
            "notPaidPercent",
        );
    }
    for reserve in RESERVES {
        let case = name(false, reserve, None);
        table.judge(
            &mut findings,
            &format!("lossy-{reserve}"),
            &case,
            "notPaidPercent",
        );
    }
    findings.plots = vec![
        plot(
            &table,
            true,
            "Any reserve takes the harm away, a ratio only part of it",
            "slow gateway: refused, %",
        ),
        plot(
            &table,
            false,
            "A reserve costs nothing of the gain; a ratio of 10 % does",
            "lossy gateway: not paid, %",
        ),
    ];
    let enough = RESERVES.into_iter().find(|reserve| {
        let harm = crate::virtual_time::spread(&harm(*reserve, None));
        harm.is_some_and(|harm| harm.median <= NEAR)
    });
    findings.answer = Some(answer(&findings, enough));
    findings
}

/// The answer in words; `enough` is the smallest reserve that takes the harm away.
fn answer(findings: &Findings, enough: Option<u32>) -> String {
    let value = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    format!(
        "Without a reserve resends cost a slow gateway {:.1} points of refusals; from {} on they cost at most {NEAR}. A ratio of 10 % alone still costs {:.1} points, of 20 % {:.1}, and takes from the gain on a lossy gateway: {:.1} % not paid with 10 %, {:.1} % with 20 %, {:.1} % with the reserve of 4 alone.",
        value("harm-0"),
        enough.map_or_else(
            || "no reserve".to_owned(),
            |reserve| format!("a reserve of {reserve}")
        ),
        value("harm-ratio-100"),
        value("harm-ratio-200"),
        value("lossy-both-100"),
        value("lossy-both-200"),
        value("lossy-4"),
    )
}

fn plot(table: &Table, slow: bool, title: &str, up: &str) -> Plot {
    let figure = if slow {
        "refusedPercent"
    } else {
        "notPaidPercent"
    };
    let of = |ratio| {
        let points = RESERVES.map(|reserve| {
            (
                f64::from(reserve),
                table.median(&name(slow, reserve, ratio), figure),
            )
        });
        points.to_vec()
    };
    let never = table.median(&off(slow), figure);
    Plot {
        title: title.to_owned(),
        across: "reserve, slots of 40".to_owned(),
        up: up.to_owned(),
        log_across: false,
        lines: vec![
            line("no resend", Mark::Curve, vec![(0.0, never), (12.0, never)]),
            line("no ratio", Mark::Dots, of(None)),
            line("ratio 10 %", Mark::Dots, of(Some(100))),
            line("ratio 20 %", Mark::Dots, of(Some(200))),
        ],
    }
}
