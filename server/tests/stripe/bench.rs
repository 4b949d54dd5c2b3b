//! Adapters, calls and answers for the tests.

use std::sync::{Arc, Mutex};

use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayName, GatewayOrderId, IdempotencyKey, PaymentKey};
use payment::money::{Money, Won};
use payment::time::Millis;
use serde_json::{Value, json};
use server::clock::EpochMs;
use server::gateway::secret::Secret;
use server::gateway::stripe::{Stripe, StripeConfig};
use server::gateway::{CancelCall, ConfirmCall, PaymentNames, WindowRequest};

use crate::peer::{Act, Peer, answer};

/// What every test's order costs.
pub(crate) const PRICE: Won = match Won::new(33_000) {
    Ok(won) => won,
    Err(_) => panic!("a price"),
};

/// Patient enough for a busy machine; only tests of time-outs shorten it.
pub(crate) const PATIENT: Millis = Millis::from_secs(20);

pub(crate) const INTENT: &str = "pi_3OxT00000000000000000001";
pub(crate) const SESSION: &str = "cs_test_a1b2c3";
pub(crate) const ORDER: &str = "ord_1-2";

pub(crate) fn stripe(base: &str) -> Stripe {
    Stripe::new(StripeConfig {
        name: GatewayName::parse("stripe").unwrap(),
        base_url: base.to_owned(),
        secret_key: Secret::new("sk_test_fake"),
        webhook_secret: Secret::new("whsec_fake"),
        pg_timeout: PATIENT,
        connect_timeout: Millis::from_secs(3),
        inquiry_timeout: PATIENT,
        confirm_window: Millis::from_secs(300),
    })
    .unwrap()
}

pub(crate) fn won(won: i64) -> Won {
    Won::new(won).unwrap()
}

pub(crate) fn order() -> GatewayOrderId {
    GatewayOrderId::parse(ORDER).unwrap()
}

pub(crate) fn intent_id() -> GatewayHandle {
    GatewayHandle::parse(INTENT).unwrap()
}

/// A wish for a window until 35 minutes from now.
pub(crate) fn window() -> WindowRequest {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let now = EpochMs(i64::try_from(now.as_millis()).unwrap());
    WindowRequest {
        gateway_order_id: order(),
        order_name: "머그컵 외 1건".to_owned(),
        quantity: 2,
        amount: PRICE,
        authenticate_by: now.plus(Millis::from_secs(35 * 60)),
        success_url: "https://shop.example/checkout/ord_1/return/ref".to_owned(),
        fail_url: "https://shop.example/checkout/ord_1/return/ref?ended=refused".to_owned(),
        close_url: "https://shop.example/checkout/ord_1/return/ref?ended=closed".to_owned(),
        page_url: "https://shop.example/pay".to_owned(),
    }
}

pub(crate) fn names() -> PaymentNames {
    PaymentNames {
        handle: Some(intent_id()),
        payment_key: PaymentKey::parse(SESSION).ok(),
        gateway_order_id: order(),
    }
}

pub(crate) fn confirm() -> ConfirmCall {
    ConfirmCall {
        handle: Some(intent_id()),
        payment_key: PaymentKey::parse(SESSION).unwrap(),
        gateway_order_id: order(),
        amount: PRICE,
        idempotency_key: IdempotencyKey::parse("idem-1").unwrap(),
    }
}

pub(crate) fn cancel(amount: Option<i64>, balance: Option<i64>) -> CancelCall {
    CancelCall {
        handle: Some(intent_id()),
        payment_key: PaymentKey::parse(SESSION).unwrap(),
        gateway_order_id: order(),
        amount: amount.map(won),
        balance: balance.map(won),
        reason: "late success [r1]".to_owned(),
        idempotency_key: IdempotencyKey::parse("cancel-1").unwrap(),
        account: None,
    }
}

/// A charge of the price, of which so much was given back.
pub(crate) fn charged(canceled: i64) -> Finding {
    Finding::Charged {
        charged: Money::won(PRICE),
        canceled: won(canceled),
    }
}

/// A charge of which this was given back, newest first.
pub(crate) fn charge(refunds: &[(i64, &str)]) -> Value {
    let sum: i64 = refunds.iter().map(|(amount, _)| amount).sum();
    let listed = refunds.iter().map(|(amount, reason)| {
        json!({"id": "re_1", "object": "refund", "amount": amount, "status": "succeeded",
            "metadata": {"order": ORDER, "reason": reason}})
    });
    json!({"id": "ch_1", "object": "charge", "amount": PRICE.get(), "amount_refunded": sum, "captured": true,
        "currency": "krw", "payment_intent": INTENT,
        "refunds": {"object": "list", "data": listed.collect::<Vec<_>>(), "has_more": false}})
}

/// A payment in this status, charged where that says so.
pub(crate) fn intent(status: &str, refunds: &[(i64, &str)]) -> Value {
    let succeeded = status == "succeeded";
    let charges: Vec<Value> = succeeded.then(|| charge(refunds)).into_iter().collect();
    json!({"id": INTENT, "object": "payment_intent", "status": status, "amount": PRICE.get(),
        "amount_received": if succeeded { PRICE.get() } else { 0 }, "currency": "krw",
        "metadata": {"order": ORDER},
        "charges": {"object": "list", "data": charges, "has_more": false}})
}

/// The answer to a refund of so much, with these in all, newest first.
pub(crate) fn refund(amount: i64, all: &[(i64, &str)]) -> Value {
    json!({"id": "re_1", "object": "refund", "amount": amount, "status": "succeeded", "payment_intent": INTENT,
        "metadata": {"order": ORDER, "reason": "late success [r1]"}, "charge": charge(all)})
}

/// The answer to the creation of a session.
pub(crate) fn session(base: &str) -> Value {
    json!({"id": SESSION, "object": "checkout.session", "amount_total": PRICE.get(), "currency": "krw",
        "payment_intent": INTENT, "url": format!("{base}/window/stripe/1"), "status": "open"})
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

/// An error answer's body: known by its type where the word is one.
pub(crate) fn error(word: &str) -> Value {
    if word.ends_with("_error") && word != "processing_error" {
        json!({"error": {"type": word, "message": "m"}})
    } else {
        json!({"error": {"type": "invalid_request_error", "code": word, "message": "m"}})
    }
}

/// An answer with a JSON body.
pub(crate) fn json_answer(status: u16, body: &Value) -> String {
    answer(
        &format!("{status} X"),
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}

/// The same, said to have been given before.
pub(crate) fn replayed(status: u16, body: &Value) -> String {
    let headers = "content-type: application/json\r\nidempotent-replayed: true\r\n";
    answer(&format!("{status} X"), headers, &body.to_string())
}

/// A gateway that gives to each of its calls one answer, which a test may change at any time.
pub(crate) struct Scripted {
    pub(crate) peer: Peer,
    pub(crate) stripe: Stripe,
    answers: Arc<Mutex<Answers>>,
}

struct Answers {
    looks: Vec<String>,
    ending: String,
    other: String,
}

impl Scripted {
    /// Gives `other` to all but a look-up and an end, which find a payment that nobody has authorised.
    pub(crate) async fn new(other: String) -> Self {
        let answers = Arc::new(Mutex::new(Answers {
            looks: vec![json_answer(200, &intent("requires_payment_method", &[]))],
            ending: json_answer(400, &error("payment_intent_unexpected_state")),
            other,
        }));
        let shared = Arc::clone(&answers);
        let peer = Peer::serve(move |request, _| {
            let mut answers = shared.lock().unwrap();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let text = if request.starts_with("GET /v1/payment_intents/") {
                // The last one for ever.
                if answers.looks.len() > 1 {
                    answers.looks.remove(0)
                } else {
                    answers.looks[0].clone()
                }
            } else if path.ends_with("/cancel") {
                answers.ending.clone()
            } else {
                answers.other.clone()
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
            act(text)
        })
        .await;
        let stripe = stripe(&peer.url);
        Self {
            peer,
            stripe,
            answers,
        }
    }

    /// From now on all but a look-up and an end is answered so.
    pub(crate) fn answer(&self, text: String) {
        self.answers.lock().unwrap().other = text;
    }

    /// From now on look-ups are answered so, one after the other, and the last one for ever; by a close if it is empty.
    pub(crate) fn answer_looks(&self, texts: &[String]) {
        self.answers.lock().unwrap().looks = texts.to_vec();
    }

    /// From now on the end of an authorisation is answered so.
    pub(crate) fn answer_end(&self, text: String) {
        self.answers.lock().unwrap().ending = text;
    }

    /// The calls that came: `look`, or the last word of their path.
    pub(crate) fn calls(&self) -> Vec<String> {
        let call = |request: &String| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            if request.starts_with("GET ") {
                return "look".to_owned();
            }
            path.rsplit('/').next().unwrap_or_default().to_owned()
        };
        self.peer.requests().iter().map(call).collect()
    }

    /// The last request as it came.
    pub(crate) fn last(&self) -> String {
        self.peer.requests().last().cloned().unwrap()
    }
}
