//! Several nodes on one database, without their processes: how they divide a cap, and how an outcome of one shows on
//! another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use payment::attempt::{Event, LateSuccess};
use payment::id::{AttemptReference, GatewayName, OrderId, Sku};
use payment::time::Millis;
use payment::wire::OrderState;
use server::app::App;
use server::changes;
use server::clock::EpochMs;
use server::config::{Config, Environment, Settings};
use server::store::sqlite::SqliteStore;
use server::store::{
    Beat, Evidence, HeldSlots, NewAttemptRow, NewOrderRow, NodeSlots, Opened, Owner, Store,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const LEASE: Millis = Millis::from_secs(65);

async fn store(folder: &TempDir) -> SqliteStore {
    SqliteStore::open_file(&folder.path().join("jari.db"), Millis::from_secs(2))
        .await
        .expect("a database")
}

fn toss() -> GatewayName {
    GatewayName::parse("toss").expect("a name")
}

/// What `node` may use from second `at` on, having so many in use until then.
async fn beat(store: &dyn Store, node: &str, at: i64, in_use: u32) -> u32 {
    let beat = Beat {
        node: node.to_owned(),
        at: EpochMs(at * 1_000),
        lease: LEASE,
        slots: vec![HeldSlots {
            gateway: toss(),
            cap: 40,
            in_use,
        }],
    };
    let granted: Vec<NodeSlots> = store.beat(beat).await.expect("a beat");
    granted[0].slots
}

#[tokio::test]
async fn a_new_node_grows_only_as_the_others_shrink_and_the_sum_never_exceeds_the_cap() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    assert_eq!(beat(&store, "a", 0, 0).await, 40);
    // The first node still may use all of it, so the second has none yet.
    assert_eq!(beat(&store, "b", 1, 0).await, 0);
    // It is told to shrink, but may have used all of its old share until it heard so.
    assert_eq!(beat(&store, "a", 2, 40).await, 20);
    assert_eq!(beat(&store, "b", 3, 0).await, 0);
    // It has shrunk, but thirty-five of its calls cannot be called back.
    assert_eq!(beat(&store, "a", 4, 35).await, 20);
    assert_eq!(beat(&store, "b", 5, 0).await, 5);
    assert_eq!(beat(&store, "a", 6, 20).await, 20);
    assert_eq!(beat(&store, "b", 7, 5).await, 20);
    // A third one: 14 + 13 + 13, the remainder to the first by id.
    assert_eq!(beat(&store, "c", 8, 0).await, 0);
    assert_eq!(beat(&store, "b", 9, 20).await, 13);
    assert_eq!(beat(&store, "a", 9, 20).await, 14);
    assert_eq!(beat(&store, "c", 10, 0).await, 0);
    assert_eq!(beat(&store, "b", 11, 13).await, 13);
    assert_eq!(beat(&store, "a", 11, 14).await, 14);
    assert_eq!(beat(&store, "c", 12, 0).await, 13);
}

#[tokio::test]
async fn a_dead_nodes_share_returns_after_its_lease_and_a_leaving_ones_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    beat(&store, "a", 0, 0).await;
    beat(&store, "b", 0, 0).await;
    beat(&store, "a", 1, 40).await;
    assert_eq!(beat(&store, "a", 2, 20).await, 20);
    assert_eq!(beat(&store, "b", 2, 0).await, 20);
    // "b" dies with twenty calls in flight: the gateway may still be working on them.
    assert_eq!(beat(&store, "a", 66, 20).await, 20);
    assert_eq!(beat(&store, "a", 68, 20).await, 40);
    assert_eq!(beat(&store, "b", 69, 0).await, 0);
    beat(&store, "a", 70, 40).await;
    assert_eq!(beat(&store, "a", 71, 20).await, 20);
    store.leave("a").await.unwrap();
    assert_eq!(beat(&store, "b", 72, 0).await, 40);
}

async fn node(folder: &TempDir) -> Arc<App> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let settings = Settings {
        env: Some(Environment::Development),
        database_url: Some(format!(
            "sqlite://{}",
            folder.path().join("jari.db").display()
        )),
        ..Settings::default()
    };
    let config = Config::check(settings).expect("settings");
    let app = server::serve::open(config, CancellationToken::new())
        .await
        .expect("a node");
    tokio::spawn(changes::run(Arc::clone(&app)));
    app
}

async fn state(app: &App, owner: &Owner, id: &OrderId) -> OrderState {
    let state = changes::state_of(app, owner, id).await;
    state.expect("a state").expect("an order")
}

#[tokio::test]
async fn an_outcome_recorded_on_one_node_shows_on_another_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (node(&folder).await, node(&folder).await);
    let owner = Owner("shopper".to_owned());
    let id = OrderId::parse("ord_1").unwrap();
    let at = one.clock.epoch();
    let order = NewOrderRow {
        id: id.clone(),
        owner: owner.clone(),
        items: vec![(Sku::parse("mug").unwrap(), 1)],
        at,
        expires_at: at.plus(Millis::from_secs(600)),
    };
    one.store.make_order(order).await.unwrap();
    let attempt = NewAttemptRow {
        order_id: id.clone(),
        owner: owner.clone(),
        gateway: toss(),
        reference: AttemptReference::parse("0123456789abcdef0123456789abcdef").unwrap(),
        at,
        window_until: at.plus(Millis::from_secs(600)),
    };
    let Opened::Ready(attempt) = one.store.open_attempt(attempt).await.unwrap() else {
        panic!("the order takes an attempt");
    };
    // The other node has it in memory, and goes on answering from there.
    for _ in 0..50 {
        let seen = state(&other, &owner, &id).await;
        assert_eq!(seen.attempt.unwrap().status.as_str(), "ready");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let event = Event::WindowClosed;
    let evidence = Evidence::plain("clock", one.clock.epoch());
    one.store
        .record(attempt.id, event, evidence, LateSuccess::Cancel)
        .await
        .unwrap();
    let recorded = Instant::now();
    while state(&other, &owner, &id)
        .await
        .attempt
        .unwrap()
        .status
        .as_str()
        != "expired"
    {
        assert!(
            recorded.elapsed() < Duration::from_secs(1),
            "a second is over"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
