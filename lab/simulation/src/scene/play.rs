//! Plays a scene: a runtime of its own with paused time, the nodes, the load, then calm until everything is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use payment::time::{Millis, Times};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bank::Bank;
use super::beside::beside;
use super::counters::Counters;
use super::draw::{arrivals, departed, ways};
use super::finish::finish;
use super::front::Front;
use super::ran::{Ran, Seen};
use super::shopper::{Prepared, Shopper, prepare};
use super::spec::{Death, Load, Scene};
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
pub(super) struct Cast {
    world: Arc<World>,
    pub(super) front: Arc<Front>,
    bank: Arc<Bank>,
    /// The first arrival.
    pub(super) start: Instant,
    dice: ChaCha8Rng,
    /// Payments of shoppers who came: owner, order, key, gateway order id.
    pub(super) came: Arc<Mutex<Vec<Prepared>>>,
}

impl Cast {
    fn now(&self) -> Millis {
        since(self.start)
    }
}

pub(super) fn since(start: Instant) -> Millis {
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

/// When the load is over.
pub(super) fn ends_at(load: &Load) -> Millis {
    let warm_up = load.warm_up.map_or(0, |(_, seconds)| seconds);
    Millis::from_secs(u64::from(warm_up + load.seconds))
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

async fn die(world: Arc<World>, start: Instant, death: Death) {
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
