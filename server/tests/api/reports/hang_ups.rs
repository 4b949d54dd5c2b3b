//! The browser hangs up, the proxy gives up, the deploy comes: what was begun goes on to its end.

use std::process::Command;
use std::time::Duration;

use reqwest::header::COOKIE;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::raw;
use crate::shop::{Order, Shop};

const IN_FLIGHT: &str = "pg_in_flight{gateway=\"toss\",operation=\"confirm\"}";

/// Books 300 ms after it was called, and answers 500 ms after that; nobody else tells.
async fn slow_books_then_slower_answers(shop: &Shop) {
    shop.set(
        json!({"delayMs": 300, "hang": {"when": "after", "ms": 500}, "webhooks": {"drop": 1.0}}),
    )
    .await;
}

/// How a client leaves.
#[derive(Debug, Clone, Copy)]
enum Leave {
    /// An orderly close.
    Close,
    /// A reset, as of a killed process or an impatient proxy.
    Reset,
    /// It stays, but will read nothing more.
    HalfClose,
}

async fn leave(mut stream: TcpStream, how: Leave) -> Option<TcpStream> {
    match how {
        Leave::Close => drop(stream),
        Leave::Reset => {
            stream.set_zero_linger().expect("a socket");
            drop(stream);
        }
        Leave::HalfClose => {
            let _ = stream.shutdown().await;
            return Some(stream);
        }
    }
    None
}

/// The moments of one confirm, by the gateway's ledger of this order.
const MOMENTS: [(&str, u64, u64); 2] = [("sent", 1, 0), ("booked", 1, 1)];

#[tokio::test]
async fn however_and_whenever_a_client_leaves_its_payment_ends_known_and_once() {
    let shop = Shop::open().await;
    slow_books_then_slower_answers(&shop).await;
    for how in [Leave::Close, Leave::Reset, Leave::HalfClose] {
        for (moment, confirms, charges) in MOMENTS {
            for by_form in [false, true] {
                let order = shop.order("mug", 1).await;
                let key = shop.key(&order.id, order.amount);
                let bytes = if by_form {
                    form(&shop, &order, &key).await
                } else {
                    raw::confirm(&order, &order.id, &key, "x-request-timeout-ms: 65000\r\n")
                };
                let mut stream = raw::connect(&shop).await;
                stream.write_all(&bytes).await.expect("sent");
                shop.until_ledger(|ledger| {
                    let of = ledger.orders.get(&order.id);
                    of.is_some_and(|of| of.confirms >= confirms && of.charges >= charges)
                })
                .await;
                let stays = leave(stream, how).await;
                // Known to the server and nobody asks: only then is it polled.
                shop.until_metric(IN_FLIGHT, 0.0).await;
                shop.until_status(&order, "paid").await;
                assert_eq!(shop.charges(&order.id), 1, "{how:?} when {moment}");
                drop(stays);
            }
        }
    }
    // Nothing was left for recovery to ask about.
    assert_eq!(shop.pg.ledger().calls.get.received, 0);
    shop.until_metric("http_in_flight{class=\"confirm\"}", 0.0)
        .await;
    shop.end().await;
}

/// The confirm form of the return page, as bytes.
async fn form(shop: &Shop, order: &Order, key: &str) -> Vec<u8> {
    let attempt = shop.attempt(order).await;
    let reference = attempt.body["reference"].as_str().expect("text").to_owned();
    let body = format!(
        "paymentKey={key}&orderId={}&amount={}",
        order.id, order.amount
    );
    format!(
        "POST /checkout/{}/return/{reference} HTTP/1.1\r\nhost: shop\r\ncookie: {}\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
        order.id,
        order.cookie,
        body.len()
    )
    .into_bytes()
}

fn tell(pid: u32) {
    let told = Command::new("kill").arg(pid.to_string()).status();
    assert!(told.expect("kill runs").success());
}

/// Sends a confirm, waits until the gateway works on it, and hangs up.
async fn begin_and_leave(shop: &Shop, order: &Order, key: &str) {
    let bytes = raw::confirm(order, &order.id, key, "x-request-timeout-ms: 65000\r\n");
    let mut stream = raw::connect(shop).await;
    stream.write_all(&bytes).await.expect("sent");
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 1)
        .await;
    drop(stream);
}

#[tokio::test]
async fn a_stopping_server_waits_for_work_that_nobody_is_connected_to() {
    let mut shop = Shop::open().await;
    shop.set(json!({"delayMs": 1_500, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    begin_and_leave(&shop, &order, &key).await;
    tell(shop.pid());
    assert!(shop.ended().await.success());
    // The gateway has answered before the process ended, and the answer was kept: the next start asks nobody.
    assert_eq!(shop.charges(&order.id), 1);
    shop.restart().await;
    shop.until_status(&order, "paid").await;
    let calls = shop.pg.ledger().calls;
    assert_eq!((calls.confirm.received, calls.get.received), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn what_the_drain_does_not_wait_for_is_asked_about_by_the_next_start_and_never_sent_again() {
    for second_signal in [true, false] {
        let mut shop =
            Shop::with(&[("JARI_DRAIN_MS", if second_signal { "60000" } else { "300" })]).await;
        shop.set(json!({"delayMs": 4_000, "webhooks": {"drop": 1.0}}))
            .await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        begin_and_leave(&shop, &order, &key).await;
        tell(shop.pid());
        if second_signal {
            // The port closes when the first was heard.
            while tokio::net::TcpStream::connect(shop.url.trim_start_matches("http://"))
                .await
                .is_ok()
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tell(shop.pid());
        }
        let _ = shop.ended().await;
        assert_eq!(shop.charges(&order.id), 0, "it did not wait");
        shop.restart().await;
        let state = shop.poll(&order).await;
        assert_eq!(state.body["payable"], false, "{:?}", state.body);
        shop.until_status(&order, "paid").await;
        assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 1));
        shop.end().await;
    }
}

#[tokio::test]
async fn a_new_version_starts_while_the_old_one_drains_and_leaves_its_work_alone() {
    let mut shop = Shop::on_postgres(&[]).await;
    shop.set(json!({"delayMs": 3_000, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    begin_and_leave(&shop, &order, &key).await;
    tell(shop.pid());
    let new = shop.another_node().await;
    // Its own work has an end of its own; a confirm that comes to the new one meanwhile joins it.
    let state = new.poll(&order).await;
    assert_eq!(state.body["payable"], false, "{:?}", state.body);
    let again = new.confirm(&order, &key).await;
    assert!(matches!(again.status, 200 | 202), "{:?}", again.body);
    assert!(shop.ended().await.success());
    new.until_status(&order, "paid").await;
    let calls = shop.pg.ledger().calls;
    assert_eq!((calls.confirm.received, calls.get.received), (1, 0));
    drop(new);
    shop.end().await;
}

#[tokio::test]
async fn a_confirm_that_meets_a_stopping_server_is_never_sent() {
    let mut shop = Shop::open().await;
    shop.set(json!({"delayMs": 2_000})).await;
    let (order, late) = (shop.order("mug", 1).await, shop.order("mug", 1).await);
    let key = shop.key(&order.id, order.amount);
    let late_key = shop.key(&late.id, late.amount);
    // Connections that were open before: one that rests, one in the middle of a head.
    let bytes = raw::confirm(&late, &late.id, &late_key, "");
    let mut half = raw::connect(&shop).await;
    half.write_all(&bytes[..40]).await.expect("sent");
    let mut resting = raw::connect(&shop).await;
    resting
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: shop\r\n\r\n")
        .await
        .expect("sent");
    assert_eq!(raw::answer(&mut resting).await.0, 200);
    begin_and_leave(&shop, &order, &key).await;
    tell(shop.pid());
    while tokio::net::TcpStream::connect(shop.url.trim_start_matches("http://"))
        .await
        .is_ok()
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let _ = half.write_all(&bytes[40..]).await;
    let _ = resting.write_all(&bytes).await;
    for mut stream in [half, resting] {
        let (status, text) = raw::answer(&mut stream).await;
        assert!(
            status == 0 || (status == 503 && text.contains("shutting_down")),
            "{text}"
        );
    }
    assert!(shop.ended().await.success());
    shop.restart().await;
    assert_eq!(shop.poll(&late).await.body["attempt"], json!(null));
    assert_eq!(shop.confirms(), 1);
    shop.set(json!({})).await;
    let reply = shop
        .get(&format!("/api/orders/{}", order.id))
        .header(COOKIE, &order.cookie)
        .send()
        .await;
    assert_eq!(reply.unwrap().status(), 200);
    assert_eq!(shop.confirm(&late, &late_key).await.status, 200);
    shop.end().await;
}
