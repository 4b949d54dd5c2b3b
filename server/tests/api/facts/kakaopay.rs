//! What nobody outside knows of KakaoPay.

use reqwest::header::COOKIE;
use serde_json::{Value, json};

use crate::kakaopay::{
    Window, approves, at_kakaopay, authenticate, confirm, open, page, press, readies, shop, text,
};
use crate::refunds::{OPERATOR, by_operator, end_of};
use crate::shop::{Order, Shop};

/// The gateway under this reading, with this fault at KakaoPay alone.
async fn under(shop: &Shop, reading: &Value, fault: Value) {
    let mut scenario = at_kakaopay(fault);
    scenario["kakaopay"] = reading.clone();
    shop.set(scenario).await;
}

async fn authenticated(shop: &Shop) -> (Order, Window, String) {
    let order = shop.order("mug", 1).await;
    let window = open(shop, &order, "kakaopay").await;
    let token = authenticate(shop, &window).await;
    (order, window, token)
}

fn refunded(shop: &Shop, window: &Window) -> u64 {
    shop.pg.ledger().orders[&window.id].canceled_won
}

#[tokio::test]
async fn no_13_a_payment_and_its_refunds_do_not_rest_on_fields_zones_or_statuses_that_may_be_other()
{
    for reading in [
        json!({"httpStatus": "byCode", "cardInfo": "shown", "actionDetails": "shown", "timeZone": "kst"}),
        json!({"httpStatus": "always400", "cardInfo": "absent", "actionDetails": "absent", "timeZone": "utc"}),
    ] {
        let shop = shop(&[OPERATOR]).await;
        under(&shop, &reading, json!({})).await;
        let (order, window, token) = authenticated(&shop).await;
        assert_eq!(confirm(&shop, &order, &window, &token).await.status, 200);
        by_operator(&shop, &order, "k1", Some(3_000)).await;
        let part = end_of(&shop, &order, "k1", Some(3_000)).await;
        assert_eq!(part.status, 200, "{reading}: {:?}", part.body);
        assert_eq!(refunded(&shop, &window), 3_000);
        // The answer to the rest is lost: without a list of cancels the balance tells.
        let lost = json!({"loss": {"when": "after"}, "operations": ["cancel"]});
        under(&shop, &reading, lost).await;
        by_operator(&shop, &order, "k2", None).await;
        let rest = end_of(&shop, &order, "k2", None).await;
        assert_eq!(rest.status, 200, "{reading}: {:?}", rest.body);
        assert_eq!(refunded(&shop, &window), order.amount);
        assert_eq!((approves(&shop), shop.charges(&window.id)), (1, 1));
        shop.end().await;
    }
}

#[tokio::test]
async fn no_13_a_general_error_means_what_its_code_says_whatever_status_it_comes_with() {
    for status in ["byCode", "always400"] {
        let shop = shop(&[]).await;
        // -603: the platform gives up, and the work behind goes on.
        let slow = json!({"httpStatus": status, "platformTimeoutMs": 200});
        let (order, window, token) = authenticated(&shop).await;
        under(&shop, &slow, json!({"delayMs": 1_500})).await;
        let answer = confirm(&shop, &order, &window, &token).await;
        assert_eq!(answer.status, 202, "{status}: {:?}", answer.body);
        shop.until_status(&order, "paid").await;
        assert_eq!((approves(&shop), shop.charges(&window.id)), (1, 1));
        // -429: the quota is used up, so nothing was done.
        let reading = json!({"httpStatus": status});
        under(&shop, &reading, json!({})).await;
        let (order, window, token) = authenticated(&shop).await;
        under(&shop, &reading, json!({"rateLimit": 0})).await;
        confirm(&shop, &order, &window, &token)
            .await
            .refused(503, "pg_refused");
        assert_eq!(shop.charges(&window.id), 0);
        under(&shop, &reading, json!({})).await;
        let again = confirm(&shop, &order, &window, &token).await;
        assert_eq!(again.status, 200, "{status}: {:?}", again.body);
        assert_eq!(shop.money(&order), (1, 0));
        shop.end().await;
        refuses_to_open(status).await;
    }
}

/// -401: nothing is opened, and the shopper is told so.
async fn refuses_to_open(status: &str) {
    let shop = shop(&[]).await;
    let status = if status == "byCode" { 401 } else { 400 };
    let refusal = json!({"error": {"status": status, "code": "-401"}, "operations": ["ready"]});
    under(&shop, &json!({}), refusal).await;
    let order = shop.order("mug", 1).await;
    let request = shop
        .post(&format!("/api/orders/{}/attempts", order.id))
        .header(COOKIE, &order.cookie)
        .json(&json!({"gateway": "kakaopay"}));
    assert_eq!(request.send().await.expect("an answer").status(), 503);
    assert_eq!(readies(&shop), 1);
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    shop.end().await;
}

#[tokio::test]
async fn no_14_an_approve_is_never_sent_again_whether_or_not_its_token_could_be() {
    for token_reading in ["reusable", "once"] {
        for fault in [
            json!({"decline": {"code": "-780:USER_LOCKED"}}),
            json!({"loss": {"when": "before"}}),
        ] {
            let shop = shop(&[]).await;
            let (order, window, token) = authenticated(&shop).await;
            let reading = json!({"pgToken": token_reading});
            under(&shop, &reading, fault.clone()).await;
            let answer = confirm(&shop, &order, &window, &token).await;
            assert_eq!(answer.status, 202, "{fault}: {:?}", answer.body);
            under(&shop, &reading, json!({})).await;
            let asked = shop.pg.ledger().gateways.kakaopay.calls.get.received;
            shop.until_ledger(|ledger| ledger.gateways.kakaopay.calls.get.received >= asked + 2)
                .await;
            let state = shop.poll(&order).await;
            state.attempt("unknown");
            assert_eq!(state.body["payable"], false, "{token_reading} {fault}");
            assert_eq!(confirm(&shop, &order, &window, &token).await.status, 202);
            assert_eq!((approves(&shop), shop.charges(&window.id)), (1, 0));
            // Only the gateway's own word makes room for another payment.
            let shown = json!({"orderId": window.id, "status": "FAIL_PAYMENT"});
            let url = format!("{}/_control/kakaopay/status", shop.pg.url());
            let told = shop.client.put(url).json(&shown).send().await;
            assert_eq!(told.expect("an answer").status(), 204);
            shop.until(&order, |body| body["payable"] == true).await;
            let next = open(&shop, &order, "kakaopay").await;
            assert_ne!(next.id, window.id);
            let token = authenticate(&shop, &next).await;
            assert_eq!(confirm(&shop, &order, &next, &token).await.status, 200);
            assert_eq!(shop.money(&order), (1, 0));
            shop.end().await;
        }
    }
}

#[tokio::test]
async fn no_14_a_return_without_payment_is_understood_whatever_the_gateway_adds_to_its_address() {
    for (reading, added) in [("none", false), ("added", true)] {
        let shop = shop(&[]).await;
        under(&shop, &json!({"returnQuery": reading}), json!({})).await;
        for (action, said) in [
            ("close", "You closed"),
            ("refuse", "reported a refusal"),
            ("expire", "reported"),
        ] {
            let order = shop.order("mug", 1).await;
            let window = open(&shop, &order, "kakaopay").await;
            let back = press(&shop, &window, action).await;
            assert_eq!(back.contains("error_code=-7"), added, "{back}");
            let shown = page(&shop, &order, &back).await;
            assert_eq!(shown.status, 200);
            assert!(text(&shown).contains(said), "{back}: {}", text(&shown));
            // What strangers could write into the address is not shown as the shop's own words.
            assert!(!text(&shown).contains("결제 실패"), "{}", text(&shown));
            let next = open_left(&shop, &order, &window).await;
            let token = authenticate(&shop, &next).await;
            assert_eq!(confirm(&shop, &order, &next, &token).await.status, 200);
            assert_eq!(shop.money(&order), (1, 0), "{reading} {action}");
        }
        shop.end().await;
    }
}

/// Opens the next window after one that was left for good, as the page's own form does.
async fn open_left(shop: &Shop, order: &Order, left: &Window) -> Window {
    let form = [("gateway", "kakaopay"), ("left", left.reference.as_str())];
    let request = shop.post(&format!("/checkout/{}", order.id)).form(&form);
    let pressed = request.header(COOKIE, &order.cookie).send().await;
    assert_eq!(pressed.expect("an answer").status(), 303);
    open(shop, order, "kakaopay").await
}
