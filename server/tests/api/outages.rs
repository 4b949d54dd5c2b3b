//! A database that stops, a disk that is full, a node that is cut off, a gateway that is gone: nothing is sent that could
//! not be recorded, and nothing that was sent is lost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinHandle;

use crate::link::Link;
use crate::node::PATIENCE;
use crate::postgres_server;
use crate::shop::{Node, Order, Reply, Shop};

const CONFIRMS: &str = "pg_places{gateway=\"toss\",operation=\"confirm\"}";

/// An order and its payment, ready to be confirmed.
async fn ready(shop: &Shop) -> (Order, String) {
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    (order, key)
}

/// How often the gateway was sent a confirm of this order.
fn sends(shop: &Shop, order: &Order) -> u64 {
    let ledger = shop.pg.ledger();
    ledger
        .orders
        .get(&order.id)
        .map_or(0, |order| order.confirms)
}

/// Confirms until it is paid: whoever was refused for load or the database tries again.
async fn until_paid(shop: &Shop, order: &Order, key: &str) {
    let begun = Instant::now();
    loop {
        let reply = shop.confirm(order, key).await;
        if reply.status == 200 {
            return;
        }
        assert!(matches!(reply.status, 202 | 503), "{:?}", reply.body);
        assert!(begun.elapsed() < PATIENCE, "never paid: {:?}", reply.body);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Confirms at one node until the gateway has it: a busy machine may refuse some.
async fn until_sent(
    shop: &Shop,
    node: &Node,
    order: &Order,
    key: &str,
) -> JoinHandle<Option<Reply>> {
    let begun = Instant::now();
    loop {
        let paying = node.start_pay(order, key);
        while !paying.is_finished() || sends(shop, order) > 0 {
            if sends(shop, order) > 0 {
                return paying;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let reply = paying.await.expect("it ends").expect("an answer");
        assert!(begun.elapsed() < PATIENCE, "never sent: {:?}", reply.body);
        assert_eq!(reply.status, 503, "{:?}", reply.body);
    }
}

async fn control(server: PathBuf, arguments: &'static [&'static str]) {
    let done = tokio::task::spawn_blocking(move || postgres_server::control(&server, arguments));
    assert!(done.await.expect("a thread").success());
}

#[tokio::test]
async fn postgres_crashes_under_confirms_in_flight_and_their_outcomes_are_recorded_after_its_return()
 {
    let shop = Shop::on_own_postgres(&[]).await;
    let server = shop.own_postgres();
    shop.until_metric(CONFIRMS, 40.0).await;
    shop.set(json!({"delayMs": 1_000, "webhooks": {"drop": 1.0}}))
        .await;
    let mut sent = Vec::new();
    for _ in 0..5 {
        let (order, key) = ready(&shop).await;
        let paying = shop.start_pay(&order, &key);
        sent.push((order, paying));
    }
    let (late, late_key) = ready(&shop).await;
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 5)
        .await;
    control(server.clone(), &["stop", "-m", "immediate"]).await;
    // Refused before anything is sent, in the database wait.
    let refused = shop.confirm(&late, &late_key).await;
    refused.refused(503, "database_busy");
    assert!(refused.body.get("reach").is_none(), "{:?}", refused.body);
    shop.until_ledger(|ledger| ledger.calls.confirm.approved == 5)
        .await;
    assert_eq!(sends(&shop, &late), 0);
    tokio::task::spawn_blocking(move || postgres_server::start(&server))
        .await
        .expect("it starts");
    for (order, paying) in sent {
        let reply = paying.await.unwrap().expect("an answer");
        assert!(matches!(reply.status, 200 | 202), "{:?}", reply.body);
        shop.until_status(&order, "paid").await;
        assert_eq!((sends(&shop, &order), shop.charges(&order.id)), (1, 1));
    }
    until_paid(&shop, &late, &late_key).await;
    assert_eq!(shop.charges(&late.id), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_full_disk_refuses_confirms_before_they_are_sent_and_outcomes_are_recorded_once_there_is_room()
 {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 1_000, "webhooks": {"drop": 1.0}}))
        .await;
    let (sent, key) = ready(&shop).await;
    let (late, late_key) = ready(&shop).await;
    let paying = shop.start_pay(&sent, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    shop.set_disk_full(true);
    refused_for_the_disk(&shop, &late, &late_key).await;
    shop.until_ledger(|ledger| ledger.calls.confirm.approved == 1)
        .await;
    // Booked, and no room to say so: in progress for whoever asks, and nothing to pay again.
    for _ in 0..5 {
        let state = shop.poll(&sent).await;
        state.attempt("approving");
        assert_eq!(state.body["payable"], false);
    }
    shop.set_disk_full(false);
    let reply = paying.await.unwrap().expect("an answer");
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    until_paid(&shop, &late, &late_key).await;
    assert_eq!((shop.confirms(), shop.charges(&sent.id)), (2, 1));
    shop.end().await;
}

#[tokio::test]
async fn a_server_killed_on_a_full_disk_finds_the_payment_after_its_restart() {
    let mut shop = Shop::open().await;
    shop.set(json!({"delayMs": 500, "webhooks": {"drop": 1.0}}))
        .await;
    let (order, key) = ready(&shop).await;
    let paying = shop.start_pay(&order, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    shop.set_disk_full(true);
    shop.until_ledger(|ledger| ledger.calls.confirm.approved == 1)
        .await;
    shop.kill();
    assert!(paying.await.unwrap().is_none());
    shop.restart().await;
    shop.until_status(&order, "paid").await;
    assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 1));
    shop.end().await;
}

/// No room: nothing is claimed and nothing sent, and nothing is said about the order.
async fn refused_for_the_disk(shop: &Shop, order: &Order, key: &str) {
    let reply: Reply = shop.confirm(order, key).await;
    assert!(reply.status >= 500, "{:?}", reply.body);
    assert!(reply.body.get("reach").is_none(), "{:?}", reply.body);
    assert_eq!(sends(shop, order), 0);
    assert_eq!(shop.poll(order).await.body["payable"], true);
}

#[tokio::test]
async fn a_gateway_that_is_gone_says_nothing_and_all_is_known_when_it_is_back() {
    let mut shop = Shop::open().await;
    shop.set(json!({"operations": ["confirm", "get"], "loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
        .await;
    let (lost, key) = ready(&shop).await;
    assert_eq!(shop.confirm(&lost, &key).await.status, 202);
    shop.pg.pause_listening().await;
    let (late, late_key) = ready(&shop).await;
    let refused = shop.confirm(&late, &late_key).await;
    refused.refused(503, "pg_unreachable");
    // Whoever is killed meanwhile has forgotten nothing.
    shop.kill();
    shop.restart().await;
    let vain = "recovery_runs_total{result=\"no_answer\"}";
    let begun = Instant::now();
    while shop.metric(vain).await < 2.0 {
        assert!(begun.elapsed() < PATIENCE, "nobody asks");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let state = shop.poll(&lost).await;
    state.attempt("unknown");
    assert_eq!(state.body["payable"], false);
    shop.set(json!({})).await;
    shop.pg.resume_listening().await.expect("its port");
    shop.until_status(&lost, "paid").await;
    until_paid(&shop, &late, &late_key).await;
    assert_eq!((shop.charges(&lost.id), shop.charges(&late.id)), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn a_node_cut_off_from_the_database_stops_sending_before_the_others_have_its_share() {
    let short = [
        ("JARI_PG_TIMEOUT_MS", "4000"),
        ("JARI_NODE_LEASE_MS", "9000"),
        ("JARI_PG_CAP", "10"),
    ];
    let shop = Shop::on_postgres(&short).await;
    let mut link = Link::to(&shop.database());
    let alone = shop.another_node_through(&link.url(&shop.database())).await;
    shop.until_metric(CONFIRMS, 5.0).await;
    alone.until_metric(CONFIRMS, 5.0).await;
    shop.set(json!({"delayMs": 3_000, "webhooks": {"drop": 1.0}}))
        .await;
    let (late, late_key) = ready(&shop).await;
    let mut sent = Vec::new();
    for _ in 0..2 {
        let (order, key) = ready(&shop).await;
        let paying = until_sent(&shop, &alone, &order, &key).await;
        sent.push((order, paying));
    }
    link.freeze();
    // What it cannot claim it does not send; the other one goes on.
    let refused = alone.confirm(&late, &late_key).await;
    assert_eq!((refused.status, refused.code()), (503, "database_busy"));
    assert_eq!(sends(&shop, &late), 0);
    let (other, other_key) = ready(&shop).await;
    until_paid(&shop, &other, &other_key).await;
    // Its share comes to the other one, and by then it uses none of it.
    shop.until_metric(CONFIRMS, 10.0).await;
    assert_eq!(alone.metric(CONFIRMS).await, 0.0);
    // What it had sent is found out by the other one.
    for (order, _) in &sent {
        shop.until_status(order, "paid").await;
    }
    link.mend();
    for (order, paying) in sent {
        // What it records at last changes nothing any more.
        let reply = paying.await.unwrap().expect("an answer");
        assert!(matches!(reply.status, 200 | 202), "{:?}", reply.body);
        assert_eq!((sends(&shop, &order), shop.charges(&order.id)), (1, 1));
        assert_eq!(shop.poll(&order).await.body["status"], "paid");
    }
    shop.until_metric(CONFIRMS, 5.0).await;
    alone.until_metric(CONFIRMS, 5.0).await;
    until_paid(&shop, &late, &late_key).await;
    assert_eq!(shop.charges(&late.id), 1);
    assert!(shop.pg.ledger().peak_in_flight.confirm <= 10);
    drop(alone);
    shop.end().await;
}
