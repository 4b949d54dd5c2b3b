//! Who kills, when, and what each kill met.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::page;
use crate::harness::site::{Engine, Site};
use crate::shopper::{Prepared, Seen};

/// The moments and behaviours of a run.
const SEED: u64 = 4;
/// The longest that a kill waits for its moment.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// How long a node may take to get its share.
const SHARE_PATIENCE: Duration = Duration::from_secs(30);
/// From a confirm to its send, at first; then learned.
const FIRST_LEAD: Duration = Duration::from_millis(4);

/// What the confirm before each kill was in the middle of at the gateway, when the kill met it.
pub(super) const MET: [&str; 2] = ["being sent", "booked and not recorded"];
/// So many confirms come at once where the kill is to meet one between its claim and its send.
const BURST: usize = 4;

/// When to kill, after a confirm of one's own was sent off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// At any time.
    Random,
    /// About when the claim is committed and the send has not yet reached the gateway.
    Claim,
    /// As soon as the gateway has the call.
    Send,
    /// As soon as the gateway has booked: its answer travels, or is recorded.
    Answer,
}

const MOMENTS: [Moment; 4] = [Moment::Random, Moment::Claim, Moment::Send, Moment::Answer];

/// What the kills came to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// All of them.
    pub(super) kills: u32,
    /// Those in which confirms were in flight.
    pub(super) counted: u32,
    /// The attempts that were in the middle, in all.
    pub(super) in_flight: u64,
    /// The counted ones by moment.
    pub(super) by_moment: BTreeMap<String, u32>,
    /// The counted ones by the gateway's behaviour.
    pub(super) by_behaviour: BTreeMap<&'static str, u32>,
    /// What was met of the kills' own confirms.
    pub(super) met: BTreeMap<&'static str, u64>,
    /// From each start to readiness.
    pub(super) restarts: Vec<Duration>,
    /// The pages of the kills' own confirms.
    pub(super) pages: Vec<(String, Seen)>,
}

/// How many probes so many kills use.
pub(super) const fn probes(kills: usize) -> usize {
    kills + kills.div_ceil(MOMENTS.len()) * (BURST - 1)
}

/// Kills.
pub(super) struct Killer<'a> {
    site: &'a mut Site,
    engine: Engine,
    wanted: u32,
    probes: Vec<Prepared>,
    running: Vec<JoinHandle<(String, Seen)>>,
    random: ChaCha8Rng,
    lead: Duration,
    tally: Tally,
}

impl<'a> Killer<'a> {
    /// Each kill uses some of the probes; there are no more kills than there are probes for.
    pub(super) fn new(
        site: &'a mut Site,
        engine: Engine,
        probes: Vec<Prepared>,
        wanted: u32,
    ) -> Self {
        Self {
            site,
            engine,
            wanted,
            probes,
            running: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(SEED),
            lead: FIRST_LEAD,
            tally: Tally::default(),
        }
    }

    /// Kills, until enough were counted. When the shoppers have arrived too, the gateway ends what was never confirmed.
    pub(super) async fn run(
        mut self,
        start: Instant,
        period: Duration,
        load: Duration,
    ) -> anyhow::Result<Tally> {
        let mut due = start;
        while self.tally.counted < self.wanted {
            let Some(probe) = self.probes.pop() else {
                break;
            };
            tokio::time::sleep_until(due.into()).await;
            self.one(probe).await?;
            due = (due + period).max(Instant::now());
        }
        tokio::time::sleep_until((start + load + PATIENCE).into()).await;
        self.site.gateway.expire_unconfirmed().await?;
        for page in std::mem::take(&mut self.running) {
            self.tally.pages.push(page.await.context("a page's task")?);
        }
        Ok(self.tally)
    }

    async fn one(&mut self, probe: Prepared) -> anyhow::Result<()> {
        let moment = MOMENTS[self.tally.kills as usize % MOMENTS.len()];
        let (name, scenario) = self.behaviour(moment);
        self.site.gateway.set(&scenario).await?;
        let target = self.target().await?;
        let id = probe.request.order_id.to_string();
        let (client, url) = (
            self.site.client.clone(),
            self.site.nodes[target].url.clone(),
        );
        let more = if moment == Moment::Claim {
            BURST - 1
        } else {
            0
        };
        let more = self
            .probes
            .split_off(self.probes.len().saturating_sub(more));
        for probe in more.into_iter().chain([probe]) {
            let page = page(client.clone(), url.clone(), probe, Instant::now());
            self.running.push(tokio::spawn(page));
        }
        self.wait_for(moment, &id).await?;
        let killed_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        self.site.nodes[target].kill().await?;
        let (confirms, charges) = self.site.gateway.order(&id).await?;
        let mut in_flight = self.left_by_node(target).await?;
        let took = self.site.start(target).await?;
        self.tally.restarts.push(took);
        if self.engine == Engine::Sqlite {
            in_flight = self.interrupted_since(killed_at).await?;
        }
        if moment == Moment::Claim {
            // Towards the boundary: earlier when it was sent already, later when it was not.
            let factor = if confirms > 0 { 0.85 } else { 1.15 };
            let longest = Duration::from_millis(80);
            self.lead = self
                .lead
                .mul_f64(factor)
                .clamp(Duration::from_micros(300), longest);
        }
        self.count(moment, name, &in_flight);
        if in_flight.contains(&id) {
            let stage = match (confirms, charges) {
                // What never came is counted at the end.
                (0, _) => return Ok(()),
                (_, 0) => MET[0],
                _ => MET[1],
            };
            *self.tally.met.entry(stage).or_default() += 1;
        }
        Ok(())
    }

    fn count(&mut self, moment: Moment, behaviour: &'static str, in_flight: &BTreeSet<String>) {
        self.tally.kills += 1;
        self.tally.in_flight += in_flight.len() as u64;
        if !in_flight.is_empty() {
            self.tally.counted += 1;
            let moment = format!("{moment:?}").to_lowercase();
            *self.tally.by_moment.entry(moment).or_default() += 1;
            *self.tally.by_behaviour.entry(behaviour).or_default() += 1;
        }
    }

    /// The gateway's next behaviour. What waits for a booking needs one.
    fn behaviour(&mut self, moment: Moment) -> (&'static str, Value) {
        let webhooks = json!({"delayMs": 100, "duplicate": 0.3, "reorder": 0.2, "drop": 0.3, "resend": {"scale": 0.01}});
        let lossy = |when| json!({"delayMs": 50, "loss": {"ratio": 0.5, "when": when}});
        let all = [
            ("fast", json!({"delayMs": 20})),
            ("slow", json!({"delayMs": 1_000})),
            ("lossy after the booking", lossy("after")),
            ("lossy before the booking", lossy("before")),
        ];
        let usable = if moment == Moment::Answer {
            &all[..3]
        } else {
            &all[..]
        };
        let chosen = usable.choose(&mut self.random).unwrap_or(&all[0]);
        let (name, mut scenario) = chosen.clone();
        scenario["webhooks"] = webhooks;
        (name, scenario)
    }

    /// The next node in turn that may send.
    async fn target(&self) -> anyhow::Result<usize> {
        let (nodes, begun) = (self.site.nodes.len(), Instant::now());
        while begun.elapsed() < SHARE_PATIENCE {
            for step in 0..nodes {
                let index = (self.tally.kills as usize + step) % nodes;
                // One that is too busy to answer is not the one to kill.
                let Ok(scrape) = self.site.scrape(index).await else {
                    continue;
                };
                if scrape.sum("pg_places", &[("operation", "confirm")]) >= 1.0 {
                    return Ok(index);
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("no node got a share of the cap")
    }

    async fn wait_for(&mut self, moment: Moment, id: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        match moment {
            Moment::Random => {
                let wait = self.random.random_range(0..400);
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            Moment::Claim => {
                let lead = self.lead;
                // The runtime's timer counts in whole milliseconds.
                tokio::task::spawn_blocking(move || std::thread::sleep(lead)).await?;
            }
            Moment::Send => {
                while self.site.gateway.order(id).await?.0 == 0 && begun.elapsed() < PATIENCE {}
            }
            Moment::Answer => {
                while self.site.gateway.order(id).await?.1 == 0 && begun.elapsed() < PATIENCE {}
            }
        }
        Ok(())
    }

    /// What a dead node left in the middle, read before anybody can resolve it.
    async fn left_by_node(&self, node: usize) -> anyhow::Result<BTreeSet<String>> {
        let Some(name) = &self.site.nodes[node].name else {
            return Ok(BTreeSet::new());
        };
        let sql = format!(
            "SELECT gateway_order_id FROM attempts WHERE status = 'approving' AND node = '{name}'"
        );
        self.ids(&sql).await
    }

    /// What the start after a kill found in the middle.
    async fn interrupted_since(&self, killed_at: u128) -> anyhow::Result<BTreeSet<String>> {
        let sql = format!(
            "SELECT a.gateway_order_id FROM evidence e JOIN attempts a ON a.id = e.attempt_id \
             WHERE e.event = 'interrupted' AND e.at >= {killed_at}"
        );
        self.ids(&sql).await
    }

    async fn ids(&self, sql: &str) -> anyhow::Result<BTreeSet<String>> {
        let rows: Vec<(String,)> = self.site.rows().await?.all(sql).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }
}
