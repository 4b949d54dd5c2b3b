//! Cancel: every row, every answer, the amount and the lock that are sent.

use serde_json::json;
use server::gateway::{CancelOutcome, Gateway as _};

use crate::bench::{Scripted, TID, cancel, canceled, charged, error, json_answer, order_in};
use crate::peer::answer;
use crate::rows::{self, Cancel};

#[tokio::test]
async fn every_error_answer_to_a_cancel_becomes_what_its_row_says_and_all_else_is_unknown_with_alarm()
 {
    let shop = Scripted::new(String::new()).await;
    let mut listed = 0;
    for status in rows::STATUSES {
        for code in rows::codes() {
            shop.answer(json_answer(status, &error(code)));
            let outcome = shop.kakaopay.cancel(&cancel(None, Some(33_000))).await;
            let class = match &outcome {
                CancelOutcome::Unknown(told) if told.alarm => Cancel::UnknownWithAlarm,
                CancelOutcome::Unknown(_) => Cancel::Unknown,
                CancelOutcome::RetryWithNewKey(told) if told.alarm => Cancel::NewKeyWithAlarm,
                CancelOutcome::Refused(told) if told.alarm => Cancel::RefusedWithAlarm,
                CancelOutcome::Refused(_) => Cancel::Refused,
                other => panic!("no row becomes {other:?}"),
            };
            let expected = rows::expected(rows::CANCEL, (status, code), Cancel::UnknownWithAlarm);
            assert_eq!(class, expected, "{status} {code}");
            listed += usize::from(
                rows::CANCEL
                    .iter()
                    .any(|row| (row.0, row.1) == (status, code)),
            );
        }
    }
    assert_eq!(listed, rows::CANCEL.len());
    // Whatever came, each call was one cancel.
    assert!(shop.calls().iter().all(|call| call == "cancel"));
}

#[tokio::test]
async fn a_cancel_names_its_amount_what_is_left_before_it_and_why() {
    let shop = Scripted::new(String::new()).await;
    for (amount, balance, sent_amount, in_all) in [
        (None, 33_000, 33_000, 33_000),
        (Some(3_000), 33_000, 3_000, 3_000),
        (None, 30_000, 30_000, 33_000),
        (Some(30_000), 30_000, 30_000, 33_000),
    ] {
        shop.answer(json_answer(200, &canceled(sent_amount, in_all, &json!({}))));
        let outcome = shop.kakaopay.cancel(&cancel(amount, Some(balance))).await;
        let CancelOutcome::Found(finding, told) = outcome else {
            panic!("{amount:?} of {balance}: {outcome:?}");
        };
        assert_eq!(finding, charged(in_all));
        assert!(
            told.code.ends_with(".A0000000000000000002") && !told.alarm,
            "{told:?}"
        );
        let sent = json!({
            "cid": "TC0ONETIME", "tid": TID, "cancel_amount": sent_amount, "cancel_tax_free_amount": 0,
            "cancel_available_amount": balance, "payload": "late success [r1]",
        });
        assert_eq!(shop.last_body(), sent);
    }
    let mut long = cancel(None, Some(33_000));
    long.reason = "환".repeat(250);
    let _ = shop.kakaopay.cancel(&long).await;
    assert_eq!(shop.last_body()["payload"], "환".repeat(200));
}

#[tokio::test]
async fn a_cancel_of_everything_that_nobody_counted_asks_first_what_is_left() {
    let shop = Scripted::new(json_answer(200, &canceled(30_000, 33_000, &json!({})))).await;
    shop.answer_order(json_answer(200, &order_in("PART_CANCEL_PAYMENT", 3_000)));
    let outcome = shop.kakaopay.cancel(&cancel(None, None)).await;
    assert!(
        matches!(&outcome, CancelOutcome::Found(finding, _) if *finding == charged(33_000)),
        "{outcome:?}"
    );
    assert_eq!(shop.calls(), ["order", "cancel"]);
    assert_eq!(shop.last_body()["cancel_amount"], 30_000);
    assert_eq!(shop.last_body()["cancel_available_amount"], 30_000);

    // Nothing is left: nothing is sent.
    shop.answer_order(json_answer(200, &order_in("CANCEL_PAYMENT", 33_000)));
    let outcome = shop.kakaopay.cancel(&cancel(None, None)).await;
    assert!(
        matches!(&outcome, CancelOutcome::Found(finding, _) if *finding == charged(33_000)),
        "{outcome:?}"
    );
    // Nor where nobody can tell what is left.
    for silent in [
        String::new(),
        json_answer(500, &error(-500)),
        json_answer(200, &order_in("AUTH_PASSWORD", 0)),
    ] {
        shop.answer_order(silent);
        let outcome = shop.kakaopay.cancel(&cancel(None, None)).await;
        assert!(matches!(outcome, CancelOutcome::Unknown(_)), "{outcome:?}");
    }
    let cancels = shop.calls().iter().filter(|call| *call == "cancel").count();
    assert_eq!(cancels, 1);
}

#[tokio::test]
async fn an_answer_that_does_not_show_the_cancel_is_unknown_with_alarm() {
    let shop = Scripted::new(String::new()).await;
    for changes in [
        json!({"tid": "T0000000000000000002"}),
        json!({"cid": "TC0OTHERS1"}),
        json!({"status": "CANCEL_PAYMENT"}),
        json!({"status": "SUCCESS_PAYMENT"}),
        json!({"status": null}),
        json!({"approved_cancel_amount": {"total": 2_999}}),
        json!({"approved_cancel_amount": null}),
        json!({"cancel_available_amount": {"total": 33_000}}),
        json!({"cancel_available_amount": null}),
        json!({"canceled_amount": {"total": 3_001}}),
        json!({"canceled_amount": null}),
        json!({"amount": null}),
        json!({"partner_order_id": null}),
        json!({"amount": 33_000}),
    ] {
        shop.answer(json_answer(200, &canceled(3_000, 3_000, &changes)));
        let outcome = shop
            .kakaopay
            .cancel(&cancel(Some(3_000), Some(33_000)))
            .await;
        assert!(
            matches!(&outcome, CancelOutcome::Unknown(told) if told.alarm),
            "{changes}: {outcome:?}"
        );
    }
    for text in [
        answer("200 OK", "", "<html>"),
        answer("429 Too Many Requests", "", ""),
        answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
    ] {
        shop.answer(text);
        let outcome = shop.kakaopay.cancel(&cancel(None, Some(33_000))).await;
        assert!(
            matches!(&outcome, CancelOutcome::Unknown(told) if told.alarm),
            "{outcome:?}"
        );
    }
    for text in [String::new(), answer("502 Bad Gateway", "", "<html>")] {
        shop.answer(text);
        let outcome = shop.kakaopay.cancel(&cancel(None, Some(33_000))).await;
        assert!(
            matches!(&outcome, CancelOutcome::Unknown(told) if !told.alarm),
            "{outcome:?}"
        );
    }
}
