//! The change feed: whoever follows it learns of every committed change.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use payment::attempt::Event;
use payment::id::OrderId;
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use payment::wire::OrderState;
use server::clock::EpochMs;
use tokio::task::JoinSet;

use crate::{Db, NOW, on_both};

on_both!(
    every_change_is_told_and_nothing_else,
    a_follower_of_many_writers_ends_with_the_truth,
    what_was_kept_long_enough_is_dropped,
);

async fn every_change_is_told_and_nothing_else(db: Db) {
    let mut position = db.store.end_of_changes().await.unwrap();
    let attempt = db.claimed("ord_1", "mug").await;
    let mut step = async || {
        let (changed, reached) = db.store.changes_after(&position).await.unwrap();
        position = reached;
        !changed.is_empty() && changed.iter().all(|id| *id == attempt.order_id)
    };
    assert!(step().await, "made and claimed");
    assert!(!step().await, "nothing happened since");
    db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
        .await;
    assert!(step().await);
    // Looks are nobody's affair but recovery's.
    db.store.wake_waiting(&crate::toss(), NOW).await.unwrap();
    assert!(!step().await);
    db.record(attempt.id, Event::SendRefused(NotSent::Cap))
        .await;
    assert!(!step().await, "Rule 0: nothing changed");
    db.order("ord_2", "mug", 1).await;
    assert!(!step().await, "nobody has it in memory yet");
}

fn shown(order: &server::store::OrderRecord) -> OrderState {
    server::app::order_state(order, 2_000)
}

async fn a_follower_of_many_writers_ends_with_the_truth(db: Db) {
    let db = Arc::new(db);
    let mut ids = Vec::new();
    for n in 0..48 {
        ids.push(db.order(&format!("ord_{n}"), "mug", 1).await);
    }
    let over = Arc::new(AtomicBool::new(false));
    // Keeps what it reads and reads again only what the feed names, as every node does.
    let following = tokio::spawn({
        let (db, over, ids) = (Arc::clone(&db), Arc::clone(&over), ids.clone());
        async move {
            let mut position = db.store.end_of_changes().await.unwrap();
            let mut kept: HashMap<OrderId, OrderState> = HashMap::new();
            for id in &ids {
                kept.insert(id.clone(), shown(&db.read(id).await));
            }
            let mut told = 0;
            loop {
                let last = over.load(Ordering::SeqCst);
                let (changed, reached) = db.store.changes_after(&position).await.unwrap();
                position = reached;
                told += changed.len();
                for id in changed {
                    kept.insert(id.clone(), shown(&db.read(&id).await));
                }
                if last {
                    return (kept, told);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    let mut writers = JoinSet::new();
    for id in ids.clone() {
        let db = Arc::clone(&db);
        writers.spawn(async move {
            for round in 0..3 {
                let claim = crate::claim(&id, &format!("key_{}", id.as_str()));
                let server::store::Claimed::Granted { attempt, .. } = db.claim(claim).await else {
                    panic!("nothing was sent in round {round}");
                };
                db.record(attempt.id, Event::SendRefused(NotSent::Cap))
                    .await;
            }
        });
    }
    writers.join_all().await;
    over.store(true, Ordering::SeqCst);
    let (kept, told) = following.await.unwrap();
    assert!(told >= 48 * 6, "{told} changes were told");
    for id in ids {
        assert_eq!(kept[&id], shown(&db.read(&id).await), "{}", id.as_str());
    }
}

async fn what_was_kept_long_enough_is_dropped(db: Db) {
    let start = db.store.end_of_changes().await.unwrap();
    db.claimed("ord_1", "mug").await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = EpochMs(i64::try_from(now.unwrap().as_millis()).unwrap());
    let minute = Millis::from_secs(60);
    db.store.sweep_changes(minute, now).await.unwrap();
    assert!(!db.store.changes_after(&start).await.unwrap().0.is_empty());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let now = now.plus(Millis::new(20));
    db.store.sweep_changes(Millis::ZERO, now).await.unwrap();
    let (changed, reached) = db.store.changes_after(&start).await.unwrap();
    assert_eq!(changed, []);
    // Dropped entries are not handed out anew.
    assert_eq!(db.store.changes_after(&reached).await.unwrap().0, []);
}
