//! Refunds: every row, every answer.

use serde_json::json;
use server::gateway::{CancelOutcome, Gateway as _};

use crate::bench::{Scripted, cancel, charge, charged, error, json_answer, refund, replayed, with};
use crate::peer::answer;
use crate::rows::{self, Refund};

fn class(outcome: &CancelOutcome) -> Refund {
    match outcome {
        CancelOutcome::Unknown(told) if told.alarm => Refund::UnknownWithAlarm,
        CancelOutcome::Unknown(_) => Refund::Unknown,
        CancelOutcome::RetryWithNewKey(told) if told.alarm => Refund::NewKeyWithAlarm,
        CancelOutcome::Refused(told) if told.alarm => Refund::RefusedWithAlarm,
        CancelOutcome::Refused(_) => Refund::Refused,
        other => panic!("no row becomes {other:?}"),
    }
}

#[tokio::test]
async fn every_error_answer_to_a_refund_becomes_what_its_row_says_and_all_else_is_unknown() {
    let shop = Scripted::new(String::new()).await;
    let call = cancel(Some(3_000), Some(33_000));
    let unlisted = (Refund::Unknown, Refund::UnknownWithAlarm);
    let mut listed = 0;
    for status in rows::STATUSES {
        for word in rows::words() {
            let expected = rows::expected(rows::REFUND, (status, word), unlisted);
            shop.answer(json_answer(status, &error(word)));
            let outcome = shop.stripe.cancel(&call).await;
            assert_eq!(class(&outcome), expected, "{status} {word}");
            // An answer without a decision that is bound to the key would come for ever.
            let bound = if expected == Refund::Unknown {
                Refund::NewKeyWithAlarm
            } else {
                expected
            };
            shop.answer(replayed(status, &error(word)));
            let outcome = shop.stripe.cancel(&call).await;
            assert_eq!(class(&outcome), bound, "{status} {word} again");
            let pair = |row: &&(u16, &str, Refund)| (row.0, row.1) == (status, word);
            listed += rows::REFUND.iter().filter(pair).count();
        }
    }
    assert_eq!(listed, rows::REFUND.len());
    assert!(shop.calls().iter().all(|call| call == "refunds"));
}

#[tokio::test]
async fn a_refund_counts_when_payment_amount_and_sum_are_as_they_must_be() {
    let shop = Scripted::new(String::new()).await;
    for (amount, balance, answered, all) in [
        (Some(3_000), Some(33_000), 3_000, &[(3_000, "a")][..]),
        (
            Some(3_000),
            Some(30_000),
            3_000,
            &[(3_000, "b"), (3_000, "a")][..],
        ),
        (
            None,
            Some(30_000),
            30_000,
            &[(30_000, "b"), (3_000, "a")][..],
        ),
        (None, None, 33_000, &[(33_000, "a")][..]),
    ] {
        shop.answer(json_answer(200, &refund(answered, all)));
        let outcome = shop.stripe.cancel(&cancel(amount, balance)).await;
        let given: i64 = all.iter().map(|(amount, _)| amount).sum();
        let CancelOutcome::Found(finding, told) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((finding, told.alarm), (charged(given), false));
        let reasons = all.iter().rev().map(|(_, reason)| (*reason).to_owned());
        assert_eq!(told.given_back, Some(reasons.collect()));
        let sent = shop.last();
        assert!(
            sent.to_ascii_lowercase()
                .contains("idempotency-key: cancel-1\r\n")
        );
        let named = amount.or(balance).map(|amount| format!("amount={amount}"));
        assert_eq!(
            sent.contains("&amount="),
            named.is_some(),
            "what is left is named where it is known: {sent}"
        );
        assert!(named.is_none_or(|named| sent.contains(&named)), "{sent}");
    }
}

#[tokio::test]
async fn a_refund_that_is_not_as_it_must_be_leaves_doubt() {
    let shop = Scripted::new(String::new()).await;
    let good = || refund(3_000, &[(3_000, "a")]);
    let call = cancel(Some(3_000), Some(33_000));
    for (changes, code) in [
        (json!({"amount": 3_001}), "refund_of_another_amount"),
        (json!({"charge": "ch_1"}), "refund_without_charge"),
        (
            json!({"charge": with(charge(&[(3_000, "a")]), &json!({"payment_intent": "pi_other"}))}),
            "another_payment",
        ),
        (
            json!({"charge": charge(&[(6_000, "a")])}),
            "refund_beside_another_sum",
        ),
        (json!({"status": "requires_action"}), "refund_in_doubt"),
        (json!({"status": null}), "refund_in_doubt"),
    ] {
        shop.answer(json_answer(200, &with(good(), &changes)));
        let outcome = shop.stripe.cancel(&call).await;
        let CancelOutcome::Unknown(told) = outcome else {
            panic!("{changes}: {outcome:?}");
        };
        assert_eq!((told.code.as_str(), told.alarm), (code, true), "{changes}");
    }
    shop.answer(json_answer(
        200,
        &with(good(), &json!({"status": "pending"})),
    ));
    let outcome = shop.stripe.cancel(&call).await;
    assert!(
        matches!(&outcome, CancelOutcome::Found(finding, _) if *finding == charged(3_000)),
        "{outcome:?}"
    );
    shop.answer(json_answer(
        200,
        &with(good(), &json!({"status": "failed"})),
    ));
    let outcome = shop.stripe.cancel(&call).await;
    assert_eq!(class(&outcome), Refund::NewKeyWithAlarm);
    for text in [
        answer("200 OK", "", "<html>"),
        answer("502 Bad Gateway", "", "<html>"),
        answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
        String::new(),
    ] {
        shop.answer(text);
        let outcome = shop.stripe.cancel(&call).await;
        assert!(matches!(outcome, CancelOutcome::Unknown(_)), "{outcome:?}");
    }
}
