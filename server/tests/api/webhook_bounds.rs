//! Anybody can post a webhook: what that may use up and cause is bounded, and what was stored can be replayed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::node::PATIENCE;
use crate::shop::{Order, Reply, Shop};

async fn hook(shop: &Shop, id: &str, body: &Value) -> Reply {
    let request = shop.post("/webhooks/toss").json(body);
    let request = request.header("tosspayments-webhook-transmission-id", id);
    Reply::of(request.send().await.expect("an answer")).await
}

fn about(key: &str, order: &str) -> Value {
    json!({"eventType": "PAYMENT_STATUS_CHANGED", "data": {"paymentKey": key, "orderId": order, "status": "DONE"}})
}

fn events(result: &str) -> String {
    format!("webhook_events_total{{gateway=\"toss\",result=\"{result}\"}}")
}

/// A paid order whose payments the gateway tells nobody of.
async fn quietly_paid(shop: &Shop) -> (Order, String) {
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    (order, key)
}

/// Money given back at the gateway's desk.
async fn give_back(shop: &Shop, key: &str) {
    let cancel = shop
        .client
        .post(format!("{}/v1/payments/{key}/cancel", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"cancelReason": "at the desk"}));
    assert_eq!(cancel.send().await.expect("an answer").status(), 200);
}

async fn list(shop: &Shop, more: &[&str]) -> Vec<Value> {
    let args = [&["webhooks", "list", "--json"], more].concat();
    let (code, said) = shop.command(&args).await;
    assert_eq!(code, 0, "{said}");
    let list: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("no JSON: {said}"));
    list.as_array().expect("a list").clone()
}

/// Replays what was stored on either database.
async fn replayed(shop: Shop) {
    let (order, key) = quietly_paid(&shop).await;
    assert_eq!(
        hook(&shop, "told", &about(&key, &order.id)).await.status,
        200
    );
    assert_eq!(
        hook(&shop, "foreign", &about("pk", "ord_x")).await.status,
        200
    );
    shop.until_metric(&events("applied"), 1.0).await;
    give_back(&shop, &key).await;
    let (code, said) = shop.command(&["webhooks", "list"]).await;
    assert!(
        code == 0 && said.contains(&order.id) && !said.contains(&key),
        "{said}"
    );
    let applied = list(&shop, &["--state", "applied"]).await;
    assert_eq!(applied.len(), 1);
    assert_eq!(applied[0]["gatewayOrderId"], order.id);
    let id = applied[0]["id"].to_string();
    let (code, said) = shop
        .command(&["webhooks", "replay", "--id", &id, "--dry-run"])
        .await;
    assert!(code == 0 && said.starts_with('1'), "{said}");
    assert_eq!(list(&shop, &["--state", "applied"]).await, applied);
    // Replayed as often as you like: the gateway is asked, and what it says is learned once.
    for _ in 0..3 {
        let (code, said) = shop.command(&["webhooks", "replay", "--id", &id]).await;
        assert!(code == 0 && said.starts_with('1'), "{said}");
    }
    shop.until_status(&order, "canceled").await;
    let (code, said) = shop
        .command(&["webhooks", "replay", "--since", "2020-01-01"])
        .await;
    assert!(code == 0 && said.starts_with('2'), "{said}");
    shop.until_status(&order, "canceled").await;
    assert_eq!(shop.pg.ledger().orders[&order.id].cancels, 1);
    shop.end().await;
}

#[tokio::test]
async fn a_stored_webhook_is_replayed_and_applied_once_in_effect() {
    replayed(Shop::open().await).await;
}

#[tokio::test]
async fn a_stored_webhook_is_replayed_and_applied_once_in_effect_on_postgres() {
    replayed(Shop::on_postgres(&[]).await).await;
}

#[tokio::test]
async fn so_many_webhooks_of_nobody_are_stored_and_those_of_a_payment_still_are() {
    let shop = Shop::with(&[("JARI_WEBHOOK_STRANGERS", "3")]).await;
    let (order, key) = quietly_paid(&shop).await;
    for n in 0..3 {
        let strange = about(&format!("pk_{n}"), &format!("ord_strange{n}"));
        assert_eq!(hook(&shop, &format!("s{n}"), &strange).await.status, 200);
    }
    let rubbish = json!({"hello": 1});
    for (n, body) in [about("pk_9", "ord_9"), rubbish].iter().enumerate() {
        let reply = hook(&shop, &format!("more{n}"), body).await;
        reply.refused(503, "overloaded");
    }
    shop.until_metric(&events("refused_full"), 2.0).await;
    shop.until_metric("webhooks_of_nobody", 3.0).await;
    // What names a payment of ours is taken whatever strangers do.
    for n in 0..5 {
        let own = about(&key, &order.id);
        assert_eq!(hook(&shop, &format!("own{n}"), &own).await.status, 200);
    }
    shop.until_metric(&events("applied"), 5.0).await;
    shop.until_metric("webhooks_of_nobody", 3.0).await;
    shop.end().await;
}

#[tokio::test]
async fn webhooks_of_nobody_come_only_so_fast_and_those_of_a_payment_as_they_like() {
    let shop = Shop::with(&[("JARI_RATE_LIMITS", "on"), ("JARI_WEBHOOK_RATE", "1")]).await;
    let (order, key) = quietly_paid(&shop).await;
    let started = Instant::now();
    let mut refused = 0;
    for n in 0.. {
        let strange = about(&format!("pk_{n}"), &format!("ord_strange{n}"));
        let reply = hook(&shop, &format!("s{n}"), &strange).await;
        if reply.status == 200 {
            assert!(started.elapsed() < PATIENCE, "{n} were let through");
            continue;
        }
        reply.refused(503, "overloaded");
        refused += 1;
        let own = hook(&shop, &format!("own{n}"), &about(&key, &order.id)).await;
        assert_eq!(own.status, 200);
        if refused == 3 {
            break;
        }
    }
    shop.until_metric(&events("refused_rate"), 3.0).await;
    shop.until_metric(&events("applied"), 3.0).await;
    shop.end().await;
}

#[tokio::test]
async fn a_payment_of_which_many_webhooks_are_stored_is_asked_about_without_another() {
    let shop = Shop::with(&[("JARI_WEBHOOK_STRANGERS", "0")]).await;
    let (order, key) = quietly_paid(&shop).await;
    let own = about(&key, &order.id);
    assert_eq!(hook(&shop, "first", &own).await.status, 200);
    shop.until_metric(&events("applied"), 1.0).await;
    shop.in_books(
        "INSERT INTO webhooks (gateway, received_at, headers, body, state, attempt_id) \
         SELECT w.gateway, w.received_at, w.headers, w.body, w.state, w.attempt_id FROM webhooks w, products a, products b",
    )
    .await;
    shop.in_books(
        "INSERT INTO webhooks (gateway, received_at, headers, body, state, attempt_id) \
         SELECT w.gateway, w.received_at, w.headers, w.body, w.state, w.attempt_id FROM webhooks w",
    )
    .await;
    let stored = list(&shop, &["--limit", "1000"]).await.len();
    assert!(stored >= 64, "{stored}");
    give_back(&shop, &key).await;
    assert_eq!(hook(&shop, "one more", &own).await.status, 200);
    shop.until_metric(&events("collapsed"), 1.0).await;
    assert_eq!(list(&shop, &["--limit", "1000"]).await.len(), stored);
    shop.until_status(&order, "canceled").await;
    shop.end().await;
}

#[tokio::test]
async fn forged_hints_cause_few_questions_and_a_true_one_among_them_is_not_lost() {
    let shop = Shop::open().await;
    let (order, key) = quietly_paid(&shop).await;
    let asked = shop.pg.ledger().calls.get.received;
    let started = Instant::now();
    let forged = about(&key, &order.id);
    for n in 0..300 {
        assert_eq!(hook(&shop, &format!("f{n}"), &forged).await.status, 200);
    }
    shop.until_metric(&events("applied"), 300.0).await;
    let waited = started.elapsed();
    let caused = shop.pg.ledger().calls.get.received - asked;
    // One at once, then one every ten seconds.
    let most = 1 + waited.as_secs() / 10 + 1;
    assert!(caused <= most, "{caused} questions in {waited:?}");
    assert!(shop.metric("webhook_hints_delayed_total").await >= 1.0);
    // A true word that comes within the pause is heard at its end.
    give_back(&shop, &key).await;
    assert_eq!(hook(&shop, "true", &forged).await.status, 200);
    shop.until_status(&order, "canceled").await;
    shop.end().await;
}

#[tokio::test]
async fn forged_events_change_no_order_whatever_they_claim() {
    let shop = Shop::open().await;
    let (order, key) = quietly_paid(&shop).await;
    let waiting = shop.order("mug", 1).await;
    shop.attempt(&waiting).await;
    let before = (shop.poll(&order).await.body, shop.poll(&waiting).await.body);
    for (n, status) in ["CANCELED", "EXPIRED", "ABORTED", "DONE", "PARTIAL_CANCELED"]
        .iter()
        .enumerate()
    {
        for (order, key) in [(&order.id, key.as_str()), (&waiting.id, "pk_forged")] {
            let whole = json!({"eventType": "PAYMENT_STATUS_CHANGED", "data": {"paymentKey": key, "orderId": order,
                "status": status, "totalAmount": 1, "balanceAmount": 0}});
            let flat = json!({"createdAt": "2026-10-02T11:02:09.000000", "secret": "ps_forged", "status": status,
                "transactionKey": "T", "orderId": order});
            for (form, body) in [("whole", whole), ("flat", flat)] {
                let id = format!("{form}-{n}-{order}");
                assert_eq!(hook(&shop, &id, &body).await.status, 200);
            }
        }
    }
    shop.until_metric(&events("applied"), 10.0).await;
    let after = (shop.poll(&order).await.body, shop.poll(&waiting).await.body);
    assert_eq!(after, before);
    shop.end().await;
}

#[tokio::test]
async fn a_webhook_that_waits_long_shows_and_one_that_was_kept_long_goes() {
    let mut shop = Shop::open().await;
    assert_eq!(
        hook(&shop, "lost", &about("pk_x", "ord_x")).await.status,
        200
    );
    assert_eq!(hook(&shop, "old", &json!({"hello": 1})).await.status, 200);
    shop.until_metric(&events("parked"), 1.0).await;
    shop.until_metric(&events("ignored"), 1.0).await;
    shop.in_books(
        "UPDATE webhooks SET received_at = received_at - 200000000 WHERE state = 'parked'",
    )
    .await;
    shop.in_books(
        "UPDATE webhooks SET received_at = received_at - 1300000000 WHERE state = 'ignored'",
    )
    .await;
    let started = Instant::now();
    while shop.metric("webhooks_parked_oldest_seconds").await < 200_000.0 {
        assert!(started.elapsed() < PATIENCE, "the oldest is not seen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Sweeping begins with the server.
    shop.kill();
    shop.restart().await;
    shop.until_metric("webhooks_swept_total", 1.0).await;
    assert_eq!(list(&shop, &[]).await.len(), 1);
    shop.end().await;
}
