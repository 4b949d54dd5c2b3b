//! What a world holds while a scene is played in it: the settings, the gateway, the writer's time, and what was recorded.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use payment::attempt::AttemptStatus;
use payment::time::Millis;
use server::clock::EpochMs;
use server::config::{Config, Switch};
use server::gateway::Gateway;
use server::store::{AttemptId, Recorded};
use tokio::sync::Semaphore;

use super::bank::Bank;
use super::port::{InFlight, ScenePort};
use super::spec::Server;
use crate::nodes::Life;
use crate::world::{START, lock};

/// An attempt came from one state into another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    pub(super) at: Millis,
    pub(super) attempt: AttemptId,
    pub(super) before: AttemptStatus,
    pub(super) after: AttemptStatus,
}

/// A scene being played.
pub(crate) struct Stage {
    pub(super) server: Server,
    pub(super) bank: Arc<Bank>,
    writer: Option<(Duration, Semaphore)>,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) passages: Mutex<Vec<Passage>>,
}

impl Stage {
    pub(super) fn new(server: Server, bank: Arc<Bank>) -> Self {
        let writer = server
            .commit
            .map(|takes| (takes.to_duration(), Semaphore::new(1)));
        Self {
            server,
            bank,
            writer,
            in_flight: Arc::default(),
            passages: Mutex::default(),
        }
    }

    /// The server's settings.
    pub(crate) fn configured(&self, config: Config) -> Config {
        let server = &self.server;
        let switch = |on| if on { Switch::On } else { Switch::Off };
        let mut bounds = config.bounds;
        bounds.inquiries = server.inquiries;
        Config {
            deadline_check: switch(server.deadline_check),
            resend: server.resend,
            resend_per_mille: server.resend_per_mille,
            circuit: server.circuit,
            lanes: switch(server.lanes),
            bounds,
            ..config
        }
    }

    pub(crate) fn gateway(&self, life: Life) -> Arc<dyn Gateway> {
        let timeout = self.server.times.pg_timeout;
        let in_flight = Arc::clone(&self.in_flight);
        let bank = Arc::clone(&self.bank);
        Arc::new(ScenePort::new(bank, life, timeout, in_flight))
    }

    /// The writer's turn for one commit; `None` when it does not come within the wait.
    pub(crate) async fn commit(&self, wait: Millis) -> Option<()> {
        let Some((takes, writer)) = &self.writer else {
            return Some(());
        };
        let turn = tokio::time::timeout(wait.to_duration(), writer.acquire()).await;
        let _turn = turn.ok()?.ok()?;
        tokio::time::sleep(*takes).await;
        Some(())
    }

    pub(crate) fn note_record(&self, at: Millis, recorded: &Recorded) {
        let (before, after) = (recorded.before.status, recorded.after.attempt.status);
        if before != after {
            lock(&self.passages).push(Passage {
                at,
                attempt: recorded.after.id,
                before,
                after,
            });
        }
    }

    /// Whether recovery looks at whole multiples of a time, and not when each payment is due.
    pub(crate) const fn looks_by_the_clock(&self) -> bool {
        self.server.recovery_every.is_some()
    }

    /// The latest moment up to `now` at which recovery looks.
    pub(crate) fn last_look(&self, now: EpochMs) -> EpochMs {
        self.to_step(now, false)
    }

    /// The earliest moment from `at` on at which recovery looks.
    pub(crate) fn next_look(&self, at: EpochMs) -> EpochMs {
        self.to_step(at, true)
    }

    fn to_step(&self, at: EpochMs, up: bool) -> EpochMs {
        let Some(every) = self.server.recovery_every else {
            return at;
        };
        let step = i64::try_from(every.get()).unwrap_or(i64::MAX).max(1);
        let since = at.0 - START;
        let steps = since.div_euclid(step) + i64::from(up && since.rem_euclid(step) > 0);
        EpochMs(START + steps * step)
    }
}
