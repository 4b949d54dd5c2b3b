//! Cancels whose answer is lost, refused or late, and processes and databases that fail around them.

use std::time::Duration;

use sqlx::{Connection as _, SqliteConnection};

use super::*;

/// Times that make a look's lease short.
const SHORT: [(&str, &str); 2] = [
    ("JARI_PG_TIMEOUT_MS", "1500"),
    ("JARI_DATABASE_WAIT_MS", "300"),
];

#[tokio::test]
async fn a_refund_whose_answers_are_all_lost_is_found_on_the_gateways_list() {
    let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    let (order, _) = paid(&shop, "mug").await;
    let lost = json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}});
    shop.set(of_cancels(lost)).await;
    let reply = by_operator(&shop, &order, "k1", Some(3_000)).await;
    assert!(matches!(reply.status, 200 | 202), "{:?}", reply.body);
    let end = end_of(&shop, &order, "k1", Some(3_000)).await;
    assert_eq!((end.status, &end.body["refunded"]), (200, &json!(3_000)));
    assert_eq!(canceled_won(&shop, &order), 3_000);
    shop.end().await;
}

#[tokio::test]
async fn a_refund_that_the_gateway_never_got_is_made_once_when_it_works_again() {
    let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    let (order, _) = paid(&shop, "mug").await;
    shop.set(of_cancels(json!({"loss": {"when": "before"}})))
        .await;
    let reply = by_operator(&shop, &order, "k1", Some(3_000)).await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    assert_eq!(reply.body["refund"]["status"], "asked");
    assert_eq!(reply.body["status"], "paid");
    reply.attempt("cancel_requested");
    shop.until_ledger(|ledger| ledger.calls.cancel.received >= 2)
        .await;
    shop.set(json!({})).await;
    let end = end_of(&shop, &order, "k1", Some(3_000)).await;
    assert_eq!(end.status, 200, "{:?}", end.body);
    assert_eq!(canceled_won(&shop, &order), 3_000);
    shop.end().await;
}

#[tokio::test]
async fn a_gateway_that_is_busy_or_failing_is_asked_again_and_refunds_once() {
    for (status, code) in [
        (429, None),
        (403, Some("FORBIDDEN_CONSECUTIVE_REQUEST")),
        (400, Some("PROVIDER_ERROR")),
        (500, Some("FAILED_REFUND_PROCESS")),
        (503, None),
    ] {
        for when in ["before", "after"] {
            let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
            let (order, _) = paid(&shop, "mug").await;
            let mut error = json!({"status": status, "when": when});
            if let Some(code) = code {
                error["code"] = json!(code);
            }
            let scenario = json!({"error": error, "webhooks": {"drop": 1.0}});
            shop.set(of_cancels(scenario)).await;
            by_operator(&shop, &order, "k1", Some(3_000)).await;
            shop.until_ledger(|ledger| ledger.calls.cancel.received >= 1)
                .await;
            shop.set(json!({})).await;
            let end = end_of(&shop, &order, "k1", Some(3_000)).await;
            assert_eq!(end.status, 200, "{status} {when}: {:?}", end.body);
            assert_eq!(canceled_won(&shop, &order), 3_000, "{status} {when}");
            shop.end().await;
        }
    }
}

#[tokio::test]
async fn a_refund_that_the_gateway_refuses_for_good_is_told_and_not_repeated() {
    let shop = Shop::with(&[OPERATOR]).await;
    let (order, _) = paid(&shop, "mug").await;
    for (n, (status, code)) in [
        (403, "NOT_CANCELABLE_PAYMENT"),
        (403, "EXCEED_MAX_REFUND_DUE"),
        (403, "NOT_ALLOWED_PARTIAL_REFUND"),
        (400, "REFUND_REJECTED"),
        (400, "INVALID_REQUEST"),
    ]
    .into_iter()
    .enumerate()
    {
        let error = json!({"error": {"status": status, "code": code}});
        shop.set(of_cancels(error)).await;
        let key = format!("k{n}");
        let before = cancels_received(&shop);
        let reply = by_operator(&shop, &order, &key, Some(3_000)).await;
        reply.refused(402, "declined");
        assert!(reply.body["detail"].as_str().unwrap().contains(code));
        let state = shop.poll(&order).await;
        assert_eq!(state.body["status"], "paid");
        state.attempt("approved");
        // The wish stays refused: whoever wants it all the same asks anew.
        shop.set(json!({})).await;
        by_operator(&shop, &order, &key, Some(3_000))
            .await
            .refused(402, "declined");
        assert_eq!(cancels_received(&shop), before + 1, "{code}");
    }
    assert_eq!(by_operator(&shop, &order, "new", None).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn a_refusal_after_a_call_that_nobody_heard_the_answer_of_is_asked_about_first() {
    let mut shop = Shop::with(&[OPERATOR, SHORT[0], SHORT[1], SOON[0], SOON[1]]).await;
    let (order, _) = paid(&shop, "mug").await;
    let hang = json!({"hang": {"when": "after", "ms": 60_000}, "webhooks": {"drop": 1.0}});
    shop.set(of_cancels(hang)).await;
    let request = shop
        .post(&format!("/api/orders/{}/cancel", order.id))
        .bearer_auth(TOKEN)
        .header("Idempotency-Key", "k1")
        .json(&json!({"reason": "sent back", "amount": 3_000}));
    let running = tokio::spawn(async move { request.send().await.is_ok() });
    shop.until_ledger(|ledger| ledger.orders[&order.id].canceled_won == 3_000)
        .await;
    shop.kill();
    let _ = running.await;
    // The gateway's memory of keys has not come as far as its books.
    let error =
        json!({"error": {"status": 403, "code": "NOT_CANCELABLE_PAYMENT"}, "idempotency": "off"});
    shop.set(of_cancels(error)).await;
    shop.restart().await;
    shop.until_ledger(|ledger| ledger.calls.cancel.received >= 2)
        .await;
    // The second call was refused, and the first had been carried out.
    let end = end_of(&shop, &order, "k1", Some(3_000)).await;
    assert_eq!(end.status, 200, "{:?}", end.body);
    assert_eq!(canceled_won(&shop, &order), 3_000);
    shop.end_balanced().await;
}

#[tokio::test]
async fn a_server_killed_at_any_moment_of_a_refund_refunds_once() {
    let mut shop = Shop::with(&[OPERATOR, SHORT[0], SHORT[1], SOON[0], SOON[1]]).await;
    shop.set(of_cancels(json!({"delayMs": 60}))).await;
    for kill_after in [0_u64, 5, 15, 30, 50, 70, 90, 130] {
        let (order, _) = paid(&shop, "mug").await;
        let request = shop
            .post(&format!("/api/orders/{}/cancel", order.id))
            .bearer_auth(TOKEN)
            .header("Idempotency-Key", "k1")
            .json(&json!({"reason": "sent back", "amount": 3_000}));
        let running = tokio::spawn(async move { request.send().await.is_ok() });
        tokio::time::sleep(Duration::from_millis(kill_after)).await;
        shop.kill();
        let _ = running.await;
        shop.restart().await;
        // Whoever asked repeats the wish: it is the same one, whether or not it had been stored.
        let end = end_of(&shop, &order, "k1", Some(3_000)).await;
        assert_eq!(end.status, 200, "{kill_after} ms: {:?}", end.body);
        assert_eq!(canceled_won(&shop, &order), 3_000, "{kill_after} ms");
    }
    shop.end().await;
}

#[tokio::test]
async fn a_refund_that_could_not_be_recorded_is_known_after_all() {
    let mut shop = Shop::with(&[OPERATOR, SHORT[0], SHORT[1], SOON[0], SOON[1]]).await;
    for dies in [false, true] {
        let (order, _) = paid(&shop, "mug").await;
        shop.set(of_cancels(
            json!({"delayMs": 300, "webhooks": {"drop": 1.0}}),
        ))
        .await;
        let before = cancels_received(&shop);
        let request = shop
            .post(&format!("/api/orders/{}/cancel", order.id))
            .bearer_auth(TOKEN)
            .header("Idempotency-Key", "k1")
            .json(&json!({"reason": "sent back"}));
        let running = tokio::spawn(async move { request.send().await.is_ok() });
        shop.until_ledger(|ledger| ledger.calls.cancel.received > before)
            .await;
        // Nothing can be written from before the gateway's answer until long after it.
        let mut other = SqliteConnection::connect(&shop.database())
            .await
            .expect("the database");
        sqlx::query("BEGIN IMMEDIATE")
            .execute(&mut other)
            .await
            .expect("the only writer");
        shop.until_ledger(|ledger| {
            let counts = ledger.orders.get(&order.id);
            counts.is_some_and(|order| order.cancels == 1)
        })
        .await;
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        let told = shop.poll(&order).await;
        assert_eq!(told.body["status"], "paid", "not before it is recorded");
        told.attempt("cancel_requested");
        if dies {
            shop.kill();
        }
        sqlx::query("ROLLBACK")
            .execute(&mut other)
            .await
            .expect("the lock ends");
        drop(other);
        if dies {
            shop.restart().await;
        }
        let _ = running.await;
        shop.until_status(&order, "canceled").await;
        assert_eq!(canceled_won(&shop, &order), order.amount);
        let end = end_of(&shop, &order, "k1", None).await;
        assert_eq!(
            (end.status, &end.body["refunded"]),
            (200, &json!(order.amount))
        );
    }
    shop.end().await;
}

#[tokio::test]
async fn a_shopper_who_leaves_does_not_take_the_refund_along() {
    let shop = Shop::open().await;
    let (order, _) = paid(&shop, "mug").await;
    shop.set(of_cancels(json!({"delayMs": 300}))).await;
    let request = shop
        .post(&format!("/api/orders/{}/cancel", order.id))
        .header(COOKIE, &order.cookie)
        .header("Idempotency-Key", "k1")
        .json(&json!({"reason": "변심"}));
    let running = tokio::spawn(request.send());
    shop.until_ledger(|ledger| ledger.calls.cancel.received == 1)
        .await;
    running.abort();
    shop.until_status(&order, "canceled").await;
    assert_eq!(canceled_won(&shop, &order), order.amount);
    shop.end().await;
}
