//! Question 4: lost answers and a full cap at once. Which resend policy fails least?

use payment::resend::Policy;
use payment::time::Millis;
use payment::wire::ProblemCode;
use simulation::scene::{Delay, Load, Pg, Ran, Scene, Server, When};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::stats::share;
use crate::verdict::Rule;
use crate::virtual_time::slot_model::{Served, SlotModel};
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
/// The cap, and the reserve that the budget leaves free.
const CAP: u32 = 40;
const RESERVE: u32 = 4;
const POLICIES: [(&str, Policy); 3] = [
    ("off", Policy::Off),
    ("always", Policy::Always),
    ("budget", Policy::Budget),
];

fn name(rate: u32, loss: u32, policy: &str) -> String {
    format!("{rate}/s, {loss} % lost, {policy}")
}

/// Near the cap: the demand is within a fifth of it, so that the number of free slots goes up and down around the reserve.
fn is_near(rate: u32, loss: u32) -> bool {
    let demand = f64::from(rate) * 2.0 * (1.0 - f64::from(loss) / 100.0);
    (0.8..=1.2).contains(&(demand / f64::from(CAP)))
}

/// Not paid, %, by the slot model: a lost call leaves its slot at once and brings nothing, one that finds no slot is
/// refused, and a resend needs as many free slots as its policy says. `1 − cap ÷ demand` would leave out that calls are
/// lost one by one: near the cap slots are full at one time and free at another.
fn reckoned(rate: u32, loss: u32, policy: Policy, seconds: u32) -> f64 {
    let model = SlotModel {
        cap: CAP,
        phases: [(rate, seconds), (0, 0)],
        kept_out: 0,
        hold_ms: 2_000,
        answered: true,
        lost: f64::from(loss) / 100.0,
        resend_needs: match policy {
            Policy::Off => None,
            Policy::Always => Some(1),
            Policy::Budget => Some(RESERVE),
        },
    };
    model.median(Served::unanswered_percent)
}

fn plan(size: Size) -> Plan {
    let mut criteria = Vec::new();
    for loss in LOSSES {
        for rate in RATES {
            let [off, always, budget] = POLICIES.map(|(policy, _)| name(rate, loss, policy));
            for (case, policy) in [(&off, Policy::Off), (&budget, Policy::Budget)] {
                let rule = Rule::Within {
                    target: reckoned(rate, loss, policy, size.pick(60, 20)),
                    tolerance: 2.5,
                };
                let says = format!("{case}: not paid, %");
                criteria.push(
                    Criterion::new(case, &format!("failed {case}"), &says, rule)
                        .published("not published (a slot model)"),
                );
            }
            let says = format!(
                "{rate}/s, {loss} % lost: not paid, budget less the better of off and always, points"
            );
            let rule = Rule::AtMost { most: 1.5 };
            let worse = Criterion::new(&budget, &format!("worse-{rate}-{loss}"), &says, rule)
                .and(&off)
                .and(&always);
            criteria.push(if is_near(rate, loss) {
                worse.finding().because("The demand is near the cap here, so that fewer slots than the reserve are free for much of the time: the budget then resends nothing, also when no first send comes to take what it left free. That is the price of the reserve, which above the cap it earns back.")
            } else {
                worse
            });
        }
    }
    Plan {
        question: "When answers are lost and the cap is full at once, does the budget fail no more than the better of resending never and always?".to_owned(),
        setup: vec![
            format!("10 to 40 pages/s evenly spaced for {} s; gateway 2 s, cap 40 (full at 20/s), reserve 4; 5 or 15 % of the calls are reset at once, before anything", size.pick(60, 20)),
            "expected: by a slot model (even arrivals, calls lost one by one, a hold of 2 s, one resend as the policy allows); the gap between budget and the better of the two is a finding where the demand is within a fifth of the cap".to_owned(),
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
            ..Server::published(Millis::from_secs(5), Some(CAP))
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
            for case in [&off, &budget] {
                let id = format!("failed {case}");
                table.judge(&mut findings, &id, case, "notPaidPercent");
            }
            let of = |case: &str| table.of(case, "notPaidPercent");
            let all = of(&budget).iter().zip(of(&off).iter().zip(of(&always)));
            let worse: Vec<_> = all
                .map(|(budget, (off, always))| budget - off.min(*always))
                .collect();
            note(&mut findings, &format!("worse-{rate}-{loss}"), &worse);
        }
        findings.plots.push(plot(&table, loss, size));
    }
    findings.answer = Some(answer(&table, &findings));
    findings
}

fn answer(table: &Table, findings: &Findings) -> String {
    let failed = |rate, policy: &str| table.median(&name(rate, 15, policy), "notPaidPercent");
    let worst = |near: bool| {
        let all = LOSSES
            .into_iter()
            .flat_map(|loss| RATES.map(|rate| (rate, loss)));
        let these = all.filter(|(rate, loss)| is_near(*rate, *loss) == near);
        these
            .filter_map(|(rate, loss)| findings.value(&format!("worse-{rate}-{loss}")))
            .fold(f64::NEG_INFINITY, f64::max)
    };
    format!(
        "At 15 % lost the budget fails {:.1} % at half the cap (off {:.1}, always {:.1}) and {:.1} % at one and a half (off {:.1}, always {:.1}). Away from the cap it is at most {:.1} points worse than the better of the two; where the demand is within a fifth of the cap, {:.1}: there the reserve keeps slots free that no first send takes.",
        failed(10, "budget"),
        failed(10, "off"),
        failed(10, "always"),
        failed(30, "budget"),
        failed(30, "off"),
        failed(30, "always"),
        worst(false),
        worst(true),
    )
}

fn plot(table: &Table, loss: u32, size: Size) -> Plot {
    let of = |policy: &str| {
        let points = RATES.map(|rate| {
            let failed = table.median(&name(rate, loss, policy), "notPaidPercent");
            (f64::from(rate) / 20.0, failed)
        });
        points.to_vec()
    };
    let curve = |policy| {
        let of = |rate| reckoned(rate, loss, policy, size.pick(60, 20));
        RATES
            .map(|rate| (f64::from(rate) / 20.0, of(rate)))
            .to_vec()
    };
    Plot {
        title: format!("With {loss} % lost the budget stays near the better of never and always"),
        across: "demand, of what the cap serves".to_owned(),
        up: "not paid, %".to_owned(),
        log_across: false,
        lines: vec![
            line("slot model, never", Mark::Curve, curve(Policy::Off)),
            line("slot model, budget", Mark::Curve, curve(Policy::Budget)),
            line("never", Mark::Dots, of("off")),
            line("always", Mark::Dots, of("always")),
            line("budget", Mark::Dots, of("budget")),
        ],
    }
}
