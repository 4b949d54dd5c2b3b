//! A shop that pays with KakaoPay.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::support::{Reply, Shop, read};

pub(crate) const KEY: &str = "SECRET_KEY DEV_fake";

/// What a shop sends to open a payment of 33,000 won.
pub(crate) fn ready_body(order: &str) -> Value {
    json!({
        "cid": "TC0ONETIME",
        "partner_order_id": order,
        "partner_user_id": "u_1",
        "item_name": "머그컵 외 1건",
        "quantity": 1,
        "total_amount": 33_000,
        "tax_free_amount": 0,
        "approval_url": format!("http://shop.test/return/{order}?attempt=abc"),
        "cancel_url": format!("http://shop.test/closed/{order}"),
        "fail_url": format!("http://shop.test/failed/{order}"),
    })
}

/// A body with some fields replaced; null takes a field away.
pub(crate) fn with(mut body: Value, changes: Value) -> Value {
    let (Value::Object(fields), Value::Object(changes)) = (&mut body, changes) else {
        panic!("two objects");
    };
    for (name, value) in changes {
        match value {
            Value::Null => fields.remove(&name),
            value => fields.insert(name, value),
        };
    }
    body
}

impl Reply {
    /// Status and KakaoPay's code in one.
    pub(crate) fn kakao_refusal(&self) -> (u16, i64) {
        let code = self.json()["error_code"].as_i64();
        (self.status, code.expect("an error code"))
    }
}

impl Shop {
    pub(crate) fn kakao_request(&self, call: &str, body: &Value) -> RequestBuilder {
        let url = format!("{}/online/v1/payment/{call}", self.pg.url());
        self.http.post(url).header("authorization", KEY).json(body)
    }

    pub(crate) async fn kakao(&self, call: &str, body: &Value) -> Reply {
        read(self.kakao_request(call, body))
            .await
            .expect("an answer")
    }

    /// Opens a payment; gives what was answered.
    pub(crate) async fn ready(&self, order: &str) -> Value {
        let reply = self.kakao("ready", &ready_body(order)).await;
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        reply.json()
    }

    /// Opens and authenticates a payment; gives the body that approves it.
    pub(crate) async fn authenticated(&self, order: &str) -> Value {
        let ready = self.ready(order).await;
        let token = self.pg.authenticate_ready(order, 33_000).expect("a token");
        approve_body(order, &ready["tid"], &token)
    }

    /// A payment of 33,000 won; gives its tid.
    pub(crate) async fn kakao_paid(&self, order: &str) -> String {
        let body = self.authenticated(order).await;
        assert_eq!(self.kakao("approve", &body).await.status, 200);
        body["tid"].as_str().expect("a tid").to_owned()
    }

    pub(crate) async fn kakao_order(&self, tid: &str) -> Reply {
        let body = json!({"cid": "TC0ONETIME", "tid": tid});
        self.kakao("order", &body).await
    }

    /// What `order` shows.
    pub(crate) async fn kakao_status(&self, tid: &str) -> String {
        let order = self.kakao_order(tid).await.json();
        order["status"].as_str().expect("a status").to_owned()
    }

    pub(crate) async fn kakao_cancel(&self, tid: &str, won: u64, changes: Value) -> Reply {
        let body = json!({"cid": "TC0ONETIME", "tid": tid, "cancel_amount": won,
                          "cancel_tax_free_amount": 0});
        self.kakao("cancel", &with(body, changes)).await
    }
}

pub(crate) fn approve_body(order: &str, tid: &Value, token: &str) -> Value {
    json!({"cid": "TC0ONETIME", "tid": tid, "partner_order_id": order,
           "partner_user_id": "u_1", "pg_token": token})
}
