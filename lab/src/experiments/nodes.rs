//! Nodes that share a cap, and one of them dies: the others must not take its share too early, nor never.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use payment::time::PageTimes;

use super::{Experiment, lines, pictures};
use crate::harness::Lab;
use crate::harness::regret;
use crate::harness::site::{Engine, Site};
use crate::harness::truth;
use crate::harness::validity::{self, site_guard};
use crate::pace::{Driven, Pace, drive, soon};
use crate::plan::{Condition, Criterion, Findings, Mark, Plan};
use crate::shopper::{Prepared, Seen, shop};
use crate::stats::{rounded, share};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "nodes",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// The only condition.
const CONDITION: &str = "three nodes, one killed";
const NODES: usize = 3;
/// The one that is killed.
const VICTIM: usize = 2;
/// The shipped cap.
const CAP: u32 = 40;
/// Shoppers a second, and how long the gateway holds each of them, ms: half as many again as the cap can serve.
const RATE: u32 = 30;
const DELAY_MS: u64 = 2_000;
/// A beat late, and a beat of each of the others until the share is divided; a busy machine adds its own.
const GRACE: f64 = 6.0;
/// What the clocks of the database and of the lab, read one after the other, may differ by.
const EARLY: f64 = 0.5;
/// How often the places are counted.
const LOOK: Duration = Duration::from_millis(100);

/// The times of a run, in seconds.
#[derive(Debug, Clone, Copy)]
struct Course {
    kill: u32,
    end: u32,
    lease: f64,
}

/// As shipped; a quick run has a lease as short as its rule allows.
fn course(lab: &Lab) -> (Course, Vec<(&'static str, &'static str)>) {
    if lab.quick {
        let course = Course {
            kill: 5,
            end: 24,
            lease: 8.5,
        };
        let short = [
            ("JARI_PG_TIMEOUT_MS", "3500"),
            ("JARI_NODE_LEASE_MS", "8500"),
            ("JARI_CIRCUIT", "off"),
        ];
        return (course, short.to_vec());
    }
    let course = Course {
        kill: 20,
        end: 110,
        lease: 65.0,
    };
    (course, vec![("JARI_CIRCUIT", "off")])
}

fn plan(lab: &Lab) -> Plan {
    let (course, settings) = course(lab);
    let one = |id: &str, says: &str, rule| Criterion::new(CONDITION, id, says, rule);
    let cap = f64::from(CAP);
    let back = Rule::Between {
        least: -EARLY,
        most: GRACE,
    };
    let mut criteria = vec![
        one(
            "peak",
            "most confirms in flight at once, by the gateway's ledger",
            Rule::AtMost { most: cap },
        ),
        one(
            "places",
            "most places granted at once, of all living nodes and what the dead one held",
            Rule::AtMost { most: cap },
        ),
        one(
            "back",
            "from the end of the dead one's lease until the others have its share, s",
            back,
        ),
    ];
    criteria.push(regret::criterion([CONDITION]));
    criteria.extend(truth::criteria(CONDITION));
    Plan {
        question: "When one of three nodes dies under load above the cap, is the cap kept, and when is the dead one's share back?".to_owned(),
        setup: lines(&[
            &format!("{NODES} nodes on one PostgreSQL, {settings:?}, all else as shipped; lease {} s", course.lease),
            &format!("{RATE} shoppers/s for {} s over all living nodes, the gateway takes {DELAY_MS} ms: {} slots are wanted, {CAP} are there", course.end, f64::from(RATE) * DELAY_MS as f64 / 1_000.0),
            &format!("after {} s one node is killed; whoever comes later goes to the others", course.kill),
        ]),
        valid_only_if: site_guard(&[
            "every shopper arrived, and some were refused for the cap, before and after",
            "the gateway had nearly the whole cap in flight at some time",
            "the killed node had confirms in flight",
        ]),
        criteria,
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let (course, settings) = course(lab);
    let mut site = Site::open(lab, Engine::Postgres, NODES, &settings).await?;
    let pace = Pace::steady(RATE, course.end);
    let orders = site.prepare(pace.len()).await?;
    divided(&site, NODES).await?;
    let scenario = serde_json::json!({"delayMs": DELAY_MS});
    site.gateway.set(&scenario).await?;
    let urls: Vec<_> = site.nodes.iter().map(|node| node.url.clone()).collect();
    let (client, turn) = (site.client.clone(), AtomicUsize::new(0));
    let living = Arc::new(AtomicUsize::new(NODES));
    let page = |order: Prepared, due| {
        let of = living.load(Ordering::Relaxed);
        let url = urls[turn.fetch_add(1, Ordering::Relaxed) % of].clone();
        shop(client.clone(), url, order, PageTimes::DEFAULT, due)
    };
    let start = soon();
    let (seen, died) = tokio::join!(
        drive(&pace, start, orders, page),
        kill(&mut site, course, start, &living)
    );
    let (seen, died) = (seen?, died?);
    let mut condition = Condition::default();
    let mut findings = Findings::default();
    let after_lease = died.back.map(|back| rounded(back - died.lease_left));
    findings.measure("back", after_lease.unwrap_or(f64::INFINITY));
    condition.figure("secondsFromKillUntilShareIsBack", died.back.map(rounded));
    condition.figure("secondsOfLeaseLeftAtTheKill", rounded(died.lease_left));
    findings.measure("places", died.most_places);
    // What was claimed and never sent is known once the gateway has ended it.
    site.gateway.expire_unconfirmed().await?;
    let drained = site.all_known(Duration::from_secs(180)).await?;
    condition.figure("drainSeconds", drained.map(|took| took.as_secs_f64()));
    let left = died.in_flight;
    condition.check("the killed node had confirms in flight", left > 0, left);
    let ledger = site.gateway.ledger().await?;
    let peak = ledger.peak_confirms();
    findings.measure("peak", peak as f64);
    let near = u64::from(CAP) * 9 / 10;
    condition.check("the cap was used", peak >= near, peak);
    refusals(course, &pace, &seen, &died, &mut condition);
    let truth = validity::end_site(site, &mut condition, &ledger).await?;
    truth.judge(CONDITION, &ledger, &mut condition, &mut findings);
    regret::note(seen.outcomes(), &ledger, &mut condition, &mut findings);
    tell(&died, peak, &seen, &mut findings);
    findings.add(CONDITION, condition);
    Ok(findings)
}

/// The answer and its pictures.
fn tell(died: &Died, peak: u64, seen: &Driven<Seen>, findings: &mut Findings) {
    let share_is_back = died.back.map_or_else(
        || "never came back".to_owned(),
        |back| {
            format!(
                "was back {:.1} s after its death, with {:.1} s of lease left then",
                back, died.lease_left
            )
        },
    );
    findings.answer = Some(format!(
        "The cap was kept: at most {peak} of {CAP} in flight and {} places granted; the dead node's share {share_is_back}.",
        died.most_places
    ));
    let places = died.places_over_time.iter().copied();
    findings.plots.push(pictures::plot(
        "Places that the living nodes may use, from one node's death on",
        "time since the death, s",
        "places",
        vec![pictures::line(
            "living nodes",
            Mark::Steps,
            places.collect(),
        )],
    ));
    let known = pictures::known("shoppers", seen.outcomes());
    findings.plots.push(pictures::known_plot(vec![known]));
}

/// The places of the first nodes, in all.
async fn places(site: &Site, nodes: usize) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for node in 0..nodes {
        let scrape = site.scrape(node).await?;
        sum += scrape.sum("pg_places", &[("operation", "confirm")]);
    }
    Ok(sum)
}

/// Waits until the cap is divided among the first nodes.
async fn divided(site: &Site, nodes: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    while places(site, nodes).await? < f64::from(CAP) {
        anyhow::ensure!(
            begun.elapsed() < Duration::from_secs(60),
            "the cap was never divided"
        );
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// What a node's death did.
struct Died {
    /// Seconds until the others had its share.
    back: Option<f64>,
    /// How many attempts it left in the middle.
    in_flight: u64,
    /// Seconds that its lease still had at the kill.
    lease_left: f64,
    /// The most places that were granted at once, the dead one's among them until its lease was over.
    most_places: f64,
    /// The places of the living ones: seconds since the death, and how many.
    places_over_time: Vec<(f64, f64)>,
}

async fn kill(
    site: &mut Site,
    course: Course,
    start: Instant,
    living: &AtomicUsize,
) -> anyhow::Result<Died> {
    let at = |seconds: u32| start + Duration::from_secs(u64::from(seconds));
    tokio::time::sleep_until(at(course.kill).into()).await;
    let held = site.scrape(VICTIM).await?;
    let held = held.sum("pg_places", &[("operation", "confirm")]);
    living.store(VICTIM, Ordering::Relaxed);
    let killed = Instant::now();
    site.nodes[VICTIM].kill().await?;
    let name = site.nodes[VICTIM].name.clone().unwrap_or_default();
    // Read before anybody can resolve them: their webhooks come within moments.
    let in_flight =
        format!("SELECT count(*) FROM attempts WHERE status = 'approving' AND node = '{name}'");
    let in_flight = site.rows().await?.number(&in_flight).await?;
    let left = format!(
        "SELECT CAST(lease_until - extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) FROM nodes WHERE id = '{name}'"
    );
    let left = site.rows().await?.number(&left).await?;
    let read = killed.elapsed().as_secs_f64();
    let mut died = Died {
        back: None,
        in_flight,
        lease_left: left as f64 / 1_000.0 + read,
        most_places: 0.0,
        places_over_time: Vec::new(),
    };
    while Instant::now() < at(course.end) {
        let own = places(site, VICTIM).await?;
        let stands = killed.elapsed().as_secs_f64() < died.lease_left - EARLY;
        let all = own + if stands { held } else { 0.0 };
        died.most_places = died.most_places.max(all);
        let since = killed.elapsed().as_secs_f64();
        died.places_over_time.push((since, own));
        if own >= f64::from(CAP) {
            died.back.get_or_insert(killed.elapsed().as_secs_f64());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(died)
}

/// The shares that were refused before the kill, while the share was away, and after.
fn refusals(
    course: Course,
    pace: &Pace,
    seen: &Driven<Seen>,
    died: &Died,
    condition: &mut Condition,
) {
    let started = seen.arrived.len();
    let all = format!("{started} of {}", pace.len());
    condition.check("every shopper arrived", started == pace.len(), all);
    let kill = f64::from(course.kill);
    let back = died.back.map_or(f64::from(course.end), |back| kill + back);
    // The first calls fill the empty slots.
    let spans = [
        ("refusedBeforePercent", DELAY_MS as f64 / 1_000.0, kill),
        ("refusedMeanwhilePercent", kill, back),
        ("refusedAfterPercent", back, f64::from(course.end)),
    ];
    for (index, (name, from, until)) in spans.into_iter().enumerate() {
        let within = |due: &Duration| (from..until).contains(&due.as_secs_f64());
        let arrived = seen.arrived.iter().filter(|(due, _)| within(due));
        let refused: Vec<bool> = arrived.map(|(_, seen)| seen.refused.is_some()).collect();
        let count = refused.iter().filter(|refused| **refused).count() as u64;
        let percent = 100.0 * share(count, refused.len() as u64);
        condition.figure(name, rounded(percent));
        if index < 2 {
            condition.check(&format!("{name} is not nothing"), count > 0, count);
        }
    }
    condition.figure("refusals", super::refusals(seen.outcomes()));
}
