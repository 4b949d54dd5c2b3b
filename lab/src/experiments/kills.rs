//! A server that is killed again and again under load: nothing may be lost, and nobody charged twice.

mod killer;
mod refunds;

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use payment::time::PageTimes;
use payment::view::Stage as Page;

use super::{Experiment, lines, pictures};
use crate::harness::Lab;
use crate::harness::regret;
use crate::harness::site::{Engine, Site};
use crate::harness::truth::{self, Truth};
use crate::harness::validity::{self, site_guard};
use crate::pace::{Pace, drive, soon};
use crate::plan::{Condition, Criterion, Findings, Plan};
use crate::shopper::{Prepared, Seen, shop};
use crate::stats::Latencies;
use crate::verdict::Rule;
use killer::{Killer, Tally};
use refunds::{Asked, Wish};

pub(super) const ON_SQLITE: Experiment = Experiment {
    name: "kills-sqlite",
    plan: |lab| plan(lab, Engine::Sqlite),
    run: |lab| run(lab, Engine::Sqlite).boxed_local(),
};

pub(super) const ON_POSTGRES: Experiment = Experiment {
    name: "kills-postgres",
    plan: |lab| plan(lab, Engine::Postgres),
    run: |lab| run(lab, Engine::Postgres).boxed_local(),
};

/// The only condition.
const CONDITION: &str = "kills";
/// Shoppers a second.
const RATE: u32 = 15;
/// From one kill to the next.
const PERIOD: Duration = Duration::from_millis(1_900);
/// So many kills may hit nothing for each hundred that hit something.
const SPARE_PERCENT: u32 = 40;
/// Several nodes share PostgreSQL: while a dead one's share waits for the end of its lease, the others go on.
const NODES: usize = 4;
/// How long the drain may take.
const DRAIN: Duration = Duration::from_secs(240);

/// Losses are wanted here, so nothing stops the confirms. On PostgreSQL a lease is as short as its rule allows.
const SETTINGS: &[(&str, &str)] = &[
    ("JARI_CIRCUIT", "off"),
    ("JARI_OPERATOR_TOKEN", refunds::TOKEN),
];
const SETTINGS_OF_NODES: &[(&str, &str)] = &[
    ("JARI_CIRCUIT", "off"),
    ("JARI_OPERATOR_TOKEN", refunds::TOKEN),
    ("JARI_PG_TIMEOUT_MS", "2500"),
    ("JARI_NODE_LEASE_MS", "7500"),
];

/// How many kills with confirms in flight are wanted.
fn wanted(lab: &Lab) -> u32 {
    lab.pick(300, 8)
}

/// How often each named moment must have been met; a few kills may miss one.
fn met(lab: &Lab) -> u64 {
    u64::from(lab.pick(10, 0))
}

fn plan(lab: &Lab, engine: Engine) -> Plan {
    let one = |id: &str, says: &str, rule| Criterion::new(CONDITION, id, says, rule);
    let none = Rule::exactly(0.0);
    let place = match engine {
        Engine::Sqlite => {
            "one process on SQLite, settings as shipped but JARI_CIRCUIT=off".to_owned()
        }
        Engine::Postgres => format!(
            "{NODES} nodes on PostgreSQL, JARI_CIRCUIT=off, PG timeout 2.5 s, lease 7.5 s; one of them is killed at a time"
        ),
    };
    let enough = Rule::Above {
        bound: f64::from(wanted(lab)) - 0.5,
    };
    let mut criteria = vec![
        one("counted", "kills with confirms in flight", enough),
        one(
            "told-not-charged",
            "pages that offered another payment, or none, while the gateway held the charge",
            none,
        ),
        one(
            "told-paid",
            "pages that said paid while the gateway held no charge",
            none,
        ),
        one(
            "refunds-unanswered",
            "wishes to have money back that never got a final answer",
            none,
        ),
        one(
            "reconcile",
            "breaks that `jari reconcile --all` finds afterwards, and payments that it could not ask about",
            none,
        ),
    ];
    criteria.extend(truth::criteria(CONDITION));
    Plan {
        question: "When the server is killed again and again in the middle of confirms, is anybody charged twice, or anything lost?".to_owned(),
        setup: lines(&[
            &place,
            &format!("{RATE} shoppers/s, each the page's own machine; kill -9 every {} ms, started again at once, until {} kills had confirms in flight", PERIOD.as_millis(), wanted(lab)),
            "each kill is preceded by a confirm of its own, and comes in turn: at random, about the claim (of four confirms at once), when the gateway has the call, when it has booked",
            "the gateway is by turns fast (20 ms), slow (1 s), lossy before and lossy after the booking (half of the calls)",
            "of every six paid orders one is canceled by its shopper, and of one the operator gives a part back, each asked for again with the same key until the answer is final",
            "webhooks are sent, 30 % doubled, 20 % out of order, 30 % never; failed ones again",
            "a kill counts if the rows show attempts in the middle of which the process died; afterwards the gateway ends what was never confirmed, and all is waited for",
        ]),
        valid_only_if: site_guard(&[
            "every shopper arrived",
            "webhooks were stored and money was given back",
            "`jari reconcile` compared payments",
            &format!("the kills met claimed confirms that the gateway never got, some that it worked on, and some that were booked and not recorded, each at least {} times", met(lab)),
        ]),
        criteria,
    }
}

async fn run(lab: &Lab, engine: Engine) -> anyhow::Result<Findings> {
    let (nodes, settings) = match engine {
        Engine::Sqlite => (1, SETTINGS),
        Engine::Postgres => (NODES, SETTINGS_OF_NODES),
    };
    let mut site = Site::open(lab, engine, nodes, settings).await?;
    let most = wanted(lab) * (100 + SPARE_PERCENT) / 100;
    let seconds = u32::try_from((PERIOD * wanted(lab)).as_secs())?;
    let pace = Pace::steady(RATE, seconds);
    let mut orders = site
        .prepare(pace.len() + killer::probes(most as usize))
        .await?;
    let probes = orders.split_off(pace.len());
    let start = soon();
    let urls: Vec<_> = site.nodes.iter().map(|node| node.url.clone()).collect();
    let client = site.client.clone();
    // Each shopper is on one node, and meets its death.
    let arriving = urls.iter().cycle().cloned().zip(orders).enumerate();
    let shoppers = |(index, (url, order)): (usize, (String, Prepared)), due| {
        let client = client.clone();
        async move {
            let page = page(client.clone(), url.clone(), order.clone(), due).await;
            let asked = refunds::ask(&client, &url, &order, &page.1, Wish::of(index)).await;
            (page, asked)
        }
    };
    let killer = Killer::new(&mut site, engine, probes, wanted(lab));
    let (seen, tally) = tokio::join!(
        drive(&pace, start, arriving, shoppers),
        killer.run(start, PERIOD, Duration::from_secs(seconds.into()))
    );
    let (seen, mut tally) = (seen?, tally?);
    let mut condition = Condition::default();
    let started = seen.arrived.len();
    let all = format!("{started} of {}", pace.len());
    condition.check("every shopper arrived", started == pace.len(), all);
    let drained = site.all_known(DRAIN).await?;
    condition.figure("drainSeconds", drained.map(|took| took.as_secs_f64()));
    let mut findings = Findings::default();
    reconcile(&site, &mut condition, &mut findings).await?;
    let ledger = site.gateway.ledger().await?;
    let truth = validity::end_site(site, &mut condition, &ledger).await?;
    condition.figure("pgCharges", ledger.confirms("approved"));
    let stored = truth.webhooks.values().sum::<u64>();
    condition.check("webhooks were stored", stored > 0, stored);
    let (mut pages, asked): (Vec<_>, Vec<_>) =
        seen.arrived.into_iter().map(|(_, seen)| seen).unzip();
    let canceled = refunds::canceled(&pages, &asked);
    given_back(&asked, &ledger, &mut condition, &mut findings);
    pages.append(&mut tally.pages);
    // What its shopper canceled after it was shown as paid holds no charge any more.
    pages.retain(|(id, _)| !canceled.contains(id));
    told(&pages, &truth, &ledger, &mut condition, &mut findings);
    note(lab, &tally, &mut condition, &mut findings);
    let unsent = truth.claimed_and_never_sent(&ledger);
    condition.figure("claimedAndNeverSent", unsent);
    let enough = unsent >= met(lab);
    condition.check(
        "kills met claimed confirms that were not sent",
        enough,
        unsent,
    );
    truth.judge(CONDITION, &ledger, &mut condition, &mut findings);
    findings.answer = Some(answer(&tally, &truth, &ledger));
    findings.add(CONDITION, condition);
    Ok(findings)
}

fn answer(tally: &Tally, truth: &Truth, ledger: &crate::harness::gateway::Ledger) -> String {
    let breaches: Vec<_> = truth
        .breaches(ledger)
        .into_iter()
        .filter(|breach| breach.count > 0)
        .map(|breach| format!("{} {}", breach.count, breach.says))
        .collect();
    let found = if breaches.is_empty() {
        "nothing was charged twice, lost, invented or miscounted".to_owned()
    } else {
        breaches.join(", ")
    };
    format!(
        "After {} kills with {} confirms in flight: {found}.",
        tally.counted, tally.in_flight
    )
}

/// Holds the shop's books against the gateway's, as an operator does.
async fn reconcile(
    site: &Site,
    condition: &mut Condition,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let told = site.reconcile().await?;
    let count = |name: &str| told[name].as_u64().unwrap_or(0);
    let breaks = told["breaks"].as_array().map_or(0, Vec::len) as u64;
    findings.measure("reconcile", (breaks + count("couldNotAsk")) as f64);
    let compared = count("payments");
    condition.check("reconcile compared payments", compared > 0, compared);
    condition.figure("reconcile", told);
    Ok(())
}

/// What the wishes to have money back came to.
fn given_back(
    asked: &[Option<Asked>],
    ledger: &crate::harness::gateway::Ledger,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let asked: Vec<Asked> = asked.iter().flatten().copied().collect();
    condition.figure("refundsAskedFor", refunds::summary(&asked));
    let open = |asked: &&Asked| asked.status.is_none_or(|status| status >= 500);
    let unanswered = asked.iter().filter(open).count();
    findings.measure("refunds-unanswered", unanswered as f64);
    let cancels = ledger.calls("cancel", "approved");
    condition.check("the gateway gave money back", cancels > 0, cancels);
}

/// Runs one page, and says whose it was.
async fn page(
    client: reqwest::Client,
    url: String,
    order: Prepared,
    due: Instant,
) -> (String, Seen) {
    let id = order.order.order_id.to_string();
    (id, shop(client, url, order, PageTimes::DEFAULT, due).await)
}

/// What the shoppers were told, against what the gateway holds.
fn told(
    pages: &[(String, Seen)],
    truth: &Truth,
    ledger: &crate::harness::gateway::Ledger,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let net = truth.net_charges(ledger);
    let is_charged = |id: &str| net.get(id).copied().unwrap_or(0) > 0;
    let (mut not_charged, mut paid) = (0, 0);
    let mut ended = std::collections::BTreeMap::<String, u32>::new();
    for (id, seen) in pages {
        let name = format!("{:?}", seen.stage);
        let name = name.split('(').next().unwrap_or_default().to_owned();
        *ended.entry(name).or_default() += 1;
        match seen.stage {
            Page::Offer | Page::NotCharged(_) | Page::Expired => {
                not_charged += u32::from(is_charged(id));
            }
            Page::Paid => paid += u32::from(!is_charged(id)),
            _ => {}
        }
    }
    condition.figure("pagesEndedAs", ended);
    findings.measure("told-not-charged", f64::from(not_charged));
    findings.measure("told-paid", f64::from(paid));
    let shown = pages.iter().map(|(_, seen)| seen);
    findings
        .plots
        .push(pictures::known_plot(vec![pictures::known(
            "pages",
            shown.clone(),
        )]));
    regret::note(shown, ledger, condition, findings);
}

/// What the kills met.
fn note(lab: &Lab, tally: &Tally, condition: &mut Condition, findings: &mut Findings) {
    findings.measure("counted", f64::from(tally.counted));
    condition.figure("kills", tally.kills);
    condition.figure("killsWithConfirmsInFlight", tally.counted);
    condition.figure("confirmsInFlightAtKills", tally.in_flight);
    condition.figure("countedByMoment", &tally.by_moment);
    condition.figure("countedByGateway", &tally.by_behaviour);
    condition.figure("probesMet", &tally.met);
    let restarts = Latencies::of(tally.restarts.iter().copied());
    condition.figure("restart", restarts.summary());
    for stage in killer::MET {
        let count = tally.met.get(stage).copied().unwrap_or(0);
        condition.check(
            &format!("kills met a confirm that was {stage}"),
            count >= met(lab),
            count,
        );
    }
}
