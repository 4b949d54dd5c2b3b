//! A database that is locked or starved at the worst moments: before the send nothing is sent, after it nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::COOKIE;
use serde_json::json;

use crate::beside::Beside;
use crate::shop::{Order, Reply, Shop};

/// A wait for the database of which several pass while it is held.
const HASTY: [(&str, &str); 2] = [
    ("JARI_DATABASE_WAIT_MS", "1500"),
    ("JARI_PG_TIMEOUT_MS", "45000"),
];

/// Forty answers come while nobody can write: none is lost, and nobody is told that anything failed.
async fn answers_that_meet_a_held_database(shop: Shop) {
    // The gateway takes them all and answers when it is let.
    shop.set(json!({"stop": true, "webhooks": {"drop": 1.0}}))
        .await;
    let in_flight = "pg_in_flight{gateway=\"toss\",operation=\"confirm\"}";
    let (mut orders, mut running) = (Vec::new(), Vec::new());
    for n in 1..=40_u32 {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        running.push(shop.start_pay(&order, &key));
        orders.push(order);
        // A few at a time: this is not about how many a busy machine can claim at once.
        if n % 4 == 0 {
            shop.until_metric(in_flight, f64::from(n)).await;
        }
    }
    let mut beside = Beside::of(&shop).await;
    beside.hold().await;
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    shop.until_ledger(|ledger| ledger.calls.confirm.approved == 40)
        .await;
    let held = Instant::now();
    // Several times the wait, while everybody asks.
    while held.elapsed() < Duration::from_secs(7) {
        for order in orders.iter().step_by(5) {
            let reply = shop.poll(order).await;
            match reply.status {
                200 => {
                    reply.attempt("approving");
                    assert_eq!(reply.body["payable"], false);
                }
                _ => refused_for_load(&reply),
            }
        }
    }
    beside.let_go().await;
    for order in &orders {
        shop.until_status(order, "paid").await;
    }
    for answer in running {
        let reply = answer.await.unwrap().expect("an answer");
        assert!(matches!(reply.status, 200 | 202), "{:?}", reply.body);
    }
    assert_eq!(shop.confirms(), 40);
    // All by their own answers: nobody had to be asked.
    assert_eq!(shop.pg.ledger().calls.get.received, 0);
    shop.end().await;
}

fn refused_for_load(reply: &Reply) {
    assert_eq!(reply.status, 503, "{:?}", reply.body);
    assert!(
        matches!(reply.code(), "database_busy" | "overloaded"),
        "{:?}",
        reply.body
    );
    assert_eq!(reply.body["reach"], json!(null));
}

#[tokio::test]
async fn forty_answers_that_meet_a_held_database_are_all_recorded_once_it_is_free() {
    answers_that_meet_a_held_database(Shop::with(&HASTY).await).await;
}

#[tokio::test]
async fn so_they_are_on_postgres() {
    answers_that_meet_a_held_database(Shop::on_postgres(&HASTY).await).await;
}

/// What comes to a database that somebody holds is refused before anything is sent, and can be paid afterwards.
async fn confirms_that_meet_a_held_database(shop: Shop) {
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let mut beside = Beside::of(&shop).await;
    beside.hold().await;
    let running: Vec<_> = (0..30).map(|_| shop.start_pay(&order, &key)).collect();
    for answer in running {
        let reply = answer.await.unwrap().expect("an answer");
        reply.refused(503, "database_busy");
        assert_eq!(reply.body["reach"], json!(null));
    }
    assert_eq!(shop.confirms(), 0);
    beside.let_go().await;
    // Whoever waited for the lock when it was let go may still claim; nobody was told otherwise of what is sent.
    shop.until(&order, |body| {
        body["payable"] == true || body["status"] == "paid"
    })
    .await;
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    assert_eq!(shop.charges(&order.id), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_confirm_that_meets_a_held_database_is_refused_before_anything_is_sent() {
    confirms_that_meet_a_held_database(Shop::with(&HASTY).await).await;
}

#[tokio::test]
async fn so_it_is_on_postgres() {
    confirms_that_meet_a_held_database(Shop::on_postgres(&HASTY).await).await;
}

/// Confirms, webhooks, polls, pages and recovery on the same orders, beside another program that writes: no lock is ever
/// told to a client as anything but "busy".
#[tokio::test(flavor = "multi_thread")]
async fn fifty_clients_on_twenty_orders_never_hear_of_a_lock() {
    let shop = Shop::with(&[("JARI_PG_TIMEOUT_MS", "5000")]).await;
    shop.set(json!({"delayMs": 20, "loss": {"ratio": 0.2, "when": "after"}, "webhooks": {"duplicate": 0.5}}))
        .await;
    let mut orders = Vec::new();
    for _ in 0..20 {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        orders.push((order, key));
    }
    let over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write_beside(shop.database(), Arc::clone(&over)));
    let clients: Vec<_> = (0..50)
        .map(|n| {
            let requests: Vec<_> = (0..15)
                .map(|m| one_of_many(&shop, &orders[(n + m) % 20], n * 31 + m))
                .collect();
            tokio::spawn(async move {
                for request in requests {
                    let reply = Reply::of(request.send().await.expect("an answer")).await;
                    let said = reply.code().to_owned();
                    assert!(
                        reply.status < 500
                            || matches!(
                                said.as_str(),
                                "database_busy" | "overloaded" | "pg_cap_reached" | "circuit_open"
                            ),
                        "{}: {:?}",
                        reply.status,
                        reply.body
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("it heard nothing wrong");
    }
    over.store(true, Ordering::Relaxed);
    assert!(writer.await.expect("it wrote") > 0);
    for (order, key) in &orders {
        shop.until(order, |body| {
            body["payable"] == true || body["status"] == "paid"
        })
        .await;
        let _ = shop.confirm(order, key).await;
        shop.until_status(order, "paid").await;
        assert_eq!(shop.charges(&order.id), 1);
    }
    shop.end().await;
}

fn one_of_many(shop: &Shop, (order, key): &(Order, String), n: usize) -> reqwest::RequestBuilder {
    let path = match n % 5 {
        0 => return shop.confirm_request(order, &order.id, key),
        1 => {
            let word = json!({"data": {"paymentKey": key, "orderId": order.id, "status": "DONE"}});
            return shop
                .post("/webhooks/toss")
                .header("tosspayments-webhook-transmission-id", n.to_string())
                .json(&word);
        }
        2 => format!("/checkout/{}", order.id),
        3 => "/orders".to_owned(),
        _ => format!("/api/orders/{}", order.id),
    };
    shop.get(&path).header(COOKIE, &order.cookie)
}

/// Takes the write lock for a moment, again and again; how often.
async fn write_beside(url: String, over: Arc<AtomicBool>) -> u32 {
    let mut beside = Beside::open(&url).await;
    beside.run("PRAGMA busy_timeout = 10000").await;
    let mut times = 0;
    while !over.load(Ordering::Relaxed) {
        beside.run("BEGIN IMMEDIATE").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        beside.run("ROLLBACK").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        times += 1;
    }
    times
}
