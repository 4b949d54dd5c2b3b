//! Every fault of a scenario on KakaoPay's wire.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kakao::{ready_body, with};
use crate::support::{Reply, Shop, read};

/// The four calls as a scenario names them.
const OPERATIONS: [&str; 4] = ["ready", "confirm", "get", "cancel"];

/// One call of an operation about a fresh payment, under a scenario; and whether money moved by it.
struct Tried {
    reply: reqwest::Result<Reply>,
    moved: bool,
}

/// Prepares a payment, sets the scenario for one operation, makes the call and lifts the scenario.
async fn tried(shop: &Shop, operation: &str, order: &str, scenario: Value) -> Tried {
    let (call, body) = prepared(shop, operation, order).await;
    let before = shop.ledger().orders.get(order).copied().unwrap_or_default();
    shop.scenario(with(scenario, json!({"operations": [operation]})))
        .await;
    let reply = read(shop.kakao_request(call, &body)).await;
    shop.scenario(json!({})).await;
    let after = shop.ledger().orders.get(order).copied().unwrap_or_default();
    let moved = (before.charges, before.canceled_won) != (after.charges, after.canceled_won);
    Tried { reply, moved }
}

async fn prepared(shop: &Shop, operation: &str, order: &str) -> (&'static str, Value) {
    match operation {
        "ready" => ("ready", ready_body(order)),
        "confirm" => ("approve", shop.authenticated(order).await),
        "get" => {
            let tid = shop.kakao_paid(order).await;
            ("order", json!({"cid": "TC0ONETIME", "tid": tid}))
        }
        _ => {
            let tid = shop.kakao_paid(order).await;
            let body = json!({"cid": "TC0ONETIME", "tid": tid, "cancel_amount": 33_000,
                              "cancel_tax_free_amount": 0});
            ("cancel", body)
        }
    }
}

/// Whether a call moves money when it is done.
fn moves_money(operation: &str) -> bool {
    matches!(operation, "confirm" | "cancel")
}

#[tokio::test]
async fn answers_are_lost_before_or_after_the_booking() {
    let shop = Shop::open().await;
    for operation in OPERATIONS {
        for when in ["before", "after"] {
            let order = format!("order_{operation}_{when}");
            let scenario = json!({"loss": {"when": when}});
            let tried = tried(&shop, operation, &order, scenario).await;
            assert!(tried.reply.is_err(), "{order}");
            assert_eq!(
                tried.moved,
                moves_money(operation) && when == "after",
                "{order}"
            );
        }
    }
    let calls = shop.ledger().gateways.kakaopay.calls;
    for counts in [calls.ready, calls.confirm, calls.get, calls.cancel] {
        assert_eq!(counts.lost, 2);
    }
}

#[tokio::test]
async fn errors_come_before_or_after_the_booking_as_json_or_as_a_page() {
    let shop = Shop::open().await;
    for operation in OPERATIONS {
        for (when, code) in [
            ("before", Some("-500")),
            ("after", Some("-781:BANK_FIRM_UNKNOWN")),
            ("after", None),
        ] {
            let order = format!("order_{operation}_{when}_{}", code.is_some());
            let mut error = json!({"status": 502, "when": when});
            if let Some(code) = code {
                error["code"] = json!(code);
            }
            let tried = tried(&shop, operation, &order, json!({"error": error})).await;
            let reply = tried.reply.expect("an answer");
            assert_eq!(reply.status, 502, "{order}");
            match code {
                Some("-500") => assert_eq!(reply.kakao_refusal(), (502, -500)),
                Some(_) => {
                    assert_eq!(
                        reply.json()["extras"]["method_result_code"],
                        "BANK_FIRM_UNKNOWN"
                    );
                }
                None => assert!(reply.body.starts_with(b"<!doctype html>")),
            }
            assert_eq!(
                tried.moved,
                moves_money(operation) && when == "after",
                "{order}"
            );
        }
    }
}

#[tokio::test]
async fn a_code_of_another_wire_in_an_error_is_an_internal_error_here() {
    let shop = Shop::open().await;
    let scenario = json!({"error": {"status": 500, "code": "UNKNOWN_PAYMENT_ERROR"}});
    let tried = tried(&shop, "confirm", "order_1", scenario).await;
    assert_eq!(tried.reply.expect("an answer").kakao_refusal(), (500, -500));
}

#[tokio::test]
async fn bodies_are_cut_replaced_dripped_or_wrong_after_the_booking() {
    let shop = Shop::open().await;
    for operation in OPERATIONS {
        for body in ["broken", "html", "drip"] {
            let order = format!("order_{operation}_{body}");
            let scenario = json!({"body": body, "dripMs": 1});
            let tried = tried(&shop, operation, &order, scenario).await;
            let reply = tried.reply.expect("an answer");
            assert_eq!(reply.status, 200, "{order}");
            let readable = serde_json::from_slice::<Value>(&reply.body).is_ok();
            assert_eq!(readable, body == "drip", "{order}");
            assert_eq!(tried.moved, moves_money(operation), "{order}");
        }
    }
    let wrong = tried(
        &shop,
        "confirm",
        "order_wrong",
        json!({"body": "wrongAmount"}),
    )
    .await;
    assert_eq!(
        wrong.reply.expect("an answer").json()["amount"]["total"],
        34_000
    );
    assert_eq!(shop.ledger().orders["order_wrong"].charged_won, 34_000);
}

#[tokio::test]
async fn a_redirect_and_both_limits_do_nothing() {
    let shop = Shop::open().await;
    for operation in OPERATIONS {
        let redirect = json!({"redirect": {"status": 302, "location": "http://127.0.0.1:9/"}});
        let order = format!("order_{operation}_redirect");
        let redirected = tried(&shop, operation, &order, redirect).await;
        assert_eq!(redirected.reply.expect("an answer").status, 302);
        assert!(!redirected.moved);
        for limit in ["rateLimit", "contractLimit"] {
            let order = format!("order_{operation}_{limit}");
            let limited = tried(&shop, operation, &order, json!({limit: 0})).await;
            let reply = limited.reply.expect("an answer");
            assert_eq!(reply.kakao_refusal(), (429, -429), "{order}");
            assert!(!limited.moved);
        }
    }
    assert_eq!(shop.ledger().gateways.kakaopay.calls.cancel.limited, 2);
}

#[tokio::test]
async fn a_limit_counts_each_gateway_alone() {
    let shop = Shop::open().await;
    shop.scenario(json!({"contractLimit": 1, "delayMs": 600_000}))
        .await;
    let key = shop.pg.authenticate("order_1", 1_000);
    let toss = tokio::spawn(shop.confirm_request(&key, "order_1", 1_000).send());
    shop.until("it is in flight", |ledger| {
        ledger.peak_in_flight.confirm == 1
    })
    .await;
    let body = shop.authenticated("order_2").await;
    let kakao = tokio::spawn(shop.kakao_request("approve", &body).send());
    shop.until("both are in flight", |ledger| {
        ledger.peak_in_flight.confirm == 2
    })
    .await;
    let gateways = shop.ledger().gateways;
    assert_eq!(gateways.toss.peak_in_flight.confirm, 1);
    assert_eq!(gateways.kakaopay.peak_in_flight.confirm, 1);
    toss.abort();
    kakao.abort();
}

#[tokio::test]
async fn a_decline_without_a_code_is_each_gateways_own_and_ends_the_payment() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    shop.scenario(json!({"decline": {}})).await;
    let declined = shop.kakao("approve", &body).await;
    assert_eq!(declined.kakao_refusal(), (400, -780));
    let toss = shop.buy("order_2").await.expect("an answer");
    assert_eq!(toss.refusal(), (403, "REJECT_CARD_PAYMENT".into()));
    shop.scenario(json!({})).await;
    assert_eq!(
        shop.kakao_status(body["tid"].as_str().expect("a tid"))
            .await,
        "FAIL_PAYMENT"
    );
    assert_eq!(
        shop.kakao("approve", &body).await.kakao_refusal(),
        (400, -783)
    );
    assert_eq!(shop.charges("order_1"), 0);
}

#[tokio::test]
async fn a_decline_with_a_code_strikes_only_the_wire_that_has_it() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    shop.scenario(json!({"decline": {"code": "-780:CARD_LIMIT_EXCEEDED"}}))
        .await;
    assert_eq!(shop.buy("order_2").await.expect("an answer").status, 200);
    let declined = shop.kakao("approve", &body).await.json();
    assert_eq!(declined["error_code"], -780);
    assert_eq!(
        declined["extras"]["method_result_code"],
        "CARD_LIMIT_EXCEEDED"
    );
    assert!(declined["extras"]["method_result_message"].is_string());
    shop.scenario(json!({"decline": {"code": "REJECT_CARD_COMPANY"}}))
        .await;
    let body = shop.authenticated("order_3").await;
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
}

#[tokio::test]
async fn every_listed_code_can_be_declined_with_and_most_leave_the_payment_open() {
    let shop = Shop::open().await;
    for number in [
        -401, -403, -429, -500, -503, -603, -701, -702, -703, -704, -705, -706, -707, -708, -721,
        -722, -723, -724, -725, -726, -730, -731, -732, -733, -783, -785, -798,
    ] {
        let order = format!("order{number}");
        let body = shop.authenticated(&order).await;
        shop.scenario(json!({"decline": {"code": number.to_string()}}))
            .await;
        let reply = shop.kakao("approve", &body).await;
        assert_eq!(reply.kakao_refusal().1, number);
        shop.scenario(json!({})).await;
        let tid = body["tid"].as_str().expect("a tid");
        assert_eq!(shop.kakao_status(tid).await, "AUTH_PASSWORD", "{number}");
        assert_eq!(shop.kakao("approve", &body).await.status, 200, "{number}");
    }
    let body = shop.authenticated("order_limit").await;
    shop.scenario(json!({"decline": {"code": "-797"}})).await;
    assert_eq!(
        shop.kakao("approve", &body).await.kakao_refusal(),
        (400, -797)
    );
    shop.scenario(json!({})).await;
    assert_eq!(
        shop.kakao_status(body["tid"].as_str().expect("a tid"))
            .await,
        "FAIL_PAYMENT"
    );
}

#[tokio::test]
async fn other_calls_are_declined_too() {
    let shop = Shop::open().await;
    for (operation, code, refusal) in [
        ("ready", "-731", (400, -731)),
        ("cancel", "-781:BANK_FIRM_UNKNOWN", (400, -781)),
    ] {
        let scenario = json!({"decline": {"code": code}});
        let tried = tried(&shop, operation, &format!("order_{operation}"), scenario).await;
        assert_eq!(tried.reply.expect("an answer").kakao_refusal(), refusal);
        assert!(!tried.moved);
    }
}

#[tokio::test]
async fn faults_can_be_aimed_at_one_gateway() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    shop.scenario(json!({"gateways": ["kakaopay"], "stop": true}))
        .await;
    let held = tokio::spawn(shop.kakao_request("approve", &body).send());
    shop.until("it arrives", |ledger| {
        ledger.gateways.kakaopay.calls.confirm.received == 1
    })
    .await;
    assert_eq!(shop.buy("order_2").await.expect("an answer").status, 200);
    assert!(!held.is_finished());
    shop.scenario(json!({"gateways": ["toss"], "up": false}))
        .await;
    assert_eq!(
        held.await.expect("no panic").expect("an answer").status(),
        200
    );
    assert!(shop.buy("order_3").await.is_err());
    let body = shop.authenticated("order_4").await;
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
    shop.scenario(json!({"gateways": ["kakaopay"], "up": false}))
        .await;
    assert!(
        read(shop.kakao_request("ready", &ready_body("order_5")))
            .await
            .is_err()
    );
    assert_eq!(shop.buy("order_6").await.expect("an answer").status, 200);
}

#[tokio::test]
async fn delays_tails_and_hangs_pass_before_or_after_the_booking() {
    let shop = Shop::open().await;
    for slow in [
        json!({"delayMs": 300}),
        json!({"slowTail": {"delayMs": 300}}),
        json!({"hang": {"ms": 300}}),
    ] {
        let order = format!("order_{slow}");
        let body = shop.authenticated(&order).await;
        shop.scenario(slow).await;
        let started = std::time::Instant::now();
        assert_eq!(shop.kakao("approve", &body).await.status, 200);
        assert!(started.elapsed() >= Duration::from_millis(300));
        shop.scenario(json!({})).await;
    }
    let body = shop.authenticated("order_hang").await;
    shop.scenario(json!({"hang": {"ms": 600_000, "when": "after"}}))
        .await;
    let held = tokio::spawn(shop.kakao_request("approve", &body).send());
    shop.until("it is booked", |ledger| {
        ledger
            .orders
            .get("order_hang")
            .is_some_and(|order| order.charges == 1)
    })
    .await;
    assert!(!held.is_finished());
    held.abort();
}

#[tokio::test]
async fn work_whose_caller_hung_up_goes_on_or_is_dropped() {
    let shop = Shop::open().await;
    for goes_on in [true, false] {
        let order = format!("order_{goes_on}");
        let body = shop.authenticated(&order).await;
        shop.pg.reset_ledger();
        let delay = if goes_on { 400 } else { 600_000 };
        shop.scenario(json!({"delayMs": delay, "continueAfterDisconnect": goes_on}))
            .await;
        let call = tokio::spawn(shop.kakao_request("approve", &body).send());
        shop.until("it is in flight", |ledger| {
            ledger.peak_in_flight.confirm == 1
        })
        .await;
        call.abort();
        shop.until("it ends", |ledger| {
            let calls = ledger.calls.confirm;
            if goes_on {
                calls.approved == 1
            } else {
                calls.dropped == 1
            }
        })
        .await;
        shop.scenario(json!({})).await;
        let expected = if goes_on {
            "SUCCESS_PAYMENT"
        } else {
            "AUTH_PASSWORD"
        };
        assert_eq!(
            shop.kakao_status(body["tid"].as_str().expect("a tid"))
                .await,
            expected
        );
    }
}

#[tokio::test]
async fn a_booked_payment_is_not_found_for_a_while() {
    let shop = Shop::open().await;
    let tid = shop.kakao_paid("order_1").await;
    shop.scenario(json!({"notFoundForMs": 600_000})).await;
    assert_eq!(shop.kakao_order(&tid).await.kakao_refusal(), (400, -721));
    let open = shop.ready("order_2").await;
    assert_eq!(
        shop.kakao_status(open["tid"].as_str().expect("a tid"))
            .await,
        "READY"
    );
    shop.scenario(json!({})).await;
    assert_eq!(shop.kakao_status(&tid).await, "SUCCESS_PAYMENT");
}

#[tokio::test]
async fn a_payment_expires_when_nobody_approves_it_in_time() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    let tid = body["tid"].as_str().expect("a tid");
    shop.scenario(json!({"confirmWindowMs": 0})).await;
    assert_eq!(
        shop.kakao("approve", &body).await.kakao_refusal(),
        (400, -723)
    );
    assert_eq!(shop.kakao_status(tid).await, "AUTH_PASSWORD");
    assert_eq!(shop.ledger().payments[tid].status, "EXPIRED");
    shop.scenario(json!({})).await;
    let why = shop
        .pg
        .authenticate_ready("order_1", 33_000)
        .expect_err("over");
    assert!(why.contains("expired"), "{why}");
    assert_eq!(shop.charges("order_1"), 0);
}

#[tokio::test]
async fn an_approve_that_began_in_time_does_not_expire() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    shop.scenario(json!({"stop": true})).await;
    let held = tokio::spawn(shop.kakao_request("approve", &body).send());
    shop.until("it arrives", |ledger| ledger.calls.confirm.received == 1)
        .await;
    shop.scenario(json!({"confirmWindowMs": 0})).await;
    assert_eq!(
        held.await.expect("no panic").expect("an answer").status(),
        200
    );
    assert_eq!(shop.charges("order_1"), 1);
}

#[tokio::test]
async fn the_platform_gives_up_on_slow_work_which_goes_on_behind_it() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    let tid = body["tid"].as_str().expect("a tid");
    let kakaopay = json!({"platformTimeoutMs": 50});
    shop.scenario(json!({"delayMs": 1_500, "kakaopay": kakaopay}))
        .await;
    let given_up = shop.kakao("approve", &body).await;
    assert_eq!(given_up.kakao_refusal(), (500, -603));
    assert_eq!(shop.charges("order_1"), 0, "the work is not done yet");
    assert_eq!(shop.kakao_status(tid).await, "AUTH_PASSWORD");
    let meanwhile = shop.kakao("approve", &body).await;
    assert_eq!(
        meanwhile.kakao_refusal(),
        (400, -785),
        "the first one is still running"
    );
    shop.until("the work ends", |ledger| {
        ledger.orders["order_1"].charges == 1
    })
    .await;
    assert_eq!(shop.kakao_status(tid).await, "SUCCESS_PAYMENT");
    let calls = shop.ledger().calls.confirm;
    assert_eq!((calls.approved, calls.failed, calls.lost), (1, 1, 0));
}

#[tokio::test]
async fn the_platform_gives_up_too_when_only_the_answer_hangs() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    let kakaopay = json!({"platformTimeoutMs": 50, "platformTimeoutCode": "-500"});
    let hang = json!({"when": "after", "ms": 600_000});
    shop.scenario(json!({"hang": hang, "kakaopay": kakaopay}))
        .await;
    assert_eq!(
        shop.kakao("approve", &body).await.kakao_refusal(),
        (500, -500)
    );
    assert_eq!(shop.charges("order_1"), 1);
}
