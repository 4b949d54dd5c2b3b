//! PostgreSQL that is slow, locked or gone: what is refused was not done, and what was done is not refused.

use std::time::{Duration, Instant};

use payment::time::Millis;
use server::config::DatabaseUrl;
use server::store::open::{Stores, open};
use server::store::{Claimed, StoreError};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::task::JoinSet;

use crate::{Db, claim, postgres};

/// A store that waits for less long than the tests' usual one.
async fn hasty(url: &str) -> Stores {
    let opened = open(&DatabaseUrl::new(url), Millis::new(400), false).await;
    opened.expect("a store")
}

async fn beside(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_somebody_holds_is_busy_and_nothing_was_done() {
    let db = Db::postgres().await;
    let order = db.order("ord_1", "mug", 1).await;
    let free = db.free("mug").await;
    let hasty = hasty(&db.url).await;
    let mut other = beside(&db.url).await;
    for held in [
        "SELECT 1 FROM orders FOR UPDATE",
        "SELECT 1 FROM products FOR UPDATE",
    ] {
        let mut tx = other.begin().await.unwrap();
        sqlx::query(held).execute(&mut *tx).await.unwrap();
        // More than there are connections: some wait for one of those, some for the lock.
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for n in 0..20 {
            let store = std::sync::Arc::clone(&hasty.core);
            let claim = claim(&order, &format!("key_{n}"));
            tasks.spawn(async move { store.claim(claim).await });
        }
        for answer in tasks.join_all().await {
            assert!(matches!(answer, Err(StoreError::Busy)), "{answer:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(4));
        tx.rollback().await.unwrap();
        assert_eq!(db.read(&order).await.attempts, []);
    }
    assert_eq!(db.free("mug").await, free);
    let granted = hasty.core.claim(claim(&order, "key")).await.unwrap();
    assert!(matches!(granted, Claimed::Granted { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_while_it_works_leaves_nothing_and_the_next_is_good() {
    let db = Db::postgres().await;
    let order = db.order("ord_1", "mug", 1).await;
    let free = db.free("mug").await;
    let mut other = beside(&db.url).await;
    let mut tx = other.begin().await.unwrap();
    let held = "SELECT 1 FROM products FOR UPDATE";
    sqlx::query(held).execute(&mut *tx).await.unwrap();
    let claiming = tokio::spawn({
        let (store, claim) = (std::sync::Arc::clone(&db.store), claim(&order, "key"));
        async move { store.claim(claim).await }
    });
    let mut third = beside(&db.url).await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
               AND application_name = 'jari' AND wait_event_type = 'Lock'";
    while sqlx::query(cut)
        .execute(&mut third)
        .await
        .unwrap()
        .rows_affected()
        == 0
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answer = claiming.await.unwrap();
    assert!(
        matches!(answer, Err(StoreError::Failed { .. })),
        "{answer:?}"
    );
    tx.rollback().await.unwrap();
    assert_eq!(db.read(&order).await.attempts, []);
    assert_eq!(db.free("mug").await, free);
    let granted = db.claim(claim(&order, "key")).await;
    assert!(matches!(granted, Claimed::Granted { .. }));
    // All connections at once, while they rest: the pool notices before it hands one out.
    let all = cut.replace("AND wait_event_type = 'Lock'", "");
    sqlx::query(AssertSqlSafe(all))
        .execute(&mut third)
        .await
        .unwrap();
    for _ in 0..12 {
        assert_eq!(db.read(&order).await.attempts.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_migrate_once() {
    let database = postgres::Database::make().await;
    let url = DatabaseUrl::new(&database.url);
    let start = || open(&url, Millis::from_secs(20), false);
    let (a, b, c, d) = tokio::join!(start(), start(), start(), start());
    for opened in [a, b, c, d] {
        let shelf = opened.expect("a store").core.products().await;
        assert_eq!(shelf.unwrap().len(), 6);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_there_is_said_without_its_password() {
    let url = DatabaseUrl::new("postgres://jari:hunter2@127.0.0.1:1/jari");
    let Err(error) = open(&url, Millis::new(400), false).await else {
        panic!("nobody listens there");
    };
    let told = format!("{error} {error:?}");
    assert!(!told.contains("hunter2"), "{told}");
}

/// PostgreSQL numbers transactions as they begin and commits them in any order.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_commits_late_is_not_skipped() {
    let db = Db::postgres().await;
    let (late, early) = (
        db.order("ord_1", "mug", 1).await,
        db.order("ord_2", "mug", 1).await,
    );
    let start = db.store.end_of_changes().await.unwrap();
    let mut other = beside(&db.url).await;
    let mut tx = other.begin().await.unwrap();
    sqlx::query("UPDATE orders SET lapsed_at = 1 WHERE id = 'ord_1'")
        .execute(&mut *tx)
        .await
        .unwrap();
    // What others do meanwhile is told at once, however long the first one takes.
    db.open_attempt(&early).await;
    let (changed, between) = db.store.changes_after(&start).await.unwrap();
    assert_eq!(changed, [early]);
    tx.commit().await.unwrap();
    let (changed, end) = db.store.changes_after(&between).await.unwrap();
    assert_eq!(changed, [late]);
    assert_eq!(db.store.changes_after(&end).await.unwrap().0, []);
}
