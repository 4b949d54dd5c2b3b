//! Each part of the shop beside each thing that can be slow, gone or wrong (`docs/resiliency.md`): what a shopper, a
//! gateway's webhook and the money may see of it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail their test by panicking"
)]

use std::ops::Deref;

use reqwest::header::COOKIE;
use serde_json::{Value, json};

use crate::shop::{Order, Reply, Shop};

mod clock;
mod database_down;
mod database_slow;
mod gateway;
mod giving_back;
mod second_node;

/// A shop with one order of each kind, of one shopper: paid, in doubt, and not begun.
pub(crate) struct Stand {
    shop: Shop,
    pub(crate) paid: Order,
    pub(crate) unknown: Order,
    pub(crate) fresh: Order,
}

impl Deref for Stand {
    type Target = Shop;

    fn deref(&self) -> &Shop {
        &self.shop
    }
}

/// No webhook of the fake gateway's own disturbs.
fn quiet(mut scenario: Value) -> Value {
    scenario["webhooks"] = json!({"drop": 1.0});
    scenario
}

impl Stand {
    async fn in_shop(shop: Shop) -> Self {
        shop.set(quiet(json!({}))).await;
        let paid = shop.order("mug", 1).await;
        assert_eq!(shop.pay(&paid).await.status, 200);
        let unknown = another(&shop, &paid).await;
        // Charged, its answer lost, and no inquiry is answered while this lasts.
        shop.set(quiet(
            json!({"operations": ["confirm", "get"], "loss": {"when": "after"}}),
        ))
        .await;
        let reply = shop.pay(&unknown).await;
        assert_eq!(reply.status, 202, "{:?}", reply.body);
        let fresh = another(&shop, &paid).await;
        Self {
            shop,
            paid,
            unknown,
            fresh,
        }
    }

    /// A page: its status and text.
    async fn page(&self, path: &str) -> (u16, String) {
        let request = self
            .get(path)
            .header(COOKIE, &self.paid.cookie)
            .header("accept", "text/html");
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
        (status, response.text().await.expect("text"))
    }

    async fn checkout_of(&self, order: &Order) -> (u16, String) {
        self.page(&format!("/checkout/{}", order.id)).await
    }

    /// Sends an event about an order whose payment has this key; the status.
    async fn hook(&self, transmission: &str, order: &Order, key: &str) -> u16 {
        let word = json!({"data": {"paymentKey": key, "orderId": order.id, "status": "DONE"}});
        let request = self
            .post("/webhooks/toss")
            .header("tosspayments-webhook-transmission-id", transmission)
            .json(&word);
        request.send().await.expect("an answer").status().as_u16()
    }

    /// The key of the payment that is in doubt.
    fn unknown_key(&self) -> String {
        let ledger = self.pg.ledger();
        let mut payments = ledger.payments.iter();
        let (key, _) = payments
            .find(|(_, payment)| payment.order_id == self.unknown.id)
            .expect("it was charged");
        key.clone()
    }

    async fn end(self) {
        self.shop.end().await;
    }
}

/// Another order of the same shopper.
async fn another(shop: &Shop, first: &Order) -> Order {
    let request = shop
        .post("/api/orders")
        .header(COOKIE, &first.cookie)
        .json(&json!({"items": [{"sku": "mug", "quantity": 1}]}));
    let body = Reply::of(request.send().await.expect("an answer"))
        .await
        .body;
    Order {
        id: body["orderId"].as_str().expect("an id").to_owned(),
        ..first.clone()
    }
}

/// Whether a page offers to pay in any way.
fn offers(page: &str) -> bool {
    ["pay", "confirm"]
        .iter()
        .any(|name| page.contains(&format!("data-testid=\"{name}\"")))
}

/// A refusal that says nothing about any order.
#[track_caller]
fn says_nothing_of_orders(reply: &Reply) {
    assert_eq!(reply.status, 503, "{:?}", reply.body);
    assert!(
        matches!(reply.code(), "database_busy" | "overloaded"),
        "{:?}",
        reply.body
    );
    assert_eq!(reply.body["reach"], json!(null));
    assert_eq!(reply.body["payable"], json!(null));
    assert!(reply.headers.contains_key("retry-after"));
}
