//! Operators' commands beside a running server: what is not final is listed, asked about, and ended by a word.

use serde_json::{Value, json};

use crate::shop::{Order, Shop};

/// An order whose payment is unknown and whose gateway gives no word; `when` says whether it was booked.
pub(crate) async fn unknown(shop: &Shop, when: &str) -> (Order, String) {
    let webhooks = json!({"drop": 1.0});
    let scenario = json!({"loss": {"when": when}, "webhooks": webhooks});
    shop.set(scenario).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let request = shop.confirm_request(&order, &order.id, &key);
    // No resend has time: what the first send did is all there is.
    let request = request.header("X-Request-Timeout-Ms", "9000");
    // From here on inquiries are answered, but say nothing.
    let sent = tokio::spawn(request.send());
    shop.until_ledger(|ledger| ledger.calls.confirm.received > 0)
        .await;
    silence(shop).await;
    assert_eq!(
        sent.await.expect("a task").expect("an answer").status(),
        202
    );
    shop.until_attempt(&order, "unknown").await;
    (order, key)
}

async fn silence(shop: &Shop) {
    shop.set(json!({"operations": ["get"], "error": {"status": 503}, "webhooks": {"drop": 1.0}}))
        .await;
}

/// The attempts that `jari unresolved` lists.
async fn listed(shop: &Shop, more: &[&str]) -> Vec<Value> {
    let args = [&["unresolved", "--json"], more].concat();
    let (code, said) = shop.command(&args).await;
    assert_eq!(code, 0, "{said}");
    let list: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("no JSON: {said}"));
    list.as_array().expect("a list").clone()
}

/// Ends the doubt about an order.
async fn resolve(shop: &Shop, order: &Order, word: &str, more: &[&str]) -> (i32, String) {
    let mut args = vec!["resolve", &order.id, "--as", word, "--by", "kim"];
    args.extend(["--reason", "seen at the gateway's desk"]);
    args.extend(more);
    shop.command(&args).await
}

#[tokio::test]
async fn what_is_not_final_is_listed_with_its_keys_masked() {
    let shop = Shop::with(&[("JARI_UNKNOWN_BOUND_MS", "1")]).await;
    assert!(listed(&shop, &[]).await.is_empty());
    let (order, key) = unknown(&shop, "after").await;
    let list = listed(&shop, &[]).await;
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["orderId"], order.id);
    assert_eq!(list[0]["status"], "unknown");
    assert_eq!(list[0]["amount"], order.amount);
    assert_eq!(list[0]["number"], 1);
    assert!(list[0]["last"]["event"].is_string());
    assert!(listed(&shop, &["--older-than", "60"]).await.is_empty());
    let (code, said) = shop.command(&["unresolved"]).await;
    assert!(
        code == 0 && said.contains(&order.id) && !said.contains(&key),
        "{said}"
    );
    // A doubt beyond its bound shows where alerts look.
    shop.until_metric("payments_unknown_overdue", 1.0).await;
    shop.set(json!({})).await;
    shop.until_status(&order, "paid").await;
    shop.until_metric("payments_unknown_overdue", 0.0).await;
    assert!(listed(&shop, &[]).await.is_empty());
    shop.end().await;
}

/// A word of "not charged", and a charge that the gateway tells of afterwards.
async fn not_charged_and_then_charged(shop: Shop) {
    let (order, key) = unknown(&shop, "before").await;
    let (code, said) = resolve(&shop, &order, "not-charged", &[]).await;
    assert!(code != 0 && said.contains("--early"), "{said}");
    shop.poll(&order).await.attempt("unknown");
    let (code, said) = resolve(&shop, &order, "not-charged", &["--early"]).await;
    assert_eq!(code, 0, "{said}");
    // The running server's pages follow.
    let state = shop.until_attempt(&order, "failed").await;
    assert_eq!(state.body["attempt"]["reason"], "ended_by_operator");
    assert_eq!(state.body["attempt"]["reach"], "may_have_been_sent");
    assert_eq!(state.body["payable"], true);
    let (code, said) = resolve(&shop, &order, "charged", &[]).await;
    assert_eq!(code, 1, "{said}");
    shop.poll(&order).await.attempt("failed");
    // The gateway charges it after all: money that is not owed goes back.
    shop.set(json!({})).await;
    let confirm = shop
        .client
        .post(format!("{}/v1/payments/confirm", shop.pg.url()))
        .basic_auth("test_sk_fake", Some(""))
        .json(&json!({"paymentKey": key, "orderId": order.id, "amount": order.amount}));
    assert_eq!(confirm.send().await.expect("an answer").status(), 200);
    shop.until_attempt(&order, "canceled").await;
    let money = &shop.pg.ledger().orders[&order.id];
    assert_eq!((money.charges, money.cancels), (1, 1));
    let kept = shop.evidence(&order.id).await;
    assert!(
        kept.contains(&(
            "operator".to_owned(),
            "by kim: seen at the gateway's desk".to_owned()
        )),
        "{kept:?}"
    );
    shop.end().await;
}

#[tokio::test]
async fn an_operators_not_charged_makes_it_payable_and_a_later_charge_goes_back() {
    not_charged_and_then_charged(Shop::open().await).await;
}

#[tokio::test]
async fn an_operators_not_charged_makes_it_payable_and_a_later_charge_goes_back_on_postgres() {
    not_charged_and_then_charged(Shop::on_postgres(&[]).await).await;
}

#[tokio::test]
async fn an_operators_charged_pays_the_order_and_agrees_with_the_gateway_later() {
    let shop = Shop::open().await;
    let (order, _) = unknown(&shop, "after").await;
    let (code, said) = resolve(&shop, &order, "charged", &[]).await;
    assert_eq!(code, 0, "{said}");
    shop.until_status(&order, "paid").await;
    shop.set(json!({})).await;
    let asked = shop.pg.ledger().calls.get.received;
    let (code, said) = shop.command(&["ask", &order.id]).await;
    assert_eq!(code, 0, "{said}");
    shop.until_ledger(|ledger| ledger.calls.get.received > asked)
        .await;
    shop.until_status(&order, "paid").await;
    assert_eq!(shop.charges(&order.id), 1);
    assert!(
        (shop
            .metric("payments_alarm_total{alarm=\"conflict\"}")
            .await)
            .abs()
            < 0.1
    );
    shop.end().await;
}

#[tokio::test]
async fn commands_refuse_what_says_nothing_or_is_not_there() {
    let shop = Shop::open().await;
    for args in [
        &[
            "resolve",
            "ord_nobody",
            "--as",
            "charged",
            "--by",
            "kim",
            "--reason",
            "x",
        ][..],
        &[
            "resolve", "1", "--as", "charged", "--by", " ", "--reason", "x",
        ],
        &[
            "resolve", "1", "--as", "failed", "--by", "kim", "--reason", "x",
        ],
        &["resolve", "1", "--as", "charged", "--by", "kim"],
        &["ask", "999"],
        &["webhooks", "replay"],
        &["webhooks", "list", "--since", "yesterday"],
    ] {
        let (code, said) = shop.command(args).await;
        assert_ne!(code, 0, "{args:?}: {said}");
    }
    let order = shop.order("mug", 1).await;
    shop.attempt(&order).await;
    let (code, said) = shop.command(&["ask", &order.id]).await;
    assert!(
        code != 0 && said.contains("nothing") | said.contains("no payment"),
        "{said}"
    );
    shop.end().await;
}
