//! Question 4: lost answers and a full cap at once. Which resend policy fails least?

use payment::resend::Policy;
use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Delay, Load, Pg, Ran, Scene, Server, When};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::{rounded, share};
use crate::verdict::Rule;
use crate::virtual_time::{
    Case, Figures, Size, Table, Virtual, line, measure, note, spaced, valid_only_if,
};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "loss-and-saturation",
    plan,
    run,
};

/// Shoppers a second: 40 slots of 2 s are full at 20/s.
const RATES: [u32; 6] = [10, 16, 20, 24, 30, 40];
/// Lost before the booking, %.
const LOSSES: [u32; 2] = [5, 15];
const POLICIES: [(&str, Policy); 3] = [
    ("off", Policy::Off),
    ("always", Policy::Always),
    ("budget", Policy::Budget),
];

fn name(rate: u32, loss: u32, policy: &str) -> String {
    format!("{rate}/s, {loss} % lost, {policy}")
}

/// Not paid without resends, %: what the cap refuses of a demand that lost calls do not add to, and the lost ones of the
/// rest.
fn formula(rate: u32, loss: u32) -> f64 {
    let loss = f64::from(loss) / 100.0;
    let demand = f64::from(rate) * 2.0 * (1.0 - loss);
    // Of those that are sent and not lost 40 slots hold so many; lost calls leave theirs at once.
    let refused = (1.0 - 40.0 / demand).max(0.0);
    100.0 * (refused + (1.0 - refused) * loss)
}

fn plan(size: Size) -> Plan {
    let mut criteria = Vec::new();
    for loss in LOSSES {
        for rate in RATES {
            let [off, always, budget] = POLICIES.map(|(policy, _)| name(rate, loss, policy));
            let rule = Rule::Within {
                target: rounded(formula(rate, loss)),
                tolerance: 2.5,
            };
            let says = format!("{off}: not paid, %");
            criteria.push(
                Criterion::new(&off, &format!("failed {off}"), &says, rule)
                    .published("not published (formula)"),
            );
            let says = format!(
                "{rate}/s, {loss} % lost: not paid, budget less the better of off and always, points"
            );
            let rule = Rule::AtMost { most: 1.5 };
            criteria.push(
                Criterion::new(&budget, &format!("worse-{rate}-{loss}"), &says, rule)
                    .and(&off)
                    .and(&always),
            );
        }
    }
    Plan {
        question: "When answers are lost and the cap is full at once, does the budget fail no more than the better of resending never and always?".to_owned(),
        setup: vec![
            format!("10 to 40 pages/s evenly spaced for {} s; gateway 2 s, cap 40 (full at 20/s), reserve 4; 5 or 15 % of the calls are reset at once, before anything", size.pick(60, 20)),
            "not paid: counted when nothing is unknown any more (the confirm window is 5 s)".to_owned(),
            spaced(size),
        ],
        valid_only_if: valid_only_if(),
        criteria,
    }
}

fn scene(rate: u32, loss: u32, resend: Policy, seconds: u32) -> Scene {
    Scene {
        load: Load {
            rate,
            seconds,
            ..Load::default()
        },
        pg: Pg {
            delay: Delay::Fixed(2_000),
            loss: Some((f64::from(loss) / 100.0, When::Before)),
            confirm_window: Millis::from_secs(5),
            ..Pg::default()
        },
        server: Server {
            resend,
            ..Server::published(Millis::from_secs(5), Some(40))
        },
        ..Scene::default()
    }
}

fn figures(ran: &Ran) -> Figures {
    let all = ran.seen.len() as u64;
    let percent = |part| 100.0 * share(part, all);
    vec![
        ("notPaidPercent", percent(all - ran.sold())),
        (
            "refusedPercent",
            percent(ran.refused(ProblemCode::PgCapReached)),
        ),
        ("resent", ran.counter("pg_resend_total", "sent") as f64),
        (
            "skipped",
            ran.counter("pg_resend_total", "no_free_slots") as f64,
        ),
    ]
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut cases = Vec::new();
    for loss in LOSSES {
        for rate in RATES {
            for (policy, resend) in POLICIES {
                let scene = scene(rate, loss, resend, size.pick(60, 20));
                cases.push(Case::new(name(rate, loss, policy), scene));
            }
        }
    }
    let table = measure(size, &cases, &mut findings, |_, ran| figures(ran));
    for loss in LOSSES {
        for rate in RATES {
            let [off, always, budget] = POLICIES.map(|(policy, _)| name(rate, loss, policy));
            table.judge(
                &mut findings,
                &format!("failed {off}"),
                &off,
                "notPaidPercent",
            );
            let of = |case: &str| table.of(case, "notPaidPercent");
            let all = of(&budget).iter().zip(of(&off).iter().zip(of(&always)));
            let worse: Vec<_> = all
                .map(|(budget, (off, always))| budget - off.min(*always))
                .collect();
            note(&mut findings, &format!("worse-{rate}-{loss}"), &worse);
        }
        findings.plots.push(plot(&table, loss));
    }
    let failed = |rate, policy: &str| table.median(&name(rate, 15, policy), "notPaidPercent");
    let worst = findings
        .measured
        .iter()
        .filter(|(id, _)| id.starts_with("worse-"));
    let worst = worst
        .map(|(_, worse)| *worse)
        .fold(f64::NEG_INFINITY, f64::max);
    findings.answer = Some(format!(
        "At 15 % lost the budget fails {:.1} % at half the cap (off {:.1}, always {:.1}) and {:.1} % at one and a half (off {:.1}, always {:.1}); over all conditions it is at most {worst:.1} points worse than the better of the two.",
        failed(10, "budget"),
        failed(10, "off"),
        failed(10, "always"),
        failed(30, "budget"),
        failed(30, "off"),
        failed(30, "always"),
    ));
    findings
}

fn plot(table: &Table, loss: u32) -> Plot {
    let of = |policy: &str| {
        let points = RATES.map(|rate| {
            let failed = table.median(&name(rate, loss, policy), "notPaidPercent");
            (f64::from(rate) / 20.0, failed)
        });
        points.to_vec()
    };
    let curve = RATES.map(|rate| (f64::from(rate) / 20.0, formula(rate, loss)));
    Plot {
        title: format!("With {loss} % lost the budget stays near the better of never and always"),
        across: "demand, of what the cap serves".to_owned(),
        up: "not paid, %".to_owned(),
        log_across: false,
        lines: vec![
            line("formula, never", Mark::Curve, curve.to_vec()),
            line("never", Mark::Dots, of("off")),
            line("always", Mark::Dots, of("always")),
            line("budget", Mark::Dots, of("budget")),
        ],
    }
}
