//! Money that must go back (here: a charge of another amount), beside a gateway or a database that is slow, gone or wrong:
//! given back once, and until then neither paid nor payable.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{offers, quiet};
use crate::beside::Beside;
use crate::link::Link;
use crate::shop::{Order, Reply, Shop};

const ENV: [(&str, &str); 4] = [
    ("JARI_PG_TIMEOUT_MS", "2500"),
    ("JARI_NODE_LEASE_MS", "30000"),
    ("JARI_DATABASE_WAIT_MS", "700"),
    ("JARI_RESEND", "off"),
];

/// An order that is being charged too much, while its cancel will meet this.
async fn owed(shop: &Shop, cancels: Value) -> (Order, JoinHandle<Option<Reply>>) {
    let order = shop.order("mug", 1).await;
    shop.set(quiet(json!({"body": "wrongAmount", "delayMs": 600})))
        .await;
    let key = shop.key(&order.id, order.amount);
    let paying = shop.start_pay(&order, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    shop.set(quiet(cancels)).await;
    (order, paying)
}

async fn until_a_cancel_came(shop: &Shop) {
    shop.until_ledger(|ledger| ledger.calls.cancel.received > 0)
        .await;
}

/// On its way back: said so, and nothing is offered.
async fn is_on_its_way(shop: &Shop, order: &Order) {
    let state = shop.poll(order).await.body;
    assert!(
        matches!(
            state["attempt"]["status"].as_str(),
            Some("mischarged" | "cancel_requested")
        ),
        "{state:?}"
    );
    assert_eq!(state["payable"], false);
    let request = shop
        .get(&format!("/checkout/{}", order.id))
        .header("cookie", &order.cookie);
    let page = request.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("data-stage=\"returning_money\"") && !offers(&page));
}

/// Given back, all of it, once.
async fn is_back(shop: Shop, order: &Order) {
    let began = std::time::Instant::now();
    loop {
        let state = shop.poll(order).await.body;
        if state["attempt"]["status"] == "canceled" {
            break;
        }
        assert_ne!(state["status"], "paid");
        assert!(began.elapsed().as_secs() < 60, "{state:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let money = shop.pg.ledger().orders[&order.id];
    assert_eq!((money.charges, money.cancels), (1, 1));
    assert_eq!(money.canceled_won, money.charged_won);
    shop.end().await;
}

#[tokio::test]
async fn money_goes_back_once_though_the_gateway_is_silent_about_it() {
    let shop = Shop::with(&ENV).await;
    let (order, paying) = owed(&shop, json!({"stop": true, "operations": ["cancel"]})).await;
    until_a_cancel_came(&shop).await;
    is_on_its_way(&shop, &order).await;
    // Longer than the call may take: nobody knows whether it was heard.
    paying.await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    is_on_its_way(&shop, &order).await;
    shop.set(quiet(json!({}))).await;
    is_back(shop, &order).await;
}

#[tokio::test]
async fn money_goes_back_once_though_the_gateway_is_gone_meanwhile() {
    let shop = Shop::with(&ENV).await;
    let (order, paying) = owed(&shop, json!({"stop": true, "operations": ["cancel"]})).await;
    until_a_cancel_came(&shop).await;
    shop.pg.pause_listening().await;
    paying.await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    is_on_its_way(&shop, &order).await;
    shop.set(quiet(json!({}))).await;
    shop.pg.resume_listening().await.unwrap();
    is_back(shop, &order).await;
}

#[tokio::test]
async fn money_goes_back_once_though_the_gateways_word_about_it_cannot_be_read() {
    for garbled in [
        json!({"body": "html", "operations": ["cancel"]}),
        json!({"body": "broken", "operations": ["cancel"]}),
        json!({"error": {"status": 500, "when": "after"}, "operations": ["cancel"]}),
        json!({"loss": {"when": "after"}, "operations": ["cancel"]}),
    ] {
        let shop = Shop::with(&ENV).await;
        let (order, paying) = owed(&shop, garbled).await;
        until_a_cancel_came(&shop).await;
        paying.await.unwrap();
        shop.set(quiet(json!({}))).await;
        is_back(shop, &order).await;
    }
}

/// The gateway takes its time over the cancel, and meanwhile somebody holds the database.
async fn beside_a_held_database(shop: Shop) {
    let slow = json!({"delayMs": 1_500, "operations": ["cancel"]});
    let (order, paying) = owed(&shop, slow).await;
    until_a_cancel_came(&shop).await;
    let mut beside = Beside::of(&shop).await;
    beside.hold().await;
    shop.until_ledger(|ledger| ledger.orders[&order.id].cancels == 1)
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    beside.let_go().await;
    paying.await.unwrap();
    is_back(shop, &order).await;
}

#[tokio::test]
async fn money_goes_back_once_beside_a_held_database() {
    beside_a_held_database(Shop::with(&ENV).await).await;
}

#[tokio::test]
async fn so_it_does_on_postgres() {
    beside_a_held_database(Shop::on_postgres(&ENV).await).await;
}

#[tokio::test]
async fn money_goes_back_once_though_the_database_is_gone_when_the_gateway_says_so() {
    let (shop, mut link): (Shop, Link) = Shop::on_postgres_behind(&ENV).await;
    let slow = json!({"delayMs": 1_500, "operations": ["cancel"]});
    let (order, paying) = owed(&shop, slow).await;
    until_a_cancel_came(&shop).await;
    link.cut().await;
    shop.until_ledger(|ledger| ledger.orders[&order.id].cancels == 1)
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    link.mend();
    paying.await.unwrap();
    is_back(shop, &order).await;
}

#[tokio::test]
async fn money_goes_back_once_though_the_process_dies_meanwhile() {
    let mut shop = Shop::with(&ENV).await;
    let slow = json!({"delayMs": 1_000, "operations": ["cancel"]});
    let (order, _paying) = owed(&shop, slow).await;
    until_a_cancel_came(&shop).await;
    shop.kill();
    shop.until_ledger(|ledger| ledger.orders[&order.id].cancels == 1)
        .await;
    shop.restart().await;
    is_back(shop, &order).await;
}
