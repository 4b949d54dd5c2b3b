//! Other people's orders: whoever is not its shopper learns exactly as much of an order as of one that never was.

use std::collections::BTreeMap;

use reqwest::header::{CONTENT_TYPE, COOKIE};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::beside::Beside;
use crate::shop::{Order, Shop};

/// What is the same for two orders that one must not be able to tell apart.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

/// An answer without what is by chance or by the clock, and without the order's and the attempt's names.
async fn seen(request: RequestBuilder, names: &[&str]) -> Seen {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = |value: &reqwest::header::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    let mut headers: BTreeMap<String, String> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    let nonce = headers
        .get("content-security-policy")
        .and_then(|policy| policy.split("'nonce-").nth(1)?.split('\'').next())
        .map(str::to_owned);
    for chance in ["date", "x-request-id"] {
        headers.remove(chance);
    }
    let mut body = response.text().await.expect("text");
    let mut hide = |hidden: &str, shown: &str| {
        body = body.replace(hidden, shown);
        for value in headers.values_mut() {
            *value = value.replace(hidden, shown);
        }
    };
    for name in names {
        hide(name, "NAME");
    }
    if let Some(nonce) = &nonce {
        hide(nonce, "NONCE");
    }
    Seen {
        status,
        headers,
        body,
    }
}

/// Everything that can be asked or told about an order, by whom it may be.
fn questions(
    shop: &Shop,
    cookie: &str,
    order: &Order,
    reference: &str,
    key: &str,
) -> Vec<(String, RequestBuilder)> {
    let checkout = format!("/checkout/{}", order.id);
    let back = format!("{checkout}/return/{reference}");
    let query = format!(
        "?paymentKey={key}&orderId={}&amount={}",
        order.id, order.amount
    );
    let payment = json!({"paymentKey": key, "orderId": order.id, "amount": order.amount});
    let form = format!(
        "paymentKey={key}&orderId={}&amount={}",
        order.id, order.amount
    );
    let api = format!("/api/orders/{}", order.id);
    let page = |path: &str| {
        shop.get(path)
            .header("accept", "text/html,application/xhtml+xml")
    };
    let posted = |path: &str, form: String| {
        shop.post(path)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form)
    };
    let head = |path: &str| {
        shop.client
            .request(Method::HEAD, format!("{}{path}", shop.url))
    };
    let all = [
        ("poll", shop.get(&api)),
        (
            "poll with a tag",
            shop.get(&api).header("if-none-match", "\"0\""),
        ),
        ("poll, head only", head(&api)),
        (
            "attempt",
            shop.post(&format!("{api}/attempts")).json(&json!({})),
        ),
        (
            "cancel",
            shop.post(&format!("{api}/cancel"))
                .header("idempotency-key", "stranger")
                .json(&json!({"reason": "mine"})),
        ),
        ("confirm", shop.post("/api/payments/confirm").json(&payment)),
        (
            "confirm with a deadline",
            shop.post("/api/payments/confirm")
                .header("x-request-timeout-ms", "0")
                .json(&payment),
        ),
        ("checkout page", page(&checkout)),
        ("checkout page, head only", head(&checkout)),
        ("order page", page(&format!("/orders/{}", order.id))),
        ("return page", page(&format!("{back}{query}"))),
        ("pay form", posted(&checkout, String::new())),
        ("confirm form", posted(&back, form)),
        (
            "cancel form",
            posted(
                &format!("/orders/{}", order.id),
                "key=stranger&reason=mine".to_owned(),
            ),
        ),
        ("history", page("/orders")),
    ];
    all.into_iter()
        .map(|(name, request)| (name.to_owned(), request.header(COOKIE, cookie)))
        .collect()
}

/// The next name: what somebody would try who hopes that names are numbers.
fn next(id: &str) -> String {
    let (start, last) = id.split_at(id.len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    format!("{start}{other}")
}

#[tokio::test]
async fn another_shoppers_order_is_answered_exactly_like_one_that_never_was() {
    let shop = Shop::open().await;
    let theirs = shop.order("mug", 2).await;
    let attempt = shop.attempt(&theirs).await;
    let reference = attempt.body["reference"].as_str().expect("text").to_owned();
    let key = shop.key(&theirs.id, theirs.amount);
    let paid = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&paid).await.status, 200);
    let own = shop.order("mug", 1).await.cookie;
    let forged = own.replace("jari_shopper=", "jari_shopper=x");
    let mut beside = Beside::of(&shop).await;
    let before = beside.rows().await;
    for cookie in [own.as_str(), forged.as_str(), ""] {
        for order in [&theirs, &paid] {
            let never = Order {
                id: next(&order.id),
                ..order.clone()
            };
            let other = next(&reference);
            let real = questions(&shop, cookie, order, &reference, &key);
            let none = questions(&shop, cookie, &never, &other, &key);
            for ((name, real), (_, none)) in real.into_iter().zip(none) {
                let real = seen(real, &[&order.id, &reference]).await;
                let none = seen(none, &[&never.id, &other]).await;
                assert_eq!(real, none, "{name}");
                let is_page_of_nobody = name == "history" || real.status == 303;
                assert!(real.status == 404 || is_page_of_nobody, "{name}: {real:?}");
            }
        }
    }
    assert_eq!(beside.rows().await, before);
    assert_eq!(shop.confirms(), 1);
    // The orders are as they were, for their own shoppers.
    assert_eq!(shop.confirm(&theirs, &key).await.status, 200);
    assert_eq!(shop.poll(&paid).await.body["status"], "paid");
    shop.end().await;
}

#[tokio::test]
async fn memory_answers_only_an_orders_own_shopper() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let stranger = Order {
        cookie: shop.order("mug", 1).await.cookie,
        ..order.clone()
    };
    let from = |source: &str| format!("poll_answers_total{{source=\"{source}\"}}");
    while shop.metric(&from("cache")).await < 3.0 {
        assert_eq!(shop.poll(&order).await.status, 200);
    }
    let before = [
        shop.metric(&from("cache")).await,
        shop.metric(&from("database")).await,
    ];
    for _ in 0..5 {
        shop.poll(&stranger).await.refused(404, "order_not_found");
    }
    // Looked for like any order that is not there, so that the time tells nothing.
    let after = [
        shop.metric(&from("cache")).await,
        shop.metric(&from("database")).await,
    ];
    assert_eq!(after, [before[0], before[1] + 5.0]);
    shop.end().await;
}

#[tokio::test]
async fn names_that_open_something_are_long_and_by_chance() {
    let shop = Shop::open().await;
    let mut names = Vec::new();
    for _ in 0..20 {
        let order = shop.order("mug", 1).await;
        let attempt = shop.attempt(&order).await;
        names.push(order.id.trim_start_matches("ord_").to_owned());
        names.push(attempt.body["reference"].as_str().unwrap().to_owned());
    }
    for (n, name) in names.iter().enumerate() {
        // 128 bits in hexadecimal.
        assert_eq!(name.len(), 32, "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        for other in &names[..n] {
            let same = name.bytes().zip(other.bytes()).filter(|(a, b)| a == b);
            // By chance two of 32; a counter or a clock would share most.
            assert!(same.count() < 16, "{name} and {other}");
        }
    }
    shop.end().await;
}
