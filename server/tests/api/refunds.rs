//! Cancelling and refunding on the real program: what people are told, what the gateway books, and what our books say.

use reqwest::header::COOKIE;
use serde_json::{Value, json};

use crate::shop::{Node, Order, Reply, Shop};

mod asking;
mod crossing;
mod faults;
mod later;
mod many;

pub(crate) const TOKEN: &str = "operator-token-for-tests-0123456789abcdef";
pub(crate) const OPERATOR: (&str, &str) = ("JARI_OPERATOR_TOKEN", TOKEN);
/// The page's wait short, so that what stays open is answered soon.
pub(crate) const SOON: [(&str, &str); 2] =
    [("JARI_RESPONSE_WAIT_MS", "1000"), ("JARI_POLL_COUNT", "40")];

/// A cancel by the order's own shopper.
async fn by_shopper(node: &Node, order: &Order, key: &str, body: &Value) -> Reply {
    let request = node
        .post(&format!("/api/orders/{}/cancel", order.id))
        .header(COOKIE, &order.cookie)
        .header("Idempotency-Key", key);
    Reply::of(request.json(body).send().await.expect("an answer")).await
}

/// A cancel by the operator; `None` is all that is left.
pub(crate) async fn by_operator(
    node: &Node,
    order: &Order,
    key: &str,
    amount: Option<u64>,
) -> Reply {
    let body = match amount {
        Some(amount) => json!({"reason": "sent back", "amount": amount}),
        None => json!({"reason": "sent back"}),
    };
    let request = node
        .post(&format!("/api/orders/{}/cancel", order.id))
        .bearer_auth(TOKEN)
        .header("Idempotency-Key", key);
    Reply::of(request.json(&body).send().await.expect("an answer")).await
}

/// Asks again with the same key until the refund has an end; a busy database says nothing of it.
pub(crate) async fn end_of(node: &Node, order: &Order, key: &str, amount: Option<u64>) -> Reply {
    let started = std::time::Instant::now();
    loop {
        let reply = by_operator(node, order, key, amount).await;
        if !matches!(reply.status, 202 | 503) {
            return reply;
        }
        assert!(
            started.elapsed() < crate::node::PATIENCE,
            "never came to an end: {:?}",
            reply.body
        );
    }
}

/// A new order that is paid, and its payment key.
pub(crate) async fn paid(shop: &Shop, sku: &str) -> (Order, String) {
    let order = shop.order(sku, 1).await;
    let key = shop.key(&order.id, order.amount);
    let reply = shop.confirm(&order, &key).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    (order, key)
}

/// A refund made at the gateway's own desk.
async fn at_the_desk(shop: &Shop, key: &str, amount: u64) {
    let cancel = shop
        .client
        .post(format!("{}/v1/payments/{key}/cancel", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"cancelReason": "at the desk", "cancelAmount": amount}))
        .send()
        .await
        .expect("an answer");
    assert_eq!(cancel.status(), 200);
}

pub(crate) fn canceled_won(shop: &Shop, order: &Order) -> u64 {
    let ledger = shop.pg.ledger();
    let counts = ledger.orders.get(&order.id);
    counts.map_or(0, |order| order.canceled_won)
}

pub(crate) fn cancels_received(shop: &Shop) -> u64 {
    shop.pg.ledger().calls.cancel.received
}

/// Faults of the gateway's cancels alone.
pub(crate) fn of_cancels(fault: Value) -> Value {
    let mut scenario = fault;
    scenario["operations"] = json!(["cancel"]);
    scenario
}
