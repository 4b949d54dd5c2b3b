//! The facts of Toss Payments' wire.

mod facts;

use serde_json::{Value, json};

use super::asker::{AS_SAID, Answer, Ask, Asker, basic};
use super::facts::Findings;
use super::shopper::{Payment, Shopper};
pub(super) use facts::FACTS;
use facts::OF_A_PAYMENT;

/// Won of each payment: three parts of it can be given back.
const WON: u64 = 33_000;
const PART: u64 = 11_000;

const CONFIRM: &str = "/v1/payments/confirm";

/// Asks what can be asked.
pub(super) async fn ask(asker: &Asker, shopper: &mut Shopper, findings: &mut Findings) {
    doors(asker, findings).await;
    strangers(asker, shopper, findings).await;
    match payment(shopper).await {
        Ok(payment) => {
            let keys = Keys::new(&payment);
            unconfirmed(asker, &payment, findings).await;
            charged(asker, &payment, &keys, findings).await;
            parts(asker, &payment, &keys, findings).await;
        }
        Err(why) => findings.skip(OF_A_PAYMENT, &why),
    }
    match payment(shopper).await {
        Ok(payment) => whole(asker, &payment, findings).await,
        Err(why) => findings.skip(&["cancel.whole", "cancel.again"], &why),
    }
    findings.skip(
        &["session"],
        "needs a payment that was authenticated ten minutes ago",
    );
    findings.skip(&["rate"], "the suite overloads nobody");
    findings.skip(
        &["transmission-id"],
        "needs an address that the gateway reaches",
    );
}

async fn payment(shopper: &mut Shopper) -> Result<Payment, String> {
    if let Some(payment) = shopper.recorded() {
        return Ok(payment);
    }
    let order_id = shopper.order_id();
    let payment_key = shopper.authenticate("toss", &order_id, WON).await.map_err(|why| {
        format!("needs a person: authenticate {WON} won in the window and give orderId, amount and paymentKey in --recorded ({why})")
    })?;
    Ok(Payment {
        order_id,
        amount: WON,
        payment_key,
        tid: String::new(),
        user_id: String::new(),
    })
}

/// Idempotency keys of one payment's calls.
struct Keys {
    confirm: String,
    part: String,
}

impl Keys {
    fn new(payment: &Payment) -> Self {
        Self {
            confirm: format!("{}-confirm", payment.order_id),
            part: format!("{}-part", payment.order_id),
        }
    }
}

/// Who may call at all.
async fn doors(asker: &Asker, findings: &mut Findings) {
    let unknown = "/v1/payments/conformance_made_up";
    let key = asker.authorization.clone();
    let without_colon = key.trim_start_matches("Basic ").to_owned();
    // The encoded key without its last character, the colon, is the key encoded alone.
    let alone = decoded(&without_colon).map(|text| basic(text.trim_end_matches(':')));
    let answer = asker
        .ask(Ask::get(unknown).by(alone.as_deref().unwrap_or("Basic")))
        .await;
    findings.saw("auth.colon", answer.brief());
    let answer = asker
        .ask(Ask::get(unknown).by(&basic("test_sk_nobody:")))
        .await;
    findings.saw("auth.key", answer.brief());
    findings.saw(
        "auth.none",
        asker.ask(Ask::get(unknown).by("")).await.brief(),
    );
    let answer = asker.ask(Ask::get(unknown)).await;
    findings.saw("get.key-unknown", answer.brief());
    findings.saw("trace", there(answer.header("x-tosspayments-trace-id")));
    let answer = asker
        .ask(Ask::get("/v1/payments/orders/conformance_made_up"))
        .await;
    findings.saw("get.order-unknown", answer.brief());
}

fn decoded(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .ok()?;
    String::from_utf8(bytes).ok()
}

fn there(value: Option<&str>) -> &'static str {
    if value.is_some() { "there" } else { "absent" }
}

/// What needs no payment.
async fn strangers(asker: &Asker, shopper: &mut Shopper, findings: &mut Findings) {
    let order_id = shopper.order_id();
    let made_up = json!({"paymentKey": "conformance_made_up", "orderId": order_id, "amount": WON});
    let bad = json!({"paymentKey": "conformance_made_up", "orderId": "a b!cdef", "amount": WON});
    let post = |body| Ask::post(CONFIRM, body);
    findings.saw(
        "confirm.key-unknown",
        asker.ask(post(&made_up)).await.brief(),
    );
    findings.saw("confirm.order-id", asker.ask(post(&bad)).await.brief());
    let long = "k".repeat(301);
    let answer = asker
        .ask(post(&made_up).with(&[("idempotency-key", &long)]))
        .await;
    findings.saw("key.long", answer.brief());
    for (id, code) in [
        ("test-code", "REJECT_CARD_PAYMENT"),
        ("test-code.unknown", "NO_SUCH_CODE"),
    ] {
        let answer = asker
            .ask(post(&made_up).with(&[("tosspayments-test-code", code)]))
            .await;
        findings.saw(id, answer.brief());
    }
    let bound = format!("{order_id}-bound");
    let first = asker
        .ask(post(&made_up).with(&[("idempotency-key", &bound)]))
        .await;
    let second = asker
        .ask(post(&bad).with(&[("idempotency-key", &bound)]))
        .await;
    findings.saw("key.bound-4xx", again(&first, &second));
    let unsure = format!("{order_id}-unsure");
    let code = (
        "tosspayments-test-code",
        "FAILED_INTERNAL_SYSTEM_PROCESSING",
    );
    let first = asker
        .ask(post(&made_up).with(&[("idempotency-key", &unsure), code]))
        .await;
    let second = asker
        .ask(post(&made_up).with(&[("idempotency-key", &unsure)]))
        .await;
    let said = if first.brief() == second.brief() {
        "bound"
    } else {
        "executed"
    };
    findings.saw(
        "key.bound-5xx",
        format!("{said}: {}, then {}", first.brief(), second.brief()),
    );
}

fn again(first: &Answer, second: &Answer) -> String {
    if first.status.is_some() && first.status == second.status && first.text == second.text {
        "the first answer again".to_owned()
    } else {
        format!("{}, then {}", first.brief(), second.brief())
    }
}

/// Before the confirm.
async fn unconfirmed(asker: &Asker, payment: &Payment, findings: &mut Findings) {
    let path = format!("/v1/payments/{}", payment.payment_key);
    let answer = asker.ask(Ask::get(&path)).await;
    findings.saw(
        "get.unconfirmed",
        format!("{} {}", answer.brief(), answer.text_at("/status")),
    );
    let less = json!({"paymentKey": payment.payment_key, "orderId": payment.order_id,
                      "amount": payment.amount - 1_000});
    let answer = asker.ask(Ask::post(CONFIRM, &less)).await;
    let refused = answer
        .status
        .is_some_and(|status| (400..500).contains(&status));
    findings.saw(
        "confirm.amount",
        if refused {
            "not charged".to_owned()
        } else {
            answer.brief()
        },
    );
    findings.saw("confirm.amount-code", answer.brief());
}

/// The confirm, its repeats, and what look-ups say.
async fn charged(asker: &Asker, payment: &Payment, keys: &Keys, findings: &mut Findings) {
    let body = json!({"paymentKey": payment.payment_key, "orderId": payment.order_id, "amount": payment.amount});
    let under = |key| Ask::post(CONFIRM, &body).with(key);
    let key = [("idempotency-key", keys.confirm.as_str())];
    let first = asker.ask(under(&key)).await;
    let shows = shown(payment, "DONE", payment.amount);
    let mut saw = first.holds(&shows);
    let at = first.text_at("/approvedAt");
    if saw == AS_SAID && !at.ends_with("+09:00") {
        saw = format!("approvedAt is {at}");
    }
    findings.saw("confirm", saw);
    let replay = asker.ask(under(&key)).await;
    let same = if first.text == replay.text {
        "the same bytes"
    } else {
        "other bytes"
    };
    findings.saw("key.replay", same);
    let echoed = replay.header("idempotency-key") == Some(&keys.confirm);
    findings.saw("key.echo", if echoed { "echoed" } else { "not echoed" });
    let (original, both) = (
        first.header("x-tosspayments-trace-id"),
        replay.header("x-tosspayments-trace-id"),
    );
    let original = original.unwrap_or("none");
    let traced = both.is_some_and(|both| both.ends_with(original) && both.len() > original.len());
    findings.saw(
        "key.trace",
        if traced { "new, original" } else { "otherwise" },
    );
    findings.saw(
        "confirm.again",
        asker.ask(Ask::post(CONFIRM, &body)).await.brief(),
    );
    let by_key = asker
        .ask(Ask::get(&format!("/v1/payments/{}", payment.payment_key)))
        .await;
    findings.saw("get.key", by_key.holds(&shows));
    findings.saw("get.version", by_key.text_at("/version"));
    let by_order = asker
        .ask(Ask::get(&format!(
            "/v1/payments/orders/{}",
            payment.order_id
        )))
        .await;
    findings.saw("get.order", by_order.holds(&shows));
}

fn shown<'a>(payment: &Payment, status: &str, balance: u64) -> Vec<(&'a str, Value)> {
    vec![
        ("/status", json!(status)),
        ("/paymentKey", json!(payment.payment_key)),
        ("/orderId", json!(payment.order_id)),
        ("/totalAmount", json!(payment.amount)),
        ("/balanceAmount", json!(balance)),
        ("/currency", json!("KRW")),
    ]
}

/// Cancels of parts.
async fn parts(asker: &Asker, payment: &Payment, keys: &Keys, findings: &mut Findings) {
    let path = format!("/v1/payments/{}/cancel", payment.payment_key);
    let lock = json!({"cancelReason": "conformance", "cancelAmount": PART,
                      "refundableAmount": payment.amount - 1_000});
    findings.saw(
        "cancel.lock",
        asker.ask(Ask::post(&path, &lock)).await.brief(),
    );
    let body = json!({"cancelReason": "conformance", "cancelAmount": PART});
    let key = [("idempotency-key", keys.part.as_str())];
    let part = asker.ask(Ask::post(&path, &body).with(&key)).await;
    let left = payment.amount - PART;
    let mut shows = shown(payment, "PARTIAL_CANCELED", left);
    shows.push(("/cancels/0/cancelAmount", json!(PART)));
    findings.saw("cancel.part", part.holds(&shows));
    findings.saw(
        "cancel.status",
        match part.text_at("/cancels/0/cancelStatus") {
            "" => "absent",
            status => status,
        },
    );
    asker.ask(Ask::post(&path, &body).with(&key)).await;
    let found = asker
        .ask(Ask::get(&format!("/v1/payments/{}", payment.payment_key)))
        .await;
    shows.push(("/cancels/1", Value::Null));
    findings.saw("cancel.replay", found.holds(&shows));
    let too_much = json!({"cancelReason": "conformance", "cancelAmount": payment.amount});
    findings.saw(
        "cancel.too-much",
        asker.ask(Ask::post(&path, &too_much)).await.brief(),
    );
    let rest = json!({"cancelReason": "conformance"});
    let rest = asker.ask(Ask::post(&path, &rest)).await;
    findings.saw(
        "cancel.rest",
        rest.holds(&shown(payment, "PARTIAL_CANCELED", 0)),
    );
}

/// A cancel of the whole.
async fn whole(asker: &Asker, payment: &Payment, findings: &mut Findings) {
    let body = json!({"paymentKey": payment.payment_key, "orderId": payment.order_id, "amount": payment.amount});
    asker.ask(Ask::post(CONFIRM, &body)).await;
    let path = format!("/v1/payments/{}/cancel", payment.payment_key);
    let body = json!({"cancelReason": "conformance"});
    let answer = asker.ask(Ask::post(&path, &body)).await;
    findings.saw("cancel.whole", answer.holds(&shown(payment, "CANCELED", 0)));
    findings.saw(
        "cancel.again",
        asker.ask(Ask::post(&path, &body)).await.brief(),
    );
}
