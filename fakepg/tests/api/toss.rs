//! Toss Payments' wire on a healthy gateway.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Shop, read};

#[tokio::test]
async fn a_confirm_charges_and_answers_the_whole_payment() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 33_000);
    let reply = shop.confirm(&payment_key, "order_1", 33_000).await;
    assert_eq!(reply.status, 200);
    let payment = reply.json();
    for (field, value) in [
        ("paymentKey", json!(payment_key)),
        ("orderId", json!("order_1")),
        ("status", json!("DONE")),
        ("currency", json!("KRW")),
        ("method", json!("카드")),
        ("totalAmount", json!(33_000)),
        ("balanceAmount", json!(33_000)),
        ("suppliedAmount", json!(30_000)),
        ("vat", json!(3_000)),
        ("cancels", Value::Null),
        ("failure", Value::Null),
    ] {
        assert_eq!(payment[field], value, "{field}");
    }
    assert!(
        payment["approvedAt"]
            .as_str()
            .expect("a time")
            .ends_with("+09:00")
    );
    assert_eq!(payment["card"]["amount"], 33_000);
    assert!(!reply.header("x-tosspayments-trace-id").is_empty());

    let order = shop.ledger().orders["order_1"];
    assert_eq!(
        (order.confirms, order.charges, order.charged_won),
        (1, 1, 33_000)
    );
}

#[tokio::test]
async fn an_inquiry_finds_a_payment_by_key_and_by_order() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    let waiting = shop.inquire(&payment_key).await.json();
    assert_eq!(waiting["status"], "IN_PROGRESS");
    assert_eq!(waiting["approvedAt"], Value::Null);

    let answer = shop.confirm(&payment_key, "order_1", 1_000).await;
    assert_eq!(shop.inquire(&payment_key).await.body, answer.body);
    let by_order = shop.request(Method::GET, "/v1/payments/orders/order_1");
    assert_eq!(read(by_order).await.expect("an answer").body, answer.body);

    assert_eq!(
        shop.inquire("nobody").await.refusal(),
        (404, "NOT_FOUND_PAYMENT".into())
    );
    let unknown = read(shop.request(Method::GET, "/v1/payments/orders/order_9")).await;
    assert_eq!(unknown.expect("an answer").code(), "NOT_FOUND_PAYMENT");
}

#[tokio::test]
async fn an_inquiry_by_order_prefers_the_charged_payment() {
    let shop = Shop::open().await;
    let charged = shop.paid("order_1").await;
    shop.pg.authenticate("order_1", 1_000);
    let reply = read(shop.request(Method::GET, "/v1/payments/orders/order_1")).await;
    assert_eq!(reply.expect("an answer").json()["paymentKey"], charged);
}

#[tokio::test]
async fn credentials_are_checked_as_documented() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    let url = format!("{}/v1/payments/{payment_key}", shop.pg.url());
    for (header, status, code) in [
        // test_sk_fake without its colon
        (
            Some("Basic dGVzdF9za19mYWtl"),
            403,
            "INCORRECT_BASIC_AUTH_FORMAT",
        ),
        // test_sk_other:
        (Some("Basic dGVzdF9za19vdGhlcjo="), 401, "UNAUTHORIZED_KEY"),
        (Some("Bearer test_sk_fake"), 401, "UNAUTHORIZED_KEY"),
        (None, 401, "UNAUTHORIZED_KEY"),
    ] {
        let mut request = shop.http.get(&url);
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let reply = read(request).await.expect("an answer");
        assert_eq!(reply.refusal(), (status, code.into()), "{header:?}");
    }
}

#[tokio::test]
async fn malformed_confirms_are_refused_before_anything_is_booked() {
    let shop = Shop::open().await;
    let key = shop.pg.authenticate("order_1", 1_000);
    for (body, status, code) in [
        (
            json!({"paymentKey": key, "orderId": "order_1", "amount": "1000"}),
            400,
            "INVALID_REQUEST",
        ),
        (
            json!({"paymentKey": key, "orderId": "order_1", "amount": 999.5}),
            400,
            "INVALID_REQUEST",
        ),
        (
            json!({"paymentKey": key, "orderId": "order_1"}),
            400,
            "INVALID_REQUEST",
        ),
        (
            json!({"paymentKey": key, "orderId": "ord 1!", "amount": 1000}),
            400,
            "INVALID_ORDER_ID",
        ),
        (
            json!({"paymentKey": key, "orderId": "ord", "amount": 1000}),
            400,
            "INVALID_ORDER_ID",
        ),
        (
            json!({"paymentKey": "no", "orderId": "order_1", "amount": 1000}),
            404,
            "NOT_FOUND_PAYMENT",
        ),
        (
            json!({"paymentKey": key, "orderId": "order_1", "amount": 999}),
            400,
            "INVALID_REQUEST",
        ),
        (
            json!({"paymentKey": key, "orderId": "order_2", "amount": 1000}),
            400,
            "INVALID_REQUEST",
        ),
    ] {
        let request = shop
            .request(Method::POST, "/v1/payments/confirm")
            .json(&body);
        let reply = read(request).await.expect("an answer");
        assert_eq!(reply.refusal(), (status, code.into()), "{body}");
    }
    assert_eq!(shop.charges("order_1"), 0);
    assert_eq!(
        shop.confirm(&key, "order_1", 1_000).await.status,
        200,
        "none of them used it up"
    );
}

#[tokio::test]
async fn the_code_for_a_mismatch_and_the_answer_for_unconfirmed_payments_are_settings() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.scenario(json!({"mismatchCode": "FORBIDDEN_REQUEST", "unconfirmed": "notFound"}))
        .await;
    let reply = shop.confirm(&payment_key, "order_1", 5_000).await;
    assert_eq!(reply.refusal(), (403, "FORBIDDEN_REQUEST".into()));
    assert_eq!(shop.inquire(&payment_key).await.status, 404);
    assert_eq!(
        shop.confirm(&payment_key, "order_1", 1_000).await.status,
        200
    );
    assert_eq!(shop.inquire(&payment_key).await.status, 200);
}

#[tokio::test]
async fn a_payment_is_confirmed_once() {
    let shop = Shop::open().await;
    let payment_key = shop.paid("order_1").await;
    let again = shop.confirm(&payment_key, "order_1", 1_000).await;
    assert_eq!(again.refusal(), (400, "ALREADY_PROCESSED_PAYMENT".into()));
    assert_eq!(shop.charges("order_1"), 1);
}

#[tokio::test]
async fn a_second_payment_of_a_charged_order_is_refused_unless_allowed() {
    let shop = Shop::open().await;
    shop.paid("order_1").await;
    let other = shop.pg.authenticate("order_1", 1_000);
    let refused = shop.confirm(&other, "order_1", 1_000).await;
    assert_eq!(refused.refusal(), (400, "DUPLICATED_ORDER_ID".into()));

    shop.scenario(json!({"allowDuplicateOrder": true})).await;
    assert_eq!(shop.confirm(&other, "order_1", 1_000).await.status, 200);
    let order = shop.ledger().orders["order_1"];
    assert_eq!((order.charges, order.charged_won), (2, 2_000));
}

#[tokio::test]
async fn a_test_code_header_is_answered_with_that_error() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    for (code, status, answered) in [
        ("REJECT_CARD_COMPANY", 403, "REJECT_CARD_COMPANY"),
        ("PROVIDER_ERROR", 400, "PROVIDER_ERROR"),
        (
            "FAILED_INTERNAL_SYSTEM_PROCESSING",
            500,
            "FAILED_INTERNAL_SYSTEM_PROCESSING",
        ),
        (
            "IDEMPOTENT_REQUEST_PROCESSING",
            409,
            "IDEMPOTENT_REQUEST_PROCESSING",
        ),
        ("NOT_A_CODE", 400, "INVALID_TEST_CODE"),
    ] {
        let request = shop.confirm_request(&payment_key, "order_1", 1_000);
        let reply = read(request.header("tosspayments-test-code", code))
            .await
            .expect("an answer");
        assert_eq!(reply.refusal(), (status, answered.into()), "{code}");
    }
    assert_eq!(shop.charges("order_1"), 0);
}
