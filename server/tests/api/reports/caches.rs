//! A cache answers instead of us: nothing that tells of an order, a status or a checkout may be kept by anybody.

use std::collections::{BTreeSet, HashMap};

use reqwest::header::{CONTENT_TYPE, COOKIE, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::shop::{Order, Shop};

/// Statuses of answers that were found fresh.
#[derive(Default)]
struct Fresh(BTreeSet<u16>);

impl Fresh {
    async fn is(&mut self, name: &str, request: RequestBuilder) {
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let kept = response.headers().get_all("cache-control");
        let kept: Vec<_> = kept.iter().collect();
        assert_eq!(kept, ["no-store"], "{name}: {status}");
        for other in ["expires", "last-modified", "age", "surrogate-control"] {
            assert!(
                !response.headers().contains_key(other),
                "{name}: {status} says {other}"
            );
        }
        self.0.insert(status);
    }
}

fn methods() -> Vec<Method> {
    let all = [
        "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PURGE",
    ];
    all.iter().map(|name| name.parse().unwrap()).collect()
}

#[tokio::test]
async fn every_answer_of_every_address_and_method_forbids_to_keep_it() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let attempt = shop.attempt(&order).await;
    let reference = attempt.body["reference"].as_str().unwrap().to_owned();
    let mut fresh = Fresh::default();
    for path in [
        "/".to_owned(),
        "/orders".to_owned(),
        "/orders?page=2".to_owned(),
        "/nothing".to_owned(),
        "/language".to_owned(),
        "/healthz".to_owned(),
        "/readyz".to_owned(),
        "/metrics".to_owned(),
        "/webhooks/toss".to_owned(),
        "/webhooks/nobody".to_owned(),
        "/api/products".to_owned(),
        "/api/orders".to_owned(),
        "/api/payments/confirm".to_owned(),
        "/api/nothing".to_owned(),
        format!("/api/orders/{}", order.id),
        format!("/api/orders/{}/attempts", order.id),
        format!("/orders/{}", order.id),
        format!("/checkout/{}", order.id),
        format!("/checkout/{}/return/{reference}", order.id),
        format!("/checkout/{}/return/x", order.id),
    ] {
        for method in methods() {
            for cookie in [order.cookie.as_str(), ""] {
                let name = format!("{method} {path}");
                let request = shop
                    .client
                    .request(method.clone(), format!("{}{path}", shop.url))
                    .header(COOKIE, cookie);
                fresh.is(&name, request).await;
            }
        }
    }
    for status in [200, 303, 404, 405, 415] {
        assert!(fresh.0.contains(&status), "{status} of {:?}", fresh.0);
    }
    shop.end().await;
}

#[tokio::test]
async fn answers_of_every_status_forbid_to_keep_them() {
    let shop = Shop::with(&[("JARI_PG_CAP", "1"), ("JARI_PG_RESERVE", "0")]).await;
    let mut fresh = Fresh::default();
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let confirm = |order: &Order, key: &str| shop.confirm_request(order, &order.id, key);
    let json = |path: &str, body: serde_json::Value| shop.post(path).json(&body);
    let mug = json!({"items": [{"sku": "mug", "quantity": 1}]});
    fresh.is("201", json("/api/orders", mug.clone())).await;
    let bad = json("/api/orders", json!({"items": []}));
    fresh.is("400", bad).await;
    let many = json!({"items": [{"sku": "poster", "quantity": 99}]});
    fresh.is("409", json("/api/orders", many)).await;
    let foreign = json("/api/orders", mug).header("origin", "https://evil.example");
    fresh.is("403", foreign).await;
    let large = shop
        .post("/api/orders")
        .header(CONTENT_TYPE, "application/json");
    fresh.is("413", large.body("x".repeat(70_000))).await;
    fresh.is("415", shop.post("/api/orders").body("{}")).await;
    shop.set(json!({"decline": {}})).await;
    fresh.is("402", confirm(&order, &key)).await;
    // One that waits has the only place.
    shop.set(json!({"delayMs": 1_500})).await;
    let (slow, refused) = (shop.order("mug", 1).await, shop.order("mug", 1).await);
    let key = shop.key(&slow.id, slow.amount);
    let waiting = shop.start_pay(&slow, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 2)
        .await;
    fresh.is("202", confirm(&slow, &key)).await;
    let other = shop.key(&refused.id, refused.amount);
    fresh.is("503", confirm(&refused, &other)).await;
    assert_eq!(waiting.await.unwrap().unwrap().status, 200);
    fresh.is("200", confirm(&slow, &key)).await;
    let tag = shop.poll(&slow).await.headers["etag"].clone();
    let again = shop
        .get(&format!("/api/orders/{}", slow.id))
        .header(COOKIE, &slow.cookie)
        .header(IF_NONE_MATCH, tag);
    fresh.is("304", again).await;
    let form = shop
        .post("/orders")
        .form(&[("sku", "mug"), ("quantity", "1")]);
    fresh.is("303", form).await;
    let all = [200, 201, 202, 303, 304, 400, 402, 403, 409, 413, 415, 503];
    assert_eq!(fresh.0, all.into());
    shop.end().await;
    // Asked for too much, and refused as a page and as a problem.
    let shop = Shop::with(&[("JARI_RATE_LIMITS", "on")]).await;
    let order = shop.order("mug", 1).await;
    let mut fresh = Fresh::default();
    for _ in 0..12 {
        let more = shop
            .post("/orders")
            .header(COOKIE, &order.cookie)
            .header("accept", "text/html")
            .form(&[("sku", "mug"), ("quantity", "1")]);
        fresh.is("a form too many", more).await;
        let more = confirm_of_nothing(&shop, &order);
        fresh.is("a confirm too many", more).await;
    }
    assert!(fresh.0.contains(&429) && fresh.0.contains(&303));
    shop.end().await;
}

fn confirm_of_nothing(shop: &Shop, order: &Order) -> RequestBuilder {
    shop.confirm_request(order, "ord_not_there", "key")
}

/// A shared cache of the greedy kind: it keeps whatever it is not forbidden to keep, by address alone.
#[derive(Default)]
struct Cache(HashMap<String, String>);

impl Cache {
    async fn get(&mut self, shop: &Shop, path: &str, cookie: &str) -> String {
        if let Some(kept) = self.0.get(path) {
            return kept.clone();
        }
        let request = shop.get(path).header(COOKIE, cookie);
        let response = request.send().await.expect("an answer");
        let forbidden = response
            .headers()
            .get("cache-control")
            .is_some_and(|value| value.as_bytes().starts_with(b"no-store"));
        let text = response.text().await.expect("text");
        if !forbidden {
            self.0.insert(path.to_owned(), text.clone());
        }
        text
    }
}

#[tokio::test]
async fn behind_a_greedy_cache_a_paid_order_shows_as_paid_and_nobody_sees_anothers() {
    let shop = Shop::open().await;
    let mut cache = Cache::default();
    let one = shop.order("mug", 1).await;
    let other = shop.order("mug", 1).await;
    shop.set(json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
        .await;
    let poll = format!("/api/orders/{}", one.id);
    assert!(
        cache
            .get(&shop, &poll, &one.cookie)
            .await
            .contains("\"payable\":true")
    );
    shop.pay(&one).await;
    // Whatever it was in between: the next question after the truth is known is answered by it.
    shop.until_status(&one, "paid").await;
    assert!(
        cache
            .get(&shop, &poll, &one.cookie)
            .await
            .contains("\"paid\"")
    );
    let checkout = format!("/checkout/{}", one.id);
    let page = cache.get(&shop, &checkout, &one.cookie).await;
    assert!(page.contains("data-stage=\"paid\""));
    let history = cache.get(&shop, "/orders", &one.cookie).await;
    assert!(history.contains(&one.id) && !history.contains(&other.id));
    let history = cache.get(&shop, "/orders", &other.cookie).await;
    assert!(history.contains(&other.id) && !history.contains(&one.id));
    for path in [poll, checkout, format!("/orders/{}", one.id)] {
        let seen = cache.get(&shop, &path, &other.cookie).await;
        assert!(!seen.contains("paid"), "{path}: {seen}");
    }
    assert_eq!(cache.0.len(), 0);
    shop.end().await;
}
