//! The background worker: asks about what is not final, from stored rows by state and age, never from memory.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use payment::attempt::Event;
use payment::time::Millis;

use crate::app::{App, Line};
use crate::metrics;
use crate::resolve;
use crate::store::{AttemptId, AttemptRecord, Evidence, StoreError};

/// How often the worker looks without being woken.
const TICK: Millis = Millis::from_secs(1);
/// How often a silent gateway is asked about its oldest unknown, whatever that one's own back-off says: this is what
/// notices within seconds that it answers again.
const PROBE: Millis = Millis::from_secs(2);
/// Rows taken in one look.
const BATCH: u32 = 64;

/// Attempts that are being asked about right now, so that none is asked about twice at once.
type Asking = Arc<Mutex<HashSet<AttemptId>>>;

/// Makes unknown what an earlier incarnation left approving: it died after the claim and nobody can tell how far it came.
///
/// # Errors
/// [`StoreError`]; the server must not start then.
pub async fn interrupt(app: &App) -> Result<u64, StoreError> {
    let left = app.store.approving().await?;
    for id in &left {
        let evidence = Evidence {
            source: "start",
            told: String::new(),
            at: app.clock.epoch(),
        };
        app.store
            .record(*id, Event::Interrupted, evidence, app.late())
            .await?;
    }
    Ok(u64::try_from(left.len()).unwrap_or(u64::MAX))
}

/// Runs until the server stops.
pub async fn run(app: Arc<App>) {
    let asking = Asking::default();
    let mut probed = Millis::ZERO;
    while !app.stopping.is_cancelled() {
        if let Err(error) = round(&app, &asking, &mut probed).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "recovery could not look"
            );
        }
        let pause = pause(&app).await.to_duration();
        tokio::select! {
            () = app.stopping.cancelled() => {}
            () = app.recovery.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Until the next attempt is due, at most a tick, at least a moment.
async fn pause(app: &App) -> Millis {
    let due = app.store.next_due().await.ok().flatten();
    due.map_or(TICK, |at| {
        at.since(app.clock.epoch()).clamp(Millis::new(20), TICK)
    })
}

async fn round(app: &Arc<App>, asking: &Asking, probed: &mut Millis) -> Result<(), StoreError> {
    let now = app.clock.epoch();
    for attempt in app.store.due(now, BATCH).await? {
        dispatch(app, asking, attempt);
    }
    if app.clock.now() >= probed.plus(PROBE) {
        *probed = app.clock.now();
        for line in app.lines.iter().filter(|line| line.is_silent()) {
            if let Some(attempt) = app.store.oldest_waiting(line.gateway.name()).await? {
                dispatch(app, asking, attempt);
            }
        }
    }
    for id in app.store.lapsed_windows(now, BATCH).await? {
        let evidence = Evidence {
            source: "clock",
            told: String::new(),
            at: now,
        };
        app.store
            .record(id, Event::WindowClosed, evidence, app.late())
            .await?;
    }
    app.store.lapse_orders(now).await?;
    metrics::census(app.store.census().await?, now);
    Ok(())
}

/// Starts one look, if a place is free and nobody looks at it already; otherwise it stays due.
fn dispatch(app: &Arc<App>, asking: &Asking, attempt: AttemptRecord) {
    let Some(line) = app.line(&attempt.gateway).map(Arc::clone) else {
        return;
    };
    let Ok(place) = Arc::clone(&line.inquiries).try_acquire_owned() else {
        return;
    };
    if !asking
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .insert(attempt.id)
    {
        return;
    }
    let (app, asking) = (Arc::clone(app), Arc::clone(asking));
    app.tracker.clone().spawn(async move {
        look(&app, &line, &attempt).await;
        asking
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .remove(&attempt.id);
        drop(place);
        // A place is free again: whatever waits for one is looked at.
        app.recovery.notify_one();
    });
}

async fn look(app: &Arc<App>, line: &Line, attempt: &AttemptRecord) {
    // The row may have moved since it was read.
    let current = match app.store.attempt(attempt.id).await {
        Ok(Some(current)) if current.ask_at.is_some() => current,
        Ok(_) => return,
        Err(error) => {
            tracing::warn!(
                attempt = attempt.id.0,
                error = &error as &dyn std::error::Error,
                "recovery could not read"
            );
            return;
        }
    };
    if let Err(error) = resolve::look(app, line, &current).await {
        tracing::warn!(
            attempt = attempt.id.0,
            error = &error as &dyn std::error::Error,
            "recovery could not record"
        );
    }
}
