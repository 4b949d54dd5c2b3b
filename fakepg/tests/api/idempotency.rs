//! Idempotency keys: one execution, one answer.

use reqwest::Method;
use serde_json::json;

use crate::support::{Shop, read};

#[tokio::test]
async fn a_resend_gets_the_first_answer_byte_for_byte_and_charges_nothing() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    let first = shop
        .keyed(&payment_key, "order_1", "k1")
        .await
        .expect("an answer");
    let again = shop
        .keyed(&payment_key, "order_1", "k1")
        .await
        .expect("an answer");
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.header("idempotency-key"), "k1");
    let (new, original) = again
        .header("x-tosspayments-trace-id")
        .split_once(", ")
        .expect("two");
    assert_eq!(original, first.header("x-tosspayments-trace-id"));
    assert_ne!(new, original);

    let ledger = shop.ledger();
    assert_eq!(
        (ledger.keys["k1"].confirms, ledger.keys["k1"].charges),
        (2, 1)
    );
    assert_eq!(
        (ledger.calls.confirm.approved, ledger.calls.confirm.replayed),
        (1, 1)
    );
}

#[tokio::test]
async fn the_body_is_no_part_of_the_key_but_the_url_is() {
    let shop = Shop::open().await;
    let (one, two) = (
        shop.pg.authenticate("order_1", 1_000),
        shop.pg.authenticate("order_2", 1_000),
    );
    let first = shop.keyed(&one, "order_1", "k").await.expect("an answer");
    let other = shop.keyed(&two, "order_2", "k").await.expect("an answer");
    assert_eq!(other.body, first.body, "the first payment's answer");
    assert_eq!(shop.charges("order_2"), 0);

    let path = format!("/v1/payments/{one}/cancel");
    let cancel = shop
        .request(Method::POST, &path)
        .header("idempotency-key", "k");
    let canceled = read(cancel.json(&json!({"cancelReason": "변심"})))
        .await
        .expect("an answer");
    assert_eq!(canceled.json()["status"], "CANCELED");
}

#[tokio::test]
async fn a_refusal_stays_bound_to_its_key() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.scenario(json!({"decline": {"code": "PROVIDER_ERROR"}}))
        .await;
    let refused = shop
        .keyed(&payment_key, "order_1", "k1")
        .await
        .expect("an answer");
    shop.scenario(json!({})).await;
    let again = shop
        .keyed(&payment_key, "order_1", "k1")
        .await
        .expect("an answer");
    assert_eq!((again.status, &again.body), (400, &refused.body));
    let fresh = shop
        .keyed(&payment_key, "order_1", "k2")
        .await
        .expect("an answer");
    assert_eq!(fresh.status, 200);
}

#[tokio::test]
async fn server_errors_are_bound_to_their_key_only_where_the_scenario_says_so() {
    for (bound, expected) in [(false, 200), (true, 500)] {
        let shop = Shop::open().await;
        let payment_key = shop.pg.authenticate("order_1", 1_000);
        let error = json!({"status": 500, "code": "UNKNOWN_PAYMENT_ERROR"});
        shop.scenario(json!({"error": error, "bindServerErrors": bound}))
            .await;
        let first = shop
            .keyed(&payment_key, "order_1", "k")
            .await
            .expect("an answer");
        assert_eq!(first.refusal(), (500, "UNKNOWN_PAYMENT_ERROR".into()));
        shop.scenario(json!({"bindServerErrors": bound})).await;
        let again = shop
            .keyed(&payment_key, "order_1", "k")
            .await
            .expect("an answer");
        assert_eq!(again.status, expected, "bound: {bound}");
    }
}

#[tokio::test]
async fn a_resend_while_the_first_is_running_gets_409_and_the_answer_later() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.scenario(json!({"stop": true})).await;
    let first = tokio::spawn(
        shop.confirm_request(&payment_key, "order_1", 1_000)
            .header("idempotency-key", "k")
            .send(),
    );
    shop.until("the first arrives", |ledger| {
        ledger.calls.confirm.received == 1
    })
    .await;
    // Lifted into a long delay: the first call's work begins and holds the key.
    shop.scenario(json!({"delayMs": 1_500})).await;
    let busy = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect("an answer");
    assert_eq!(
        busy.refusal(),
        (409, "IDEMPOTENT_REQUEST_PROCESSING".into())
    );

    assert_eq!(
        first.await.expect("no panic").expect("an answer").status(),
        200
    );
    let later = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect("an answer");
    assert_eq!(later.status, 200);
    let calls = shop.ledger().calls.confirm;
    assert_eq!(
        (calls.received, calls.in_progress, calls.replayed),
        (3, 1, 1)
    );
    assert_eq!(shop.charges("order_1"), 1);
}

#[tokio::test]
async fn keys_can_be_switched_off() {
    let shop = Shop::open().await;
    shop.scenario(json!({"idempotency": "off"})).await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    assert_eq!(
        shop.keyed(&payment_key, "order_1", "k")
            .await
            .expect("an answer")
            .status,
        200
    );
    let again = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect("an answer");
    assert_eq!(again.code(), "ALREADY_PROCESSED_PAYMENT");
}

#[tokio::test]
async fn a_key_of_more_than_300_characters_is_refused() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    let long = shop
        .keyed(&payment_key, "order_1", &"k".repeat(301))
        .await
        .expect("an answer");
    assert_eq!(long.refusal(), (400, "INVALID_IDEMPOTENCY_KEY".into()));
    let fits = shop
        .keyed(&payment_key, "order_1", &"k".repeat(300))
        .await
        .expect("an answer");
    assert_eq!(fits.status, 200);
}
