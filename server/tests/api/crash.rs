//! A process that dies, or is asked to stop, in the middle of a payment.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::node::PATIENCE;
use crate::shop::{Node, Reply, Shop};

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

/// Kills nodes in turn at random (seeded) moments with confirms in flight, until so many kills met some.
async fn killed_again_and_again(shop: &mut Shop, others: &mut [Node], kills: u64) {
    shop.set(
        json!({"delayMs": 400, "loss": {"ratio": 0.2, "when": "after"},
        "webhooks": {"drop": 0.5, "duplicate": 0.3, "delayMs": 100}}),
    )
    .await;
    let mut orders = Vec::new();
    let mut random = 20_261_130_u64;
    for kill in 0..kills {
        let turn = usize::try_from(kill).unwrap() % (others.len() + 1);
        let mut batch = Vec::new();
        for _ in 0..3 {
            let order = shop.order("mug", 1).await;
            let key = shop.key(&order.id, order.amount);
            batch.push((order, key));
        }
        let before = shop.confirms();
        let victim: &mut Node = match turn {
            0 => &mut *shop,
            _ => &mut others[turn - 1],
        };
        victim.until_some_places().await;
        let running: Vec<_> = batch
            .iter()
            .map(|(order, key)| victim.start_pay(order, key))
            .collect();
        // The gateway has at least one of them, and needs longer than the longest wait.
        let begun = Instant::now();
        while shop.confirms() == before {
            assert!(begun.elapsed() < PATIENCE, "nothing was sent");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        tokio::time::sleep(Duration::from_millis((random >> 33) % 300)).await;
        let victim: &mut Node = match turn {
            0 => &mut *shop,
            _ => &mut others[turn - 1],
        };
        victim.kill();
        for paying in running {
            paying.await.unwrap();
        }
        victim.restart().await;
        orders.extend(batch);
    }
    // Whatever was not sent can be paid; whatever was is paid or will be.
    shop.set(json!({})).await;
    for (order, key) in &orders {
        let known = |body: &serde_json::Value| body["payable"] == true || body["status"] == "paid";
        if shop.until(order, known).await.body["payable"] == true {
            assert_eq!(shop.charges(&order.id), 0);
            shop.until_some_places().await;
            assert_eq!(shop.confirm(order, key).await.status, 200);
        }
        shop.until_status(order, "paid").await;
        assert_eq!(shop.charges(&order.id), 1);
    }
}

#[tokio::test]
async fn a_server_killed_ten_times_at_random_under_load_loses_nothing() {
    let mut shop = Shop::open().await;
    killed_again_and_again(&mut shop, &mut [], 10).await;
    shop.end().await;
}

#[tokio::test]
async fn nodes_killed_ten_times_at_random_under_load_lose_nothing() {
    let short = [
        ("JARI_PG_TIMEOUT_MS", "1500"),
        ("JARI_NODE_LEASE_MS", "6500"),
    ];
    let mut shop = Shop::on_postgres(&short).await;
    let mut others = [shop.another_node().await, shop.another_node().await];
    killed_again_and_again(&mut shop, &mut others, 10).await;
    drop(others);
    shop.end().await;
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
