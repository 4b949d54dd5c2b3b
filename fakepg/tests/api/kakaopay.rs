//! KakaoPay's wire: who may call, what each call checks and does.

use fakepg::Config;
use fakepg::engine::Merchant;
use reqwest::Method;
use serde_json::{Value, json};

use crate::kakao::{KEY, approve_body, ready_body, with};
use crate::support::{Shop, read};

#[tokio::test]
async fn a_payment_is_opened_authenticated_approved_and_told_about() {
    let shop = Shop::open().await;
    let ready = shop.ready("order_1").await;
    let tid = ready["tid"].as_str().expect("a tid");
    assert_eq!(tid.len(), 20);
    for (name, device) in [
        ("next_redirect_pc_url", "/pc"),
        ("next_redirect_mobile_url", "/mobile"),
        ("next_redirect_app_url", "/app"),
    ] {
        let url = ready[name].as_str().expect("a URL");
        assert!(
            url.starts_with(&shop.pg.url()) && url.ends_with(device),
            "{url}"
        );
        assert!(!url.contains(tid), "the browser never sees the tid");
    }
    for name in ["android_app_scheme", "ios_app_scheme"] {
        let scheme = ready[name].as_str().expect("a URL");
        assert!(scheme.starts_with("kakaotalk://"), "{scheme}");
    }
    let created = ready["created_at"].as_str().expect("a time");
    assert!(created.len() == 19 && !created.contains('+'), "{created}");
    assert_eq!(shop.kakao_status(tid).await, "READY");

    let token = shop
        .pg
        .authenticate_ready("order_1", 33_000)
        .expect("a token");
    assert_eq!(shop.kakao_status(tid).await, "AUTH_PASSWORD");
    let body = approve_body("order_1", &ready["tid"], &token);
    let body = with(body, json!({"payload": "p-1", "total_amount": 33_000}));
    let reply = shop.kakao("approve", &body).await;
    let approved = reply.json();
    assert_eq!(reply.status, 200, "{approved}");
    assert_eq!(reply.header("x-tosspayments-trace-id"), "");
    assert_eq!(approved["aid"].as_str().map(str::len), Some(20));
    let whole = json!({"total": 33_000, "tax_free": 0, "vat": 3_000, "point": 0, "discount": 0,
                       "green_deposit": 0});
    for (name, value) in [
        ("tid", ready["tid"].clone()),
        ("cid", json!("TC0ONETIME")),
        ("partner_order_id", json!("order_1")),
        ("partner_user_id", json!("u_1")),
        ("payment_method_type", json!("CARD")),
        ("item_name", json!("머그컵 외 1건")),
        ("quantity", json!(1)),
        ("amount", whole.clone()),
        ("created_at", ready["created_at"].clone()),
        ("payload", json!("p-1")),
    ] {
        assert_eq!(approved[name], value, "{name}");
    }
    assert_eq!(approved["card_info"]["install_month"], "00");

    let order = shop.kakao_order(tid).await.json();
    assert_eq!(order["status"], "SUCCESS_PAYMENT");
    assert_eq!(order["amount"], whole);
    assert_eq!(order["cancel_available_amount"], whole);
    assert_eq!(order["canceled_amount"]["total"], 0);
    assert_eq!(order["approved_at"], approved["approved_at"]);
    let action = &order["payment_action_details"][0];
    assert_eq!(
        (
            &action["aid"],
            &action["payment_action_type"],
            &action["amount"],
            &action["payload"]
        ),
        (
            &approved["aid"],
            &json!("PAYMENT"),
            &json!(33_000),
            &json!("p-1")
        )
    );
    let ledger = shop.ledger();
    let told = ledger.orders["order_1"];
    assert_eq!(
        (told.confirms, told.charges, told.charged_won),
        (1, 1, 33_000)
    );
    assert_eq!(ledger.payments[tid].status, "SUCCESS_PAYMENT");
}

#[tokio::test]
async fn only_the_merchants_key_and_contract_are_accepted() {
    let shop = Shop::open().await;
    let url = format!("{}/online/v1/payment/ready", shop.pg.url());
    let ask = |key: Option<&str>, body: Value| {
        let request = shop.http.post(&url).json(&body);
        read(match key {
            Some(key) => request.header("authorization", key),
            None => request,
        })
    };
    for (key, refusal) in [
        (None, (400, -400)),
        (Some("SECRET_KEY wrong"), (401, -401)),
        (Some("KakaoAK DEV_fake"), (401, -401)),
        (Some("Basic dGVzdF9za19mYWtlOg=="), (401, -401)),
        (Some("DEV_fake"), (401, -401)),
    ] {
        let reply = ask(key, ready_body("order_1")).await.expect("an answer");
        assert_eq!(reply.kakao_refusal(), refusal, "{key:?}");
    }
    for key in [KEY, "DEV_SECRET_KEY DEV_fake"] {
        let reply = ask(Some(key), ready_body("order_1"))
            .await
            .expect("an answer");
        assert_eq!(reply.status, 200, "{key}");
    }
    let other = with(ready_body("order_1"), json!({"cid": "TC0OTHER00"}));
    assert_eq!(
        shop.kakao("ready", &other).await.kakao_refusal(),
        (400, -731)
    );
}

#[tokio::test]
async fn a_contract_with_a_secret_wants_it_in_every_call() {
    let shop = Shop::with(Config {
        kakaopay: Merchant {
            cid_secret: Some("abc".to_owned()),
            ..Merchant::default()
        },
        ..Config::default()
    })
    .await;
    for body in [
        ready_body("order_1"),
        with(ready_body("order_1"), json!({"cid_secret": "x"})),
    ] {
        assert_eq!(
            shop.kakao("ready", &body).await.kakao_refusal(),
            (400, -733)
        );
    }
    let body = with(ready_body("order_1"), json!({"cid_secret": "abc"}));
    assert_eq!(shop.kakao("ready", &body).await.status, 200);
}

#[tokio::test]
async fn addresses_methods_and_bodies_that_kakaopay_does_not_take_are_refused() {
    let shop = Shop::open().await;
    for (method, path) in [
        (Method::POST, "/online/v1/payment/refund"),
        (Method::GET, "/online/v1/payment/order"),
        (Method::POST, "/online/v1"),
    ] {
        let reply = read(shop.request(method.clone(), path))
            .await
            .expect("an answer");
        assert_eq!(reply.kakao_refusal(), (404, -404), "{method} {path}");
    }
    let url = format!("{}/online/v1/payment/ready", shop.pg.url());
    let form = shop
        .http
        .post(&url)
        .header("authorization", KEY)
        .form(&[("cid", "TC0ONETIME")]);
    assert_eq!(
        read(form).await.expect("an answer").kakao_refusal(),
        (400, -2)
    );
    let list = shop.kakao("ready", &json!([1])).await;
    assert_eq!(list.kakao_refusal(), (400, -2));
}

#[tokio::test]
async fn ready_checks_every_field_and_the_answer_names_the_wrong_one() {
    let shop = Shop::open().await;
    let long = |length: usize| "가".repeat(length);
    for (field, value) in [
        ("cid", Value::Null),
        ("cid", json!("TC0ONETIM")),
        ("partner_order_id", Value::Null),
        ("partner_order_id", json!("")),
        ("partner_order_id", json!(long(101))),
        ("partner_user_id", Value::Null),
        ("partner_user_id", json!(long(101))),
        ("item_name", Value::Null),
        ("item_name", json!(long(101))),
        ("item_code", json!(long(101))),
        ("quantity", Value::Null),
        ("quantity", json!("1")),
        ("quantity", json!(0)),
        ("total_amount", Value::Null),
        ("total_amount", json!("33000")),
        ("total_amount", json!(33_000.5)),
        ("total_amount", json!(-1)),
        ("tax_free_amount", Value::Null),
        ("tax_free_amount", json!("0")),
        ("vat_amount", json!("3000")),
        ("green_deposit", json!(-1)),
        ("approval_url", Value::Null),
        ("approval_url", json!("/relative")),
        ("approval_url", json!("javascript:alert(1)")),
        ("cancel_url", Value::Null),
        (
            "fail_url",
            json!(format!("http://shop.test/{}", "x".repeat(255))),
        ),
        ("available_cards", json!(1)),
        ("payment_method_type", json!("PHONE")),
        ("install_month", json!(13)),
        ("use_share_installment", json!("yes")),
        ("custom_json", json!({})),
    ] {
        let body = with(ready_body("order_1"), json!({field: value}));
        let reply = shop.kakao("ready", &body).await;
        assert_eq!(reply.kakao_refusal(), (400, -2), "{field} {value}");
        let told = reply.json()["error_message"]
            .as_str()
            .expect("text")
            .to_owned();
        assert!(told.starts_with(field), "{told}");
    }
    for amounts in [
        json!({"tax_free_amount": 33_001}),
        json!({"tax_free_amount": 32_000, "vat_amount": 2_000}),
    ] {
        let body = with(ready_body("order_1"), amounts);
        assert_eq!(
            shop.kakao("ready", &body).await.kakao_refusal(),
            (400, -722)
        );
    }
    let most = json!({"partner_order_id": long(100), "item_name": long(100), "item_code": "m-1",
                      "vat_amount": 2_999, "install_month": 12, "available_cards": ["SHINHAN"],
                      "use_share_installment": "Y", "custom_json": "{}", "cid_secret": "ignored"});
    let reply = shop
        .kakao("ready", &with(ready_body("order_1"), most))
        .await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    let ledger = shop.ledger();
    assert_eq!(ledger.calls.ready.received, ledger.calls.ready.declined + 1);
}

#[tokio::test]
async fn an_unknown_field_is_let_through_and_noted() {
    let shop = Shop::open().await;
    let body = with(ready_body("order_1"), json!({"orderId": "x"}));
    assert_eq!(shop.kakao("ready", &body).await.status, 200);
    let noted = shop.ledger().gateways.kakaopay.unknown_fields;
    assert_eq!(noted.into_iter().collect::<Vec<_>>(), ["orderId"]);
}

#[tokio::test]
async fn approve_checks_every_name_and_none_of_the_refusals_uses_the_payment_up() {
    let shop = Shop::open().await;
    let open = shop.ready("order_1").await;
    let early = approve_body("order_1", &open["tid"], "token");
    assert_eq!(
        shop.kakao("approve", &early).await.kakao_refusal(),
        (400, -701)
    );
    let body = shop.authenticated("order_2").await;
    for (change, refusal) in [
        (json!({"cid": null}), (400, -2)),
        (json!({"tid": null}), (400, -2)),
        (json!({"pg_token": null}), (400, -2)),
        (json!({"payload": "p".repeat(201)}), (400, -2)),
        (json!({"total_amount": "33000"}), (400, -2)),
        (json!({"cid": "TC0OTHER00"}), (400, -731)),
        (json!({"tid": "T0000000000000000000"}), (400, -721)),
        (json!({"partner_order_id": "order_1"}), (400, -706)),
        (json!({"partner_user_id": "u_2"}), (400, -707)),
        (json!({"pg_token": "f0f0f0f0f0f0f0f0f0f0"}), (400, -708)),
        (json!({"total_amount": 32_000}), (400, -725)),
    ] {
        let reply = shop
            .kakao("approve", &with(body.clone(), change.clone()))
            .await;
        assert_eq!(reply.kakao_refusal(), refusal, "{change}");
    }
    assert_eq!(shop.charges("order_2"), 0);
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
}

#[tokio::test]
async fn a_tid_is_charged_once_whatever_token_or_key_comes_with_a_repeat() {
    let shop = Shop::open().await;
    let body = shop.authenticated("order_1").await;
    assert_eq!(shop.kakao("approve", &body).await.status, 200);
    let keyed = shop
        .kakao_request("approve", &body)
        .header("idempotency-key", "k");
    for again in [shop.kakao_request("approve", &body), keyed] {
        let reply = read(again).await.expect("an answer");
        assert_eq!(reply.kakao_refusal(), (400, -702));
        assert_eq!(
            reply.header("idempotency-key"),
            "",
            "there is no such header"
        );
    }
    assert_eq!(shop.charges("order_1"), 1);
    let why = shop
        .pg
        .authenticate_ready("order_1", 33_000)
        .expect_err("over");
    assert!(why.contains("SUCCESS_PAYMENT"), "{why}");
}

#[tokio::test]
async fn each_authentication_has_a_token_of_its_own_and_only_the_latest_counts() {
    let shop = Shop::open().await;
    let first = shop.authenticated("order_1").await;
    let token = shop
        .pg
        .authenticate_ready("order_1", 33_000)
        .expect("a token");
    assert_ne!(first["pg_token"], json!(token));
    assert_eq!(
        shop.kakao("approve", &first).await.kakao_refusal(),
        (400, -708)
    );
    let second = with(first, json!({"pg_token": token}));
    assert_eq!(shop.kakao("approve", &second).await.status, 200);
}

#[tokio::test]
async fn an_order_can_be_opened_again_and_nothing_stops_a_second_charge() {
    let shop = Shop::open().await;
    shop.kakao_paid("order_1").await;
    shop.kakao_paid("order_1").await;
    assert_eq!(
        shop.charges("order_1"),
        2,
        "only the shop itself prevents it"
    );
}

#[tokio::test]
async fn order_knows_nothing_but_tids() {
    let shop = Shop::open().await;
    shop.ready("order_1").await;
    let by_order = json!({"cid": "TC0ONETIME", "partner_order_id": "order_1"});
    assert_eq!(
        shop.kakao("order", &by_order).await.kakao_refusal(),
        (400, -2)
    );
    let unknown = shop.kakao_order("T0000000000000000000").await;
    assert_eq!(unknown.kakao_refusal(), (400, -721));
}

#[tokio::test]
async fn parts_are_cancelled_until_nothing_is_left() {
    let shop = Shop::open().await;
    let tid = shop.kakao_paid("order_1").await;
    let part = json!({"payload": "refund-1", "cancel_available_amount": 33_000});
    let reply = shop.kakao_cancel(&tid, 11_000, part).await;
    let told = reply.json();
    assert_eq!(reply.status, 200, "{told}");
    assert_eq!(told["status"], "PART_CANCEL_PAYMENT");
    assert_eq!(told["approved_cancel_amount"]["total"], 11_000);
    assert_eq!(told["approved_cancel_amount"]["vat"], 1_000);
    assert_eq!(told["canceled_amount"]["total"], 11_000);
    assert_eq!(told["cancel_available_amount"]["total"], 22_000);
    assert_eq!(told["amount"]["total"], 33_000);
    assert_eq!(told["payload"], "refund-1");
    let rest = shop.kakao_cancel(&tid, 22_000, json!({})).await.json();
    assert_eq!(rest["status"], "CANCEL_PAYMENT");
    assert_eq!(rest["cancel_available_amount"]["total"], 0);
    assert_eq!(rest["cancel_available_amount"]["vat"], 0);
    assert_ne!(rest["aid"], told["aid"]);

    let order = shop.kakao_order(&tid).await.json();
    assert_eq!(order["status"], "CANCEL_PAYMENT");
    assert_eq!(order["canceled_amount"]["total"], 33_000);
    assert_eq!(order["canceled_at"], rest["canceled_at"]);
    let kinds: Vec<_> = (0..3)
        .map(|place| order["payment_action_details"][place]["payment_action_type"].clone())
        .collect();
    assert_eq!(kinds, ["PAYMENT", "CANCEL", "CANCEL"]);
    let counts = shop.ledger().orders["order_1"];
    assert_eq!((counts.cancels, counts.canceled_won), (1, 33_000));
}

#[tokio::test]
async fn a_cancel_is_checked_and_a_refused_one_gives_nothing_back() {
    let shop = Shop::open().await;
    let open = shop.ready("order_1").await;
    let early = shop
        .kakao_cancel(open["tid"].as_str().expect("a tid"), 1_000, json!({}))
        .await;
    assert_eq!(early.kakao_refusal(), (400, -784));
    let tid = shop.kakao_paid("order_2").await;
    for (won, changes, refusal) in [
        (1_000, json!({"cancel_amount": null}), (400, -2)),
        (1_000, json!({"cancel_amount": "1000"}), (400, -2)),
        (1_000, json!({"cancel_amount": 0}), (400, -2)),
        (1_000, json!({"cancel_tax_free_amount": null}), (400, -2)),
        (1_000, json!({"payload": "p".repeat(201)}), (400, -2)),
        (1_000, json!({"tid": "T0000000000000000000"}), (400, -721)),
        (1_000, json!({"cid": "TC0OTHER00"}), (400, -731)),
        (33_001, json!({}), (400, -711)),
        (
            1_000,
            json!({"cancel_available_amount": 32_000}),
            (400, -710),
        ),
        (1_000, json!({"cancel_tax_free_amount": 500}), (400, -722)),
    ] {
        let reply = shop.kakao_cancel(&tid, won, changes.clone()).await;
        assert_eq!(reply.kakao_refusal(), refusal, "{won} {changes}");
    }
    assert_eq!(shop.kakao_cancel(&tid, 30_000, json!({})).await.status, 200);
    let more_than_left = shop.kakao_cancel(&tid, 30_000, json!({})).await;
    assert_eq!(more_than_left.kakao_refusal(), (400, -710));
    assert_eq!(shop.ledger().orders["order_2"].canceled_won, 30_000);
}

#[tokio::test]
async fn the_expected_balance_is_a_lock_and_without_it_a_repeat_gives_back_twice() {
    let shop = Shop::open().await;
    let locked = shop.kakao_paid("order_1").await;
    let lock = json!({"cancel_available_amount": 33_000});
    assert_eq!(
        shop.kakao_cancel(&locked, 10_000, lock.clone())
            .await
            .status,
        200
    );
    let again = shop.kakao_cancel(&locked, 10_000, lock).await;
    assert_eq!(again.kakao_refusal(), (400, -710));
    let loose = shop.kakao_paid("order_2").await;
    for _ in 0..2 {
        assert_eq!(
            shop.kakao_cancel(&loose, 10_000, json!({})).await.status,
            200
        );
    }
    let orders = shop.ledger().orders;
    let given_back = |order: &str| orders[order].canceled_won;
    assert_eq!(
        (given_back("order_1"), given_back("order_2")),
        (10_000, 20_000)
    );
}

#[tokio::test]
async fn a_deposit_for_a_cup_is_given_back_with_the_whole_only() {
    let shop = Shop::open().await;
    let body = with(ready_body("order_1"), json!({"green_deposit": 300}));
    let tid = shop.kakao("ready", &body).await.json()["tid"].clone();
    let token = shop
        .pg
        .authenticate_ready("order_1", 33_000)
        .expect("a token");
    let reply = shop
        .kakao("approve", &approve_body("order_1", &tid, &token))
        .await;
    assert_eq!(reply.json()["amount"]["green_deposit"], 300);
    let tid = tid.as_str().expect("a tid");
    let part = shop.kakao_cancel(tid, 1_000, json!({})).await;
    assert_eq!(part.kakao_refusal(), (400, -784));
    assert_eq!(shop.kakao_cancel(tid, 33_000, json!({})).await.status, 200);
}

#[tokio::test]
async fn no_webhook_tells_of_anything() {
    let receiver = crate::support::Receiver::open(0).await;
    let shop = Shop::with(Config {
        webhook_url: Some(receiver.url.clone()),
        ..Config::default()
    })
    .await;
    let tid = shop.kakao_paid("order_1").await;
    assert_eq!(shop.kakao_cancel(&tid, 33_000, json!({})).await.status, 200);
    // Toss's comes, and it was due after KakaoPay's would have been.
    shop.paid("order_2").await;
    let told: Vec<_> = receiver
        .wait_for(1)
        .await
        .iter()
        .map(|one| one.tells().0)
        .collect();
    assert_eq!(told, ["order_2"]);
}

#[tokio::test]
async fn the_control_api_authenticates_what_was_made_ready() {
    let shop = Shop::open().await;
    let url = format!("{}/_control/payments", shop.pg.url());
    let make = |order: &str, won: u64| {
        let body = json!({"gateway": "kakaopay", "orderId": order, "amount": won});
        read(shop.http.post(&url).json(&body))
    };
    let none = make("order_1", 33_000).await.expect("an answer");
    assert_eq!(none.status, 409);
    let why = none.json()["error"].as_str().expect("a reason").to_owned();
    assert!(why.contains("order_1") && why.contains("ready"), "{why}");

    let first = shop.ready("order_1").await;
    let latest = shop.ready("order_1").await;
    assert_eq!(
        make("order_1", 32_000).await.expect("an answer").status,
        409
    );
    let made = make("order_1", 33_000).await.expect("an answer").json();
    let token = made["paymentKey"].as_str().expect("a token");
    let stale = shop
        .kakao("approve", &approve_body("order_1", &first["tid"], token))
        .await;
    assert_eq!(stale.kakao_refusal(), (400, -701));
    let good = shop
        .kakao("approve", &approve_body("order_1", &latest["tid"], token))
        .await;
    assert_eq!(good.status, 200);
    assert_eq!(
        make("order_1", 33_000).await.expect("an answer").status,
        409
    );
}

#[tokio::test]
async fn order_can_be_made_to_show_any_status() {
    let shop = Shop::open().await;
    let tid = shop.kakao_paid("order_1").await;
    let url = format!("{}/_control/kakaopay/status", shop.pg.url());
    let show = |order: &str, status: Value| {
        read(
            shop.http
                .put(&url)
                .json(&json!({"orderId": order, "status": status})),
        )
    };
    for status in ["SEND_TMS", "ARS_WAITING", "ISSUED_SID", "SOMETHING_NEW"] {
        let set = show("order_1", json!(status)).await.expect("an answer");
        assert_eq!(set.status, 204);
        assert_eq!(shop.kakao_status(&tid).await, status);
    }
    assert_eq!(
        show("order_1", Value::Null)
            .await
            .expect("an answer")
            .status,
        204
    );
    assert_eq!(shop.kakao_status(&tid).await, "SUCCESS_PAYMENT");
    assert_eq!(
        show("order_2", Value::Null)
            .await
            .expect("an answer")
            .status,
        404
    );
}

#[tokio::test]
async fn the_ledger_counts_each_gateway_alone_and_both_together() {
    let shop = Shop::open().await;
    shop.kakao_paid("order_1").await;
    shop.paid("order_2").await;
    shop.paid("order_3").await;
    let url = format!("{}/_control/ledger", shop.pg.url());
    let ledger = read(shop.http.get(&url)).await.expect("an answer").json();
    let received = |of: &Value, operation: &str| of["calls"][operation]["received"].clone();
    assert_eq!(received(&ledger, "confirm"), 3);
    let gateways = &ledger["gateways"];
    assert_eq!(received(&gateways["toss"], "confirm"), 2);
    assert_eq!(received(&gateways["kakaopay"], "confirm"), 1);
    assert_eq!(received(&gateways["kakaopay"], "ready"), 1);
    assert_eq!(received(&gateways["toss"], "ready"), 0);
    assert_eq!(gateways["kakaopay"]["peakInFlight"]["confirm"], 1);
    assert_eq!(ledger["peakInFlight"]["confirm"], 1);
}
