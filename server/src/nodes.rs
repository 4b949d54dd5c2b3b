//! This process among the nodes that share one database: its lease, and its share of each gateway's cap.
//!
//! A node that comes waits until the others have shrunk; a dead node's share stays its own until its lease ends, because
//! the gateway may still be working on its calls. A node that cannot renew its lease sends nothing from the moment on at
//! which a call could outlast it.

use std::sync::Arc;

use metrics::gauge;
use payment::share::reserve_of;
use payment::time::Millis;

use crate::app::{App, Line};
use crate::random;
use crate::store::{Beat, HeldSlots, StoreError};

/// How long one renewal may take.
const BEAT_LIMIT: Millis = Millis::from_secs(3);
/// How often the lease is renewed. A new node's share comes within two of these.
const BEAT: Millis = Millis::from_secs(1);

/// Renews the lease until the server stops; with a database of its own there is nothing to divide.
pub async fn run(app: Arc<App>) {
    if !app.store.is_shared() {
        gauge!("nodes_alive").set(1.0);
        return app.stopping.cancelled().await;
    }
    divide(&app, &random::secret()).await;
}

async fn divide(app: &App, node: &str) {
    let mut renewed = None;
    loop {
        let began = app.clock.now();
        // A database that does not answer must not keep us from seeing that our lease runs out.
        let beat = beat(app, node, renewed);
        match tokio::time::timeout(BEAT_LIMIT.to_duration(), beat).await {
            Ok(Ok(())) => renewed = Some(began),
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the node's lease could not be renewed"
            ),
            Err(_) => tracing::warn!("the node's lease could not be renewed in time"),
        }
        // A stopping node keeps its slots until its calls have ended.
        if app.stopping.is_cancelled() && app.tracker.is_empty() {
            break;
        }
        tokio::time::sleep(BEAT.to_duration()).await;
    }
    for line in &app.lines {
        line.slots.set_share(0, 0);
    }
    if let Err(error) = app.store.leave(node).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the node's lease ends by itself"
        );
    }
}

/// Renews the lease once and takes the share that was granted. `renewed` is when the lease was renewed last.
async fn beat(app: &App, node: &str, renewed: Option<Millis>) -> Result<(), StoreError> {
    let began = app.clock.now();
    let held = |line: &Arc<Line>| {
        Some(HeldSlots {
            gateway: line.gateway.name().clone(),
            cap: line.slots.cap()?,
            // What may be in flight until the answer to this beat: others grow only by what we are known to have given
            // up already.
            in_use: renewed.map_or(0, |_| line.slots.limit().max(line.slots.in_flight())),
        })
    };
    let lease = app.lines.iter().map(|line| line.times.node_lease).max();
    let beat = Beat {
        node: node.to_owned(),
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
            // A call that is begun at the last moment still ends within the lease.
            let safe = line.times.node_lease.less(line.times.pg_timeout);
            line.slots.set_valid_until(began.plus(safe));
        }
    }
    Ok(())
}
