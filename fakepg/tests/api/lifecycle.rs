//! Starting, pausing, stopping and starting again on the same port; and many calls at once.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fakepg::Config;
use serde_json::json;

use crate::support::{Shop, client, read};

#[tokio::test]
async fn a_paused_gateway_refuses_connections_and_keeps_what_it_knows() {
    let mut shop = Shop::open().await;
    // A client with kept connections: none of them may survive the pause.
    shop.http = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    let payment_key = shop.paid("order_1").await;
    shop.pg.pause_listening().await;
    let path = format!("/v1/payments/{payment_key}");
    crate::support::until("connecting is refused", || async {
        let request = shop.request(reqwest::Method::GET, &path);
        read(request).await.is_err_and(|error| error.is_connect())
    })
    .await;
    shop.pg.resume_listening().await.expect("the port is free");
    assert_eq!(shop.inquire(&payment_key).await.json()["status"], "DONE");
}

#[tokio::test]
async fn with_a_control_listener_a_gateway_that_is_down_refuses_connections() {
    let control_addr = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let shop = Shop::with(Config {
        control_addr,
        ..Config::default()
    })
    .await;
    let control = shop.pg.control_url().expect("a control listener");
    let put = |scenario| {
        read(
            shop.http
                .put(format!("{control}/_control/scenario"))
                .json(&scenario),
        )
    };
    assert_eq!(
        put(json!({"up": false})).await.expect("an answer").status,
        200
    );
    let refused = shop.buy("order_1").await.expect_err("refused");
    assert!(refused.is_connect(), "{refused:?}");
    assert_eq!(put(json!({})).await.expect("an answer").status, 200);
    assert_eq!(shop.buy("order_1").await.expect("an answer").status, 200);
    let wire = shop.http.get(format!("{control}/v1/payments/x"));
    assert_eq!(
        read(wire).await.expect("an answer").status,
        404,
        "no wire on the control listener"
    );
}

#[tokio::test]
async fn a_shut_down_gateway_frees_its_ports_for_the_next() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let shop = Shop::with(Config {
        control_addr: Some(any),
        ..Config::default()
    })
    .await;
    shop.paid("order_1").await;
    let addr = shop.pg.addr();
    let control = shop.pg.control_url().expect("a control listener");
    let control_addr = Some(control["http://".len()..].parse().expect("an address"));
    shop.pg.shutdown().await;
    let next = Shop::with(Config {
        addr,
        control_addr,
        ..Config::default()
    })
    .await;
    assert_eq!(next.pg.addr(), addr);
    assert_eq!(next.buy("order_2").await.expect("an answer").status, 200);
    next.pg.kill().await;
    Shop::with(Config {
        addr,
        ..Config::default()
    })
    .await;
}

#[tokio::test]
async fn neither_hanging_calls_nor_waiting_webhooks_hold_up_a_shutdown() {
    let webhook_url = Some("http://127.0.0.1:9".to_owned());
    let shop = Shop::with(Config {
        webhook_url,
        ..Config::default()
    })
    .await;
    shop.scenario(json!({"webhooks": {"delayMs": 60_000}}))
        .await;
    shop.paid("order_1").await;
    shop.scenario(json!({"hang": {"ms": 60_000}})).await;
    let key = shop.pg.authenticate("order_2", 1_000);
    let hanging = tokio::spawn(shop.confirm_request(&key, "order_2", 1_000).send());
    shop.until("it arrives", |ledger| ledger.calls.confirm.received == 2)
        .await;
    let started = Instant::now();
    shop.pg.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(hanging.await.expect("no panic").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_at_once_are_all_answered_and_counted() {
    let shop = Shop::open().await;
    shop.scenario(json!({"stop": true})).await;
    let http = client();
    let mut calls = Vec::new();
    for number in 0..1_000 {
        let order = format!("order_{number}");
        let key = shop.pg.authenticate(&order, 1_000);
        let body = json!({"paymentKey": key, "orderId": order, "amount": 1_000});
        let url = format!("{}/v1/payments/confirm", shop.pg.url());
        let request = http
            .post(url)
            .header("authorization", crate::support::AUTH)
            .json(&body);
        calls.push(tokio::spawn(request.send()));
    }
    shop.until("all arrive", |ledger| {
        ledger.calls.confirm.received == 1_000
    })
    .await;
    shop.scenario(json!({})).await;
    for call in calls {
        assert_eq!(
            call.await.expect("no panic").expect("an answer").status(),
            200
        );
    }
    let ledger = shop.ledger();
    assert_eq!(ledger.peak_in_flight.confirm, 1_000);
    assert_eq!(
        ledger.arrivals.iter().map(|bin| bin.count).sum::<u64>(),
        1_000
    );
    assert_eq!(
        ledger
            .orders
            .values()
            .map(|order| order.charges)
            .sum::<u64>(),
        1_000
    );
}
