//! Webhooks early, late, in any order and of any spelling: each is a hint, and what it hints at is asked about.

use serde_json::{Value, json};

use crate::shop::{Order, Shop};

/// Sends an event as it is, byte for byte.
async fn tell(shop: &Shop, transmission: &str, body: String) -> u16 {
    let request = shop
        .post("/webhooks/toss")
        .header("tosspayments-webhook-transmission-id", transmission)
        .header("content-type", "application/json");
    let answer = request.body(body).send().await.expect("an answer");
    answer.status().as_u16()
}

fn event(order: &str, key: &str, status: &str) -> String {
    json!({"eventType": "PAYMENT_STATUS_CHANGED",
        "data": {"paymentKey": key, "orderId": order, "status": status}})
    .to_string()
}

/// All orders of four things.
fn orders_of_four() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| *c != a && *c != b) {
                all.push([a, b, c, 6 - a - b - c]);
            }
        }
    }
    all
}

/// An order whose first attempt was declined, and the second's key and id.
async fn declined_then_opened(shop: &Shop) -> (Order, [String; 2], String) {
    let order = shop.order("mug", 1).await;
    let first = shop.key(&order.id, order.amount);
    shop.confirm(&order, &first).await.refused(402, "declined");
    let attempt = shop.attempt(&order).await;
    let id = attempt.body["gatewayOrderId"].as_str().unwrap().to_owned();
    let second = shop.key(&id, order.amount);
    (order, [first, second], id)
}

#[tokio::test]
async fn events_of_two_attempts_in_all_24_orders_leave_the_paid_order_paid() {
    let shop = Shop::open().await;
    shop.set(json!({"decline": {"code": "REJECT_CARD_COMPANY"}, "webhooks": {"drop": 1.0}}))
        .await;
    let all = orders_of_four();
    assert_eq!(all.len(), 24);
    let mut shoppers = Vec::new();
    for _ in &all {
        shoppers.push(declined_then_opened(&shop).await);
    }
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    for (n, (turn, (order, [first, second], id))) in all.iter().zip(&shoppers).enumerate() {
        let paid = shop.confirm_request(order, id, second).send().await;
        assert_eq!(paid.unwrap().status(), 200);
        let events = [
            event(&order.id, first, "ABORTED"),
            event(&order.id, first, "EXPIRED"),
            event(id, second, "IN_PROGRESS"),
            event(id, second, "DONE"),
        ];
        for which in turn {
            for _ in 0..2 {
                let transmission = format!("{n}-{which}");
                assert_eq!(
                    tell(&shop, &transmission, events[*which].clone()).await,
                    200
                );
            }
        }
    }
    let count =
        |result: &str| format!("webhook_events_total{{gateway=\"toss\",result=\"{result}\"}}");
    shop.until_metric(&count("applied"), 96.0).await;
    assert_eq!(shop.metric(&count("duplicate")).await, 96.0);
    // Each was followed up, and nothing moved.
    shop.until_ledger(|ledger| ledger.calls.get.received >= 24)
        .await;
    for (order, ..) in &shoppers {
        let state = shop.poll(order).await;
        assert_eq!(
            (&state.body["status"], &state.body["attempt"]["number"]),
            (&json!("paid"), &json!(2))
        );
    }
    assert_eq!(
        shop.metric("payments_total{status=\"approved\"}").await,
        24.0
    );
    assert_eq!(shop.metric("payments_total{status=\"failed\"}").await, 24.0);
    shop.end().await;
}

#[tokio::test]
async fn an_event_is_read_however_it_is_spelled() {
    let shop = Shop::with(&[("JARI_RESEND", "off")]).await;
    // Nothing but the event leads to the truth soon: an inquiry finds nothing for long, and looks grow rare.
    let spelled = |order: &str, key: &str| {
        let escaped: String = key
            .bytes()
            .map(|byte| format!("\\u{:04x}", u32::from(byte)))
            .collect();
        [
            format!(
                "{{\"data\":{{\"orderId\":\"{order}\",\"paymentKey\":\"{key}\",\"status\":\"DONE\"}}}}"
            ),
            format!(
                "\r\n\t {{ \"data\" :\n {{\"status\":\"DONE\" ,  \"paymentKey\"\t:  \"{key}\"}}\n}}  \n"
            ),
            format!("{{\"data\":{{\"paymentKey\":\"{escaped}\",\"x\":\"\\ud55c\\uae00\"}}}}"),
            format!("{{\"d\\u0061ta\":{{\"orderId\":\"{order}\"}}}}"),
        ]
    };
    for n in 0..4 {
        shop.set(json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
            .await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        shop.confirm(&order, &key).await;
        let body = spelled(&order.id, &key)[n].clone();
        assert_eq!(tell(&shop, &format!("s{n}"), body.clone()).await, 200);
        let applied = "webhook_events_total{gateway=\"toss\",result=\"applied\"}";
        shop.until_metric(applied, f64::from(u32::try_from(n).unwrap() + 1))
            .await;
        shop.until_status(&order, "paid").await;
    }
    shop.end().await;
}

#[tokio::test]
async fn an_event_with_any_signature_or_none_is_a_hint_and_no_proof() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    shop.set(json!({"decline": {}, "webhooks": {"drop": 1.0}}))
        .await;
    shop.confirm(&order, &key).await.refused(402, "declined");
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    let forged = event(&order.id, &key, "DONE");
    let headers: [(&str, &str); 4] = [
        ("tosspayments-webhook-signature", "v1:AAAA"),
        ("webhook-signature", "v1,AAAA"),
        ("authorization", "Basic AAAA"),
        ("x-nothing", "x"),
    ];
    for (n, (name, value)) in headers.iter().enumerate() {
        let request = shop
            .post("/webhooks/toss")
            .header("tosspayments-webhook-transmission-id", format!("f{n}"))
            .header(
                "tosspayments-webhook-transmission-time",
                "2001-01-01T00:00:00+09:00",
            )
            .header(*name, *value)
            .body(forged.clone());
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let applied = "webhook_events_total{gateway=\"toss\",result=\"applied\"}";
    shop.until_metric(applied, 4.0).await;
    shop.until_ledger(|ledger| ledger.calls.get.received > 0)
        .await;
    let state = shop.poll(&order).await;
    assert_eq!(
        (&state.body["status"], &state.body["payable"]),
        (&json!("pending"), &json!(true))
    );
    assert_eq!(shop.charges(&order.id), 0);
    shop.end().await;
}

#[tokio::test]
async fn an_event_of_another_shops_order_is_kept_and_makes_none() {
    let shop = Shop::open().await;
    // The same gateway account, an order that this shop never made: it is charged there all the same.
    let foreign = shop.key("another_shops_order", 5_000);
    let charge = shop
        .client
        .post(format!("{}/v1/payments/confirm", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"paymentKey": foreign, "orderId": "another_shops_order", "amount": 5_000}));
    assert_eq!(charge.send().await.unwrap().status(), 200);
    let parked = "webhook_events_total{gateway=\"toss\",result=\"parked\"}";
    let stored = "webhook_events_total{gateway=\"toss\",result=\"stored\"}";
    shop.until_metric(stored, 1.0).await;
    while shop.metric(parked).await < 1.0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut beside = crate::beside::Beside::of(&shop).await;
    assert_eq!(beside.rows().await, [0, 0, 0, 0, 1]);
    // Nobody was asked about it.
    assert_eq!(shop.pg.ledger().calls.get.received, 0);
    let nothing: Value = json!([]);
    assert_ne!(nothing, json!(null));
}
