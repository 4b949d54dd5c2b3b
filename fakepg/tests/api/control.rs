//! The control API over HTTP.

use serde_json::{Value, json};

use crate::support::{Shop, read};

#[tokio::test]
async fn payments_are_made_by_hand_and_always_fresh() {
    let shop = Shop::open().await;
    let url = format!("{}/_control/payments", shop.pg.url());
    let make = |body: Value| read(shop.http.post(&url).json(&body));
    let body = json!({"orderId": "order_1", "amount": 1_000, "gateway": "toss"});
    let first = make(body.clone()).await.expect("an answer").json()["paymentKey"].clone();
    let second = make(body).await.expect("an answer").json()["paymentKey"].clone();
    assert_ne!(first, second);
    let reply = shop
        .confirm(second.as_str().expect("a key"), "order_1", 1_000)
        .await;
    assert_eq!(reply.status, 200);
    for bad in [
        json!({"orderId": "order_1"}),
        json!({"orderId": "order_1", "amount": "1000"}),
        json!({"orderId": "order_1", "amount": 1_000, "gateway": "cash"}),
        json!({"orderId": "order_1", "amount": 1_000, "colour": "red"}),
    ] {
        assert_eq!(
            make(bad.clone()).await.expect("an answer").status,
            400,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn a_scenario_is_replaced_as_a_whole_and_read_back() {
    let shop = Shop::open().await;
    let url = format!("{}/_control/scenario", shop.pg.url());
    shop.scenario(json!({"delayMs": {"mean": 5.0}, "rateLimit": 9}))
        .await;
    let set = read(shop.http.get(&url)).await.expect("an answer").json();
    assert_eq!(
        (&set["delayMs"], &set["rateLimit"]),
        (&json!({"mean": 5.0}), &json!(9))
    );
    shop.scenario(json!({})).await;
    let healthy = read(shop.http.get(&url)).await.expect("an answer").json();
    assert_eq!(
        (&healthy["delayMs"], healthy.get("rateLimit")),
        (&json!(0), None)
    );
    assert_eq!(healthy["operations"], json!(["confirm"]));
    shop.scenario(healthy).await;

    let wrong = read(shop.http.put(&url).json(&json!({"dealyMs": 5})))
        .await
        .expect("an answer");
    assert_eq!(wrong.status, 400);
    let why = wrong.json()["error"].as_str().expect("a reason").to_owned();
    assert!(why.contains("dealyMs"), "{why}");
    let broken = read(shop.http.put(&url).body("{"))
        .await
        .expect("an answer");
    assert_eq!(broken.status, 400);
}

#[tokio::test]
async fn the_ledger_counts_in_the_agreed_shape_and_can_be_reset() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.keyed(&payment_key, "order_1", "k1")
        .await
        .expect("an answer");
    shop.inquire(&payment_key).await;
    shop.cancel(
        &payment_key,
        json!({"cancelReason": "일부", "cancelAmount": 300}),
    )
    .await;

    let url = format!("{}/_control/ledger", shop.pg.url());
    let ledger = read(shop.http.get(&url)).await.expect("an answer").json();
    for name in [
        "received",
        "approved",
        "declined",
        "replayed",
        "inProgress",
        "limited",
        "lost",
    ] {
        assert!(ledger["calls"]["confirm"][name].is_u64(), "{name}");
    }
    for operation in ["confirm", "get", "cancel"] {
        assert_eq!(ledger["calls"][operation]["received"], 1, "{operation}");
        assert_eq!(ledger["calls"][operation]["approved"], 1, "{operation}");
        assert_eq!(ledger["peakInFlight"][operation], 1, "{operation}");
    }
    assert_eq!(ledger["arrivals"][0]["count"], 1);
    assert_eq!(
        ledger["arrivals"][0]["atMs"].as_u64().expect("a time") % 10,
        0
    );
    let order =
        json!({"confirms": 1, "charges": 1, "cancels": 0, "chargedWon": 1_000, "canceledWon": 300});
    assert_eq!(ledger["orders"], json!({"order_1": order}));
    assert_eq!(ledger["keys"], json!({"k1": {"confirms": 1, "charges": 1}}));
    assert_eq!(
        ledger["payments"][&payment_key],
        json!({"orderId": "order_1", "status": "PARTIAL_CANCELED", "totalAmount": 1_000,
               "balanceAmount": 700})
    );

    assert_eq!(
        read(shop.http.delete(&url))
            .await
            .expect("an answer")
            .status,
        204
    );
    let reset = read(shop.http.get(&url)).await.expect("an answer").json();
    assert_eq!(
        (&reset["orders"], &reset["arrivals"]),
        (&json!({}), &json!([]))
    );
    assert_eq!(reset["calls"]["confirm"]["received"], 0);
    assert_eq!(
        shop.inquire(&payment_key).await.status,
        200,
        "the payment itself stays"
    );
}

#[tokio::test]
async fn health_tells_whether_the_wire_is_up_even_when_it_is_not() {
    let shop = Shop::open().await;
    let url = format!("{}/_control/health", shop.pg.url());
    shop.scenario(json!({"up": false})).await;
    let health = read(shop.http.get(&url)).await.expect("an answer").json();
    assert_eq!(health, json!({"status": "ok", "up": false}));
}

#[tokio::test]
async fn the_counts_and_one_order_can_be_had_without_the_whole_ledger() {
    let shop = Shop::open().await;
    let payment_key = shop.pg.authenticate("order_1", 1_000);
    shop.keyed(&payment_key, "order_1", "k1")
        .await
        .expect("an answer");
    let part = async |path: &str| {
        let url = format!("{}/_control/ledger{path}", shop.pg.url());
        read(shop.http.get(url)).await.expect("an answer").json()
    };
    let whole = part("").await;
    assert_eq!(part("/calls").await, whole["calls"]);
    assert_eq!(part("/orders/order_1").await, whole["orders"]["order_1"]);
    assert_eq!(part("/orders/none").await["confirms"], 0);
}
