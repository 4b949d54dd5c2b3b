//! The tables and the words of a Payment object, without a wire.

use payment::id::IdempotencyKey;
use payment::reach::Decline;
use serde_json::{Value, json};

use super::*;
use crate::gateway::exchange::CODE_LIMIT;

fn heard(status: u16, body: &Value) -> Heard {
    Heard::Answer(Answer {
        status,
        replayed: false,
        body: Ok(body.to_string().into_bytes()),
    })
}

fn without_body(status: u16, lost: Lost) -> Heard {
    Heard::Answer(Answer {
        status,
        replayed: false,
        body: Err(lost),
    })
}

fn key() -> PaymentKey {
    PaymentKey::parse("pk_1").unwrap()
}

fn order() -> GatewayOrderId {
    GatewayOrderId::parse("order_1").unwrap()
}

fn confirm() -> ConfirmCall {
    ConfirmCall {
        handle: None,
        payment_key: key(),
        gateway_order_id: order(),
        amount: Won::new(33_000).unwrap(),
        idempotency_key: IdempotencyKey::parse("idem-1").unwrap(),
    }
}

fn cancel(amount: Option<i64>, balance: Option<i64>) -> CancelCall {
    CancelCall {
        handle: None,
        payment_key: key(),
        gateway_order_id: order(),
        amount: amount.map(|won| Won::new(won).unwrap()),
        balance: balance.map(|won| Won::new(won).unwrap()),
        reason: "late".to_owned(),
        account: None,
        idempotency_key: IdempotencyKey::parse("idem-2").unwrap(),
    }
}

/// An approved payment, with these fields changed.
fn payment(changes: Value) -> Value {
    let mut payment = json!({
        "paymentKey": "pk_1", "orderId": "order_1", "status": "DONE", "currency": "KRW",
        "totalAmount": 33_000, "balanceAmount": 33_000, "failure": null, "cancels": null,
        "approvedAt": "2026-10-02T10:15:41+09:00",
    });
    let Value::Object(changes) = changes else {
        panic!("changes are an object");
    };
    payment.as_object_mut().unwrap().extend(changes);
    payment
}

fn charge(won: i64, currency: Currency, canceled: i64) -> Finding {
    Finding::Charged {
        charged: Money {
            amount: Won::new(won).unwrap(),
            currency,
        },
        canceled: Won::new(canceled).unwrap(),
    }
}

#[test]
fn each_listed_error_of_a_confirm_is_its_class_and_no_other_status_is() {
    for (status, class, listed) in codes::CONFIRM {
        for code in *listed {
            let body = json!({"code": code, "message": "m"});
            let outcome = confirmed(&confirm(), heard(*status, &body));
            let said = Told {
                status: Some(*status),
                code: (*code).to_owned(),
                alarm: matches!(class, ConfirmClass::Fault(_)),
                ..Told::default()
            };
            let expected = match class {
                ConfirmClass::Declined(of) | ConfirmClass::Fault(of) => {
                    ConfirmOutcome::Found(Finding::Declined(*of), said)
                }
                ConfirmClass::Refused => ConfirmOutcome::Refused(said),
                ConfirmClass::InProgress => ConfirmOutcome::Lost(Lost::InProgress, said),
                ConfirmClass::Ask => ConfirmOutcome::Lost(Lost::Inconclusive, said),
            };
            assert_eq!(outcome, expected);
            let elsewhere = confirmed(&confirm(), heard(418, &body));
            assert!(
                matches!(&elsewhere, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
                "{elsewhere:?}"
            );
        }
    }
}

#[test]
fn each_listed_error_of_a_cancel_is_its_class_and_no_other_status_is() {
    for (status, class, listed) in codes::CANCEL {
        for code in *listed {
            let body = json!({"code": code, "message": "m"});
            let outcome = canceled(&cancel(None, None), heard(*status, &body));
            let said = Told {
                status: Some(*status),
                code: (*code).to_owned(),
                alarm: matches!(class, CancelClass::Repair | CancelClass::Mistake),
                ..Told::default()
            };
            let expected = match class {
                CancelClass::Ask | CancelClass::AskUntilReplayed => CancelOutcome::Unknown(said),
                CancelClass::NewKey | CancelClass::Repair => CancelOutcome::RetryWithNewKey(said),
                CancelClass::Final | CancelClass::Mistake => CancelOutcome::Refused(said),
            };
            assert_eq!(outcome, expected);
            let elsewhere = canceled(&cancel(None, None), heard(418, &body));
            assert!(
                matches!(&elsewhere, CancelOutcome::Unknown(told) if told.alarm),
                "{elsewhere:?}"
            );
        }
    }
}

#[test]
fn the_words_of_a_payment_that_are_an_end_are_found_by_confirm_and_inquiry_alike() {
    let reject = json!({"code": "REJECT_CARD_COMPANY", "message": "m"});
    for (changes, finding) in [
        (json!({}), charge(33_000, Currency::Krw, 0)),
        (
            json!({"totalAmount": 33_000.0}),
            charge(33_000, Currency::Krw, 0),
        ),
        (
            json!({"status": "PARTIAL_CANCELED", "balanceAmount": 30_000}),
            charge(33_000, Currency::Krw, 3_000),
        ),
        // Cancelled in parts down to nothing, the word stays.
        (
            json!({"status": "PARTIAL_CANCELED", "balanceAmount": 0}),
            charge(33_000, Currency::Krw, 33_000),
        ),
        (
            json!({"status": "CANCELED", "balanceAmount": 0}),
            charge(33_000, Currency::Krw, 33_000),
        ),
        (
            json!({"status": "CANCELED", "balanceAmount": 0, "approvedAt": null, "virtualAccount": {}}),
            Finding::Closed,
        ),
        (
            json!({"status": "WAITING_FOR_DEPOSIT", "approvedAt": null}),
            Finding::AwaitingDeposit,
        ),
        (
            json!({"status": "ABORTED", "failure": reject}),
            Finding::Declined(Decline::CardRefused),
        ),
        (
            json!({"status": "ABORTED"}),
            Finding::Declined(Decline::Other),
        ),
        (
            json!({"status": "EXPIRED", "failure": {"code": "EXPIRED_PAYMENT"}}),
            Finding::Lapsed,
        ),
    ] {
        let body = payment(changes);
        let confirmed = confirmed(&confirm(), heard(200, &body));
        assert!(
            matches!(&confirmed, ConfirmOutcome::Found(found, told) if *found == finding && !told.alarm),
            "{confirmed:?}"
        );
        let looked = looked_up(Some(&key()), &order(), heard(200, &body));
        assert!(
            matches!(&looked, LookedUp::Settled(InquiryOutcome::Found(found, told)) if *found == finding && !told.alarm),
            "{looked:?}"
        );
    }
}

#[test]
fn a_charge_of_another_amount_or_currency_is_a_charge_with_alarm() {
    for (changes, finding) in [
        (
            json!({"totalAmount": 34_000, "balanceAmount": 34_000}),
            charge(34_000, Currency::Krw, 0),
        ),
        (
            json!({"totalAmount": 1, "balanceAmount": 1}),
            charge(1, Currency::Krw, 0),
        ),
        (
            json!({"currency": "USD"}),
            charge(33_000, Currency::Other, 0),
        ),
        (
            json!({"currency": "USD", "totalAmount": 10.5, "balanceAmount": 0}),
            charge(11, Currency::Other, 11),
        ),
    ] {
        let outcome = confirmed(&confirm(), heard(200, &payment(changes)));
        assert!(
            matches!(&outcome, ConfirmOutcome::Found(found, told) if *found == finding && told.alarm),
            "{outcome:?}"
        );
    }
}

#[test]
fn what_contradicts_itself_or_is_about_another_payment_is_unknown_and_alarms() {
    for changes in [
        json!({"paymentKey": "pk_2"}),
        json!({"orderId": "order_2"}),
        json!({"orderId": "order_2", "status": "ABORTED"}),
        json!({"failure": {"code": "REJECT_CARD_COMPANY"}}),
        json!({"failure": {}}),
        json!({"approvedAt": null}),
        json!({"status": "APPROVED_UNDER_REVIEW"}),
        json!({"status": "done"}),
        json!({"status": ""}),
        json!({"currency": null}),
        json!({"totalAmount": null}),
        json!({"totalAmount": -33_000}),
        json!({"balanceAmount": 33_001}),
        json!({"status": "CANCELED"}),
        json!({"status": "CANCELED", "balanceAmount": null}),
        json!({"status": "PARTIAL_CANCELED"}),
    ] {
        let body = payment(changes);
        let outcome = confirmed(&confirm(), heard(200, &body));
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
            "{body} became {outcome:?}"
        );
        let looked = looked_up(Some(&key()), &order(), heard(200, &body));
        assert!(
            matches!(&looked, LookedUp::Settled(InquiryOutcome::NoWord(told)) if told.alarm),
            "{body} became {looked:?}"
        );
        let outcome = canceled(&cancel(None, None), heard(200, &body));
        assert!(
            matches!(outcome, CancelOutcome::Unknown(_)),
            "{body} became {outcome:?}"
        );
    }
}

#[test]
fn another_payment_of_the_order_that_holds_no_money_leaves_ours_not_found() {
    for status in ["READY", "IN_PROGRESS", "EXPIRED", "ABORTED"] {
        let body = payment(json!({"paymentKey": "pk_2", "status": status, "approvedAt": null}));
        let looked = looked_up(Some(&key()), &order(), heard(200, &body));
        assert!(
            matches!(looked, LookedUp::Absent(_)),
            "{body} became {looked:?}"
        );
        let outcome = confirmed(&confirm(), heard(200, &body));
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
            "{body} became {outcome:?}"
        );
    }
}

#[test]
fn a_payment_in_progress_is_no_answer_to_a_confirm_and_pending_to_an_inquiry() {
    for status in ["READY", "IN_PROGRESS"] {
        let body = payment(json!({"status": status, "approvedAt": null}));
        let outcome = confirmed(&confirm(), heard(200, &body));
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if !told.alarm),
            "{outcome:?}"
        );
        let looked = looked_up(Some(&key()), &order(), heard(200, &body));
        let LookedUp::Settled(InquiryOutcome::Found(finding, _)) = looked else {
            panic!("{looked:?}");
        };
        assert_eq!(finding, Finding::Pending { settled: false });
    }
}

#[test]
fn a_429_is_refused_whatever_became_of_its_body_and_undocumented_successes_prove_nothing() {
    for heard in [
        heard(429, &json!({"code": "UNAUTHORIZED_KEY"})),
        without_body(429, Lost::Unreadable),
        without_body(429, Lost::TimedOut),
    ] {
        assert!(matches!(
            confirmed(&confirm(), heard),
            ConfirmOutcome::Refused(_)
        ));
    }
    for status in [101, 201, 202, 204, 302] {
        let outcome = confirmed(&confirm(), heard(status, &payment(json!({}))));
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
            "{outcome:?}"
        );
    }
}

#[test]
fn only_a_404_with_its_code_is_absent() {
    let code = |code: &str| json!({"code": code, "message": "m"});
    let look = |heard| looked_up(Some(&key()), &order(), heard);
    let absent = look(heard(404, &code("NOT_FOUND_PAYMENT")));
    assert!(matches!(absent, LookedUp::Absent(_)), "{absent:?}");
    for (status, code) in [
        (404, code("NOT_FOUND")),
        (400, code("NOT_FOUND_PAYMENT")),
        (404, json!({})),
    ] {
        assert!(matches!(
            look(heard(status, &code)),
            LookedUp::Settled(InquiryOutcome::NoWord(_) | InquiryOutcome::NoAnswer(_))
        ));
    }
    for lost in [
        Heard::NotConnected,
        Heard::Nothing(Lost::Reset),
        without_body(200, Lost::TimedOut),
    ] {
        assert!(matches!(
            look(lost),
            LookedUp::Settled(InquiryOutcome::NoAnswer(_))
        ));
    }
}

#[test]
fn a_cancel_is_done_only_when_its_entry_is_there_and_the_balance_fell_by_it() {
    let entry = |won: i64, status: &str| json!({"cancelAmount": won, "cancelStatus": status});
    let after = |balance: i64, cancels: Value| {
        payment(json!({"status": "PARTIAL_CANCELED", "balanceAmount": balance, "cancels": cancels}))
    };
    let label = |call: CancelCall, body: Value| match canceled(&call, heard(200, &body)) {
        CancelOutcome::Found(..) => "found",
        CancelOutcome::Unknown(told) if told.alarm => "unknown, alarm",
        CancelOutcome::Unknown(_) => "unknown",
        CancelOutcome::RetryWithNewKey(_) => "new key",
        CancelOutcome::Refused(_) => "refused",
    };
    let part = |balance| cancel(Some(3_000), balance);
    let done = || json!([entry(3_000, "DONE")]);
    assert_eq!(label(part(Some(33_000)), after(30_000, done())), "found");
    assert_eq!(label(part(None), after(30_000, done())), "found");
    assert_eq!(
        label(
            part(Some(33_000)),
            after(30_000, json!([{"cancelAmount": 3_000}]))
        ),
        "found"
    );
    assert_eq!(
        label(part(Some(33_000)), after(27_000, done())),
        "unknown, alarm"
    );
    assert_eq!(
        label(part(None), after(30_000, json!([entry(2_000, "DONE")]))),
        "unknown, alarm"
    );
    assert_eq!(
        label(part(None), after(30_000, json!(null))),
        "unknown, alarm"
    );
    assert_eq!(label(part(None), payment(json!({}))), "unknown, alarm");
    let running = after(30_000, json!([entry(3_000, "IN_PROGRESS")]));
    assert_eq!(label(part(Some(33_000)), running), "unknown");
    let aborted = payment(json!({"cancels": [entry(3_000, "ABORTED")]}));
    assert_eq!(label(part(Some(33_000)), aborted), "refused");
    let all = json!([entry(3_000, "DONE"), entry(30_000, "DONE")]);
    assert_eq!(
        label(cancel(None, Some(30_000)), after(0, all.clone())),
        "found"
    );
    assert_eq!(label(cancel(None, None), after(0, all)), "found");
    assert_eq!(
        label(cancel(None, None), after(30_000, done())),
        "unknown, alarm"
    );
}

#[test]
fn only_what_is_done_was_given_back_whatever_word_and_balance_say_meanwhile() {
    let entry = |won: i64, status: &str, reason: &str| json!({"cancelAmount": won, "cancelStatus": status, "cancelReason": reason});
    for (status, balance, cancels, canceled) in [
        // Under way: the balance has fallen already, or not yet.
        (
            "CANCELED",
            0,
            json!([entry(33_000, "IN_PROGRESS", "[r1]")]),
            0,
        ),
        (
            "DONE",
            33_000,
            json!([entry(33_000, "IN_PROGRESS", "[r1]")]),
            0,
        ),
        (
            "PARTIAL_CANCELED",
            29_000,
            json!([
                entry(1_000, "DONE", "[r0]"),
                entry(3_000, "IN_PROGRESS", "[r1]")
            ]),
            1_000,
        ),
        (
            "PARTIAL_CANCELED",
            32_000,
            json!([
                entry(1_000, "DONE", "[r0]"),
                entry(3_000, "IN_PROGRESS", "[r1]")
            ]),
            1_000,
        ),
        // Aborted: whether the word went back with the balance or not.
        ("DONE", 33_000, json!([entry(33_000, "ABORTED", "[r1]")]), 0),
        (
            "CANCELED",
            33_000,
            json!([entry(33_000, "ABORTED", "[r1]")]),
            0,
        ),
        (
            "PARTIAL_CANCELED",
            33_000,
            json!([entry(3_000, "ABORTED", "[r1]")]),
            0,
        ),
    ] {
        let body = payment(json!({"status": status, "balanceAmount": balance, "cancels": cancels}));
        let looked = looked_up(Some(&key()), &order(), heard(200, &body));
        let LookedUp::Settled(InquiryOutcome::Found(finding, told)) = looked else {
            panic!("{status} {balance}: {looked:?}");
        };
        assert_eq!(
            finding,
            charge(33_000, Currency::Krw, canceled),
            "{status} {balance}"
        );
        let reasons = [told.running, told.aborted].concat();
        assert_eq!(reasons, ["[r1]"], "{status} {balance}");
        assert_eq!(
            told.given_back.map(|done| done.len()),
            Some(usize::from(canceled > 0))
        );
    }
}

#[test]
fn a_cancel_is_known_by_its_reference_before_its_amount() {
    let call = CancelCall {
        reason: "sent back [r2]".to_owned(),
        ..cancel(Some(3_000), Some(33_000))
    };
    let entry = |status: &str, reason: &str| json!({"cancelAmount": 3_000, "cancelStatus": status, "cancelReason": reason});
    for (cancels, is_done) in [
        (
            json!([
                entry("ABORTED", "sent back [r1]"),
                entry("DONE", "sent back [r2]")
            ]),
            true,
        ),
        (
            json!([
                entry("DONE", "sent back [r2]"),
                entry("ABORTED", "sent back [r1]")
            ]),
            true,
        ),
        (json!([entry("DONE", "sent back [r1]")]), false),
    ] {
        let changes =
            json!({"status": "PARTIAL_CANCELED", "balanceAmount": 30_000, "cancels": cancels});
        let outcome = canceled(&call, heard(200, &payment(changes)));
        let done = matches!(outcome, CancelOutcome::Found(..));
        assert_eq!(done, is_done, "{outcome:?}");
    }
}

#[test]
fn a_code_from_outside_cannot_break_a_log_line() {
    let body = json!({"code": format!("BAD\r\n\u{1b}[31m{}", "X".repeat(500)), "message": "m"});
    let ConfirmOutcome::Lost(Lost::Inconclusive, told) = confirmed(&confirm(), heard(400, &body))
    else {
        panic!("an unlisted code");
    };
    assert!(
        told.code.starts_with("BAD31mX") && told.code.len() == CODE_LIMIT,
        "{}",
        told.code
    );
}
