//! Ready: what is sent, and that nothing but a whole answer opens a window.

use serde_json::{Value, json};
use server::gateway::{Gateway as _, OpenOutcome, Window};

use crate::bench::{ORDER, Scripted, TID, error, json_answer, tid, window, with};
use crate::peer::answer;
use crate::rows;

fn ready(base: &str, changes: &Value) -> String {
    let body = json!({
        "tid": TID, "next_redirect_app_url": format!("{base}/app/h"),
        "next_redirect_mobile_url": format!("{base}/mobile/h"), "next_redirect_pc_url": format!("{base}/pc/h"),
        "android_app_scheme": "kakaotalk://kakaopay/pg?url=x", "ios_app_scheme": "kakaotalk://kakaopay/pg?url=x",
        "created_at": "2026-10-02T10:14:30",
    });
    json_answer(200, &with(body, changes))
}

#[tokio::test]
async fn a_ready_opens_a_window_for_each_kind_of_device_and_names_the_payment() {
    let shop = Scripted::new(String::new()).await;
    let base = shop.peer.url.clone();
    for changes in [
        json!({}),
        // The application's addresses are not certain to be there, and are not needed.
        json!({"next_redirect_app_url": null, "android_app_scheme": null, "ios_app_scheme": null, "created_at": null}),
    ] {
        shop.answer(ready(&base, &changes));
        let expected = OpenOutcome::Opened {
            window: Window {
                desktop: format!("{base}/pc/h"),
                mobile: format!("{base}/mobile/h"),
            },
            handle: Some(tid()),
        };
        assert_eq!(shop.kakaopay.open(&window()).await, expected);
    }
    let sent = json!({
        "cid": "TC0ONETIME", "partner_order_id": ORDER, "partner_user_id": "u_ord_1-2", "item_name": "머그컵 외 1건",
        "quantity": 2, "total_amount": 33_000, "tax_free_amount": 0, "approval_url": "https://shop.example/ok?a=1",
        "cancel_url": "https://shop.example/closed", "fail_url": "https://shop.example/fail",
    });
    assert_eq!(shop.last_body(), sent);
    assert_eq!(shop.kakaopay.window_origins(), [base.clone()]);
    let head = shop.peer.requests().pop().unwrap();
    assert!(
        head.starts_with("POST /online/v1/payment/ready HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\nauthorization: SECRET_KEY DEV_fake\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\ncontent-type: application/json\r\n"),
        "{head}"
    );
    assert!(!head.contains("idempotency"), "{head}");

    let mut long = window();
    long.order_name = "컵".repeat(150);
    shop.answer(ready(&base, &json!({})));
    let _ = shop.kakaopay.open(&long).await;
    assert_eq!(shop.last_body()["item_name"], "컵".repeat(100));
}

#[tokio::test]
async fn an_answer_without_a_usable_name_and_addresses_opens_nothing_and_alarms() {
    let shop = Scripted::new(String::new()).await;
    let base = shop.peer.url.clone();
    for changes in [
        json!({"tid": null}),
        json!({"tid": ""}),
        json!({"tid": "T 1"}),
        json!({"tid": "T".repeat(65)}),
        json!({"tid": 7}),
        json!({"next_redirect_pc_url": null}),
        json!({"next_redirect_mobile_url": null}),
        json!({"next_redirect_pc_url": "/pc/h"}),
        json!({"next_redirect_pc_url": "javascript:alert(1)"}),
        json!({"next_redirect_mobile_url": "https://evil.example/mobile/h"}),
    ] {
        shop.answer(ready(&base, &changes));
        let outcome = shop.kakaopay.open(&window()).await;
        assert!(
            matches!(&outcome, OpenOutcome::Refused(told) if told.alarm),
            "{changes}: {outcome:?}"
        );
    }
    // An address that KakaoPay would refuse is not even sent.
    let calls = shop.calls().len();
    let mut long = window();
    long.fail_url = format!("https://shop.example/{}", "f".repeat(255));
    let outcome = shop.kakaopay.open(&long).await;
    assert!(matches!(&outcome, OpenOutcome::Refused(told) if told.alarm));
    assert_eq!(shop.calls().len(), calls);
}

#[tokio::test]
async fn any_error_opens_nothing_and_only_passing_trouble_is_quiet() {
    let shop = Scripted::new(String::new()).await;
    for status in rows::STATUSES {
        for code in rows::codes() {
            shop.answer(json_answer(status, &error(code)));
            let outcome = shop.kakaopay.open(&window()).await;
            let OpenOutcome::Refused(told) = outcome else {
                panic!("{status} {code}: {outcome:?}");
            };
            let passes = rows::expected(rows::ASKED, (status, code), rows::Asked::NoWordWithAlarm);
            assert_eq!(told.alarm, passes != rows::Asked::NoWord, "{status} {code}");
        }
    }
    for text in [
        answer("502 Bad Gateway", "", "<html>"),
        answer("500 Internal Server Error", "", ""),
        answer("429 Too Many Requests", "", ""),
    ] {
        shop.answer(text);
        let outcome = shop.kakaopay.open(&window()).await;
        assert!(
            matches!(&outcome, OpenOutcome::Refused(told) if !told.alarm),
            "{outcome:?}"
        );
    }
    for text in [
        answer("200 OK", "", "<html>"),
        answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
    ] {
        shop.answer(text);
        let outcome = shop.kakaopay.open(&window()).await;
        assert!(
            matches!(&outcome, OpenOutcome::Refused(told) if told.alarm),
            "{outcome:?}"
        );
    }
    shop.answer(String::new());
    let outcome = shop.kakaopay.open(&window()).await;
    assert!(matches!(outcome, OpenOutcome::NoAnswer(_)), "{outcome:?}");
    assert!(shop.calls().iter().all(|call| call == "ready"));
}
