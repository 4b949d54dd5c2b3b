//! Cancels that the gateway accepts at once and ends later, as done or as aborted, and those whose key it has forgotten.

use super::*;

/// How many cancels the gateway took on; a repeat under the same key is answered as the first.
fn taken_on(shop: &Shop) -> u64 {
    shop.pg.ledger().calls.cancel.approved
}

/// Cancels that are under way until the scenario says how they end.
fn under_way(balance: &str) -> Value {
    json!({"asyncCancels": {"afterMs": 600_000, "balance": balance}})
}

fn ends(end: &str, balance: &str) -> Value {
    json!({"asyncCancels": {"afterMs": 0, "ends": end, "balance": balance}})
}

/// Waits until the gateway was asked so often from now on.
async fn until_asked(shop: &Shop, times: u64) {
    let before = shop.pg.ledger().calls.get.received;
    shop.until_ledger(|ledger| ledger.calls.get.received >= before + times)
        .await;
}

#[tokio::test]
async fn a_refund_that_is_under_way_is_made_once_and_counts_when_it_is_done() {
    for balance in ["atEnd", "atOnce"] {
        let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
        let (order, _) = paid(&shop, "mug").await;
        shop.set(under_way(balance)).await;
        let asked = by_operator(&shop, &order, "k1", Some(3_000)).await;
        assert_eq!(asked.status, 202, "{balance}: {:?}", asked.body);
        // A second wish waits for the first one's end.
        let second = by_operator(&shop, &order, "k2", Some(2_000)).await;
        assert_eq!(second.status, 202, "{balance}: {:?}", second.body);
        until_asked(&shop, 3).await;
        assert_eq!(taken_on(&shop), 1, "{balance}");
        let still = by_operator(&shop, &order, "k1", Some(3_000)).await;
        assert_eq!((still.status, &still.body["refunded"]), (202, &json!(0)));
        assert_eq!(shop.poll(&order).await.body["status"], "paid");
        assert_eq!(canceled_won(&shop, &order), 0);
        shop.set(ends("done", balance)).await;
        let first = end_of(&shop, &order, "k1", Some(3_000)).await;
        assert_eq!(first.status, 200, "{balance}: {:?}", first.body);
        let second = end_of(&shop, &order, "k2", Some(2_000)).await;
        assert_eq!(second.status, 200, "{balance}: {:?}", second.body);
        assert_eq!(canceled_won(&shop, &order), 5_000, "{balance}");
        assert_eq!(taken_on(&shop), 2, "{balance}");
        shop.end_balanced().await;
    }
}

#[tokio::test]
async fn a_refund_that_is_aborted_later_is_refused_once_and_another_wish_can_be_made() {
    for (balance, amount) in [
        ("atEnd", Some(3_000)),
        ("atOnce", Some(3_000)),
        ("atOnce", None),
    ] {
        let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
        let (order, _) = paid(&shop, "mug").await;
        shop.set(under_way(balance)).await;
        let asked = by_operator(&shop, &order, "k1", amount).await;
        assert_eq!(asked.status, 202, "{balance}: {:?}", asked.body);
        shop.set(ends("aborted", balance)).await;
        let end = end_of(&shop, &order, "k1", amount).await;
        end.refused(402, "declined");
        let detail = end.body["detail"].as_str().expect("a detail");
        assert!(detail.contains("cancel_aborted"), "{detail}");
        let state = shop.poll(&order).await;
        state.attempt("approved");
        assert_eq!(state.body["status"], "paid");
        // One call, and nobody makes another by himself.
        assert_eq!(taken_on(&shop), 1, "{balance}");
        assert_eq!(canceled_won(&shop, &order), 0);
        let alarms = shop.effects(&order).await;
        let alarm = ("alarm".to_owned(), "cancel_refused".to_owned());
        assert!(alarms.contains(&alarm), "{alarms:?}");
        shop.set(json!({})).await;
        let again = by_operator(&shop, &order, "k2", amount).await;
        assert_eq!(again.status, 200, "{balance}: {:?}", again.body);
        let wanted = amount.unwrap_or(order.amount);
        assert_eq!(canceled_won(&shop, &order), wanted, "{balance}");
        shop.end_balanced().await;
    }
}

#[tokio::test]
async fn a_cancel_that_is_owed_and_aborted_alarms_and_is_made_anew_when_the_charge_is_seen_to_stand()
 {
    for balance in ["atEnd", "atOnce"] {
        let shop = Shop::open().await;
        let mut scenario = under_way(balance);
        scenario["body"] = json!("wrongAmount");
        scenario["operations"] = json!(["confirm"]);
        shop.set(scenario).await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        shop.confirm(&order, &key).await;
        shop.until_attempt(&order, "cancel_requested").await;
        until_asked(&shop, 2).await;
        assert_eq!(taken_on(&shop), 1, "{balance}: it is under way");
        shop.set(ends("aborted", balance)).await;
        shop.until_attempt(&order, "mischarged").await;
        let alarms = shop.effects(&order).await;
        let alarm = ("alarm".to_owned(), "cancel_refused".to_owned());
        assert!(alarms.contains(&alarm), "{alarms:?}");
        assert_eq!(taken_on(&shop), 1, "{balance}");
        // It stays owed: the next look, here one that somebody hints at, makes it under a key of its own.
        shop.set(json!({})).await;
        let hint = json!({"data": {"paymentKey": key, "orderId": order.id}});
        assert_eq!(crate::webhooks::hook(&shop, Some("h1"), hint).await, 200);
        shop.until_attempt(&order, "canceled").await;
        assert_eq!(taken_on(&shop), 2, "{balance}");
        assert_eq!(canceled_won(&shop, &order), order.amount + 1_000);
        shop.end_balanced().await;
    }
}

/// After the gateway has forgotten a key, a repeat under it would be a second cancel. Where its lock is not compared either,
/// only asking prevents that.
#[tokio::test]
async fn a_refund_that_is_owed_longer_than_its_key_is_remembered_is_asked_about_before_it_is_called_for()
 {
    for executed in [true, false] {
        let mut shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
        let (order, _) = paid(&shop, "mug").await;
        let fault = if executed {
            json!({"hang": {"when": "after", "ms": 600_000}, "webhooks": {"drop": 1.0}})
        } else {
            json!({"stop": true, "webhooks": {"drop": 1.0}})
        };
        shop.set(of_cancels(fault)).await;
        let request = shop
            .post(&format!("/api/orders/{}/cancel", order.id))
            .bearer_auth(TOKEN)
            .header("Idempotency-Key", "k1")
            .json(&json!({"reason": "sent back", "amount": 3_000}));
        let running = tokio::spawn(async move { request.send().await.is_ok() });
        shop.until_ledger(|ledger| ledger.calls.cancel.received == 1)
            .await;
        if executed {
            shop.until_ledger(|ledger| ledger.orders[&order.id].canceled_won == 3_000)
                .await;
        }
        shop.kill();
        let _ = running.await;
        // Down for fifteen days: nothing was heard of the call, and the gateway knows neither its key nor the lock.
        shop.in_books("UPDATE refunds SET key_at = created_at - 1296000000")
            .await;
        shop.in_books("UPDATE attempts SET asks = 0, ask_at = 0 WHERE ask_at IS NOT NULL")
            .await;
        let forgetful = json!({"idempotency": "off", "uncertain": {"refundableAmount": false},
            "webhooks": {"drop": 1.0}});
        shop.set(forgetful).await;
        assert_eq!(shop.pg.ledger().calls.get.received, 0);
        shop.restart().await;
        let end = end_of(&shop, &order, "k1", Some(3_000)).await;
        assert_eq!(end.status, 200, "executed: {executed}: {:?}", end.body);
        assert_eq!(canceled_won(&shop, &order), 3_000, "executed: {executed}");
        assert!(shop.pg.ledger().calls.get.received >= 1, "it was asked");
        assert_eq!(cancels_received(&shop), if executed { 1 } else { 2 });
        shop.end_balanced().await;
    }
}
