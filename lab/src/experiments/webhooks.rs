//! Webhooks of all kinds, true and forged, in any number and order: each is applied once, and a forged one changes nothing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use reqwest::Client;
use serde_json::{Value, json};

use super::{Experiment, lines};
use crate::harness::Lab;
use crate::harness::books::TRANSMISSION_PREFIX;
use crate::harness::gateway::Ledger;
use crate::harness::site::{Engine, Site};
use crate::harness::truth::{self, Truth};
use crate::harness::validity::{self, site_guard};
use crate::plan::{Condition, Criterion, Findings, Plan};
use crate::raw::confirm;
use crate::shopper::Prepared;
use crate::stats::{Latencies, rounded};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "webhooks",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// The only condition.
const CONDITION: &str = "webhooks";
/// What is forged, which share is doubled and dropped, and the order of all.
const SEED: u64 = 7;
/// Webhooks and confirms on their way at once.
const AT_ONCE: usize = 8;
const CONFIRMS_AT_ONCE: usize = 4;
/// A sender that hears no 200 tries again, so often and after so long, and so does a shopper.
const TRIES: u32 = 40;
const AGAIN: Duration = Duration::from_millis(500);
/// How long the inbox may take for what is left in it.
const INBOX: Duration = Duration::from_secs(900);
/// What the gateway takes, ms, and the share of answers that it loses after the booking.
const DELAY_MS: u64 = 300;
const LOSS: f64 = 0.3;
/// Of a hundred true webhooks so many are never sent, and so many are sent again.
const DROPPED: u32 = 25;
const DOUBLED: u32 = 40;

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
struct Size {
    hooks: usize,
    /// Orders that are confirmed while the webhooks come.
    confirmed: usize,
    /// Orders that nobody confirms.
    untouched: usize,
}

fn size(lab: &Lab) -> Size {
    let all = lab.pick(10_000, 600) as usize;
    Size {
        hooks: all,
        confirmed: all * 15 / 100,
        untouched: all * 5 / 100,
    }
}

fn plan(lab: &Lab) -> Plan {
    let one = |id: &str, says: &str, rule| Criterion::new(CONDITION, id, says, rule);
    let none = Rule::exactly(0.0);
    let size = size(lab);
    let mut criteria = vec![
        one("lost", "webhooks answered 200 that are not stored", none),
        one("stored-twice", "webhooks stored more than once", none),
        one("unjudged", "webhooks that nobody has looked at yet", none),
        one("unpaid", "confirmed orders that are not paid", none),
        one(
            "forged-paid",
            "orders that nobody confirmed and that are not pending any more",
            none,
        ),
        one("refused", "webhooks that were never answered 200", none),
        one(
            "answer-p99",
            "p99 of the answer, ms",
            Rule::AtMost { most: 10.0 },
        )
        .finding(),
    ];
    criteria.extend(truth::criteria(CONDITION));
    Plan {
        question: "When webhooks come twice, out of order, not at all and forged, is each applied once in effect, and does a forged one change anything?".to_owned(),
        setup: lines(&[
            "SQLite, one process, settings as shipped but JARI_CIRCUIT=off and JARI_PG_CAP=off: all confirms are to be sent",
            &format!("{} webhooks, {AT_ONCE} at a time, in random (seeded) order; one that is not answered 200 is sent again after {} ms", size.hooks, AGAIN.as_millis()),
            &format!("two for each of {} orders, which are confirmed meanwhile; {DROPPED} % of these are never sent, {DOUBLED} % are sent again", size.confirmed),
            "the rest are forged: unknown orders, wrong amounts, another order's key, cancels that never were, payments of orders that nobody confirmed, garbage",
            &format!("the gateway takes {DELAY_MS} ms and loses {} % of its answers after the booking; its own webhooks are off", LOSS * 100.0),
        ]),
        valid_only_if: site_guard(&[
            "every webhook was sent, and as many orders confirmed as planned",
            "some were sent twice, payments were in doubt, and webhooks were applied, ignored and parked",
        ]),
        criteria,
    }
}

/// A webhook to send.
#[derive(Debug, Clone)]
struct Hook {
    /// The same for every copy.
    transmission: String,
    body: String,
}

/// What became of one that was sent.
#[derive(Debug)]
struct Sent {
    transmission: String,
    status: Option<u16>,
    /// Of each try.
    took: Vec<Duration>,
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let size = size(lab);
    let settings = [("JARI_CIRCUIT", "off"), ("JARI_PG_CAP", "off")];
    let site = Site::open(lab, Engine::Sqlite, 1, &settings).await?;
    let mut orders = site.prepare(size.confirmed + size.untouched).await?;
    let untouched = orders.split_off(size.confirmed);
    let hooks = hooks(&orders, &untouched, size.hooks);
    let twice = hooks.len() - distinct(hooks.iter().map(|hook| &hook.transmission));
    let scenario = json!({"delayMs": DELAY_MS, "loss": {"ratio": LOSS, "when": "after"}, "webhooks": {"drop": 1.0}});
    site.gateway.set(&scenario).await?;
    let (client, url) = (&site.client, &site.nodes[0].url);
    let begun = Instant::now();
    let planned = hooks.len();
    let sending = stream::iter(hooks).map(|hook| deliver(client, url, hook));
    let paying = stream::iter(&orders).map(|order| pay(client, url, order));
    let (sent, paid) = tokio::join!(
        sending.buffer_unordered(AT_ONCE).collect::<Vec<Sent>>(),
        paying
            .buffer_unordered(CONFIRMS_AT_ONCE)
            .collect::<Vec<bool>>()
    );
    let mut condition = Condition::default();
    let seconds = begun.elapsed().as_secs_f64();
    condition.figure("webhooksPerSecond", rounded(planned as f64 / seconds));
    let paid = paid.into_iter().filter(|paid| *paid).count();
    let all = format!("{paid} of {}", size.confirmed);
    condition.check("every order was confirmed", paid == size.confirmed, all);
    condition.check(
        "every webhook was sent",
        sent.len() == size.hooks,
        sent.len(),
    );
    condition.check("some were sent twice", twice > 0, twice);
    let drained = site.all_known(Duration::from_secs(120)).await?;
    condition.figure("drainSeconds", drained.map(|took| took.as_secs_f64()));
    let mut findings = Findings::default();
    let waited = inbox_empty(&site).await?;
    condition.figure(
        "inboxSeconds",
        waited.map(|took| rounded(took.as_secs_f64())),
    );
    stored(&site, &sent, &mut condition, &mut findings).await?;
    let unknown = "SELECT count(DISTINCT attempt_id) FROM evidence WHERE status = 'unknown'";
    let unknown = site.rows().await?.number(unknown).await?;
    condition.check("payments were in doubt", unknown > 0, unknown);
    let ledger = site.gateway.ledger().await?;
    condition.figure("inquiries", ledger.calls("get", "received"));
    let truth = validity::end_site(site, &mut condition, &ledger).await?;
    changed(&truth, &orders, &untouched, &ledger, &mut findings);
    for state in ["applied", "ignored", "parked"] {
        let count = truth.webhooks.get(state).copied().unwrap_or(0);
        condition.check(&format!("some were {state}"), count > 0, count);
    }
    truth.judge(CONDITION, &ledger, &mut condition, &mut findings);
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "Yes, and no: of {planned} webhooks, {twice} of them copies, {} were lost and {} stored twice; {} confirmed orders are not paid, and {} orders changed by forged ones alone.",
        of("lost"),
        of("stored-twice"),
        of("unpaid"),
        of("forged-paid")
    ));
    findings.add(CONDITION, condition);
    Ok(findings)
}

fn distinct<'a>(transmissions: impl Iterator<Item = &'a String>) -> usize {
    transmissions.collect::<BTreeSet<_>>().len()
}

/// All webhooks, in the order in which they are sent.
fn hooks(confirmed: &[Prepared], untouched: &[Prepared], count: usize) -> Vec<Hook> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut bodies = Vec::new();
    for order in confirmed {
        for status in ["IN_PROGRESS", "DONE"] {
            if random.random_range(0..100) >= DROPPED {
                bodies.push(about(order, status, order.request.amount.get()));
            }
        }
    }
    let doubled = bodies
        .iter()
        .filter(|_| random.random_range(0..100) < DOUBLED);
    let doubled: Vec<_> = doubled.cloned().collect();
    let forged = count.saturating_sub(bodies.len() + doubled.len());
    for index in 0..forged {
        let of = &confirmed[index % confirmed.len()];
        let other = &confirmed[(index + 1) % confirmed.len()];
        let nobody = &untouched[index % untouched.len()];
        bodies.push(match index % 6 {
            0 => json!({"eventType": "PAYMENT_STATUS_CHANGED", "data": {"paymentKey": format!("forged_{index}"), "orderId": format!("ord_forged_{index}"), "status": "DONE"}}).to_string(),
            1 => about(of, "DONE", 1),
            2 => about(of, "CANCELED", of.request.amount.get()),
            3 => json!({"eventType": "PAYMENT_STATUS_CHANGED", "data": {"paymentKey": other.request.payment_key, "orderId": of.request.order_id, "status": "ABORTED"}}).to_string(),
            4 => about(nobody, "DONE", nobody.request.amount.get()),
            _ => format!("{{\"n\":{index},\"garbage\":\"{}", "x".repeat(random.random_range(0..2_000))),
        });
    }
    let hook = |(index, body): (usize, String)| Hook {
        transmission: format!("{TRANSMISSION_PREFIX}{index}"),
        body,
    };
    let mut hooks: Vec<_> = bodies.into_iter().enumerate().map(hook).collect();
    // A copy carries the id of the first.
    let copies: Vec<_> = doubled
        .iter()
        .filter_map(|body| hooks.iter().find(|hook| hook.body == *body).cloned())
        .collect();
    hooks.extend(copies);
    hooks.shuffle(&mut random);
    hooks
}

fn about(order: &Prepared, status: &str, amount: i64) -> String {
    let request = &order.request;
    let data = json!({"paymentKey": request.payment_key, "orderId": request.order_id, "status": status, "totalAmount": amount});
    let body: Value = json!({"eventType": "PAYMENT_STATUS_CHANGED", "createdAt": "2026-10-02T10:15:41.20417", "data": data});
    body.to_string()
}

async fn deliver(client: &Client, url: &str, hook: Hook) -> Sent {
    let mut sent = Sent {
        transmission: hook.transmission,
        status: None,
        took: Vec::new(),
    };
    for _ in 0..TRIES {
        let begun = Instant::now();
        let request = client
            .post(format!("{url}/webhooks/toss"))
            .header("content-type", "application/json")
            .header("tosspayments-webhook-transmission-id", &sent.transmission)
            .body(hook.body.clone());
        let answer = request.send().await;
        sent.status = answer.ok().map(|answer| answer.status().as_u16());
        sent.took.push(begun.elapsed());
        if sent.status == Some(200) {
            break;
        }
        tokio::time::sleep(AGAIN).await;
    }
    sent
}

/// Confirms until the shop has taken it, and says whether it has.
async fn pay(client: &Client, url: &str, order: &Prepared) -> bool {
    for _ in 0..TRIES {
        let answer = confirm(client, url, order, None, Instant::now()).await;
        if matches!(answer.status, Some(200 | 202)) {
            return true;
        }
        tokio::time::sleep(AGAIN).await;
    }
    false
}

/// Waits until every webhook was looked at; how long that took.
async fn inbox_empty(site: &Site) -> anyhow::Result<Option<Duration>> {
    let begun = Instant::now();
    let mut rows = site.rows().await?;
    while begun.elapsed() < INBOX {
        let new = "SELECT count(*) FROM webhooks WHERE state = 'new'";
        if rows.number(new).await? == 0 {
            return Ok(Some(begun.elapsed()));
        }
        tokio::time::sleep(AGAIN).await;
    }
    Ok(None)
}

/// What was answered 200 against what is stored.
async fn stored(
    site: &Site,
    sent: &[Sent],
    condition: &mut Condition,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let sql = format!(
        "SELECT transmission, count(*) FROM webhooks WHERE transmission LIKE '{TRANSMISSION_PREFIX}%' GROUP BY transmission"
    );
    let mut rows = site.rows().await?;
    let stored: Vec<(String, i64)> = rows.all(&sql).await?;
    let ids: BTreeSet<_> = stored.iter().map(|(id, _)| id).collect();
    let heard = sent.iter().filter(|sent| sent.status == Some(200));
    let heard: BTreeSet<_> = heard.map(|sent| &sent.transmission).collect();
    findings.measure("lost", heard.difference(&ids).count() as f64);
    let twice = stored.iter().filter(|(_, count)| *count > 1).count();
    findings.measure("stored-twice", twice as f64);
    let refused = sent.iter().filter(|sent| sent.status != Some(200)).count();
    findings.measure("refused", refused as f64);
    let new = "SELECT count(*) FROM webhooks WHERE state = 'new'";
    findings.measure("unjudged", rows.number(new).await? as f64);
    let took = Latencies::of(sent.iter().flat_map(|sent| sent.took.iter().copied()));
    findings.measure_if("answer-p99", took.percentile_ms(99.0));
    condition.figure("answers", took.summary());
    condition.figure("sent", sent.len());
    condition.figure("tries", took.len());
    condition.figure("distinctStored", stored.len());
    Ok(())
}

/// Whose state is not what the confirms alone, and the gateway, say.
fn changed(
    truth: &Truth,
    confirmed: &[Prepared],
    untouched: &[Prepared],
    ledger: &Ledger,
    findings: &mut Findings,
) {
    let is = |order: &Prepared, status: &str| {
        let known = truth.orders.get(order.order.order_id.as_str());
        known.is_some_and(|known| known == status)
    };
    let unpaid = confirmed.iter().filter(|order| !is(order, "paid")).count();
    findings.measure("unpaid", unpaid as f64);
    let changed = |order: &&Prepared| {
        !is(order, "pending") || ledger.charges(order.request.order_id.as_str()) > 0
    };
    let paid = untouched.iter().filter(changed).count();
    findings.measure("forged-paid", paid as f64);
}
