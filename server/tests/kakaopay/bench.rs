//! Adapters, calls and answers for the tests.

use std::sync::{Arc, Mutex};

use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayName, GatewayOrderId, IdempotencyKey, PaymentKey};
use payment::money::{Money, Won};
use payment::time::Millis;
use serde_json::{Value, json};
use server::clock::EpochMs;
use server::gateway::kakaopay::{KakaoPay, KakaoPayConfig};
use server::gateway::secret::Secret;
use server::gateway::{CancelCall, ConfirmCall, PaymentNames, WindowRequest};

use crate::peer::{Act, Peer, answer};

/// What every test's order costs.
pub(crate) const PRICE: Won = match Won::new(33_000) {
    Ok(won) => won,
    Err(_) => panic!("a price"),
};

/// Patient enough for a busy machine; only tests of time-outs shorten it.
pub(crate) const PATIENT: Millis = Millis::from_secs(20);

pub(crate) const TID: &str = "T0000000000000000001";
pub(crate) const ORDER: &str = "ord_1-2";

/// The settings of an adapter for the gateway at `base`.
pub(crate) fn config(base: &str, pg_timeout: Millis) -> KakaoPayConfig {
    KakaoPayConfig {
        name: GatewayName::parse("kakaopay").unwrap(),
        base_url: base.to_owned(),
        cid: "TC0ONETIME".to_owned(),
        secret_key: Secret::new("DEV_fake"),
        pg_timeout,
        connect_timeout: Millis::from_secs(3),
        inquiry_timeout: pg_timeout,
        confirm_window: KakaoPayConfig::CONFIRM_WINDOW,
    }
}

pub(crate) fn kakaopay(base: &str, pg_timeout: Millis) -> KakaoPay {
    KakaoPay::new(config(base, pg_timeout)).unwrap()
}

pub(crate) fn won(won: i64) -> Won {
    Won::new(won).unwrap()
}

pub(crate) fn order() -> GatewayOrderId {
    GatewayOrderId::parse(ORDER).unwrap()
}

pub(crate) fn tid() -> GatewayHandle {
    GatewayHandle::parse(TID).unwrap()
}

pub(crate) fn window() -> WindowRequest {
    WindowRequest {
        gateway_order_id: order(),
        order_name: "머그컵 외 1건".to_owned(),
        quantity: 2,
        amount: PRICE,
        authenticate_by: EpochMs(0),
        success_url: "https://shop.example/ok?a=1".to_owned(),
        fail_url: "https://shop.example/fail".to_owned(),
        close_url: "https://shop.example/closed".to_owned(),
        page_url: "https://shop.example/pay".to_owned(),
    }
}

pub(crate) fn names() -> PaymentNames {
    PaymentNames {
        handle: Some(tid()),
        payment_key: PaymentKey::parse("token-1").ok(),
        gateway_order_id: order(),
    }
}

pub(crate) fn confirm() -> ConfirmCall {
    ConfirmCall {
        handle: Some(tid()),
        payment_key: PaymentKey::parse("token-1").unwrap(),
        gateway_order_id: order(),
        amount: PRICE,
        idempotency_key: IdempotencyKey::parse("idem-1").unwrap(),
    }
}

pub(crate) fn cancel(amount: Option<i64>, balance: Option<i64>) -> CancelCall {
    CancelCall {
        handle: Some(tid()),
        payment_key: PaymentKey::parse("token-1").unwrap(),
        gateway_order_id: order(),
        amount: amount.map(won),
        balance: balance.map(won),
        reason: "late success [r1]".to_owned(),
        account: None,
        idempotency_key: IdempotencyKey::parse("cancel-1").unwrap(),
    }
}

/// A charge of the price, of which so much was given back.
pub(crate) fn charged(canceled: i64) -> Finding {
    Finding::Charged {
        charged: Money::won(PRICE),
        canceled: won(canceled),
    }
}

/// A value with these fields changed; `null` takes one away.
pub(crate) fn with(mut value: Value, changes: &Value) -> Value {
    let fields = value.as_object_mut().unwrap();
    for (name, change) in changes.as_object().unwrap() {
        if change.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), change.clone());
        }
    }
    value
}

fn parts(total: i64) -> Value {
    json!({"total": total, "tax_free": 0, "vat": total / 11, "point": 0, "discount": 0, "green_deposit": 0})
}

fn payment(changes: &Value) -> Value {
    let payment = json!({
        "tid": TID, "cid": "TC0ONETIME", "partner_order_id": ORDER, "partner_user_id": "u_ord_1-2",
        "payment_method_type": "MONEY", "amount": parts(PRICE.get()), "item_name": "머그컵 외 1건", "item_code": "",
        "quantity": 2, "created_at": "2026-10-02T10:14:30",
    });
    with(payment, changes)
}

/// The answer to a good approve.
pub(crate) fn approved(changes: &Value) -> Value {
    let approved = json!({"aid": "A0000000000000000001", "approved_at": "2026-10-02T10:15:41", "payload": ORDER});
    with(payment(&approved), changes)
}

/// The answer to an order look-up of a payment in this state, of which so much was given back.
pub(crate) fn order_in(status: &str, canceled: i64) -> Value {
    let was_charged = matches!(
        status,
        "SUCCESS_PAYMENT" | "PART_CANCEL_PAYMENT" | "CANCEL_PAYMENT"
    );
    let left = if was_charged {
        PRICE.get() - canceled
    } else {
        0
    };
    let mut actions = Vec::new();
    if was_charged {
        actions.push(json!({"aid": "A0000000000000000001", "payment_action_type": "PAYMENT",
            "payment_method_type": "MONEY", "amount": PRICE.get(), "approved_at": "2026-10-02T10:15:41", "payload": ORDER}));
    }
    if canceled > 0 {
        actions.push(json!({"aid": "A0000000000000000002", "payment_action_type": "CANCEL",
            "payment_method_type": "MONEY", "amount": canceled, "approved_at": "2026-10-02T10:16:41",
            "payload": "late success [r1]"}));
    }
    payment(&json!({
        "status": status, "canceled_amount": parts(canceled), "cancel_available_amount": parts(left),
        "payment_action_details": actions,
    }))
}

/// The answer to a cancel of so much, with so much given back in all.
pub(crate) fn canceled(amount: i64, in_all: i64, changes: &Value) -> Value {
    let left = PRICE.get() - in_all;
    let status = if left == 0 {
        "CANCEL_PAYMENT"
    } else {
        "PART_CANCEL_PAYMENT"
    };
    let answer = json!({
        "aid": "A0000000000000000002", "status": status, "approved_cancel_amount": parts(amount),
        "canceled_amount": parts(in_all), "cancel_available_amount": parts(left),
        "approved_at": "2026-10-02T10:15:41", "canceled_at": "2026-10-02T10:16:41", "payload": "late success [r1]",
    });
    with(payment(&answer), changes)
}

/// An error answer's body.
pub(crate) fn error(code: i32) -> Value {
    json!({"error_code": code, "error_message": "m"})
}

/// An answer with a JSON body.
pub(crate) fn json_answer(status: u16, body: &Value) -> String {
    let headers = "content-type: application/json;charset=UTF-8\r\n";
    answer(&format!("{status} X"), headers, &body.to_string())
}

/// A gateway that gives to each of its calls one answer, which a test may change at any time.
pub(crate) struct Scripted {
    pub(crate) peer: Peer,
    pub(crate) kakaopay: KakaoPay,
    answers: Arc<Mutex<Answers>>,
}

struct Answers {
    order: String,
    other: String,
}

impl Scripted {
    /// Gives `other` to ready, approve and cancel, and an order in doubt to a look-up.
    pub(crate) async fn new(other: String) -> Self {
        let order = json_answer(200, &order_in("AUTH_PASSWORD", 0));
        let answers = Arc::new(Mutex::new(Answers { order, other }));
        let shared = Arc::clone(&answers);
        let peer = Peer::serve(move |request, _| {
            let answers = shared.lock().unwrap();
            let is_order = request.starts_with("POST /online/v1/payment/order ");
            let text = if is_order {
                &answers.order
            } else {
                &answers.other
            };
            if text.is_empty() {
                return Act::Close;
            }
            // What says that it closes does.
            let closes = text.contains("\r\nconnection: close\r\n");
            let act = if closes {
                Act::AnswerAndClose
            } else {
                Act::Answer
            };
            act(text.clone())
        })
        .await;
        let kakaopay = kakaopay(&peer.url, PATIENT);
        Self {
            peer,
            kakaopay,
            answers,
        }
    }

    /// From now on all but a look-up is answered so.
    pub(crate) fn answer(&self, text: String) {
        self.answers.lock().unwrap().other = text;
    }

    /// From now on a look-up is answered so; by a close if this is empty.
    pub(crate) fn answer_order(&self, text: String) {
        self.answers.lock().unwrap().order = text;
    }

    /// The calls that came, by the last word of their path.
    pub(crate) fn calls(&self) -> Vec<String> {
        let call = |request: &String| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            path.rsplit('/').next().unwrap_or_default().to_owned()
        };
        self.peer.requests().iter().map(call).collect()
    }

    /// The JSON of the last request.
    pub(crate) fn last_body(&self) -> Value {
        let requests = self.peer.requests();
        let (_, body) = requests.last().unwrap().split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}
