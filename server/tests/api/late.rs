//! A charge that shows after its attempt had failed: given back, or where the shop wants that the payment of its order;
//! never two charges that stand.

use std::time::Duration;

use serde_json::{Value, json};

use crate::effects::{Folder, mails};
use crate::shop::{Order, Shop};
use crate::webhooks::{SHORT, charge_late, failed_by_the_clock, hook};

const REVIVE: (&str, &str) = ("JARI_LATE_SUCCESS", "revive");
const ALARM: &str = "payments_alarm_total{alarm=\"late_success\"}";

fn short_with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    SHORT.iter().chain(more).copied().collect()
}

/// The gateway's own word of the charge, as it might come by any route.
fn word(order: &Order, key: &str) -> Value {
    json!({"data": {"paymentKey": key, "orderId": order.id, "status": "DONE"}})
}

/// Confirms another attempt of the order.
async fn pay_again(shop: &Shop, order: &Order) -> u16 {
    let attempt = shop.attempt(order).await;
    let id = attempt.body["gatewayOrderId"].as_str().expect("an id");
    let key = shop.key(id, order.amount);
    let request = shop.confirm_request(order, id, &key).send();
    request.await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn a_late_charge_is_given_back_once_however_often_it_is_told() {
    let folder = Folder::new();
    let shop = Shop::with(&short_with(&[folder.setting()])).await;
    let (order, key) = failed_by_the_clock(&shop).await;
    shop.set(json!({"webhooks": {"duplicate": 1.0}})).await;
    charge_late(&shop, &order, &key).await;
    for n in 0..5 {
        let id = format!("again-{n}");
        assert_eq!(hook(&shop, Some(&id), word(&order, &key)).await, 200);
    }
    let state = shop.until_attempt(&order, "canceled").await;
    assert_eq!(
        (&state.body["status"], &state.body["payable"]),
        (&json!("pending"), &json!(true))
    );
    assert_eq!(shop.money(&order), (1, 1));
    shop.until_told(&order, &["alarm", "charge_returned"]).await;
    assert_eq!(shop.metric(ALARM).await, 1.0);
    assert_eq!(mails(&folder, &order).await.len(), 2);
    shop.end().await;
}

#[tokio::test]
async fn a_late_charge_pays_its_order_once_however_often_it_is_told_where_that_is_the_policy() {
    let folder = Folder::new();
    let shop = Shop::with(&short_with(&[folder.setting(), REVIVE])).await;
    let (order, key) = failed_by_the_clock(&shop).await;
    shop.set(json!({"webhooks": {"duplicate": 1.0}})).await;
    charge_late(&shop, &order, &key).await;
    for n in 0..5 {
        let id = format!("again-{n}");
        assert_eq!(hook(&shop, Some(&id), word(&order, &key)).await, 200);
    }
    let state = shop.until_status(&order, "paid").await;
    state.attempt("approved");
    assert_eq!(state.body["payable"], false);
    // The same confirm is answered with what is true now.
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    assert_eq!(shop.money(&order), (1, 0));
    shop.until_told(&order, &["order_paid", "alarm"]).await;
    assert_eq!(shop.metric(ALARM).await, 1.0);
    assert_eq!(mails(&folder, &order).await.len(), 2);
    shop.end().await;
}

#[tokio::test]
async fn a_late_charge_goes_back_when_another_attempt_has_paid_meanwhile() {
    for policy in [&[][..], &[REVIVE]] {
        let shop = Shop::with(&short_with(policy)).await;
        let (order, key) = failed_by_the_clock(&shop).await;
        shop.set(json!({})).await;
        assert_eq!(pay_again(&shop, &order).await, 200);
        charge_late(&shop, &order, &key).await;
        shop.until_ledger(|ledger| ledger.orders[&order.id].cancels == 1)
            .await;
        assert_eq!(shop.poll(&order).await.body["status"], "paid");
        assert_eq!(shop.money(&order), (2, 1));
        shop.until_told(&order, &["order_paid", "alarm", "charge_returned"])
            .await;
        shop.end().await;
    }
}

#[tokio::test]
async fn a_late_charge_goes_back_while_another_attempt_is_in_doubt_whatever_becomes_of_that() {
    // Booked and lost, or never booked: neither is known when the late one shows.
    for (when, paid) in [("after", true), ("before", false)] {
        let shop = Shop::with(&short_with(&[REVIVE, ("JARI_RESEND", "off")])).await;
        let (order, key) = failed_by_the_clock(&shop).await;
        shop.set(json!({})).await;
        charge_late_unseen(&shop, &order, &key).await;
        shop.set(json!({"loss": {"when": when}, "webhooks": {"drop": 1.0}}))
            .await;
        assert_eq!(pay_again(&shop, &order).await, 202);
        let id = format!("late-{when}");
        assert_eq!(hook(&shop, Some(&id), word(&order, &key)).await, 200);
        shop.until_ledger(|ledger| ledger.orders[&order.id].cancels == 1)
            .await;
        let state = shop
            .until(&order, |body| {
                body["status"] == "paid" || body["payable"] == true
            })
            .await;
        assert_eq!(state.body["status"] == "paid", paid, "{:?}", state.body);
        assert_eq!(
            shop.money(&order),
            if paid { (2, 1) } else { (1, 1) },
            "{when}"
        );
        shop.end().await;
    }
}

/// The gateway charges it late and tells nobody.
async fn charge_late_unseen(shop: &Shop, order: &Order, key: &str) {
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    charge_late(shop, order, key).await;
}

#[tokio::test]
async fn a_late_charge_goes_back_when_its_last_piece_was_sold_meanwhile() {
    let shop = Shop::with(&short_with(&[REVIVE])).await;
    shop.set(json!({"loss": {"when": "before"}})).await;
    let late = shop.order("poster", 1).await;
    let key = shop.key(&late.id, late.amount);
    shop.confirm(&late, &key).await;
    shop.until_attempt(&late, "failed").await;
    shop.set(json!({})).await;
    // What had failed holds nothing: somebody else buys it.
    let other = shop.order("poster", 1).await;
    assert_eq!(shop.pay(&other).await.status, 200);
    charge_late(&shop, &late, &key).await;
    shop.until_attempt(&late, "canceled").await;
    assert_eq!((shop.money(&late), shop.money(&other)), ((1, 1), (1, 0)));
    assert_eq!(shop.poll(&other).await.body["status"], "paid");
    shop.end().await;
}

#[tokio::test]
async fn a_late_charge_brings_back_an_order_whose_time_was_over_and_its_stock() {
    for (policy, revived) in [(&[][..], false), (&[REVIVE], true)] {
        let more = [policy, &[("JARI_ORDER_TTL_MS", "5000")]].concat();
        let shop = Shop::with(&short_with(&more)).await;
        shop.set(json!({"loss": {"when": "before"}})).await;
        let order = shop.order("poster", 1).await;
        let key = shop.key(&order.id, order.amount);
        shop.confirm(&order, &key).await;
        shop.until_status(&order, "expired").await;
        shop.set(json!({})).await;
        charge_late(&shop, &order, &key).await;
        let request = shop.post("/api/orders");
        let another = request.json(&json!({"items": [{"sku": "poster", "quantity": 1}]}));
        if revived {
            shop.until_status(&order, "paid").await;
            assert_eq!(shop.money(&order), (1, 0));
            assert_eq!(another.send().await.unwrap().status(), 409);
        } else {
            shop.until_attempt(&order, "canceled").await;
            assert_eq!(shop.poll(&order).await.body["status"], "expired");
            assert_eq!(shop.money(&order), (1, 1));
            assert_eq!(another.send().await.unwrap().status(), 201);
        }
        shop.end().await;
    }
}

#[tokio::test]
async fn a_server_killed_while_it_learns_of_a_late_charge_does_as_its_policy_says_once() {
    for (policy, cancels) in [(&[][..], 1), (&[REVIVE], 0)] {
        let mut shop = Shop::with(&short_with(policy)).await;
        let (order, key) = failed_by_the_clock(&shop).await;
        shop.set(json!({})).await;
        charge_late_unseen(&shop, &order, &key).await;
        // Killed while it asks, and again while the money goes back.
        shop.set(json!({"operations": ["get"], "delayMs": 400}))
            .await;
        let asked = shop.pg.ledger().calls.get.received;
        assert_eq!(hook(&shop, Some("late"), word(&order, &key)).await, 200);
        shop.until_ledger(|ledger| ledger.calls.get.received > asked)
            .await;
        shop.kill();
        // What it held of the look ends with its lease; a gateway that tells it again is heard at once.
        shop.restart().await;
        shop.set(json!({"operations": ["cancel"], "delayMs": 300}))
            .await;
        assert_eq!(
            hook(&shop, Some("late again"), word(&order, &key)).await,
            200
        );
        if cancels == 1 {
            shop.until_ledger(|ledger| ledger.calls.cancel.received >= 1)
                .await;
            shop.kill();
            tokio::time::sleep(Duration::from_millis(1)).await;
            shop.restart().await;
            shop.set(json!({})).await;
            assert_eq!(
                hook(&shop, Some("once more"), word(&order, &key)).await,
                200
            );
            shop.until_attempt(&order, "canceled").await;
        } else {
            shop.until_status(&order, "paid").await;
        }
        assert_eq!(shop.money(&order), (1, cancels));
        let told: &[&str] = if cancels == 1 {
            &["alarm", "charge_returned"]
        } else {
            &["order_paid", "alarm"]
        };
        shop.until_told(&order, told).await;
        shop.end().await;
    }
}
