//! Another site presses the button: whatever it makes a browser send is refused and changes nothing, and no GET does
//! anything at all.

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use serde_json::json;

use crate::beside::Beside;
use crate::shop::{Order, Reply, Shop};

/// What a browser says of a request that another site caused: newer ones by both headers, older ones by one.
const FOREIGN: [&[(&str, &str)]; 7] = [
    &[("origin", "https://evil.example")],
    &[("origin", "null")],
    &[("origin", "http://127.0.0.1:1")],
    &[("sec-fetch-site", "cross-site")],
    &[("sec-fetch-site", "same-site")],
    &[
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ],
    &[
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-dest", "empty"),
    ],
];

/// What a form or a script of another site can send without being asked first, and what it cannot.
const KINDS: [&str; 5] = [
    "application/x-www-form-urlencoded",
    "text/plain",
    "multipart/form-data; boundary=b",
    "application/json",
    "",
];

/// Every address that changes something for a shopper, with the form that it takes.
async fn buttons(shop: &Shop, order: &Order) -> Vec<(String, String)> {
    let reference = shop.attempt(order).await.body["reference"]
        .as_str()
        .expect("a reference")
        .to_owned();
    let key = shop.key(&order.id, order.amount);
    let payment = format!(
        "paymentKey={key}&orderId={}&amount={}",
        order.id, order.amount
    );
    let of = |path: &str, form: &str| (path.to_owned(), form.to_owned());
    vec![
        of("/orders", "sku=mug&quantity=1"),
        of(&format!("/checkout/{}", order.id), ""),
        of(
            &format!("/checkout/{}/return/{reference}", order.id),
            &payment,
        ),
        of("/language", "lang=en&back=/"),
        of("/dev/scenario", "preset=down"),
        of("/api/orders", "sku=mug&quantity=1"),
        of(&format!("/api/orders/{}/attempts", order.id), ""),
        of(&format!("/api/orders/{}/cancel", order.id), "reason=mine"),
        of(&format!("/orders/{}", order.id), "key=k-1&reason=mine"),
        of("/api/payments/confirm", &payment),
    ]
}

fn as_kind(kind: &str, form: &str) -> String {
    let fields = form
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), json!(value)));
    match kind {
        "application/json" => serde_json::Value::Object(fields.collect()).to_string(),
        "multipart/form-data; boundary=b" => {
            let part = |(name, value): (String, serde_json::Value)| {
                let text = value.as_str().unwrap_or_default().to_owned();
                format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
            };
            fields.map(part).collect::<String>() + "--b--\r\n"
        }
        _ => form.to_owned(),
    }
}

#[tokio::test]
async fn whatever_another_site_posts_is_refused_and_changes_nothing() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let buttons = buttons(&shop, &order).await;
    let mut beside = Beside::of(&shop).await;
    let before = beside.rows().await;
    for (path, form) in &buttons {
        for kind in KINDS {
            for foreign in FOREIGN {
                let mut request = shop.post(path).header(COOKIE, &order.cookie);
                if !kind.is_empty() {
                    request = request.header(CONTENT_TYPE, kind);
                }
                for (name, value) in foreign {
                    request = request.header(*name, *value);
                }
                let sent = request.body(as_kind(kind, form)).send().await.unwrap();
                let reply = Reply::of(sent).await;
                assert_eq!(
                    (reply.status, reply.code()),
                    (403, "forbidden_origin"),
                    "{path} {kind} {foreign:?}"
                );
                assert!(!reply.headers.contains_key(SET_COOKIE), "{path}");
            }
        }
    }
    assert_eq!(beside.rows().await, before);
    assert_eq!(shop.confirms(), 0);
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    // The very same forms from the shop's own pages do what they say.
    for (path, form) in &buttons {
        if path.starts_with("/api/") || path.starts_with("/dev/") {
            continue;
        }
        let own = shop
            .post(path)
            .header(COOKIE, &order.cookie)
            .header("origin", &shop.url)
            .header("sec-fetch-site", "same-origin")
            .header(CONTENT_TYPE, KINDS[0])
            .body(form.clone());
        assert_eq!(own.send().await.unwrap().status(), 303, "{path}");
    }
    shop.until_status(&order, "paid").await;
    shop.end().await;
}

#[tokio::test]
async fn no_get_of_any_address_changes_anything() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let buttons = buttons(&shop, &order).await;
    let mut beside = Beside::of(&shop).await;
    let before = beside.rows().await;
    for (path, form) in &buttons {
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            let top_level = shop
                .client
                .request(
                    method.clone(),
                    format!("{}{path}?{form}&_method=POST", shop.url),
                )
                .header(COOKIE, &order.cookie)
                .header("sec-fetch-site", "cross-site")
                .header("sec-fetch-mode", "navigate")
                .header("x-http-method-override", "POST");
            let reply = Reply::of(top_level.send().await.unwrap()).await;
            assert!(reply.status < 500, "{method} {path}: {}", reply.status);
            assert!(!reply.headers.contains_key(SET_COOKIE), "{method} {path}");
        }
    }
    assert_eq!(beside.rows().await, before);
    assert_eq!(shop.confirms(), 0);
    // The fake gateway is still up, and the order can still be paid.
    assert_eq!(shop.pay(&order).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn other_methods_are_refused_or_change_nothing_either() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let buttons = buttons(&shop, &order).await;
    let mut beside = Beside::of(&shop).await;
    let before = beside.rows().await;
    for (path, form) in &buttons {
        for method in [Method::PUT, Method::PATCH, Method::DELETE] {
            for foreign in [true, false] {
                let request = shop
                    .client
                    .request(method.clone(), format!("{}{path}", shop.url))
                    .header(COOKIE, &order.cookie)
                    .header(CONTENT_TYPE, KINDS[0])
                    .body(form.clone());
                let request = if foreign {
                    request.header("origin", "https://evil.example")
                } else {
                    request
                };
                let status = request.send().await.unwrap().status().as_u16();
                assert!(matches!(status, 403..=405), "{method} {path}: {status}");
            }
        }
    }
    assert_eq!(beside.rows().await, before);
    assert_eq!(shop.confirms(), 0);
    shop.end().await;
}
