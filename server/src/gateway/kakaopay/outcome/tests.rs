//! The words of a payment object, without a wire.

use serde_json::{Value, json};

use super::*;

const PRICE: Won = match Won::new(33_000) {
    Ok(won) => won,
    Err(_) => panic!("a price"),
};

fn won(won: i64) -> Won {
    Won::new(won).unwrap()
}

fn order() -> GatewayOrderId {
    GatewayOrderId::parse("ord_1-2").unwrap()
}

fn tid() -> GatewayHandle {
    GatewayHandle::parse("T0000000000000000001").unwrap()
}

fn heard(status: u16, body: &Value) -> Heard {
    Heard::Answer(Answer {
        status,
        replayed: false,
        body: Ok(body.to_string().into_bytes()),
    })
}

/// An order that was charged, with these fields changed (`null` takes one away).
fn payment(changes: Value) -> Value {
    let mut payment = json!({
        "tid": "T0000000000000000001", "cid": "TC0ONETIME", "status": "SUCCESS_PAYMENT",
        "partner_order_id": "ord_1-2", "partner_user_id": "u_ord_1-2", "payment_method_type": "MONEY",
        "amount": {"total": 33_000, "tax_free": 0, "vat": 3_000, "point": 0, "discount": 0},
        "canceled_amount": {"total": 0}, "cancel_available_amount": {"total": 33_000},
        "approved_at": "2026-10-02T10:15:41",
        "payment_action_details": [
            {"aid": "A1", "payment_action_type": "PAYMENT", "amount": 33_000, "payload": "ord_1-2"},
        ],
    });
    let Value::Object(changes) = changes else {
        panic!("changes are an object");
    };
    let fields = payment.as_object_mut().unwrap();
    for (name, value) in changes {
        if value.is_null() {
            fields.remove(&name);
        } else {
            fields.insert(name, value);
        }
    }
    payment
}

fn asked(changes: Value) -> InquiryOutcome {
    let (tid, order) = (tid(), order());
    let named = Named {
        cid: "TC0ONETIME",
        tid: &tid,
        order: Some(&order),
    };
    looked_up(named, heard(200, &payment(changes)))
}

#[track_caller]
fn found(changes: Value) -> (Finding, Told) {
    match asked(changes) {
        InquiryOutcome::Found(finding, told) => {
            assert!(!told.alarm, "{told:?}");
            (finding, told)
        }
        other => panic!("{other:?}"),
    }
}

fn charge(canceled: i64) -> Finding {
    Finding::Charged {
        charged: Money::won(PRICE),
        canceled: won(canceled),
    }
}

#[test]
fn a_charge_without_a_sum_of_cancels_is_whole_and_fields_that_nobody_knows_are_passed_over() {
    for changes in [
        json!({}),
        json!({"canceled_amount": null, "cancel_available_amount": null}),
        json!({"card_info": {"kakaopay_purchase_corp": "x"}, "selected_card_info": [1], "new": {"a": []}}),
        json!({"payment_action_details": null, "payment_method_type": null}),
    ] {
        assert_eq!(found(changes).0, charge(0));
    }
}

#[test]
fn an_answer_that_contradicts_itself_or_is_about_another_payment_has_no_word_and_alarms() {
    for (changes, code) in [
        (json!({"tid": "T0000000000000000002"}), "another_payment"),
        (json!({"cid": "TC0OTHERS1"}), "another_payment"),
        (json!({"partner_order_id": "ord_1"}), "another_order"),
        (json!({"partner_user_id": "u_ord_1"}), "another_order"),
        (
            json!({"partner_order_id": "ord_1", "status": "READY"}),
            "another_order",
        ),
        (json!({"partner_order_id": null}), "charge_without_names"),
        (json!({"partner_user_id": null}), "charge_without_names"),
        (json!({"amount": null}), "charge_without_amounts"),
        (json!({"amount": {"total": -1}}), "charge_without_amounts"),
        (json!({"status": null}), "unknown_status"),
        (json!({"status": "PAID"}), "unknown_status"),
        (json!({"status": "ISSUED_SID"}), "recurring_payment"),
        (
            json!({"canceled_amount": {"total": 1}}),
            "status_beside_another_sum",
        ),
        (
            json!({"status": "PART_CANCEL_PAYMENT"}),
            "status_beside_another_sum",
        ),
        (
            json!({"status": "CANCEL_PAYMENT", "canceled_amount": {"total": 3_000}}),
            "status_beside_another_sum",
        ),
        (
            json!({"status": "CANCEL_PAYMENT", "canceled_amount": null}),
            "cancel_without_amounts",
        ),
        (
            json!({"status": "CANCEL_PAYMENT", "canceled_amount": {"total": 33_001}}),
            "canceled_above_total",
        ),
        (
            json!({"cancel_available_amount": {"total": 32_999}}),
            "balance_beside_another_sum",
        ),
    ] {
        let shown = changes.to_string();
        match asked(changes) {
            InquiryOutcome::NoWord(told) => {
                assert_eq!((told.code.as_str(), told.alarm), (code, true), "{shown}");
            }
            other => panic!("{shown}: {other:?}"),
        }
    }
}

fn part(canceled: i64, actions: Value) -> Value {
    json!({
        "status": "PART_CANCEL_PAYMENT", "canceled_amount": {"total": canceled},
        "cancel_available_amount": {"total": 33_000 - canceled}, "payment_action_details": actions,
    })
}

#[test]
fn a_list_is_believed_only_where_it_repeats_our_own_approve_and_adds_up() {
    let ours = json!({"payment_action_type": "PAYMENT", "amount": 33_000, "payload": "ord_1-2"});
    let bare = json!({"payment_action_type": "PAYMENT", "amount": 33_000});
    let cancel = |amount: i64, payload: Value| json!({"payment_action_type": "CANCEL", "amount": amount, "payload": payload});
    let told = |canceled, actions| found(part(canceled, actions)).1.given_back;

    let both = json!([
        ours,
        cancel(3_000, json!("late [r1]")),
        cancel(1_000, json!(null))
    ]);
    let expected = vec!["late [r1]".to_owned(), String::new()];
    assert_eq!(told(4_000, both), Some(expected));
    // Without a repeated payload nobody can tell whose a cancel is.
    let silent = json!([bare, cancel(3_000, json!(null))]);
    assert_eq!(told(3_000, silent), None);
    let another = json!({"payment_action_type": "PAYMENT", "amount": 33_000, "payload": "ord_1"});
    assert_eq!(
        told(3_000, json!([another, cancel(3_000, json!("late [r1]"))])),
        None
    );
    // Nor where something is missing.
    assert_eq!(
        told(4_000, json!([ours, cancel(3_000, json!("late [r1]"))])),
        None
    );
    assert_eq!(told(3_000, json!([ours])), None);
    assert_eq!(told(3_000, json!(null)), None);
    let whole = found(json!({})).1.given_back;
    assert_eq!(whole, Some(Vec::new()));
}

#[test]
fn a_refused_approve_is_a_decline_only_after_an_order_that_shows_no_charge() {
    let refusal = told(400, "-701");
    let decline = Decline::AuthenticationFailed;
    let after = |asked| refused(decline, refusal.clone(), PRICE, asked);
    let quiet = |finding| InquiryOutcome::Found(finding, told(200, "X"));
    for uncharged in [
        Finding::Pending { settled: false },
        Finding::Declined(Decline::Other),
        Finding::Lapsed,
    ] {
        let expected = ConfirmOutcome::Found(Finding::Declined(decline), refusal.clone());
        assert_eq!(after(quiet(uncharged)), expected, "{uncharged:?}");
    }
    assert_eq!(
        after(quiet(charge(0))),
        ConfirmOutcome::Found(charge(0), told(200, "X"))
    );
    let dear = Finding::Charged {
        charged: Money::won(won(34_000)),
        canceled: Won::ZERO,
    };
    assert_eq!(
        after(quiet(dear)),
        ConfirmOutcome::Found(dear, alarming(told(200, "X")))
    );
    for silent in [
        quiet(Finding::NotFound { settled: false }),
        InquiryOutcome::NoWord(told(500, "-500")),
        InquiryOutcome::NoAnswer(unheard(Lost::TimedOut)),
    ] {
        let expected = ConfirmOutcome::Lost(Lost::Inconclusive, refusal.clone());
        assert_eq!(after(silent.clone()), expected, "{silent:?}");
    }
    // Whichever of both alarms is kept.
    let loud = InquiryOutcome::NoWord(alarming(told(401, "-401")));
    assert_eq!(
        after(loud),
        ConfirmOutcome::Lost(Lost::Inconclusive, alarming(refusal.clone()))
    );
}
