//! Virtual accounts over the wire: issued, deposited, undone, over, refunded; and both readings of what is not known.

use fakepg::Config;
use fakepg::engine::Method;
use reqwest::Method as Verb;
use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Shop, read};

async fn told_shop() -> (Shop, Receiver) {
    let receiver = Receiver::open(0).await;
    let config = Config {
        webhook_url: Some(receiver.url.clone()),
        ..Config::default()
    };
    (Shop::with(config).await, receiver)
}

/// Issues an account of 1,000 won; gives its payment key and the confirm's answer.
async fn issue(shop: &Shop, order: &str) -> (String, Value) {
    let key = shop
        .pg
        .authenticate_by(Method::VirtualAccount, order, 1_000);
    let reply = shop.confirm(&key, order, 1_000).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    (key, reply.json())
}

async fn deposits(shop: &Shop, body: Value) -> Reply {
    let url = format!("{}/_control/deposits", shop.pg.url());
    let request = shop.http.request(Verb::POST, url).json(&body);
    read(request).await.expect("an answer")
}

#[tokio::test]
async fn a_confirm_issues_an_account_with_a_secret_and_charges_nothing() {
    let shop = Shop::open().await;
    let (key, payment) = issue(&shop, "order_1").await;
    assert_eq!(payment["status"], "WAITING_FOR_DEPOSIT");
    assert_eq!(payment["method"], "가상계좌");
    assert_eq!(payment["approvedAt"], Value::Null);
    assert_eq!(payment["card"], Value::Null);
    let account = &payment["virtualAccount"];
    assert!(account["accountNumber"].as_str().unwrap().starts_with('X'));
    assert_eq!(account["bankCode"], "20");
    assert_eq!(account["expired"], false);
    assert!(account["dueDate"].as_str().unwrap().ends_with("+09:00"));
    assert!(payment["secret"].as_str().unwrap().len() <= 50);
    assert_eq!(shop.charges("order_1"), 0);
    // Confirmed again without a key of its own, it is processed already; another payment of the order is one too many.
    let again = shop.confirm(&key, "order_1", 1_000).await;
    assert_eq!(again.code(), "ALREADY_PROCESSED_PAYMENT");
    let other = shop.buy("order_1").await.expect("an answer");
    assert_eq!(other.code(), "DUPLICATED_ORDER_ID");
}

#[tokio::test]
async fn a_deposit_is_told_twice_and_one_undone_by_its_own_event_alone() {
    let (shop, receiver) = told_shop().await;
    let (key, issued) = issue(&shop, "order_1").await;
    let first = receiver.wait_for(1).await.remove(0).json();
    assert_eq!(first["status"], "WAITING_FOR_DEPOSIT");
    assert_eq!(first["secret"], issued["secret"]);
    assert_eq!(first["orderId"], "order_1");
    assert!(first.get("eventType").is_none() && first.get("paymentKey").is_none());
    let (_, fraction) = first["createdAt"]
        .as_str()
        .unwrap()
        .split_once('.')
        .unwrap();
    assert_eq!(fraction.len(), 5);
    assert_eq!(
        deposits(&shop, json!({"orderId": "order_1"})).await.status,
        200
    );
    let both = receiver.wait_for(3).await;
    let kinds: Vec<_> = both[1..]
        .iter()
        .map(|told| told.json()["eventType"].clone())
        .collect();
    assert!(kinds.contains(&Value::Null) && kinds.contains(&json!("PAYMENT_STATUS_CHANGED")));
    assert_eq!(shop.charges("order_1"), 1);
    let undo = json!({"orderId": "order_1", "undo": true});
    assert_eq!(deposits(&shop, undo.clone()).await.status, 200);
    let last = receiver.wait_for(4).await.remove(3).json();
    assert_eq!(last["status"], "WAITING_FOR_DEPOSIT");
    assert_eq!(shop.charges("order_1"), 0);
    assert_eq!(shop.inquire(&key).await.json()["approvedAt"], Value::Null);
    assert_eq!(deposits(&shop, undo).await.status, 409);
    assert_eq!(
        deposits(&shop, json!({"orderId": "nobody"})).await.status,
        404
    );
}

#[tokio::test]
async fn a_forged_deposit_books_nothing() {
    let (shop, receiver) = told_shop().await;
    let (_, issued) = issue(&shop, "order_1").await;
    receiver.wait_for(1).await;
    for (n, forged) in ["wrongSecret", "noSecret"].into_iter().enumerate() {
        let body = json!({"orderId": "order_1", "forged": forged});
        assert_eq!(deposits(&shop, body).await.status, 200);
        let told = receiver.wait_for(n + 2).await.remove(n + 1).json();
        assert_eq!(told["status"], "DONE");
        assert_ne!(told["secret"], issued["secret"]);
    }
    assert_eq!(shop.charges("order_1"), 0);
}

#[tokio::test]
async fn a_due_date_passes_without_a_webhook_and_both_readings_of_it_can_be_had() {
    for (expired, flag) in [("flagged", true), ("unflagged", false)] {
        let (shop, receiver) = told_shop().await;
        shop.scenario(json!({"deposits": {"dueMs": 0, "expired": expired}}))
            .await;
        let (key, _) = issue(&shop, "order_1").await;
        receiver.wait_for(1).await;
        let late = deposits(&shop, json!({"orderId": "order_1"})).await;
        assert_eq!(late.status, 409);
        let payment = shop.inquire(&key).await.json();
        assert_eq!(payment["status"], "WAITING_FOR_DEPOSIT");
        assert_eq!(payment["virtualAccount"]["expired"], flag);
        assert_eq!(receiver.all().len(), 1);
    }
}

#[tokio::test]
async fn a_deposit_goes_back_only_to_an_account_and_a_waiting_one_is_closed_whole() {
    let shop = Shop::open().await;
    let (key, _) = issue(&shop, "order_1").await;
    let part = json!({"cancelReason": "변심", "cancelAmount": 1});
    let refused = shop.cancel(&key, part).await;
    assert_eq!(
        refused.refusal(),
        (403, "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT".to_owned())
    );
    let closed = shop.cancel(&key, json!({"cancelReason": "변심"})).await;
    assert_eq!(closed.json()["status"], "CANCELED");
    assert_eq!(shop.ledger().orders["order_1"].canceled_won, 0);

    let (key, _) = issue(&shop, "order_2").await;
    shop.pg.deposit("order_2", false).expect("deposited");
    let with = |account: Value| json!({"cancelReason": "변심", "refundReceiveAccount": account});
    for (body, code) in [
        (
            json!({"cancelReason": "변심"}),
            "INVALID_REFUND_ACCOUNT_INFO",
        ),
        (
            with(json!({"bank": "20", "accountNumber": "1-2", "holderName": "김"})),
            "INVALID_REFUND_ACCOUNT_NUMBER",
        ),
        (
            with(json!({"bank": "WOORI", "accountNumber": "12", "holderName": "김"})),
            "INVALID_BANK",
        ),
        (
            with(json!({"bank": "20", "accountNumber": "12", "holderName": ""})),
            "INVALID_REFUND_ACCOUNT_INFO",
        ),
    ] {
        assert_eq!(
            shop.cancel(&key, body).await.refusal(),
            (400, code.to_owned())
        );
    }
    let good = with(json!({"bank": "20", "accountNumber": "12", "holderName": "김토스"}));
    let back = shop.cancel(&key, good).await.json();
    assert_eq!(back["status"], "CANCELED");
    assert_eq!(back["virtualAccount"]["refundStatus"], "COMPLETED");
    assert_eq!(shop.ledger().orders["order_2"].canceled_won, 1_000);
}

#[tokio::test]
async fn the_readings_of_accounts_that_nobody_knows_can_be_chosen() {
    for shown in [true, false] {
        let shop = Shop::open().await;
        shop.scenario(json!({"deposits": {"secretInLookup": shown}}))
            .await;
        let (key, issued) = issue(&shop, "order_1").await;
        let looked = shop.inquire(&key).await.json();
        let expected = if shown {
            issued["secret"].clone()
        } else {
            Value::Null
        };
        assert_eq!(looked["secret"], expected);
    }
    for (balance, won) in [("zero", 0), ("whole", 1_000)] {
        let shop = Shop::open().await;
        shop.scenario(json!({"deposits": {"canceledBalance": balance}}))
            .await;
        let (key, _) = issue(&shop, "order_1").await;
        let closed = shop.cancel(&key, json!({"cancelReason": "변심"})).await;
        assert_eq!(closed.json()["balanceAmount"], won);
    }
    for (events, count) in [("both", 3), ("deposit", 2), ("status", 1)] {
        let (shop, receiver) = told_shop().await;
        shop.scenario(json!({"deposits": {"events": events}})).await;
        issue(&shop, "order_1").await;
        shop.pg.deposit("order_1", false).expect("deposited");
        assert_eq!(receiver.wait_for(count).await.len(), count, "{events}");
    }
}
