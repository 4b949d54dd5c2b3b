//! How the nodes of one database divide a cap, and what a dead one leaves.

use std::sync::Arc;
use std::time::Duration;

use payment::time::Millis;
use server::clock::{Clock, EpochMs};
use server::store::{Beat, Claim, Claimed, HeldSlots, NodeSlots};
use tokio::task::JoinSet;

use crate::{Db, claim, on_both, toss};

on_both!(
    a_new_node_grows_only_as_the_others_shrink_and_the_sum_never_exceeds_the_cap,
    a_dead_nodes_share_returns_after_its_lease_and_a_leaving_ones_at_once,
    nodes_that_beat_at_once_never_hold_more_than_the_cap,
    what_a_dead_node_claimed_is_found_and_what_a_living_one_claims_is_not,
    the_time_of_a_shared_database_is_not_the_askers,
);

const LONG: Millis = Millis::from_secs(65);
/// Short enough to wait for, long enough for a slow machine.
const SHORT: Millis = Millis::new(1_500);

/// What `node` may use from now on, having so many in use until it hears so.
async fn beat(db: &Db, node: &str, lease: Millis, in_use: u32) -> NodeSlots {
    let beat = Beat {
        node: node.to_owned(),
        at: Clock::new().epoch(),
        lease,
        slots: vec![HeldSlots {
            gateway: toss(),
            cap: 40,
            in_use,
        }],
    };
    let mut granted = db.store.beat(beat).await.expect("a beat");
    granted.remove(0)
}

async fn slots(db: &Db, node: &str, in_use: u32) -> u32 {
    beat(db, node, LONG, in_use).await.slots
}

async fn the_time_of_a_shared_database_is_not_the_askers(db: Db) {
    let wrong = EpochMs(1);
    let told = db.store.now(wrong).await.expect("a clock");
    // Where one process owns the database, its own clock is the only one.
    assert_eq!(told == wrong, !db.store.is_shared());
    assert!(db.store.now(wrong).await.expect("a clock") >= told);
}

async fn a_new_node_grows_only_as_the_others_shrink_and_the_sum_never_exceeds_the_cap(db: Db) {
    assert_eq!(slots(&db, "a", 0).await, 40);
    // The first node still may use all of it, so the second has none yet.
    assert_eq!(slots(&db, "b", 0).await, 0);
    // It is told to shrink, but may have used all of its old share until it heard so.
    assert_eq!(slots(&db, "a", 40).await, 20);
    assert_eq!(slots(&db, "b", 0).await, 0);
    // It has shrunk, but thirty-five of its calls cannot be called back.
    assert_eq!(slots(&db, "a", 35).await, 20);
    assert_eq!(slots(&db, "b", 0).await, 5);
    assert_eq!(slots(&db, "a", 20).await, 20);
    assert_eq!(slots(&db, "b", 5).await, 20);
    // A third one: 14 + 13 + 13, the remainder to the first by id.
    assert_eq!(slots(&db, "c", 0).await, 0);
    assert_eq!(slots(&db, "b", 20).await, 13);
    assert_eq!(slots(&db, "a", 20).await, 14);
    assert_eq!(slots(&db, "c", 0).await, 0);
    assert_eq!(slots(&db, "b", 13).await, 13);
    assert_eq!(slots(&db, "a", 14).await, 14);
    assert_eq!(slots(&db, "c", 0).await, 13);
}

async fn a_dead_nodes_share_returns_after_its_lease_and_a_leaving_ones_at_once(db: Db) {
    beat(&db, "a", LONG, 0).await;
    beat(&db, "b", LONG, 0).await;
    beat(&db, "a", LONG, 40).await;
    assert_eq!(slots(&db, "a", 20).await, 20);
    // "b" dies with twenty calls in flight: the gateway may still be working on them.
    let began = std::time::Instant::now();
    assert_eq!(beat(&db, "b", SHORT, 20).await.slots, 20);
    loop {
        let before = began.elapsed();
        let granted = beat(&db, "a", LONG, 0).await;
        if granted.nodes == 1 {
            assert_eq!(granted.slots, 40);
            break;
        }
        assert_eq!(granted.slots, 20);
        assert!(before < Duration::from_secs(10), "its lease never ends");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        began.elapsed() >= SHORT.to_duration(),
        "its lease ended early"
    );
    assert_eq!(slots(&db, "b", 0).await, 0);
    beat(&db, "a", LONG, 40).await;
    assert_eq!(slots(&db, "a", 20).await, 20);
    db.store.leave("a").await.unwrap();
    assert_eq!(slots(&db, "b", 0).await, 40);
}

async fn nodes_that_beat_at_once_never_hold_more_than_the_cap(db: Db) {
    let db = Arc::new(db);
    let mut held = [0; 6];
    for _ in 0..8 {
        let mut tasks = JoinSet::new();
        for node in 0..6 {
            let db = Arc::clone(&db);
            tasks.spawn(async move { (node, slots(&db, &format!("node_{node}"), 0).await) });
        }
        for (node, slots) in tasks.join_all().await {
            held[node] = slots;
        }
        // Nothing is in flight, so what was granted last is all that each may use.
        assert!(held.iter().sum::<u32>() <= 40, "{held:?}");
    }
    assert_eq!(held, [7, 7, 7, 7, 6, 6]);
}

async fn what_a_dead_node_claimed_is_found_and_what_a_living_one_claims_is_not(db: Db) {
    for node in ["dead", "living", "own"] {
        let order = db.order(&format!("ord_{node}"), "mug", 1).await;
        let claim = Claim {
            node: node.to_owned(),
            ..claim(&order, &format!("key_{node}"))
        };
        assert!(matches!(db.claim(claim).await, Claimed::Granted { .. }));
    }
    beat(&db, "living", LONG, 1).await;
    let began = std::time::Instant::now();
    beat(&db, "dead", SHORT, 1).await;
    let mut rest = 2;
    while rest > 1 {
        let now = Clock::new().epoch();
        let dead = db.store.approving_of_dead_nodes("own", now).await.unwrap();
        let mut of = Vec::new();
        for id in &dead {
            of.push(db.attempt(*id).await.order_id.as_str().to_owned());
        }
        if of == ["ord_dead"] {
            rest = 1;
        } else {
            assert_eq!(of, [""; 0], "only what a dead one claimed");
        }
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "its lease never ends"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        began.elapsed() >= SHORT.to_duration(),
        "its lease ended early"
    );
    // One that left has ended its calls: whatever it still claims is nobody's.
    db.store.leave("living").await.unwrap();
    let now = Clock::new().epoch();
    let dead = db.store.approving_of_dead_nodes("own", now).await.unwrap();
    assert_eq!(dead.len(), 2);
    let dead = db.store.approving_of_dead_nodes("other", now).await;
    assert_eq!(dead.unwrap().len(), 3);
}
