//! A second node dies: whatever it knew, the living one goes on with.

use serde_json::json;

use super::{Stand, offers, quiet};
use crate::shop::{Node, Order, Shop};

const PLACES: &str = "pg_places{gateway=\"toss\",operation=\"confirm\"}";

/// A lease short enough for tests, and longer than what is looked at while it lasts.
const SHORT: [(&str, &str); 4] = [
    ("JARI_PG_TIMEOUT_MS", "1500"),
    ("JARI_NODE_LEASE_MS", "9000"),
    ("JARI_DATABASE_WAIT_MS", "1000"),
    ("JARI_RESEND", "off"),
];

/// A stand whose second node has died in the middle of a confirm; that confirm's order.
async fn after_a_death() -> (Stand, Order) {
    let shop = Shop::on_postgres(&SHORT).await;
    let mut other: Node = shop.another_node().await;
    shop.until_metric(PLACES, 20.0).await;
    other.until_metric(PLACES, 20.0).await;
    let stand = Stand::in_shop(shop).await;
    stand
        .set(quiet(json!({"hang": {"when": "after", "ms": 60_000}})))
        .await;
    let order = other.order("mug", 1).await;
    let key = stand.key(&order.id, order.amount);
    let paying = other.start_pay(&order, &key);
    stand
        .until_ledger(|ledger| ledger.orders.contains_key(&order.id))
        .await;
    other.kill();
    assert!(paying.await.unwrap().is_none());
    stand.set(quiet(json!({}))).await;
    (stand, order)
}

#[tokio::test]
async fn a_living_node_shows_the_checkout_page_of_what_a_dead_one_was_sending() {
    let (stand, order) = after_a_death().await;
    let theirs = Order {
        cookie: order.cookie.clone(),
        ..order.clone()
    };
    let request = stand
        .get(&format!("/checkout/{}", theirs.id))
        .header("cookie", &theirs.cookie);
    let page = request.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("data-stage=\"checking\"") && !offers(&page));
    let (status, page) = stand.checkout_of(&stand.fresh).await;
    assert!(status == 200 && offers(&page));
    stand.until_status(&order, "paid").await;
    stand.end().await;
}

#[tokio::test]
async fn a_confirm_of_a_dead_node_is_taken_over_after_its_lease_and_not_sent_again() {
    let (stand, order) = after_a_death().await;
    // Repeated at the living one it joins, and another payment has to wait.
    let other = stand.key(&order.id, order.amount);
    stand
        .confirm(&order, &other)
        .await
        .refused(409, "attempt_in_progress");
    stand.poll(&order).await.attempt("approving");
    stand.until_status(&order, "paid").await;
    assert_eq!(stand.pg.ledger().orders[&order.id].confirms, 1);
    // New ones are taken at once, in the living node's own places.
    assert_eq!(stand.pay(&stand.fresh).await.status, 200);
    stand.end().await;
}

#[tokio::test]
async fn polls_of_a_dead_nodes_orders_are_answered_by_the_living_one() {
    let (stand, order) = after_a_death().await;
    for _ in 0..5 {
        let reply = stand.poll(&order).await;
        assert_eq!((reply.status, &reply.body["payable"]), (200, &json!(false)));
        assert_eq!(stand.poll(&stand.paid).await.body["status"], "paid");
    }
    stand.until_status(&order, "paid").await;
    stand.end().await;
}

#[tokio::test]
async fn a_webhook_about_a_dead_nodes_payment_is_stored_and_ends_in_the_truth() {
    let (stand, order) = after_a_death().await;
    let key = {
        let ledger = stand.pg.ledger();
        let mut payments = ledger.payments.iter();
        let found = payments.find(|(_, payment)| payment.order_id == order.id);
        found.expect("it is charged").0.clone()
    };
    assert_eq!(stand.hook("early", &order, &key).await, 200);
    stand.until_status(&order, "paid").await;
    assert_eq!(stand.charges(&order.id), 1);
    stand.end().await;
}

#[tokio::test]
async fn the_history_is_whole_without_the_dead_node() {
    let (stand, order) = after_a_death().await;
    let (status, page) = stand.page("/orders").await;
    assert_eq!(status, 200);
    assert_eq!(page.matches("data-testid=\"order-row\"").count(), 3);
    let request = stand.get("/orders").header("cookie", &order.cookie);
    let page = request.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("data-status=\"checking\"") && !offers(&page));
    stand.until_status(&order, "paid").await;
    stand.end().await;
}

#[tokio::test]
async fn two_living_nodes_recover_what_a_dead_one_left_once() {
    let (stand, order) = after_a_death().await;
    let third = stand.another_node().await;
    stand.until_status(&order, "paid").await;
    third.until_status(&order, "paid").await;
    let mut approved = 0.0;
    for node in [&**stand, &third] {
        approved += node.metric("payments_total{status=\"approved\"}").await;
    }
    // The paid order, the one in doubt and the dead node's: each once, whoever looked.
    stand.until_status(&stand.unknown, "paid").await;
    assert!(approved <= 3.0, "{approved}");
    assert_eq!(stand.pg.ledger().orders[&order.id].confirms, 1);
    drop(third);
    stand.end().await;
}
