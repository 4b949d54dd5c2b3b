//! A shop that takes cards from abroad through Stripe beside Toss Payments: the window authorises, the confirm captures, and
//! webhooks are believed by their signature alone.

use fakepg::engine::stripe_signature;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::kakaopay::{Window, authenticate, confirm, open, page, press, text};
use crate::refunds::{OPERATOR, end_of};
use crate::shop::{Order, Reply, Shop};

const BOTH: (&str, &str) = ("JARI_GATEWAYS", "toss,stripe");
/// Patient with a busy machine's database: these are about gateways. The page's wait has room for it.
const PATIENT: [(&str, &str); 4] = [
    ("JARI_DATABASE_WAIT_MS", "5000"),
    ("JARI_POLL_COUNT", "40"),
    ("JARI_STRIPE_PG_TIMEOUT_MS", "20000"),
    ("JARI_STRIPE_POLL_COUNT", "40"),
];

async fn shop(env: &[(&str, &str)]) -> Shop {
    Shop::with(&[&[BOTH], &PATIENT[..], env].concat()).await
}

/// Aims a fault at Stripe alone.
fn at_stripe(mut fault: Value) -> Value {
    fault["gateways"] = json!(["stripe"]);
    fault
}

/// An order whose window was opened and in which the shopper authorised; the token that the return bears.
async fn authorised(shop: &Shop) -> (Order, Window, String) {
    let order = shop.order("mug", 1).await;
    let window = open(shop, &order, "stripe").await;
    let token = authenticate(shop, &window).await;
    (order, window, token)
}

async fn paid(shop: &Shop) -> (Order, Window) {
    let (order, window, token) = authorised(shop).await;
    let reply = confirm(shop, &order, &window, &token).await;
    assert_eq!((reply.status, &reply.body["status"]), (200, &json!("paid")));
    (order, window)
}

/// A call on Stripe's wire as if made at its own desk.
fn at_the_desk(shop: &Shop, path: &str, form: &[(&str, &str)]) -> RequestBuilder {
    let url = format!("{}{path}", shop.pg.url());
    shop.client.post(url).bearer_auth("sk_test_fake").form(form)
}

/// The id and the status of the payment that a window opened.
fn at_the_gateway(shop: &Shop, window: &Window) -> (String, String) {
    let payments = shop.pg.ledger().payments;
    let mut found = payments.iter().filter(|(_, one)| one.order_id == window.id);
    let (id, payment) = found.next().expect("a payment");
    (id.clone(), payment.status.clone())
}

fn now_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a time").as_secs()
}

/// An event about a payment.
fn event(id: &str, window: &Window) -> String {
    let object = json!({"object": "charge", "metadata": {"order": window.id}});
    json!({"id": id, "type": "charge.refunded", "data": {"object": object}}).to_string()
}

async fn hook(shop: &Shop, signature: Option<&str>, body: &str) -> u16 {
    let request = shop.post("/webhooks/stripe").body(body.to_owned());
    let request = match signature {
        Some(signature) => request.header("stripe-signature", signature),
        None => request,
    };
    request.send().await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn a_payment_is_authorised_in_the_window_and_charged_by_the_confirm_alone() {
    let shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let checkout = page(&shop, &order, &format!("/checkout/{}", order.id)).await;
    for part in ["value=\"stripe\"", "Card from abroad (Stripe)"] {
        assert!(text(&checkout).contains(part), "{}", text(&checkout));
    }
    let window = open(&shop, &order, "stripe").await;
    let again = open(&shop, &order, "stripe").await;
    assert_eq!((&again.id, &again.url), (&window.id, &window.url));
    let back = press(&shop, &window, "pay").await;
    let (_, token) = back.split_once("?pg_token=").expect("a token");
    let waiting = page(&shop, &order, &back).await;
    assert!(text(&waiting).contains(&format!("value=\"{token}\"")));
    assert_eq!(shop.charges(&window.id), 0, "an authorisation is no charge");
    let reply = confirm(&shop, &order, &window, token).await;
    assert_eq!((reply.status, &reply.body["status"]), (200, &json!("paid")));
    assert_eq!(confirm(&shop, &order, &window, token).await.status, 200);
    let replayed = page(&shop, &order, &back).await;
    assert!(text(&replayed).contains("data-stage=\"paid\""));
    assert_eq!(shop.charges(&window.id), 1);
    // Its own event came, signed, and was taken in.
    shop.until_metric(
        "webhook_events_total{gateway=\"stripe\",result=\"stored\"}",
        1.0,
    )
    .await;
    shop.end().await;
}

#[tokio::test]
async fn a_window_that_was_left_and_a_return_without_authorisation_charge_nothing() {
    let shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "stripe").await;
    let back = press(&shop, &window, "close").await;
    assert!(back.ends_with("?ended=closed"), "{back}");
    let shown = page(&shop, &order, &back).await;
    assert!(text(&shown).contains("You closed"), "{}", text(&shown));

    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "stripe").await;
    let back = press(&shop, &window, "pay-forged").await;
    let (_, token) = back.split_once("?pg_token=").expect("a token");
    let forged = confirm(&shop, &order, &window, token).await;
    forged.refused(402, "declined");
    assert_eq!(shop.money(&order), (0, 0));
    let next = open(&shop, &order, "stripe").await;
    assert_ne!(next.id, window.id);
    let token = authenticate(&shop, &next).await;
    assert_eq!(confirm(&shop, &order, &next, &token).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn a_declined_capture_leaves_no_authorisation_and_the_shopper_pays_the_other_way() {
    let shop = shop(&[]).await;
    shop.set(at_stripe(
        json!({"decline": {"code": "insufficient_funds"}}),
    ))
    .await;
    let (order, window, token) = authorised(&shop).await;
    let declined = confirm(&shop, &order, &window, &token).await;
    declined.refused(402, "declined");
    assert_ne!(at_the_gateway(&shop, &window).1, "requires_capture");
    let toss = open(&shop, &order, "toss").await;
    let key = shop.key(&toss.id, order.amount);
    assert_eq!(confirm(&shop, &order, &toss, &key).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn a_capture_whose_answers_are_lost_is_unknown_then_known_and_charged_once_under_one_key() {
    let shop = shop(&[("JARI_STRIPE_RESPONSE_WAIT_MS", "1000")]).await;
    let (order, window, token) = authorised(&shop).await;
    shop.set(at_stripe(json!({
        "operations": ["confirm", "get"], "loss": {"when": "after"}, "webhooks": {"drop": 1.0}
    })))
    .await;
    let answer = confirm(&shop, &order, &window, &token).await;
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    let unknown = shop.until_attempt(&order, "unknown").await;
    assert_eq!(unknown.body["payable"], false);
    shop.set(json!({})).await;
    shop.until_status(&order, "paid").await;
    let ledger = shop.pg.ledger();
    let keys: Vec<_> = ledger.keys.values().collect();
    assert_eq!((keys.len(), keys[0].charges), (1, 1), "{keys:?}");
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn an_authorisation_that_nobody_captured_is_ended_and_no_late_capture_can_charge_it() {
    let short = [
        ("JARI_STRIPE_PG_CONFIRM_WINDOW_MS", "300"),
        ("JARI_STRIPE_PG_TIMEOUT_MS", "2000"),
        ("JARI_STRIPE_RESPONSE_WAIT_MS", "500"),
    ];
    let shop = shop(&short).await;
    let (order, window, token) = authorised(&shop).await;
    // Each capture is lost on its way: nothing is booked, and the payment stays authorised.
    shop.set(at_stripe(json!({"loss": {"when": "before"}})))
        .await;
    assert_eq!(at_the_gateway(&shop, &window).1, "requires_capture");
    let answer = confirm(&shop, &order, &window, &token).await;
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    let state = shop.until_attempt(&order, "failed").await;
    assert_eq!(state.body["payable"], true);
    let (intent, status) = at_the_gateway(&shop, &window);
    assert_eq!(status, "canceled");
    shop.set(json!({})).await;
    let path = format!("/v1/payment_intents/{intent}/capture");
    let late = at_the_desk(&shop, &path, &[]).send().await.unwrap();
    assert_eq!(late.status(), 400);
    assert_eq!(shop.money(&order), (0, 0));
    let next = open(&shop, &order, "stripe").await;
    let token = authenticate(&shop, &next).await;
    assert_eq!(confirm(&shop, &order, &next, &token).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn part_and_then_the_rest_is_given_back_once_each_though_answers_are_lost() {
    let shop = shop(&[OPERATOR]).await;
    let (order, window) = paid(&shop).await;
    let given = |shop: &Shop| shop.pg.ledger().orders[&window.id].canceled_won;
    let part = end_of(&shop, &order, "k1", Some(3_000)).await;
    assert_eq!(part.status, 200, "{:?}", part.body);
    assert_eq!(given(&shop), 3_000);
    shop.set(at_stripe(
        json!({"operations": ["cancel"], "loss": {"when": "after"}}),
    ))
    .await;
    let lost = crate::refunds::by_operator(&shop, &order, "k2", None).await;
    assert!(matches!(lost.status, 200 | 202 | 503), "{:?}", lost.body);
    shop.set(json!({})).await;
    let rest = end_of(&shop, &order, "k2", None).await;
    assert_eq!(rest.status, 200, "{:?}", rest.body);
    shop.until_status(&order, "canceled").await;
    assert_eq!((given(&shop), shop.money(&order)), (order.amount, (1, 1)));
    shop.end().await;
}

#[tokio::test]
async fn a_signed_webhook_is_heard_once_and_a_forged_or_an_old_one_changes_nothing() {
    let shop = shop(&[]).await;
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    let (order, window) = paid(&shop).await;
    let (intent, _) = at_the_gateway(&shop, &window);
    let form = [("payment_intent", intent.as_str())];
    let refund = at_the_desk(&shop, "/v1/refunds", &form).send().await;
    assert_eq!(refund.unwrap().status(), 200);
    let asked = || shop.pg.ledger().calls.get.received;
    let before = asked();
    let body = event("evt_1", &window);
    let now = now_s();
    let signed = |secret: &str, at: u64| stripe_signature(secret, at, body.as_bytes());
    for signature in [
        None,
        Some(String::new()),
        Some(format!("t={now},v1={}", "0".repeat(64))),
        Some(signed("whsec_other", now)),
        // Of our own secret, and too old or from too far ahead.
        Some(signed("whsec_fake", now - 3_600)),
        Some(signed("whsec_fake", now + 3_600)),
        // A good one, of other bytes.
        Some(stripe_signature("whsec_fake", now, b"{}")),
    ] {
        let status = hook(&shop, signature.as_deref(), &body).await;
        assert_eq!(status, 400, "{signature:?}");
    }
    let counted =
        |result: &str| format!("webhook_events_total{{gateway=\"stripe\",result=\"{result}\"}}");
    assert_eq!(shop.metric(&counted("forged")).await, 7.0);
    assert_eq!(shop.metric(&counted("stored")).await, 0.0);
    assert_eq!(
        (asked(), &shop.poll(&order).await.body["status"]),
        (before, &json!("paid"))
    );

    let good = signed("whsec_fake", now);
    assert_eq!(hook(&shop, Some(&good), &body).await, 200);
    shop.until_status(&order, "canceled").await;
    // Sent again, signed anew, it is the same event.
    let again = signed("whsec_fake", now_s());
    assert_eq!(hook(&shop, Some(&again), &body).await, 200);
    assert_eq!(shop.metric(&counted("duplicate")).await, 1.0);
    assert_eq!(shop.money(&order), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn without_its_own_webhooks_secret_the_shop_takes_none_and_still_learns_the_truth() {
    let shop = shop(&[("JARI_STRIPE_WEBHOOK_SECRET", "whsec_another")]).await;
    let (order, window) = paid(&shop).await;
    shop.until_metric(
        "webhook_events_total{gateway=\"stripe\",result=\"forged\"}",
        1.0,
    )
    .await;
    assert_eq!(shop.charges(&window.id), 1);
    let reply: Reply = shop.poll(&order).await;
    assert_eq!(reply.body["status"], "paid");
    shop.end().await;
}
