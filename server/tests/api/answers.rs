//! What gateways answer, and do not: only a refused connection is "not sent"; all else that is no word is unknown, and
//! becomes known.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::shop::Shop;

/// A confirm window that ends soon, so that "never charged" can be waited for.
const SHORT: [(&str, &str); 3] = [
    ("JARI_PG_CONFIRM_WINDOW_MS", "700"),
    ("JARI_PG_TIMEOUT_MS", "1500"),
    ("JARI_DATABASE_WAIT_MS", "300"),
];

#[tokio::test]
async fn booked_and_lost_answers_are_unknown_and_then_paid() {
    let cases = [
        json!({"body": "broken"}),
        json!({"loss": {"when": "after"}}),
        json!({"error": {"status": 500, "when": "after"}}),
        json!({"error": {"status": 502, "when": "after"}}),
        json!({"error": {"status": 500, "code": "FAILED_INTERNAL_SYSTEM_PROCESSING", "when": "after"}}),
        json!({"body": "html"}),
    ];
    for case in cases {
        // One send, and what becomes of it.
        let shop = Shop::with(&[("JARI_RESEND", "off")]).await;
        let mut silent = case.clone();
        silent["webhooks"] = json!({"drop": 1.0});
        shop.set(silent).await;
        let order = shop.order("mug", 1).await;
        let reply = shop.pay(&order).await;
        assert_eq!(reply.status, 202, "{case}: {:?}", reply.body);
        assert_eq!(
            (&reply.body["payable"], &reply.body["attempt"]["status"]),
            (&json!(false), &json!("unknown")),
            "{case}"
        );
        let started = Instant::now();
        shop.until_status(&order, "paid").await;
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{case}: {:?}",
            started.elapsed()
        );
        assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 1), "{case}");
        shop.end().await;
    }
}

#[tokio::test]
async fn answers_lost_before_booking_are_unknown_until_the_window_is_over() {
    for case in [
        json!({"loss": {"when": "before"}}),
        json!({"error": {"status": 500, "when": "before"}}),
    ] {
        let shop = Shop::with(&SHORT).await;
        let mut short = case.clone();
        short["confirmWindowMs"] = json!(700);
        shop.set(short).await;
        let order = shop.order("poster", 1).await;
        let key = shop.key(&order.id, order.amount);
        let reply = shop.confirm(&order, &key).await;
        assert_eq!(reply.status, 202, "{case}: {:?}", reply.body);
        let other = shop.key(&order.id, order.amount);
        shop.confirm(&order, &other)
            .await
            .refused(409, "attempt_in_progress");
        let state = shop.until_attempt(&order, "failed").await;
        assert_eq!(state.body["payable"], true, "{case}");
        assert_eq!(shop.charges(&order.id), 0);
        shop.end().await;
    }
}

#[tokio::test]
async fn only_a_refused_connection_is_not_sent() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    shop.pg.pause_listening().await;
    let reply = shop.confirm(&order, &key).await;
    reply.refused(503, "pg_unreachable");
    assert_eq!(reply.body["reach"], "not_sent");
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    shop.pg.resume_listening().await.unwrap();
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    assert_eq!(shop.charges(&order.id), 1);
    shop.end().await;
}

#[tokio::test]
async fn a_charge_of_another_amount_is_given_back_and_never_shown_as_paid() {
    let shop = Shop::open().await;
    shop.set(json!({"body": "wrongAmount"})).await;
    let order = shop.order("mug", 1).await;
    let reply = shop.pay(&order).await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    let state = shop.until(&order, |body| {
        assert_ne!(body["status"], "paid");
        body["attempt"]["status"] == "canceled"
    });
    assert_eq!(state.await.body["payable"], true);
    let ledger = shop.pg.ledger();
    let money = &ledger.orders[&order.id];
    assert_eq!(
        (money.charges, money.cancels, money.charged_won),
        (1, 1, money.canceled_won)
    );
    shop.set(json!({})).await;
    // It can be paid after all, under a new id.
    let attempt = shop.attempt(&order).await;
    let id = attempt.body["gatewayOrderId"].as_str().unwrap().to_owned();
    let key = shop.key(&id, order.amount);
    assert_eq!(
        shop.confirm_request(&order, &id, &key)
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    shop.end().await;
}

#[tokio::test]
async fn a_wrong_charge_whose_cancel_is_lost_is_given_back_once() {
    let shop = Shop::open().await;
    shop.set(json!({"body": "wrongAmount"})).await;
    let order = shop.order("mug", 1).await;
    // The first cancel is booked, its answer lost.
    shop.set(json!({"body": "wrongAmount", "delayMs": 200}))
        .await;
    let key = shop.key(&order.id, order.amount);
    let running = shop.start_pay(&order, &key);
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    shop.set(json!({"operations": ["cancel"], "loss": {"when": "after"}}))
        .await;
    running.await.unwrap();
    shop.until_ledger(|ledger| ledger.calls.cancel.received >= 1)
        .await;
    shop.set(json!({})).await;
    shop.until_attempt(&order, "canceled").await;
    let ledger = shop.pg.ledger();
    let money = &ledger.orders[&order.id];
    assert_eq!(money.canceled_won, money.charged_won);
    shop.end().await;
}

#[tokio::test]
async fn a_silent_gateway_frees_its_slot_at_the_timeout_and_the_truth_comes_when_it_speaks() {
    let env = [
        ("JARI_PG_TIMEOUT_MS", "800"),
        ("JARI_PG_CAP", "1"),
        ("JARI_PG_RESERVE", "0"),
        ("JARI_RESEND", "off"),
    ];
    let shop = Shop::with(&env).await;
    shop.set(json!({"hang": {"when": "after", "ms": 60_000}, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let started = Instant::now();
    let reply = shop.pay(&order).await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(reply.body["attempt"]["reason"], "timed_out");
    shop.until_status(&order, "paid").await;
    shop.set(json!({})).await;
    // The slot is free again.
    let next = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&next).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn a_dripping_answer_ends_at_the_total_timeout() {
    let shop = Shop::with(&[("JARI_PG_TIMEOUT_MS", "900")]).await;
    shop.set(json!({"body": "drip", "dripMs": 200, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let started = Instant::now();
    let reply = shop.pay(&order).await;
    assert_eq!(reply.status, 202);
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    shop.until_status(&order, "paid").await;
    shop.end().await;
}

#[tokio::test]
async fn a_redirect_is_never_followed() {
    let shop = Shop::open().await;
    for status in [302, 307] {
        shop.set(json!({"redirect": {"status": status, "location": "http://127.0.0.1:1/stolen"}}))
            .await;
        let order = shop.order("mug", 1).await;
        let reply = shop.pay(&order).await;
        assert_eq!(reply.status, 202, "{:?}", reply.body);
        reply.attempt("unknown");
    }
    shop.end().await;
}

#[tokio::test]
async fn not_found_right_after_a_lost_answer_proves_nothing() {
    let shop = Shop::open().await;
    shop.set(json!({"loss": {"when": "after"}, "notFoundForMs": 2_500, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    shop.pay(&order).await.attempt("unknown");
    shop.until_ledger(|ledger| ledger.calls.get.received >= 2)
        .await;
    shop.poll(&order).await.attempt("unknown");
    shop.until_status(&order, "paid").await;
    shop.end().await;
}

#[tokio::test]
async fn when_a_silent_gateway_answers_again_everything_that_waited_is_asked_about() {
    let env = [("JARI_PG_TIMEOUT_MS", "600"), ("JARI_CIRCUIT", "off")];
    let shop = Shop::with(&env).await;
    let lost = json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}});
    shop.set(lost).await;
    let mut orders = Vec::new();
    for _ in 0..12 {
        let order = shop.order("mug", 1).await;
        shop.pay(&order).await.attempt("unknown");
        orders.push(order);
    }
    shop.pg.pause_listening().await;
    // Long enough for back-off to have grown beyond what this test would wait for.
    tokio::time::sleep(Duration::from_secs(4)).await;
    shop.pg.resume_listening().await.unwrap();
    let started = Instant::now();
    for order in &orders {
        shop.until_status(order, "paid").await;
    }
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
    shop.end().await;
}

#[tokio::test]
async fn every_listed_refusal_ends_as_the_table_says() {
    // Declines that the fake gateway gives with their real status: a definite end, over real TCP.
    let codes = [
        "REJECT_CARD_PAYMENT",
        "REJECT_CARD_COMPANY",
        "REJECT_ACCOUNT_PAYMENT",
        "REJECT_TOSSPAY_INVALID_ACCOUNT",
        "FDS_ERROR",
        "INVALID_REJECT_CARD",
        "INVALID_STOPPED_CARD",
        "INVALID_CARD_LOST_OR_STOLEN",
        "INVALID_CARD_EXPIRATION",
        "INVALID_CARD_NUMBER",
        "INVALID_CARD_INSTALLMENT_PLAN",
        "NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT",
        "NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN",
        "NOT_ALLOWED_POINT_USE",
        "EXCEED_MAX_CARD_INSTALLMENT_PLAN",
        "NOT_AVAILABLE_PAYMENT",
        "NOT_AVAILABLE_BANK",
        "RESTRICTED_TRANSFER_ACCOUNT",
        "INVALID_ACCOUNT_INFO_RE_REGISTER",
        "BELOW_MINIMUM_AMOUNT",
        "EXCEED_MAX_DAILY_PAYMENT_COUNT",
        "EXCEED_MAX_PAYMENT_AMOUNT",
        "EXCEED_MAX_AMOUNT",
        "EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT",
        "EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT",
        "EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT",
        "EXCEED_MAX_ONE_DAY_AMOUNT",
        "EXCEED_MAX_AUTH_COUNT",
        "INVALID_PASSWORD",
        "NOT_FOUND_PAYMENT_SESSION",
        "UNAUTHORIZED_KEY",
        "INVALID_API_KEY",
        "NOT_FOUND_TERMINAL_ID",
        "INVALID_UNREGISTERED_SUBMALL",
        "NOT_REGISTERED_BUSINESS",
        "INVALID_AUTHORIZE_AUTH",
        "UNAPPROVED_ORDER_ID",
        "INVALID_REQUEST",
        "FORBIDDEN_REQUEST",
        "NOT_FOUND_PAYMENT",
    ];
    let shop = Shop::open().await;
    for code in codes {
        shop.set(json!({"decline": {"ratio": 1.0, "code": code}}))
            .await;
        let order = shop.order("mug", 1).await;
        let reply = shop.pay(&order).await;
        reply.refused(402, "declined");
        assert_eq!(shop.poll(&order).await.body["payable"], true, "{code}");
    }
    shop.end().await;
}

#[tokio::test]
async fn every_listed_doubt_is_asked_about() {
    let codes = [
        (400, "ALREADY_PROCESSED_PAYMENT"),
        (400, "ALREADY_COMPLETED_PAYMENT"),
        (400, "DUPLICATED_ORDER_ID"),
        (400, "DUPLICATED_REQUEST"),
        (400, "PROVIDER_ERROR"),
        (400, "CARD_PROCESSING_ERROR"),
        (500, "FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING"),
        (500, "FAILED_INTERNAL_SYSTEM_PROCESSING"),
        (500, "UNKNOWN_PAYMENT_ERROR"),
        (500, "COMMON_ERROR"),
        (500, "UNKNOWN_ERROR"),
        (500, "FAILED_DB_PROCESSING"),
        (500, "FAILED_METHOD_HANDLING"),
        (409, "IDEMPOTENT_REQUEST_PROCESSING"),
        (400, "A_CODE_NOBODY_LISTED"),
        (418, "REJECT_CARD_COMPANY"),
    ];
    // So many doubts in a row are what the circuit is for.
    let shop = Shop::with(&[("JARI_CIRCUIT", "off")]).await;
    for (status, code) in codes {
        shop.set(json!({"error": {"status": status, "code": code, "when": "after"}, "webhooks": {"drop": 1.0}})).await;
        let order = shop.order("mug", 1).await;
        let reply = shop.pay(&order).await;
        assert_eq!(reply.status, 202, "{status} {code}: {:?}", reply.body);
        shop.until_status(&order, "paid").await;
    }
    shop.end().await;
}
