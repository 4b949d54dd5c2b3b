//! Virtual accounts from end to end: issued, paid, taken back, forged, and over.

use fakepg::engine::Method;
use serde_json::{Value, json};

use crate::books;
use crate::refunds::{OPERATOR, SOON, TOKEN, of_cancels};
use crate::shop::{Order, Reply, Shop};
use crate::webhooks::hook;

mod closing;

/// An order whose shopper chose a virtual account and was given one.
async fn issued(shop: &Shop) -> (Order, String) {
    let order = shop.order("mug", 1).await;
    let key = shop
        .pg
        .authenticate_by(Method::VirtualAccount, &order.id, order.amount);
    let reply = shop.confirm(&order, &key).await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    reply.attempt("awaiting_deposit");
    (order, key)
}

async fn page(shop: &Shop, order: &Order, path: &str, language: &str) -> String {
    let request = shop
        .get(path)
        .header("cookie", &order.cookie)
        .header("accept-language", language);
    let answer = request.send().await.expect("an answer");
    answer.text().await.expect("a whole answer")
}

fn forged(result: &str) -> String {
    format!("webhook_events_total{{gateway=\"toss\",result=\"{result}\"}}")
}

#[tokio::test]
async fn an_account_is_shown_with_all_that_a_transfer_needs_and_its_secret_nowhere() {
    let shop = Shop::open().await;
    let free = shop.free("mug").await;
    let (order, key) = issued(&shop).await;
    assert_eq!(shop.free("mug").await, free - 1);
    let state = shop.poll(&order).await;
    let deposit = &state.body["deposit"];
    assert_eq!(deposit["bank"], "20");
    assert_eq!(deposit["amount"], order.amount);
    assert_eq!(deposit["holder"], "김토스");
    let number = deposit["accountNumber"].as_str().unwrap();
    assert!(deposit["dueAt"].as_str().unwrap().ends_with("+09:00"));
    // What takes days is not asked about every two seconds.
    assert_eq!(state.body["pollAfterMs"], 60_000);
    assert_eq!(state.body["payable"], false);
    for path in [
        format!("/orders/{}", order.id),
        format!("/checkout/{}", order.id),
    ] {
        let korean = page(&shop, &order, &path, "ko").await;
        for part in [
            number,
            "우리은행",
            "김토스",
            "까지",
            "알려 드릴게요",
            "content=\"60\"",
        ] {
            assert!(korean.contains(part), "{path} lacks {part}");
        }
        let english = page(&shop, &order, &path, "en").await;
        for part in [number, "Woori Bank", "Korean time", "We will tell you"] {
            assert!(english.contains(part), "{path} lacks {part}");
        }
        assert!(!korean.contains("ps_fake") && !english.contains("ps_fake"));
    }
    assert!(!state.body.to_string().contains("ps_fake"));
    // Nothing else can be paid meanwhile.
    let again = shop.attempt(&order).await;
    again.refused(409, "attempt_in_progress");
    let repeated = shop.confirm(&order, &key).await;
    assert_eq!(repeated.status, 202);
    assert_eq!(shop.money(&order), (0, 0));
    shop.end().await;
}

#[tokio::test]
async fn a_deposit_pays_the_order_once_and_one_that_the_bank_undoes_leads_back() {
    let shop = Shop::open().await;
    let free = shop.free("mug").await;
    let (order, _) = issued(&shop).await;
    // Both webhooks come for one deposit.
    shop.pg.deposit(&order.id, false).unwrap();
    shop.until_status(&order, "paid").await;
    shop.until_told(&order, &["order_paid"]).await;
    let state = shop.poll(&order).await;
    assert_eq!(state.body["deposit"], Value::Null);
    shop.pg.deposit(&order.id, true).unwrap();
    shop.until_attempt(&order, "awaiting_deposit").await;
    assert_eq!(shop.poll(&order).await.body["status"], "pending");
    assert_eq!(shop.free("mug").await, free - 1);
    shop.until_told(&order, &["order_paid", "order_unpaid"])
        .await;
    let text = page(&shop, &order, &format!("/orders/{}", order.id), "en").await;
    assert!(text.contains("The bank has undone your deposit"), "{text}");
    shop.pg.deposit(&order.id, false).unwrap();
    shop.until_status(&order, "paid").await;
    let told = ["order_paid", "order_unpaid", "order_paid"];
    shop.until_told(&order, &told).await;
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

#[tokio::test]
async fn a_forged_deposit_changes_nothing_and_nobody_is_asked_for_it() {
    let shop = Shop::open().await;
    let (order, _) = issued(&shop).await;
    // The account's own first webhook has been heard.
    shop.until_metric(&forged("applied"), 1.0).await;
    let until = books::evidence(&shop.database(), &order.id).await;
    shop.until_ledger(|ledger| ledger.calls.get.received >= 1)
        .await;
    let asked = shop.pg.ledger().calls.get.received;
    for (n, body) in [
        json!({"createdAt": "2026-10-02T11:02:09.00000", "secret": "ps_wrong", "status": "DONE",
            "transactionKey": "9A0", "orderId": order.id}),
        json!({"createdAt": "2026-10-02T11:02:09.00000", "status": "DONE", "transactionKey": "9A0",
            "orderId": order.id}),
        json!({"secret": null, "status": "DONE", "orderId": order.id}),
        json!({"eventType": "DEPOSIT_CALLBACK", "secret": "", "status": "DONE", "orderId": order.id}),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("forged-{n}");
        assert_eq!(hook(&shop, Some(&id), body).await, 200);
    }
    shop.until_metric(&forged("forged"), 4.0).await;
    // An event that says nothing of payments, and one that nobody knows.
    for (id, kind) in [("o1", "BILLING_DELETED"), ("o2", "SOMETHING_NEW")] {
        let body = json!({"eventType": kind, "data": {"orderId": order.id}});
        assert_eq!(hook(&shop, Some(id), body).await, 200);
    }
    shop.until_metric(&forged("ignored"), 2.0).await;
    assert_eq!(shop.pg.ledger().calls.get.received, asked);
    assert_eq!(
        shop.poll(&order).await.body["attempt"]["status"],
        "awaiting_deposit"
    );
    let now = books::evidence(&shop.database(), &order.id).await;
    assert_eq!(now.len(), until.len());
    // The true one is heard all the same.
    shop.pg.deposit(&order.id, false).unwrap();
    shop.until_status(&order, "paid").await;
    shop.end().await;
}

#[tokio::test]
async fn without_a_webhook_the_gateway_is_asked_and_an_account_that_is_over_frees_its_stock() {
    for expired in ["flagged", "unflagged"] {
        let shop = Shop::with(&[("JARI_DEPOSIT_GRACE_MS", "500")]).await;
        shop.set(json!({"webhooks": {"drop": 1.0},
            "deposits": {"dueMs": 1_000, "expired": expired, "secretInLookup": false}}))
            .await;
        let free = shop.free("mug").await;
        let (order, key) = issued(&shop).await;
        shop.until_attempt(&order, "expired").await;
        let state = shop.poll(&order).await;
        assert_eq!(state.body["payable"], true, "{expired}: {:?}", state.body);
        assert_eq!(shop.free("mug").await, free);
        // A new try has an order id of its own; the old payment is over.
        let again = shop.attempt(&order).await;
        assert_eq!(again.status, 201);
        assert_ne!(again.body["gatewayOrderId"], order.id);
        let old = shop.confirm(&order, &key).await;
        old.refused(409, "attempt_expired");
        shop.end().await;
    }
}

#[tokio::test]
async fn an_order_does_not_end_while_its_deposit_is_awaited_and_the_issuing_answer_may_be_lost() {
    for secret in [true, false] {
        let shop = Shop::with(&[("JARI_ORDER_TTL_MS", "6000")]).await;
        shop.set(json!({"loss": {"when": "after"}, "deposits": {"secretInLookup": secret}}))
            .await;
        let order = shop.order("mug", 1).await;
        let key = shop
            .pg
            .authenticate_by(Method::VirtualAccount, &order.id, order.amount);
        shop.confirm(&order, &key).await;
        shop.until_attempt(&order, "awaiting_deposit").await;
        // Another order, made later, has ended: so would this one have.
        let other = shop.order("mug", 1).await;
        shop.until_status(&other, "expired").await;
        let state = shop.poll(&order).await;
        assert_eq!(state.body["status"], "pending");
        assert_ne!(state.body["deposit"], Value::Null);
        shop.pg.deposit(&order.id, false).unwrap();
        shop.until_status(&order, "paid").await;
        shop.end().await;
    }
}

#[tokio::test]
async fn a_deposit_is_not_given_back_without_an_account_and_the_refund_says_why() {
    let token = "0123456789abcdef0123456789abcdef";
    let shop = Shop::with(&[("JARI_OPERATOR_TOKEN", token)]).await;
    let (order, _) = issued(&shop).await;
    shop.pg.deposit(&order.id, false).unwrap();
    shop.until_status(&order, "paid").await;
    let page = page(&shop, &order, &format!("/orders/{}", order.id), "en").await;
    assert!(!page.contains("data-testid=\"cancel\""));
    let request = shop
        .post(&format!("/api/orders/{}/cancel", order.id))
        .header("cookie", &order.cookie)
        .header("idempotency-key", "wish-1")
        .json(&json!({"reason": "changed my mind"}));
    let reply = Reply::of(request.send().await.unwrap()).await;
    reply.refused(400, "invalid_request");
    assert!(
        reply.body["detail"]
            .as_str()
            .unwrap()
            .contains("bank account")
    );
    assert_eq!(shop.pg.ledger().calls.cancel.received, 0);
    shop.end().await;
}

/// A refund by the operator, to this account.
async fn refund_to(shop: &Shop, order: &Order, key: &str, account: Value) -> Reply {
    let request = shop
        .post(&format!("/api/orders/{}/cancel", order.id))
        .bearer_auth(TOKEN)
        .header("idempotency-key", key)
        .json(&json!({"reason": "sent back", "amount": 3_000, "refundAccount": account}));
    Reply::of(request.send().await.expect("an answer")).await
}

#[tokio::test]
async fn the_operator_names_the_account_that_a_deposit_goes_back_to_and_it_is_forgotten_at_the_end()
{
    let mut shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    let (order, _) = issued(&shop).await;
    shop.pg.deposit(&order.id, false).unwrap();
    shop.until_status(&order, "paid").await;
    let number = "1000-123456-789";
    let account = json!({"bank": "20", "accountNumber": number, "holder": "홍길동"});
    for bad in [
        json!({"bank": "woori", "accountNumber": number, "holder": "홍길동"}),
        json!({"bank": "20", "accountNumber": "1000a", "holder": "홍길동"}),
        json!({"bank": "20", "accountNumber": number, "holder": ""}),
    ] {
        let refused = refund_to(&shop, &order, "k0", bad).await;
        refused.refused(400, "invalid_request");
        assert!(
            !refused.body.to_string().contains("홍길동"),
            "{:?}",
            refused.body
        );
    }
    // The first call is lost before anything is booked, and the process dies: it is made by the next one, to that account.
    shop.set(of_cancels(json!({"loss": {"when": "before"}})))
        .await;
    let open = refund_to(&shop, &order, "k1", account.clone()).await;
    assert_eq!(open.status, 202, "{:?}", open.body);
    assert_eq!(open.body["refund"]["account"], "20 ****6789");
    shop.kill();
    shop.set(json!({})).await;
    shop.restart().await;
    let started = std::time::Instant::now();
    let done = loop {
        let reply = refund_to(&shop, &order, "k1", account.clone()).await;
        if reply.status != 202 {
            break reply;
        }
        assert!(
            started.elapsed() < crate::node::PATIENCE,
            "{:?}",
            reply.body
        );
    };
    assert_eq!(done.status, 200, "{:?}", done.body);
    assert_eq!(shop.pg.ledger().orders[&order.id].canceled_won, 3_000);
    let told = done.body.to_string();
    assert!(
        !told.contains("1000123456") && !told.contains("홍길동"),
        "{told}"
    );
    // Nothing of it is left beside its mark, in no table.
    let left = books::refund_accounts(&shop.database()).await;
    assert_eq!(left, [(None, None, None, Some("20 ****6789".to_owned()))]);
    let words = shop.evidence(&order.id).await;
    assert!(
        words.iter().all(|(_, told)| !told.contains("6789")),
        "{words:?}"
    );
    // A card takes none.
    let card = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&card).await.status, 200);
    let refused = refund_to(&shop, &card, "k1", account).await;
    refused.refused(400, "invalid_request");
    shop.end_balanced().await;
}

#[tokio::test]
async fn an_account_that_the_gateway_closes_before_its_deposit_closes_the_order() {
    for balance in ["zero", "whole"] {
        let shop = Shop::open().await;
        shop.set(json!({"deposits": {"canceledBalance": balance}}))
            .await;
        let free = shop.free("mug").await;
        let (order, key) = issued(&shop).await;
        let cancel = shop
            .client
            .post(format!("{}/v1/payments/{key}/cancel", shop.pg.url()))
            .basic_auth("test_sk_fake", Some(""))
            .json(&json!({"cancelReason": "at the desk"}));
        assert_eq!(cancel.send().await.unwrap().status(), 200);
        shop.until_attempt(&order, "canceled").await;
        assert_eq!(shop.free("mug").await, free);
        assert_eq!(shop.money(&order), (0, 0));
        assert_eq!(shop.poll(&order).await.body["status"], "canceled");
        // Nobody had paid, so nobody is told that money went back.
        shop.until_told(&order, &["order_canceled"]).await;
        let effects = shop.effects(&order).await;
        assert_eq!(effects, [("order_canceled".to_owned(), "0".to_owned())]);
        shop.end().await;
    }
}
