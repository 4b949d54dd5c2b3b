//! Controls: runs that are broken on purpose, each in one way, and must be found out. A judge that passes one of them is
//! worth nothing.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use payment::time::PageTimes;
use payment::wire::ProblemCode;
use serde_json::{Value, json};

use crate::harness::alone::confirm as confirm_at_gateway;
use crate::harness::regret;
use crate::harness::validity;
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, drive, soon};
use crate::plan::{Condition, Criterion, Findings, Plan, judge_all};
use crate::raw::confirm;
use crate::shopper::{Prepared, Seen, shop};
use crate::verdict::{Rule, Verdict};

/// Where the programs are.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only these, by their names
    names: Vec<String>,
    /// The folder of `jari` and `fakepg` [default: where `lab` is]
    #[arg(long)]
    pub(crate) bin_dir: Option<std::path::PathBuf>,
}

/// What a control must come to.
#[derive(Debug, Clone, Copy)]
enum Must {
    /// Nothing is broken, and nothing may be found.
    Pass,
    /// Its criterion fails.
    Fail,
    /// Its condition is not valid, for this check and no other.
    NotValid(&'static str),
}

/// What was found of a control, and the value that its criterion judges.
type Came = (Condition, Option<f64>);

/// A run that is broken in one way.
struct Control {
    name: &'static str,
    must: Must,
    run: for<'a> fn(&'a Lab) -> LocalBoxFuture<'a, anyhow::Result<Came>>,
    rule: Rule,
}

const PACE: (u32, u32) = (20, 2);
const NONE: Rule = Rule::Within {
    target: 0.0,
    tolerance: 0.0,
};
/// Long enough for every control that drains at all.
const DRAIN: Duration = Duration::from_secs(30);

const CONTROLS: [Control; 13] = [
    Control {
        name: "nothing-broken",
        must: Must::Pass,
        run: |lab| healthy(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "gateway-never-reached",
        must: Must::NotValid("the gateway saw confirms"),
        run: |lab| never_reached(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "gateway-dead-at-the-end",
        must: Must::NotValid("the gateway is alive at the end"),
        run: |lab| dead(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "an-order-too-many",
        must: Must::NotValid("the database holds every order sent"),
        run: |lab| order_too_many(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "drain-not-finished",
        must: Must::NotValid("everything is known"),
        run: |lab| not_drained(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "charged-twice",
        must: Must::NotValid("no order is charged twice"),
        run: |lab| charged_twice(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "arrivals-late",
        must: Must::NotValid("confirms: started in time"),
        run: |lab| late(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "arrivals-missing",
        must: Must::NotValid("confirms: every one started"),
        run: |lab| missing(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "cap-off",
        must: Must::Fail,
        run: |lab| cap_off(lab).boxed_local(),
        rule: Rule::AtMost { most: 40.0 },
    },
    Control {
        name: "deadline-check-off",
        must: Must::Fail,
        run: |lab| deadline_off(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "keys-swapped",
        must: Must::Fail,
        run: |lab| keys_swapped(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "webhooks-misaddressed",
        must: Must::Fail,
        run: |lab| webhooks_lost(lab).boxed_local(),
        rule: NONE,
    },
    Control {
        name: "charged-behind-our-back",
        must: Must::Fail,
        run: |lab| behind_our_back(lab).boxed_local(),
        rule: NONE,
    },
];

/// Runs the controls; a table for people, and whether each was found out.
pub(crate) async fn run(lab: &Lab, options: &Options) -> anyhow::Result<(String, bool)> {
    let mut text = "| control | must | came out | |\n| --- | --- | --- | --- |\n".to_owned();
    let mut all_well = true;
    for name in &options.names {
        let known = CONTROLS.iter().any(|control| control.name == name);
        anyhow::ensure!(known, "there is no control {name}");
    }
    let chosen = |control: &&Control| {
        options.names.is_empty() || options.names.iter().any(|name| name == control.name)
    };
    for control in CONTROLS.iter().filter(chosen) {
        let (condition, measured) = (control.run)(lab)
            .await
            .with_context(|| format!("running {}", control.name))?;
        let (came_out, well) = found_out(control, condition, measured);
        all_well &= well;
        let must = match control.must {
            Must::Pass => "pass".to_owned(),
            Must::Fail => "fail".to_owned(),
            Must::NotValid(why) => format!("not valid: {why}"),
        };
        let said = if well { "as it must" } else { "NOT FOUND OUT" };
        let _ = writeln!(text, "| {} | {must} | {came_out} | {said} |", control.name);
    }
    Ok((text, all_well))
}

/// What a control came to, and whether that is what it must.
fn found_out(control: &Control, condition: Condition, measured: Option<f64>) -> (String, bool) {
    let broken = condition.checks.iter().filter(|check| !check.holds);
    let broken: Vec<_> = broken.map(|check| check.says.clone()).collect();
    let mut findings = Findings::default();
    findings.add(control.name, condition);
    // A control that breaks the run has a value that would pass.
    findings.measure(control.name, measured.unwrap_or(0.0));
    let plan = Plan {
        question: String::new(),
        setup: Vec::new(),
        valid_only_if: Vec::new(),
        criteria: vec![Criterion::new(control.name, control.name, "", control.rule)],
    };
    let verdict = judge_all(&plan, &findings).first().map(|one| one.verdict);
    let well = match (control.must, verdict) {
        (Must::Pass, Some(Verdict::Pass)) | (Must::Fail, Some(Verdict::Fail)) => true,
        (Must::NotValid(why), Some(Verdict::NotValid)) => broken == [why],
        _ => false,
    };
    let came_out = match verdict {
        Some(Verdict::NotValid) => format!("not valid: {}", broken.join(", ")),
        Some(verdict) => format!("{} ({measured:?})", verdict.as_str()),
        None => "nothing".to_owned(),
    };
    (came_out, well)
}

fn pace() -> Pace {
    let (rate, seconds) = PACE;
    Pace::steady(rate, seconds)
}

/// Opens a stage, sets the gateway and makes its orders.
async fn open(
    lab: &Lab,
    settings: &[(&str, &str)],
    scenario: Value,
) -> anyhow::Result<(Stage, Vec<Prepared>)> {
    let stage = Stage::open(lab, settings).await?;
    let orders = stage.prepare(pace().len()).await?;
    stage.gateway.set(&scenario).await?;
    Ok((stage, orders))
}

async fn pages(stage: &Stage, orders: Vec<Prepared>) -> anyhow::Result<Driven<Seen>> {
    pages_from(stage, orders.into_iter()).await
}

async fn pages_from(
    stage: &Stage,
    orders: impl Iterator<Item = Prepared>,
) -> anyhow::Result<Driven<Seen>> {
    let (client, url) = (stage.client.clone(), stage.shop.clone());
    let page = move |order, due| shop(client.clone(), url.clone(), order, PageTimes::DEFAULT, due);
    drive(&pace(), soon(), orders, page).await
}

/// What all checks say of a run of pages, and how many of them were not paid.
async fn judged(
    stage: Stage,
    seen: &Driven<Seen>,
    sent: usize,
    limit: Duration,
) -> anyhow::Result<(Condition, u64)> {
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace().len(), seen);
    let ended = validity::end(stage, &mut condition, sent, limit).await?;
    let paid = ended.books.orders_in("paid");
    Ok((condition, (pace().len() as u64).saturating_sub(paid)))
}

async fn healthy(lab: &Lab) -> anyhow::Result<Came> {
    let (stage, orders) = open(lab, &[], json!({"delayMs": 50})).await?;
    let seen = pages(&stage, orders).await?;
    let (condition, unpaid) = judged(stage, &seen, pace().len(), DRAIN).await?;
    Ok((condition, Some(unpaid as f64)))
}

async fn never_reached(lab: &Lab) -> anyhow::Result<Came> {
    let (stage, orders) = open(lab, &[], json!({})).await?;
    let (client, url) = (stage.client.clone(), stage.shop.clone());
    let left = move |order: Prepared, due| {
        let (client, url) = (client.clone(), url.clone());
        async move { confirm(&client, &url, &order, Some(0), due).await }
    };
    let answers = drive(&pace(), soon(), orders, left).await?;
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace().len(), &answers);
    validity::end(stage, &mut condition, pace().len(), DRAIN).await?;
    Ok((condition, None))
}

async fn dead(lab: &Lab) -> anyhow::Result<Came> {
    let (mut stage, orders) = open(lab, &[], json!({})).await?;
    let seen = pages(&stage, orders).await?;
    // What it has seen is asked before, so that its death alone is what is wrong.
    let reached = stage.gateway.ledger().await?;
    stage.kill_gateway()?;
    let (mut condition, _) = judged(stage, &seen, pace().len(), DRAIN).await?;
    for check in &mut condition.checks {
        let by_death = check.says == "the gateway saw confirms" && reached.confirms("received") > 0;
        check.holds |= by_death || check.says == "nothing is left of the programs";
    }
    Ok((condition, None))
}

async fn order_too_many(lab: &Lab) -> anyhow::Result<Came> {
    let (stage, orders) = open(lab, &[], json!({})).await?;
    let body = json!({"items": [{"sku": "mug", "quantity": 1}]});
    let url = format!("{}/api/orders", stage.shop);
    let made = stage.client.post(url).json(&body).send().await?;
    made.error_for_status()?;
    let seen = pages(&stage, orders).await?;
    let (condition, _) = judged(stage, &seen, pace().len(), DRAIN).await?;
    Ok((condition, None))
}

async fn not_drained(lab: &Lab) -> anyhow::Result<Came> {
    let settings = [("JARI_CIRCUIT", "off"), ("JARI_RESEND", "off")];
    let silent = json!({"loss": {"when": "after"}, "operations": ["confirm", "get"], "webhooks": {"drop": 1.0}});
    let (stage, orders) = open(lab, &settings, silent).await?;
    let (client, url) = (stage.client.clone(), stage.shop.clone());
    let send = move |order: Prepared, due| {
        let (client, url) = (client.clone(), url.clone());
        async move { confirm(&client, &url, &order, None, due).await }
    };
    let answers = drive(&pace(), soon(), orders, send).await?;
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace().len(), &answers);
    validity::end(stage, &mut condition, pace().len(), Duration::from_secs(3)).await?;
    Ok((condition, None))
}

async fn charged_twice(lab: &Lab) -> anyhow::Result<Came> {
    let again = json!({"allowDuplicateOrder": true, "webhooks": {"drop": 1.0}});
    let (stage, orders) = open(lab, &[], again).await?;
    let first = orders.first().context("no orders")?.request.clone();
    let seen = pages(&stage, orders).await?;
    let url = format!("{}/_control/payments", stage.gateway.url);
    let body = json!({"orderId": first.order_id, "amount": first.amount});
    let made = stage.client.post(url).json(&body).send().await?;
    let made: Value = made.error_for_status()?.json().await?;
    let body = json!({"paymentKey": made["paymentKey"], "orderId": first.order_id, "amount": first.amount});
    charge(&stage, &body, "control-twice").await?;
    let (condition, _) = judged(stage, &seen, pace().len(), DRAIN).await?;
    Ok((condition, None))
}

/// Charges at the gateway, past the shop.
async fn charge(stage: &Stage, body: &Value, key: &str) -> anyhow::Result<()> {
    let call = confirm_at_gateway(&stage.client, &stage.gateway.url, body, key);
    call.send().await?.error_for_status()?;
    Ok(())
}

async fn late(lab: &Lab) -> anyhow::Result<Came> {
    let (stage, orders) = open(lab, &[], json!({})).await?;
    let busy = orders.into_iter().enumerate().map(|(index, order)| {
        if index == 10 {
            // The driver's own thread does something else.
            std::thread::sleep(Duration::from_millis(400));
        }
        order
    });
    let seen = pages_from(&stage, busy).await?;
    let (condition, _) = judged(stage, &seen, pace().len(), DRAIN).await?;
    Ok((condition, None))
}

async fn missing(lab: &Lab) -> anyhow::Result<Came> {
    let (stage, mut orders) = open(lab, &[], json!({})).await?;
    orders.pop();
    let seen = pages(&stage, orders).await?;
    let (condition, _) = judged(stage, &seen, pace().len(), DRAIN).await?;
    Ok((condition, None))
}

async fn cap_off(lab: &Lab) -> anyhow::Result<Came> {
    let settings = [("JARI_PG_CAP", "off"), ("JARI_CIRCUIT", "off")];
    let stage = Stage::open(lab, &settings).await?;
    let pace = Pace::steady(50, 2);
    let orders = stage.prepare(pace.len()).await?;
    stage.gateway.set(&json!({"delayMs": 2_000})).await?;
    let (client, url) = (stage.client.clone(), stage.shop.clone());
    let page = move |order, due| shop(client.clone(), url.clone(), order, PageTimes::DEFAULT, due);
    drive(&pace, soon(), orders, page).await?;
    let mut condition = Condition::default();
    let ended = validity::end(stage, &mut condition, pace.len(), DRAIN).await?;
    Ok((condition, Some(ended.ledger.peak_confirms() as f64)))
}

async fn deadline_off(lab: &Lab) -> anyhow::Result<Came> {
    let (stage, orders) = open(lab, &[("JARI_DEADLINE_CHECK", "off")], json!({})).await?;
    let mut refused = 0;
    for order in &orders {
        let answer = confirm(&stage.client, &stage.shop, order, Some(0), Instant::now()).await;
        refused += u32::from(answer.code == Some(ProblemCode::DeadlinePassed));
    }
    let mut condition = Condition::default();
    validity::end(stage, &mut condition, orders.len(), DRAIN).await?;
    Ok((condition, Some(orders.len() as f64 - f64::from(refused))))
}

async fn keys_swapped(lab: &Lab) -> anyhow::Result<Came> {
    let (stage, mut orders) = open(lab, &[], json!({})).await?;
    for pair in orders.chunks_mut(2) {
        if let [one, other] = pair {
            std::mem::swap(&mut one.request.payment_key, &mut other.request.payment_key);
        }
    }
    let seen = pages(&stage, orders).await?;
    let (condition, unpaid) = judged(stage, &seen, pace().len(), DRAIN).await?;
    Ok((condition, Some(unpaid as f64)))
}

async fn webhooks_lost(lab: &Lab) -> anyhow::Result<Came> {
    const SENT: u64 = 20;
    let (stage, orders) = open(lab, &[], json!({})).await?;
    let seen = pages(&stage, orders).await?;
    for number in 0..SENT {
        let url = format!("{}/webhooks/nobody", stage.shop);
        let id = format!("{}{number}", crate::harness::books::TRANSMISSION_PREFIX);
        let post = stage
            .client
            .post(url)
            .json(&json!({"eventType": "PAYMENT_STATUS_CHANGED"}));
        post.header("tosspayments-webhook-transmission-id", id)
            .send()
            .await?;
    }
    let mut condition = Condition::default();
    validity::arrivals(&mut condition, "confirms", pace().len(), &seen);
    let ended = validity::end(stage, &mut condition, pace().len(), DRAIN).await?;
    Ok((
        condition,
        Some(SENT.saturating_sub(ended.books.lab_webhooks) as f64),
    ))
}

async fn behind_our_back(lab: &Lab) -> anyhow::Result<Came> {
    let settings = [("JARI_PG_CAP", "2"), ("JARI_CIRCUIT", "off")];
    let hidden = json!({"delayMs": 500, "webhooks": {"drop": 1.0}});
    let (stage, orders) = open(lab, &settings, hidden).await?;
    let requests: Vec<_> = orders.iter().map(|order| order.request.clone()).collect();
    let seen = pages(&stage, orders).await?;
    let refused = seen
        .outcomes()
        .zip(requests)
        .find(|(seen, _)| seen.told_not_charged);
    let (_, request) = refused.context("the cap refused nobody")?;
    let body = json!({"paymentKey": request.payment_key, "orderId": request.order_id, "amount": request.amount});
    charge(&stage, &body, "control-behind").await?;
    let mut condition = Condition::default();
    let ended = validity::end(stage, &mut condition, pace().len(), DRAIN).await?;
    let regret = regret::of(seen.outcomes(), &ended.ledger);
    Ok((condition, Some(regret.false_failures as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(must: Must, holds: bool, measured: Option<f64>) -> bool {
        let control = Control {
            name: "x",
            must,
            run: |lab| healthy(lab).boxed_local(),
            rule: NONE,
        };
        let mut condition = Condition::default();
        condition.check("traffic", holds, "");
        found_out(&control, condition, measured).1
    }

    #[test]
    fn a_control_is_found_out_only_for_its_own_reason() {
        assert!(came(Must::NotValid("traffic"), false, None));
        assert!(!came(Must::NotValid("something else"), false, None));
        assert!(!came(Must::NotValid("traffic"), true, None));
        assert!(came(Must::Fail, true, Some(1.0)) && !came(Must::Fail, true, Some(0.0)));
        assert!(!came(Must::Fail, false, Some(1.0)));
        assert!(came(Must::Pass, true, Some(0.0)) && !came(Must::Pass, false, Some(0.0)));
    }
}
