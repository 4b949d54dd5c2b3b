//! The control API and the ledger for KakaoPay.

use serde_json::{Value, json};

use crate::kakao::approve_body;
use crate::support::{Shop, read};

#[tokio::test]
async fn the_control_api_authenticates_what_was_made_ready() {
    let shop = Shop::open().await;
    let url = format!("{}/_control/payments", shop.pg.url());
    let make = |order: &str, won: u64| {
        let body = json!({"gateway": "kakaopay", "orderId": order, "amount": won});
        read(shop.http.post(&url).json(&body))
    };
    let none = make("order_1", 33_000).await.expect("an answer");
    assert_eq!(none.status, 409);
    let why = none.json()["error"].as_str().expect("a reason").to_owned();
    assert!(why.contains("order_1") && why.contains("ready"), "{why}");

    let first = shop.ready("order_1").await;
    let latest = shop.ready("order_1").await;
    assert_eq!(
        make("order_1", 32_000).await.expect("an answer").status,
        409
    );
    let made = make("order_1", 33_000).await.expect("an answer").json();
    let token = made["paymentKey"].as_str().expect("a token");
    let stale = shop
        .kakao("approve", &approve_body("order_1", &first["tid"], token))
        .await;
    assert_eq!(stale.kakao_refusal(), (400, -701));
    let good = shop
        .kakao("approve", &approve_body("order_1", &latest["tid"], token))
        .await;
    assert_eq!(good.status, 200);
    assert_eq!(
        make("order_1", 33_000).await.expect("an answer").status,
        409
    );
}

#[tokio::test]
async fn order_can_be_made_to_show_any_status() {
    let shop = Shop::open().await;
    let tid = shop.kakao_paid("order_1").await;
    let url = format!("{}/_control/kakaopay/status", shop.pg.url());
    let show = |order: &str, status: Value| {
        read(
            shop.http
                .put(&url)
                .json(&json!({"orderId": order, "status": status})),
        )
    };
    for status in ["SEND_TMS", "ARS_WAITING", "ISSUED_SID", "SOMETHING_NEW"] {
        let set = show("order_1", json!(status)).await.expect("an answer");
        assert_eq!(set.status, 204);
        assert_eq!(shop.kakao_status(&tid).await, status);
    }
    assert_eq!(
        show("order_1", Value::Null)
            .await
            .expect("an answer")
            .status,
        204
    );
    assert_eq!(shop.kakao_status(&tid).await, "SUCCESS_PAYMENT");
    assert_eq!(
        show("order_2", Value::Null)
            .await
            .expect("an answer")
            .status,
        404
    );
}

#[tokio::test]
async fn the_ledger_counts_each_gateway_alone_and_both_together() {
    let shop = Shop::open().await;
    shop.kakao_paid("order_1").await;
    shop.paid("order_2").await;
    shop.paid("order_3").await;
    let url = format!("{}/_control/ledger", shop.pg.url());
    let ledger = read(shop.http.get(&url)).await.expect("an answer").json();
    let received = |of: &Value, operation: &str| of["calls"][operation]["received"].clone();
    assert_eq!(received(&ledger, "confirm"), 3);
    let gateways = &ledger["gateways"];
    assert_eq!(received(&gateways["toss"], "confirm"), 2);
    assert_eq!(received(&gateways["kakaopay"], "confirm"), 1);
    assert_eq!(received(&gateways["kakaopay"], "ready"), 1);
    assert_eq!(received(&gateways["toss"], "ready"), 0);
    assert_eq!(gateways["kakaopay"]["peakInFlight"]["confirm"], 1);
    assert_eq!(ledger["peakInFlight"]["confirm"], 1);
}
