//! Shoppers who hang up at any moment of their confirm: nothing may leak, and no charge may be lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use tokio::sync::Barrier;

use super::{Experiment, lines, pictures};
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::plan::{Condition, Criterion, Findings, Mark, Plan, Plot};
use crate::raw::{Answer, confirm};
use crate::shopper::Prepared;
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "disconnects",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// The only condition.
const CONDITION: &str = "hang-ups";
/// How long the gateway takes, ms.
const DELAY_MS: u64 = 200;
/// A shopper hangs up at most so much later than that, ms: some hear the answer.
const BEYOND_MS: u64 = 50;
/// Confirms at once: below the cap, since a slot is held on after its shopper hung up.
const AT_ONCE: usize = 35;
/// The cap; the burst afterwards needs every slot.
const CAP: usize = 40;
/// How long the gateway takes for the burst, ms: all of it is in flight at once.
const BURST_DELAY_MS: u64 = 500;
/// The picture's bins, ms.
const BIN_MS: u64 = 25;
/// When each shopper hangs up.
const SEED: u64 = 1;

fn plan(lab: &Lab) -> Plan {
    let one = |id: &str, says: &str, rule| Criterion::new(CONDITION, id, says, rule);
    let none = Rule::exactly(0.0);
    Plan {
        question: "When shoppers hang up in the middle of their confirm, does a slot leak or a charge get lost?".to_owned(),
        setup: lines(&[
            &format!("{} confirms, {AT_ONCE} at once, each cut at a random (seeded) moment of 0 to {} ms; the gateway takes {DELAY_MS} ms", lab.pick(5_000, 300), DELAY_MS + BEYOND_MS),
            &format!("then {CAP} confirms at one moment, the whole cap, the gateway takes {BURST_DELAY_MS} ms"),
            "all settings as shipped but JARI_CIRCUIT=off",
        ]),
        valid_only_if: guard(&["some were cut before their answer, and some heard it"]),
        criteria: vec![
            one("in-flight", "confirms in flight when all is over, by pg_in_flight", none),
            one("unknown", "payments unknown when all is over", none),
            one("charged-twice", "orders charged more than once, by the ledger", none),
            one("charge-lost", "orders charged in the ledger but not paid in the shop", none),
            one("charge-invented", "orders paid in the shop but not charged in the ledger", none),
            one("burst-refused", "of the burst not paid: slots that leaked", none),
        ],
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut condition = Condition::default();
    let stage = Stage::open(lab, &[("JARI_CIRCUIT", "off")]).await?;
    let mut orders = stage.prepare(lab.pick(5_000, 300) as usize + CAP).await?;
    let ids: Vec<_> = orders
        .iter()
        .map(|order| order.request.order_id.to_string())
        .collect();
    let burst = orders.split_off(orders.len() - CAP);
    stage.gateway.set(&json!({"delayMs": DELAY_MS})).await?;
    let cuts = hang_up(&stage, orders, &mut condition).await;
    let drained = stage.drained(Duration::from_secs(60)).await?;
    condition.check("all ended before the burst", drained, drained);
    let scrape = stage.scrape().await?;
    findings.measure(
        "in-flight",
        scrape.sum("pg_in_flight", &[("operation", "confirm")]),
    );
    findings.measure_if("unknown", scrape.find("payments_unknown", &[]));
    stage
        .gateway
        .set(&json!({"delayMs": BURST_DELAY_MS}))
        .await?;
    let refused = burst_refused(&stage, burst).await?;
    findings.measure("burst-refused", refused as f64);
    let ended = validity::end(stage, &mut condition, ids.len(), Duration::from_secs(60)).await?;
    compare(&ids, &ended, &mut findings);
    findings.plots.push(picture(&ids, &cuts, &ended));
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "Of {} confirms that were cut at any moment, {} slots leaked, {} charges were lost and {} orders charged twice; a burst of the whole cap afterwards was refused {} times.",
        ids.len() - CAP,
        of("in-flight"),
        of("charge-lost"),
        of("charged-twice"),
        of("burst-refused")
    ));
    findings.add(CONDITION, condition);
    Ok(findings)
}

/// When a shopper hung up, and whether the answer had been heard by then.
type Cut = (Duration, bool);

/// Sends every confirm and drops it at its moment; the cuts, in the order of the confirms.
async fn hang_up(stage: &Stage, orders: Vec<Prepared>, condition: &mut Condition) -> Vec<Cut> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let longest = DELAY_MS + BEYOND_MS;
    let moments: Vec<_> = orders
        .iter()
        .map(|_| Duration::from_micros(random.random_range(0..=longest * 1_000)))
        .collect();
    let mut cuts: Vec<(usize, Cut)> = stream::iter(orders.into_iter().zip(moments).enumerate())
        .map(|(index, (order, cut))| async move {
            let begun = Instant::now();
            let whole = confirm(&stage.client, &stage.shop, &order, None, begun);
            let heard = tokio::time::timeout(cut, whole).await.is_ok();
            // Its slot is held on by the server: the place is given on only when the slot is, too.
            tokio::time::sleep_until((begun + Duration::from_millis(longest)).into()).await;
            (index, (cut, heard))
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    cuts.sort_unstable_by_key(|(index, _)| *index);
    let cuts: Vec<Cut> = cuts.into_iter().map(|(_, cut)| cut).collect();
    let heard_count = cuts.iter().filter(|(_, heard)| *heard).count();
    let cut = cuts.len() - heard_count;
    condition.figure("cut", cut);
    condition.figure("heardTheirAnswer", heard_count);
    let seen = format!("{cut} cut, {heard_count} not");
    condition.check(
        "some were cut and some were not",
        cut > 0 && heard_count > 0,
        seen,
    );
    cuts
}

/// Whether an outcome is one's own, who heard the answer or not, and whose order is paid or not.
type Is = fn(bool, bool) -> bool;

/// What became of the confirms, by the moment at which their shoppers hung up.
fn picture(ids: &[String], cuts: &[Cut], ended: &Ended) -> Plot {
    let paid = |id: &String| {
        let status = ended.books.orders.get(id);
        status.is_some_and(|status| status == "paid")
    };
    let outcomes: [(&str, Is); 3] = [
        ("heard that it was paid, or was refused", |heard, _| heard),
        ("cut, and paid", |heard, paid| !heard && paid),
        (
            "cut, and not paid: never sent to the gateway",
            |heard, paid| !heard && !paid,
        ),
    ];
    let bins = (DELAY_MS + BEYOND_MS) / BIN_MS;
    let lines = outcomes.map(|(name, is)| {
        let mut counts = vec![0_u32; usize::try_from(bins).unwrap_or(0) + 1];
        for (id, (cut, heard)) in ids.iter().zip(cuts) {
            let bin = cut.as_millis() / u128::from(BIN_MS);
            let count = usize::try_from(bin)
                .ok()
                .and_then(|bin| counts.get_mut(bin));
            if let Some(count) = count
                && is(*heard, paid(id))
            {
                *count += 1;
            }
        }
        let points = counts.into_iter().enumerate();
        let points = points.map(|(bin, count)| (bin as f64 * BIN_MS as f64, f64::from(count)));
        pictures::line(name, Mark::Bars, points.collect())
    });
    pictures::plot(
        "Whenever shoppers hang up, what was sent is booked and found, and what was not is not charged",
        "hung up so long after the confirm, ms",
        "confirms",
        lines.into(),
    )
}

/// Confirms as many as the cap has slots, all at one moment, and counts those that were not paid.
async fn burst_refused(stage: &Stage, orders: Vec<Prepared>) -> anyhow::Result<usize> {
    let gate = Arc::new(Barrier::new(orders.len()));
    let send = |order: Prepared| {
        let (client, shop) = (stage.client.clone(), stage.shop.clone());
        let gate = Arc::clone(&gate);
        tokio::spawn(async move {
            gate.wait().await;
            confirm(&client, &shop, &order, None, Instant::now()).await
        })
    };
    let running: Vec<_> = orders.into_iter().map(send).collect();
    let mut refused = 0;
    for task in running {
        let Answer { status, .. } = task.await.context("a confirm of the burst")?;
        refused += usize::from(status != Some(200));
    }
    Ok(refused)
}

/// Compares every order in the shop's books with the gateway's ledger.
fn compare(ids: &[String], ended: &Ended, findings: &mut Findings) {
    let (mut lost, mut invented) = (0, 0);
    for id in ids {
        let charged = ended.ledger.charges(id) > 0;
        let paid = ended
            .books
            .orders
            .get(id)
            .is_some_and(|status| status == "paid");
        lost += u32::from(charged && !paid);
        invented += u32::from(paid && !charged);
    }
    findings.measure("charge-lost", f64::from(lost));
    findings.measure("charge-invented", f64::from(invented));
    findings.measure("charged-twice", ended.ledger.charged_twice() as f64);
}
