//! The end of what nobody captured: proven by Stripe's own word, or no end at all.

use payment::attempt::Finding;
use server::gateway::{Gateway as _, InquiryOutcome};

use crate::bench::{Scripted, charged, error, intent, json_answer, names};

#[tokio::test]
async fn what_can_still_be_captured_is_ended_before_it_is_said_to_be_over() {
    let authorised = json_answer(200, &intent("requires_capture", &[]));
    let shop = Scripted::new(String::new()).await;
    shop.answer_looks(std::slice::from_ref(&authorised));
    shop.answer_end(json_answer(200, &intent("canceled", &[])));
    let closed = shop.stripe.close(&names()).await;
    assert!(
        matches!(closed, InquiryOutcome::Found(Finding::Lapsed, _)),
        "{closed:?}"
    );
    assert_eq!(shop.calls(), ["look", "cancel"]);
    assert!(shop.last().contains("cancellation_reason=abandoned"));
    // The capture came first: the refusal to end it leads to the charge.
    shop.answer_end(json_answer(400, &error("payment_intent_unexpected_state")));
    shop.answer_looks(&[
        authorised.clone(),
        json_answer(200, &intent("succeeded", &[])),
    ]);
    let closed = shop.stripe.close(&names()).await;
    assert!(
        matches!(&closed, InquiryOutcome::Found(finding, _) if *finding == charged(0)),
        "{closed:?}"
    );
    // Neither ended nor captured: no word, whatever the answer was.
    for ending in [
        String::new(),
        json_answer(500, &error("api_error")),
        json_answer(429, &error("lock_timeout")),
        json_answer(200, &intent("requires_capture", &[])),
    ] {
        for status in ["requires_capture", "processing"] {
            shop.answer_end(ending.clone());
            shop.answer_looks(&[json_answer(200, &intent(status, &[]))]);
            let closed = shop.stripe.close(&names()).await;
            assert!(matches!(closed, InquiryOutcome::NoWord(_)), "{closed:?}");
        }
    }
    // Its answer was lost, and it had been ended.
    shop.answer_end(String::new());
    shop.answer_looks(&[authorised, json_answer(200, &intent("canceled", &[]))]);
    let closed = shop.stripe.close(&names()).await;
    assert!(
        matches!(closed, InquiryOutcome::Found(Finding::Lapsed, _)),
        "{closed:?}"
    );
}

#[tokio::test]
async fn what_nobody_authorised_and_what_is_over_is_only_asked_about() {
    let shop = Scripted::new(String::new()).await;
    for (status, expected) in [
        (
            "requires_payment_method",
            Finding::Pending { settled: false },
        ),
        ("canceled", Finding::Lapsed),
        ("succeeded", charged(0)),
    ] {
        shop.answer_looks(&[json_answer(200, &intent(status, &[]))]);
        let closed = shop.stripe.close(&names()).await;
        assert!(
            matches!(&closed, InquiryOutcome::Found(finding, _) if *finding == expected),
            "{status}: {closed:?}"
        );
    }
    shop.answer_looks(&[String::new()]);
    let closed = shop.stripe.close(&names()).await;
    assert!(matches!(closed, InquiryOutcome::NoAnswer(_)), "{closed:?}");
    assert!(shop.calls().iter().all(|call| call == "look"));
}
