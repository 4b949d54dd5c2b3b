//! Order look-ups: every status, every error, and whose the listed cancels are.

use payment::attempt::Finding;
use payment::reach::Decline::{AuthenticationFailed, Other};
use serde_json::json;
use server::gateway::{Gateway as _, InquiryOutcome};

use crate::bench::{Scripted, TID, charged, error, json_answer, names, order_in};
use crate::peer::answer;
use crate::rows::{self, Asked};

#[tokio::test]
async fn every_status_of_an_order_becomes_what_its_row_says() {
    let shop = Scripted::new(String::new()).await;
    let pending = Finding::Pending { settled: false };
    let rows = [
        ("READY", 0, pending),
        ("SEND_TMS", 0, pending),
        ("OPEN_PAYMENT", 0, pending),
        ("SELECT_METHOD", 0, pending),
        ("ARS_WAITING", 0, pending),
        ("AUTH_PASSWORD", 0, pending),
        ("SUCCESS_PAYMENT", 0, charged(0)),
        ("PART_CANCEL_PAYMENT", 3_000, charged(3_000)),
        ("CANCEL_PAYMENT", 33_000, charged(33_000)),
        (
            "FAIL_AUTH_PASSWORD",
            0,
            Finding::Declined(AuthenticationFailed),
        ),
        ("QUIT_PAYMENT", 0, Finding::Declined(Other)),
        ("FAIL_PAYMENT", 0, Finding::Declined(Other)),
    ];
    for (status, canceled, expected) in rows {
        shop.answer_order(json_answer(200, &order_in(status, canceled)));
        let asked = shop.kakaopay.inquire(&names()).await;
        let InquiryOutcome::Found(finding, told) = asked else {
            panic!("{status}: {asked:?}");
        };
        assert_eq!(finding, expected, "{status}");
        assert_eq!(
            (told.status, told.code.as_str(), told.alarm),
            (Some(200), status, false)
        );
    }
    assert_eq!(shop.last_body(), json!({"cid": "TC0ONETIME", "tid": TID}));
    // The thirteenth is of another kind of payment; what is none of them is not known.
    for status in ["ISSUED_SID", "PAID", "success_payment", ""] {
        shop.answer_order(json_answer(200, &order_in(status, 0)));
        let asked = shop.kakaopay.inquire(&names()).await;
        assert!(
            matches!(&asked, InquiryOutcome::NoWord(told) if told.alarm),
            "{status}: {asked:?}"
        );
    }
}

#[tokio::test]
async fn every_error_answer_to_a_look_up_becomes_what_its_row_says_and_never_an_end() {
    let shop = Scripted::new(String::new()).await;
    let mut listed = 0;
    for status in rows::STATUSES {
        for code in rows::codes() {
            shop.answer_order(json_answer(status, &error(code)));
            let asked = shop.kakaopay.inquire(&names()).await;
            let class = match &asked {
                InquiryOutcome::NoWord(told) if told.alarm => Asked::NoWordWithAlarm,
                InquiryOutcome::NoWord(_) => Asked::NoWord,
                InquiryOutcome::Found(Finding::NotFound { settled: false }, told) if told.alarm => {
                    Asked::NotFoundWithAlarm
                }
                InquiryOutcome::Found(Finding::NotFound { settled: false }, _) => Asked::NotFound,
                other => panic!("no row becomes {other:?}"),
            };
            let expected = rows::expected(rows::ASKED, (status, code), Asked::NoWordWithAlarm);
            assert_eq!(class, expected, "{status} {code}");
            listed += usize::from(
                rows::ASKED
                    .iter()
                    .any(|row| (row.0, row.1) == (status, code)),
            );
        }
    }
    assert_eq!(listed, rows::ASKED.len());
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_no_answer_or_no_word() {
    let shop = Scripted::new(String::new()).await;
    for text in [
        answer("502 Bad Gateway", "content-type: text/html\r\n", "<html>"),
        answer("503 Service Unavailable", "", ""),
        answer("404 Not Found", "", "<html>no such page</html>"),
        answer("200 OK", "", ""),
        answer("200 OK", "", "{}"),
        answer("200 OK", "", r#"{"tid":"T00000000"#),
        // The old API's errors are another wire.
        json_answer(400, &json!({"code": -721, "msg": "m"})),
    ] {
        shop.answer_order(text.clone());
        let asked = shop.kakaopay.inquire(&names()).await;
        assert!(
            matches!(asked, InquiryOutcome::NoAnswer(_)),
            "{text}: {asked:?}"
        );
    }
    for text in [
        answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
        answer("429 Too Many Requests", "", ""),
        answer("204 No Content", "", ""),
    ] {
        shop.answer_order(text.clone());
        let asked = shop.kakaopay.inquire(&names()).await;
        assert!(
            matches!(&asked, InquiryOutcome::NoWord(told) if told.alarm),
            "{text}: {asked:?}"
        );
    }
}

/// Both readings of a fact that is seen in a copy only: whether an order's list repeats what was given along with a call.
#[tokio::test]
async fn listed_cancels_are_told_apart_by_their_payload_or_not_at_all() {
    let shop = Scripted::new(String::new()).await;
    let told = async |body: &serde_json::Value| {
        shop.answer_order(json_answer(200, body));
        match shop.kakaopay.inquire(&names()).await {
            InquiryOutcome::Found(finding, told) => {
                assert_eq!(finding, charged(3_000));
                assert!(!told.alarm);
                told.given_back
            }
            other => panic!("{other:?}"),
        }
    };
    let repeated = order_in("PART_CANCEL_PAYMENT", 3_000);
    assert_eq!(
        told(&repeated).await,
        Some(vec!["late success [r1]".to_owned()])
    );
    let mut silent = repeated.clone();
    for action in silent["payment_action_details"].as_array_mut().unwrap() {
        action.as_object_mut().unwrap().remove("payload");
    }
    assert_eq!(told(&silent).await, None);
    let mut listless = repeated;
    listless
        .as_object_mut()
        .unwrap()
        .remove("payment_action_details");
    assert_eq!(told(&listless).await, None);
}
