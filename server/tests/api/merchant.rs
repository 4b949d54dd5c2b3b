//! Shops that sell through this checkout: their keys, their orders, their shoppers, and what their endpoints are told.

mod document;
mod endpoint;
mod example;
mod hostile;
mod webhooks;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::shop::{Order, Reply, Shop};
use document::Document;

/// Where the tests' shops lead their shoppers back to.
const BACK: &str = "http://shop.localhost:8080/done?from=jari";

/// A shop with a key of its own; every answer it gets is held against the document.
struct Merchant<'a> {
    shop: &'a Shop,
    key: String,
    document: Document,
}

/// An order as a merchant asks for it.
fn wish(reference: &str) -> Value {
    json!({
        "lines": [
            {"name": "도자기 화병 <b>", "quantity": 2, "unitAmount": 15_000},
            {"name": "Gift wrap", "quantity": 1, "unitAmount": 3_000},
        ],
        "reference": reference,
        "returnUrl": BACK,
        "language": "en",
    })
}

impl<'a> Merchant<'a> {
    async fn of(shop: &'a Shop, name: &str) -> Self {
        let origin = "http://shop.localhost:8080";
        let (code, said) = shop
            .command(&[
                "key",
                "new",
                "--shop",
                name,
                "--title",
                "Vase & Co",
                "--return-origin",
                origin,
            ])
            .await;
        assert_eq!(code, 0, "{said}");
        let key = said.lines().find(|line| line.starts_with("jari_"));
        Self {
            shop,
            key: key.expect("a key").to_owned(),
            document: Document::of(shop).await,
        }
    }

    fn handle(&self) -> &str {
        self.key.split('_').nth(1).expect("a handle")
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.shop.url);
        self.shop.client.request(method, url).bearer_auth(&self.key)
    }

    /// Sends a request and holds its answer against the document.
    async fn send(&self, request: RequestBuilder) -> Reply {
        let request = request.build().expect("a request");
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = self.shop.client.execute(request).await.expect("an answer");
        let reply = Reply::of(response).await;
        self.document.check(&method, &path, &reply);
        reply
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    async fn post(&self, path: &str, key: &str, body: &Value) -> Reply {
        let request = self.request(Method::POST, path);
        self.send(request.header("Idempotency-Key", key).json(body))
            .await
    }

    async fn order(&self, reference: &str) -> Value {
        let reply = self.post("/v1/orders", reference, &wish(reference)).await;
        assert_eq!(reply.status, 201, "{:?}", reply.body);
        reply.body
    }

    async fn read(&self, order: &Value) -> Value {
        let reply = self.get(&format!("/v1/orders/{}", id(order))).await;
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        reply.body
    }
}

fn id(order: &Value) -> &str {
    order["id"].as_str().expect("an id")
}

/// Opens an order's link as a browser without any cookie does.
async fn arrive(shop: &Shop, order: &Value) -> Order {
    arrive_with(shop, order, "").await
}

async fn arrive_with(shop: &Shop, order: &Value, cookies: &str) -> Order {
    let link = order["checkoutUrl"].as_str().expect("a link");
    let request = shop.client.get(link).header(COOKIE, cookies);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 303);
    let checkout = format!("/checkout/{}", id(order));
    assert_eq!(answer.headers()[LOCATION], checkout);
    let cookies = answer.headers().get_all(SET_COOKIE).iter();
    let cookies = cookies.map(|cookie| {
        let text = cookie.to_str().expect("text");
        text.split(';').next().expect("a pair").to_owned()
    });
    Order {
        id: id(order).to_owned(),
        amount: order["amount"].as_u64().expect("an amount"),
        cookie: cookies.collect::<Vec<_>>().join("; "),
    }
}

async fn page(shop: &Shop, path: &str, order: &Order) -> (u16, String) {
    let request = shop.get(path).header(COOKIE, &order.cookie);
    let answer = request.send().await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

#[tokio::test]
async fn a_shop_makes_an_order_once_for_each_of_its_keys_and_sees_its_own_alone() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let other = Merchant::of(&shop, "other").await;
    let made = vases.order("A-1").await;
    assert_eq!(made["amount"], 33_000);
    assert_eq!(made["status"], "pending");
    assert_eq!(made["unknown"], false);
    assert_eq!(made["lines"], wish("A-1")["lines"]);
    assert_eq!(made["returnUrl"], BACK);
    // The same wish, also in another spelling, is the same order; another one under its key is refused.
    let text = format!(
        " {} ",
        serde_json::to_string_pretty(&wish("A-1")).expect("JSON")
    );
    let again = vases.request(Method::POST, "/v1/orders").body(text);
    let again = again.header("Content-Type", "application/json; charset=utf-8");
    let again = vases.send(again.header("Idempotency-Key", "A-1")).await;
    assert_eq!((again.status, &again.body), (200, &made));
    let reused = vases.post("/v1/orders", "A-1", &wish("A-2")).await;
    reused.refused(422, "idempotency_key_reused");
    // Ten at once are one.
    let mut wishes = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let wish = vases.request(Method::POST, "/v1/orders").json(&wish("A-3"));
        wishes.spawn(wish.header("Idempotency-Key", "A-3").send());
    }
    let mut ids = std::collections::BTreeSet::new();
    for answer in wishes.join_all().await {
        let reply = Reply::of(answer.expect("an answer")).await;
        assert!(matches!(reply.status, 200 | 201), "{:?}", reply.body);
        ids.insert(id(&reply.body).to_owned());
    }
    assert_eq!(ids.len(), 1);
    // Another shop's key knows nothing of it, by whatever name.
    let path = format!("/v1/orders/{}", id(&made));
    other.get(&path).await.refused(404, "order_not_found");
    let nothing = other.get("/v1/orders?reference=A-1").await;
    assert_eq!(nothing.body["orders"], json!([]));
    let found = vases.get("/v1/orders?reference=A-1").await;
    assert_eq!(found.body["orders"], json!([made]));
    let refund = json!({"reason": "x"});
    let refund = other.post(&format!("{path}/refunds"), "k", &refund).await;
    refund.refused(404, "order_not_found");
    // An order that was made here is no shop's, and its shopper's cookie is no link.
    let own = shop.order("mug", 1).await;
    let missing = vases.get(&format!("/v1/orders/{}", own.id)).await;
    missing.refused(404, "order_not_found");
    shop.end().await;
}

#[tokio::test]
async fn a_key_that_is_wrong_or_revoked_opens_nothing() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    vases.order("A-1").await;
    let (_, listed) = shop.command(&["key", "list", "--json"]).await;
    let (secret, handle) = (&vases.key[22..], vases.handle());
    assert!(
        listed.contains(handle) && !listed.contains(secret),
        "{listed}"
    );
    let used: Value = serde_json::from_str(&listed).expect("JSON");
    assert!(used[0]["usedAt"].is_i64(), "{used}");
    let wrong = format!("{}0", &vases.key[..vases.key.len() - 1]);
    let path = "/v1/orders?reference=A-1";
    for bad in ["", "x", "jari_", &wrong, &vases.key.to_uppercase()] {
        let request = shop
            .get(path)
            .header("Authorization", format!("Bearer {bad}"));
        let reply = vases.send(request).await;
        if bad == wrong && wrong == vases.key {
            continue;
        }
        reply.refused(401, "unauthorized");
    }
    vases
        .send(shop.get(path))
        .await
        .refused(401, "unauthorized");
    let (code, _) = shop.command(&["key", "revoke", handle]).await;
    assert_eq!(code, 0);
    vases.get(path).await.refused(401, "unauthorized");
    let (again, _) = shop.command(&["key", "revoke", handle]).await;
    assert_eq!(again, 1);
    // Another key of the same shop sees what the first one made.
    let second = Merchant::of(&shop, "vases").await;
    let found = second.get(path).await;
    assert_eq!(found.body["orders"].as_array().map(Vec::len), Some(1));
    shop.end().await;
}

#[tokio::test]
async fn what_is_wrong_with_an_order_is_said_and_nothing_is_made() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let changed = |name: &str, value: Value| {
        let mut body = wish("A-1");
        body[name] = value;
        body
    };
    let line = |name: &str, quantity: i64, amount: i64| {
        changed(
            "lines",
            json!([{"name": name, "quantity": quantity, "unitAmount": amount}]),
        )
    };
    let long = "가".repeat(101);
    let bad = [
        changed("lines", json!([])),
        changed(
            "lines",
            json!(vec![
                json!({"name": "a", "quantity": 1, "unitAmount": 1});
                51
            ]),
        ),
        line("", 1, 1),
        line("a\nb", 1, 1),
        line(&long, 1, 1),
        line("a", 0, 1),
        line("a", 10_000, 1),
        line("a", -1, 1),
        line("a", 1, -1),
        line("a", 1, 0),
        line("a", 1, 1_000_000_001),
        line("a", 9_999, 1_000_000_000),
        changed("reference", json!("")),
        changed("reference", json!("a\u{0}b")),
        changed("returnUrl", json!("https://evil.example/")),
        changed("returnUrl", json!("javascript:alert(1)")),
        changed("language", json!("fr")),
        changed("expiresInSeconds", json!(59)),
        changed("expiresInSeconds", json!(2_592_001)),
        changed("extra", json!(1)),
    ];
    for body in bad {
        let reply = vases.post("/v1/orders", "k", &body).await;
        assert_eq!(reply.code(), "invalid_request", "{body}");
    }
    let without_key = vases.request(Method::POST, "/v1/orders").json(&wish("A-1"));
    vases
        .send(without_key)
        .await
        .refused(400, "invalid_request");
    let no_query = vases.get("/v1/orders").await;
    no_query.refused(400, "invalid_request");
    let found = vases.get("/v1/orders?reference=A-1").await;
    assert_eq!(found.body["orders"], json!([]));
    shop.end().await;
}

#[tokio::test]
async fn a_shopper_pays_by_the_link_alone_and_is_led_back_with_the_orders_name() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let made = vases.order("A-1").await;
    let shopper = arrive(&shop, &made).await;
    assert!(
        shopper.cookie.contains("jari_lang=en"),
        "{}",
        shopper.cookie
    );
    let checkout = format!("/checkout/{}", shopper.id);
    let (status, html) = page(&shop, &checkout, &shopper).await;
    assert_eq!(status, 200);
    for text in ["Vase &amp; Co", "도자기 화병 &lt;b", "Gift wrap", "33,000"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    // Without script: the form opens the window.
    let pressed = shop.post(&checkout).header(COOKIE, &shopper.cookie);
    let pressed = pressed.send().await.expect("an answer");
    assert_eq!(pressed.status(), 303);
    let to = pressed.headers()[LOCATION]
        .to_str()
        .expect("text")
        .to_owned();
    assert!(to.starts_with(&shop.pg.url()), "{to}");
    // Whoever has only the order's id sees nothing.
    let stranger = Order {
        cookie: String::new(),
        ..shopper.clone()
    };
    assert_eq!(page(&shop, &checkout, &stranger).await.0, 404);
    assert_eq!(shop.poll(&stranger).await.status, 404);
    let paid = shop.pay(&shopper).await;
    assert_eq!(paid.status, 200, "{:?}", paid.body);
    let (_, html) = page(&shop, &checkout, &shopper).await;
    let back = format!("{}&amp;order={}", BACK.replace('&', "&amp;"), shopper.id);
    assert!(html.contains(&format!("href=\"{back}\"")), "{html}");
    assert!(html.contains("Back to Vase &amp; Co"), "{html}");
    let read = vases.read(&made).await;
    assert_eq!(read["status"], "paid");
    assert_eq!(read["attempts"][0]["status"], "paid");
    shop.end_balanced().await;
}

#[tokio::test]
async fn two_tabs_with_two_shops_orders_and_one_of_this_shop_pay_side_by_side() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let own = shop.order("mug", 1).await;
    let (one, two) = (vases.order("A-1").await, vases.order("A-2").await);
    let first = arrive_with(&shop, &one, &own.cookie).await;
    let second = arrive_with(&shop, &two, &first.cookie).await;
    // What a browser has kept by now.
    let cookie = format!("{}; {}", own.cookie, second.cookie);
    let with = |order: &Order| Order {
        cookie: cookie.clone(),
        ..order.clone()
    };
    for order in [&first, &own, &second] {
        let order = with(order);
        assert_eq!(shop.poll(&order).await.status, 200);
        assert_eq!(shop.pay(&order).await.status, 200);
    }
    for order in [one, two] {
        assert_eq!(vases.read(&order).await["status"], "paid");
    }
    shop.end_balanced().await;
}

#[tokio::test]
async fn a_link_with_a_wrong_secret_opens_nothing_and_an_order_of_this_shop_has_none() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let made = vases.order("A-1").await;
    let own = shop.order("mug", 1).await;
    for path in [
        format!("/pay/{}/{}", id(&made), "0".repeat(64)),
        format!("/pay/{}/{}", own.id, "0".repeat(64)),
        "/pay/ord_x/y".to_owned(),
    ] {
        let answer = shop.get(&path).send().await.expect("an answer");
        assert!(!answer.headers().contains_key(SET_COOKIE), "{path}");
        assert_eq!(answer.status(), 303);
    }
    shop.end().await;
}

#[tokio::test]
async fn money_goes_back_in_parts_once_for_each_key_and_never_more_than_there_is() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let made = vases.order("A-1").await;
    let refunds = format!("/v1/orders/{}/refunds", id(&made));
    let part = json!({"amount": 3_000, "reason": "포장 없음"});
    let early = vases.post(&refunds, "r1", &part).await;
    assert_eq!(early.status, 409, "{:?}", early.body);
    let shopper = arrive(&shop, &made).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    // What another shop gives back it decides itself.
    let cancel = shop.post(&format!("/api/orders/{}/cancel", shopper.id));
    let cancel = cancel
        .header(COOKIE, &shopper.cookie)
        .header("Idempotency-Key", "c");
    let cancel = cancel
        .json(&json!({"reason": "x"}))
        .send()
        .await
        .expect("an answer");
    assert_eq!(cancel.status(), 404);
    let first = vases.post(&refunds, "r1", &part).await;
    assert_eq!((first.status, &first.body["amount"]), (200, &json!(3_000)));
    let again = vases.post(&refunds, "r1", &part).await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    let other = json!({"amount": 4_000, "reason": "포장 없음"});
    let reused = vases.post(&refunds, "r1", &other).await;
    reused.refused(422, "idempotency_key_reused");
    let much = json!({"amount": 30_001, "reason": "x"});
    let much = vases.post(&refunds, "r2", &much).await;
    much.refused(409, "refund_exceeds_balance");
    for bad in [
        json!({"amount": 0, "reason": "x"}),
        json!({"amount": -5, "reason": "x"}),
        json!({"reason": ""}),
    ] {
        let bad = vases.post(&refunds, "r3", &bad).await;
        bad.refused(400, "invalid_request");
    }
    let read = vases.read(&made).await;
    assert_eq!(read["status"], "partially_canceled");
    assert_eq!(read["refunded"], 3_000);
    assert_eq!(read["refunds"][0], first.body);
    let rest = vases.post(&refunds, "r4", &json!({"reason": "rest"})).await;
    assert_eq!((rest.status, &rest.body["amount"]), (200, &json!(30_000)));
    let read = vases.read(&made).await;
    assert_eq!(
        (&read["status"], &read["refunded"]),
        (&json!("canceled"), &json!(33_000))
    );
    shop.end_balanced().await;
}

#[tokio::test]
async fn while_a_payment_is_in_doubt_its_shop_is_told_so_and_never_that_it_failed() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let made = vases.order("A-1").await;
    let shopper = arrive(&shop, &made).await;
    shop.set(json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
        .await;
    let key = shop.key(&shopper.id, shopper.amount);
    let request = shop.confirm_request(&shopper, &shopper.id, &key);
    let request = request.header("X-Request-Timeout-Ms", "9000");
    let sent = tokio::spawn(request.send());
    shop.until_ledger(|ledger| ledger.calls.confirm.received > 0)
        .await;
    shop.set(json!({"operations": ["get"], "error": {"status": 503}, "webhooks": {"drop": 1.0}}))
        .await;
    assert_eq!(
        sent.await.expect("a task").expect("an answer").status(),
        202
    );
    shop.until_attempt(&shopper, "unknown").await;
    let read = vases.read(&made).await;
    assert_eq!(
        (&read["status"], &read["unknown"]),
        (&json!("pending"), &json!(true))
    );
    assert_eq!(read["attempts"][0]["status"], "unknown");
    shop.set(json!({})).await;
    shop.until_status(&shopper, "paid").await;
    let read = vases.read(&made).await;
    assert_eq!(
        (&read["status"], &read["unknown"]),
        (&json!("paid"), &json!(false))
    );
    shop.end_balanced().await;
}
