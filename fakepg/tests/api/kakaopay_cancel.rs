//! KakaoPay's cancel: parts, the lock, refusals.

use serde_json::json;

use crate::kakao::{approve_body, ready_body, with};
use crate::support::Shop;

#[tokio::test]
async fn parts_are_cancelled_until_nothing_is_left() {
    let shop = Shop::open().await;
    let tid = shop.kakao_paid("order_1").await;
    let part = json!({"payload": "refund-1", "cancel_available_amount": 33_000});
    let reply = shop.kakao_cancel(&tid, 11_000, part).await;
    let told = reply.json();
    assert_eq!(reply.status, 200, "{told}");
    assert_eq!(told["status"], "PART_CANCEL_PAYMENT");
    assert_eq!(told["approved_cancel_amount"]["total"], 11_000);
    assert_eq!(told["approved_cancel_amount"]["vat"], 1_000);
    assert_eq!(told["canceled_amount"]["total"], 11_000);
    assert_eq!(told["cancel_available_amount"]["total"], 22_000);
    assert_eq!(told["amount"]["total"], 33_000);
    assert_eq!(told["payload"], "refund-1");
    let rest = shop.kakao_cancel(&tid, 22_000, json!({})).await.json();
    assert_eq!(rest["status"], "CANCEL_PAYMENT");
    assert_eq!(rest["cancel_available_amount"]["total"], 0);
    assert_eq!(rest["cancel_available_amount"]["vat"], 0);
    assert_ne!(rest["aid"], told["aid"]);

    let order = shop.kakao_order(&tid).await.json();
    assert_eq!(order["status"], "CANCEL_PAYMENT");
    assert_eq!(order["canceled_amount"]["total"], 33_000);
    assert_eq!(order["canceled_at"], rest["canceled_at"]);
    let kinds: Vec<_> = (0..3)
        .map(|place| order["payment_action_details"][place]["payment_action_type"].clone())
        .collect();
    assert_eq!(kinds, ["PAYMENT", "CANCEL", "CANCEL"]);
    let counts = shop.ledger().orders["order_1"];
    assert_eq!((counts.cancels, counts.canceled_won), (1, 33_000));
}

#[tokio::test]
async fn a_cancel_is_checked_and_a_refused_one_gives_nothing_back() {
    let shop = Shop::open().await;
    let open = shop.ready("order_1").await;
    let early = shop
        .kakao_cancel(open["tid"].as_str().expect("a tid"), 1_000, json!({}))
        .await;
    assert_eq!(early.kakao_refusal(), (400, -784));
    let tid = shop.kakao_paid("order_2").await;
    for (won, changes, refusal) in [
        (1_000, json!({"cancel_amount": null}), (400, -2)),
        (1_000, json!({"cancel_amount": "1000"}), (400, -2)),
        (1_000, json!({"cancel_amount": 0}), (400, -2)),
        (1_000, json!({"cancel_tax_free_amount": null}), (400, -2)),
        (1_000, json!({"payload": "p".repeat(201)}), (400, -2)),
        (1_000, json!({"tid": "T0000000000000000000"}), (400, -721)),
        (1_000, json!({"cid": "TC0OTHER00"}), (400, -731)),
        (33_001, json!({}), (400, -711)),
        (
            1_000,
            json!({"cancel_available_amount": 32_000}),
            (400, -710),
        ),
        (1_000, json!({"cancel_tax_free_amount": 500}), (400, -722)),
    ] {
        let reply = shop.kakao_cancel(&tid, won, changes.clone()).await;
        assert_eq!(reply.kakao_refusal(), refusal, "{won} {changes}");
    }
    assert_eq!(shop.kakao_cancel(&tid, 30_000, json!({})).await.status, 200);
    let more_than_left = shop.kakao_cancel(&tid, 30_000, json!({})).await;
    assert_eq!(more_than_left.kakao_refusal(), (400, -710));
    assert_eq!(shop.ledger().orders["order_2"].canceled_won, 30_000);
}

#[tokio::test]
async fn the_expected_balance_is_a_lock_and_without_it_a_repeat_gives_back_twice() {
    let shop = Shop::open().await;
    let locked = shop.kakao_paid("order_1").await;
    let lock = json!({"cancel_available_amount": 33_000});
    assert_eq!(
        shop.kakao_cancel(&locked, 10_000, lock.clone())
            .await
            .status,
        200
    );
    let again = shop.kakao_cancel(&locked, 10_000, lock).await;
    assert_eq!(again.kakao_refusal(), (400, -710));
    let loose = shop.kakao_paid("order_2").await;
    for _ in 0..2 {
        assert_eq!(
            shop.kakao_cancel(&loose, 10_000, json!({})).await.status,
            200
        );
    }
    let orders = shop.ledger().orders;
    let given_back = |order: &str| orders[order].canceled_won;
    assert_eq!(
        (given_back("order_1"), given_back("order_2")),
        (10_000, 20_000)
    );
}

#[tokio::test]
async fn a_deposit_for_a_cup_is_given_back_with_the_whole_only() {
    let shop = Shop::open().await;
    let body = with(ready_body("order_1"), json!({"green_deposit": 300}));
    let tid = shop.kakao("ready", &body).await.json()["tid"].clone();
    let token = shop
        .pg
        .authenticate_ready("order_1", 33_000)
        .expect("a token");
    let reply = shop
        .kakao("approve", &approve_body("order_1", &tid, &token))
        .await;
    assert_eq!(reply.json()["amount"]["green_deposit"], 300);
    let tid = tid.as_str().expect("a tid");
    let part = shop.kakao_cancel(tid, 1_000, json!({})).await;
    assert_eq!(part.kakao_refusal(), (400, -784));
    assert_eq!(shop.kakao_cancel(tid, 33_000, json!({})).await.status, 200);
}
