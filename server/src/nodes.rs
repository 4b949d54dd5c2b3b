//! This process among the nodes that share one database: its lease, and its share of each gateway's cap.
//!
//! A node that comes waits until the others have shrunk; a dead node's share stays its own until its lease ends, because
//! the gateway may still be working on its calls. A node that cannot renew its lease sends nothing from the moment on at
//! which a call could outlast it.

use std::sync::Arc;

use metrics::gauge;
use payment::share::reserve_of;
use payment::time::Millis;

use crate::app::App;
use crate::store::{Beat, HeldSlots, StoreError};

/// How long one renewal may take.
const BEAT_LIMIT: Millis = Millis::from_secs(3);
/// How often the lease is renewed. A new node's share comes within two of these.
const BEAT: Millis = Millis::from_secs(1);

/// Takes a place among the nodes, before the first request: a claim of a node without a lease would be taken for a dead
/// one's.
///
/// # Errors
/// [`StoreError`]; the server must not start then.
pub async fn join(app: &App) -> Result<(), StoreError> {
    if !app.store.is_shared() {
        return Ok(());
    }
    // Until a share is granted there is none.
    for line in &app.lines {
        line.slots.set_share(0, 0);
    }
    align(app).await?;
    beat(app).await
}

/// Sets this node's clock by the database's: what one node stores, another compares with its own time, and "not found"
/// becomes an answer with time alone.
async fn align(app: &App) -> Result<(), StoreError> {
    let asked = app.clock.now();
    let read = app.store.now(app.clock.epoch()).await?;
    app.clock.align(read, app.clock.now().less(asked));
    Ok(())
}

/// Renews the lease until the server stops; with a database of its own there is nothing to divide.
pub async fn run(app: Arc<App>) {
    if !app.store.is_shared() {
        gauge!("nodes_alive").set(1.0);
        return app.stopping.cancelled().await;
    }
    divide(&app).await;
}

async fn divide(app: &App) {
    loop {
        // A database that does not answer must not keep the next renewal from being tried.
        let beat = async {
            align(app).await?;
            beat(app).await
        };
        match tokio::time::timeout(BEAT_LIMIT.to_duration(), beat).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the node's lease could not be renewed"
            ),
            Err(_) => tracing::warn!("the node's lease could not be renewed in time"),
        }
        tokio::select! {
            // In this order, so that a simulated run repeats exactly.
            biased;
            () = tokio::time::sleep(BEAT.to_duration()) => {}
            // The server has stopped and all its calls have ended: the others may have its share at once. Until then a
            // stopping node keeps it.
            () = app.tracker.wait() => break,
        }
    }
    for line in &app.lines {
        line.slots.set_share(0, 0);
    }
    if let Err(error) = app.store.leave(&app.node).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the node's lease ends by itself"
        );
    }
}

/// Renews the lease once and takes the share that was granted.
async fn beat(app: &App) -> Result<(), StoreError> {
    let held = |line: &Arc<crate::app::Line>| {
        Some(HeldSlots {
            gateway: line.gateway.name().clone(),
            cap: line.slots.cap()?,
            // What may be in flight until the answer to this beat: others grow only by what is known to be given up.
            in_use: line.slots.limit().max(line.slots.in_flight()),
        })
    };
    let lease = app.lines.iter().map(|line| line.times.node_lease).max();
    let began = app.clock.now();
    let beat = Beat {
        node: app.node.clone(),
        at: app.clock.epoch(),
        lease: lease.unwrap_or_default(),
        slots: app.lines.iter().filter_map(held).collect(),
    };
    for granted in app.store.beat(beat).await? {
        gauge!("nodes_alive").set(f64::from(granted.nodes));
        if let Some(line) = app.line(&granted.gateway) {
            let cap = line.slots.cap().unwrap_or(0);
            let reserve = reserve_of(line.times.reserve, cap, granted.slots);
            line.slots.set_share(granted.slots, reserve);
            // A call that begins later could outlast the lease, should this have been its last renewal.
            let safe = line.times.node_lease.less(line.times.pg_timeout);
            line.slots.lend_until(began.plus(safe));
        }
    }
    Ok(())
}
