//! Orders that are cancelled while their account waits: the account is closed, and a deposit that races it is never lost.

use fakepg::engine::NoDeposit;
use tokio::task::JoinSet;

use super::*;
use crate::refunds::by_operator;

/// A cancel by the order's own shopper.
async fn by_shopper(shop: &Shop, order: &Order, key: &str) -> Reply {
    let request = shop
        .post(&format!("/api/orders/{}/cancel", order.id))
        .header("cookie", &order.cookie)
        .header("idempotency-key", key)
        .json(&json!({"reason": "changed my mind"}));
    Reply::of(request.send().await.expect("an answer")).await
}

/// The form of the order's page, as a browser without script sends it; where it leads.
async fn by_form(shop: &Shop, order: &Order) -> String {
    let here = format!("/orders/{}", order.id);
    let shown = page(shop, order, &here, "en").await;
    let (_, form) = shown.split_once("name=\"key\" value=\"").expect("a form");
    let (key, _) = form.split_once('"').expect("a key");
    let request = shop.post(&here).header("cookie", &order.cookie);
    let request = request.form(&[("key", key)]);
    let answer = request.send().await.expect("an answer");
    let to = answer.headers().get("location");
    let to = to.and_then(|to| to.to_str().ok());
    to.map_or_else(|| format!("{}", answer.status()), str::to_owned)
}

/// What the gateway holds of an order: its status, and what is charged and not given back.
fn at_the_gateway(shop: &Shop, order: &Order) -> String {
    let ledger = shop.pg.ledger();
    let mut payments = ledger.payments.values();
    let found = payments.find(|payment| payment.order_id == order.id);
    found.expect("a payment").status.clone()
}

async fn ends_unpaid(shop: &Shop, order: &Order, free: u64) {
    let state = shop.until_attempt(order, "canceled").await;
    assert_eq!(state.body["status"], "canceled");
    assert_eq!(state.body["closedUnpaid"], true);
    assert_eq!(state.body["deposit"], Value::Null);
    assert_eq!(shop.money(order), (0, 0));
    assert_eq!(at_the_gateway(shop, order), "CANCELED");
    assert_eq!(
        shop.pg.deposit(&order.id, false),
        Err(NoDeposit::WrongState)
    );
    assert_eq!(shop.free("mug").await, free);
    shop.until_told(order, &["order_canceled"]).await;
    let effects = shop.effects(order).await;
    assert_eq!(effects, [("order_canceled".to_owned(), "0".to_owned())]);
}

async fn cancelled_by_its_shopper(shop: Shop) {
    let free = shop.free("mug").await;
    let (order, key) = issued(&shop).await;
    let here = format!("/orders/{}", order.id);
    let waiting = page(&shop, &order, &here, "en").await;
    assert!(
        waiting.contains("data-testid=\"cancel\"") && waiting.contains("Nothing has been paid yet")
    );
    let done = by_shopper(&shop, &order, "wish-1").await;
    assert_eq!(done.status, 200, "{:?}", done.body);
    assert_eq!(
        (&done.body["refunded"], &done.body["refund"]),
        (&json!(0), &Value::Null)
    );
    ends_unpaid(&shop, &order, free).await;
    // However often it is asked for, it was one call.
    for wish in ["wish-1", "wish-2"] {
        let again = by_shopper(&shop, &order, wish).await;
        assert_eq!(
            (again.status, &again.body["status"]),
            (200, &json!("canceled"))
        );
    }
    assert_eq!(shop.pg.ledger().calls.cancel.received, 1);
    // Nobody gave anything, and nobody is told that something went back.
    for (language, says, never) in [
        ("en", "No money came", "refunded"),
        ("ko", "돌려드릴 금액도 없어요", "환불"),
    ] {
        for path in [
            here.clone(),
            format!("/checkout/{}", order.id),
            "/orders".to_owned(),
        ] {
            let shown = page(&shop, &order, &path, language).await;
            let (_, shown) = shown.split_once("<main").expect("a page");
            if path != "/orders" {
                assert!(shown.contains(says), "{path} {shown}");
                assert!(!shown.contains(never), "{path} {shown}");
            }
            assert!(
                path != "/orders" || shown.contains("data-status=\"closed_unpaid\""),
                "{shown}"
            );
        }
        let receipt = page(&shop, &order, &format!("{here}/receipt"), language).await;
        assert!(!receipt.contains("data-testid=\"receipt\""));
    }
    // It is over: neither the old payment nor a new one can pay it.
    let old = shop.confirm(&order, &key).await;
    assert_ne!(old.status, 200, "{:?}", old.body);
    assert!(shop.attempt(&order).await.status >= 400);
    assert_eq!(shop.money(&order), (0, 0));
    shop.end().await;
}

#[tokio::test]
async fn an_order_whose_account_waits_is_cancelled_by_its_shopper_and_nothing_goes_back() {
    cancelled_by_its_shopper(Shop::open().await).await;
}

#[tokio::test]
async fn so_it_is_on_postgres() {
    cancelled_by_its_shopper(Shop::on_postgres(&[]).await).await;
}

#[tokio::test]
async fn the_pages_form_closes_the_account_and_the_page_says_so_while_it_lasts() {
    let shop = Shop::with(&[SOON[0], SOON[1]]).await;
    let free = shop.free("mug").await;
    let (order, _) = issued(&shop).await;
    shop.set(of_cancels(json!({"loss": {"when": "before"}})))
        .await;
    let here = format!("/orders/{}", order.id);
    assert_eq!(by_form(&shop, &order).await, here);
    let state = shop.until_attempt(&order, "cancel_requested").await;
    assert_eq!(state.body["closedUnpaid"], true);
    assert_eq!(
        (&state.body["status"], &state.body["payable"]),
        (&json!("pending"), &json!(false))
    );
    // No account to pay into is shown any more, and no button.
    assert_eq!(state.body["deposit"], Value::Null);
    for (language, says) in [
        ("en", "Please pay nothing into it any more"),
        ("ko", "이제 이 계좌로 입금하지 마세요"),
    ] {
        let shown = page(&shop, &order, &here, language).await;
        assert!(
            shown.contains("data-status=\"closing_account\"") && shown.contains(says),
            "{shown}"
        );
        assert!(
            !shown.contains("data-testid=\"cancel\"")
                && !shown.contains("data-testid=\"deposit-number\"")
        );
    }
    assert_eq!(shop.free("mug").await, free - 1);
    shop.set(json!({})).await;
    ends_unpaid(&shop, &order, free).await;
    shop.end().await;
}

#[tokio::test]
async fn only_who_may_closes_an_account_and_only_as_a_whole() {
    let shop = Shop::with(&[OPERATOR]).await;
    let free = shop.free("mug").await;
    let (order, _) = issued(&shop).await;
    let stranger = shop.order("mug", 1).await;
    let foreign = Order {
        id: order.id.clone(),
        amount: order.amount,
        cookie: stranger.cookie.clone(),
    };
    by_shopper(&shop, &foreign, "k")
        .await
        .refused(404, "order_not_found");
    by_operator(&shop, &order, "k", Some(1_000))
        .await
        .refused(400, "invalid_request");
    let account = json!({"bank": "20", "accountNumber": "1000123456789", "holder": "홍길동"});
    refund_to(&shop, &order, "k", account)
        .await
        .refused(400, "invalid_request");
    shop.poll(&order).await.attempt("awaiting_deposit");
    assert_eq!(shop.pg.ledger().calls.cancel.received, 0);
    let done = by_operator(&shop, &order, "k", None).await;
    assert_eq!(done.status, 200, "{:?}", done.body);
    // The stranger's own order holds nothing.
    ends_unpaid(&shop, &order, free).await;
    shop.end().await;
}

/// A deposit that was faster: the wish is refused, and the order is paid.
async fn deposit_first(shop: Shop) {
    let free = shop.free("mug").await;
    let (order, _) = issued(&shop).await;
    // The first call is lost on its way; the deposit comes before the second.
    shop.set(of_cancels(json!({"loss": {"when": "before"}})))
        .await;
    let open = by_shopper(&shop, &order, "k1").await;
    assert_eq!(open.status, 202, "{:?}", open.body);
    assert_eq!(open.body["closedUnpaid"], true);
    shop.pg.deposit(&order.id, false).expect("a deposit");
    shop.set(json!({})).await;
    shop.until_status(&order, "paid").await;
    assert_eq!(shop.money(&order), (1, 0));
    assert_eq!(shop.free("mug").await, free - 1);
    shop.until_told(&order, &["order_paid"]).await;
    // What it came to is told: it goes back only to an account that is named.
    let refused = by_shopper(&shop, &order, "k1").await;
    refused.refused(400, "invalid_request");
    let detail = refused.body["detail"].as_str().expect("a detail");
    assert!(detail.contains("bank account"), "{detail}");
    shop.end().await;
}

#[tokio::test]
async fn a_deposit_before_the_account_is_closed_pays_the_order() {
    deposit_first(Shop::with(&[SOON[0], SOON[1]]).await).await;
}

#[tokio::test]
async fn a_deposit_before_the_account_is_closed_pays_the_order_on_postgres() {
    deposit_first(Shop::on_postgres(&[SOON[0], SOON[1]]).await).await;
}

#[tokio::test]
async fn an_account_that_was_closed_by_a_lost_answer_takes_no_deposit_and_is_known_closed() {
    let mut shop = Shop::with(&[SOON[0], SOON[1]]).await;
    let free = shop.free("mug").await;
    // Closed, and nobody heard of it.
    shop.set(of_cancels(json!({"loss": {"when": "after"}})))
        .await;
    let (heard, _) = issued(&shop).await;
    by_shopper(&shop, &heard, "k1").await;
    ends_unpaid(&shop, &heard, free).await;
    // Nor did the gateway: the process dies with the wish stored, and the next one carries it out.
    shop.set(of_cancels(json!({"loss": {"when": "before"}})))
        .await;
    let (killed, _) = issued(&shop).await;
    let open = by_shopper(&shop, &killed, "k1").await;
    assert_eq!(open.status, 202, "{:?}", open.body);
    shop.kill();
    shop.set(json!({})).await;
    shop.restart().await;
    ends_unpaid(&shop, &killed, free).await;
    shop.end().await;
}

#[tokio::test]
async fn an_account_that_the_gateway_will_not_close_waits_again_and_can_be_paid() {
    let shop = Shop::with(&[SOON[0], SOON[1]]).await;
    let (order, _) = issued(&shop).await;
    let refusal =
        json!({"error": {"status": 403, "code": "NOT_CANCELABLE_PAYMENT", "when": "before"}});
    shop.set(of_cancels(refusal)).await;
    let refused = by_shopper(&shop, &order, "k1").await;
    refused.refused(402, "declined");
    let state = shop.until_attempt(&order, "awaiting_deposit").await;
    assert_ne!(state.body["deposit"], Value::Null);
    assert_eq!(state.body["closedUnpaid"], Value::Null);
    let shown = page(&shop, &order, &format!("/orders/{}", order.id), "en").await;
    assert!(
        shown.contains("did not close the virtual account")
            && shown.contains("data-testid=\"cancel\""),
        "{shown}"
    );
    // Nobody is alarmed: no money is kept from anybody.
    assert!(shop.effects(&order).await.is_empty());
    shop.set(json!({})).await;
    shop.pg.deposit(&order.id, false).expect("a deposit");
    shop.until_status(&order, "paid").await;
    assert_eq!(shop.money(&order), (1, 0));
    shop.end().await;
}

/// Cancels and deposits at once: each order ends as the gateway has it.
async fn race(shop: Shop) {
    const ORDERS: usize = 8;
    let free = shop.free("mug").await;
    // Some of the calls take a while, some answers are lost, and webhooks come twice.
    shop.set(json!({"operations": ["cancel"], "delayMs": {"min": 0, "max": 60}, "loss": {"ratio": 0.3, "when": "after"},
        "webhooks": {"duplicate": 0.5}, "seed": 7}))
    .await;
    let mut orders = Vec::new();
    for _ in 0..ORDERS {
        orders.push(issued(&shop).await.0);
    }
    let mut cancels = JoinSet::new();
    let mut deposited = Vec::new();
    for (n, order) in orders.iter().enumerate() {
        let before = shop.pg.ledger().calls.cancel.received;
        let request = shop
            .post(&format!("/api/orders/{}/cancel", order.id))
            .header("cookie", &order.cookie)
            .header("idempotency-key", "k1")
            .json(&json!({"reason": "changed my mind"}));
        let sent = async move { request.send().await.expect("an answer").status().as_u16() };
        cancels.spawn(sent);
        // Half of the deposits come while the cancel is on its way to the gateway, half while the gateway works on it.
        if n % 2 == 1 {
            shop.until_ledger(|ledger| ledger.calls.cancel.received > before)
                .await;
        }
        deposited.push(shop.pg.deposit(&order.id, false).is_ok());
    }
    cancels.join_all().await;
    shop.set(json!({})).await;
    let mut sold = 0;
    for (order, deposited) in orders.iter().zip(deposited) {
        let end = shop
            .until(order, |state| state["status"] != "pending")
            .await;
        let (status, money) = if deposited {
            ("paid", (1, 0))
        } else {
            ("canceled", (0, 0))
        };
        assert_eq!(end.body["status"], status, "{:?}", end.body);
        assert_eq!(shop.money(order), money);
        sold += u64::from(deposited);
        let told = if deposited {
            "order_paid"
        } else {
            "order_canceled"
        };
        shop.until_told(order, &[told]).await;
        // Asked again: refused with the truth, or done.
        let again = by_shopper(&shop, order, "k2").await;
        assert_eq!(
            again.status,
            if deposited { 400 } else { 200 },
            "{:?}",
            again.body
        );
    }
    assert_eq!(shop.free("mug").await, free - sold);
    shop.end().await;
}

#[tokio::test]
async fn deposits_that_race_cancels_end_as_the_gateway_has_them() {
    race(Shop::with(&[SOON[0], SOON[1]]).await).await;
}

#[tokio::test]
async fn deposits_that_race_cancels_end_as_the_gateway_has_them_on_postgres() {
    race(Shop::on_postgres(&[SOON[0], SOON[1]]).await).await;
}
