//! What is not known about KakaoPay: each switch under each of its readings.

use serde_json::{Value, json};

use crate::kakao::ready_body;
use crate::support::{Shop, read};

async fn under(shop: &Shop, reading: Value) {
    shop.scenario(json!({"kakaopay": reading})).await;
}

#[tokio::test]
async fn statuses_of_general_errors_are_their_codes_or_always_400() {
    let shop = Shop::open().await;
    let url = format!("{}/online/v1/payment/ready", shop.pg.url());
    for (reading, expected) in [("byCode", 401), ("always400", 400)] {
        under(&shop, json!({"httpStatus": reading})).await;
        let request = shop.http.post(&url).json(&ready_body("order_1"));
        let refused = read(request.header("authorization", "SECRET_KEY wrong"))
            .await
            .expect("an answer");
        assert_eq!(refused.kakao_refusal(), (expected, -401), "{reading}");
        let unknown = shop.kakao_order("T0000000000000000000").await;
        assert_eq!(unknown.kakao_refusal(), (400, -721), "{reading}");
    }
    for (reading, code, status) in [
        ("byCode", "-503", 503),
        ("byCode", "-603", 500),
        ("byCode", "-429", 429),
        ("always400", "-503", 400),
        ("always400", "-429", 400),
    ] {
        let decline = json!({"code": code});
        let scenario = json!({"operations": ["ready"], "decline": decline,
                              "kakaopay": {"httpStatus": reading}});
        shop.scenario(scenario).await;
        let reply = shop.kakao("ready", &ready_body("order_1")).await;
        assert_eq!(reply.status, status, "{reading} {code}");
    }
}

#[tokio::test]
async fn a_token_comes_again_while_its_payment_is_pending_or_never() {
    let shop = Shop::open().await;
    for (reading, again) in [("reusable", None), ("once", Some((400, -708)))] {
        let body = shop.authenticated(&format!("order_{reading}")).await;
        let locked = json!({"code": "-780:USER_LOCKED"});
        let kakaopay = json!({"pgToken": reading});
        shop.scenario(json!({"decline": locked, "kakaopay": kakaopay}))
            .await;
        let first = shop.kakao("approve", &body).await;
        assert_eq!(first.json()["extras"]["method_result_code"], "USER_LOCKED");
        let tid = body["tid"].as_str().expect("a tid");
        assert_eq!(shop.kakao_status(tid).await, "AUTH_PASSWORD");
        under(&shop, kakaopay).await;
        let second = shop.kakao("approve", &body).await;
        match again {
            None => assert_eq!(second.status, 200, "{reading}"),
            Some(refusal) => assert_eq!(second.kakao_refusal(), refusal, "{reading}"),
        }
    }
}

#[tokio::test]
async fn a_token_whose_approve_never_arrived_is_not_used_up() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    shop.scenario(json!({"loss": {}, "kakaopay": {"pgToken": "once"}}))
        .await;
    assert!(read(shop.kakao_request("approve", &body)).await.is_err());
    under(&shop, json!({"pgToken": "once"})).await;
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
}

#[tokio::test]
async fn times_are_korean_or_utc_and_never_name_their_zone() {
    let shop = Shop::open().await;
    let mut hours = Vec::new();
    let tid = shop.kakao_paid("order_1").await;
    for zone in ["kst", "utc"] {
        under(&shop, json!({"timeZone": zone})).await;
        let order = shop.kakao_order(&tid).await.json();
        let at = order["approved_at"].as_str().expect("a time").to_owned();
        assert_eq!(at.len(), 19, "{at}");
        hours.push(at[11..13].parse::<i32>().expect("an hour"));
    }
    assert_eq!((hours[1] + 9) % 24, hours[0]);
}

#[tokio::test]
async fn details_of_card_and_actions_are_there_or_not() {
    let shop = Shop::open().await;
    for (reading, there) in [("shown", true), ("absent", false)] {
        let kakaopay = json!({"cardInfo": reading, "actionDetails": reading});
        under(&shop, kakaopay).await;
        let body = shop.authenticated(&format!("order_{reading}")).await;
        let approved = shop.kakao("approve", &body).await.json();
        assert_eq!(approved.get("card_info").is_some(), there);
        let tid = body["tid"].as_str().expect("a tid");
        let order = shop.kakao_order(tid).await.json();
        assert_eq!(order.get("selected_card_info").is_some(), there);
        let action = &order["payment_action_details"][0];
        assert_eq!(action.get("amount").is_some(), there);
        assert!(action["aid"].is_string());
    }
}

#[tokio::test]
async fn wrong_fields_concurrent_calls_and_repeated_cancels_have_codes_to_choose() {
    let shop = Shop::open().await;
    for code in [-2, -400, -726] {
        under(&shop, json!({"invalidRequestCode": code.to_string()})).await;
        let reply = shop.kakao("ready", &json!({})).await;
        assert_eq!(reply.kakao_refusal(), (400, code));
    }
    for code in [-785, -780] {
        let order = format!("order{code}");
        let body = shop.authenticated(&order).await;
        let text = if code == -780 {
            "-780:USER_LOCKED"
        } else {
            "-785"
        };
        shop.pg.reset_ledger();
        let kakaopay = json!({"concurrentCode": text});
        shop.scenario(json!({"delayMs": 600_000, "kakaopay": kakaopay}))
            .await;
        let first = tokio::spawn(shop.kakao_request("approve", &body).send());
        shop.until("it is in flight", |ledger| {
            ledger.peak_in_flight.confirm == 1
        })
        .await;
        assert_eq!(
            shop.kakao("approve", &body).await.kakao_refusal(),
            (400, code)
        );
        first.abort();
    }
    for code in [-710, -784] {
        let tid = shop.kakao_paid(&format!("order_cancel{code}")).await;
        under(&shop, json!({"cancelAgainCode": code.to_string()})).await;
        assert_eq!(shop.kakao_cancel(&tid, 33_000, json!({})).await.status, 200);
        let again = shop.kakao_cancel(&tid, 33_000, json!({})).await;
        assert_eq!(again.kakao_refusal(), (400, code));
    }
}

#[tokio::test]
async fn an_expired_payment_is_shown_as_it_was_as_failed_or_refused() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    let tid = body["tid"].as_str().expect("a tid");
    for (reading, shown) in [
        ("lastStatus", Some("AUTH_PASSWORD")),
        ("failPayment", Some("FAIL_PAYMENT")),
        ("refused", None),
    ] {
        let kakaopay = json!({"expiredOrder": reading});
        shop.scenario(json!({"confirmWindowMs": 0, "kakaopay": kakaopay}))
            .await;
        match shown {
            Some(status) => assert_eq!(shop.kakao_status(tid).await, status),
            None => assert_eq!(shop.kakao_order(tid).await.kakao_refusal(), (400, -723)),
        }
        assert_eq!(
            shop.kakao("approve", &body).await.kakao_refusal(),
            (400, -723)
        );
    }
}

#[tokio::test]
async fn a_declined_payment_fails_or_stays_pending() {
    let shop = Shop::open().await;
    for (reading, left) in [("failed", "FAIL_PAYMENT"), ("pending", "AUTH_PASSWORD")] {
        let body = shop.authenticated(&format!("order_{reading}")).await;
        shop.scenario(json!({"decline": {}, "kakaopay": {"declineLeaves": reading}}))
            .await;
        assert_eq!(
            shop.kakao("approve", &body).await.kakao_refusal(),
            (400, -780)
        );
        assert_eq!(
            shop.kakao_status(body["tid"].as_str().expect("a tid"))
                .await,
            left
        );
    }
    for unsure in ["USER_LOCKED", "BANK_FIRM_UNKNOWN"] {
        let body = shop.authenticated(&format!("order_{unsure}")).await;
        shop.scenario(json!({"decline": {"code": format!("-780:{unsure}")}}))
            .await;
        assert_eq!(
            shop.kakao("approve", &body).await.kakao_refusal(),
            (400, -780)
        );
        let left = shop
            .kakao_status(body["tid"].as_str().expect("a tid"))
            .await;
        assert_eq!(left, "AUTH_PASSWORD", "{unsure}");
    }
}

#[tokio::test]
async fn order_shows_the_truth_at_once_or_late() {
    let shop = Shop::open().await;
    let tid = shop.kakao_paid("order_1").await;
    assert_eq!(shop.kakao_status(&tid).await, "SUCCESS_PAYMENT");
    under(&shop, json!({"staleForMs": 600_000})).await;
    let stale = shop.kakao_order(&tid).await.json();
    assert_eq!(stale["status"], "AUTH_PASSWORD");
    assert_eq!(stale.get("approved_at"), None);
    assert_eq!(stale["cancel_available_amount"]["total"], 0);
    assert_eq!(shop.kakao_cancel(&tid, 33_000, json!({})).await.status, 200);
    let stale = shop.kakao_order(&tid).await.json();
    assert_eq!(stale["status"], "SUCCESS_PAYMENT");
    assert_eq!(stale["cancel_available_amount"]["total"], 33_000);
    under(&shop, json!({})).await;
    assert_eq!(shop.kakao_status(&tid).await, "CANCEL_PAYMENT");
}

#[tokio::test]
async fn the_platform_gives_up_after_eleven_seconds_unless_told_otherwise() {
    let shop = Shop::open().await;
    let url = format!("{}/_control/scenario", shop.pg.url());
    let healthy = read(shop.http.get(&url)).await.expect("an answer").json();
    assert_eq!(healthy["kakaopay"]["platformTimeoutMs"], 11_000);
    let body = shop.authenticated("order_1").await;
    let never = json!({"platformTimeoutMs": 0});
    shop.scenario(json!({"delayMs": 300, "kakaopay": never}))
        .await;
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
}
