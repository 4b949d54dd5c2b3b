//! What comes instead of an answer, whole or in drips: never taken for a result, and never in the way of the truth.

use serde_json::json;

use crate::shop::Shop;

/// Times after which "never charged" is certain, short enough to be waited for.
const SHORT: [(&str, &str); 4] = [
    ("JARI_PG_CONFIRM_WINDOW_MS", "700"),
    ("JARI_PG_TIMEOUT_MS", "1500"),
    ("JARI_DATABASE_WAIT_MS", "300"),
    ("JARI_RESEND", "off"),
];

#[tokio::test]
async fn an_error_page_of_any_status_is_unknown_until_asked_before_and_after_the_booking() {
    for status in [500, 502, 503, 504, 520] {
        for (when, end) in [("after", "approved"), ("before", "failed")] {
            let shop = Shop::with(&SHORT).await;
            shop.set(json!({"confirmWindowMs": 700, "webhooks": {"drop": 1.0},
                "error": {"status": status, "when": when}}))
                .await;
            let order = shop.order("mug", 1).await;
            let reply = shop.pay(&order).await;
            assert_eq!(reply.status, 202, "{status} {when}: {:?}", reply.body);
            reply.attempt("unknown");
            assert_eq!(reply.body["payable"], false);
            let known = shop.until_attempt(&order, end).await;
            assert_eq!(known.body["payable"], json!(end == "failed"));
            assert_eq!(shop.confirms(), 1, "{status} {when}");
            assert_eq!(shop.charges(&order.id), u64::from(when == "after"));
            shop.end().await;
        }
    }
}

#[tokio::test]
async fn answers_that_drip_in_every_place_do_not_keep_recovery_from_asking() {
    let env = [
        ("JARI_PG_CAP", "3"),
        ("JARI_PG_RESERVE", "0"),
        ("JARI_RESEND", "off"),
        ("JARI_CIRCUIT", "off"),
    ];
    let shop = Shop::with(&env).await;
    // One whose answer was lost, and whom nobody can be asked about yet.
    shop.set(json!({"loss": {"when": "after"}, "notFoundForMs": 1_500, "webhooks": {"drop": 1.0}}))
        .await;
    let lost = shop.order("mug", 1).await;
    shop.pay(&lost).await.attempt("unknown");
    shop.set(
        json!({"body": "drip", "dripMs": 1_000, "notFoundForMs": 1_500, "webhooks": {"drop": 1.0}}),
    )
    .await;
    let mut dripping = Vec::new();
    for _ in 0..3 {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        dripping.push((shop.start_pay(&order, &key), order));
    }
    shop.until_ledger(|ledger| ledger.calls.confirm.approved == 4)
        .await;
    // Every place is taken, and the first becomes known nevertheless.
    shop.until_status(&lost, "paid").await;
    let in_flight = "pg_in_flight{gateway=\"toss\",operation=\"confirm\"}";
    assert_eq!(shop.metric(in_flight).await, 3.0);
    for (answer, order) in dripping {
        answer.abort();
        assert_eq!(shop.charges(&order.id), 1);
    }
    shop.end().await;
}

#[tokio::test]
async fn a_redirect_is_asked_about_at_the_configured_address_only() {
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let away = format!(
        "http://{}/v1/payments/confirm",
        elsewhere.local_addr().unwrap()
    );
    for status in [301, 302, 303, 307, 308] {
        let shop = Shop::with(&SHORT).await;
        let home = format!("{}/v1/payments/confirm", shop.pg.url());
        for location in [&away, &home] {
            let order = shop.order("mug", 1).await;
            shop.pg.reset_ledger();
            shop.set(json!({"confirmWindowMs": 700, "redirect": {"status": status, "location": location}}))
                .await;
            let reply = shop.pay(&order).await;
            assert_eq!(reply.status, 202, "{status}: {:?}", reply.body);
            reply.attempt("unknown");
            let known = shop.until_attempt(&order, "failed").await;
            assert_eq!(known.body["payable"], true);
            let ledger = shop.pg.ledger();
            assert_eq!(ledger.calls.confirm.received, 1, "{status} to {location}");
            assert!(ledger.calls.get.received > 0, "{status} to {location}");
        }
        shop.end().await;
    }
    assert!(elsewhere.accept().is_err(), "nobody came");
}
