//! Captures and look-ups: every row, every answer, and that nothing unproven is ever a failure.

use payment::attempt::Finding;
use payment::reach::{Decline, Lost, NotSent};
use serde_json::json;
use server::gateway::{ConfirmOutcome, Gateway as _, InquiryOutcome};

use crate::bench::{
    INTENT, Scripted, charge, charged, confirm, error, intent, json_answer, names, with,
};
use crate::peer::answer;
use crate::rows::{self, Capture};

/// What a capture became, when a look-up showed a payment that nobody has authorised.
fn class(outcome: &ConfirmOutcome) -> Capture {
    match outcome {
        ConfirmOutcome::Found(Finding::Declined(class), told) if told.alarm => {
            Capture::RefusedWithAlarm(*class)
        }
        ConfirmOutcome::Found(Finding::Declined(class), _) => Capture::Refused(*class),
        ConfirmOutcome::Refused(told) if told.alarm => Capture::TooManyWithAlarm,
        ConfirmOutcome::Refused(_) => Capture::TooMany,
        ConfirmOutcome::Lost(Lost::InProgress, told) if !told.alarm => Capture::InProgress,
        ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm => Capture::AskWithAlarm,
        ConfirmOutcome::Lost(Lost::Inconclusive, _) => Capture::Ask,
        other => panic!("no row becomes {other:?}"),
    }
}

#[tokio::test]
async fn every_error_answer_to_a_capture_becomes_what_its_row_says_and_all_else_is_unknown() {
    let shop = Scripted::new(String::new()).await;
    let mut listed = 0;
    for status in rows::STATUSES {
        for word in rows::words() {
            shop.answer(json_answer(status, &error(word)));
            let before = shop.calls().len();
            let outcome = shop.stripe.confirm(&confirm()).await;
            let calls = shop.calls().split_off(before);
            let unlisted = (Capture::Ask, Capture::AskWithAlarm);
            let expected = rows::expected(rows::CAPTURE, (status, word), unlisted);
            let refused = matches!(
                expected,
                Capture::Refused(_) | Capture::RefusedWithAlarm(_) | Capture::State
            );
            let asks: &[&str] = if refused {
                &["capture", "look"]
            } else {
                &["capture"]
            };
            assert_eq!(calls, asks, "{status} {word}");
            let expected = match expected {
                Capture::State => Capture::Refused(Decline::AuthenticationFailed),
                other => other,
            };
            assert_eq!(class(&outcome), expected, "{status} {word}");
            let pair = |row: &&(u16, &str, Capture)| (row.0, row.1) == (status, word);
            listed += rows::CAPTURE.iter().filter(pair).count();
        }
    }
    assert_eq!(listed, rows::CAPTURE.len());
}

#[tokio::test]
async fn a_refused_capture_is_a_charge_if_the_payment_shows_one_and_unknown_if_it_cannot_be_asked()
{
    let shop = Scripted::new(String::new()).await;
    for (status, word, row) in rows::CAPTURE {
        let (Capture::Refused(_) | Capture::RefusedWithAlarm(_) | Capture::State) = row else {
            continue;
        };
        shop.answer(json_answer(*status, &error(word)));
        for refunds in [
            &[][..],
            &[(3_000, "r")][..],
            &[(30_000, "b"), (3_000, "a")][..],
        ] {
            shop.answer_looks(&[json_answer(200, &intent("succeeded", refunds))]);
            let outcome = shop.stripe.confirm(&confirm()).await;
            let given: i64 = refunds.iter().map(|(amount, _)| amount).sum();
            assert!(
                matches!(&outcome, ConfirmOutcome::Found(finding, told) if *finding == charged(given) && !told.alarm),
                "{word}: {outcome:?}"
            );
        }
        for silent in [
            String::new(),
            json_answer(500, &error("api_error")),
            json_answer(404, &error("resource_missing")),
            json_answer(401, &error("invalid_request_error")),
            json_answer(200, &intent("a_new_status", &[])),
            // Something else may be at work on it.
            json_answer(200, &intent("processing", &[])),
            answer("502 Bad Gateway", "", "<html>"),
        ] {
            shop.answer_looks(&[silent]);
            let outcome = shop.stripe.confirm(&confirm()).await;
            assert!(
                matches!(outcome, ConfirmOutcome::Lost(Lost::Inconclusive, _)),
                "{word}: {outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_decline_ends_the_authorisation_that_it_leaves_or_stays_unknown() {
    let shop = Scripted::new(json_answer(402, &error("card_declined"))).await;
    shop.answer_looks(&[json_answer(200, &intent("requires_capture", &[]))]);
    shop.answer_end(json_answer(200, &intent("canceled", &[])));
    let outcome = shop.stripe.confirm(&confirm()).await;
    assert!(
        matches!(
            outcome,
            ConfirmOutcome::Found(Finding::Declined(Decline::CardRefused), _)
        ),
        "{outcome:?}"
    );
    assert_eq!(shop.calls(), ["capture", "look", "cancel"]);
    // While it could be captured, that nobody will is no proof.
    for ending in [
        String::new(),
        json_answer(500, &error("api_error")),
        json_answer(400, &error("payment_intent_unexpected_state")),
    ] {
        shop.answer_end(ending);
        let outcome = shop.stripe.confirm(&confirm()).await;
        assert!(
            matches!(outcome, ConfirmOutcome::Lost(Lost::Inconclusive, _)),
            "{outcome:?}"
        );
    }
    // Refused for the payment's state, which then is the right one: one of both is wrong.
    shop.answer(json_answer(400, &error("payment_intent_unexpected_state")));
    let outcome = shop.stripe.confirm(&confirm()).await;
    assert!(
        matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
        "{outcome:?}"
    );
    shop.answer_looks(&[json_answer(200, &intent("canceled", &[]))]);
    let outcome = shop.stripe.confirm(&confirm()).await;
    assert!(
        matches!(
            outcome,
            ConfirmOutcome::Found(Finding::Declined(Decline::SessionExpired), _)
        ),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_capture_counts_when_the_payment_the_order_and_the_amount_are_ours() {
    let good = intent("succeeded", &[]);
    let shop = Scripted::new(json_answer(200, &good)).await;
    let outcome = shop.stripe.confirm(&confirm()).await;
    assert!(
        matches!(&outcome, ConfirmOutcome::Found(finding, told) if *finding == charged(0) && !told.alarm),
        "{outcome:?}"
    );
    let sent = shop.last().to_ascii_lowercase();
    for part in [
        "post /v1/payment_intents/pi_3oxt00000000000000000001/capture ",
        "authorization: bearer sk_test_fake\r\n",
        "idempotency-key: idem-1\r\n",
        "stripe-version: 2020-08-27\r\n",
        "\r\n\r\namount_to_capture=33000",
    ] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    for (changes, code) in [
        (json!({"id": "pi_other"}), "another_payment"),
        (json!({"metadata": {"order": "ord_1"}}), "another_order"),
        (json!({"metadata": {}}), "another_order"),
        (json!({"status": "requires_capture"}), "capture_not_seen"),
        (json!({"status": "processing"}), "capture_not_seen"),
        (json!({"status": "canceled"}), "capture_not_seen"),
        (json!({"status": "a_new_one"}), "unknown_status"),
        (json!({"charges": null}), "charge_not_listed"),
        (json!({"charges": {"data": []}}), "charge_not_listed"),
        (
            json!({"charges": {"data": [charge(&[]), charge(&[])]}}),
            "charge_not_listed",
        ),
        (json!({"amount_received": null}), "charge_without_amounts"),
        (json!({"amount_received": 0}), "charge_beside_another_sum"),
    ] {
        shop.answer(json_answer(200, &with(good.clone(), &changes)));
        let outcome = shop.stripe.confirm(&confirm()).await;
        let ConfirmOutcome::Lost(Lost::Inconclusive, told) = outcome else {
            panic!("{changes}: {outcome:?}");
        };
        assert_eq!((told.code.as_str(), told.alarm), (code, true), "{changes}");
    }
    // Another amount or currency was really charged: the machine gives it back.
    for changes in [
        json!({"amount_received": 34_000}),
        json!({"currency": "usd"}),
    ] {
        shop.answer(json_answer(200, &with(good.clone(), &changes)));
        let outcome = shop.stripe.confirm(&confirm()).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Found(Finding::Charged { .. }, told) if told.alarm),
            "{changes}: {outcome:?}"
        );
    }
    for text in [
        json_answer(200, &json!({})),
        answer("200 OK", "", "<html>"),
        answer("500 Internal Server Error", "", ""),
        answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
        String::new(),
    ] {
        shop.answer(text);
        let outcome = shop.stripe.confirm(&confirm()).await;
        assert!(matches!(outcome, ConfirmOutcome::Lost(..)), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_look_up_tells_the_state_and_nothing_that_it_does_not_prove() {
    let shop = Scripted::new(String::new()).await;
    let pending = Finding::Pending { settled: false };
    for (status, expected) in [
        ("requires_payment_method", pending),
        ("requires_confirmation", pending),
        ("requires_action", pending),
        ("processing", pending),
        ("requires_capture", pending),
        ("canceled", Finding::Lapsed),
        ("succeeded", charged(0)),
    ] {
        shop.answer_looks(&[json_answer(200, &intent(status, &[]))]);
        let asked = shop.stripe.inquire(&names()).await;
        assert!(
            matches!(&asked, InquiryOutcome::Found(finding, told) if *finding == expected && !told.alarm),
            "{status}: {asked:?}"
        );
    }
    let given = [(20_000, "second"), (3_000, "first")];
    shop.answer_looks(&[json_answer(200, &intent("succeeded", &given))]);
    let asked = shop.stripe.inquire(&names()).await;
    let InquiryOutcome::Found(finding, told) = asked else {
        panic!("{asked:?}");
    };
    assert_eq!(finding, charged(23_000));
    let reasons = vec!["first".to_owned(), "second".to_owned()];
    assert_eq!(told.given_back, Some(reasons));
    for (status, word, alarm) in [
        (401, "invalid_request_error", true),
        (403, "account_invalid", true),
        (429, "rate_limit", false),
        (500, "api_error", false),
    ] {
        shop.answer_looks(&[json_answer(status, &error(word))]);
        let asked = shop.stripe.inquire(&names()).await;
        assert!(
            matches!(&asked, InquiryOutcome::NoWord(told) if told.alarm == alarm),
            "{asked:?}"
        );
    }
    shop.answer_looks(&[json_answer(404, &error("resource_missing"))]);
    let asked = shop.stripe.inquire(&names()).await;
    assert!(
        matches!(&asked, InquiryOutcome::Found(Finding::NotFound { settled: false }, told) if told.alarm),
        "{asked:?}"
    );
    assert!(shop.last().contains(INTENT));
}

#[tokio::test]
async fn without_a_name_nothing_is_sent_or_asked_and_an_operator_is_told() {
    let shop = Scripted::new(json_answer(200, &intent("succeeded", &[]))).await;
    let mut call = confirm();
    call.handle = None;
    let outcome = shop.stripe.confirm(&call).await;
    assert_eq!(outcome, ConfirmOutcome::NotSent(NotSent::Connect));
    let mut unnamed = names();
    unnamed.handle = None;
    for asked in [
        shop.stripe.inquire(&unnamed).await,
        shop.stripe.close(&unnamed).await,
    ] {
        assert!(
            matches!(&asked, InquiryOutcome::NoWord(told) if told.alarm),
            "{asked:?}"
        );
    }
    assert!(shop.calls().is_empty());
}
