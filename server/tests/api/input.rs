//! What is refused before anything is claimed: the order can be paid as if it had never been asked.

use reqwest::header::{CONTENT_TYPE, COOKIE};
use serde_json::json;

use crate::shop::{Order, Reply, Shop};

async fn untouched(shop: &Shop, order: &Order) {
    let state = shop.poll(order).await;
    assert_eq!(
        (&state.body["payable"], &state.body["attempt"]),
        (&json!(true), &json!(null))
    );
    assert_eq!(shop.confirms(), 0);
}

#[tokio::test]
async fn a_timeout_header_that_is_no_number_is_refused_before_the_claim() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    for value in [
        "abc",
        "1.5",
        "99999999999",
        "600001",
        "+5",
        "1e4",
        "0x10",
        "",
        "NaN",
        "18446744073709551616",
        "5,5",
    ] {
        let request = shop
            .confirm_request(&order, &order.id, &key)
            .header("X-Request-Timeout-Ms", value);
        Reply::of(request.send().await.unwrap())
            .await
            .refused(400, "invalid_timeout_header");
    }
    let twice = shop
        .confirm_request(&order, &order.id, &key)
        .header("X-Request-Timeout-Ms", "65000")
        .header("X-Request-Timeout-Ms", "65000");
    Reply::of(twice.send().await.unwrap())
        .await
        .refused(400, "invalid_timeout_header");
    untouched(&shop, &order).await;
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn the_browsers_word_on_amount_owner_and_order_is_never_believed() {
    let shop = Shop::open().await;
    let (order, other) = (shop.order("mug", 1).await, shop.order("mug", 1).await);
    let cheap = shop.key(&order.id, 100);
    let forged = Order {
        amount: 100,
        ..order.clone()
    };
    shop.confirm(&forged, &cheap)
        .await
        .refused(400, "amount_mismatch");
    let stranger = Order {
        cookie: other.cookie.clone(),
        ..order.clone()
    };
    let key = shop.key(&order.id, order.amount);
    shop.confirm(&stranger, &key)
        .await
        .refused(404, "order_not_found");
    let nobody = Order {
        cookie: String::new(),
        ..order.clone()
    };
    shop.confirm(&nobody, &key)
        .await
        .refused(404, "order_not_found");
    let tampered = Order {
        cookie: order.cookie.replace("jari_shopper=", "jari_shopper=x"),
        ..order.clone()
    };
    shop.confirm(&tampered, &key)
        .await
        .refused(404, "order_not_found");
    let unknown = Order {
        id: "ord_0".to_owned(),
        ..order.clone()
    };
    shop.confirm(&unknown, &key)
        .await
        .refused(404, "order_not_found");
    untouched(&shop, &order).await;
    shop.poll(&stranger).await.refused(404, "order_not_found");
    shop.poll(&unknown).await.refused(404, "order_not_found");
    shop.attempt(&stranger)
        .await
        .refused(404, "order_not_found");
    shop.end().await;
}

#[tokio::test]
async fn a_payment_key_belongs_to_one_order_for_ever() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    // The same shopper, the same sum, another order.
    let body = json!({"items": [{"sku": "mug", "quantity": 1}]});
    let response = shop
        .post("/api/orders")
        .header(COOKIE, &order.cookie)
        .json(&body)
        .send()
        .await
        .unwrap();
    let id = Reply::of(response).await.body["orderId"]
        .as_str()
        .unwrap()
        .to_owned();
    let second = Order { id, ..order };
    shop.confirm(&second, &key)
        .await
        .refused(409, "payment_key_used");
    assert_eq!(shop.confirms(), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_body_that_is_none_is_refused_with_a_clear_word() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let raw = |kind: &'static str, body: Vec<u8>| {
        let request = shop
            .post("/api/payments/confirm")
            .header(COOKIE, &order.cookie);
        let request = if kind.is_empty() {
            request
        } else {
            request.header(CONTENT_TYPE, kind)
        };
        async move { Reply::of(request.body(body).send().await.unwrap()).await }
    };
    let good = json!({"paymentKey": "pk", "orderId": order.id, "amount": order.amount}).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        raw(kind, good.clone().into_bytes())
            .await
            .refused(415, "unsupported_media_type");
    }
    let huge = format!("{{\"paymentKey\":\"{}\"}}", "x".repeat(70_000));
    raw("application/json", huge.into_bytes())
        .await
        .refused(413, "body_too_large");
    let wrong = [
        "",
        "{",
        "[]",
        "null",
        "{\"paymentKey\":1}",
        "{\"paymentKey\":\"pk\",\"orderId\":\"a b\",\"amount\":1}",
        "{\"paymentKey\":\"pk\",\"orderId\":\"ord_1\",\"amount\":\"18000\"}",
        "{\"paymentKey\":\"pk\",\"orderId\":\"ord_1\",\"amount\":1e400}",
    ];
    for body in wrong {
        raw("application/json; charset=utf-8", body.as_bytes().to_vec())
            .await
            .refused(400, "invalid_request");
    }
    raw("application/json", vec![0xff, 0xfe])
        .await
        .refused(400, "invalid_request");
    untouched(&shop, &order).await;
    shop.end().await;
}

#[tokio::test]
async fn another_site_cannot_press_the_button() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let foreign = [
        ("Origin", "https://evil.example"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Origin", "null"),
    ];
    for (name, value) in foreign {
        let request = shop
            .confirm_request(&order, &order.id, &key)
            .header(name, value);
        Reply::of(request.send().await.unwrap())
            .await
            .refused(403, "forbidden_origin");
        let form = shop
            .post(&format!("/checkout/{}", order.id))
            .header(COOKIE, &order.cookie)
            .header(name, value);
        Reply::of(form.send().await.unwrap())
            .await
            .refused(403, "forbidden_origin");
    }
    untouched(&shop, &order).await;
    let own = shop
        .confirm_request(&order, &order.id, &key)
        .header("Origin", &shop.url)
        .header("Sec-Fetch-Site", "same-origin");
    assert_eq!(own.send().await.unwrap().status(), 200);
    shop.end().await;
}

#[tokio::test]
async fn orders_are_made_of_what_is_sold_at_the_shelfs_price() {
    let shop = Shop::open().await;
    let make = |body: serde_json::Value| {
        let request = shop.post("/api/orders").json(&body);
        async move { Reply::of(request.send().await.unwrap()).await }
    };
    let merged = make(json!({"items": [{"sku": "mug", "quantity": 1}, {"sku": "mug", "quantity": 2}, {"sku": "tote", "quantity": 1}]})).await;
    assert_eq!(
        (merged.status, &merged.body["amount"]),
        (201, &json!(3 * 18_000 + 33_000))
    );
    make(json!({"items": [{"sku": "poster", "quantity": 1}, {"sku": "poster", "quantity": 1}]}))
        .await
        .refused(409, "out_of_stock");
    for bad in [
        json!({"items": []}),
        json!({"items": [{"sku": "mug", "quantity": 0}]}),
        json!({"items": [{"sku": "mug", "quantity": 100}]}),
        json!({"items": [{"sku": "mug", "quantity": -1}]}),
        json!({"items": [{"sku": "nothing", "quantity": 1}]}),
        json!({"items": [{"sku": "mug", "quantity": 1, "price": 1}]}),
        json!({}),
    ] {
        make(bad).await.refused(400, "invalid_request");
    }
    shop.end().await;
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_same_form() {
    let shop = Shop::open().await;
    Reply::of(shop.get("/api/nothing").send().await.unwrap())
        .await
        .refused(404, "not_found");
    Reply::of(shop.get("/api/payments/confirm").send().await.unwrap())
        .await
        .refused(405, "method_not_allowed");
    Reply::of(shop.post("/webhooks/nobody").send().await.unwrap())
        .await
        .refused(404, "not_found");
    shop.end().await;
}

#[tokio::test]
async fn a_client_that_says_nothing_is_not_held() {
    use tokio::io::AsyncReadExt as _;
    let shop = Shop::open().await;
    let addr = shop.url.trim_start_matches("http://").to_owned();
    let mut silent = tokio::net::TcpStream::connect(&addr).await.unwrap();
    let mut byte = [0_u8; 1];
    let closed =
        tokio::time::timeout(std::time::Duration::from_secs(15), silent.read(&mut byte)).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
    shop.end().await;
}

#[tokio::test]
async fn a_form_that_is_none_is_refused_in_the_same_form() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let path = format!(
        "/checkout/{}/return/00000000000000000000000000000000",
        order.id
    );
    let bad = shop
        .post(&path)
        .header(COOKIE, &order.cookie)
        .form(&[("paymentKey", "pk")]);
    Reply::of(bad.send().await.unwrap())
        .await
        .refused(400, "invalid_request");
    let strange = shop
        .post("/checkout/%0A")
        .header(COOKIE, &order.cookie)
        .send()
        .await
        .unwrap();
    Reply::of(strange).await.refused(404, "order_not_found");
    shop.end().await;
}
