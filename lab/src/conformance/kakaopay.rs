//! The facts of KakaoPay's wire, online single payment.

mod facts;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::TEST_CONTRACT;
use super::asker::{AS_SAID, Answer, Ask, Asker};
use super::facts::Findings;
use super::shopper::{Payment, Shopper};
pub(super) use facts::FACTS;
use facts::OF_A_PAYMENT;

const WON: u64 = 33_000;
const PART: u64 = 11_000;
const USER: &str = "conformance";

async fn call(asker: &Asker, call: &str, body: &Value) -> Answer {
    let path = format!("/online/v1/payment/{call}");
    asker.ask(Ask::post(&path, body)).await
}

fn ready_body(order_id: &str) -> Value {
    let shop = "https://shop.example/conformance";
    json!({
        "cid": TEST_CONTRACT, "partner_order_id": order_id, "partner_user_id": USER,
        "item_name": "conformance", "quantity": 1, "total_amount": WON, "tax_free_amount": 0,
        "approval_url": shop, "cancel_url": shop, "fail_url": shop,
    })
}

fn named(tid: &str) -> Value {
    json!({"cid": TEST_CONTRACT, "tid": tid})
}

/// The same with some fields put in place of others; null takes one away.
fn with(body: &Value, changes: &[(&str, Value)]) -> Value {
    let mut body = body.clone();
    for (name, value) in changes {
        body[*name] = value.clone();
    }
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

/// Asks what can be asked.
pub(super) async fn ask(asker: &Asker, shopper: &mut Shopper, findings: &mut Findings) {
    doors(asker, shopper, findings).await;
    let opened = opened(asker, shopper, findings).await;
    match payment(asker, shopper, &opened).await {
        Ok(payment) => {
            charged(asker, &payment, findings).await;
            given_back(asker, &payment, findings).await;
        }
        Err(why) => findings.skip(OF_A_PAYMENT, &why),
    }
    findings.skip(&["token.again"], "nothing makes a bank fail on command");
    findings.skip(
        &["return.query"],
        "needs a person who closes the window, then reads the address",
    );
    findings.skip(
        &["life"],
        "needs a payment that was opened fifteen minutes ago",
    );
    findings.skip(
        &["platform-timeout"],
        "nothing makes a bank slow on command",
    );
    findings.skip(&["webhooks"], "needs an address that the gateway reaches");
}

/// Who may call, and with what.
async fn doors(asker: &Asker, shopper: &mut Shopper, findings: &mut Findings) {
    let order = "/online/v1/payment/order";
    let made_up = named("T0000000000000000000");
    let answer = asker.ask(Ask::post(order, &made_up).by("")).await;
    findings.saw("auth.none", answer.code());
    let answer = asker
        .ask(Ask::post(order, &made_up).by("SECRET_KEY nobody"))
        .await;
    findings.saw("auth.key", answer.code());
    findings.saw("auth.status", answer.brief());
    findings.saw(
        "order.unknown",
        asker.ask(Ask::post(order, &made_up)).await.brief(),
    );
    let body = ready_body(&shopper.order_id());
    let answer = call(
        asker,
        "ready",
        &with(&body, &[("cid", json!("TC0NOBODY0"))]),
    )
    .await;
    findings.saw("cid", answer.brief());
    let answer = call(asker, "ready", &with(&body, &[("item_name", Value::Null)])).await;
    findings.saw("ready.missing", answer.brief());
    let answer = call(
        asker,
        "ready",
        &with(&body, &[("total_amount", json!("33000"))]),
    )
    .await;
    findings.saw("ready.text-amount", answer.brief());
}

/// A payment that was opened and not authenticated.
struct Opened {
    order_id: String,
    tid: String,
    pc_url: String,
}

async fn opened(asker: &Asker, shopper: &mut Shopper, findings: &mut Findings) -> Opened {
    let order_id = shopper.order_id();
    let body = ready_body(&order_id);
    let first = call(asker, "ready", &body).await;
    findings.saw("ready", ready_as_said(&first));
    let schemes = ["/android_app_scheme", "/ios_app_scheme"];
    let there = schemes
        .iter()
        .all(|scheme| !first.text_at(scheme).is_empty());
    findings.saw("ready.schemes", if there { "there" } else { "absent" });
    findings.saw("time-zone", zone_of(first.text_at("/created_at")));
    let again = call(asker, "ready", &body).await;
    let other = again.status == Some(200) && again.text_at("/tid") != first.text_at("/tid");
    findings.saw(
        "ready.again",
        if other {
            "another tid".to_owned()
        } else {
            again.brief()
        },
    );

    let opened = Opened {
        tid: again.text_at("/tid").to_owned(),
        pc_url: again.text_at("/next_redirect_pc_url").to_owned(),
        order_id,
    };
    let shows = [
        ("/status", json!("READY")),
        ("/tid", json!(opened.tid)),
        ("/partner_order_id", json!(opened.order_id)),
        ("/amount/total", json!(WON)),
    ];
    findings.saw(
        "order.ready",
        call(asker, "order", &named(&opened.tid))
            .await
            .holds(&shows),
    );
    let by_order = json!({"cid": TEST_CONTRACT, "partner_order_id": opened.order_id});
    findings.saw(
        "order.by-order",
        refused(&call(asker, "order", &by_order).await),
    );
    let early = approve_body(&opened.tid, &opened.order_id, USER, "made-up");
    findings.saw(
        "approve.early",
        call(asker, "approve", &early).await.brief(),
    );
    opened
}

fn ready_as_said(answer: &Answer) -> String {
    if answer.status != Some(200) {
        return answer.brief();
    }
    let tid = answer.text_at("/tid");
    if tid.len() != 20 {
        return format!("tid has {} characters", tid.len());
    }
    for device in ["pc", "mobile", "app"] {
        let url = answer.text_at(&format!("/next_redirect_{device}_url"));
        if !url.starts_with("http") {
            return format!("next_redirect_{device}_url is `{url}`");
        }
    }
    match answer.text_at("/created_at") {
        at if at.len() == 19 && at.as_bytes().get(10) == Some(&b'T') => AS_SAID.to_owned(),
        at => format!("created_at is {at}"),
    }
}

/// Which zone a time of just now is written in, by its hour.
fn zone_of(at: &str) -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let now = seconds / 3_600 % 24;
    let near = |hour: u64, offset: u64| {
        // The hour may turn between their clock and ours.
        let wanted = (now + offset) % 24;
        hour == wanted || hour == (wanted + 23) % 24
    };
    match at.get(11..13).and_then(|hour| hour.parse().ok()) {
        Some(hour) if near(hour, 9) => "KST".to_owned(),
        Some(hour) if near(hour, 0) => "UTC".to_owned(),
        _ => format!("neither KST nor UTC: {at}"),
    }
}

fn refused(answer: &Answer) -> String {
    match answer.status {
        Some(status) if (400..500).contains(&status) => "refused".to_owned(),
        _ => answer.brief(),
    }
}

fn approve_body(tid: &str, order_id: &str, user_id: &str, token: &str) -> Value {
    json!({"cid": TEST_CONTRACT, "tid": tid, "partner_order_id": order_id, "partner_user_id": user_id,
           "pg_token": token})
}

async fn payment(asker: &Asker, shopper: &mut Shopper, opened: &Opened) -> Result<Payment, String> {
    if let Some(payment) = shopper.recorded() {
        return Ok(payment);
    }
    if !shopper.is_fake() {
        return Err(format!(
            "needs a person: authenticate at {} and within 15 minutes give orderId {}, userId {USER}, amount {WON}, \
             tid {} and the pg_token as paymentKey in --recorded",
            opened.pc_url, opened.order_id, opened.tid
        ));
    }
    let order_id = shopper.order_id();
    let ready = call(asker, "ready", &ready_body(&order_id)).await;
    let payment_key = shopper.authenticate("kakaopay", &order_id, WON).await?;
    Ok(Payment {
        order_id,
        amount: WON,
        payment_key,
        tid: ready.text_at("/tid").to_owned(),
        user_id: USER.to_owned(),
    })
}

/// The approve, its refusals, and what order says.
async fn charged(asker: &Asker, payment: &Payment, findings: &mut Findings) {
    let order = call(asker, "order", &named(&payment.tid)).await;
    findings.saw("order.authenticated", order.text_at("/status"));
    let body = approve_body(
        &payment.tid,
        &payment.order_id,
        &payment.user_id,
        &payment.payment_key,
    );
    for (id, name, value) in [
        (
            "approve.order",
            "partner_order_id",
            json!("conformance_other"),
        ),
        ("approve.user", "partner_user_id", json!("somebody")),
        ("approve.token", "pg_token", json!("f0f0f0f0f0f0f0f0f0f0")),
        (
            "approve.total",
            "total_amount",
            json!(payment.amount - 1_000),
        ),
    ] {
        let answer = call(asker, "approve", &with(&body, &[(name, value)])).await;
        findings.saw(id, answer.brief());
    }
    let approved = call(
        asker,
        "approve",
        &with(&body, &[("payload", json!("conformance"))]),
    )
    .await;
    let mut saw = approved.holds(&[
        ("/tid", json!(payment.tid)),
        ("/cid", json!(TEST_CONTRACT)),
        ("/partner_order_id", json!(payment.order_id)),
        ("/partner_user_id", json!(payment.user_id)),
        ("/amount/total", json!(payment.amount)),
    ]);
    let aid = approved.text_at("/aid").len();
    if saw == AS_SAID && aid != 20 {
        saw = format!("aid has {aid} characters");
    }
    findings.saw("approve", saw);
    findings.saw("approve.card", names_in(&approved.json["card_info"]));
    findings.saw("approve.again", call(asker, "approve", &body).await.brief());
    let key = [("idempotency-key", payment.order_id.as_str())];
    let keyed = Ask::post("/online/v1/payment/approve", &body).with(&key);
    findings.saw("approve.key", asker.ask(keyed).await.brief());
    let order = call(asker, "order", &named(&payment.tid)).await;
    let shows = [
        ("/status", json!("SUCCESS_PAYMENT")),
        ("/amount/total", json!(payment.amount)),
        ("/canceled_amount/total", json!(0)),
        ("/cancel_available_amount/total", json!(payment.amount)),
        (
            "/payment_action_details/0/payment_action_type",
            json!("PAYMENT"),
        ),
    ];
    findings.saw("order.charged", order.holds(&shows));
    findings.saw(
        "order.action",
        names_in(&order.json["payment_action_details"][0]),
    );
}

fn names_in(value: &Value) -> String {
    match value.as_object() {
        Some(fields) => fields.keys().cloned().collect::<Vec<_>>().join(", "),
        None => "absent".to_owned(),
    }
}

/// Cancels.
async fn given_back(asker: &Asker, payment: &Payment, findings: &mut Findings) {
    let (whole, left) = (payment.amount, payment.amount - PART);
    let body = |won: u64, lock: Option<u64>| {
        let mut body = named(&payment.tid);
        body["cancel_amount"] = json!(won);
        body["cancel_tax_free_amount"] = json!(0);
        with(&body, &[("cancel_available_amount", json!(lock))])
    };
    let answer = call(asker, "cancel", &body(PART, Some(whole - 1_000))).await;
    findings.saw("cancel.lock", refused(&answer));
    findings.saw("cancel.lock-code", answer.brief());
    let part = call(asker, "cancel", &body(PART, Some(whole))).await;
    let shows = [
        ("/status", json!("PART_CANCEL_PAYMENT")),
        ("/approved_cancel_amount/total", json!(PART)),
        ("/canceled_amount/total", json!(PART)),
        ("/cancel_available_amount/total", json!(left)),
    ];
    findings.saw("cancel.part", part.holds(&shows));
    call(asker, "cancel", &body(PART, Some(whole))).await;
    let order = call(asker, "order", &named(&payment.tid)).await;
    findings.saw(
        "cancel.lock-again",
        order.holds(&[shows[0].clone(), shows[2].clone(), shows[3].clone()]),
    );
    findings.saw(
        "cancel.too-much",
        call(asker, "cancel", &body(whole, None)).await.brief(),
    );
    findings.saw(
        "cancel.above",
        call(asker, "cancel", &body(whole + 1_000, None))
            .await
            .brief(),
    );
    let rest = call(asker, "cancel", &body(left, Some(left))).await;
    let shows = [
        ("/status", json!("CANCEL_PAYMENT")),
        ("/canceled_amount/total", json!(whole)),
        ("/cancel_available_amount/total", json!(0)),
    ];
    findings.saw("cancel.rest", rest.holds(&shows));
    findings.saw(
        "cancel.again",
        call(asker, "cancel", &body(PART, None)).await.brief(),
    );
    let order = call(asker, "order", &named(&payment.tid)).await;
    let actions = order.json["payment_action_details"].as_array();
    let kinds = actions
        .into_iter()
        .flatten()
        .map(|action| action["payment_action_type"].as_str().unwrap_or("?"));
    findings.saw("order.actions", kinds.collect::<Vec<_>>().join(" "));
}
