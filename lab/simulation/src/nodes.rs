//! The nodes: how one is started, dies, and comes back.
//!
//! A node that dies is not torn down task by task: from that moment on none of its calls to the store or the gateway and
//! none of its answers comes through, whatever await it stood at. What it held in memory is gone with it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use payment::time::Millis;
use server::app::{App, Line, Working};
use server::changes::OrderCache;
use server::clock::{Clock, EpochMs};
use server::config::{Config, Environment, Settings, Switch};
use server::gateway::Gateway;
use server::http::guard::RateLimits;
use server::lanes::Lanes;
use server::pressure::Pressure;
use server::store::Store;
use server::strangers::Strangers;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::fault::Fault;
use crate::gateway::Port;
use crate::store::NodeStore;
use crate::world::{START, World, lock};

/// The most nodes of a run.
const MOST: usize = 8;

thread_local! {
    /// How far the nodes' wall clocks are off, ms. Clocks outlive everything, so each thread has its own for ever.
    static SKEWS: &'static [AtomicI64; MOST] = Box::leak(Box::default());
    /// The nodes' starts by the clock that they share.
    static STARTS: &'static [AtomicI64; MOST] = Box::leak(Box::default());
    /// Building a configuration reads defaults of all kinds: once is enough.
    static CONFIG: RefCell<Option<Config>> = const { RefCell::new(None) };
}

/// What is known of the nodes.
pub(crate) struct Nodes {
    list: Vec<Node>,
    skews: &'static [AtomicI64; MOST],
    /// The gateway takes calls and answers none.
    pub(crate) bank_stopped: bool,
    /// Webhooks sent, and those that are still to be taken.
    pub(crate) hooks: u64,
    pub(crate) hooks_on_the_way: u64,
    /// Tabs opened so far.
    pub(crate) tabs: u64,
}

#[derive(Default)]
struct Node {
    /// Counts its processes; a dead one's number is never current again.
    life: u32,
    app: Option<Arc<App>>,
    /// Set when the current process dies.
    over: CancellationToken,
    /// Its place among the nodes, which it gives up when it is stopped in good order.
    place: Option<JoinHandle<()>>,
}

impl Nodes {
    pub(crate) fn new(count: usize) -> Self {
        let skews = SKEWS.with(|skews| *skews);
        for skew in skews {
            skew.store(0, Ordering::Relaxed);
        }
        Self {
            list: (0..count).map(|_| Node::default()).collect(),
            skews,
            bank_stopped: false,
            hooks: 0,
            hooks_on_the_way: 0,
            tabs: 0,
        }
    }

    /// The current process of each node.
    pub(crate) fn lives(&self) -> Vec<u32> {
        self.list.iter().map(|node| node.life).collect()
    }

    /// A node's process, if it takes requests, and what tells of its end.
    pub(crate) fn serving(&self, node: usize) -> Option<(Arc<App>, CancellationToken)> {
        let node = self.list.get(node)?;
        Some((node.app.clone()?, node.over.clone()))
    }
}

/// Lets go of all processes of a run that is over.
pub(crate) fn forget(world: &World) {
    let list = std::mem::take(&mut lock(&world.nodes).list);
    drop(list);
}

impl World {
    /// Any node, as a proxy without favourites picks it.
    pub(crate) fn any_node(&self) -> usize {
        usize::try_from(self.draw(0, self.plan.nodes as u64 - 1)).unwrap_or(0)
    }
}

/// One process of a node.
#[derive(Clone)]
pub(crate) struct Life {
    world: Arc<World>,
    node: usize,
    life: u32,
}

impl Life {
    pub(crate) const fn who(&self) -> (usize, u32) {
        (self.node, self.life)
    }

    /// A node's current process.
    pub(crate) fn current(world: &Arc<World>, node: usize) -> Self {
        Self {
            world: Arc::clone(world),
            node,
            life: lock(&world.nodes).list[node].life,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        lock(&self.world.nodes).list[self.node].life != self.life
    }

    /// Returns at once to the living and never to the dead.
    pub(crate) async fn hold(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// Dies here if the fault strikes.
    pub(crate) async fn may_die(&self, fault: Fault) {
        if self.world.strikes(fault) {
            self.die();
        }
        self.hold().await;
    }

    /// The process is gone, and the node comes back after a while.
    pub(crate) fn die(&self) {
        if self.is_over() {
            return;
        }
        {
            let mut nodes = lock(&self.world.nodes);
            let node = &mut nodes.list[self.node];
            node.life += 1;
            node.app = None;
            std::mem::take(&mut node.over).cancel();
        }
        self.world.note("node", format_args!("{} dies", self.node));
        let (world, node) = (Arc::clone(&self.world), self.node);
        if world.stage.is_some() {
            return;
        }
        tokio::spawn(async move {
            world.pause(100, 8_000).await;
            start(&world, node).await;
        });
    }
}

/// Starts a node's process: it takes over what was interrupted before it takes requests.
pub(crate) async fn start(world: &Arc<World>, node: usize) {
    let life = Life::current(world, node);
    let app = match app(world, &life) {
        Ok(app) => app,
        Err(error) => return world.wrong(format_args!("a node cannot be made: {error:#}")),
    };
    let begun = Arc::clone(&app);
    let recovered = async move {
        while server::nodes::join(&begun).await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        while server::recovery::interrupt(&begun).await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    recovered.await;
    if life.is_over() {
        return;
    }
    world.note("node", format_args!("{node} serves"));
    tokio::spawn(server::recovery::run(Arc::clone(&app)));
    tokio::spawn(server::inbox::run(Arc::clone(&app)));
    tokio::spawn(server::changes::run(Arc::clone(&app)));
    tokio::spawn(server::effects::run(Arc::clone(&app)));
    let place = tokio::spawn(server::nodes::run(Arc::clone(&app)));
    {
        let mut nodes = lock(&world.nodes);
        nodes.list[node].app = Some(app);
        nodes.list[node].place = Some(place);
    }
    tokio::spawn(fate(Arc::clone(world), life));
}

/// What befalls a process from outside, second by second.
async fn fate(world: Arc<World>, life: Life) {
    while !world.is_calm() {
        world.pause(900, 1_100).await;
        if life.is_over() {
            return;
        }
        if world.strikes(Fault::CrashAnytime) {
            return life.die();
        }
        if world.strikes(Fault::Deploy) {
            return deploy(&world, &life).await;
        }
        // One that owns its database has no other clock to go by.
        let step = if world.plan.nodes > 1 && world.strikes(Fault::ClockAstray) {
            3_600_000
        } else if world.strikes(Fault::ClockLeap) {
            world.plan.times.confirm_window.get() / 4
        } else if world.strikes(Fault::ClockStep) {
            2_000
        } else {
            continue;
        };
        let by = i64::try_from(world.draw(0, 2 * step)).unwrap_or(0);
        let by = by - i64::try_from(step).unwrap_or(0);
        let skews = lock(&world.nodes).skews;
        skews[life.node].store(by, Ordering::Relaxed);
        world.note(
            "node",
            format_args!("{}'s clock is off by {by} ms", life.node),
        );
    }
}

/// Stops a process in good order, waits for its work, and lets it go.
async fn deploy(world: &Arc<World>, life: &Life) {
    let (app, place) = {
        let node = &mut lock(&world.nodes).list[life.node];
        (node.app.take(), node.place.take())
    };
    let (Some(app), Some(place)) = (app, place) else {
        return;
    };
    world.note("node", format_args!("{} is stopped", life.node));
    app.stopping.cancel();
    app.tracker.close();
    let drain = app.config.drain.to_duration();
    let drained = tokio::time::timeout(drain, app.tracker.wait()).await;
    if drained.is_ok() {
        let leaving = app.config.times.database_wait.times(3).to_duration();
        let _ = tokio::time::timeout(leaving, place).await;
    }
    life.die();
}

fn config() -> anyhow::Result<Config> {
    CONFIG.with_borrow_mut(|kept| {
        if let Some(config) = kept {
            return Ok(config.clone());
        }
        let settings = Settings {
            env: Some(Environment::Development),
            addr: Some(SocketAddr::from(([127, 0, 0, 1], 1))),
            ..Settings::default()
        };
        let config = Config::check(settings).context("the default settings")?;
        *kept = Some(config.clone());
        Ok(config)
    })
}

fn app(world: &Arc<World>, life: &Life) -> anyhow::Result<Arc<App>> {
    let config = Config {
        times: world.plan.times,
        order_ttl: world.plan.order_ttl,
        rate_limits: Switch::Off,
        late_success: world.plan.late,
        mail_dir: None,
        ..config()?
    };
    let config = match &world.stage {
        Some(stage) => stage.configured(config),
        None => config,
    };
    let skews = lock(&world.nodes).skews;
    let shared = STARTS.with(|starts| &starts[life.node]);
    let clock = Clock::simulated(EpochMs(START).plus(world.now()), &skews[life.node], shared);
    let store: Arc<dyn Store> = Arc::new(NodeStore::new(Arc::clone(world), life.clone()));
    let gateway: Arc<dyn Gateway> = match &world.stage {
        Some(stage) => stage.gateway(life.clone()),
        None => Arc::new(Port::new(Arc::clone(world), life.clone())),
    };
    let line = Arc::new(Line::new(gateway, config.times, &config, clock));
    Ok(Arc::new(App {
        lines: vec![line],
        working: Working::default(),
        lanes: Lanes::new(
            world.stage.is_some() && config.lanes == Switch::On,
            config.times.cap,
        ),
        pressure: Pressure::default(),
        rate_limits: RateLimits::default(),
        strangers: Strangers::new(&config),
        cache: OrderCache::default(),
        clock,
        node: format!("node-{}-{}", life.node, life.life),
        polls: Arc::clone(&store),
        reads: Arc::clone(&store),
        merchants: None,
        store,
        tracker: TaskTracker::new(),
        stopping: CancellationToken::new(),
        recovery: Notify::new(),
        inbox: Notify::new(),
        console: None,
        config,
    }))
}

/// Puts every clock right.
pub(crate) fn set_clocks(world: &World) {
    for skew in lock(&world.nodes).skews {
        skew.store(0, Ordering::Relaxed);
    }
}

/// How long it is until the farthest next look of a run must have come.
pub(crate) fn longest_drain(world: &World) -> Millis {
    let times = &world.plan.times;
    // The settling time; a refused cancel's pause; a look that a crash left leased; work that died with its process; the
    // longest step between looks, twice.
    times
        .settling_time()
        .plus(times.pg_timeout.times(5))
        .plus(Millis::from_secs(600 + 30 + 30 + 120 + 300))
}
