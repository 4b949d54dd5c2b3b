//! Half-sent requests: heads and bodies that never end hold no connection for ever, and no place of anybody.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::raw;
use crate::shop::Shop;

/// A head or a body must be there within 10 s; the rest is for a machine that has much else to do.
const CLOSED_BY: Duration = Duration::from_secs(30);

/// Sends a byte now and then, until the other side has had enough; the answer that came, if any.
async fn drip(mut stream: TcpStream, start: Vec<u8>, byte: u8) -> String {
    stream.write_all(&start).await.expect("sent");
    let mut answer = Vec::new();
    let dripping = async {
        let (mut read, mut write) = stream.split();
        let closed = read.read_to_end(&mut answer);
        let mut pace = tokio::time::interval(Duration::from_millis(500));
        let feeding = async {
            loop {
                pace.tick().await;
                if write.write_all(&[byte]).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            _ = closed => {}
            () = feeding => {}
        }
    };
    let ended = tokio::time::timeout(CLOSED_BY, dripping).await;
    ended.expect("it was closed");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn heads_and_bodies_that_drip_are_closed_and_hold_up_no_payment() {
    let shop = Shop::open().await;
    let victim = shop.order("mug", 1).await;
    let key = shop.key(&victim.id, victim.amount);
    let whole = raw::confirm(&victim, &victim.id, &key, "");
    let body_at = whole.windows(4).position(|four| four == b"\r\n\r\n");
    let body_at = body_at.expect("a head") + 5;
    let mut heads = JoinSet::new();
    for n in 0..500 {
        let stream = raw::connect(&shop).await;
        // Some stop in the first line, some in a header's name, some in its value.
        let start: &[u8] = match n % 3 {
            0 => b"POST /api/pay",
            1 => b"POST /api/payments/confirm HTTP/1.1\r\nho",
            _ => b"POST /api/payments/confirm HTTP/1.1\r\nhost: shop\r\nx: ",
        };
        heads.spawn(drip(stream, start.to_vec(), b'y'));
    }
    let mut bodies = JoinSet::new();
    for _ in 0..100 {
        let stream = raw::connect(&shop).await;
        // A real confirm, all but its end, which never comes: blanks are no end.
        bodies.spawn(drip(stream, whole[..body_at].to_vec(), b' '));
    }
    // No place is held for any of them, and whoever sends a whole request is served.
    for _ in 0..5 {
        let order = shop.order("mug", 1).await;
        assert_eq!(shop.pay(&order).await.status, 200);
    }
    assert_eq!(shop.metric("http_in_flight{class=\"confirm\"}").await, 0.0);
    let in_flight = "pg_in_flight{gateway=\"toss\",operation=\"confirm\"}";
    assert_eq!(shop.metric(in_flight).await, 0.0);
    assert_eq!(shop.confirms(), 5);
    while let Some(closed) = heads.join_next().await {
        let text = closed.expect("it ended");
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    while let Some(closed) = bodies.join_next().await {
        let text = closed.expect("it ended");
        assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    }
    assert_eq!(shop.metric("http_shed_total{class=\"confirm\"}").await, 0.0);
    assert_eq!(shop.confirms(), 5);
    assert_eq!(
        shop.poll(&victim).await.body["attempt"],
        serde_json::Value::Null
    );
    assert_eq!(shop.confirm(&victim, &key).await.status, 200);
    shop.end().await;
}
