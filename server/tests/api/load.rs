//! Classes of requests have bounds of their own; what is refused for load says nothing about an order.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::header::{COOKIE, ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};

use crate::shop::{Reply, Shop};

#[tokio::test]
async fn a_poll_that_knows_it_all_is_answered_304_and_from_memory() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    shop.pay(&order).await;
    let known = shop.poll(&order).await;
    let tag = known.headers[ETAG].clone();
    let again = || {
        shop.get(&format!("/api/orders/{}", order.id))
            .header(COOKIE, &order.cookie)
            .header(IF_NONE_MATCH, tag.clone())
    };
    for _ in 0..5 {
        let reply = Reply::of(again().send().await.unwrap()).await;
        assert_eq!((reply.status, &reply.headers[ETAG]), (304, &tag));
        assert_eq!(reply.headers["cache-control"], "no-store");
    }
    let cached = shop.metric("poll_answers_total{source=\"cache\"}").await;
    assert!(cached >= 4.0, "{cached} of 5 came from memory");
    // Somebody else's order is not there, in memory or not.
    let stranger = shop.order("mug", 1).await;
    let request = shop
        .get(&format!("/api/orders/{}", order.id))
        .header(COOKIE, &stranger.cookie);
    Reply::of(request.send().await.unwrap())
        .await
        .refused(404, "order_not_found");
    shop.end().await;
}

#[tokio::test]
async fn one_shopper_may_make_only_so_many_orders_and_confirms_and_a_refusal_claims_nothing() {
    let shop = Shop::with(&[("JARI_RATE_LIMITS", "on")]).await;
    let order = shop.order("mug", 1).await;
    let make = || {
        shop.post("/api/orders")
            .header(COOKIE, &order.cookie)
            .json(&json!({"items": [{"sku": "mug", "quantity": 1}]}))
    };
    let mut last = None;
    for _ in 0..12 {
        last = Some(Reply::of(make().send().await.unwrap()).await);
    }
    last.unwrap().refused(429, "rate_limited");
    let mut last = None;
    for _ in 0..12 {
        let request = shop.confirm_request(&order, "ord_not_there", "key").send();
        last = Some(Reply::of(request.await.unwrap()).await);
    }
    last.unwrap().refused(429, "rate_limited");
    let state = shop.poll(&order).await;
    assert_eq!((state.status, &state.body["payable"]), (200, &json!(true)));
    assert_eq!(shop.confirms(), 0);
    let limited = "rate_limited_total{limit=\"confirm_session\"}";
    assert!(shop.metric(limited).await >= 1.0);
    // Another shopper behind the same address is not held up.
    let other = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&other).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn a_body_that_drips_is_refused_in_time_and_nothing_is_done() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let address = shop.url.trim_start_matches("http://").to_owned();
    let cookie = order.cookie.clone();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let head = format!(
            "POST /api/payments/confirm HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
             content-length: 90\r\ncookie: {cookie}\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a timeout");
        let mut answer = vec![0; 4_096];
        let n = stream.read(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer[..n]).into_owned()
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("invalid_request"), "{answer}");
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    shop.end().await;
}

/// More of them than any lane works on at once.
const DRIPPING: usize = 80;

#[tokio::test]
async fn clients_that_never_finish_their_body_hold_up_nobody() {
    let shop = Shop::open().await;
    let address = shop.url.trim_start_matches("http://");
    let mut dripping = Vec::new();
    for n in 0..DRIPPING {
        let path = ["/webhooks/toss", "/api/orders"][n % 2];
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{{"
        );
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(head.as_bytes()).expect("sent");
        dripping.push(stream);
    }
    let order = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&order).await.status, 200);
    let word = json!({"data": {"paymentKey": "k", "orderId": order.id, "status": "DONE"}});
    let told = shop.post("/webhooks/toss").json(&word).send().await;
    assert_eq!(told.unwrap().status(), 200);
    for class in ["webhook", "order"] {
        let shed = shop
            .metric(&format!("http_shed_total{{class=\"{class}\"}}"))
            .await;
        assert_eq!(shed, 0.0, "{class}");
    }
    drop(dripping);
    shop.end().await;
}

#[tokio::test]
async fn the_labs_workers_queue_and_a_departed_client_frees_none() {
    let shop = Shop::with(&[("JARI_LAB_WORKERS", "1")]).await;
    let (first, second) = (shop.order("mug", 1).await, shop.order("mug", 1).await);
    shop.set(json!({"delayMs": 600})).await;
    let key = shop.key(&first.id, first.amount);
    let paying = shop.start_pay(&first, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    // The only worker is busy: the read waits behind the confirm.
    shop.poll(&second).await;
    assert_eq!(shop.pg.ledger().calls.confirm.approved, 1);
    assert_eq!(paying.await.unwrap().unwrap().status, 200);
    shop.end().await;
}

#[tokio::test]
async fn a_second_process_on_the_same_file_does_not_start() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let ended = shop.second_process().await;
    assert!(!ended.success());
    assert_eq!(shop.pay(&order).await.status, 200);
    shop.end().await;
}

/// The names that others read (the contract's section 6), and what bounds each thing.
#[tokio::test]
async fn everything_bounded_is_a_gauge_from_the_start() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&order).await.status, 200);
    let text = shop.metrics().await;
    for start in [
        "pg_cap{gateway=\"toss\"} 40",
        "pg_reserve{gateway=\"toss\"} 4",
        "pg_in_flight{gateway=\"toss\",operation=\"confirm\"} 0",
        "pg_places{gateway=\"toss\",operation=\"confirm\"} 40",
        "pg_places{gateway=\"toss\",operation=\"inquire\"} 8",
        "pg_calls_total{gateway=\"toss\",operation=\"confirm\",outcome=\"approved\"} 1",
        "pg_not_sent_total{gateway=\"toss\",reason=\"cap\"} 0",
        "pg_not_sent_total{gateway=\"toss\",reason=\"circuit\"} 0",
        "pg_not_sent_total{gateway=\"toss\",reason=\"deadline\"} 0",
        "pg_not_sent_total{gateway=\"toss\",reason=\"connect\"} 0",
        "pg_resend_total{gateway=\"toss\",decision=\"no_free_slots\"} 0",
        "pg_slot_hold_seconds_count{gateway=\"toss\"} 1",
        "pg_call_duration_seconds_count{gateway=\"toss\",operation=\"confirm\"} 1",
        "payments_total{status=\"approved\"} 1",
        "payments_total{status=\"mischarged\"} 0",
        "payments_unknown 0",
        "payments_unknown_oldest_seconds 0",
        "circuit_state{gateway=\"toss\"} 0",
        "http_in_flight{class=\"confirm\"} 0",
        "http_lane_capacity{class=\"confirm\"} 1024",
        "http_lane_capacity{class=\"read\"} 256",
        "http_shed_total{class=\"poll\"} 0",
        "http_connections_max 16384",
        "http_connections ",
        "db_pool_max{pool=\"writer\"} 1",
        "db_pool_max{pool=\"polls\"} 4",
        "db_pool_connections{pool=\"reads\",state=\"idle\"}",
        "database_commit_seconds_count",
        "http_requests_duration_seconds_count{route=\"/api/payments/confirm\",status=\"200\"} 1",
        "poll_after_ms 2000",
        "nodes_alive 1",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(start)),
            "{start} is not in\n{text}"
        );
    }
    shop.end().await;
}

#[tokio::test]
async fn an_exchange_can_be_found_by_its_id() {
    let shop = Shop::open().await;
    let request = shop
        .get("/api/products")
        .header("x-request-id", "page-1234567");
    let reply = Reply::of(request.send().await.unwrap()).await;
    assert_eq!(reply.headers["x-request-id"], "page-1234567");
    let reply = Reply::of(shop.get("/api/products").send().await.unwrap()).await;
    assert_eq!(reply.headers["x-request-id"].len(), 16);
    let _: Value = reply.body;
    shop.end().await;
}
