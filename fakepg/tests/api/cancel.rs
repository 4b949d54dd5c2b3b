//! Cancels, full and partial.

use fakepg::Config;
use serde_json::json;

use crate::support::{Receiver, Shop, until};

#[tokio::test]
async fn a_full_cancel_gives_everything_back_once() {
    let shop = Shop::open().await;
    let payment_key = shop.paid("order_1").await;
    let canceled = shop
        .cancel(&payment_key, json!({"cancelReason": "변심"}))
        .await;
    assert_eq!(canceled.status, 200);
    let payment = canceled.json();
    assert_eq!(payment["status"], "CANCELED");
    assert_eq!(payment["totalAmount"], 1_000);
    assert_eq!(payment["balanceAmount"], 0);
    assert_eq!(payment["cancels"][0]["cancelAmount"], 1_000);
    assert_eq!(payment["cancels"][0]["cancelStatus"], "DONE");
    assert_eq!(payment["cancels"][0]["refundableAmount"], 0);

    let again = shop
        .cancel(&payment_key, json!({"cancelReason": "변심"}))
        .await;
    assert_eq!(again.refusal(), (400, "ALREADY_CANCELED_PAYMENT".into()));
    let ledger = shop.ledger();
    assert_eq!(
        (
            ledger.orders["order_1"].cancels,
            ledger.orders["order_1"].canceled_won
        ),
        (1, 1_000)
    );
    assert_eq!(
        (ledger.calls.cancel.approved, ledger.calls.cancel.declined),
        (1, 1)
    );
}

#[tokio::test]
async fn partial_cancels_end_with_a_partial_status_and_no_balance() {
    let shop = Shop::open().await;
    let payment_key = shop.paid("order_1").await;
    let part = json!({"cancelReason": "일부", "cancelAmount": 400, "refundableAmount": 1_000});
    let first = shop.cancel(&payment_key, part.clone()).await.json();
    assert_eq!(
        (&first["status"], &first["balanceAmount"]),
        (&json!("PARTIAL_CANCELED"), &json!(600))
    );
    assert_eq!(
        shop.ledger().orders["order_1"].cancels,
        0,
        "not a full cancel yet"
    );

    let stale = shop.cancel(&payment_key, part).await;
    assert_eq!(
        stale.refusal(),
        (400, "NOT_MATCHES_REFUNDABLE_AMOUNT".into())
    );
    let more = json!({"cancelReason": "일부", "cancelAmount": 601});
    let too_much = shop.cancel(&payment_key, more).await;
    assert_eq!(too_much.refusal(), (403, "NOT_CANCELABLE_AMOUNT".into()));

    let rest = shop
        .cancel(&payment_key, json!({"cancelReason": "나머지"}))
        .await
        .json();
    assert_eq!(
        (&rest["status"], &rest["balanceAmount"]),
        (&json!("PARTIAL_CANCELED"), &json!(0))
    );
    assert_eq!(rest["cancels"].as_array().expect("a list").len(), 2);
    let after = shop
        .cancel(&payment_key, json!({"cancelReason": "또"}))
        .await;
    assert_eq!(after.refusal(), (403, "NOT_CANCELABLE_AMOUNT".into()));
    let order = shop.ledger().orders["order_1"];
    assert_eq!((order.cancels, order.canceled_won), (1, 1_000));
}

#[tokio::test]
async fn a_cancel_needs_a_reason_and_a_charged_payment() {
    let shop = Shop::open().await;
    let unpaid = shop.pg.authenticate("order_1", 1_000);
    let reason = json!({"cancelReason": "변심"});
    let refused = shop.cancel(&unpaid, reason.clone()).await;
    assert_eq!(refused.refusal(), (403, "NOT_CANCELABLE_PAYMENT".into()));
    assert_eq!(
        shop.cancel("nobody", reason).await.refusal(),
        (404, "NOT_FOUND_PAYMENT".into())
    );

    let paid = shop.paid("order_2").await;
    for body in [
        json!({}),
        json!({"cancelReason": ""}),
        json!({"cancelReason": "x".repeat(201)}),
        json!({"cancelReason": "변심", "cancelAmount": 0}),
        json!({"cancelReason": "변심", "cancelAmount": "400"}),
        json!({"cancelReason": "변심", "currency": "USD"}),
    ] {
        let refused = shop.cancel(&paid, body.clone()).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST".into()), "{body}");
    }
    assert_eq!(shop.inquire(&paid).await.json()["status"], "DONE");
}

#[tokio::test]
async fn a_canceled_order_may_be_charged_again() {
    let shop = Shop::open().await;
    let first = shop.paid("order_1").await;
    shop.cancel(&first, json!({"cancelReason": "변심"})).await;
    shop.paid("order_1").await;
    let order = shop.ledger().orders["order_1"];
    assert_eq!((order.charges, order.cancels), (2, 1));
}

#[tokio::test]
async fn a_cancel_that_ends_later_is_done_or_aborted_and_only_then_counts() {
    for (balance, fallen) in [("atEnd", 0), ("atOnce", 400)] {
        for (end, status, back) in [("done", "DONE", 400), ("aborted", "ABORTED", 0)] {
            let receiver = Receiver::open(0).await;
            let config = Config {
                webhook_url: Some(receiver.url.clone()),
                ..Config::default()
            };
            let shop = Shop::with(config).await;
            let waits = json!({"asyncCancels": {"afterMs": 600_000, "balance": balance}});
            shop.scenario(waits).await;
            let key = shop.paid("order_1").await;
            let part = json!({"cancelReason": "일부", "cancelAmount": 400});
            let accepted = shop.cancel(&key, part).await;
            assert_eq!(accepted.status, 200);
            let payment = accepted.json();
            assert_eq!(payment["cancels"][0]["cancelStatus"], "IN_PROGRESS");
            assert_eq!(payment["balanceAmount"], 1_000 - fallen);
            assert_eq!(shop.ledger().orders["order_1"].canceled_won, 0);
            // What is under way is not left for another.
            let more = json!({"cancelReason": "일부", "cancelAmount": 700});
            let refused = shop.cancel(&key, more).await;
            assert_eq!(refused.refusal(), (403, "NOT_CANCELABLE_AMOUNT".into()));
            let ends = json!({"asyncCancels": {"afterMs": 0, "ends": end, "balance": balance}});
            shop.scenario(ends).await;
            let payment = shop.inquire(&key).await.json();
            assert_eq!(payment["cancels"][0]["cancelStatus"], status);
            assert_eq!(payment["balanceAmount"], 1_000 - back, "{balance} {end}");
            let word = if back == 0 {
                "DONE"
            } else {
                "PARTIAL_CANCELED"
            };
            assert_eq!(payment["status"], word, "{balance} {end}");
            assert_eq!(shop.ledger().orders["order_1"].canceled_won, back);
            let told = || async {
                let all = receiver.all();
                let mut events = all.iter().map(|one| one.json()["eventType"].clone());
                events.any(|event| event == "CANCEL_STATUS_CHANGED")
            };
            until("its end is told", told).await;
        }
    }
}
