//! Slow, stopped and hanging gateways, and callers who hang up.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::Shop;

#[tokio::test]
async fn a_delay_passes_before_the_booking() {
    let shop = Shop::open().await;
    shop.scenario(json!({"delayMs": 400})).await;
    let started = Instant::now();
    let (reply, ()) = tokio::join!(shop.buy("order_1"), async {
        shop.until("it arrives", |ledger| ledger.calls.confirm.received == 1)
            .await;
        assert_eq!(
            shop.charges("order_1"),
            0,
            "booked at the end of the delay only"
        );
    });
    assert_eq!(reply.expect("an answer").status, 200);
    assert!(started.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn a_slow_tail_adds_to_the_delay() {
    let shop = Shop::open().await;
    let tail = json!({"ratio": 1, "delayMs": 100});
    shop.scenario(json!({"delayMs": {"min": 50, "max": 60}, "slowTail": tail}))
        .await;
    let started = Instant::now();
    assert_eq!(shop.buy("order_1").await.expect("an answer").status, 200);
    assert!(started.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn a_stopped_gateway_answers_the_calls_still_connected_once_it_is_lifted() {
    let shop = Shop::open().await;
    shop.scenario(json!({"stop": true})).await;
    let stays = tokio::spawn({
        let key = shop.pg.authenticate("order_1", 1_000);
        shop.confirm_request(&key, "order_1", 1_000).send()
    });
    let leaves = tokio::spawn({
        let key = shop.pg.authenticate("order_2", 1_000);
        shop.confirm_request(&key, "order_2", 1_000).send()
    });
    shop.until("both arrive", |ledger| ledger.peak_in_flight.confirm == 2)
        .await;
    leaves.abort();
    shop.until("one hangs up", |ledger| ledger.calls.confirm.dropped == 1)
        .await;
    assert!(!stays.is_finished());

    shop.scenario(json!({})).await;
    assert_eq!(
        stays.await.expect("no panic").expect("an answer").status(),
        200
    );
    assert_eq!((shop.charges("order_1"), shop.charges("order_2")), (1, 0));
}

#[tokio::test]
async fn a_hang_before_books_at_its_end_and_a_hang_after_at_its_start() {
    let shop = Shop::open().await;
    shop.scenario(json!({"hang": {"when": "before", "ms": 400}}))
        .await;
    let (reply, ()) = tokio::join!(shop.buy("order_1"), async {
        shop.until("it arrives", |ledger| ledger.calls.confirm.received == 1)
            .await;
        assert_eq!(shop.charges("order_1"), 0);
    });
    assert_eq!(
        (reply.expect("an answer").status, shop.charges("order_1")),
        (200, 1)
    );

    shop.scenario(json!({"hang": {"when": "after", "ms": 60_000}}))
        .await;
    let hanging = tokio::spawn({
        let key = shop.pg.authenticate("order_2", 1_000);
        shop.confirm_request(&key, "order_2", 1_000).send()
    });
    shop.until("it is booked", |ledger| {
        ledger.orders.contains_key("order_2")
    })
    .await;
    assert_eq!(shop.charges("order_2"), 1);
    assert!(!hanging.is_finished());
}

#[tokio::test]
async fn work_goes_on_for_a_caller_who_hung_up() {
    let shop = Shop::open().await;
    shop.scenario(json!({"delayMs": 400})).await;
    hang_up(&shop, "order_1").await;
    shop.until("it is charged", |ledger| {
        ledger.orders["order_1"].charges == 1
    })
    .await;
    assert_eq!(shop.ledger().calls.confirm.dropped, 0);
}

#[tokio::test]
async fn work_is_dropped_with_its_caller_where_the_scenario_says_so() {
    let shop = Shop::open().await;
    shop.scenario(json!({"delayMs": 60_000, "continueAfterDisconnect": false}))
        .await;
    let payment_key = hang_up(&shop, "order_1").await;
    shop.until("it is dropped", |ledger| ledger.calls.confirm.dropped == 1)
        .await;
    assert_eq!(shop.charges("order_1"), 0);

    shop.scenario(json!({})).await;
    let again = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect("an answer");
    assert_eq!(
        again.status, 200,
        "neither the payment nor the key is in use"
    );
    assert_eq!(shop.ledger().calls.confirm.replayed, 0);
}

/// Confirms under the key `k` and hangs up once the call has arrived.
async fn hang_up(shop: &Shop, order: &str) -> String {
    let payment_key = shop.pg.authenticate(order, 1_000);
    let request = shop
        .confirm_request(&payment_key, order, 1_000)
        .header("idempotency-key", "k");
    let call = tokio::spawn(request.send());
    shop.until("it arrives", |ledger| ledger.calls.confirm.received == 1)
        .await;
    call.abort();
    payment_key
}

#[tokio::test]
async fn a_contract_limit_answers_429_to_concurrent_confirms_above_it() {
    let shop = Shop::open().await;
    shop.scenario(json!({"contractLimit": 2, "delayMs": 1_000}))
        .await;
    let orders: Vec<_> = (0..5).map(|number| format!("order_{number}")).collect();
    let replies = futures::future::join_all(orders.iter().map(|order| shop.buy(order))).await;
    let limited = replies
        .iter()
        .flatten()
        .filter(|reply| reply.status == 429)
        .count();
    assert_eq!(limited, 3);
    let ledger = shop.ledger();
    assert_eq!(
        (ledger.calls.confirm.limited, ledger.calls.confirm.approved),
        (3, 2)
    );
    assert_eq!(ledger.peak_in_flight.confirm, 2);
}

#[tokio::test]
async fn an_inquiry_does_not_find_a_payment_for_a_while_after_its_booking() {
    let shop = Shop::open().await;
    shop.scenario(json!({"notFoundForMs": 60_000})).await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    assert_eq!(
        shop.inquire(&payment_key).await.json()["status"],
        "IN_PROGRESS"
    );
    assert_eq!(
        shop.confirm(&payment_key, "order_1", 1_000).await.status,
        200
    );
    assert_eq!(
        shop.inquire(&payment_key).await.refusal(),
        (404, "NOT_FOUND_PAYMENT".into())
    );
    shop.scenario(json!({"notFoundForMs": 0})).await;
    assert_eq!(shop.inquire(&payment_key).await.json()["status"], "DONE");
}

#[tokio::test]
async fn a_payment_expires_when_nobody_confirms_it_in_time() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.scenario(json!({"confirmWindowMs": 0})).await;
    let late = shop.confirm(&payment_key, "order_1", 1_000).await;
    assert_eq!(late.refusal(), (404, "NOT_FOUND_PAYMENT_SESSION".into()));
    let payment = shop.inquire(&payment_key).await.json();
    assert_eq!(payment["status"], "EXPIRED");
    assert_eq!(payment["failure"]["code"], "EXPIRED_PAYMENT");
}

#[tokio::test]
async fn a_confirm_that_began_inside_the_window_does_not_expire() {
    let shop = Shop::open().await;
    shop.scenario(json!({"delayMs": 800})).await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    let (reply, ()) = tokio::join!(shop.confirm(&payment_key, "order_1", 1_000), async {
        shop.until("it arrives", |ledger| ledger.calls.confirm.received == 1)
            .await;
        shop.scenario(json!({"confirmWindowMs": 0})).await;
        assert_eq!(
            shop.inquire(&payment_key).await.json()["status"],
            "IN_PROGRESS"
        );
    });
    assert_eq!(
        (reply.status, reply.json()["status"].clone()),
        (200, json!("DONE"))
    );
}
