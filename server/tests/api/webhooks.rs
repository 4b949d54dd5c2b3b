//! Webhooks: stored, answered, and believed only after the gateway was asked.

use serde_json::{Value, json};

use crate::shop::{Node, Order, Shop};

pub(crate) async fn hook(shop: &Node, id: Option<&str>, body: Value) -> u16 {
    let request = shop.post("/webhooks/toss").json(&body);
    let request = match id {
        Some(id) => request.header("tosspayments-webhook-transmission-id", id),
        None => request,
    };
    request.send().await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn a_webhook_makes_a_lost_payment_known_at_once() {
    let shop = Shop::open().await;
    shop.set(json!({"loss": {"when": "after"}})).await;
    let order = shop.order("mug", 1).await;
    shop.pay(&order).await;
    shop.until_status(&order, "paid").await;
    assert!(
        shop.metric("webhook_events_total{gateway=\"toss\",result=\"stored\"}")
            .await
            >= 1.0
    );
    shop.end().await;
}

#[tokio::test]
async fn a_webhook_before_the_confirms_answer_is_the_same_payment_once() {
    let shop = Shop::open().await;
    shop.set(json!({"hang": {"when": "after", "ms": 1_000}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let running = shop.start_pay(&order, &key);
    shop.until_status(&order, "paid").await;
    assert_eq!(running.await.unwrap().expect("an answer").status, 200);
    assert_eq!(shop.charges(&order.id), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_forged_webhook_changes_nothing() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    shop.attempt(&order).await;
    let key = shop.key(&order.id, order.amount);
    let forged = json!({"eventType": "PAYMENT_STATUS_CHANGED", "createdAt": "2026-10-02T10:15:41.20417",
        "data": {"paymentKey": key, "orderId": order.id, "status": "DONE", "totalAmount": order.amount}});
    assert_eq!(hook(&shop, Some("forged-1"), forged).await, 200);
    let state = shop.poll(&order).await;
    assert_eq!(
        (&state.body["status"], &state.body["payable"]),
        (&json!("pending"), &json!(true))
    );
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn a_webhook_for_nobody_a_rubbish_one_and_a_resent_one_are_answered_200() {
    let shop = Shop::open().await;
    let unknown =
        json!({"data": {"paymentKey": "pk_nobody", "orderId": "ord_nobody", "status": "DONE"}});
    assert_eq!(hook(&shop, Some("w1"), unknown.clone()).await, 200);
    assert_eq!(hook(&shop, Some("w1"), unknown).await, 200);
    assert_eq!(hook(&shop, None, json!({"hello": 1})).await, 200);
    let raw = shop
        .post("/webhooks/toss")
        .body("\u{0}not json")
        .send()
        .await
        .unwrap();
    assert_eq!(raw.status(), 200);
    let huge = shop
        .post("/webhooks/toss")
        .body("x".repeat(70_000))
        .send()
        .await
        .unwrap();
    assert_eq!(huge.status(), 413);
    assert!(
        (shop
            .metric("webhook_events_total{gateway=\"toss\",result=\"duplicate\"}")
            .await
            - 1.0)
            .abs()
            < 0.1
    );
    assert_eq!(shop.pg.ledger().calls.get.received, 0);
    shop.end().await;
}

#[tokio::test]
async fn a_webhook_that_comes_before_its_confirm_waits_for_it() {
    let shop = Shop::open().await;
    shop.set(json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let early = json!({"data": {"paymentKey": key, "orderId": order.id, "status": "DONE"}});
    assert_eq!(hook(&shop, Some("early"), early).await, 200);
    shop.confirm(&order, &key).await;
    shop.until_status(&order, "paid").await;
    assert_eq!(shop.charges(&order.id), 1);
    shop.end().await;
}

#[tokio::test]
async fn money_given_back_at_the_gateways_desk_is_learned() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    let cancel = shop
        .client
        .post(format!("{}/v1/payments/{key}/cancel", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"cancelReason": "at the desk"}))
        .send()
        .await
        .unwrap();
    assert_eq!(cancel.status(), 200);
    shop.until_status(&order, "canceled").await;
    shop.confirm(&order, &key)
        .await
        .refused(409, "order_closed");
    shop.end().await;
}

/// Times that end a doubt soon, so that a late charge can be made.
pub(crate) const SHORT: [(&str, &str); 3] = [
    ("JARI_PG_CONFIRM_WINDOW_MS", "300"),
    ("JARI_PG_TIMEOUT_MS", "600"),
    ("JARI_DATABASE_WAIT_MS", "200"),
];

/// An order whose attempt has failed because nothing was ever booked; `key` can still be charged at the gateway.
pub(crate) async fn failed_by_the_clock(shop: &Shop) -> (Order, String) {
    // Nothing is booked and the payment stays "in progress" at the gateway: failed when the settling time is over.
    shop.set(json!({"loss": {"when": "before"}})).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    shop.confirm(&order, &key).await;
    shop.until_attempt(&order, "failed").await;
    (order, key)
}

/// The gateway charges it after all, by a confirm that is not ours.
pub(crate) async fn charge_late(shop: &Shop, order: &Order, key: &str) {
    let late = shop
        .client
        .post(format!("{}/v1/payments/confirm", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"paymentKey": key, "orderId": order.id, "amount": order.amount}))
        .send()
        .await
        .expect("an answer");
    assert_eq!(late.status(), 200);
}

#[tokio::test]
async fn a_late_charge_is_learned_though_the_first_question_about_it_was_not_answered() {
    let shop = Shop::with(&SHORT).await;
    let (order, key) = failed_by_the_clock(&shop).await;
    // Now it is charged after all, and every question is met with silence.
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    charge_late(&shop, &order, &key).await;
    shop.set(json!({"operations": ["get"], "error": {"status": 503}}))
        .await;
    let word = json!({"data": {"paymentKey": key, "orderId": order.id, "status": "DONE"}});
    let asked = shop.pg.ledger().calls.get.received;
    assert_eq!(hook(&shop, Some("late"), word).await, 200);
    shop.until_ledger(|ledger| ledger.calls.get.received > asked)
        .await;
    shop.set(json!({})).await;
    // Learned all the same, and given back: the attempt had ended.
    shop.until_attempt(&order, "canceled").await;
    let money = &shop.pg.ledger().orders[&order.id];
    assert_eq!((money.charges, money.cancels), (1, 1));
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    shop.end().await;
}

#[tokio::test]
async fn a_late_charge_is_learned_though_it_was_told_before_it_could_be_seen() {
    let shop = Shop::with(&SHORT).await;
    let (order, key) = failed_by_the_clock(&shop).await;
    shop.set(json!({"notFoundForMs": 2_500})).await;
    let asked = shop.pg.ledger().calls.get.received;
    charge_late(&shop, &order, &key).await;
    shop.until_ledger(|ledger| ledger.calls.get.received > asked)
        .await;
    shop.until_attempt(&order, "canceled").await;
    assert_eq!(shop.pg.ledger().orders[&order.id].cancels, 1);
    shop.end().await;
}

#[tokio::test]
async fn a_cancel_that_is_owed_is_made_though_its_first_try_met_a_busy_gateway() {
    let shop = Shop::with(&SHORT).await;
    let (order, key) = failed_by_the_clock(&shop).await;
    shop.set(json!({"operations": ["cancel"], "error": {"status": 503}}))
        .await;
    charge_late(&shop, &order, &key).await;
    shop.until_ledger(|ledger| ledger.calls.cancel.received >= 1)
        .await;
    let state = shop.poll(&order).await;
    state.attempt("cancel_requested");
    assert_eq!(state.body["payable"], false);
    shop.set(json!({})).await;
    shop.until_attempt(&order, "canceled").await;
    shop.end().await;
}

#[tokio::test]
async fn a_cancel_that_the_gateway_refuses_is_not_repeated_at_once() {
    let shop = Shop::with(&SHORT).await;
    let (order, key) = failed_by_the_clock(&shop).await;
    let refused = json!({"status": 403, "code": "NOT_CANCELABLE_PAYMENT"});
    shop.set(json!({"operations": ["cancel"], "error": refused}))
        .await;
    charge_late(&shop, &order, &key).await;
    shop.until_attempt(&order, "failed").await;
    shop.until_ledger(|ledger| ledger.calls.cancel.received >= 1)
        .await;
    // Far more time than a look takes: a loop without back-off would ask and cancel hundreds of times.
    let word =
        || json!({"data": {"paymentKey": "another", "orderId": "ord_other", "status": "DONE"}});
    for n in 0..20 {
        assert_eq!(hook(&shop, Some(&format!("pass-{n}")), word()).await, 200);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let cancels = shop.pg.ledger().calls.cancel.received;
    assert!(cancels <= 2, "{cancels} cancels in a second");
    // The money is still there, so nothing else may be paid.
    assert_eq!(shop.poll(&order).await.body["payable"], false);
}
