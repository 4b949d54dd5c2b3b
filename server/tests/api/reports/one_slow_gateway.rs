//! One slow gateway must not stop the whole shop.

use reqwest::header::COOKIE;
use serde_json::json;

use crate::shop::Shop;

#[tokio::test]
async fn a_gateway_that_hangs_holds_its_cap_of_confirms_and_nothing_else() {
    // Patient with the database: this is about the gateway.
    let env = [
        ("JARI_DATABASE_WAIT_MS", "15000"),
        ("JARI_PG_TIMEOUT_MS", "12000"),
        ("JARI_RESEND", "off"),
        ("JARI_PG_CONFIRM_WINDOW_MS", "600000"),
    ];
    let shop = Shop::with(&env).await;
    let paid = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&paid).await.status, 200);
    let mut orders = Vec::new();
    for _ in 0..100 {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        orders.push((order, key));
    }
    shop.set(json!({"stop": true, "operations": ["confirm", "get", "cancel"]}))
        .await;
    let mut running = Vec::new();
    for (order, key) in &orders {
        running.push(shop.start_pay(order, key));
    }
    // Sixty are told at once, while forty wait.
    let refusals = "pg_not_sent_total{gateway=\"toss\",reason=\"cap\"}";
    shop.until_metric(refusals, 60.0).await;
    let in_flight = "pg_in_flight{gateway=\"toss\",operation=\"confirm\"}";
    assert_eq!(shop.metric(in_flight).await, 40.0);
    // Refusals of ours do not open the circuit.
    assert_eq!(shop.metric("circuit_state{gateway=\"toss\"}").await, 0.0);
    for n in 0..20 {
        for path in ["/", "/orders", "/api/products"] {
            let request = shop.get(path).header(COOKIE, &paid.cookie);
            assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
        }
        assert_eq!(shop.poll(&paid).await.body["status"], "paid");
        let word =
            json!({"data": {"paymentKey": format!("k{n}"), "orderId": "ord_x", "status": "DONE"}});
        let hook = shop.post("/webhooks/toss").json(&word).send().await;
        assert_eq!(hook.unwrap().status(), 200);
        shop.order("mug", 1).await;
    }
    assert_eq!(shop.metric(in_flight).await, 40.0, "all that while");
    // At the gateway's time limit the forty are unknown and their places free.
    shop.until_metric(in_flight, 0.0).await;
    let (mut unknown, mut refused) = (0, 0);
    for answer in running {
        let reply = answer.await.unwrap().expect("an answer");
        if reply.status == 503 {
            reply.refused(503, "pg_cap_reached");
            assert_eq!(reply.body["reach"], "not_sent");
            refused += 1;
        } else {
            assert_eq!(reply.status, 202, "{:?}", reply.body);
            reply.attempt("unknown");
            unknown += 1;
        }
    }
    assert_eq!((unknown, refused), (40, 60));
    // Hangs do open it.
    assert_eq!(shop.metric("circuit_state{gateway=\"toss\"}").await, 2.0);
    for (order, _) in &orders {
        let state = shop.poll(order).await.body;
        let is_unknown = state["attempt"]["status"] == "unknown";
        assert_eq!(state["payable"], json!(!is_unknown));
    }
    shop.end().await;
}
