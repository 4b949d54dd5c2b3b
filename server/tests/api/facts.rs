//! What nobody outside knows of the real gateways: the whole program under each reading ends in the truth, with at most
//! one charge and each refund once. `docs/gateway-facts.md` is the list.

use serde_json::{Value, json};

use crate::refunds::{OPERATOR, SOON, by_operator, canceled_won, end_of, of_cancels, paid};
use crate::shop::{Order, Reply, Shop};

mod kakaopay;
mod returns;
mod stall;
mod webhooks;

/// A gateway that settles soon, so that an end which rests on its silence is seen.
const SETTLES: [(&str, &str); 4] = [
    ("JARI_PG_CONFIRM_WINDOW_MS", "300"),
    ("JARI_PG_TIMEOUT_MS", "1500"),
    ("JARI_DATABASE_WAIT_MS", "1000"),
    ("JARI_RESEND", "off"),
];

/// Pays by a new attempt, as somebody does who is told that nothing was charged.
async fn pay_again(shop: &Shop, order: &Order) -> String {
    shop.until(order, |body| body["payable"] == true).await;
    let again = shop.attempt(order).await;
    assert_eq!(again.status, 201, "{:?}", again.body);
    let id = again.body["gatewayOrderId"].as_str().expect("an id");
    let key = shop.key(id, order.amount);
    let request = shop.confirm_request(order, id, &key);
    let reply = Reply::of(request.send().await.expect("an answer")).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    id.to_owned()
}

#[tokio::test]
async fn no_1_an_error_is_asked_about_whether_or_not_it_is_bound_to_its_key() {
    for bound in [false, true] {
        let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
        let failing = |operation: &str, status: u16, code: Option<&str>, when: &str| {
            let mut error = json!({"status": status, "when": when});
            if let Some(code) = code {
                error["code"] = json!(code);
            }
            json!({"operations": [operation], "error": error, "bindServerErrors": bound,
                "webhooks": {"drop": 1.0}})
        };
        let error = failing("confirm", 500, Some("UNKNOWN_PAYMENT_ERROR"), "after");
        shop.set(error).await;
        let order = shop.order("mug", 1).await;
        assert_eq!(shop.pay(&order).await.status, 202);
        shop.until_status(&order, "paid").await;
        assert_eq!(shop.money(&order), (1, 0), "bound: {bound}");
        for (status, code) in [
            (500, Some("FAILED_REFUND_PROCESS")),
            (429, None),
            (401, Some("UNAUTHORIZED_KEY")),
        ] {
            shop.set(json!({})).await;
            let (order, _) = paid(&shop, "mug").await;
            shop.set(failing("cancel", status, code, "before")).await;
            let before = shop.pg.ledger().calls.cancel.received;
            by_operator(&shop, &order, "k1", Some(3_000)).await;
            shop.until_ledger(|ledger| ledger.calls.cancel.received > before)
                .await;
            // Healthy again; what was bound stays bound.
            shop.set(json!({"bindServerErrors": bound})).await;
            let end = end_of(&shop, &order, "k1", Some(3_000)).await;
            assert_eq!(end.status, 200, "{status}, bound: {bound}: {:?}", end.body);
            assert_eq!(canceled_won(&shop, &order), 3_000);
        }
        shop.end_balanced().await;
    }
}

#[tokio::test]
async fn no_2_a_payment_that_was_not_confirmed_ends_as_not_charged_whether_it_is_shown_or_not() {
    for shown in ["payment", "notFound"] {
        let shop = Shop::with(&SETTLES).await;
        shop.set(json!({"unconfirmed": shown, "loss": {"when": "before"}}))
            .await;
        let order = shop.order("mug", 1).await;
        let reply = shop.pay(&order).await;
        assert_eq!(reply.status, 202, "{shown}: {:?}", reply.body);
        shop.until_attempt(&order, "failed").await;
        assert!(shop.pg.ledger().calls.get.received > 0, "it was asked");
        shop.set(json!({"unconfirmed": shown})).await;
        pay_again(&shop, &order).await;
        assert_eq!(shop.money(&order), (1, 0), "{shown}");
        shop.end().await;
    }
}

#[tokio::test]
async fn no_4_a_repeat_after_the_window_is_no_refusal_whatever_the_gateway_calls_it() {
    for reading in ["processed", "session"] {
        let shop = Shop::with(&[("JARI_PG_TIMEOUT_MS", "1500")]).await;
        // Booked and never answered, so that it is sent again.
        let hang = json!({"hang": {"when": "after", "ms": 600_000}, "webhooks": {"drop": 1.0}});
        shop.set(hang).await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let running = shop.start_pay(&order, &key);
        shop.until_ledger(|ledger| ledger.calls.confirm.approved == 1)
            .await;
        // By then its window is over, and its key is forgotten.
        shop.set(
            json!({"confirmWindowMs": 0, "idempotency": "off", "webhooks": {"drop": 1.0},
            "uncertain": {"repeatAfterWindow": reading}}),
        )
        .await;
        shop.until_status(&order, "paid").await;
        let answer = running.await.expect("a task").expect("an answer");
        assert!(matches!(answer.status, 200 | 202), "{:?}", answer.body);
        assert_eq!(
            (shop.confirms(), shop.charges(&order.id)),
            (2, 1),
            "{reading}"
        );
        shop.end().await;
    }
}

#[tokio::test]
async fn no_5_a_refused_payment_is_never_sent_again_whether_or_not_it_could_be() {
    for (reading, code, answered) in [
        ("every", "PROVIDER_ERROR", 202),
        ("none", "PROVIDER_ERROR", 202),
        ("finalWords", "REJECT_CARD_COMPANY", 402),
        ("none", "REJECT_CARD_COMPANY", 402),
    ] {
        let shop = Shop::with(&SETTLES).await;
        let uncertain = json!({"afterRefusal": reading});
        shop.set(json!({"decline": {"code": code}, "uncertain": uncertain}))
            .await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let reply = shop.confirm(&order, &key).await;
        assert_eq!(reply.status, answered, "{reading} {code}: {:?}", reply.body);
        shop.until_attempt(&order, "failed").await;
        shop.set(json!({"uncertain": uncertain})).await;
        let again = shop.confirm(&order, &key).await;
        assert!(matches!(again.status, 402 | 409), "{:?}", again.body);
        assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 0), "{code}");
        let id = pay_again(&shop, &order).await;
        assert_ne!(id, order.id);
        assert_eq!(shop.money(&order), (1, 0));
        shop.end().await;
    }
}

#[tokio::test]
async fn no_7_too_many_calls_are_a_refusal_before_processing_whatever_body_and_wait_they_name() {
    let shop = Shop::open().await;
    for (body, wait) in [("json", None), ("empty", Some(3_600)), ("html", Some(1))] {
        let mut uncertain = json!({"limitedBody": body});
        if let Some(seconds) = wait {
            uncertain["retryAfterS"] = json!(seconds);
        }
        shop.set(json!({"rateLimit": 0, "uncertain": uncertain}))
            .await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let refused = shop.confirm(&order, &key).await;
        refused.refused(503, "pg_refused");
        assert_eq!(refused.body["reach"], "answered", "{body}");
        let wait = refused.headers["retry-after"].to_str().expect("text");
        assert!(wait.parse::<u64>().expect("seconds") < 3_600, "{wait}");
        // The payment that was authenticated serves again.
        shop.set(json!({})).await;
        let again = shop.confirm(&order, &key).await;
        assert_eq!(again.status, 200, "{body}: {:?}", again.body);
        assert_eq!(shop.money(&order), (1, 0));
    }
    shop.end().await;
}

#[tokio::test]
async fn no_11_a_refund_is_made_once_with_and_without_the_lock_and_the_entrys_status() {
    let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    for (lock, status) in [(true, true), (true, false), (false, true), (false, false)] {
        let uncertain = json!({"refundableAmount": lock, "cancelStatus": status});
        let reading = |mut fault: Value| {
            fault["uncertain"] = uncertain.clone();
            of_cancels(fault)
        };
        let (order, _) = paid(&shop, "mug").await;
        shop.set(reading(json!({}))).await;
        let part = by_operator(&shop, &order, "k1", Some(3_000)).await;
        assert_eq!(part.status, 200, "{uncertain}: {:?}", part.body);
        // The next answer is lost after the booking.
        let lost = json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}});
        shop.set(reading(lost)).await;
        let end = end_of(&shop, &order, "k2", Some(2_000)).await;
        assert_eq!(end.status, 200, "{uncertain}: {:?}", end.body);
        assert_eq!(canceled_won(&shop, &order), 5_000, "{uncertain}");
        shop.set(reading(json!({}))).await;
        let rest = by_operator(&shop, &order, "k3", None).await;
        assert_eq!(rest.status, 200, "{uncertain}: {:?}", rest.body);
        assert_eq!(canceled_won(&shop, &order), order.amount, "{uncertain}");
        shop.set(json!({})).await;
    }
    shop.end_balanced().await;
}
