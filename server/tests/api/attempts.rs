//! Attempts: opening and closing the window never locks an order, and every id means what it says.

use reqwest::header::COOKIE;
use serde_json::json;

use crate::shop::{Reply, Shop};

#[tokio::test]
async fn opening_the_window_again_gives_the_same_attempt() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let (first, second) = (shop.attempt(&order).await, shop.attempt(&order).await);
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.body, second.body);
    assert_eq!(first.body["gatewayOrderId"], order.id);
    let reference = first.body["reference"].as_str().unwrap();
    assert_eq!(reference.len(), 32);
    assert!(first.body["payUrl"].as_str().unwrap().contains(reference));
    assert_eq!(shop.pay(&order).await.status, 200);
    shop.attempt(&order)
        .await
        .refused(409, "order_already_paid");
    shop.end().await;
}

#[tokio::test]
async fn after_nothing_was_sent_the_same_gateway_order_id_serves_again() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    shop.attempt(&order).await;
    let key = shop.key(&order.id, order.amount);
    let late = shop
        .confirm_request(&order, &order.id, &key)
        .header("X-Request-Timeout-Ms", "0");
    Reply::of(late.send().await.unwrap())
        .await
        .refused(503, "deadline_passed");
    let again = shop.attempt(&order).await;
    assert_eq!(
        (&again.body["attempt"], &again.body["gatewayOrderId"]),
        (&json!(2), &json!(order.id))
    );
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    let state = shop.poll(&order).await;
    assert_eq!(state.body["attempt"]["number"], 2);
    shop.end().await;
}

#[tokio::test]
async fn a_window_that_closed_before_the_confirm_is_expired_and_a_new_one_can_be_opened() {
    let shop = Shop::with(&[
        ("JARI_PG_AUTHENTICATION_WINDOW_MS", "1"),
        ("JARI_PG_CONFIRM_WINDOW_MS", "50"),
    ])
    .await;
    let order = shop.order("mug", 1).await;
    shop.attempt(&order).await;
    shop.until_attempt(&order, "expired").await;
    let key = shop.key(&order.id, order.amount);
    shop.confirm(&order, &key)
        .await
        .refused(409, "attempt_expired");
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    assert_eq!(shop.attempt(&order).await.status, 201);
    assert_eq!(shop.confirms(), 0);
    shop.end().await;
}

#[tokio::test]
async fn an_order_whose_time_is_over_takes_no_payment() {
    let shop = Shop::with(&[("JARI_ORDER_TTL_MS", "1")]).await;
    let order = shop.order("mug", 1).await;
    shop.until_status(&order, "expired").await;
    let key = shop.key(&order.id, order.amount);
    shop.confirm(&order, &key)
        .await
        .refused(409, "order_expired");
    shop.attempt(&order).await.refused(409, "order_expired");
    assert_eq!(shop.confirms(), 0);
    shop.end().await;
}

#[tokio::test]
async fn an_unknown_gateway_is_refused() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let request = shop
        .post(&format!("/api/orders/{}/attempts", order.id))
        .header(COOKIE, &order.cookie);
    let reply = Reply::of(
        request
            .json(&json!({"gateway": "nobody"}))
            .send()
            .await
            .unwrap(),
    )
    .await;
    reply.refused(400, "invalid_request");
    shop.end().await;
}
