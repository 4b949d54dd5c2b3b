//! Approve: every row, every answer, and that nothing is ever sent twice.

use payment::attempt::Finding;
use payment::money::Money;
use payment::reach::{Lost, NotSent};
use serde_json::json;
use server::gateway::{ConfirmOutcome, Gateway as _, InquiryOutcome};

use crate::bench::{
    ORDER, PATIENT, PRICE, Scripted, TID, approved, charged, confirm, error, json_answer, kakaopay,
    names, order_in, won,
};
use crate::peer::answer;
use crate::rows::{self, Approve};

/// What an approve became, when an order look-up showed no charge.
fn class(outcome: &ConfirmOutcome, asked: bool) -> Approve {
    match outcome {
        ConfirmOutcome::Found(Finding::Declined(class), told) => match (asked, told.alarm) {
            (false, false) => Approve::Declined(*class),
            (true, false) => Approve::Refused(*class),
            (_, true) => Approve::RefusedWithAlarm(*class),
        },
        ConfirmOutcome::Refused(told) if told.alarm => Approve::TooMany,
        ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm => Approve::AskWithAlarm,
        ConfirmOutcome::Lost(Lost::Inconclusive, _) => Approve::Ask,
        other => panic!("no row becomes {other:?}"),
    }
}

#[tokio::test]
async fn every_error_answer_to_an_approve_becomes_what_its_row_says_and_all_else_is_unknown_with_alarm()
 {
    let shop = Scripted::new(String::new()).await;
    let mut listed = 0;
    for status in rows::STATUSES {
        // With a success's status nothing is listed.
        for code in rows::codes() {
            shop.answer(json_answer(status, &error(code)));
            let before = shop.peer.requests().len();
            let outcome = shop.kakaopay.confirm(&confirm()).await;
            let calls = shop.calls().split_off(before);
            let asked = calls == ["approve", "order"];
            assert!(asked || calls == ["approve"], "{status} {code}: {calls:?}");
            let expected = rows::expected(rows::APPROVE, (status, code), Approve::AskWithAlarm);
            assert_eq!(class(&outcome, asked), expected, "{status} {code}");
            listed += usize::from(
                rows::APPROVE
                    .iter()
                    .any(|row| (row.0, row.1) == (status, code)),
            );
            let (ConfirmOutcome::Found(_, told)
            | ConfirmOutcome::Refused(told)
            | ConfirmOutcome::Lost(_, told)) = outcome
            else {
                panic!("{status} {code} was sent");
            };
            assert_eq!((told.status, told.code), (Some(status), code.to_string()));
        }
    }
    assert_eq!(listed, rows::APPROVE.len());
}

#[tokio::test]
async fn a_refused_approve_is_a_charge_if_the_order_shows_one_and_unknown_if_it_cannot_be_asked() {
    let shop = Scripted::new(String::new()).await;
    for (status, code, row) in rows::APPROVE {
        let (Approve::Refused(_) | Approve::RefusedWithAlarm(_)) = row else {
            continue;
        };
        shop.answer(json_answer(*status, &error(*code)));
        for (state, canceled) in [
            ("SUCCESS_PAYMENT", 0),
            ("PART_CANCEL_PAYMENT", 3_000),
            ("CANCEL_PAYMENT", 33_000),
        ] {
            shop.answer_order(json_answer(200, &order_in(state, canceled)));
            let outcome = shop.kakaopay.confirm(&confirm()).await;
            assert!(
                matches!(&outcome, ConfirmOutcome::Found(finding, told) if *finding == charged(canceled) && !told.alarm),
                "{code}: {outcome:?}"
            );
        }
        for silent in [
            String::new(),
            json_answer(500, &error(-500)),
            json_answer(400, &error(-721)),
            json_answer(401, &error(-401)),
            json_answer(200, &order_in("ISSUED_SID", 0)),
            json_answer(200, &order_in("A_NEW_STATUS", 0)),
            answer("502 Bad Gateway", "", "<html>"),
        ] {
            shop.answer_order(silent);
            let outcome = shop.kakaopay.confirm(&confirm()).await;
            assert!(
                matches!(outcome, ConfirmOutcome::Lost(Lost::Inconclusive, _)),
                "{code}: {outcome:?}"
            );
        }
    }
    // Every refusal was asked about once, and nothing was sent again.
    let approves = shop
        .calls()
        .iter()
        .filter(|call| *call == "approve")
        .count();
    assert_eq!(shop.calls().len(), 2 * approves);
}

#[tokio::test]
async fn a_failure_at_the_method_is_unknown_whatever_the_method_says_until_the_order_is_asked() {
    let shop = Scripted::new(String::new()).await;
    for (extras, told_code) in [
        (json!(null), "-780"),
        (json!({}), "-780"),
        (
            json!({"method_result_code": "USER_LOCKED", "method_result_message": "m"}),
            "-780.USER_LOCKED",
        ),
        (
            json!({"method_result_code": "BANK_FIRM_UNKNOWN"}),
            "-780.BANK_FIRM_UNKNOWN",
        ),
        (
            json!({"method_result_code": "LIMIT_EXCEEDED"}),
            "-780.LIMIT_EXCEEDED",
        ),
        (
            json!({"method_result_code": "A_NEW_ONE\r\nwith: a header"}),
            "-780.A_NEW_ONEwithaheader",
        ),
        (json!({"method_result_code": 51}), "-780.51"),
        (json!("text"), "-780"),
    ] {
        let body = json!({"error_code": -780, "error_message": "m", "extras": extras});
        shop.answer(json_answer(400, &body));
        let outcome = shop.kakaopay.confirm(&confirm()).await;
        let ConfirmOutcome::Lost(Lost::Inconclusive, told) = outcome else {
            panic!("{extras}: {outcome:?}");
        };
        assert_eq!((told.code.as_str(), told.alarm), (told_code, false));
    }
    assert!(shop.calls().iter().all(|call| call == "approve"));
    // What it was, the order tells.
    for (state, expected) in [
        ("SUCCESS_PAYMENT", charged(0)),
        (
            "FAIL_PAYMENT",
            Finding::Declined(payment::reach::Decline::Other),
        ),
        ("AUTH_PASSWORD", Finding::Pending { settled: false }),
    ] {
        shop.answer_order(json_answer(200, &order_in(state, 0)));
        let asked = shop.kakaopay.inquire(&names()).await;
        assert!(
            matches!(&asked, InquiryOutcome::Found(finding, _) if *finding == expected),
            "{state}: {asked:?}"
        );
    }
}

#[tokio::test]
async fn an_approval_counts_when_every_name_and_the_amount_are_ours() {
    let shop = Scripted::new(json_answer(200, &approved(&json!({})))).await;
    let ConfirmOutcome::Found(finding, told) = shop.kakaopay.confirm(&confirm()).await else {
        panic!("not approved");
    };
    assert_eq!(finding, charged(0));
    assert_eq!((told.status, told.alarm), (Some(200), false));
    // By this KakaoPay's own people find the call.
    assert_eq!(told.code, "APPROVED.A0000000000000000001");
    let sent = json!({
        "cid": "TC0ONETIME", "tid": TID, "partner_order_id": ORDER, "partner_user_id": "u_ord_1-2",
        "pg_token": "token-1", "payload": ORDER, "total_amount": PRICE.get(),
    });
    assert_eq!(shop.last_body(), sent);

    // Which fields describe the method, and whether there is an aid or a payload, is not certain: none is relied upon.
    for changes in [
        json!({"payment_method_type": "CARD", "card_info": {"kakaopay_issuer_corp": "x", "install_month": "00"}}),
        json!({"aid": null, "payload": null, "payment_method_type": null, "sid": "S1", "new": []}),
    ] {
        shop.answer(json_answer(200, &approved(&changes)));
        let outcome = shop.kakaopay.confirm(&confirm()).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Found(finding, told) if *finding == charged(0) && !told.alarm),
            "{changes}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn an_approval_of_another_payment_or_amount_is_unknown_with_alarm_and_the_order_decides() {
    let shop = Scripted::new(String::new()).await;
    for (changes, code) in [
        (json!({"tid": "T0000000000000000002"}), "another_payment"),
        (json!({"cid": "TC0OTHERS1"}), "another_payment"),
        (json!({"partner_order_id": "ord_1"}), "another_order"),
        (json!({"partner_user_id": "u_ord_1"}), "another_order"),
        (json!({"partner_order_id": null}), "charge_without_names"),
        (json!({"partner_user_id": null}), "charge_without_names"),
        (json!({"approved_at": null}), "approved_without_time"),
        (json!({"amount": {"total": 34_000}}), "another_amount"),
        (json!({"amount": {"total": -33_000}}), "another_amount"),
        (json!({"amount": null}), "another_amount"),
    ] {
        shop.answer(json_answer(200, &approved(&changes)));
        let outcome = shop.kakaopay.confirm(&confirm()).await;
        let ConfirmOutcome::Lost(Lost::Inconclusive, told) = outcome else {
            panic!("{changes}: {outcome:?}");
        };
        assert_eq!((told.code.as_str(), told.alarm), (code, true), "{changes}");
    }
    for undecodable in [
        json!({"amount": {"total": "33000"}}),
        json!({"amount": {"total": 33_000.5}}),
        json!({"amount": 33_000}),
        json!({"amount": {}}),
        json!({"tid": null}),
        json!({"cid": null}),
        json!({"partner_order_id": 7}),
    ] {
        shop.answer(json_answer(200, &approved(&undecodable)));
        let outcome = shop.kakaopay.confirm(&confirm()).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(Lost::Unreadable, told) if told.alarm),
            "{undecodable}: {outcome:?}"
        );
    }
    let mut dear = order_in("SUCCESS_PAYMENT", 0);
    dear["amount"]["total"] = json!(34_000);
    dear["cancel_available_amount"]["total"] = json!(34_000);
    shop.answer_order(json_answer(200, &dear));
    let asked = shop.kakaopay.inquire(&names()).await;
    let expected = Finding::Charged {
        charged: Money::won(won(34_000)),
        canceled: won(0),
    };
    assert!(
        matches!(&asked, InquiryOutcome::Found(finding, _) if *finding == expected),
        "{asked:?}"
    );
}

#[tokio::test]
async fn too_many_requests_is_refused_with_alarm_whatever_the_body() {
    let shop = Scripted::new(String::new()).await;
    for text in [
        answer("429 Too Many Requests", "", ""),
        answer("429 Too Many Requests", "retry-after: 60\r\n", "<html>"),
        json_answer(429, &json!({})),
    ] {
        shop.answer(text);
        let outcome = shop.kakaopay.confirm(&confirm()).await;
        let ConfirmOutcome::Refused(told) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((told.status, told.alarm), (Some(429), true));
    }
}

#[tokio::test]
async fn without_a_tid_nothing_is_sent_or_asked_and_an_operator_is_told() {
    let shop = Scripted::new(json_answer(200, &approved(&json!({})))).await;
    let mut call = confirm();
    call.handle = None;
    let outcome = shop.kakaopay.confirm(&call).await;
    assert_eq!(outcome, ConfirmOutcome::NotSent(NotSent::Connect));
    let mut unnamed = names();
    unnamed.handle = None;
    let asked = shop.kakaopay.inquire(&unnamed).await;
    assert!(
        matches!(&asked, InquiryOutcome::NoWord(told) if told.alarm && told.code == "no_tid"),
        "{asked:?}"
    );
    let mut cancel = crate::bench::cancel(None, Some(33_000));
    cancel.handle = None;
    let canceled = shop.kakaopay.cancel(&cancel).await;
    assert!(
        matches!(&canceled, server::gateway::CancelOutcome::Unknown(told) if told.alarm),
        "{canceled:?}"
    );
    assert!(shop.calls().is_empty());
}

#[tokio::test]
async fn the_look_up_after_a_refusal_is_within_the_time_of_the_confirm() {
    // The refusal comes at once, the look-up never: the confirm ends at its own limit all the same, and is unknown.
    let (heard, hung) = (json_answer(400, &error(-701)), tokio::sync::Notify::new());
    let hung = std::sync::Arc::new(hung);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::sync::Arc::clone(&hung);
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        crate::peer::request(&mut stream).await;
        crate::peer::say(&mut stream, &heard).await;
        let seen = crate::peer::request(&mut stream).await;
        assert!(seen.starts_with("POST /online/v1/payment/order "), "{seen}");
        asked.notify_one();
        // Until the client gives up.
        tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut Vec::new()).await
    });
    let limit = payment::time::Millis::from_secs(2);
    let mut config = crate::bench::config(&url, limit);
    config.inquiry_timeout = PATIENT.times(10);
    let kakaopay_of_it = server::gateway::kakaopay::KakaoPay::new(config).unwrap();
    let outcome = kakaopay_of_it.confirm(&confirm()).await;
    assert!(
        matches!(outcome, ConfirmOutcome::Lost(Lost::Inconclusive, _)),
        "{outcome:?}"
    );
    hung.notified().await;
    let _ = serving.await.unwrap();
    // And an adapter with time enough hears it.
    let shop = Scripted::new(json_answer(400, &error(-701))).await;
    let patient = kakaopay(&shop.peer.url, PATIENT);
    let outcome = patient.confirm(&confirm()).await;
    assert!(
        matches!(outcome, ConfirmOutcome::Found(Finding::Declined(_), _)),
        "{outcome:?}"
    );
}
