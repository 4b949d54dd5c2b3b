//! Two nodes on one database, without their processes: how an outcome of one shows on the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use payment::attempt::{Event, LateSuccess};
use payment::id::{AttemptReference, GatewayName, OrderId, Sku};
use payment::time::Millis;
use payment::wire::OrderState;
use server::app::App;
use server::changes;
use server::config::{Config, DatabaseUrl, Environment, Settings};
use server::store::{Evidence, NewAttemptRow, NewOrderRow, Opened, Owner};
use tokio_util::sync::CancellationToken;

use crate::postgres::Database;

fn toss() -> GatewayName {
    GatewayName::parse("toss").expect("a name")
}

async fn node(url: &str) -> Arc<App> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let settings = Settings {
        env: Some(Environment::Development),
        database_url: Some(DatabaseUrl::new(url)),
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
    shows_within_a_second(&format!(
        "sqlite://{}",
        folder.path().join("jari.db").display()
    ))
    .await;
}

#[tokio::test]
async fn so_it_does_on_postgres() {
    let database = Database::make().await;
    shows_within_a_second(&database.url).await;
}

async fn shows_within_a_second(url: &str) {
    let (one, other) = (node(url).await, node(url).await);
    let owner = Owner("shopper".to_owned());
    let id = OrderId::parse("ord_1").expect("it is there");
    let at = one.clock.epoch();
    let order = NewOrderRow {
        id: id.clone(),
        owner: owner.clone(),
        items: vec![(Sku::parse("mug").expect("it is there"), 1)],
        at,
        expires_at: at.plus(Millis::from_secs(600)),
        language: None,
    };
    one.store.make_order(order).await.expect("it is there");
    let attempt = NewAttemptRow {
        order_id: id.clone(),
        owner: owner.clone(),
        gateway: toss(),
        by_call: false,
        left: None,
        reference: AttemptReference::parse("0123456789abcdef0123456789abcdef")
            .expect("it is there"),
        at,
        window_until: at.plus(Millis::from_secs(600)),
    };
    let Opened::Ready(attempt) = one.store.open_attempt(attempt).await.expect("it is there") else {
        panic!("the order takes an attempt");
    };
    // The other node has it in memory, and goes on answering from there.
    for _ in 0..50 {
        let seen = state(&other, &owner, &id).await;
        assert_eq!(seen.attempt.expect("it is there").status.as_str(), "ready");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let event = Event::WindowClosed;
    let evidence = Evidence::plain("clock", one.clock.epoch());
    one.store
        .record(attempt.id, event, evidence, LateSuccess::Cancel)
        .await
        .expect("it is there");
    let recorded = Instant::now();
    while state(&other, &owner, &id)
        .await
        .attempt
        .expect("it is there")
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
