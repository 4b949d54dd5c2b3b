//! Each switch that breaks an answer.

use reqwest::header::LOCATION;
use serde_json::json;

use crate::support::{Shop, read};

#[tokio::test]
async fn a_loss_before_the_booking_charges_nothing_and_frees_the_key() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.scenario(json!({"loss": {}})).await;
    let lost = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect_err("a reset");
    assert!(is_reset(&lost), "{lost:?}");
    assert_eq!(shop.charges("order_1"), 0);
    assert_eq!(shop.ledger().calls.confirm.lost, 1);

    shop.scenario(json!({})).await;
    assert_eq!(
        shop.keyed(&payment_key, "order_1", "k")
            .await
            .expect("an answer")
            .status,
        200
    );
    assert_eq!(
        shop.ledger().calls.confirm.replayed,
        0,
        "the first never took the key"
    );
}

#[tokio::test]
async fn a_loss_after_the_booking_charges_and_the_resend_hears_of_it() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.scenario(json!({"loss": {"when": "after"}})).await;
    let lost = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect_err("a reset");
    assert!(is_reset(&lost), "{lost:?}");
    assert_eq!(shop.charges("order_1"), 1);

    shop.scenario(json!({})).await;
    let resent = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect("an answer");
    assert_eq!(
        (resent.status, resent.json()["status"].clone()),
        (200, json!("DONE"))
    );
    let calls = shop.ledger().calls.confirm;
    assert_eq!((calls.approved, calls.lost, calls.replayed), (1, 1, 1));
    assert_eq!(shop.charges("order_1"), 1);
}

#[tokio::test]
async fn faults_strike_only_the_operations_they_are_aimed_at() {
    let shop = Shop::open().await;
    let payment_key = shop.paid("order_1").await;
    shop.scenario(json!({"loss": {}, "operations": ["get", "cancel"]}))
        .await;
    let path = format!("/v1/payments/{payment_key}");
    assert!(
        read(shop.request(reqwest::Method::GET, &path))
            .await
            .is_err()
    );
    let reason = json!({"cancelReason": "변심"});
    let cancel = shop
        .request(reqwest::Method::POST, &format!("{path}/cancel"))
        .json(&reason);
    assert!(read(cancel).await.is_err());
    assert_eq!(shop.ledger().orders["order_1"].canceled_won, 0);
    assert_eq!(shop.buy("order_2").await.expect("an answer").status, 200);
}

#[tokio::test]
async fn a_gateway_that_is_down_resets_every_wire_call_and_books_none() {
    let shop = Shop::open().await;
    shop.scenario(json!({"up": false})).await;
    let lost = shop.buy("order_1").await.expect_err("a reset");
    assert!(is_reset(&lost), "{lost:?}");
    let window = shop
        .http
        .get(format!("{}/window", shop.pg.url()))
        .send()
        .await;
    assert!(is_reset(&window.expect_err("a reset")));
    assert_eq!(shop.ledger().calls.confirm.received, 0);

    shop.scenario(json!({})).await;
    assert_eq!(shop.buy("order_1").await.expect("an answer").status, 200);
}

#[tokio::test]
async fn a_decline_uses_its_codes_status_and_ends_the_payment() {
    let shop = Shop::open().await;
    for (order, code, status) in [
        ("order_1", "REJECT_CARD_COMPANY", 403),
        ("order_2", "INVALID_STOPPED_CARD", 400),
        ("order_3", "FAILED_INTERNAL_SYSTEM_PROCESSING", 500),
    ] {
        shop.scenario(json!({"decline": {"code": code}})).await;
        let reply = shop.buy(order).await.expect("an answer");
        assert_eq!(reply.refusal(), (status, code.into()));
        assert_eq!(shop.charges(order), 0);
    }
    shop.scenario(json!({"decline": {}})).await;
    let payment_key = shop.pg.authenticate("order_4", 1_000);
    let refused = shop.confirm(&payment_key, "order_4", 1_000).await;
    assert_eq!(refused.refusal(), (403, "REJECT_CARD_PAYMENT".into()));
    let payment = shop.inquire(&payment_key).await.json();
    assert_eq!(payment["status"], "ABORTED");
    assert_eq!(payment["failure"]["code"], "REJECT_CARD_PAYMENT");
    assert_eq!(shop.ledger().calls.confirm.declined, 4);
}

#[tokio::test]
async fn an_error_strikes_before_or_after_the_booking_with_json_or_html() {
    let shop = Shop::open().await;
    let coded = json!({"status": 500, "code": "FAILED_INTERNAL_SYSTEM_PROCESSING"});
    shop.scenario(json!({"error": coded})).await;
    let before = shop.buy("order_1").await.expect("an answer");
    assert_eq!(
        before.refusal(),
        (500, "FAILED_INTERNAL_SYSTEM_PROCESSING".into())
    );
    assert_eq!(shop.charges("order_1"), 0);

    shop.scenario(json!({"error": {"status": 502, "when": "after"}}))
        .await;
    let after = shop.buy("order_2").await.expect("an answer");
    assert_eq!(after.status, 502);
    assert!(after.header("content-type").starts_with("text/html"));
    assert_eq!(shop.charges("order_2"), 1);
    assert_eq!(shop.ledger().calls.confirm.failed, 2);
}

#[tokio::test]
async fn bodies_are_cut_replaced_or_wrong_after_the_booking() {
    let shop = Shop::open().await;
    shop.scenario(json!({"body": "broken"})).await;
    let broken = shop.buy("order_1").await.expect("an answer");
    assert_eq!(broken.status, 200);
    assert!(serde_json::from_slice::<serde_json::Value>(&broken.body).is_err());

    shop.scenario(json!({"body": "html"})).await;
    let html = shop.buy("order_2").await.expect("an answer");
    assert_eq!(html.status, 200);
    assert!(html.body.starts_with(b"<!doctype html>"));

    shop.scenario(json!({"body": "wrongAmount"})).await;
    let wrong = shop.buy("order_3").await.expect("an answer").json();
    assert_eq!(wrong["totalAmount"], 2_000);
    let truth = shop
        .inquire(wrong["paymentKey"].as_str().expect("a key"))
        .await
        .json();
    assert_eq!(truth["totalAmount"], 2_000);
    assert_eq!(shop.ledger().orders["order_3"].charged_won, 2_000);
    for order in ["order_1", "order_2", "order_3"] {
        assert_eq!(shop.charges(order), 1, "{order}");
    }
}

#[tokio::test]
async fn a_mangled_answer_is_whole_again_when_it_is_replayed_later() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.scenario(json!({"body": "broken"})).await;
    let broken = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect("an answer");
    shop.scenario(json!({})).await;
    let whole = shop
        .keyed(&payment_key, "order_1", "k")
        .await
        .expect("an answer");
    assert_eq!(whole.json()["status"], "DONE");
    assert!(whole.body.starts_with(&broken.body));
}

#[tokio::test]
async fn a_dripping_body_comes_byte_by_byte_and_whole() {
    let shop = Shop::open().await;
    shop.scenario(json!({"body": "drip", "dripMs": 1})).await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    let request = shop.confirm_request(&payment_key, "order_1", 1_000);
    let mut response = request.send().await.expect("an answer");
    let (mut pieces, mut body) = (0, Vec::new());
    while let Some(piece) = response.chunk().await.expect("a piece") {
        pieces += 1;
        body.extend_from_slice(&piece);
    }
    assert!(pieces > 100, "{pieces} pieces");
    let payment: serde_json::Value = serde_json::from_slice(&body).expect("whole");
    assert_eq!(payment["status"], "DONE");
}

#[tokio::test]
async fn a_redirect_books_nothing() {
    let shop = Shop::open().await;
    for status in [302, 307] {
        let to = "http://127.0.0.1:9/elsewhere";
        shop.scenario(json!({"redirect": {"status": status, "location": to}}))
            .await;
        let reply = shop.buy("order_1").await.expect("an answer");
        assert_eq!(
            (reply.status, reply.header(LOCATION.as_str())),
            (status, to)
        );
    }
    assert_eq!(shop.charges("order_1"), 0);
}

#[tokio::test]
async fn a_rate_limit_answers_429_above_it() {
    let shop = Shop::open().await;
    shop.scenario(json!({"rateLimit": 0})).await;
    assert_eq!(shop.buy("order_1").await.expect("an answer").status, 429);
    shop.scenario(json!({"rateLimit": 1_000})).await;
    assert_eq!(shop.buy("order_1").await.expect("an answer").status, 200);
    assert_eq!(shop.ledger().calls.confirm.limited, 1);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_losses() {
    let shop = Shop::open().await;
    let mut runs = Vec::new();
    for run in 0..2 {
        shop.scenario(json!({"seed": 7, "loss": {"ratio": 0.5, "when": "after"}}))
            .await;
        let mut lost = Vec::new();
        for call in 0..20 {
            lost.push(shop.buy(&format!("order_{run}_{call}")).await.is_err());
        }
        runs.push(lost);
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].contains(&true) && runs[0].contains(&false));
}

/// Whether the connection was reset, which is neither a refusal to connect nor an orderly end.
fn is_reset(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset) {
            return true;
        }
        cause = error.source();
    }
    false
}
