//! The pages as documents: what they may contain, for whom, and under which policy.

use reqwest::header::COOKIE;
use serde_json::json;

use crate::shop::{Order, Shop};

async fn page(shop: &Shop, order: &Order, path: &str) -> (u16, String) {
    let response = shop
        .get(path)
        .header(COOKIE, &order.cookie)
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
    let status = response.status().as_u16();
    if status == 200 {
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .expect("a readable header")
            .to_owned();
        assert!(
            policy.contains("script-src 'self' 'nonce-")
                && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(
            policy.contains(&format!("form-action 'self' {}", shop.pg.url())),
            "{policy}"
        );
    }
    (status, response.text().await.expect("text"))
}

#[tokio::test]
async fn a_get_changes_nothing_and_a_stranger_sees_nothing() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let reference = shop.attempt(&order).await.body["reference"]
        .as_str()
        .unwrap()
        .to_owned();
    let key = shop.key(&order.id, order.amount);
    let back = format!(
        "/checkout/{}/return/{reference}?paymentKey={key}&orderId={}&amount={}",
        order.id, order.id, order.amount
    );
    let (status, text) = page(&shop, &order, &back).await;
    assert_eq!(status, 200);
    assert!(text.contains("data-testid=\"confirm\""));
    assert_eq!(shop.confirms(), 0);
    let stranger = Order {
        cookie: shop.order("mug", 1).await.cookie,
        ..order.clone()
    };
    for path in [
        format!("/checkout/{}", order.id),
        format!("/orders/{}", order.id),
        back.clone(),
    ] {
        assert_eq!(page(&shop, &stranger, &path).await.0, 404, "{path}");
    }
    let wrong = format!(
        "/checkout/{}/return/00000000000000000000000000000000",
        order.id
    );
    assert_eq!(page(&shop, &order, &wrong).await.0, 404);
    assert!(
        !page(&shop, &stranger, "/orders")
            .await
            .1
            .contains(&order.id)
    );
    shop.end().await;
}

/// Orders without script; the order as its shopper's cookie and checkout page know it.
async fn order_by_form(shop: &Shop) -> Order {
    let form = [("sku", "mug"), ("quantity", "1")];
    let made = shop
        .post("/orders")
        .form(&form)
        .send()
        .await
        .expect("an answer");
    assert_eq!(made.status(), 303);
    let header = |name: &str| made.headers()[name].to_str().expect("text").to_owned();
    let id = header("location")
        .trim_start_matches("/checkout/")
        .to_owned();
    let cookie = header("set-cookie")
        .split(';')
        .next()
        .expect("a pair")
        .to_owned();
    Order {
        id,
        amount: 18_000,
        cookie,
    }
}

#[tokio::test]
async fn without_script_the_whole_payment_is_forms_and_redirects() {
    let shop = Shop::open().await;
    shop.set(json!({"delayMs": 600})).await;
    let order = order_by_form(&shop).await;
    let checkout = format!("/checkout/{}", order.id);
    assert!(
        page(&shop, &order, &checkout)
            .await
            .1
            .contains("data-testid=\"pay\"")
    );
    let window = shop
        .post(&checkout)
        .header(COOKIE, &order.cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(window.status(), 303);
    let window = window.headers()["location"].to_str().unwrap().to_owned();
    assert!(
        window.starts_with(&format!("{}/window?", shop.pg.url())),
        "{window}"
    );
    let reference = shop.attempt(&order).await.body["reference"]
        .as_str()
        .unwrap()
        .to_owned();
    let key = shop.key(&order.id, order.amount);
    let back = format!("{checkout}/return/{reference}");
    let amount = order.amount.to_string();
    let form = [
        ("paymentKey", key.as_str()),
        ("orderId", order.id.as_str()),
        ("amount", amount.as_str()),
    ];
    let posted = shop
        .post(&back)
        .header(COOKIE, &order.cookie)
        .form(&form)
        .send()
        .await
        .unwrap();
    let location = posted.headers()["location"].to_str().unwrap();
    assert_eq!((posted.status().as_u16(), location), (303, back.as_str()));
    let (_, waiting) = page(&shop, &order, &back).await;
    assert!(
        waiting.contains("http-equiv=\"refresh\"") && waiting.contains("data-stage=\"checking\"")
    );
    assert!(
        !waiting.contains("data-testid=\"pay\"") && !waiting.contains("data-testid=\"confirm\"")
    );
    shop.until_status(&order, "paid").await;
    assert!(
        page(&shop, &order, &back)
            .await
            .1
            .contains("data-stage=\"paid\"")
    );
    // Posted again, by a reload of the form: the same truth.
    let again = shop
        .post(&back)
        .header(COOKIE, &order.cookie)
        .form(&form)
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 303);
    assert_eq!(shop.charges(&order.id), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_developers_panel_is_in_no_production_page() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    assert!(
        page(&shop, &order, "/")
            .await
            .1
            .contains("data-testid=\"dev-panel\"")
    );
    let set = shop
        .post("/dev/scenario")
        .form(&[("preset", "slow_bank"), ("back", "/")])
        .send()
        .await
        .unwrap();
    assert_eq!(set.status(), 303);
    let bad = shop
        .post("/dev/scenario")
        .form(&[("preset", "nonsense")])
        .send()
        .await
        .unwrap();
    assert_eq!(bad.status(), 400);
    shop.end().await;
    let pg = "http://127.0.0.1:9";
    let shop = Shop::with(&[
        ("JARI_ENV", "production"),
        ("JARI_PUBLIC_URL", "https://shop.example"),
        ("JARI_SECRET_KEY", "0123456789abcdef0123456789abcdef"),
        ("JARI_TOSS_CLIENT_KEY", "live_ck_x"),
        ("JARI_TOSS_SECRET_KEY", "live_sk_x"),
        ("JARI_TOSS_URL", pg),
        ("JARI_TOSS_WINDOW_URL", "https://shop.example/toss"),
    ])
    .await;
    let text = shop.get("/").send().await.unwrap().text().await.unwrap();
    assert!(!text.contains("dev-panel"));
    let set = shop
        .post("/dev/scenario")
        .form(&[("preset", "slow_bank")])
        .send()
        .await
        .unwrap();
    assert_eq!(set.status(), 404);
    let made = shop
        .post("/orders")
        .form(&[("sku", "mug"), ("quantity", "1")])
        .send()
        .await
        .unwrap();
    let cookie = made.headers()["set-cookie"].to_str().unwrap();
    for part in [
        "__Host-jari_shopper=",
        "Secure",
        "HttpOnly",
        "SameSite=Lax",
        "Path=/",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    shop.end().await;
}

#[tokio::test]
async fn the_language_is_chosen_and_leads_back() {
    let shop = Shop::open().await;
    let text = shop
        .get("/")
        .header("Accept-Language", "en-US,ko;q=0.5")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(text.contains("<html lang=\"en\"") && text.contains("Morning mug"));
    let set = shop
        .post("/language")
        .form(&[("lang", "ko"), ("back", "//evil.example")])
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            set.status().as_u16(),
            set.headers()["location"].to_str().unwrap()
        ),
        (303, "/")
    );
    let cookie = set.headers()["set-cookie"]
        .to_str()
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let text = shop
        .get("/")
        .header(COOKIE, cookie)
        .header("Accept-Language", "en")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(text.contains("<html lang=\"ko\"") && text.contains("아침 머그"));
    shop.end().await;
}

#[tokio::test]
async fn an_address_of_nothing_is_a_page_that_says_so() {
    let shop = Shop::open().await;
    for path in ["/nothing", "/orders/ord_1/more", "/favicon.ico"] {
        let response = shop.get(path).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
        assert!(
            response.text().await.unwrap().contains("<html lang=\"ko\""),
            "{path}"
        );
    }
    // A file that is not there is no page, and nothing leads out of the folder.
    for path in ["/pkg/nothing.js", "/pkg/..%2f..%2fCargo.toml"] {
        assert_eq!(shop.get(path).send().await.unwrap().status(), 404, "{path}");
    }
    shop.end().await;
}
