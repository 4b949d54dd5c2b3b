//! Webhooks as a shop receives them.

use std::collections::HashSet;

use fakepg::Config;
use serde_json::{Value, json};

use crate::support::{Receiver, Shop, read};

async fn shop_with_receiver(refusals: u32) -> (Shop, Receiver) {
    let receiver = Receiver::open(refusals).await;
    let webhook_url = Some(receiver.url.clone());
    (
        Shop::with(Config {
            webhook_url,
            ..Config::default()
        })
        .await,
        receiver,
    )
}

#[tokio::test]
async fn each_final_status_is_told_in_tosss_envelope() {
    let (shop, receiver) = shop_with_receiver(0).await;
    let payment_key = shop.paid("order_1").await;
    let done = receiver.wait_for(1).await.remove(0);
    assert_eq!(done.tells(), ("order_1".into(), "DONE".into()));
    let envelope = done.json();
    assert_eq!(envelope["eventType"], "PAYMENT_STATUS_CHANGED");
    assert_eq!(
        envelope["data"],
        shop.inquire(&payment_key).await.json(),
        "the whole payment"
    );
    let (_, fraction) = envelope["createdAt"]
        .as_str()
        .expect("a time")
        .split_once('.')
        .expect("one");
    assert_eq!(fraction.len(), 5);
    assert!(done.id().starts_with("whtrans_"));
    assert_eq!(done.resends(), "0");
    let time = done.headers["tosspayments-webhook-transmission-time"]
        .to_str()
        .expect("text");
    assert!(time.ends_with("+09:00"));

    shop.cancel(
        &payment_key,
        json!({"cancelReason": "일부", "cancelAmount": 1}),
    )
    .await;
    assert_eq!(receiver.wait_for(2).await[1].tells().1, "PARTIAL_CANCELED");
    let other = shop.paid("order_2").await;
    receiver.wait_for(3).await;
    shop.cancel(&other, json!({"cancelReason": "변심"})).await;
    assert_eq!(
        receiver.wait_for(4).await[3].tells(),
        ("order_2".into(), "CANCELED".into())
    );

    shop.scenario(json!({"decline": {}})).await;
    shop.buy("order_3").await.expect("an answer");
    assert_eq!(
        receiver.wait_for(5).await[4].tells(),
        ("order_3".into(), "ABORTED".into())
    );
    shop.pg.authenticate("order_4", 1_000);
    shop.scenario(json!({"confirmWindowMs": 0})).await;
    assert_eq!(
        receiver.wait_for(6).await[5].tells(),
        ("order_4".into(), "EXPIRED".into())
    );
}

#[tokio::test]
async fn a_duplicate_is_the_same_webhook_twice() {
    let (shop, receiver) = shop_with_receiver(0).await;
    shop.scenario(json!({"webhooks": {"duplicate": 1}})).await;
    shop.paid("order_1").await;
    let received = receiver.wait_for(2).await;
    assert_eq!(received[0].id(), received[1].id());
    assert_eq!(received[0].body, received[1].body);
}

#[tokio::test]
async fn a_dropped_webhook_never_comes() {
    let (shop, receiver) = shop_with_receiver(0).await;
    shop.scenario(json!({"webhooks": {"drop": 1}})).await;
    shop.paid("order_1").await;
    shop.scenario(json!({})).await;
    shop.paid("order_2").await;
    let received = receiver.wait_for(1).await;
    assert_eq!(received[0].tells().0, "order_2");
    assert_eq!(receiver.all().len(), 1);
}

#[tokio::test]
async fn reordered_webhooks_come_after_their_successor() {
    let (shop, receiver) = shop_with_receiver(0).await;
    shop.scenario(json!({"webhooks": {"reorder": 1}})).await;
    let payment_key = shop.paid("order_1").await;
    shop.cancel(&payment_key, json!({"cancelReason": "변심"}))
        .await;
    let received = receiver.wait_for(2).await;
    let told: Vec<_> = received.iter().map(|webhook| webhook.tells().1).collect();
    assert_eq!(told, ["CANCELED", "DONE"]);
}

#[tokio::test]
async fn a_webhook_that_is_not_answered_200_is_sent_again_on_schedule() {
    let (shop, receiver) = shop_with_receiver(2).await;
    // A factor of 0.001 makes 60 and 240 ms of the first two waits.
    shop.scenario(json!({"webhooks": {"resend": {"scale": 0.001}}}))
        .await;
    shop.paid("order_1").await;
    let received = receiver.wait_for(3).await;
    let resends: Vec<_> = received.iter().map(|webhook| webhook.resends()).collect();
    assert_eq!(resends, ["0", "1", "2"]);
    let ids: HashSet<_> = received.iter().map(|webhook| webhook.id()).collect();
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn webhooks_wait_for_their_delay() {
    let (shop, receiver) = shop_with_receiver(0).await;
    shop.scenario(json!({"webhooks": {"delayMs": 60_000}}))
        .await;
    shop.paid("order_1").await;
    shop.scenario(json!({"webhooks": {"delayMs": 1}})).await;
    shop.paid("order_2").await;
    let received = receiver.wait_for(1).await;
    assert_eq!(
        received[0].tells().0,
        "order_2",
        "the first one is still waiting"
    );
}

#[tokio::test]
async fn a_webhook_can_be_sent_by_hand_again_or_forged() {
    let (shop, receiver) = shop_with_receiver(0).await;
    let payment_key = shop.paid("order_1").await;
    receiver.wait_for(1).await;
    let url = format!("{}/_control/webhooks", shop.pg.url());
    let send = |body: Value| read(shop.http.post(&url).json(&body));
    for (count, body) in [
        (2, json!({"orderId": "order_1"})),
        (3, json!({"paymentKey": payment_key})),
    ] {
        assert_eq!(send(body).await.expect("an answer").status, 202);
        assert_eq!(receiver.wait_for(count).await[count - 1].tells().1, "DONE");
    }
    assert_eq!(
        send(json!({"forged": {"status": "DONE"}}))
            .await
            .expect("an answer")
            .status,
        202
    );
    assert_eq!(
        receiver.wait_for(4).await[3].json(),
        json!({"status": "DONE"})
    );
    assert_eq!(
        send(json!({"forged": "{no json"}))
            .await
            .expect("an answer")
            .status,
        202
    );
    assert_eq!(receiver.wait_for(5).await[4].body, "{no json");
    assert_eq!(
        send(json!({"orderId": "order_9"}))
            .await
            .expect("an answer")
            .status,
        404
    );
    assert_eq!(send(json!({})).await.expect("an answer").status, 400);
}
