//! What all tasks of one running gateway share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use crate::engine::{Engine, Webhook};
use crate::scenario::Scenario;

/// Unix milliseconds which never run backwards.
#[derive(Debug)]
pub(crate) struct Clock {
    started_ms: u64,
    started: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let started_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(0);
        Self {
            started_ms,
            started: Instant::now(),
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.started_ms + u64::try_from(self.started.elapsed().as_millis()).unwrap_or(0)
    }
}

/// One running gateway.
#[derive(Debug)]
pub(crate) struct Shared {
    engine: Mutex<Engine>,
    clock: Clock,
    webhook_url: Mutex<Option<String>>,
    /// Where browsers reach the window, if that is elsewhere.
    pub(crate) public_url: Option<String>,
    /// Says that the scenario changed.
    pub(crate) changed: watch::Sender<()>,
    /// Wakes the webhook pump before its time.
    pub(crate) pump: Notify,
    /// When the pump wakes by itself.
    pump_wakes_ms: AtomicU64,
    pub(crate) gate: Gate,
    pub(super) connections: TaskTracker,
    pub(super) control_closing: CancellationToken,
    /// Everything ends now: connections are reset, work and webhooks are dropped.
    pub(crate) stopping: CancellationToken,
}

impl Shared {
    pub(super) fn new(
        engine: Engine,
        clock: Clock,
        gate: Gate,
        webhook_url: Option<String>,
    ) -> Self {
        Self {
            engine: Mutex::new(engine),
            clock,
            webhook_url: Mutex::new(webhook_url),
            public_url: None,
            changed: watch::Sender::new(()),
            pump: Notify::new(),
            pump_wakes_ms: AtomicU64::new(0),
            gate,
            connections: TaskTracker::new(),
            control_closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
        }
    }

    /// The time.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Asks or tells the engine something, and wakes the pump when that made something due.
    pub(crate) fn engine<T>(&self, act: impl FnOnce(&mut Engine, u64) -> T) -> T {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut engine, self.clock.now_ms());
        let due_ms = engine.next_due().unwrap_or(u64::MAX);
        if due_ms < self.pump_wakes_ms.load(Ordering::Relaxed) {
            self.pump.notify_one();
        }
        result
    }

    /// What the pump has to send now, and when to ask again.
    pub(crate) fn tick(&self) -> (Vec<Webhook>, Option<u64>) {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let due = engine.tick(self.clock.now_ms());
        let next_ms = engine.next_due();
        // Stored under the engine's lock, so that a later change sees it and wakes the pump.
        self.pump_wakes_ms
            .store(next_ms.unwrap_or(u64::MAX), Ordering::Relaxed);
        (due, next_ms)
    }

    /// Replaces the scenario; opens or closes the main socket where it is `up`'s to do so.
    pub(crate) async fn set_scenario(
        self: &std::sync::Arc<Self>,
        scenario: Scenario,
    ) -> std::io::Result<()> {
        let up = !scenario.all_down();
        self.engine(|engine, _| engine.set_scenario(scenario));
        self.changed.send_replace(());
        if self.gate.follows_up {
            if up {
                self.gate.open(self).await?;
            } else {
                self.gate.close().await;
            }
        }
        Ok(())
    }

    pub(crate) fn webhook_url(&self) -> Option<String> {
        self.webhook_url
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_webhook_url(&self, url: Option<String>) {
        *self
            .webhook_url
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = url;
    }
}
