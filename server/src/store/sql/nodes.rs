//! The nodes of one database: their leases, how they divide the gateways' caps, and what a dead one left behind.

use payment::share::{share, usable};

use super::engine::{Columns, Engine, Lock, Sql, Tx, values};
use super::{commit, rows};
use crate::clock::EpochMs;
use crate::store::{AttemptId, Beat, HeldSlots, NodeSlots, StoreError};

const DOING: &str = "dividing the cap among the nodes";

/// Renews a node's lease and gives it the slots that it may use from now on.
pub(super) async fn beat<D: Engine>(
    mut tx: Tx<D>,
    beat: &Beat,
) -> Result<Vec<NodeSlots>, StoreError> {
    let db = &mut *tx;
    db.lock(Lock::Nodes).await?;
    // After the lock: a beat that waited for it must not end leases by an older clock.
    let now = db.clock(beat.at).await?;
    let sql = "-- end_leases\nDELETE FROM nodes WHERE lease_until < $1";
    db.execute(DOING, sql, values![now]).await?;
    let sql = "-- renew_lease\nINSERT INTO nodes (id, lease_until) VALUES ($1, $2) \
               ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until";
    db.execute(
        DOING,
        sql,
        values![beat.node.as_str(), now.plus(beat.lease)],
    )
    .await?;
    let (nodes, rank) = rank(db, &beat.node).await?;
    let mut granted = Vec::with_capacity(beat.slots.len());
    for held in &beat.slots {
        let others = slots_of_others(db, &beat.node, held).await?;
        let slots = usable(held.cap, share(held.cap, nodes, rank), others);
        // What the node uses now is given up only once it has said so, a beat later: calls in flight cannot be called back.
        let stored = slots.max(held.in_use);
        let sql = "-- take_slots\nINSERT INTO node_slots (node, gateway, slots) VALUES ($1, $2, $3) \
                   ON CONFLICT (node, gateway) DO UPDATE SET slots = excluded.slots";
        let values = values![beat.node.as_str(), held.gateway.as_str(), stored];
        db.execute(DOING, sql, values).await?;
        granted.push(NodeSlots {
            gateway: held.gateway.clone(),
            slots,
            nodes,
        });
    }
    commit::<D>(tx, DOING).await?;
    Ok(granted)
}

async fn slots_of_others<C: Sql>(
    db: &mut C,
    node: &str,
    held: &HeldSlots,
) -> Result<u32, StoreError> {
    let sql = "-- slots_of_others\nSELECT CAST(coalesce(sum(slots), 0) AS BIGINT) AS slots FROM node_slots \
               WHERE gateway = $1 AND node <> $2";
    let row = db
        .row(DOING, sql, values![held.gateway.as_str(), node])
        .await?;
    row.map_or(Ok(0), |row| count(&row, "slots"))
}

/// How many nodes are alive, and the place of this one among them by id.
async fn rank<C: Sql>(db: &mut C, node: &str) -> Result<(u32, u32), StoreError> {
    let sql = "-- rank_node\nSELECT count(*) AS nodes, count(*) FILTER (WHERE id < $1) AS place FROM nodes";
    let row = db.row(DOING, sql, values![node]).await?;
    let row = row.ok_or(StoreError::Corrupt {
        what: "list of nodes",
    })?;
    Ok((count(&row, "nodes")?, count(&row, "place")?))
}

fn count<R: Columns>(row: &R, name: &'static str) -> Result<u32, StoreError> {
    Ok(u32::try_from(row.integer(name)?).unwrap_or(u32::MAX))
}

/// Ends a node's lease: its calls have ended, and the others may have its slots at once.
pub(super) async fn leave<D: Engine>(mut tx: Tx<D>, node: &str) -> Result<(), StoreError> {
    let doing = "ending a node's lease";
    tx.lock(Lock::Nodes).await?;
    let sql = "-- leave\nDELETE FROM nodes WHERE id = $1";
    tx.execute(doing, sql, values![node]).await?;
    commit::<D>(tx, doing).await
}

/// Approving attempts that another node claimed whose lease is over. A database of one process has no leases: whatever
/// another process claimed there, that process is dead.
pub(super) async fn approving_of_dead_nodes<C: Sql>(
    db: &mut C,
    own: &str,
    now: EpochMs,
) -> Result<Vec<AttemptId>, StoreError> {
    let now = db.clock(now).await?;
    let sql = "-- approving_of_dead_nodes\nSELECT id FROM attempts WHERE status = 'approving' AND (node IS NULL \
               OR (node <> $1 AND node NOT IN (SELECT id FROM nodes WHERE lease_until >= $2))) ORDER BY id";
    let doing = "looking for what dead nodes left";
    rows::ids(&db.rows(doing, sql, values![own, now]).await?)
}
