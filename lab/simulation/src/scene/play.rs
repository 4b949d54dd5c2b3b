//! Plays a scene: a runtime of its own with paused time, the nodes, the load, then calm until everything is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use payment::attempt::AttemptStatus;
use payment::reach::{Reach, Reason};
use payment::time::{Millis, Times};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::bank::Bank;
use super::counters::Counters;
use super::front::{Front, Got};
use super::ran::{Ends, Ran, Regret, Seen, Side};
use super::shopper::{Prepared, Shopper, Ways, prepare};
use super::spec::{Arrivals, Load, Scene, Shoppers};
use super::stage::Stage;
use crate::nodes::{self, Life};
use crate::world::{World, lock};

/// How often the slots are sampled.
const SAMPLE: Duration = Duration::from_millis(100);
/// Nodes that share a cap have divided it within this.
const DIVIDED: Duration = Duration::from_secs(5);

/// A runtime without sockets, whose time goes on only when nothing else is left to do.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without sockets needs nothing that could fail")
}

/// Runs work straight against a gateway, without a server, in virtual time; its result.
///
/// # Panics
/// When the work does.
pub fn straight<T, F>(work: impl FnOnce() -> F) -> T
where
    F: Future<Output = T>,
{
    runtime().block_on(async { work().await })
}

/// Plays a scene. The same scene comes to the same figures, on any machine.
///
/// # Panics
/// When production code does.
#[must_use]
pub fn play(scene: &Scene) -> Ran {
    server::random::seed_thread(scene.seed);
    let counters = Counters::default();
    let runtime = runtime();
    let world = {
        let _inside = runtime.enter();
        world(scene)
    };
    let mut ran = metrics::with_local_recorder(&counters, || {
        runtime.block_on(live(Arc::clone(&world), scene))
    });
    drop(runtime);
    nodes::forget(&world);
    ran.counters = counters.read().into_iter().fold(
        BTreeMap::new(),
        |mut all: BTreeMap<_, u64>, (name, count)| {
            *all.entry(name).or_default() += count;
            all
        },
    );
    ran
}

fn world(scene: &Scene) -> Arc<World> {
    let bank = Bank::new(scene.pg.clone(), scene.seed);
    let server = scene.server.clone();
    let times = Times {
        confirm_window: scene.pg.confirm_window,
        ..server.times
    };
    let nodes = server.nodes.max(1);
    let stage = Stage::new(server, bank);
    World::for_scene(scene.seed, |plan| plan.with(times, nodes), stage)
}

/// Everything that a scene in play needs.
struct Cast {
    world: Arc<World>,
    front: Arc<Front>,
    bank: Arc<Bank>,
    /// The first arrival.
    start: Instant,
    dice: ChaCha8Rng,
    /// Payments of shoppers who came: owner, order, key, gateway order id.
    came: Arc<Mutex<Vec<Prepared>>>,
}

impl Cast {
    fn now(&self) -> Millis {
        since(self.start)
    }
}

fn since(start: Instant) -> Millis {
    Millis::new(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX))
}

async fn live(world: Arc<World>, scene: &Scene) -> Ran {
    let Some(stage) = &world.stage else {
        return Ran::default();
    };
    for node in 0..world.plan.nodes {
        nodes::start(&world, node).await;
    }
    if world.plan.nodes > 1 {
        tokio::time::sleep(DIVIDED).await;
    }
    let bank = Arc::clone(&stage.bank);
    let peak = Arc::clone(&stage.in_flight);
    let front = Front::new(Arc::clone(&world), &scene.server);
    let cast = Cast {
        start: bank.begin(),
        dice: ChaCha8Rng::seed_from_u64(scene.seed),
        came: Arc::default(),
        front: Arc::clone(&front),
        bank: Arc::clone(&bank),
        world: Arc::clone(&world),
    };
    let zero = world.now();
    tokio::spawn(Arc::clone(&front).feel_pressure());
    tell_by_webhook(&cast, scene);
    for death in scene.server.deaths.clone() {
        tokio::spawn(die(Arc::clone(&world), cast.start, death));
    }
    let slots = tokio::spawn(sample(Arc::clone(&world), cast.start, ends_at(&scene.load)));
    let beside = beside(&cast, scene);
    let mut ran = Ran::default();
    load(cast, scene, &mut ran).await;
    let deadline = Instant::now() + scene.load.drain.to_duration();
    ran.drained = drained(&world, deadline).await;
    ran.slots = slots.await.unwrap_or_default();
    [ran.reads, ran.webhooks, ran.polls] = beside.await.unwrap_or_default();
    finish(&world, &bank, zero, &mut ran);
    ran.slots_peak = peak.most();
    ran
}

fn ends_at(load: &Load) -> Millis {
    let warm_up = load.warm_up.map_or(0, |(_, seconds)| seconds);
    Millis::from_secs(u64::from(warm_up + load.seconds))
}

/// When shoppers arrive, from the first on.
fn arrivals(load: &Load, dice: &mut ChaCha8Rng) -> Vec<Duration> {
    let mut all = Vec::new();
    let mut begin = 0.0;
    let phases = load.warm_up.into_iter().chain([(load.rate, load.seconds)]);
    for (rate, seconds) in phases {
        let (rate, seconds) = (f64::from(rate), f64::from(seconds));
        let count = (rate * seconds) as u32;
        let phase: f64 = dice.random();
        match load.arrivals {
            Arrivals::Even => {
                all.extend((0..count).map(|n| begin + (f64::from(n) + phase) / rate));
            }
            Arrivals::Bursts => {
                all.extend((0..count).map(|n| begin + (f64::from(n) / rate).floor()));
            }
            Arrivals::Poisson => {
                let mut at = 0.0;
                loop {
                    at -= (1.0 - dice.random::<f64>()).ln() / rate;
                    if at >= seconds {
                        break;
                    }
                    all.push(begin + at);
                }
            }
        }
        begin += seconds;
    }
    all.into_iter().map(Duration::from_secs_f64).collect()
}

/// Who of `count` has left: in every ten in a row the same number, in an order of their own.
fn departed(share: f64, count: usize, dice: &mut ChaCha8Rng) -> Vec<bool> {
    let mut all = Vec::with_capacity(count + 10);
    let mut owed = 0.0;
    while all.len() < count {
        owed += share * 10.0;
        let now = (owed + 1e-9).floor();
        owed -= now;
        let mut ten: Vec<bool> = (0..10).map(|index| f64::from(index) < now).collect();
        ten.shuffle(dice);
        all.extend(ten);
    }
    all.truncate(count);
    all
}

fn ways(shoppers: &Shoppers, departed: bool, dice: &mut ChaCha8Rng) -> Ways {
    let [leaves, twice, slow, second]: [f64; 4] = dice.random();
    let leaves = shoppers.impatient.filter(|(share, _)| leaves < *share);
    let slow = shoppers.slow_network.filter(|(share, _)| slow < *share);
    let second = shoppers.two_tabs.filter(|(share, _)| second < *share);
    Ways {
        client: shoppers.client,
        departed,
        leaves: leaves.map(|(_, when)| when.draw(dice)),
        twice: twice < shoppers.double_click,
        network: slow.map_or(Millis::ZERO, |(_, delay)| delay.draw(dice)),
        second_tab: second.map(|(_, when)| when.draw(dice)),
        pays_again: shoppers.pays_again,
    }
}

async fn load(mut cast: Cast, scene: &Scene, ran: &mut Ran) {
    let page = scene.server.times.page;
    let due = arrivals(&scene.load, &mut cast.dice);
    let departed = departed(scene.shoppers.departed, due.len(), &mut cast.dice);
    let mut shoppers: Vec<(String, JoinHandle<Seen>)> = Vec::with_capacity(due.len());
    for (number, (at, departed)) in due.into_iter().zip(departed).enumerate() {
        tokio::time::sleep_until(cast.start + at).await;
        let prepared = prepare(&cast.world, &cast.bank, number, page);
        let ways = ways(&scene.shoppers, departed, &mut cast.dice);
        lock(&cast.came).push(prepared.clone());
        let hands = || (Arc::clone(&cast.front), Arc::clone(&cast.bank));
        if let Some(later) = ways.second_tab {
            let (prepared, ways, hands) = (prepared.clone(), ways.clone(), hands());
            let at = cast.now().plus(later);
            tokio::spawn(async move {
                tokio::time::sleep(later.to_duration()).await;
                Shopper::new(hands, prepared, ways, (page, at)).live().await;
            });
        }
        let order = prepared.order.as_str().to_owned();
        let shopper = Shopper::new(hands(), prepared, ways, (page, cast.now()));
        shoppers.push((order, tokio::spawn(shopper.live())));
    }
    let mut seen = Vec::with_capacity(shoppers.len());
    for (order, shopper) in shoppers {
        let one = shopper.await.expect("a shopper does not panic");
        seen.push((order, one));
    }
    ran.seen = seen.into_iter().map(|(_, one)| one).collect();
}

/// Whether nothing is open any more before the deadline.
async fn drained(world: &World, deadline: Instant) -> bool {
    let is_open = || {
        let tables = lock(&world.tables);
        let mut attempts = tables.attempts.iter();
        attempts.any(|record| record.attempt.status.is_open())
    };
    while is_open() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    true
}

fn tell_by_webhook(cast: &Cast, scene: &Scene) {
    let Some(delay) = scene.pg.webhook else {
        return;
    };
    // The bank outlives nothing of this: the runtime drops all of it at the end.
    let front = Arc::downgrade(&cast.front);
    let dice = Mutex::new(ChaCha8Rng::seed_from_u64(scene.seed ^ 1));
    cast.bank.told_to(Box::new(move |key, order| {
        let Some(front) = front.upgrade() else { return };
        let after = delay.draw(&mut *lock(&dice));
        let (key, order) = (key.to_owned(), order.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(after.to_duration()).await;
            front.webhook(key, order).await;
        });
    }));
}

async fn die(world: Arc<World>, start: Instant, death: super::spec::Death) {
    tokio::time::sleep_until(start + death.at.to_duration()).await;
    Life::current(&world, death.node).die();
    if let Some(back) = death.back {
        tokio::time::sleep_until(start + back.to_duration()).await;
        nodes::start(&world, death.node).await;
    }
}

/// The slots in use, until nothing is in flight after the load.
async fn sample(world: Arc<World>, start: Instant, until: Millis) -> Vec<(Millis, u32)> {
    let mut samples = Vec::new();
    loop {
        let taken = {
            let nodes = lock(&world.nodes);
            let serving = (0..world.plan.nodes).filter_map(|node| nodes.serving(node));
            let lines = serving.map(|(app, _)| {
                let lines = app.lines.iter();
                lines.map(|line| line.slots.in_flight()).sum::<u32>()
            });
            lines.sum()
        };
        let now = since(start);
        samples.push((now, taken));
        if now > until && taken == 0 {
            return samples;
        }
        tokio::time::sleep(SAMPLE).await;
    }
}

/// Starts what is asked beside the confirms.
fn beside(cast: &Cast, scene: &Scene) -> JoinHandle<[Side; 3]> {
    let until = cast.start + ends_at(&scene.load).to_duration();
    let beside = scene.beside;
    let hands = || (Arc::clone(&cast.front), Arc::clone(&cast.came), cast.start);
    let loops = [
        tokio::spawn(side(hands(), (beside.reads, until), Kind::Read)),
        tokio::spawn(side(hands(), (beside.webhooks, until), Kind::Webhook)),
        tokio::spawn(side(hands(), (beside.polls, until), Kind::Poll)),
    ];
    tokio::spawn(async move {
        let mut sides = [Side::default(), Side::default(), Side::default()];
        for (side, ran) in sides.iter_mut().zip(loops) {
            *side = ran.await.unwrap_or_default();
        }
        sides
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Webhook,
    Poll,
}

type Hands = (Arc<Front>, Arc<Mutex<Vec<Prepared>>>, Instant);

async fn side((front, came, start): Hands, (rate, until): (u32, Instant), kind: Kind) -> Side {
    let mut side = Side::default();
    let mut asked = JoinSet::new();
    for number in 0_u32.. {
        if rate == 0 {
            break;
        }
        let due = start + Duration::from_secs_f64(f64::from(number) / f64::from(rate));
        if due >= until {
            break;
        }
        tokio::time::sleep_until(due).await;
        let of = {
            let came = lock(&came);
            let pick = front.world.draw(0, came.len().saturating_sub(1) as u64);
            came.get(usize::try_from(pick).unwrap_or(0)).cloned()
        };
        side.asked += 1;
        let front = Arc::clone(&front);
        asked.spawn(async move {
            let got = match (kind, of) {
                (Kind::Read, _) | (_, None) => front.read().await,
                (Kind::Webhook, Some(of)) => {
                    let key = of.request.payment_key.as_str().to_owned();
                    front
                        .webhook(key, of.request.order_id.as_str().to_owned())
                        .await
                }
                (Kind::Poll, Some(of)) => match front.poll(of.owner, of.order).await {
                    payment::checkout::Event::PollAnswered(_) => Got::Answer(true),
                    payment::checkout::Event::PollShed { .. } => Got::Shed,
                    _ => Got::Nobody,
                },
            };
            (got, since(due))
        });
    }
    for (got, took) in asked.join_all().await {
        match got {
            Got::Answer(true) => side.served.push(took),
            Got::Shed => side.shed += 1,
            Got::Answer(false) | Got::Nobody => side.failed += 1,
        }
    }
    side
}

fn finish(world: &World, bank: &Bank, zero: Millis, ran: &mut Ran) {
    ran.books = bank.books();
    let charges = bank.charges();
    let tables = lock(&world.tables);
    for (number, seen) in ran.seen.iter_mut().enumerate() {
        let order = payment::id::OrderId::parse(&format!("ord_{number}")).expect("a plain id");
        let Some(record) = tables.order(&order) else {
            continue;
        };
        for attempt in &record.attempts {
            let (stand, ever) = charges
                .get(attempt.gateway_order_id.as_str())
                .copied()
                .unwrap_or_default();
            // Attempts that share a gateway order id share its charges.
            let first = record
                .attempts
                .iter()
                .find(|other| other.gateway_order_id == attempt.gateway_order_id);
            if first.is_some_and(|first| first.id == attempt.id) {
                seen.charged += stand;
                seen.charged_ever += ever;
            }
        }
    }
    ran.ends = ends(&tables);
    drop(tables);
    let Some(stage) = &world.stage else { return };
    let mut since = BTreeMap::new();
    let mut unknown = 0_i64;
    for passage in lock(&stage.passages).iter() {
        let at = passage.at.less(zero);
        if passage.after == AttemptStatus::Unknown {
            ran.ever_unknown += 1;
            since.insert(passage.attempt, at);
            unknown += 1;
            ran.unknown.push((at, unknown));
        } else if passage.before == AttemptStatus::Unknown {
            let began = since.get(&passage.attempt).copied().unwrap_or(at);
            ran.time_to_known.push(at.less(began));
            unknown -= 1;
            ran.unknown.push((at, unknown));
        }
    }
    ran.lasted = world.now().less(zero);
    ran.regret = Regret::of(&ran.seen);
}

fn ends(tables: &crate::tables::Tables) -> Ends {
    let mut ends = Ends::default();
    for record in &tables.attempts {
        let attempt = &record.attempt;
        ends.claimed += u64::from(record.claimed_at.is_some());
        match attempt.status {
            AttemptStatus::Approved => ends.approved += 1,
            AttemptStatus::Failed if attempt.reach == Reach::NotSent => ends.not_sent += 1,
            AttemptStatus::Failed if attempt.reason == Some(Reason::PgRefused) => {
                ends.pg_refused += 1;
            }
            AttemptStatus::Failed => ends.failed += 1,
            AttemptStatus::Canceled | AttemptStatus::PartiallyCanceled => ends.given_back += 1,
            status if status.is_open() => ends.open += 1,
            _ => {}
        }
    }
    ends
}
