//! A shop with two gateways: KakaoPay beside Toss Payments. Each payment ends in the truth with at most one charge, and what
//! one gateway does is no matter to the other's shoppers.

use reqwest::Url;
use reqwest::header::{COOKIE, USER_AGENT};
use serde_json::{Value, json};

use crate::shop::{Order, Reply, Shop};

const BOTH: (&str, &str) = ("JARI_GATEWAYS", "toss,kakaopay");
/// Patient with a busy machine's database: these are about gateways. The page's wait has room for it.
const PATIENT: [(&str, &str); 2] = [("JARI_DATABASE_WAIT_MS", "5000"), ("JARI_POLL_COUNT", "40")];

pub(crate) async fn shop(env: &[(&str, &str)]) -> Shop {
    Shop::with(&[&[BOTH], &PATIENT[..], env].concat()).await
}

/// An attempt as the shopper is told it.
pub(crate) struct Window {
    pub(crate) id: String,
    pub(crate) reference: String,
    pub(crate) url: String,
}

async fn ask(shop: &Shop, order: &Order, gateway: &str) -> Reply {
    let request = shop
        .post(&format!("/api/orders/{}/attempts", order.id))
        .header(COOKIE, &order.cookie)
        .json(&json!({"gateway": gateway}));
    Reply::of(request.send().await.expect("an answer")).await
}

pub(crate) async fn open(shop: &Shop, order: &Order, gateway: &str) -> Window {
    let reply = ask(shop, order, gateway).await;
    assert_eq!(reply.status, 201, "{:?}", reply.body);
    let text = |name: &str| reply.body[name].as_str().expect("an answer").to_owned();
    Window {
        id: text("gatewayOrderId"),
        reference: text("reference"),
        url: text("payUrl"),
    }
}

/// Presses a button of the fake gateway's window; the path and query that it leads to.
pub(crate) async fn press(shop: &Shop, window: &Window, action: &str) -> String {
    let form = [("action", action), ("method", "CARD")];
    let reply = Reply::of(
        shop.client
            .post(&window.url)
            .form(&form)
            .send()
            .await
            .expect("an answer"),
    )
    .await;
    assert_eq!(reply.status, 303, "{action}: {:?}", reply.body);
    let to = Url::parse(reply.headers["location"].to_str().expect("an answer")).expect("an answer");
    match to.query() {
        Some(query) => format!("{}?{query}", to.path()),
        None => to.path().to_owned(),
    }
}

/// Authenticates in the window; the token.
pub(crate) async fn authenticate(shop: &Shop, window: &Window) -> String {
    let back = press(shop, window, "pay").await;
    let start = format!("/return/{}?pg_token=", window.reference);
    let (_, token) = back.split_once(&start).expect("the attempt's own address");
    token.to_owned()
}

pub(crate) async fn confirm(shop: &Shop, order: &Order, window: &Window, token: &str) -> Reply {
    let request = shop
        .confirm_request(order, &window.id, token)
        .header("X-Request-Timeout-Ms", "36000");
    Reply::of(request.send().await.expect("an answer")).await
}

pub(crate) async fn page(shop: &Shop, order: &Order, path: &str) -> Reply {
    let request = shop.get(path).header(COOKIE, &order.cookie);
    Reply::of(
        request
            .header("accept-language", "en")
            .send()
            .await
            .expect("an answer"),
    )
    .await
}

pub(crate) fn text(reply: &Reply) -> &str {
    reply.body.as_str().expect("an answer")
}

pub(crate) fn readies(shop: &Shop) -> u64 {
    shop.pg.ledger().gateways.kakaopay.calls.ready.received
}

pub(crate) fn approves(shop: &Shop) -> u64 {
    shop.pg.ledger().gateways.kakaopay.calls.confirm.received
}

/// Aims a fault at KakaoPay alone.
pub(crate) fn at_kakaopay(mut fault: Value) -> Value {
    fault["gateways"] = json!(["kakaopay"]);
    fault
}

#[tokio::test]
async fn a_payment_is_opened_once_approved_once_and_its_return_replayed_tells_the_stored_truth() {
    let shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    let again = open(&shop, &order, "kakaopay").await;
    assert_eq!((&again.id, &again.url), (&window.id, &window.url));
    assert_eq!(readies(&shop), 1, "however often the button is pressed");
    let back = press(&shop, &window, "pay").await;
    let (_, token) = back.split_once("?pg_token=").unwrap();
    let waiting = page(&shop, &order, &back).await;
    assert_eq!(waiting.status, 200);
    for part in [
        format!("value=\"{token}\""),
        format!("name=\"orderId\" value=\"{}\"", window.id),
        format!("name=\"amount\" value=\"{}\"", order.amount),
    ] {
        assert!(text(&waiting).contains(&part), "{part}: {}", text(&waiting));
    }
    // The page runs on this gateway's times.
    assert!(text(&waiting).contains("12000"), "{}", text(&waiting));
    assert_eq!(
        approves(&shop),
        0,
        "a page that is looked at charges nothing"
    );
    let paid = confirm(&shop, &order, &window, token).await;
    assert_eq!((paid.status, &paid.body["status"]), (200, &json!("paid")));
    assert_eq!(confirm(&shop, &order, &window, token).await.status, 200);
    let replayed = page(&shop, &order, &back).await;
    assert!(text(&replayed).contains("data-stage=\"paid\""));
    assert_eq!((approves(&shop), shop.charges(&window.id)), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn a_return_in_another_browser_shows_nothing_and_charges_nothing() {
    let shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    let back = press(&shop, &window, "pay").await;
    let (path, token) = back.split_once("?pg_token=").unwrap();
    let stranger = shop.order("notebook", 1).await;
    let nobody = Reply::of(shop.get(&back).send().await.unwrap()).await;
    for reply in [nobody, page(&shop, &stranger, &back).await] {
        assert_eq!(reply.status, 404);
        let shown = text(&reply);
        assert!(
            !shown.contains("name=\"orderId\"") && !shown.contains("18,000"),
            "{shown}"
        );
    }
    let amount = order.amount.to_string();
    let form = [
        ("paymentKey", token),
        ("orderId", &window.id),
        ("amount", &amount),
    ];
    let posted = shop.post(path).form(&form).send().await.unwrap();
    assert_eq!(posted.status(), 303);
    confirm(
        &shop,
        &Order {
            cookie: stranger.cookie,
            ..order.clone()
        },
        &window,
        token,
    )
    .await
    .refused(404, "order_not_found");
    assert_eq!(approves(&shop), 0);
    assert_eq!(confirm(&shop, &order, &window, token).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn a_window_that_was_closed_or_refused_in_or_ran_out_makes_room_for_a_new_one() {
    let shop = shop(&[]).await;
    let ends = [
        ("close", "You closed"),
        ("refuse", "reported a refusal"),
        ("expire", "reported"),
    ];
    for (action, said) in ends {
        let order = shop.order("mug", 1).await;
        let window = open(&shop, &order, "kakaopay").await;
        let back = press(&shop, &window, action).await;
        assert!(!back.contains("pg_token"), "{back}");
        let shown = page(&shop, &order, &back).await;
        assert!(text(&shown).contains(said), "{action}: {}", text(&shown));
        let left = format!("name=\"left\" value=\"{}\"", window.reference);
        assert!(text(&shown).contains(&left), "{}", text(&shown));
        // The form without script: the window that was left for good is not shown again.
        let form = [("gateway", "kakaopay"), ("left", window.reference.as_str())];
        let request = shop.post(&format!("/checkout/{}", order.id)).form(&form);
        let request = request.header(COOKIE, &order.cookie);
        let pressed = Reply::of(request.send().await.unwrap()).await;
        assert_eq!(pressed.status, 303);
        let to = pressed.headers["location"].to_str().unwrap();
        assert_ne!(to, window.url, "{action}");
        let next = open(&shop, &order, "kakaopay").await;
        assert_eq!(next.url, to);
        assert_ne!(next.id, window.id);
        let token = authenticate(&shop, &next).await;
        // What comes back from the old one is that one's, and it is over.
        confirm(&shop, &order, &window, &token)
            .await
            .refused(409, "attempt_expired");
        assert_eq!(confirm(&shop, &order, &next, &token).await.status, 200);
        assert_eq!(shop.money(&order), (1, 0));
    }
    shop.end().await;
}

#[tokio::test]
async fn a_return_pays_the_attempt_that_it_names_and_never_the_latest() {
    let shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let first = open(&shop, &order, "kakaopay").await;
    let old_token = authenticate(&shop, &first).await;
    let toss = open(&shop, &order, "toss").await;
    let second = open(&shop, &order, "kakaopay").await;
    let ids = [&first.id, &toss.id, &second.id];
    assert!(
        ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2],
        "{ids:?}"
    );
    confirm(&shop, &order, &first, &old_token)
        .await
        .refused(409, "attempt_expired");
    assert_eq!(approves(&shop), 0);
    // Its token under the newest one's name is not that payment's.
    let token = authenticate(&shop, &second).await;
    let wrong = confirm(&shop, &order, &second, &old_token).await;
    assert_eq!(shop.money(&order), (0, 0), "{:?}", wrong.body);
    let payable = shop.until(&order, |body| body["payable"] == true).await;
    assert_eq!(payable.body["status"], "pending");
    let third = open(&shop, &order, "kakaopay").await;
    assert_ne!(third.id, second.id);
    confirm(&shop, &order, &second, &token)
        .await
        .refused(409, "new_attempt_needed");
    let token = authenticate(&shop, &third).await;
    assert_eq!(confirm(&shop, &order, &third, &token).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn forged_amounts_and_tokens_and_payments_that_were_never_opened_are_never_charged() {
    let shop = shop(&[("JARI_GATEWAYS", "kakaopay,toss")]).await;
    let order = shop.order("mug", 2).await;
    confirm(
        &shop,
        &order,
        &Window {
            id: order.id.clone(),
            reference: String::new(),
            url: String::new(),
        },
        "token",
    )
    .await
    .refused(409, "new_attempt_needed");
    let window = open(&shop, &order, "kakaopay").await;
    let token = authenticate(&shop, &window).await;
    let cheap = Order {
        amount: 100,
        ..order.clone()
    };
    confirm(&shop, &cheap, &window, &token)
        .await
        .refused(400, "amount_mismatch");
    // The amount in the address is no matter: the page takes the order's own.
    let back = format!(
        "/checkout/{}/return/{}?pg_token={token}&amount=100&paymentKey=x&orderId=y",
        order.id, window.reference
    );
    let shown = page(&shop, &order, &back).await;
    let own = format!("name=\"amount\" value=\"{}\"", order.amount);
    assert!(text(&shown).contains(&own), "{}", text(&shown));
    assert_eq!(approves(&shop), 0);
    let forged = confirm(&shop, &order, &window, "f0f0f0f0f0f0f0f0f0f0").await;
    forged.refused(402, "declined");
    assert_eq!(shop.money(&order), (0, 0));
    let next = open(&shop, &order, "kakaopay").await;
    let token = authenticate(&shop, &next).await;
    assert_eq!(confirm(&shop, &order, &next, &token).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn after_a_definite_refusal_the_shopper_pays_the_other_way() {
    let shop = shop(&[]).await;
    shop.set(at_kakaopay(json!({"decline": {"code": "-797"}})))
        .await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    let token = authenticate(&shop, &window).await;
    confirm(&shop, &order, &window, &token)
        .await
        .refused(402, "declined");
    let checkout = page(&shop, &order, &format!("/checkout/{}", order.id)).await;
    for part in [
        "<legend>How to pay</legend>",
        "name=\"gateway\" value=\"toss\" checked",
        "value=\"kakaopay\"",
        "KakaoPay",
    ] {
        assert!(
            text(&checkout).contains(part),
            "{part}: {}",
            text(&checkout)
        );
    }
    let toss = open(&shop, &order, "toss").await;
    assert_ne!(toss.id, window.id);
    let key = shop.key(&toss.id, order.amount);
    assert_eq!(confirm(&shop, &order, &toss, &key).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn an_approve_whose_answer_never_comes_is_unknown_and_resolved_by_its_tid() {
    let shop = shop(&[
        ("JARI_KAKAOPAY_PG_TIMEOUT_MS", "3000"),
        ("JARI_KAKAOPAY_POLL_COUNT", "60"),
    ])
    .await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    let token = authenticate(&shop, &window).await;
    // It books and never answers, and is silent to those who ask.
    shop.set(at_kakaopay(
        json!({"hang": {"when": "after", "ms": 600_000}, "operations": ["confirm", "get"]}),
    ))
    .await;
    let answer = confirm(&shop, &order, &window, &token).await;
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    let unknown = shop.until_attempt(&order, "unknown").await;
    assert_eq!(unknown.body["payable"], false);
    for gateway in ["toss", "kakaopay"] {
        ask(&shop, &order, gateway)
            .await
            .refused(409, "attempt_in_progress");
    }
    let shown = page(&shop, &order, &format!("/checkout/{}", order.id)).await;
    assert!(
        !text(&shown).contains("name=\"gateway\"") && !text(&shown).contains("data-testid=\"pay\"")
    );
    shop.set(json!({})).await;
    shop.until_status(&order, "paid").await;
    assert_eq!(
        (approves(&shop), shop.charges(&window.id)),
        (1, 1),
        "never sent again"
    );
    shop.end().await;
}

#[tokio::test]
async fn a_stopped_gateway_is_no_matter_to_the_other_ones_shoppers() {
    let shop = shop(&[("JARI_KAKAOPAY_PG_CAP", "2")]).await;
    let mut stuck = Vec::new();
    for _ in 0..3 {
        let order = shop.order("mug", 1).await;
        let window = open(&shop, &order, "kakaopay").await;
        let token = authenticate(&shop, &window).await;
        stuck.push((order, window, token));
    }
    shop.set(at_kakaopay(
        json!({"stop": true, "operations": ["confirm", "ready"]}),
    ))
    .await;
    let running: Vec<_> = stuck[..2]
        .iter()
        .map(|(order, window, token)| {
            let request = shop.confirm_request(order, &window.id, token);
            tokio::spawn(request.header("X-Request-Timeout-Ms", "36000").send())
        })
        .collect();
    let in_flight = "pg_in_flight{gateway=\"kakaopay\",operation=\"confirm\"}";
    shop.until_metric(in_flight, 2.0).await;
    // Its cap is full, and the other's is not.
    let (order, window, token) = &stuck[2];
    confirm(&shop, order, window, token)
        .await
        .refused(503, "pg_cap_reached");
    for _ in 0..5 {
        let order = shop.order("mug", 1).await;
        assert_eq!(shop.pay(&order).await.status, 200);
    }
    let order = shop.order("mug", 1).await;
    let refused = ask(&shop, &order, "kakaopay").await;
    refused.refused(503, "pg_unreachable");
    assert!(
        refused.body.get("reach").is_none(),
        "nothing was sent of which to speak"
    );
    let form = [("gateway", "kakaopay")];
    let request = shop.post(&format!("/checkout/{}", order.id)).form(&form);
    let pressed = request.header(COOKIE, &order.cookie).send().await.unwrap();
    let to = pressed.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(
        to,
        format!("/checkout/{}?notice=window_not_opened", order.id)
    );
    let shown = page(&shop, &order, &to).await;
    assert!(
        text(&shown).contains("could not be opened"),
        "{}",
        text(&shown)
    );
    let toss = open(&shop, &order, "toss").await;
    let key = shop.key(&toss.id, order.amount);
    let paid = confirm(&shop, &order, &toss, &key).await;
    assert_eq!(paid.status, 200, "the other way is open");
    shop.set(json!({})).await;
    for answer in running {
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
    }
    // What was not sent goes on with the payment that was authenticated.
    let (order, window, token) = &stuck[2];
    assert_eq!(confirm(&shop, order, window, token).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn a_server_that_dies_between_opening_and_confirm_goes_on_with_what_was_opened() {
    let mut shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    let token = authenticate(&shop, &window).await;
    shop.kill();
    shop.restart().await;
    assert_eq!(open(&shop, &order, "kakaopay").await.url, window.url);
    assert_eq!(readies(&shop), 1);
    assert_eq!(confirm(&shop, &order, &window, &token).await.status, 200);
    // Dying while the gateway opens one leaves nothing that locks the order.
    let order = shop.order("mug", 1).await;
    shop.set(at_kakaopay(
        json!({"delayMs": 60_000, "operations": ["ready"]}),
    ))
    .await;
    let request = shop
        .post(&format!("/api/orders/{}/attempts", order.id))
        .header(COOKIE, &order.cookie)
        .json(&json!({"gateway": "kakaopay"}));
    let running = tokio::spawn(request.send());
    shop.until_ledger(|ledger| ledger.gateways.kakaopay.calls.ready.received == 2)
        .await;
    shop.kill();
    assert!(running.await.unwrap().is_err());
    shop.set(json!({})).await;
    shop.restart().await;
    let window = open(&shop, &order, "kakaopay").await;
    let token = authenticate(&shop, &window).await;
    assert_eq!(confirm(&shop, &order, &window, &token).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn a_payment_whose_window_is_over_expires_and_another_is_opened() {
    let shop = shop(&[("JARI_KAKAOPAY_PG_CONFIRM_WINDOW_MS", "400")]).await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    shop.until_attempt(&order, "expired").await;
    confirm(&shop, &order, &window, "token")
        .await
        .refused(409, "attempt_expired");
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    assert_ne!(open(&shop, &order, "kakaopay").await.url, window.url);
    assert_eq!(approves(&shop), 0);
    shop.end().await;
}

#[tokio::test]
async fn a_charge_is_given_back_by_its_tid() {
    let shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    let token = authenticate(&shop, &window).await;
    assert_eq!(confirm(&shop, &order, &window, &token).await.status, 200);
    let request = shop
        .post(&format!("/api/orders/{}/cancel", order.id))
        .header(COOKIE, &order.cookie)
        .header("Idempotency-Key", "cancel-1")
        .json(&json!({"reason": "changed my mind"}));
    let reply = Reply::of(request.send().await.unwrap()).await;
    assert!(matches!(reply.status, 200 | 202), "{:?}", reply.body);
    shop.until_status(&order, "canceled").await;
    assert_eq!(shop.money(&order), (1, 1));
    shop.end().await;
}

#[tokio::test]
async fn each_device_has_its_address_no_webhook_is_taken_and_the_report_shows_both_contracts() {
    let shop = shop(&[]).await;
    let order = shop.order("mug", 1).await;
    let window = open(&shop, &order, "kakaopay").await;
    let request = shop
        .post(&format!("/api/orders/{}/attempts", order.id))
        .header(COOKIE, &order.cookie)
        .header(
            USER_AGENT,
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Mobile/15E148",
        )
        .json(&json!({"gateway": "kakaopay"}));
    let phone = Reply::of(request.send().await.unwrap()).await;
    assert_ne!(phone.body["payUrl"], json!(window.url));
    assert_eq!(readies(&shop), 1);
    let hook = shop
        .post("/webhooks/kakaopay")
        .json(&json!({}))
        .send()
        .await;
    Reply::of(hook.unwrap()).await.refused(404, "not_found");
    let policy = page(&shop, &order, &format!("/checkout/{}", order.id)).await;
    let policy = policy.headers["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.contains(&format!("form-action 'self' {}", shop.pg.url())),
        "{policy}"
    );
    let (code, said) = shop.command(&["check-config"]).await;
    assert_eq!(code, 0, "{said}");
    for part in [
        "Gateway toss at",
        "Gateway kakaopay at",
        "gives up by itself after     11000 ms",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    shop.end().await;
}
