//! What shops' endpoints are told: each step, in order, signed, again until they answer, and nothing else.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::endpoint::{Endpoint, SILENCE, secret_in};
use super::{Merchant, arrive, id};
use crate::console::{Operator, hash};
use crate::node::PATIENCE;
use crate::shop::Shop;

/// What the deliveries have come to, the oldest first.
async fn deliveries(shop: &Shop) -> Vec<Value> {
    let (code, said) = shop.command(&["webhooks", "out", "list", "--json"]).await;
    assert_eq!(code, 0, "{said}");
    let mut list: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    list.reverse();
    list
}

async fn until_delivery(shop: &Shop, what: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let list = deliveries(shop).await;
        if let Some(found) = list.iter().find(|row| what(row)) {
            return found.clone();
        }
        assert!(started.elapsed() < PATIENCE, "never came: {list:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_endpoint_is_told_each_step_in_order_and_again_until_it_answers() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let endpoint = Endpoint::open(&[302]).await;
    let secret = endpoint.of(&shop, "vases").await;
    let made = vases.order("A-1").await;
    let shopper = arrive(&shop, &made).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    endpoint.until(1).await;
    // The next step happens while the first one is still to be told.
    let refunds = format!("/v1/orders/{}/refunds", id(&made));
    let part = json!({"amount": 3_000, "reason": "x"});
    assert_eq!(vases.post(&refunds, "r1", &part).await.status, 200);
    let heard = endpoint.until(3).await;
    let kinds: Vec<_> = heard.iter().map(super::endpoint::Heard::kind).collect();
    let (paid, back) = ("order.paid", "order.partially_canceled");
    assert_eq!(kinds, [paid, paid, back]);
    assert!(
        heard[..2]
            .iter()
            .all(|one| one.id() == heard[0].id() && one.text == heard[0].text)
    );
    assert_ne!(heard[2].id(), heard[0].id());
    assert!(heard.iter().all(|one| one.is_signed_by(&secret)));
    let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    assert!(!heard[0].is_signed_by(other));
    let data = &heard[2].body["data"];
    assert_eq!(data["orderId"], made["id"]);
    assert_eq!(data["reference"], "A-1");
    assert_eq!(
        (&data["amount"], &data["refunded"]),
        (&json!(33_000), &json!(3_000))
    );
    until_delivery(&shop, |row| {
        row["event"] == "order_partially_canceled" && row["state"] == "delivered"
    })
    .await;
    let first = &deliveries(&shop).await[0];
    assert_eq!(
        (&first["state"], &first["tries"], &first["told"]),
        (&json!("delivered"), &json!(2), &json!("204"))
    );
    assert!(
        shop.metric("webhook_deliveries_total{result=\"failed\"}")
            .await
            > 0.5
    );
    shop.until_metric("webhook_deliveries_waiting", 0.0).await;
    shop.end_balanced().await;
}

#[tokio::test]
async fn both_secrets_sign_while_one_replaces_the_other() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let endpoint = Endpoint::open(&[]).await;
    let old = endpoint.of(&shop, "vases").await;
    let rotate = ["webhooks", "out", "rotate", "--shop", "vases"];
    let new = secret_in(&shop.command(&rotate).await);
    assert_ne!(old, new);
    let shopper = arrive(&shop, &vases.order("A-1").await).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    let heard = endpoint.until(1).await;
    assert!(heard[0].is_signed_by(&old) && heard[0].is_signed_by(&new));
    let newest = secret_in(
        &shop
            .command(&[&rotate[..], &["--keep-hours", "0"]].concat())
            .await,
    );
    let shopper = arrive(&shop, &vases.order("A-2").await).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    let heard = endpoint.until(2).await;
    assert!(heard[1].is_signed_by(&newest) && !heard[1].is_signed_by(&new));
    shop.end_balanced().await;
}

#[tokio::test]
async fn an_endpoint_that_never_answers_holds_up_neither_a_payment_nor_another_shop() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let other = Merchant::of(&shop, "other").await;
    let silent = Endpoint::open(&[SILENCE; 99]).await;
    let quick = Endpoint::open(&[]).await;
    silent.of(&shop, "vases").await;
    quick.of(&shop, "other").await;
    for n in 0..12 {
        let shopper = arrive(&shop, &vases.order(&format!("A-{n}")).await).await;
        assert_eq!(shop.pay(&shopper).await.status, 200);
    }
    silent.until(8).await;
    let shopper = arrive(&shop, &other.order("B-1").await).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    let heard = quick.until(1).await;
    assert_eq!(heard[0].body["data"]["reference"], "B-1");
    until_delivery(&shop, |row| {
        row["shop"] == "other" && row["state"] == "delivered"
    })
    .await;
    shop.end_balanced().await;
}

#[tokio::test]
async fn what_a_killed_server_was_telling_is_told_by_the_next_under_the_same_id() {
    let mut shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let endpoint = Endpoint::open(&[SILENCE]).await;
    endpoint.of(&shop, "vases").await;
    let made = vases.order("A-1").await;
    let shopper = arrive(&shop, &made).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    endpoint.until(1).await;
    drop(vases);
    shop.kill();
    // The lease of what was taken ends after most of a minute: the test ends it in its place.
    shop.in_books("UPDATE deliveries SET next_at = 0, taken_until = 0")
        .await;
    shop.restart().await;
    let heard = endpoint.until(2).await;
    assert_eq!(heard[0].id(), heard[1].id());
    shop.end_balanced().await;
}

#[tokio::test]
async fn no_endpoint_is_set_within_the_servers_own_network_unless_that_is_allowed() {
    let shop = Shop::with(&[("JARI_WEBHOOK_PRIVATE", "off")]).await;
    Merchant::of(&shop, "vases").await;
    for url in [
        "http://127.0.0.1:9/",
        "https://127.0.0.1:9/",
        "https://10.0.0.1/",
        "ftp://x/",
    ] {
        let args = ["webhooks", "out", "set", "--shop", "vases", "--url", url];
        let (code, said) = shop.command(&args).await;
        assert_ne!(code, 0, "{url}: {said}");
    }
    let public = "https://hooks.shop.example/jari";
    let args = ["webhooks", "out", "set", "--shop", "vases", "--url", public];
    secret_in(&shop.command(&args).await);
    shop.end().await;
}

#[tokio::test]
async fn the_console_shows_whose_an_order_is_and_what_its_shop_did_not_take() {
    let shop = Shop::with(&[("JARI_OPS_PASSWORD_HASH", &hash())]).await;
    let vases = Merchant::of(&shop, "vases").await;
    let endpoint = Endpoint::open(&[503; 99]).await;
    endpoint.of(&shop, "vases").await;
    let made = vases.order("A-1").await;
    let shopper = arrive(&shop, &made).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    until_delivery(&shop, |row| row["told"] == "503").await;
    let operator = Operator::signed_in(&shop).await;
    let (_, page) = operator.page("/ops").await;
    for text in ["shop-webhook", "vases", "order_paid", "503", id(&made)] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let (_, page) = operator.page(&format!("/ops/orders/{}", id(&made))).await;
    for text in ["desk-shop", "Vase &amp; Co", "A-1", "shop-webhook", "503"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    shop.end_balanced().await;
}

#[tokio::test]
async fn an_order_of_this_shop_and_one_without_an_endpoint_are_told_to_nobody() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let shopper = arrive(&shop, &vases.order("A-1").await).await;
    assert_eq!(shop.pay(&shopper).await.status, 200);
    let own = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&own).await.status, 200);
    shop.until_metric(
        "outbox_effects_total{kind=\"order_paid\",result=\"done\"}",
        2.0,
    )
    .await;
    assert!(deliveries(&shop).await.is_empty());
    shop.end_balanced().await;
}
