//! One truth told many times, in any order and at once: one transition, one mail, one move of the stock.

use reqwest::header::COOKIE;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::effects::{Folder, mails};
use crate::shop::{Order, Shop};
use crate::webhooks::hook;

/// All orders of four.
fn orders_of_four() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for code in 0..256_usize {
        let order = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6];
        if (0..4).all(|n| order.contains(&n)) {
            all.push(order);
        }
    }
    all
}

/// An order whose first attempt was declined and whose second was charged, its answer lost if `lost`; with their keys.
async fn declined_then_charged(shop: &Shop, lost: bool) -> (Order, [(String, String); 2]) {
    shop.set(json!({"decline": {"code": "REJECT_CARD_PAYMENT"}, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let first = shop.key(&order.id, order.amount);
    shop.confirm(&order, &first).await.refused(402, "declined");
    let quiet = json!({"webhooks": {"drop": 1.0}});
    let losing = json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}});
    shop.set(if lost { losing } else { quiet.clone() }).await;
    let attempt = shop.attempt(&order).await;
    let id = attempt.body["gatewayOrderId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let second = shop.key(&id, order.amount);
    let request = shop.confirm_request(&order, &id, &second).send();
    let expected = if lost { 202 } else { 200 };
    assert_eq!(request.await.expect("an answer").status(), expected);
    shop.set(quiet).await;
    let keys = [(order.id.clone(), first), (id, second)];
    (order, keys)
}

fn event((id, key): &(String, String), status: &str) -> Value {
    json!({"eventType": "PAYMENT_STATUS_CHANGED", "data": {"paymentKey": key, "orderId": id, "status": status}})
}

#[tokio::test]
async fn a_decline_and_a_charge_told_in_any_order_twice_are_one_payment_and_one_mail() {
    let folder = Folder::new();
    // So many lost answers would open the circuit, which is another test's matter.
    let off = [("JARI_RESEND", "off"), ("JARI_CIRCUIT", "off")];
    let shop = Shop::with(&[&off[..], &[folder.setting()]].concat()).await;
    let ways = orders_of_four();
    assert_eq!(ways.len(), 24);
    let mut all = Vec::new();
    for (n, way) in ways.iter().enumerate() {
        let (order, keys) = declined_then_charged(&shop, n % 2 == 0).await;
        let events = [
            event(&keys[0], "ABORTED"),
            event(&keys[0], "EXPIRED"),
            event(&keys[1], "IN_PROGRESS"),
            event(&keys[1], "DONE"),
        ];
        for step in way {
            for _copy in 0..2 {
                let id = format!("{n}-{step}");
                let status = hook(&shop, Some(&id), events[*step].clone()).await;
                assert_eq!(status, 200);
            }
        }
        all.push((order, keys));
    }
    for (order, _) in &all {
        shop.until_status(order, "paid").await;
        shop.until_told(order, &["order_paid"]).await;
    }
    shop.until_metric("webhooks_waiting", 0.0).await;
    // The last word of each comes once more, long after everything: a failure of the first attempt.
    for (n, (order, keys)) in all.iter().enumerate() {
        let id = format!("late-{n}");
        assert_eq!(
            hook(&shop, Some(&id), event(&keys[0], "ABORTED")).await,
            200
        );
        shop.poll(order).await.attempt("approved");
    }
    shop.until_metric(
        "webhook_events_total{gateway=\"toss\",result=\"applied\"}",
        24.0 * 5.0,
    )
    .await;
    for (order, _) in &all {
        assert_eq!(shop.poll(order).await.body["status"], "paid");
        assert_eq!(shop.money(order), (1, 0));
        assert_eq!(mails(&folder, order).await.len(), 1);
        shop.until_told(order, &["order_paid"]).await;
    }
    let approved = shop.metric("payments_total{status=\"approved\"}").await;
    assert_eq!(approved, 24.0);
    shop.end().await;
}

#[tokio::test]
async fn ten_copies_a_poll_a_return_and_recovery_at_once_on_two_nodes_are_one_payment() {
    let folder = Folder::new();
    let shop = Shop::on_postgres(&[folder.setting(), ("JARI_RESEND", "off")]).await;
    let other = shop.another_node().await;
    for round in 0..3 {
        shop.set(json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
            .await;
        let order = shop.order("mug", 1).await;
        let opened = shop.attempt(&order).await;
        let reference = opened.body["reference"].as_str().unwrap().to_owned();
        let key = shop.key(&order.id, order.amount);
        assert_eq!(shop.confirm(&order, &key).await.status, 202);
        shop.set(json!({"webhooks": {"drop": 1.0}})).await;
        let done = event(&(order.id.clone(), key.clone()), "DONE");
        let mut tasks = JoinSet::new();
        for n in 0..10 {
            let url = if n % 2 == 0 { &shop.url } else { &other.url };
            let request = shop.client.post(format!("{url}/webhooks/toss")).json(&done);
            // Half of them are the same transmission, half have none.
            let request = match n % 4 {
                0 | 1 => request.header(
                    "tosspayments-webhook-transmission-id",
                    format!("round-{round}"),
                ),
                _ => request,
            };
            tasks.spawn(async move { request.send().await.unwrap().status().as_u16() });
        }
        for url in [&shop.url, &other.url] {
            let paths = [
                format!("/api/orders/{}", order.id),
                format!(
                    "/checkout/{}/return/{reference}?paymentKey={key}&orderId={}&amount={}",
                    order.id, order.id, order.amount
                ),
            ];
            for path in paths {
                let request = shop.client.get(format!("{url}{path}"));
                let request = request.header(COOKIE, &order.cookie);
                tasks.spawn(async move { request.send().await.unwrap().status().as_u16() });
            }
        }
        assert!(
            tasks
                .join_all()
                .await
                .into_iter()
                .all(|status| status == 200)
        );
        // Recovery looks at it by itself, a second after it became unknown.
        shop.until_status(&order, "paid").await;
        other.until_status(&order, "paid").await;
        shop.until_told(&order, &["order_paid"]).await;
        assert_eq!(mails(&folder, &order).await.len(), 1);
        assert_eq!(shop.money(&order), (1, 0));
    }
    let approved = "payments_total{status=\"approved\"}";
    assert_eq!(
        shop.metric(approved).await + other.metric(approved).await,
        3.0
    );
    shop.end().await;
}
