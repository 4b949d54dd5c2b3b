//! KakaoPay's payment window, pressed button by button.

use std::collections::HashMap;

use reqwest::Url;
use serde_json::{Value, json};

use crate::kakao::{approve_body, ready_body, with};
use crate::support::{Reply, Shop, read};

const DEVICES: [&str; 3] = [
    "next_redirect_pc_url",
    "next_redirect_mobile_url",
    "next_redirect_app_url",
];

async fn show(shop: &Shop, ready: &Value, device: &str) -> Reply {
    let url = ready[device].as_str().expect("a URL");
    read(shop.http.get(url)).await.expect("an answer")
}

async fn press(shop: &Shop, ready: &Value, form: &[(&str, &str)]) -> Reply {
    let url = ready[DEVICES[0]].as_str().expect("a URL");
    read(shop.http.post(url).form(form))
        .await
        .expect("an answer")
}

/// Presses a button that leads back to the shop.
async fn led(shop: &Shop, ready: &Value, action: &str) -> (Url, HashMap<String, String>) {
    let reply = press(shop, ready, &[("action", action)]).await;
    assert_eq!(reply.status, 303, "{action}: {:?}", reply.body);
    let url = Url::parse(reply.header("location")).expect("a URL");
    let pairs = url.query_pairs().into_owned().collect();
    (url, pairs)
}

fn tid(ready: &Value) -> &str {
    ready["tid"].as_str().expect("a tid")
}

#[tokio::test]
async fn every_device_has_a_page_with_a_real_form_for_each_choice() {
    let shop = Shop::open().await;
    let body = with(ready_body("order_1"), json!({"item_name": "머그컵 <1>"}));
    let ready = shop.kakao("ready", &body).await.json();
    for device in DEVICES {
        let reply = show(&shop, &ready, device).await;
        assert_eq!(reply.status, 200, "{device}");
        let page = String::from_utf8(reply.body.to_vec()).expect("text");
        for part in [
            "33,000원",
            "머그컵 &lt;1&gt;",
            r#"data-testid="pg-pay""#,
            r#"data-testid="pg-refuse""#,
            r#"data-testid="pg-close""#,
            r#"data-testid="pg-expire""#,
            r#"data-testid="pg-pay-forged""#,
            r#"name="method" value="MONEY""#,
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("{{") && !page.contains("<script"));
        assert!(
            !page.contains(tid(&ready)),
            "the browser never sees the tid"
        );
        let policy = reply.header("content-security-policy");
        assert!(
            policy.contains("form-action 'self' http://shop.test"),
            "{policy}"
        );
    }
    assert_eq!(shop.kakao_status(tid(&ready)).await, "OPEN_PAYMENT");
}

#[tokio::test]
async fn paying_leads_to_the_approval_url_with_the_token_that_approves() {
    let shop = Shop::open().await;
    for (order, method) in [("order_1", "CARD"), ("order_2", "MONEY")] {
        let ready = shop.ready(order).await;
        show(&shop, &ready, DEVICES[1]).await;
        let reply = press(&shop, &ready, &[("action", "pay"), ("method", method)]).await;
        let url = Url::parse(reply.header("location")).expect("a URL");
        assert_eq!(
            (reply.status, url.path()),
            (303, format!("/return/{order}").as_str())
        );
        let pairs: HashMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!(pairs["attempt"], "abc", "the shop's own query stays");
        assert_eq!(pairs.len(), 2, "and nothing but the token is added");
        assert_eq!(shop.kakao_status(tid(&ready)).await, "AUTH_PASSWORD");
        let body = approve_body(order, &ready["tid"], &pairs["pg_token"]);
        let approved = shop.kakao("approve", &body).await.json();
        assert_eq!(approved["payment_method_type"], method);
        assert_eq!(approved.get("card_info").is_some(), method == "CARD");
    }
}

#[tokio::test]
async fn a_shop_can_allow_one_method_only() {
    let shop = Shop::open().await;
    let body = with(
        ready_body("order_1"),
        json!({"payment_method_type": "MONEY"}),
    );
    let ready = shop.kakao("ready", &body).await.json();
    let page = show(&shop, &ready, DEVICES[0]).await.body;
    assert!(!String::from_utf8_lossy(&page).contains("CARD"));
    let (_, pairs) = led(&shop, &ready, "pay").await;
    let body = approve_body("order_1", &ready["tid"], &pairs["pg_token"]);
    assert_eq!(
        shop.kakao("approve", &body).await.json()["payment_method_type"],
        "MONEY"
    );
}

#[tokio::test]
async fn refusing_closing_and_expiring_lead_back_and_end_the_payment() {
    let shop = Shop::open().await;
    for (action, path, status, refusal) in [
        ("refuse", "/failed/refuse", "FAIL_AUTH_PASSWORD", -783),
        ("close", "/closed/close", "QUIT_PAYMENT", -783),
        ("expire", "/failed/expire", "READY", -723),
    ] {
        let ready = shop.ready(action).await;
        let (url, pairs) = led(&shop, &ready, action).await;
        assert_eq!((url.path(), pairs.len()), (path, 0), "{action}");
        assert_eq!(shop.kakao_status(tid(&ready)).await, status);
        let body = approve_body(action, &ready["tid"], "token");
        assert_eq!(
            shop.kakao("approve", &body).await.kakao_refusal(),
            (400, refusal)
        );
        assert!(shop.pg.authenticate_ready(action, 33_000).is_err());
    }
}

#[tokio::test]
async fn something_or_nothing_is_added_where_no_payment_was_made() {
    let shop = Shop::open().await;
    shop.scenario(json!({"kakaopay": {"returnQuery": "added"}}))
        .await;
    for (action, code) in [("refuse", "-780"), ("close", "-783"), ("expire", "-723")] {
        let ready = shop.ready(action).await;
        let (_, pairs) = led(&shop, &ready, action).await;
        assert_eq!(pairs["error_code"], code);
        assert!(pairs.contains_key("error_message"));
    }
}

#[tokio::test]
async fn a_forged_token_comes_back_and_approves_nothing() {
    let shop = Shop::open().await;
    let ready = shop.ready("order_1").await;
    let (url, pairs) = led(&shop, &ready, "pay-forged").await;
    assert_eq!(url.path(), "/return/order_1");
    let forged = approve_body("order_1", &ready["tid"], &pairs["pg_token"]);
    assert_eq!(
        shop.kakao("approve", &forged).await.kakao_refusal(),
        (400, -701)
    );
    let (_, real) = led(&shop, &ready, "pay").await;
    assert_eq!(
        shop.kakao("approve", &forged).await.kakao_refusal(),
        (400, -708)
    );
    let body = approve_body("order_1", &ready["tid"], &real["pg_token"]);
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
}

#[tokio::test]
async fn an_expired_page_leads_to_the_fail_url_and_an_ended_one_says_so() {
    let shop = Shop::open().await;
    let ready = shop.ready("order_1").await;
    shop.scenario(json!({"confirmWindowMs": 0})).await;
    let expired = show(&shop, &ready, DEVICES[0]).await;
    assert_eq!(expired.status, 303);
    assert_eq!(
        expired.header("location"),
        "http://shop.test/failed/order_1"
    );
    shop.scenario(json!({})).await;

    let ready = shop.ready("order_2").await;
    let (_, pairs) = led(&shop, &ready, "pay").await;
    let body = approve_body("order_2", &ready["tid"], &pairs["pg_token"]);
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
    for reply in [
        show(&shop, &ready, DEVICES[0]).await,
        press(&shop, &ready, &[("action", "pay")]).await,
    ] {
        let page = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(
            page.contains("pg-over") && !page.contains("<form"),
            "{page}"
        );
    }
    assert_eq!(shop.charges("order_2"), 1);
}

#[tokio::test]
async fn unknown_pages_devices_actions_and_methods_are_refused() {
    let shop = Shop::open().await;
    let ready = shop.ready("order_1").await;
    let page = ready[DEVICES[0]].as_str().expect("a URL");
    for url in [
        format!("{}/window/kakaopay/none/pc", shop.pg.url()),
        page.replace("/pc", "/watch"),
    ] {
        assert_eq!(
            read(shop.http.get(url)).await.expect("an answer").status,
            404
        );
    }
    for form in [
        [("action", "steal"), ("method", "CARD")],
        [("action", "pay"), ("method", "GOLD")],
    ] {
        let status = press(&shop, &ready, &form).await.status;
        assert!((400..500).contains(&status), "{form:?}");
    }
    assert_eq!(shop.kakao_status(tid(&ready)).await, "READY");
}

#[tokio::test]
async fn the_window_can_be_broken_like_any_call() {
    let shop = Shop::open().await;
    let ready = shop.ready("order_1").await;
    shop.scenario(json!({"operations": ["window"], "error": {"status": 503}}))
        .await;
    assert_eq!(show(&shop, &ready, DEVICES[0]).await.status, 503);
}

#[tokio::test]
async fn pages_can_be_served_from_another_address() {
    let shop = Shop::with(fakepg::Config {
        public_url: Some("https://pay.test/".to_owned()),
        ..fakepg::Config::default()
    })
    .await;
    let ready = shop.ready("order_1").await;
    let url = ready[DEVICES[2]].as_str().expect("a URL");
    assert!(
        url.starts_with("https://pay.test/window/kakaopay/"),
        "{url}"
    );
}
