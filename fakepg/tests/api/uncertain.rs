//! What nobody outside knows of the real gateway: each switch, in both of its readings.

use fakepg::Config;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Receiver, Shop, read};

async fn with(uncertain: Value) -> Shop {
    let shop = Shop::open().await;
    shop.scenario(json!({"uncertain": uncertain})).await;
    shop
}

#[tokio::test]
async fn a_repeat_after_the_window_is_processed_already_or_its_session_is_over() {
    for (reading, code) in [
        ("processed", "ALREADY_PROCESSED_PAYMENT"),
        ("session", "NOT_FOUND_PAYMENT_SESSION"),
    ] {
        let shop = Shop::open().await;
        let key = shop.paid("order_1").await;
        let inside = shop.confirm(&key, "order_1", 1_000).await;
        assert_eq!(inside.code(), "ALREADY_PROCESSED_PAYMENT");
        shop.scenario(json!({"confirmWindowMs": 0, "uncertain": {"repeatAfterWindow": reading}}))
            .await;
        let repeat = shop.confirm(&key, "order_1", 1_000).await;
        assert_eq!(repeat.code(), code);
        assert_eq!(shop.charges("order_1"), 1);
    }
}

#[tokio::test]
async fn a_refused_payment_can_be_confirmed_again_or_not() {
    for (reading, code, again) in [
        ("finalWords", "REJECT_CARD_COMPANY", 400),
        ("finalWords", "PROVIDER_ERROR", 200),
        ("every", "PROVIDER_ERROR", 400),
        ("none", "REJECT_CARD_COMPANY", 200),
    ] {
        let shop = Shop::open().await;
        let uncertain = json!({"afterRefusal": reading});
        shop.scenario(json!({"decline": {"code": code}, "uncertain": uncertain}))
            .await;
        let key = shop.pg.authenticate("order_1", 1_000);
        shop.confirm(&key, "order_1", 1_000).await;
        shop.scenario(json!({})).await;
        let second = shop.confirm(&key, "order_1", 1_000).await;
        assert_eq!(second.status, again, "{reading} {code}");
    }
}

#[tokio::test]
async fn a_429_has_a_body_or_none_and_may_say_when_to_come_again() {
    for (reading, body) in [
        ("json", "TOO_MANY_REQUESTS"),
        ("empty", ""),
        ("html", "<h1>"),
    ] {
        let shop = Shop::open().await;
        let uncertain = json!({"limitedBody": reading, "retryAfterS": 7});
        shop.scenario(json!({"rateLimit": 0, "uncertain": uncertain}))
            .await;
        let limited = shop.buy("order_1").await.expect("an answer");
        assert_eq!(limited.status, 429);
        assert_eq!(limited.header("retry-after"), "7");
        let text = String::from_utf8(limited.body.to_vec()).unwrap();
        assert!(
            text.contains(body) && text.is_empty() == body.is_empty(),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_webhook_keeps_its_transmission_id_over_its_resends_or_not() {
    for stable in [true, false] {
        let receiver = Receiver::open(1).await;
        let config = Config {
            webhook_url: Some(receiver.url.clone()),
            ..Config::default()
        };
        let shop = Shop::with(config).await;
        shop.scenario(json!({"webhooks": {"resend": {"scale": 0.0001}},
            "uncertain": {"stableTransmissionId": stable}}))
            .await;
        shop.paid("order_1").await;
        let both = receiver.wait_for(2).await;
        assert_eq!(both[0].id() == both[1].id(), stable);
        assert_eq!(both[1].resends(), "1");
    }
}

#[tokio::test]
async fn an_order_id_may_hold_an_equals_sign_or_not() {
    for (allowed, status) in [(true, 200), (false, 400)] {
        let shop = with(json!({"orderIdEquals": allowed})).await;
        let reply = shop.buy("order=1").await.expect("an answer");
        assert_eq!(reply.status, status);
    }
}

#[tokio::test]
async fn the_window_names_the_payments_type_and_a_closed_ones_order_or_not() {
    for named in [true, false] {
        let shop = with(json!({"paymentType": named, "orderIdOnClose": named})).await;
        for (button, name) in [("pay", "paymentType=NORMAL"), ("close", "orderId=order_1")] {
            let fields = [
                ("orderId", "order_1"),
                ("amount", "1000"),
                ("successUrl", "http://shop.test/ok"),
                ("failUrl", "http://shop.test/no"),
            ];
            let url = format!("{}/window/{button}", shop.pg.url());
            let reply = read(shop.http.post(url).form(&fields))
                .await
                .expect("an answer");
            assert_eq!(reply.header("location").contains(name), named, "{button}");
        }
    }
}

#[tokio::test]
async fn a_cancels_lock_is_compared_or_not_and_its_entry_has_a_status_or_not() {
    for known in [true, false] {
        let shop = with(json!({"refundableAmount": known, "cancelStatus": known})).await;
        let key = shop.paid("order_1").await;
        let stale = json!({"cancelReason": "변심", "cancelAmount": 1, "refundableAmount": 5});
        let status = shop.cancel(&key, stale).await.status;
        assert_eq!(status == 400, known);
        shop.cancel(&key, json!({"cancelReason": "변심"})).await;
        let payment = shop.inquire(&key).await.json();
        assert_eq!(payment["cancels"][0].get("cancelStatus").is_some(), known);
    }
}

#[tokio::test]
async fn a_test_code_is_ignored_with_a_live_key() {
    let config = Config {
        secret_key: "live_sk_fake".to_owned(),
        ..Config::default()
    };
    let shop = Shop::with(config).await;
    let key = shop.pg.authenticate("order_1", 1_000);
    let body = json!({"paymentKey": key, "orderId": "order_1", "amount": 1_000});
    let url = format!("{}/v1/payments/confirm", shop.pg.url());
    let request = shop
        .http
        .request(Method::POST, url)
        .basic_auth("live_sk_fake", Some(""))
        .header("tosspayments-test-code", "REJECT_CARD_COMPANY")
        .json(&body);
    assert_eq!(read(request).await.expect("an answer").status, 200);
}
