//! Refunds that cross something else: a confirm, another refund, one at the gateway's own desk.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn a_cancel_never_crosses_a_payment_that_is_not_known_yet() {
    let shop = Shop::with(&[OPERATOR]).await;
    shop.set(json!({"delayMs": 800, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    // Cancelled before it is paid: there is nothing to give back, and the order may still be paid.
    by_shopper(&shop, &order, "k0", &json!({"reason": "변심"}))
        .await
        .refused(409, "refund_exceeds_balance");
    let running = shop.start_pay(&order, &key);
    shop.until_attempt(&order, "approving").await;
    by_shopper(&shop, &order, "k1", &json!({"reason": "변심"}))
        .await
        .refused(409, "attempt_in_progress");
    by_operator(&shop, &order, "k2", None)
        .await
        .refused(409, "attempt_in_progress");
    assert_eq!(running.await.unwrap().expect("an answer").status, 200);
    // The same wish once the payment is known: charged, then given back whole.
    let reply = by_shopper(&shop, &order, "k1", &json!({"reason": "변심"})).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    assert_eq!(canceled_won(&shop, &order), order.amount);
    shop.end().await;
}

#[tokio::test]
async fn a_payment_in_doubt_cannot_be_cancelled_until_it_is_known() {
    let shop = Shop::with(&[OPERATOR]).await;
    // Booked, and neither the answer nor a question comes through.
    let silent = json!({"operations": ["confirm", "get"], "loss": {"when": "after"}, "webhooks": {"drop": 1.0}});
    shop.set(silent).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    assert_eq!(shop.confirm(&order, &key).await.status, 202);
    shop.until_attempt(&order, "unknown").await;
    by_operator(&shop, &order, "k1", None)
        .await
        .refused(409, "attempt_in_progress");
    assert_eq!(cancels_received(&shop), 0);
    shop.set(json!({})).await;
    shop.until_status(&order, "paid").await;
    assert_eq!(by_operator(&shop, &order, "k1", None).await.status, 200);
    let money = shop.pg.ledger().orders[&order.id];
    assert_eq!((money.charges, money.cancels), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn another_click_and_another_operator_take_no_second_refund() {
    let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    let (order, _) = paid(&shop, "notebook").await;
    let lost = json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}});
    shop.set(of_cancels(lost)).await;
    // Of 12,000: 3,000 are given back and the answer is lost.
    by_operator(&shop, &order, "click-1", Some(3_000)).await;
    // The same click again is the same wish; a second operator wants more than is left beside it.
    by_operator(&shop, &order, "click-1", Some(3_000)).await;
    by_operator(&shop, &order, "other", Some(10_000))
        .await
        .refused(409, "refund_exceeds_balance");
    let end = end_of(&shop, &order, "click-1", Some(3_000)).await;
    assert_eq!((end.status, &end.body["refunded"]), (200, &json!(3_000)));
    assert_eq!(canceled_won(&shop, &order), 3_000);
    shop.end().await;
}

#[tokio::test]
async fn as_much_given_back_at_the_desk_meanwhile_is_not_taken_for_ours() {
    let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    let (order, key) = paid(&shop, "mug").await;
    // Ours does not arrive, and somebody gives back as much at the desk; nobody tells us.
    shop.set(of_cancels(
        json!({"loss": {"when": "before"}, "webhooks": {"drop": 1.0}}),
    ))
    .await;
    assert_eq!(
        by_operator(&shop, &order, "k1", Some(3_000)).await.status,
        202
    );
    shop.set(json!({"webhooks": {"drop": 1.0}, "operations": ["get"], "error": {"status": 503}}))
        .await;
    at_the_desk(&shop, &key, 3_000).await;
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    let end = end_of(&shop, &order, "k1", Some(3_000)).await;
    assert_eq!(end.status, 200, "{:?}", end.body);
    assert_eq!(end.body["refunded"], 6_000);
    assert_eq!(canceled_won(&shop, &order), 6_000);
    shop.end().await;
}

#[tokio::test]
async fn a_refund_under_an_old_balance_is_not_executed_and_asks_before_it_tries_again() {
    let shop = Shop::with(&[OPERATOR]).await;
    let (order, key) = paid(&shop, "mug").await;
    // We have not heard of it: our call goes out under the old balance.
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    at_the_desk(&shop, &key, 10_000).await;
    let reply = by_operator(&shop, &order, "k1", Some(9_000)).await;
    let end = if reply.status == 202 {
        end_of(&shop, &order, "k1", Some(9_000)).await
    } else {
        reply
    };
    end.refused(409, "refund_exceeds_balance");
    assert_eq!(canceled_won(&shop, &order), 10_000);
    // The desk's refund was learned by it; a whole refund is what is left.
    let rest = by_operator(&shop, &order, "k2", None).await;
    assert_eq!(rest.status, 200, "{:?}", rest.body);
    assert_eq!(rest.body["refund"]["amount"], order.amount - 10_000);
    assert_eq!(rest.body["status"], "canceled");
    shop.end().await;
}

#[tokio::test]
async fn a_shoppers_whole_cancel_takes_what_the_desk_left() {
    let shop = Shop::open().await;
    let (order, key) = paid(&shop, "mug").await;
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    at_the_desk(&shop, &key, 5_000).await;
    let reply = by_shopper(&shop, &order, "k1", &json!({"reason": "변심"})).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    assert_eq!(reply.body["refund"]["amount"], order.amount - 5_000);
    assert_eq!(reply.body["refunded"], order.amount);
    assert_eq!(canceled_won(&shop, &order), order.amount);
    shop.end().await;
}

#[tokio::test]
async fn money_given_back_at_the_desk_is_learned_by_webhook() {
    let shop = Shop::with(&[OPERATOR]).await;
    let free = shop.free("mug").await;
    let (order, key) = paid(&shop, "mug").await;
    at_the_desk(&shop, &key, 5_000).await;
    shop.until_status(&order, "partially_canceled").await;
    by_operator(&shop, &order, "k1", Some(order.amount - 4_999))
        .await
        .refused(409, "refund_exceeds_balance");
    at_the_desk(&shop, &key, order.amount - 5_000).await;
    shop.until_status(&order, "canceled").await;
    assert_eq!(shop.free("mug").await, free);
    by_operator(&shop, &order, "k2", None)
        .await
        .refused(409, "order_closed");
    shop.end().await;
}

#[tokio::test]
async fn a_gateway_that_forgets_keys_still_refunds_once() {
    let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    let (order, _) = paid(&shop, "mug").await;
    let lost = json!({"loss": {"ratio": 0.7, "when": "after"}, "idempotency": "off", "webhooks": {"drop": 1.0}});
    shop.set(of_cancels(lost)).await;
    for n in 0..4 {
        let key = format!("k{n}");
        let end = end_of(&shop, &order, &key, Some(1_000)).await;
        assert_eq!(end.status, 200, "{:?}", end.body);
    }
    assert_eq!(canceled_won(&shop, &order), 4_000);
    shop.end().await;
}

#[tokio::test]
async fn a_refund_is_told_by_no_more_than_one_effect() {
    let shop = Shop::with(&[OPERATOR]).await;
    let (order, _) = paid(&shop, "mug").await;
    by_operator(&shop, &order, "k1", Some(3_000)).await;
    by_operator(&shop, &order, "k1", Some(3_000)).await;
    // The webhook of it comes too, and its inquiry.
    tokio::time::sleep(Duration::from_millis(50)).await;
    by_operator(&shop, &order, "k2", None).await;
    shop.until_status(&order, "canceled").await;
    let effects = shop.effects(&order).await;
    assert_eq!(
        effects,
        [
            ("order_paid".to_owned(), String::new()),
            ("order_partially_canceled".to_owned(), "3000".to_owned()),
            ("order_canceled".to_owned(), order.amount.to_string()),
        ]
    );
    shop.end().await;
}
