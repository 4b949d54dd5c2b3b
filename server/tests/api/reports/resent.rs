//! Somebody else sends it again: a browser, a proxy or a second tab, here or to another node, with whatever key. The
//! order is the unit of "once".

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::beside::Beside;
use crate::raw;
use crate::shop::{Node, Order, Shop};

/// Confirms at the gateway and what was charged.
fn once(shop: &Shop, order: &Order) {
    assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 1));
}

#[tokio::test]
async fn a_fresh_idempotency_key_with_every_click_and_page_makes_no_second_payment() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 700})).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let send = |own: &str| {
        let request = shop
            .confirm_request(&order, &order.id, &key)
            .header("Idempotency-Key", own);
        tokio::spawn(async move { request.send().await.expect("an answer").status().as_u16() })
    };
    let first = send("click-1");
    let second = send("click-2");
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    // The page is opened anew and has a third.
    assert_eq!(send("page-2").await.unwrap(), 202);
    let mut answers = [first.await.unwrap(), second.await.unwrap()];
    answers.sort_unstable();
    assert!(
        answers[0] == 200 && matches!(answers[1], 200 | 202),
        "{answers:?}"
    );
    assert_eq!(send("page-3").await.unwrap(), 200);
    once(&shop, &order);
    shop.end().await;
}

#[tokio::test]
async fn a_duplicate_order_id_is_neither_paid_nor_failed_until_it_was_asked_about() {
    let short = [
        ("JARI_PG_CONFIRM_WINDOW_MS", "700"),
        ("JARI_PG_TIMEOUT_MS", "1500"),
        ("JARI_DATABASE_WAIT_MS", "300"),
        ("JARI_RESEND", "off"),
    ];
    for (when, end) in [("after", "approved"), ("before", "failed")] {
        let shop = Shop::with(&short).await;
        shop.set(json!({"confirmWindowMs": 700, "webhooks": {"drop": 1.0},
            "error": {"status": 400, "code": "DUPLICATED_ORDER_ID", "when": when}}))
            .await;
        let order = shop.order("mug", 1).await;
        let reply = shop.pay(&order).await;
        assert_eq!(reply.status, 202, "{when}: {:?}", reply.body);
        reply.attempt("unknown");
        assert_eq!(reply.body["payable"], false);
        let known = shop.until_attempt(&order, end).await;
        assert_eq!(known.body["payable"], json!(end == "failed"));
        assert_eq!(shop.confirms(), 1);
        shop.end().await;
    }
}

/// The same bytes in every way in which they come twice: at once, after the first sender has gone, after the answer.
async fn resend_everywhere(shop: &Shop, other: &Node) {
    shop.set(json!({"delayMs": 600})).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let bytes = raw::confirm(&order, &order.id, &key, "x-request-timeout-ms: 65000\r\n");
    // The first sender's connection dies before any answer.
    let mut dead = raw::connect(shop).await;
    dead.write_all(&bytes).await.unwrap();
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    drop(dead);
    let again = [raw::exchange(shop, &bytes), raw::exchange(other, &bytes)];
    for again in again {
        let (status, text) = again.await;
        assert!(matches!(status, 200 | 202), "{text}");
    }
    shop.until_status(&order, "paid").await;
    let late = [raw::exchange(shop, &bytes), raw::exchange(other, &bytes)];
    for late in late {
        assert_eq!(late.await.0, 200);
    }
    once(shop, &order);
}

#[tokio::test]
async fn a_confirm_that_a_proxy_sends_again_is_one_payment() {
    let shop = Shop::open().await;
    resend_everywhere(&shop, &shop).await;
    shop.end().await;
}

#[tokio::test]
async fn so_it_is_when_the_proxy_sends_it_to_another_node() {
    let shop = Shop::on_postgres(&[]).await;
    let other = shop.another_node().await;
    let places = "pg_places{gateway=\"toss\",operation=\"confirm\"}";
    shop.until_metric(places, 20.0).await;
    other.until_metric(places, 20.0).await;
    resend_everywhere(&shop, &other).await;
    shop.end().await;
}

#[tokio::test]
async fn the_same_bytes_at_the_same_moment_on_two_nodes_are_one_payment() {
    let shop = Shop::on_postgres(&[]).await;
    let other = shop.another_node().await;
    let places = "pg_places{gateway=\"toss\",operation=\"confirm\"}";
    shop.until_metric(places, 20.0).await;
    other.until_metric(places, 20.0).await;
    for _ in 0..5 {
        shop.pg.reset_ledger();
        shop.set(json!({"delayMs": 100})).await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let bytes = raw::confirm(&order, &order.id, &key, "");
        let (one, two) = tokio::join!(raw::exchange(&shop, &bytes), raw::exchange(&other, &bytes));
        for (status, text) in [one, two] {
            assert!(matches!(status, 200 | 202), "{text}");
        }
        shop.until_status(&order, "paid").await;
        once(&shop, &order);
    }
    shop.end().await;
}

#[tokio::test]
async fn two_tabs_that_waited_for_one_lock_decide_by_what_is_true_inside_it() {
    let patient = [
        ("JARI_DATABASE_WAIT_MS", "15000"),
        ("JARI_PG_TIMEOUT_MS", "20000"),
    ];
    let shop = Shop::on_postgres(&patient).await;
    let mut beside = Beside::of(&shop).await;
    let mut watch = Beside::of(&shop).await;
    let order = shop.order("teapot", 1).await;
    let keys = [
        shop.key(&order.id, order.amount),
        shop.key(&order.id, order.amount),
    ];
    // Both have read what they read before the lock, and stand in front of it.
    beside.run("BEGIN; SELECT 1 FROM orders FOR UPDATE").await;
    let tabs = keys.each_ref().map(|key| shop.start_pay(&order, key));
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND application_name = 'jari' AND wait_event_type = 'Lock'";
    while watch.number(waiting).await < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    beside.let_go().await;
    let mut statuses = Vec::new();
    for tab in tabs {
        let reply = tab.await.unwrap().expect("an answer");
        if reply.status == 409 {
            assert!(
                matches!(reply.code(), "attempt_in_progress" | "order_already_paid"),
                "{:?}",
                reply.body
            );
        }
        statuses.push(reply.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    once(&shop, &order);
    // The second tab's payment is never sent, however often it is tried.
    for key in &keys {
        let status = shop.confirm(&order, key).await.status;
        assert!(matches!(status, 200 | 409));
    }
    once(&shop, &order);
    shop.end().await;
}

#[tokio::test]
async fn webhooks_polls_pages_and_recovery_at_one_moment_on_two_nodes_are_one_transition() {
    let shop = Shop::on_postgres(&[("JARI_RESEND", "off")]).await;
    let other = shop.another_node().await;
    let places = "pg_places{gateway=\"toss\",operation=\"confirm\"}";
    shop.until_metric(places, 20.0).await;
    other.until_metric(places, 20.0).await;
    shop.set(json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    shop.confirm(&order, &key).await.attempt("unknown");
    let word = json!({"data": {"paymentKey": key, "orderId": order.id, "status": "DONE"}});
    let nodes: [&Node; 2] = [&shop, &other];
    let mut asking = Vec::new();
    for n in 0..20 {
        let node = nodes[n % 2];
        // Ten transmissions, each twice, and at the same moment whoever else looks.
        let hook = node.post("/webhooks/toss").header(
            "tosspayments-webhook-transmission-id",
            format!("w{}", n / 2),
        );
        asking.push(tokio::spawn(hook.json(&word).send()));
        let cookie = &order.cookie;
        for path in [
            format!("/api/orders/{}", order.id),
            format!("/checkout/{}", order.id),
        ] {
            asking.push(tokio::spawn(
                node.get(&path).header("cookie", cookie).send(),
            ));
        }
    }
    for answer in asking {
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
    }
    shop.until_status(&order, "paid").await;
    let mut approved = 0.0;
    for node in nodes {
        approved += node.metric("payments_total{status=\"approved\"}").await;
    }
    assert_eq!(approved, 1.0, "one transition");
    let mut beside = Beside::of(&shop).await;
    let sold = beside
        .number("SELECT sold FROM products WHERE sku = 'mug'")
        .await;
    let paid = beside
        .number("SELECT count(*) FROM outbox WHERE kind = 'order_paid'")
        .await;
    assert_eq!((sold, paid), (1, 1));
    shop.end().await;
}
