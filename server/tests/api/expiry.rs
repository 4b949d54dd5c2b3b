//! The end of an order's time, and the last piece: nobody's order ends while the gateway may hold its money, and nothing is
//! sold twice.

use std::time::Duration;

use reqwest::header::COOKIE;
use serde_json::{Value, json};

use crate::books;
use crate::shop::{Order, Reply, Shop};

const ASKED: &str = "payments_asked_before_expiry_total";
const ENDED: &str = "payments_orders_expired_total";

/// Waits until the order's time, `ms` from its making, is over by any clock, and a sweep has been since.
async fn until_over(shop: &Shop, ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    // An order that nothing keeps, made now, ends when its own time is over: the sweep has seen all that were before.
    let later = shop.order("mug", 1).await;
    shop.until_status(&later, "expired").await;
}

async fn try_to_order(shop: &Shop, items: Value) -> Reply {
    let request = shop.post("/api/orders").json(&json!({"items": items}));
    Reply::of(request.send().await.expect("an answer")).await
}

#[tokio::test]
async fn a_payment_that_succeeds_after_the_orders_time_is_paid_and_its_last_piece_was_kept() {
    let env = [
        ("JARI_ORDER_TTL_MS", "3000"),
        ("JARI_PG_TIMEOUT_MS", "1000"),
        ("JARI_RESEND", "off"),
    ];
    let shop = Shop::with(&env).await;
    // The confirm hangs for longer than anybody waits; until it is booked the gateway says "in progress".
    shop.set(json!({"hang": {"when": "before", "ms": 9_000}}))
        .await;
    let order = shop.order("poster", 1).await;
    let key = shop.key(&order.id, order.amount);
    assert_eq!(shop.confirm(&order, &key).await.status, 202);
    until_over(&shop, 3_000).await;
    let state = shop.poll(&order).await;
    state.attempt("unknown");
    assert_eq!(
        (&state.body["status"], &state.body["payable"]),
        (&json!("pending"), &json!(false))
    );
    // Another customer waits for it, in vain.
    let piece = json!([{"sku": "poster", "quantity": 1}]);
    try_to_order(&shop, piece)
        .await
        .refused(409, "out_of_stock");
    assert_eq!(shop.charges(&order.id), 0, "it is still in progress");
    shop.until_status(&order, "paid").await;
    assert_eq!((shop.confirms(), shop.money(&order)), (1, (1, 0)));
    assert_eq!(shop.metric(ENDED).await, 1.0);
    shop.end().await;
}

#[tokio::test]
async fn an_order_that_was_declined_ends_after_one_more_question() {
    let shop = Shop::with(&[("JARI_ORDER_TTL_MS", "3000")]).await;
    shop.set(json!({"decline": {"code": "REJECT_CARD_PAYMENT"}, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    shop.pay(&order).await.refused(402, "declined");
    assert_eq!(shop.pg.ledger().calls.get.received, 0);
    shop.until_status(&order, "expired").await;
    assert_eq!(shop.pg.ledger().calls.get.received, 1);
    assert_eq!(
        (shop.metric(ASKED).await, shop.metric(ENDED).await),
        (1.0, 1.0)
    );
    // One of which nothing was sent asks nobody.
    let bare = shop.order("mug", 1).await;
    shop.until_status(&bare, "expired").await;
    assert_eq!(shop.pg.ledger().calls.get.received, 1);
    shop.end().await;
}

#[tokio::test]
async fn a_silent_gateway_postpones_the_end_of_an_order_and_is_not_pressed() {
    let shop = Shop::with(&[("JARI_ORDER_TTL_MS", "3000")]).await;
    shop.set(json!({"decline": {"code": "REJECT_CARD_PAYMENT"}, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("poster", 1).await;
    shop.pay(&order).await.refused(402, "declined");
    shop.set(json!({"operations": ["get"], "error": {"status": 503}}))
        .await;
    shop.until_ledger(|ledger| ledger.calls.get.received >= 3)
        .await;
    assert_eq!(shop.poll(&order).await.body["status"], "pending");
    let asked = shop.pg.ledger().calls.get.received;
    // By both ways to ask, and less often each time.
    assert!(asked <= 12, "{asked} questions in three steps of back-off");
    // It takes no payment any more, and it keeps nothing of the stock.
    shop.attempt(&order).await.refused(409, "order_expired");
    let piece = json!([{"sku": "poster", "quantity": 1}]);
    assert_eq!(try_to_order(&shop, piece).await.status, 201);
    shop.set(json!({})).await;
    shop.until_status(&order, "expired").await;
    assert_eq!(shop.metric(ASKED).await, 1.0);
    shop.end().await;
}

#[tokio::test]
async fn a_charge_that_the_question_before_the_end_finds_is_not_kept_without_its_order() {
    // Failed by the clock, then charged, and nobody told: the question before the end finds it.
    for (policy, status, money) in [("cancel", "expired", (1, 1)), ("revive", "paid", (1, 0))] {
        let env = [
            ("JARI_PG_CONFIRM_WINDOW_MS", "300"),
            ("JARI_PG_TIMEOUT_MS", "600"),
            ("JARI_DATABASE_WAIT_MS", "200"),
            ("JARI_ORDER_TTL_MS", "8000"),
            ("JARI_LATE_SUCCESS", policy),
        ];
        let shop = Shop::with(&env).await;
        let (order, key) = crate::webhooks::failed_by_the_clock(&shop).await;
        shop.set(json!({"webhooks": {"drop": 1.0}})).await;
        crate::webhooks::charge_late(&shop, &order, &key).await;
        shop.until_status(&order, status).await;
        assert_eq!(shop.money(&order), money, "{policy}");
        shop.end().await;
    }
}

#[tokio::test]
async fn the_last_piece_is_sold_to_one_of_two_and_the_other_is_refused_before_the_gateway_hears() {
    for postgres in [false, true] {
        let shop = if postgres {
            Shop::on_postgres(&[]).await
        } else {
            Shop::open().await
        };
        let two = [shop.order("poster", 1).await, shop.order("poster", 1).await];
        both_confirm(&shop, &two).await;
        assert_eq!(shop.confirms(), 1);
        shop.end().await;
    }
}

#[tokio::test]
async fn of_five_pieces_two_carts_of_three_are_one_too_many() {
    let shop = Shop::open().await;
    books::change(
        &shop.database(),
        "UPDATE products SET total = 5 WHERE sku = 'teapot'",
    )
    .await;
    let two = [shop.order("teapot", 3).await, shop.order("teapot", 3).await];
    both_confirm(&shop, &two).await;
    assert_eq!(shop.confirms(), 1);
    let shelf = Reply::of(shop.get("/api/products").send().await.unwrap()).await;
    let teapot = shelf.body.as_array().unwrap().iter();
    let teapot = teapot.clone().find(|product| product["sku"] == "teapot");
    assert_eq!(teapot.unwrap()["available"], 2);
    shop.end().await;
}

/// Confirms two orders at once: one is paid, the other refused before anything was sent for it.
async fn both_confirm(shop: &Shop, two: &[Order; 2]) {
    let paying: Vec<_> = two
        .iter()
        .map(|order| shop.start_pay(order, &shop.key(&order.id, order.amount)))
        .collect();
    let mut statuses = Vec::new();
    for reply in paying {
        let reply = reply.await.expect("it ends").expect("an answer");
        if reply.status != 200 {
            reply.refused(409, "out_of_stock");
        }
        statuses.push(reply.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test]
async fn the_same_product_on_two_lines_is_one_line() {
    let shop = Shop::open().await;
    let twice = json!([{"sku": "poster", "quantity": 1}, {"sku": "poster", "quantity": 1}]);
    try_to_order(&shop, twice)
        .await
        .refused(409, "out_of_stock");
    let twice = json!([{"sku": "teapot", "quantity": 1}, {"sku": "teapot", "quantity": 2}]);
    let order = shop.order_of(&twice, "*").await;
    assert_eq!(order.amount, 3 * 42_000);
    assert_eq!(shop.pay(&order).await.status, 200);
    let page = shop.get(&format!("/orders/{}", order.id));
    let page = page.header(COOKIE, &order.cookie).send().await.unwrap();
    assert_eq!(page.status(), 200);
    shop.end().await;
}
