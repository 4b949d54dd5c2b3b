//! The resend budget (measurements B): what a second send costs a slow gateway and gives a lossy one.

use std::time::Duration;

use futures::FutureExt as _;
use payment::wire::ProblemCode;
use serde_json::{Value, json};

use super::{Experiment, answers, lines, pages, pictures, refusals, refused};
use crate::harness::regret;
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, soon};
use crate::plan::{Condition, Criterion, Findings, Mark, Plan};
use crate::shopper::Seen;
use crate::stats::{rounded, share};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "resend-budget",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Confirms a second, and for how long (measurements B).
const RATE: u32 = 30;
const SECONDS: u32 = 60;
/// How often calls are lost (measurements B).
const LOST: f64 = 0.15;
/// How far off a published share is still the same, points (measurements B).
const TOLERANCE: f64 = 1.5;

/// How the gateway is ill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Illness {
    /// It takes 5 s, and we give it 2 s.
    Slow,
    /// It resets 15 % of the calls at once.
    Lossy,
}

/// One of the twelve.
#[derive(Debug, Clone, Copy)]
struct Case {
    illness: Illness,
    resend: &'static str,
    goes_on: bool,
}

impl Case {
    fn name(self) -> String {
        let illness = match self.illness {
            Illness::Slow => "slow",
            Illness::Lossy => "lossy",
        };
        let after = if self.goes_on { "goes-on" } else { "drops" };
        format!("{illness}/{}/{after}", self.resend)
    }

    fn scenario(self) -> Value {
        match self.illness {
            Illness::Slow => json!({"delayMs": 5_000, "continueAfterDisconnect": self.goes_on}),
            Illness::Lossy => json!({"loss": {"ratio": LOST, "when": "before"},
                "continueAfterDisconnect": self.goes_on, "seed": 1}),
        }
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let illnesses = [Illness::Slow, Illness::Lossy].into_iter();
    illnesses.flat_map(|illness| {
        [false, true].into_iter().flat_map(move |goes_on| {
            ["off", "always", "budget"]
                .into_iter()
                .map(move |resend| Case {
                    illness,
                    resend,
                    goes_on,
                })
        })
    })
}

/// How long the load is on.
fn pace(lab: &Lab) -> Pace {
    Pace::warmed(RATE, lab.pick(SECONDS, 6), lab.quick)
}

const SETUP: [&str; 6] = [
    "pages at their shipped times, cap 40, reserve 4, PG timeout 2 s, JARI_CIRCUIT=off, JARI_RESEND as named",
    "slow: every confirm takes 5 s; lossy: 15 % of the confirms are reset at once, before anything",
    "drops / goes-on: what the gateway does with work whose caller hung up (continueAfterDisconnect)",
    "failed on a lossy gateway: attempts that ended not paid, counted when nothing is unknown any more",
    "failed on a slow gateway: refused by the cap. In the published runs the timed-out payments were found paid later, and all failures were refusals; a gateway that drops its work books none of them",
    "JARI_PG_CONFIRM_WINDOW_MS=5000; the fake's own window is shortened only when the arrivals are over, since it counts from the authentication, which comes before the load",
];

fn plan(lab: &Lab) -> Plan {
    let arrivals = format!("confirms evenly spaced, {} (all counted)", pace(lab).says());
    let within = |target| Rule::Within {
        target,
        tolerance: TOLERANCE,
    };
    let near = |tolerance| Rule::Within {
        target: 0.0,
        tolerance,
    };
    let failed = |name: &str, rule, published: &str| {
        let says = format!("{name}: failed, %");
        Criterion::new(name, &format!("failed {name}"), &says, rule).published(published)
    };
    let skipped = |name: &str, rule, published: &str| {
        let says = format!("{name}: resends skipped for want of free slots");
        Criterion::new(name, &format!("skipped {name}"), &says, rule).published(published)
    };
    let always = Rule::Between {
        least: 47.0,
        most: 57.0,
    };
    let apart = |id: &str, (one, other): (&str, &str), rule, published: &str| {
        let says = format!("failed: {one} less {other}, points");
        Criterion::new(one, id, &says, rule)
            .and(other)
            .published(published)
    };
    let says = "PG calls on a lossy gateway: one resend over none, %";
    let more_calls = Criterion::new("lossy/always/drops", "calls-lossy", says, within(14.4))
        .and("lossy/off/drops")
        .published("14.4 % (first run)")
        .finding();
    let goes_on = ("slow/always/goes-on", "slow/off/goes-on");
    let names: Vec<_> = cases().map(Case::name).collect();
    let told = regret::criterion(names.iter().map(String::as_str));
    Plan {
        question: "Does the resend budget keep the gain on a lossy gateway without the harm on a slow one?".to_owned(),
        setup: [vec![arrivals], lines(&SETUP)].concat(),
        valid_only_if: guard(&[
            "payments became unknown where nothing is resent",
            "resends were sent where they always are",
            "no confirm is refused for anything but the cap",
        ]),
        criteria: vec![
            failed("slow/off/drops", within(31.6), "31.56 %"),
            failed("slow/always/drops", always, "55.23 % (48 % for evenly spaced arrivals by a slot model)"),
            apart("budget-slow", ("slow/budget/drops", "slow/off/drops"), near(1.0), "0.16"),
            skipped("slow/budget/drops", Rule::Above { bound: 0.0 }, "1,176"),
            failed("lossy/off/drops", within(14.3), "14.29 %"),
            failed("lossy/always/drops", within(1.9), "1.90 %"),
            failed("lossy/budget/drops", within(2.8), "2.82 %"),
            skipped("lossy/budget/drops", Rule::exactly(0.0), "0"),
            more_calls,
            apart("always-slow-goes-on", goes_on, near(3.0), "not published").finding(),
            failed("lossy/off/goes-on", within(14.3), "not published").finding(),
            failed("lossy/always/goes-on", within(1.9), "not published").finding(),
            failed("lossy/budget/goes-on", within(2.8), "not published").finding().because("What is not paid counts every confirm that the shop itself refused, too: where its database was busy (`database_busy` among the refusals of the condition), nothing was sent for them and nothing was lost."),
            told,
        ],
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    for case in cases() {
        let condition = measure(lab, case, &mut findings).await?;
        findings.add(case.name(), condition);
    }
    for (id, one, other) in [
        ("budget-slow", "slow/budget/drops", "slow/off/drops"),
        (
            "always-slow-goes-on",
            "slow/always/goes-on",
            "slow/off/goes-on",
        ),
    ] {
        let of = |name: &str| findings.value(&format!("failed {name}"));
        let apart = of(one).zip(of(other));
        findings.measure_if(id, apart.map(|(one, other)| one - other));
    }
    let calls = |name: &str| findings.value(&format!("calls {name}"));
    let more = calls("lossy/always/drops").zip(calls("lossy/off/drops"));
    findings.measure_if(
        "calls-lossy",
        more.map(|(always, off)| 100.0 * (always - off) / off),
    );
    draw(&mut findings);
    Ok(findings)
}

/// Published, in the order of [`cases`] with a gateway that drops.
const PUBLISHED: [f64; 6] = [31.56, 55.23, 31.4, 14.29, 1.9, 2.82];

fn draw(findings: &mut Findings) {
    let of = |name: &str| {
        findings
            .value(&format!("failed {name}"))
            .unwrap_or(f64::NAN)
    };
    let points = |goes_on: bool| {
        let these = cases().filter(|case| case.goes_on == goes_on).enumerate();
        let points = these.map(|(place, case)| (place as f64 + 1.0, of(&case.name())));
        points
            .filter(|(_, percent)| percent.is_finite())
            .collect::<Vec<_>>()
    };
    let published = PUBLISHED.into_iter().enumerate();
    let published = published.map(|(place, percent)| (place as f64 + 1.0, percent));
    let answer = format!(
        "Yes: on a slow gateway {:.1} % failed without a resend, {:.1} % with one and {:.1} % with the budget; on a lossy one {:.1} %, {:.1} % and {:.1} %. With a gateway that goes on after we hang up, a resend is refused at once and holds no slot: {:.1} % without and {:.1} % with one, so the harm is the dropping gateway's.",
        of("slow/off/drops"),
        of("slow/always/drops"),
        of("slow/budget/drops"),
        of("lossy/off/drops"),
        of("lossy/always/drops"),
        of("lossy/budget/drops"),
        of("slow/off/goes-on"),
        of("slow/always/goes-on")
    );
    let plot = pictures::plot(
        "What fails with each kind of resend: 1 to 3 a slow gateway (off, always, budget), 4 to 6 a lossy one",
        "1–3 slow, 4–6 lossy: off, always, budget",
        "failed, %",
        vec![
            pictures::line("published", Mark::Dots, published.collect()),
            pictures::line("measured, gateway drops", Mark::Bars, points(false)),
            pictures::line("measured, gateway goes on", Mark::Dots, points(true)),
        ],
    );
    findings.answer = Some(answer);
    findings.plots.push(plot);
}

async fn measure(lab: &Lab, case: Case, findings: &mut Findings) -> anyhow::Result<Condition> {
    let settings = [
        ("JARI_CIRCUIT", "off"),
        ("JARI_RESEND", case.resend),
        ("JARI_PG_TIMEOUT_MS", "2000"),
        ("JARI_PG_CONFIRM_WINDOW_MS", "5000"),
    ];
    let stage = Stage::open(lab, &settings).await?;
    let pace = pace(lab);
    let orders = stage.prepare(pace.len()).await?;
    stage.gateway.set(&case.scenario()).await?;
    let seen = pages(&stage, &pace, soon(), orders).await?;
    stage.gateway.expire_unconfirmed().await?;
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
    let limit = Duration::from_secs(180);
    let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
    regret::note(seen.outcomes(), &ended.ledger, &mut condition, findings);
    judge(case, &seen, &ended, &mut condition, findings);
    Ok(condition)
}

fn judge(
    case: Case,
    seen: &Driven<Seen>,
    ended: &Ended,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let name = case.name();
    validity::latencies(condition, "confirmAnswers", &answers(seen.outcomes()));
    let codes = refusals(seen.outcomes());
    // What the machine itself refused is counted among the failed: it must be none.
    let only_the_cap = codes
        .keys()
        .all(|code| *code == ProblemCode::PgCapReached.as_str());
    condition.check(
        "refused for nothing but the cap",
        only_the_cap,
        format!("{codes:?}"),
    );
    condition.figure("refusals", codes);
    let all = seen.arrived.len() as u64;
    let refused = refused(seen.outcomes(), ProblemCode::PgCapReached);
    let not_paid = all.saturating_sub(ended.books.orders_in("paid"));
    let failed = match case.illness {
        Illness::Slow => refused,
        Illness::Lossy => not_paid,
    };
    let percent = |part| 100.0 * share(part, all);
    condition.figure("refusedPercent", rounded(percent(refused)));
    condition.figure("notPaidPercent", rounded(percent(not_paid)));
    findings.measure(&format!("failed {name}"), percent(failed));
    let calls = ended.ledger.confirms("received") as f64;
    findings.measure(&format!("calls {name}"), calls);
    let resends = |decision| {
        ended
            .scrape
            .find("pg_resend_total", &[("decision", decision)])
    };
    let unknown = ended.books.ever_unknown;
    match case.resend {
        "off" => condition.check("payments became unknown", unknown > 0, unknown),
        "always" => {
            let sent = resends("sent").unwrap_or(0.0);
            condition.check("resends were sent", sent > 0.0, sent);
        }
        _ => {
            // The counter moved in any way: a skipped count of 0 must not be that of a server that never decides.
            let decided = ended.scrape.sum("pg_resend_total", &[]);
            condition.check("resends were decided about", decided > 0.0, decided);
            let skipped = resends("no_free_slots").unwrap_or(0.0);
            findings.measure(&format!("skipped {name}"), skipped);
        }
    }
}
