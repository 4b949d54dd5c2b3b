//! The background worker: asks about what is not final, from stored rows by state and age, never from memory.

use std::sync::Arc;

use payment::attempt::Event;
use payment::time::Millis;

use crate::app::{App, Line, Working};
use crate::changes;
use crate::clock::EpochMs;
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

/// Most attempts of a gateway that are asked about at a time before their orders end: far fewer than would fill the looks of a round.
const ASKED_BEFORE_END: u32 = 16;

/// How often the change feed is swept.
const FEED_SWEEP: Millis = Millis::from_secs(60);

/// How long beyond the gateway timeout an attempt may be approving before its work is taken for dead.
const WORK_MARGIN: Millis = Millis::from_secs(30);
/// How long a look that the database failed keeps its place, so that it is not repeated at once.
const FAULT_PAUSE: Millis = Millis::from_secs(1);

/// Makes unknown what dead nodes left approving, this one's earlier incarnation among them: they died after the claim and
/// nobody can tell how far they came. Every attempt that waits gets its next look.
///
/// # Errors
/// [`StoreError`]; the server must not start then.
pub async fn interrupt(app: &App) -> Result<usize, StoreError> {
    let now = app.clock.epoch();
    let dead = app.store.approving_of_dead_nodes(&app.node, now).await?;
    make_unknown(app, &dead).await?;
    app.store.rearm(now).await?;
    if !app.store.is_shared() {
        // Nobody else can be looking or calling: what the earlier incarnation had taken is due at once.
        app.store.free_calls().await?;
        for line in &app.lines {
            app.store.wake_waiting(line.gateway.name(), now).await?;
        }
    }
    metrics::census(app.store.census().await?, now);
    Ok(dead.len())
}

async fn make_unknown(app: &App, left: &[AttemptId]) -> Result<(), StoreError> {
    // What this process is working on is alive, whatever a clock or a lease says.
    let left = left.iter().filter(|id| !app.working.holds(**id));
    for id in left {
        app.store
            .record(*id, Event::Interrupted, evidence("start", app), app.late())
            .await?;
    }
    Ok(())
}

fn evidence(source: &'static str, app: &App) -> Evidence {
    Evidence::plain(source, app.clock.epoch())
}

/// Runs until the server stops.
pub async fn run(app: Arc<App>) {
    // Attempts that are being asked about right now, so that none is asked about twice at once.
    let asking = Working::default();
    let mut rounds = Rounds::default();
    while !app.stopping.is_cancelled() {
        if let Err(error) = round(&app, &asking, &mut rounds).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "recovery could not look"
            );
            tokio::time::sleep(FAULT_PAUSE.to_duration()).await;
        }
        let pause = pause(&app).await.to_duration();
        tokio::select! {
            // In this order, so that a simulated run repeats exactly.
            biased;
            () = app.stopping.cancelled() => {}
            () = app.recovery.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// When the slower parts of a round were last done.
#[derive(Default)]
struct Rounds {
    probed: Millis,
    swept: Millis,
    feed_swept: Millis,
}

/// Until the next attempt is due, at most a tick, at least a moment.
async fn pause(app: &App) -> Millis {
    let mut due: Option<EpochMs> = None;
    // Where no place is free nothing can begin: the end of a look wakes this.
    for line in app
        .lines
        .iter()
        .filter(|line| line.inquiries.available_permits() > 0)
    {
        let next = app.store.next_due(line.gateway.name()).await;
        due = [due, next.ok().flatten()].into_iter().flatten().min();
    }
    due.map_or(TICK, |at| {
        at.since(app.clock.epoch()).clamp(Millis::new(20), TICK)
    })
}

async fn round(app: &Arc<App>, asking: &Working, rounds: &mut Rounds) -> Result<(), StoreError> {
    for line in &app.lines {
        let places = u32::try_from(line.inquiries.available_permits()).unwrap_or(BATCH);
        if places == 0 {
            continue;
        }
        // A few more than there are places: some may be looked at already.
        let most = places.saturating_mul(2).min(BATCH);
        let due = app.store.due(line.gateway.name(), app.clock.epoch(), most);
        for attempt in due.await? {
            dispatch(app, asking, line, attempt).await?;
        }
    }
    if app.clock.now() >= rounds.probed.plus(PROBE) {
        rounds.probed = app.clock.now();
        for line in app.lines.iter().filter(|line| line.is_silent()) {
            if let Some(attempt) = app.store.oldest_waiting(line.gateway.name()).await? {
                dispatch(app, asking, line, attempt).await?;
            }
        }
    }
    if app.clock.now() >= rounds.swept.plus(TICK) {
        rounds.swept = app.clock.now();
        sweep(app).await?;
    }
    if app.clock.now() >= rounds.feed_swept.plus(FEED_SWEEP) {
        rounds.feed_swept = app.clock.now();
        app.store
            .sweep_changes(changes::KEPT, app.clock.epoch())
            .await?;
        for gateway in app.store.gateways_waiting().await? {
            if app.line(&gateway).is_none() {
                tracing::error!(%gateway, "payments wait for a gateway that is not configured");
            }
        }
    }
    Ok(())
}

/// What the clock alone ends, once a tick.
async fn sweep(app: &App) -> Result<(), StoreError> {
    let now = app.clock.epoch();
    for id in app.store.lapsed_windows(now, BATCH).await? {
        app.store
            .record(id, Event::WindowClosed, evidence("clock", app), app.late())
            .await?;
    }
    lapse(app, now).await?;
    let mut left = app.store.approving_of_dead_nodes(&app.node, now).await?;
    // A claim whose work died without its node: its commit's answer was lost, or it panicked.
    // A resend has a gateway timeout of its own.
    let longest = app
        .longest_timeout()
        .times(2)
        .plus(app.config.times.database_wait.times(2))
        .plus(WORK_MARGIN);
    left.extend(app.store.approving_since(now.minus(longest)).await?);
    make_unknown(app, &left).await?;
    metrics::census(app.store.census().await?, now);
    metrics::effects_waiting(app.store.effects_waiting().await?, now);
    let bound = now.minus(app.config.bounds.unknown);
    let overdue = app.store.overdue(bound).await?;
    app.strangers.counted(overdue.strangers);
    metrics::overdue(overdue, now);
    Ok(())
}

/// Ends the orders whose time is over, and asks about what keeps others from ending. A gateway that is silent is asked
/// about no more than what it was asked about already.
async fn lapse(app: &App, now: EpochMs) -> Result<(), StoreError> {
    let mut asked = 0;
    for line in app.lines.iter().filter(|line| !line.is_silent()) {
        let gateway = line.gateway.name();
        asked += app
            .store
            .ask_before_lapse(gateway, now, ASKED_BEFORE_END)
            .await?;
    }
    let ended = app.store.lapse_orders(now).await?;
    metrics::orders_over(asked, ended);
    Ok(())
}

/// Starts one look, if a place is free and nobody looks at it already; otherwise it stays due. While it is looked at, its
/// next look is put off beyond the longest a look can take, so that a crash repeats it.
async fn dispatch(
    app: &Arc<App>,
    asking: &Working,
    line: &Arc<Line>,
    mut attempt: AttemptRecord,
) -> Result<(), StoreError> {
    let Some(due) = attempt.ask_at else {
        return Ok(());
    };
    let now = app.clock.epoch();
    if attempt.payment_key.is_none() {
        return app
            .store
            .move_look(attempt.id, due, None, attempt.asks)
            .await
            .map(|_| ());
    }
    let Ok(place) = Arc::clone(&line.inquiries).try_acquire_owned() else {
        return Ok(());
    };
    let Some(turn) = asking.begin(attempt.id) else {
        return Ok(());
    };
    let lease = now.plus(resolve::look_limit(line));
    if !app
        .store
        .move_look(attempt.id, due, Some(lease), attempt.asks)
        .await?
    {
        return Ok(());
    }
    attempt.ask_at = Some(lease);
    attempt.looks = attempt.looks.saturating_add(1);
    let (app, line) = (Arc::clone(app), Arc::clone(line));
    app.tracker.clone().spawn(async move {
        if let Err(error) = resolve::look(&app, &line, &attempt).await {
            tracing::warn!(
                attempt = attempt.id.0,
                error = &error as &dyn std::error::Error,
                "recovery could not record"
            );
            tokio::time::sleep(FAULT_PAUSE.to_duration()).await;
        }
        drop((turn, place));
        // A place is free again: whatever waits for one is looked at.
        app.recovery.notify_one();
    });
    Ok(())
}
