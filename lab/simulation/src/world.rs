//! What all parties of one run share: chance, virtual time, the gateway's books, the database, the timeline and what was
//! found wrong.

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use payment::time::Millis;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::time::Instant;

use crate::bug::Bug;
use crate::fault::{Counts, Fault};
use crate::ledger::Ledger;
use crate::nodes::Nodes;
use crate::plan::Plan;
use crate::scene::Stage;
use crate::tables::Tables;
use crate::watch::Watch;

/// The wall time at which every run starts, ms since 1970.
pub(crate) const START: i64 = 1_800_000_000_000;

/// One run's world.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) bug: Option<Bug>,
    /// What is measured in place of hunting faults; then nothing is checked, and nothing written down.
    pub(crate) stage: Option<Stage>,
    start: Instant,
    calm: AtomicBool,
    chance: Mutex<ChaCha8Rng>,
    counts: Mutex<Counts>,
    timeline: Mutex<Timeline>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) tables: Mutex<Tables>,
    pub(crate) nodes: Mutex<Nodes>,
    pub(crate) watch: Mutex<Watch>,
}

struct Timeline {
    hash: DefaultHasher,
    /// Kept only where somebody will read it.
    lines: Option<Vec<String>>,
    scratch: String,
    wrong: Vec<String>,
}

/// Locks; what panicked is reported by the run.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, trace: bool, without: &[Fault]) -> Arc<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let plan = without
            .iter()
            .fold(Plan::draw(&mut rng), |plan, fault| plan.without(*fault));
        Self::of(plan.of_seed(seed), rng, bug, trace, None)
    }

    /// A world of one node in which nothing goes wrong, with a single piece of what is scarce.
    pub(crate) fn at_peace() -> Arc<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let drawn = Plan::draw(&mut rng);
        let plan = Fault::ALL
            .iter()
            .fold(drawn, |plan, fault| plan.without(*fault));
        Self::of(plan.of_one_node(), rng, None, false, None)
    }

    /// A world without faults for a scene.
    pub(crate) fn for_scene(seed: u64, plan: impl FnOnce(Plan) -> Plan, stage: Stage) -> Arc<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let drawn = Plan::draw(&mut rng);
        let quiet = Fault::ALL
            .iter()
            .fold(drawn, |plan, fault| plan.without(*fault));
        let world = Self::of(plan(quiet.of_one_node()), rng, None, false, Some(stage));
        world.calm.store(true, Ordering::Relaxed);
        world
    }

    fn of(
        plan: Plan,
        rng: ChaCha8Rng,
        bug: Option<Bug>,
        trace: bool,
        stage: Option<Stage>,
    ) -> Arc<Self> {
        Arc::new(Self {
            bug,
            stage,
            start: Instant::now(),
            calm: AtomicBool::new(false),
            chance: Mutex::new(rng),
            counts: Mutex::new(Counts::default()),
            timeline: Mutex::new(Timeline {
                hash: DefaultHasher::new(),
                lines: trace.then(Vec::new),
                scratch: String::new(),
                wrong: Vec::new(),
            }),
            ledger: Mutex::new(Ledger::default()),
            tables: Mutex::new(Tables::new(plan.scarce)),
            nodes: Mutex::new(Nodes::new(plan.nodes)),
            watch: Mutex::new(Watch::default()),
            plan,
        })
    }

    /// Virtual time since the start.
    pub(crate) fn now(&self) -> Millis {
        Millis::new(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Ends the faults.
    pub(crate) fn heal(&self) {
        self.calm.store(true, Ordering::Relaxed);
        self.note("world", format_args!("the faults end"));
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Whether a fault strikes at this opportunity.
    pub(crate) fn strikes(&self, fault: Fault) -> bool {
        let rate = self.plan.rate(fault);
        if rate <= 0.0 || self.is_calm() {
            return false;
        }
        let strikes = lock(&self.chance).random_bool(rate.min(1.0));
        if strikes {
            lock(&self.counts).add(fault);
            self.note("fault", format_args!("{}", fault.label()));
        }
        strikes
    }

    /// A uniform number of `low..=high`.
    pub(crate) fn draw(&self, low: u64, high: u64) -> u64 {
        lock(&self.chance).random_range(low..=high.max(low))
    }

    /// True with this probability.
    pub(crate) fn perhaps(&self, probability: f64) -> bool {
        lock(&self.chance).random_bool(probability)
    }

    /// Waits for a uniform number of ms.
    pub(crate) async fn pause(&self, low: u64, high: u64) {
        let ms = self.draw(low, high);
        if ms > 0 {
            tokio::time::sleep(Millis::new(ms).to_duration()).await;
        }
    }

    /// Adds to the timeline.
    pub(crate) fn note(&self, who: &str, what: fmt::Arguments<'_>) {
        if self.stage.is_some() {
            return;
        }
        let at = self.now().get();
        let mut timeline = lock(&self.timeline);
        let timeline = &mut *timeline;
        timeline.scratch.clear();
        let _ = write!(
            timeline.scratch,
            "{:>5}.{:03} {who:<8} {what}",
            at / 1_000,
            at % 1_000
        );
        timeline.hash.write(timeline.scratch.as_bytes());
        if let Some(lines) = &mut timeline.lines {
            lines.push(timeline.scratch.clone());
        }
    }

    /// Notes that something that must always hold does not.
    pub(crate) fn wrong(&self, what: fmt::Arguments<'_>) {
        self.note("WRONG", what);
        let mut timeline = lock(&self.timeline);
        timeline.wrong.push(what.to_string());
    }

    /// As [`World::wrong`], after the run's clock has gone.
    pub(crate) fn wrong_outside(&self, what: &str) {
        lock(&self.timeline)
            .wrong
            .insert(0, format!("a panic: {what}"));
    }

    pub(crate) fn went_wrong(&self) -> bool {
        !lock(&self.timeline).wrong.is_empty()
    }

    /// What the run came to: what was wrong, the hash of the timeline, its lines and the counts.
    pub(crate) fn result(&self) -> (Vec<String>, u64, Vec<String>, Counts) {
        let mut timeline = lock(&self.timeline);
        let lines = timeline.lines.take().unwrap_or_default();
        (
            std::mem::take(&mut timeline.wrong),
            timeline.hash.finish(),
            lines,
            lock(&self.counts).clone(),
        )
    }
}
