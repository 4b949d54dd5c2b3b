//! The confirm: once, detached, capped, and honest about time.

use std::time::{Duration, Instant};

use reqwest::header::COOKIE;
use serde_json::json;

use crate::shop::{Reply, Shop};

#[tokio::test]
async fn a_payment_is_approved_and_asked_about_again_answers_the_same() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 2).await;
    let key = shop.key(&order.id, order.amount);
    let first = shop.confirm(&order, &key).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.body["status"], "paid");
    assert_eq!(first.body["payable"], false);
    first.attempt("approved");
    let again = shop.confirm(&order, &key).await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    let other = shop.key(&order.id, order.amount);
    shop.confirm(&order, &other)
        .await
        .refused(409, "order_already_paid");
    assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn a_passed_deadline_sends_nothing_and_the_order_can_still_be_paid() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    for value in ["0", "-5"] {
        let request = shop
            .confirm_request(&order, &order.id, &key)
            .header("X-Request-Timeout-Ms", value);
        let reply = Reply::of(request.send().await.unwrap()).await;
        reply.refused(503, "deadline_passed");
        assert_eq!(reply.body["reach"], "not_sent");
    }
    assert_eq!(shop.confirms(), 0);
    let state = shop.poll(&order).await;
    assert_eq!(state.body["payable"], true);
    assert_eq!(state.body["attempt"]["reason"], "deadline_passed");
    assert!(
        (shop
            .metric("pg_not_sent_total{gateway=\"toss\",reason=\"deadline\"}")
            .await
            - 2.0)
            .abs()
            < 0.1
    );
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn with_the_check_off_the_header_is_read_and_then_as_absent() {
    let shop = Shop::with(&[("JARI_DEADLINE_CHECK", "off")]).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let bad = shop
        .confirm_request(&order, &order.id, &key)
        .header("X-Request-Timeout-Ms", "soon");
    Reply::of(bad.send().await.unwrap())
        .await
        .refused(400, "invalid_timeout_header");
    let passed = shop
        .confirm_request(&order, &order.id, &key)
        .header("X-Request-Timeout-Ms", "0");
    assert_eq!(passed.send().await.unwrap().status(), 200);
    shop.end().await;
}

#[tokio::test]
async fn time_in_a_trusted_proxys_queue_counts_and_a_strangers_stamp_does_not() {
    for (proxies, status) in [("127.0.0.1", 503), ("10.0.0.1", 200)] {
        let shop = Shop::with(&[("JARI_TRUSTED_PROXIES", proxies)]).await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let request = shop
            .confirm_request(&order, &order.id, &key)
            .header("X-Request-Timeout-Ms", "20000")
            .header("X-Request-Start", format!("t={}", now.as_millis() - 30_000));
        assert_eq!(request.send().await.unwrap().status(), status);
        shop.end().await;
    }
}

#[tokio::test]
async fn the_answer_comes_at_the_deadline_and_the_work_goes_on() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 1_500})).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let request = shop
        .confirm_request(&order, &order.id, &key)
        .header("X-Request-Timeout-Ms", "400");
    let started = Instant::now();
    let reply = Reply::of(request.send().await.unwrap()).await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    reply.attempt("approving");
    assert!(
        started.elapsed() >= Duration::from_millis(350),
        "{:?}",
        started.elapsed()
    );
    shop.until_status(&order, "paid").await;
    assert_eq!(shop.charges(&order.id), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_client_that_hangs_up_at_any_moment_loses_nothing() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 300})).await;
    for hang_up_after in [0, 1, 5, 20, 100, 290, 300, 310] {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let request = shop.confirm_request(&order, &order.id, &key).send();
        let _ = tokio::time::timeout(Duration::from_millis(hang_up_after), request).await;
        let state = shop.until(&order, |body| {
            let status = body["attempt"]["status"].as_str();
            body["status"] == "paid" || (status.is_none() && shop.charges(&order.id) == 0)
        });
        let state = state.await;
        let paid = u64::from(state.body["status"] == "paid");
        assert_eq!(
            shop.charges(&order.id),
            paid,
            "hung up after {hang_up_after} ms"
        );
    }
    shop.until_ledger(|_| true).await;
    assert!(
        shop.metric("pg_in_flight{gateway=\"toss\",operation=\"confirm\"}")
            .await
            .abs()
            < 0.1
    );
    shop.end().await;
}

#[tokio::test]
async fn one_more_than_the_cap_is_refused_at_once_and_can_pay_again() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 5_000})).await;
    let mut orders = Vec::new();
    for _ in 0..41 {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        orders.push((order, key));
    }
    let started = Instant::now();
    let running: Vec<_> = orders
        .iter()
        .map(|(order, key)| shop.start_pay(order, key))
        .collect();
    let mut refused = Vec::new();
    for (index, confirm) in running.into_iter().enumerate() {
        let reply = confirm.await.unwrap().expect("an answer");
        match reply.status {
            200 => {}
            503 => {
                reply.refused(503, "pg_cap_reached");
                assert_eq!(reply.body["reach"], "not_sent");
                refused.push(index);
            }
            status => panic!("{status}: {:?}", reply.body),
        }
    }
    assert_eq!(refused.len(), 1);
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(shop.pg.ledger().peak_in_flight.confirm, 40);
    assert!(
        (shop
            .metric("pg_not_sent_total{gateway=\"toss\",reason=\"cap\"}")
            .await
            - 1.0)
            .abs()
            < 0.1
    );
    let (order, key) = &orders[refused[0]];
    assert_eq!(shop.poll(order).await.body["payable"], true);
    shop.set(json!({})).await;
    assert_eq!(shop.confirm(order, key).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn the_same_confirm_sent_many_times_at_once_is_one_payment() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 400})).await;
    let order = shop.order("teapot", 1).await;
    let key = shop.key(&order.id, order.amount);
    let running: Vec<_> = (0..10).map(|_| shop.start_pay(&order, &key)).collect();
    for confirm in running {
        let status = confirm.await.unwrap().expect("an answer").status;
        assert!(status == 200 || status == 202, "{status}");
    }
    shop.until_status(&order, "paid").await;
    assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn another_payment_waits_its_turn_while_one_is_in_doubt() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 800})).await;
    let order = shop.order("mug", 1).await;
    let (first, second) = (
        shop.key(&order.id, order.amount),
        shop.key(&order.id, order.amount),
    );
    let running = shop.start_pay(&order, &first);
    shop.until_attempt(&order, "approving").await;
    shop.confirm(&order, &second)
        .await
        .refused(409, "attempt_in_progress");
    shop.attempt(&order)
        .await
        .refused(409, "attempt_in_progress");
    assert_eq!(running.await.unwrap().unwrap().status, 200);
    shop.confirm(&order, &second)
        .await
        .refused(409, "order_already_paid");
    assert_eq!(shop.confirms(), 1);
    shop.end().await;
}

#[tokio::test]
async fn the_last_piece_is_sold_once() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 300})).await;
    let (first, second) = (shop.order("poster", 1).await, shop.order("poster", 1).await);
    let keys = [
        shop.key(&first.id, first.amount),
        shop.key(&second.id, second.amount),
    ];
    let running = [
        shop.start_pay(&first, &keys[0]),
        shop.start_pay(&second, &keys[1]),
    ];
    let mut statuses = Vec::new();
    for confirm in running {
        let reply = confirm.await.unwrap().expect("an answer");
        if reply.status != 200 {
            reply.refused(409, "out_of_stock");
        }
        statuses.push(reply.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(shop.confirms(), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_decline_frees_the_stock_and_wants_a_new_window() {
    let shop = Shop::open().await;
    shop.set(json!({"decline": {"ratio": 1.0, "code": "REJECT_CARD_COMPANY"}}))
        .await;
    let order = shop.order("poster", 1).await;
    let key = shop.key(&order.id, order.amount);
    let declined = shop.confirm(&order, &key).await;
    declined.refused(402, "declined");
    assert_eq!(
        (&declined.body["reach"], &declined.body["reason"]),
        (&json!("answered"), &json!("card_refused"))
    );
    shop.confirm(&order, &key).await.refused(402, "declined");
    shop.set(json!({})).await;
    let other = shop.key(&order.id, order.amount);
    shop.confirm(&order, &other)
        .await
        .refused(409, "new_attempt_needed");
    let attempt = shop.attempt(&order).await;
    assert_eq!(attempt.status, 201);
    let gateway_order_id = attempt.body["gatewayOrderId"].as_str().unwrap().to_owned();
    assert_eq!(gateway_order_id, format!("{}-2", order.id));
    let key = shop.key(&gateway_order_id, order.amount);
    let paid = shop
        .confirm_request(&order, &gateway_order_id, &key)
        .send()
        .await
        .unwrap();
    assert_eq!(paid.status(), 200);
    assert_eq!(
        (shop.charges(&order.id), shop.charges(&gateway_order_id)),
        (0, 1)
    );
    shop.end().await;
}

#[tokio::test]
async fn a_gateway_that_asks_for_patience_has_processed_nothing() {
    let shop = Shop::open().await;
    shop.set(json!({"error": {"status": 429}})).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let reply = shop.confirm(&order, &key).await;
    reply.refused(503, "pg_refused");
    assert_eq!(reply.body["reach"], "answered");
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    shop.set(json!({})).await;
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn polls_are_fresh_and_cheap_when_nothing_changed() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let first = shop.poll(&order).await;
    let etag = first.headers["etag"].to_str().unwrap().to_owned();
    let path = format!("/api/orders/{}", order.id);
    let again = shop
        .get(&path)
        .header(COOKIE, &order.cookie)
        .header("If-None-Match", &etag)
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 304);
    shop.pay(&order).await;
    let changed = shop
        .get(&path)
        .header(COOKIE, &order.cookie)
        .header("If-None-Match", &etag)
        .send()
        .await
        .unwrap();
    assert_eq!(changed.status(), 200);
    assert_eq!(changed.headers()["cache-control"], "no-store");
    shop.end().await;
}
