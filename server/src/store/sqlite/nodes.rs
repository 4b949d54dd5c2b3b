//! The nodes of one database: their leases, and how they divide the gateways' caps.

use payment::share::{share, usable};
use sqlx::Row as _;

use super::{Tx, commit, failed};
use crate::store::{Beat, NodeSlots, StoreError};

/// Renews a node's lease and gives it the slots that it may use from now on.
pub(super) async fn beat(mut tx: Tx, beat: Beat) -> Result<Vec<NodeSlots>, StoreError> {
    let doing = |error| failed("dividing the cap among the nodes", error);
    sqlx::query("-- end_leases\nDELETE FROM nodes WHERE lease_until < ?1")
        .bind(beat.at.0)
        .execute(&mut *tx)
        .await
        .map_err(doing)?;
    sqlx::query(
        "-- renew_lease\nINSERT INTO nodes (id, lease_until) VALUES (?1, ?2) \
         ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until",
    )
    .bind(&beat.node)
    .bind(beat.at.plus(beat.lease).0)
    .execute(&mut *tx)
    .await
    .map_err(doing)?;
    let (nodes, rank) = rank(&mut tx, &beat.node).await.map_err(doing)?;
    let mut granted = Vec::with_capacity(beat.slots.len());
    for held in &beat.slots {
        let others: i64 = sqlx::query_scalar(
            "-- slots_of_others\nSELECT coalesce(sum(slots), 0) FROM node_slots WHERE gateway = ?1 AND node <> ?2",
        )
        .bind(held.gateway.as_str())
        .bind(&beat.node)
        .fetch_one(&mut *tx)
        .await
        .map_err(doing)?;
        let others = u32::try_from(others).unwrap_or(u32::MAX);
        let slots = usable(held.cap, share(held.cap, nodes, rank), others);
        // What the node uses now is given up only once it has said so, a beat later: calls in flight cannot be called back.
        let stored = slots.max(held.in_use);
        sqlx::query(
            "-- take_slots\nINSERT INTO node_slots (node, gateway, slots) VALUES (?1, ?2, ?3) \
             ON CONFLICT (node, gateway) DO UPDATE SET slots = excluded.slots",
        )
        .bind(&beat.node)
        .bind(held.gateway.as_str())
        .bind(i64::from(stored))
        .execute(&mut *tx)
        .await
        .map_err(doing)?;
        granted.push(NodeSlots {
            gateway: held.gateway.clone(),
            slots,
            nodes,
        });
    }
    commit(tx, "dividing the cap among the nodes").await?;
    Ok(granted)
}

/// How many nodes are alive, and the place of this one among them by id.
async fn rank(tx: &mut Tx, node: &str) -> Result<(u32, u32), sqlx::Error> {
    let row = sqlx::query(
        "-- rank_node\nSELECT count(*) AS nodes, coalesce(sum(id < ?1), 0) AS rank FROM nodes",
    )
    .bind(node)
    .fetch_one(&mut **tx)
    .await?;
    let count = |name| {
        let value: i64 = row.try_get(name)?;
        Ok::<_, sqlx::Error>(u32::try_from(value).unwrap_or(u32::MAX))
    };
    Ok((count("nodes")?, count("rank")?))
}

/// Ends a node's lease: its calls have ended, and the others may have its slots at once.
pub(super) async fn leave(mut tx: Tx, node: &str) -> Result<(), StoreError> {
    sqlx::query("-- leave\nDELETE FROM nodes WHERE id = ?1")
        .bind(node)
        .execute(&mut *tx)
        .await
        .map_err(|error| failed("ending a node's lease", error))?;
    commit(tx, "ending a node's lease").await
}
