//! Opening a window: a session that asks for what the order costs, and whose payment has a name.

use serde_json::json;
use server::gateway::{Gateway as _, OpenOutcome};

use crate::bench::{Scripted, error, intent_id, json_answer, session, window, with};
use crate::peer::answer;

#[tokio::test]
async fn a_session_authorises_only_and_comes_back_with_its_own_name() {
    let shop = Scripted::new(String::new()).await;
    shop.answer(json_answer(200, &session(&shop.peer.url)));
    let opened = shop.stripe.open(&window()).await;
    let OpenOutcome::Opened {
        window: shown,
        handle,
    } = opened
    else {
        panic!("{opened:?}");
    };
    assert_eq!(handle, Some(intent_id()));
    assert_eq!(shown.desktop, format!("{}/window/stripe/1", shop.peer.url));
    assert_eq!(shown.desktop, shown.mobile);
    let sent = shop.last();
    for part in [
        "POST /v1/checkout/sessions ",
        "payment_intent_data%5Bcapture_method%5D=manual",
        "payment_intent_data%5Bmetadata%5D%5Border%5D=ord_1-2",
        "%5Bunit_amount%5D=33000",
        "%5Bcurrency%5D=krw",
        "return%2Fref%3Fpg_token%3D%7BCHECKOUT_SESSION_ID%7D",
        "cancel_url=https%3A%2F%2Fshop.example%2Fcheckout%2Ford_1%2Freturn%2Fref%3Fended%3Dclosed",
    ] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    let until = window().authenticate_by.0 / 1_000;
    let told = sent.split("expires_at=").nth(1).unwrap();
    let told: i64 = told.split('&').next().unwrap().trim().parse().unwrap();
    assert!((told - until).abs() < 60, "{told} {until}");
}

#[tokio::test]
async fn what_cannot_be_paid_and_asked_about_is_no_window() {
    let shop = Scripted::new(String::new()).await;
    let good = session(&shop.peer.url);
    for changes in [
        json!({"payment_intent": null}),
        json!({"payment_intent": "with a space"}),
        json!({"amount_total": 34_000}),
        json!({"amount_total": null}),
        json!({"currency": "usd"}),
        json!({"url": null}),
        json!({"url": "https://elsewhere.example/c"}),
    ] {
        shop.answer(json_answer(200, &with(good.clone(), &changes)));
        let opened = shop.stripe.open(&window()).await;
        assert!(
            matches!(&opened, OpenOutcome::Refused(told) if told.alarm),
            "{changes}: {opened:?}"
        );
    }
    for (status, word, alarm) in [
        (400, "parameter_unknown", true),
        (401, "invalid_request_error", true),
        (409, "idempotency_key_in_use", false),
        (429, "rate_limit", false),
        (500, "api_error", false),
    ] {
        shop.answer(json_answer(status, &error(word)));
        let opened = shop.stripe.open(&window()).await;
        assert!(
            matches!(&opened, OpenOutcome::Refused(told) if told.alarm == alarm),
            "{status} {word}: {opened:?}"
        );
    }
    for text in [
        answer("502 Bad Gateway", "", "<html>"),
        answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
    ] {
        shop.answer(text);
        let opened = shop.stripe.open(&window()).await;
        assert!(matches!(opened, OpenOutcome::Refused(_)), "{opened:?}");
    }
    shop.answer(String::new());
    let opened = shop.stripe.open(&window()).await;
    assert!(matches!(opened, OpenOutcome::NoAnswer(_)), "{opened:?}");
    assert!(shop.calls().iter().all(|call| call == "sessions"));
}
