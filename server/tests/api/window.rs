//! The page that opens the gateway's window by its own script: only with real keys, and with a policy that no other page has.

use serde_json::json;

use crate::shop::{Order, Shop};

const REAL: [(&str, &str); 4] = [
    ("JARI_FAKE_PG", "off"),
    ("JARI_TOSS_CLIENT_KEY", "test_ck_shop"),
    ("JARI_TOSS_SECRET_KEY", "test_sk_never_shown"),
    ("JARI_TOSS_URL", "http://127.0.0.1:9"),
];

/// Status, policy and text of a page.
async fn page(shop: &Shop, order: Option<&Order>, path: &str) -> (u16, String, String) {
    let mut request = shop.get(path).header("accept-language", "en");
    if let Some(order) = order {
        request = request.header("cookie", &order.cookie);
    }
    let answer = request.send().await.expect("an answer");
    let policy = answer.headers()["content-security-policy"]
        .to_str()
        .expect("a policy in ASCII");
    let policy = policy.to_owned();
    (
        answer.status().as_u16(),
        policy,
        answer.text().await.expect("a whole answer"),
    )
}

#[tokio::test]
async fn the_gateways_script_is_let_in_on_its_own_page_and_on_no_other() {
    let shop = Shop::with(&REAL).await;
    let order = shop.order("mug", 1).await;
    let made = shop.attempt(&order).await;
    let url = made.body["payUrl"].as_str().unwrap();
    let reference = made.body["reference"].as_str().unwrap();
    let path = format!("/checkout/{}/pay/{reference}", order.id);
    assert_eq!(url, format!("{}{path}", shop.url));
    let (status, policy, text) = page(&shop, Some(&order), &path).await;
    assert_eq!(status, 200);
    for part in [
        "script-src 'nonce-",
        "frame-src https://*.tosspayments.com",
        "connect-src https",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    for part in [
        "https://js.tosspayments.com/v2/standard",
        "test_ck_shop",
        "ANONYMOUS",
        &format!("/checkout/{}/return/{reference}", order.id),
        "You were not charged",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("test_sk_never_shown") && !text.contains("{{"));
    for other in [
        "/",
        "/orders",
        &format!("/checkout/{}", order.id),
        &format!("/orders/{}", order.id),
    ] {
        let (_, policy, _) = page(&shop, Some(&order), other).await;
        assert!(!policy.contains("tosspayments"), "{other}: {policy}");
    }
    // Nobody else's, and no other attempt's.
    assert_eq!(page(&shop, None, &path).await.0, 404);
    let stranger = shop.order("mug", 1).await;
    assert_eq!(page(&shop, Some(&stranger), &path).await.0, 404);
    let wrong = format!("/checkout/{}/pay/0123456789abcdef", order.id);
    assert_eq!(page(&shop, Some(&order), &wrong).await.0, 404);
    shop.end().await;
}

#[tokio::test]
async fn a_payment_that_was_begun_is_not_opened_again() {
    let shop = Shop::with(&REAL).await;
    let order = shop.order("mug", 1).await;
    let made = shop.attempt(&order).await;
    let reference = made.body["reference"].as_str().unwrap();
    // Nobody listens there: it is not sent, and the attempt has ended.
    shop.confirm(&order, "pk_1")
        .await
        .refused(503, "pg_unreachable");
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let url = format!("{}/checkout/{}/pay/{reference}", shop.url, order.id);
    let request = client.get(url).header("cookie", &order.cookie);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 303);
    assert_eq!(
        answer.headers()["location"],
        format!("/checkout/{}", order.id)
    );
    shop.end().await;
}

#[tokio::test]
async fn with_the_fake_gateway_there_is_no_such_page_and_no_wider_policy() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let made = shop.attempt(&order).await;
    let reference = made.body["reference"].as_str().unwrap();
    let path = format!("/checkout/{}/pay/{reference}", order.id);
    let (status, policy, _) = page(&shop, Some(&order), &path).await;
    assert_eq!(status, 404);
    assert!(!policy.contains("tosspayments"));
    shop.end().await;
}

#[tokio::test]
async fn a_test_code_is_what_the_gateway_answers_and_only_development_may_ask_for_one() {
    let shop = Shop::with(&[("JARI_TOSS_TEST_CODE", "REJECT_CARD_COMPANY")]).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let reply = shop.confirm(&order, &key).await;
    reply.refused(402, "declined");
    assert_eq!(reply.body["reason"], json!("card_refused"));
    assert_eq!(shop.charges(&order.id), 0);
    shop.end().await;
}
