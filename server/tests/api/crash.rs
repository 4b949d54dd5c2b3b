//! A process that dies, or is asked to stop, in the middle of a payment.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::shop::{Reply, Shop};

const CONFIRMS: &str = "pg_places{gateway=\"toss\",operation=\"confirm\"}";

#[tokio::test]
async fn a_server_killed_while_the_gateway_works_finds_the_payment_after_its_restart() {
    let mut shop = Shop::open().await;
    shop.set(json!({"delayMs": 1_200, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let running = shop.start_pay(&order, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    shop.kill();
    assert!(running.await.unwrap().is_none());
    shop.restart().await;
    shop.until_status(&order, "paid").await;
    assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn a_server_killed_at_any_moment_of_a_confirm_never_charges_twice() {
    let short = [
        ("JARI_PG_CONFIRM_WINDOW_MS", "700"),
        ("JARI_PG_TIMEOUT_MS", "1500"),
        ("JARI_DATABASE_WAIT_MS", "300"),
    ];
    let mut shop = Shop::with(&short).await;
    shop.set(json!({"delayMs": 40, "confirmWindowMs": 700}))
        .await;
    for kill_after in [0, 2, 5, 10, 20, 40, 60, 90] {
        killed_and_then_paid(&mut shop, Duration::from_millis(kill_after)).await;
    }
    shop.end().await;
}

/// Kills the server so long after a confirm, and lets the shopper pay again if it is proven that nothing was charged.
pub(crate) async fn killed_and_then_paid(shop: &mut Shop, kill_after: Duration) {
    // A dead process's share is its own until its lease ends, where there are leases.
    shop.until_metric(CONFIRMS, 40.0).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let running = shop.start_pay(&order, &key);
    tokio::time::sleep(kill_after).await;
    shop.kill();
    running.await.unwrap();
    shop.restart().await;
    let known = |body: &serde_json::Value| body["payable"] == true || body["status"] == "paid";
    let state = shop.until(&order, known).await;
    if state.body["payable"] == true {
        // Proven not charged: the shopper pays in a new window.
        assert_eq!(shop.charges(&order.id), 0, "killed after {kill_after:?}");
        shop.until_metric(CONFIRMS, 40.0).await;
        let attempt = shop.attempt(&order).await;
        let id = attempt.body["gatewayOrderId"].as_str().unwrap().to_owned();
        let key = shop.key(&id, order.amount);
        let again = shop.confirm_request(&order, &id, &key).send().await;
        assert_eq!(Reply::of(again.unwrap()).await.status, 200);
    }
    shop.until_status(&order, "paid").await;
    let ledger = shop.pg.ledger();
    let of_this = ledger
        .orders
        .iter()
        .filter(|(id, _)| id.starts_with(&order.id));
    assert_eq!(
        of_this.map(|(_, order)| order.charges).sum::<u64>(),
        1,
        "killed after {kill_after:?}"
    );
}

#[tokio::test]
async fn a_stopping_server_finishes_what_was_sent() {
    let mut shop = Shop::open().await;
    shop.set(json!({"delayMs": 1_500, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let running = shop.start_pay(&order, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    let told = Command::new("kill")
        .arg(shop.pid().to_string())
        .status()
        .expect("kill runs");
    assert!(told.success());
    let reply = running.await.unwrap().expect("the answer still comes");
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    assert!(shop.wait().success());
    shop.restart().await;
    assert_eq!(shop.poll(&order).await.body["status"], "paid");
    assert_eq!(shop.confirms(), 1);
    shop.end().await;
}

#[tokio::test]
async fn shoppers_are_known_after_a_restart() {
    let mut shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    shop.kill();
    shop.restart().await;
    assert_eq!(shop.poll(&order).await.status, 200);
    shop.end().await;
}
