//! `jari reconcile` beside a running shop: agreement, every kind of break, and silence that is never taken for agreement.

use serde_json::{Value, json};

use crate::shop::{Order, Shop};

async fn reconcile(shop: &Shop, more: &[&str]) -> (i32, Value) {
    let args = [&["reconcile", "--json", "--per-second", "1000"], more].concat();
    let (code, said) = shop.command(&args).await;
    let json = &said[..=said
        .rfind("}\n")
        .unwrap_or_else(|| panic!("no JSON: {said}"))];
    let told = serde_json::from_str(json).unwrap_or_else(|_| panic!("no JSON: {said}"));
    (code, told)
}

/// The kinds of the breaks, each with the order it is about.
fn breaks(told: &Value) -> Vec<(String, String)> {
    let list = told["breaks"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut breaks: Vec<_> = list
        .iter()
        .map(|one| {
            let subject = if one["sku"].is_string() {
                &one["sku"]
            } else {
                &one["orderId"]
            };
            (text(&one["kind"]), text(subject))
        })
        .collect();
    breaks.sort();
    breaks
}

async fn pay(shop: &Shop) -> (Order, String) {
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    (order, key)
}

/// A shop in which much happened and all of it is known.
async fn agreement(shop: Shop) {
    pay(&shop).await;
    let (refunded, key) = pay(&shop).await;
    cancel_at_desk(&shop, &key).await;
    shop.until_status(&refunded, "canceled").await;
    shop.set(json!({"decline": {"ratio": 1.0, "code": "REJECT_CARD_COMPANY"}}))
        .await;
    let declined = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&declined).await.status, 402);
    shop.set(json!({"loss": {"when": "after"}})).await;
    let lost = shop.order("mug", 1).await;
    shop.pay(&lost).await;
    shop.until_status(&lost, "paid").await;
    shop.set(json!({})).await;
    let opened = shop.order("mug", 1).await;
    shop.attempt(&opened).await;
    let (code, told) = reconcile(&shop, &["--all"]).await;
    assert_eq!((code, &told["verdict"]), (0, &json!("clean")), "{told}");
    assert_eq!((&told["orders"], &told["payments"]), (&json!(5), &json!(4)));
    // A day on which nothing was paid.
    let (code, told) = reconcile(&shop, &["--day", "2020-01-01"]).await;
    assert_eq!((code, &told["orders"]), (0, &json!(0)), "{told}");
    shop.end().await;
}

async fn cancel_at_desk(shop: &Shop, key: &str) {
    let cancel = shop
        .client
        .post(format!("{}/v1/payments/{key}/cancel", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"cancelReason": "at the desk"}));
    assert_eq!(cancel.send().await.expect("an answer").status(), 200);
}

async fn confirm_elsewhere(shop: &Shop, order: &Order, key: &str) {
    let confirm = shop
        .client
        .post(format!("{}/v1/payments/confirm", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"paymentKey": key, "orderId": order.id, "amount": order.amount}));
    assert_eq!(confirm.send().await.expect("an answer").status(), 200);
}

#[tokio::test]
async fn books_that_agree_are_clean() {
    agreement(Shop::open().await).await;
}

#[tokio::test]
async fn books_that_agree_are_clean_on_postgres() {
    agreement(Shop::on_postgres(&[]).await).await;
}

#[tokio::test]
async fn every_break_is_found_and_named_and_nothing_is_changed() {
    let shop = Shop::open().await;
    shop.set(json!({"webhooks": {"drop": 1.0}})).await;
    let (clean, _) = pay(&shop).await;
    // Somebody else confirmed what we only opened a window for.
    let unclaimed = shop.order("mug", 1).await;
    shop.attempt(&unclaimed).await;
    let key = shop.key(&unclaimed.id, unclaimed.amount);
    confirm_elsewhere(&shop, &unclaimed, &key).await;
    // Money went back at the gateway's desk, and nobody told us.
    let (refunded, key) = pay(&shop).await;
    cancel_at_desk(&shop, &key).await;
    // Our books were tampered with.
    let other = shop.order("teapot", 1).await;
    let key = shop.key(&other.id, other.amount);
    assert_eq!(shop.confirm(&other, &key).await.status, 200);
    shop.in_books("UPDATE attempts SET charged_won = charged_won + 1 WHERE amount_won = 42000")
        .await;
    shop.in_books("UPDATE products SET reserved = reserved + 1 WHERE sku = 'candle'")
        .await;
    let (code, told) = reconcile(&shop, &["--all"]).await;
    assert_eq!((code, &told["verdict"]), (1, &json!("breaks")), "{told}");
    let mut expected = vec![
        ("charge_not_in_books".to_owned(), unclaimed.id.clone()),
        ("given_back_differs".to_owned(), refunded.id.clone()),
        ("amount_differs".to_owned(), other.id.clone()),
        ("stock".to_owned(), "candle".to_owned()),
    ];
    expected.sort();
    assert_eq!(breaks(&told), expected, "{told}");
    let (code, said) = shop.command(&["reconcile", "--all"]).await;
    assert!(
        code == 1 && said.contains("charge_not_in_books") && !said.contains(&key),
        "{said}"
    );
    // It only looked.
    for (order, status) in [
        (&clean, "paid"),
        (&refunded, "paid"),
        (&unclaimed, "pending"),
    ] {
        assert_eq!(shop.poll(order).await.body["status"], status);
    }
    shop.in_books("UPDATE attempts SET charged_won = charged_won - 1 WHERE amount_won = 42000")
        .await;
    shop.in_books("UPDATE products SET reserved = reserved - 1 WHERE sku = 'candle'")
        .await;
    shop.end().await;
}

#[tokio::test]
async fn what_the_gateway_never_charged_is_a_break() {
    let shop = Shop::open().await;
    let (order, _) = pay(&shop).await;
    shop.in_books("UPDATE attempts SET payment_key = 'pk_of_nobody'")
        .await;
    let (code, told) = reconcile(&shop, &["--all"]).await;
    assert_eq!(code, 1, "{told}");
    let found = breaks(&told);
    assert!(
        found.contains(&("charge_under_another_key".to_owned(), order.id.clone())),
        "{told}"
    );
}

#[tokio::test]
async fn a_doubt_is_a_break_and_silence_is_not_agreement() {
    let shop = Shop::open().await;
    let (_, _) = pay(&shop).await;
    shop.set(json!({"up": false})).await;
    let (code, told) = reconcile(&shop, &["--all"]).await;
    assert_eq!(
        (code, &told["verdict"]),
        (2, &json!("could not ask")),
        "{told}"
    );
    let (_, said) = shop.command(&["reconcile", "--all"]).await;
    assert!(!said.contains("clean"), "{said}");
    shop.set(json!({"operations": ["get"], "error": {"status": 503}}))
        .await;
    let (code, told) = reconcile(&shop, &["--all"]).await;
    assert_eq!((code, &told["couldNotAsk"]), (2, &json!(1)), "{told}");
    // Nobody pays and nobody knows: the payment is at the gateway, in progress.
    shop.set(json!({"loss": {"when": "before"}, "webhooks": {"drop": 1.0}}))
        .await;
    let lost = shop.order("mug", 1).await;
    shop.pay(&lost).await;
    shop.set(json!({})).await;
    let (code, told) = reconcile(&shop, &["--all"]).await;
    assert_eq!(code, 1, "{told}");
    assert_eq!(
        breaks(&told),
        [("still_unknown".to_owned(), lost.id.clone())]
    );
    let (code, _) = shop
        .command(&["reconcile", "--database-url", "sqlite:///nowhere/jari.db"])
        .await;
    assert_eq!(code, 2);
    shop.end().await;
}
