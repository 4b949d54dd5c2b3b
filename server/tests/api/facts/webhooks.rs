//! What nobody outside knows of Toss's webhooks: whether a resend keeps its name, and which answers count as received.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::raw::{answer, message};
use crate::shop::{Node, Shop};
use crate::webhooks::hook;

/// What lies between a gateway's webhooks and the shop: it passes each on, and loses the first answers.
struct Between {
    url: String,
    passed: Arc<AtomicU32>,
    accepting: AbortHandle,
}

impl Between {
    async fn of(node: &Node, loses: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shop = node.url.trim_start_matches("http://").to_owned();
        let passed = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&passed);
        let accepting = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let request = message(&mut near).await;
                let mut far = TcpStream::connect(&shop).await.expect("the shop");
                far.write_all(request.as_bytes()).await.expect("passed on");
                let (status, text) = answer(&mut far).await;
                assert_eq!(status, 200, "{text}");
                if counted.fetch_add(1, Ordering::SeqCst) >= loses {
                    let _ = near.write_all(text.as_bytes()).await;
                }
            }
        });
        Self {
            url,
            passed,
            accepting: accepting.abort_handle(),
        }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[tokio::test]
async fn no_8_a_webhook_that_comes_again_has_one_effect_whether_or_not_it_keeps_its_name() {
    for stable in [true, false] {
        let shop = Shop::open().await;
        let between = Between::of(&shop, 2).await;
        shop.pg.set_webhook_url(Some(between.url.clone()));
        // Only a webhook tells of the charge soon: its answer is lost, and inquiries see it late.
        shop.set(
            json!({"loss": {"when": "after"}, "webhooks": {"resend": {"scale": 0.001}},
            "uncertain": {"stableTransmissionId": stable}}),
        )
        .await;
        let order = shop.order("mug", 1).await;
        shop.pay(&order).await;
        shop.until_status(&order, "paid").await;
        let stored = "webhook_events_total{gateway=\"toss\",result=\"stored\"}";
        let known = "webhook_events_total{gateway=\"toss\",result=\"duplicate\"}";
        // Three times it came: twice because the gateway did not hear that it had been received.
        shop.until_metric(
            if stable { known } else { stored },
            if stable { 2.0 } else { 3.0 },
        )
        .await;
        let applied = "webhook_events_total{gateway=\"toss\",result=\"applied\"}";
        shop.until_metric(applied, if stable { 1.0 } else { 3.0 })
            .await;
        assert_eq!(between.passed.load(Ordering::SeqCst), 3);
        shop.until_told(&order, &["order_paid"]).await;
        assert_eq!(shop.money(&order), (1, 0), "stable: {stable}");
        shop.end().await;
    }
}

#[tokio::test]
async fn no_8_every_webhook_that_is_received_is_answered_by_exactly_the_status_that_surely_counts()
{
    for any_2xx in [true, false] {
        let shop = Shop::open().await;
        shop.set(json!({"webhooks": {"resend": {"scale": 0.001}},
            "uncertain": {"any2xxReceived": any_2xx}}))
            .await;
        let (order, other) = (shop.order("mug", 1).await, shop.order("mug", 1).await);
        assert_eq!(shop.pay(&order).await.status, 200);
        for (id, body) in [
            (
                "w1",
                json!({"data": {"orderId": order.id, "status": "DONE"}}),
            ),
            (
                "w1",
                json!({"data": {"orderId": order.id, "status": "DONE"}}),
            ),
            (
                "w2",
                json!({"data": {"orderId": other.id, "status": "DONE"}}),
            ),
            (
                "w3",
                json!({"eventType": "payout.changed", "createdAt": "2026-10-02T11:02:09+09:00",
                "version": "2022-11-16", "eventId": "evt_1", "entityType": "payout", "entityBody": {}}),
            ),
        ] {
            assert_eq!(hook(&shop, Some(id), body).await, 200, "{id}");
        }
        shop.until_told(&order, &["order_paid"]).await;
        assert_eq!(shop.poll(&other).await.body["payable"], true);
        shop.end().await;
    }
}

/// Whichever form its key has: payouts are not Jari's, so nothing that such a webhook says is believed or looked at.
#[tokio::test]
async fn no_9_a_signed_webhook_about_payouts_is_received_and_changes_nothing_whatever_its_signature_is()
 {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let asked = shop.pg.ledger().calls.get.received;
    for (n, signature) in ["v1:AAAA,v1:BBBB", "v1:", "", "rubbish"].iter().enumerate() {
        let body = json!({"eventType": "payout.changed", "createdAt": "2026-10-02T11:02:09+09:00",
            "version": "2022-11-16", "eventId": "evt_1", "entityType": "payout",
            "entityBody": {"orderId": order.id, "status": "DONE"}});
        let request = shop
            .post("/webhooks/toss")
            .header("tosspayments-webhook-transmission-id", format!("p{n}"))
            .header("tosspayments-webhook-signature", *signature)
            .json(&body);
        assert_eq!(request.send().await.expect("an answer").status(), 200);
    }
    let ignored = "webhook_events_total{gateway=\"toss\",result=\"ignored\"}";
    shop.until_metric(ignored, 4.0).await;
    assert_eq!(shop.pg.ledger().calls.get.received, asked);
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    shop.end().await;
}
