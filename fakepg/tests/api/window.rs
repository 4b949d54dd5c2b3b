//! The hosted payment window, pressed button by button.

use std::collections::HashMap;

use reqwest::Url;
use serde_json::json;

use crate::support::{Reply, Shop, read};

const FIELDS: [(&str, &str); 7] = [
    ("gateway", "toss"),
    ("clientKey", "test_ck_fake"),
    ("orderId", "order_1"),
    ("orderName", "머그컵 <1>"),
    ("amount", "33000"),
    ("successUrl", "http://shop.test/return?attempt=abc#pay"),
    ("failUrl", "http://shop.test/fail"),
];

async fn press(shop: &Shop, button: &str) -> (Url, HashMap<String, String>) {
    let url = format!("{}/window/{button}", shop.pg.url());
    let reply = read(shop.http.post(url).form(&FIELDS))
        .await
        .expect("an answer");
    assert_eq!(reply.status, 303);
    let url = Url::parse(reply.header("location")).expect("a URL");
    let pairs = url.query_pairs().into_owned().collect();
    (url, pairs)
}

#[tokio::test]
async fn the_page_shows_the_order_and_a_real_form_for_each_choice() {
    let shop = Shop::open().await;
    let request = shop
        .http
        .get(format!("{}/window", shop.pg.url()))
        .query(&FIELDS);
    let reply = read(request).await.expect("an answer");
    assert_eq!(reply.status, 200);
    let page = String::from_utf8(reply.body.to_vec()).expect("text");
    for part in [
        "33,000원",
        "머그컵 &lt;1&gt;",
        r#"data-testid="pg-pay""#,
        r#"data-testid="pg-refuse""#,
        r#"data-testid="pg-close""#,
        r#"data-testid="pg-pay-forged""#,
        r#"<form method="post" action="/window/pay">"#,
        r#"name="orderId" value="order_1""#,
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("{{") && !page.contains("<script"));
    let policy = reply.header("content-security-policy");
    assert!(
        policy.contains("form-action 'self' http://shop.test"),
        "{policy}"
    );
    let style = shop.http.get(format!("{}/window/style.css", shop.pg.url()));
    assert_eq!(
        read(style).await.expect("an answer").header("content-type"),
        "text/css;charset=utf-8"
    );
}

#[tokio::test]
async fn paying_authenticates_and_goes_back_with_what_a_confirm_needs() {
    let shop = Shop::open().await;
    let (url, pairs) = press(&shop, "pay").await;
    assert_eq!((url.path(), url.fragment()), ("/return", Some("pay")));
    assert_eq!(pairs["attempt"], "abc", "the shop's own query stays");
    assert_eq!(
        (pairs["orderId"].as_str(), pairs["amount"].as_str()),
        ("order_1", "33000")
    );
    let payment_key = &pairs["paymentKey"];
    let waiting = shop.inquire(payment_key).await.json();
    assert_eq!(
        (&waiting["status"], &waiting["orderName"]),
        (&json!("IN_PROGRESS"), &json!("머그컵 <1>"))
    );
    assert_eq!(
        shop.confirm(payment_key, "order_1", 33_000).await.status,
        200
    );

    let (_, second) = press(&shop, "pay").await;
    assert_ne!(&second["paymentKey"], payment_key);
}

#[tokio::test]
async fn a_forged_amount_is_authenticated_and_returned_as_100_won() {
    let shop = Shop::open().await;
    let (_, pairs) = press(&shop, "pay-forged").await;
    assert_eq!(pairs["amount"], "100");
    let payment_key = &pairs["paymentKey"];
    assert_eq!(
        shop.confirm(payment_key, "order_1", 33_000).await.code(),
        "INVALID_REQUEST"
    );
    assert_eq!(shop.confirm(payment_key, "order_1", 100).await.status, 200);
}

#[tokio::test]
async fn refusing_and_closing_go_back_with_a_reason_and_change_nothing() {
    let shop = Shop::open().await;
    let (url, refused) = press(&shop, "refuse").await;
    assert_eq!(url.path(), "/fail");
    assert_eq!(
        (refused["code"].as_str(), refused["orderId"].as_str()),
        ("REJECT_CARD_COMPANY", "order_1")
    );
    assert!(!refused["message"].is_empty());
    let (_, closed) = press(&shop, "close").await;
    assert_eq!(closed["code"], "PAY_PROCESS_CANCELED");
    assert!(shop.ledger().payments.is_empty());
}

#[tokio::test]
async fn addresses_that_are_no_web_pages_are_refused() {
    let shop = Shop::open().await;
    for bad in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "/relative",
        "http://",
    ] {
        let mut fields = FIELDS;
        fields[5].1 = bad;
        let show = shop
            .http
            .get(format!("{}/window", shop.pg.url()))
            .query(&fields);
        let press = shop
            .http
            .post(format!("{}/window/pay", shop.pg.url()))
            .form(&fields);
        for reply in [read(show).await, read(press).await] {
            let Reply { status, .. } = reply.expect("an answer");
            assert!((400..500).contains(&status), "{bad}: {status}");
        }
    }
    assert!(shop.ledger().payments.is_empty());
}

#[tokio::test]
async fn the_window_can_be_broken_like_any_call() {
    let shop = Shop::open().await;
    shop.scenario(json!({"operations": ["window"], "error": {"status": 503}}))
        .await;
    let request = shop
        .http
        .get(format!("{}/window", shop.pg.url()))
        .query(&FIELDS);
    assert_eq!(read(request).await.expect("an answer").status, 503);
    assert_eq!(shop.buy("order_1").await.expect("an answer").status, 200);
}
