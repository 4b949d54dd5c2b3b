//! What stands between a bad gateway and the shoppers: the resend, its budget, and the circuit. Each has a switch, and a
//! counter that proves that it acted.

use serde_json::{Value, json};

use crate::shop::{Order, Reply, Shop};

/// A gateway timeout that ends soon, so that a lost answer can be waited for.
const SOON: (&str, &str) = ("JARI_PG_TIMEOUT_MS", "700");

async fn pay(shop: &Shop, left_ms: &str) -> (Order, Reply) {
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let request = shop
        .confirm_request(&order, &order.id, &key)
        .header("X-Request-Timeout-Ms", left_ms);
    let reply = Reply::of(request.send().await.expect("an answer")).await;
    (order, reply)
}

async fn decided(shop: &Shop, decision: &str) -> f64 {
    let metric = format!("pg_resend_total{{gateway=\"toss\",decision=\"{decision}\"}}");
    shop.metric(&metric).await
}

/// Every answer is lost on its way back; nothing else tells.
fn lost_after() -> Value {
    json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}})
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_once_more_with_the_same_key_and_charges_once() {
    let shop = Shop::with(&[("JARI_CIRCUIT", "off")]).await;
    shop.set(
        json!({"loss": {"ratio": 0.5, "when": "after"}, "seed": 7, "webhooks": {"drop": 1.0}}),
    )
    .await;
    let mut paid_at_once = 0;
    for _ in 0..8 {
        let (order, reply) = pay(&shop, "65000").await;
        paid_at_once += u32::from(reply.status == 200);
        shop.until_status(&order, "paid").await;
        assert_eq!(shop.charges(&order.id), 1);
    }
    let ledger = shop.pg.ledger();
    let twice = ledger.keys.values().filter(|key| key.confirms == 2).count();
    assert!(
        ledger
            .keys
            .values()
            .all(|key| key.confirms <= 2 && key.charges == 1)
    );
    assert!(twice > 0, "the seed loses some first answers");
    assert!(
        paid_at_once as usize > 8 - twice,
        "a resend brought the answer"
    );
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let resent = twice as f64;
    assert_eq!(decided(&shop, "sent").await, resent);
    shop.end().await;
}

#[tokio::test]
async fn a_gateway_that_is_still_working_on_it_leaves_it_unknown_until_asked() {
    let shop = Shop::with(&[SOON]).await;
    shop.set(json!({"delayMs": 1_500, "webhooks": {"drop": 1.0}}))
        .await;
    let (order, reply) = pay(&shop, "65000").await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    reply.attempt("unknown");
    assert_eq!(reply.body["attempt"]["reason"], "in_progress_at_pg");
    shop.until_status(&order, "paid").await;
    let calls = shop.pg.ledger().calls.confirm;
    assert_eq!((calls.received, calls.in_progress), (2, 1));
    shop.end().await;
}

#[tokio::test]
async fn a_resend_that_is_declined_or_refused_says_nothing_about_the_first_send() {
    // The first send is charged and its answer lost; without keys the gateway takes the second for a new payment.
    for refusal in [
        json!({"decline": {"code": "REJECT_CARD_COMPANY"}}),
        json!({"error": {"status": 429}}),
        json!({"error": {"status": 403, "code": "FORBIDDEN_CONSECUTIVE_REQUEST"}}),
    ] {
        let shop = Shop::with(&[SOON]).await;
        shop.set(json!({"hang": {"when": "after", "ms": 60_000}, "webhooks": {"drop": 1.0}}))
            .await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let paying = shop.start_pay(&order, &key);
        shop.until_ledger(|ledger| ledger.calls.confirm.approved == 1)
            .await;
        let mut second = refusal.clone();
        second["idempotency"] = json!("off");
        second["webhooks"] = json!({"drop": 1.0});
        shop.set(second).await;
        let reply = paying.await.unwrap().unwrap();
        assert_eq!(reply.status, 202, "{refusal}: {:?}", reply.body);
        reply.attempt("unknown");
        assert_eq!(reply.body["payable"], false, "{refusal}");
        assert_eq!(shop.confirms(), 2, "{refusal}");
        shop.until_status(&order, "paid").await;
        assert_eq!(shop.charges(&order.id), 1, "{refusal}");
        shop.end().await;
    }
}

#[tokio::test]
async fn a_shopper_who_soon_leaves_and_a_switched_off_resend_cost_the_gateway_nothing_more() {
    for (env, left, decision) in [
        (("JARI_RESEND", "budget"), "9000", "no_time"),
        (("JARI_RESEND", "always"), "9000", "no_time"),
        (("JARI_RESEND", "off"), "65000", "off"),
        (("JARI_RESEND_RATIO", "0"), "65000", "ratio"),
    ] {
        let shop = Shop::with(&[env]).await;
        shop.set(lost_after()).await;
        let (order, reply) = pay(&shop, left).await;
        assert_eq!(reply.status, 202, "{env:?}: {:?}", reply.body);
        reply.attempt("unknown");
        assert_eq!(
            (shop.confirms(), decided(&shop, decision).await),
            (1, 1.0),
            "{env:?}"
        );
        shop.until_status(&order, "paid").await;
        shop.end().await;
    }
}

#[tokio::test]
async fn the_budget_leaves_the_reserve_to_first_sends_and_always_does_not() {
    for (policy, decision, confirms) in [("budget", "no_free_slots", 3), ("always", "sent", 4)] {
        let env = [
            ("JARI_RESEND", policy),
            ("JARI_PG_CAP", "5"),
            ("JARI_PG_RESERVE", "4"),
        ];
        let shop = Shop::with(&env).await;
        shop.set(json!({"hang": {"when": "before", "ms": 3_000}}))
            .await;
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let order = shop.order("mug", 1).await;
            let key = shop.key(&order.id, order.amount);
            waiting.push(shop.start_pay(&order, &key));
        }
        shop.until_ledger(|ledger| ledger.calls.confirm.received == 2)
            .await;
        // Two of five slots are taken: three are free, one fewer than the reserve.
        shop.set(json!({"loss": {"when": "after"}})).await;
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let lost = shop.start_pay(&order, &key);
        shop.until_decided(decision).await;
        assert_eq!(shop.confirms(), confirms, "{policy}");
        shop.set(json!({})).await;
        for paying in waiting {
            paying.await.unwrap();
        }
        lost.await.unwrap();
        shop.until_metric("payments_unknown", 0.0).await;
        shop.end().await;
    }
}

#[tokio::test]
async fn ten_lost_answers_open_the_circuit_and_nothing_more_is_sent() {
    let shop = Shop::with(&[("JARI_RESEND", "off")]).await;
    shop.set(lost_after()).await;
    let mut orders = Vec::new();
    for _ in 0..10 {
        orders.push(pay(&shop, "65000").await.0);
    }
    let (refused, reply) = pay(&shop, "65000").await;
    reply.refused(503, "circuit_open");
    assert_eq!(reply.body["reach"], "not_sent");
    assert_eq!(shop.confirms(), 10);
    assert_eq!(shop.poll(&refused).await.body["payable"], true);
    assert_eq!(shop.metric("circuit_state{gateway=\"toss\"}").await, 2.0);
    let opened = "circuit_opened_total{gateway=\"toss\",reason=\"unknown\"}";
    assert_eq!(shop.metric(opened).await, 1.0);
    let not_sent = "pg_not_sent_total{gateway=\"toss\",reason=\"circuit\"}";
    assert_eq!(shop.metric(not_sent).await, 1.0);
    for order in orders {
        shop.until_status(&order, "paid").await;
    }
    shop.end().await;
}

#[tokio::test]
async fn a_dry_run_counts_what_it_would_refuse_and_off_sends_everything() {
    for (mode, would_refuse) in [("dry-run", 1.0), ("off", 0.0)] {
        let shop = Shop::with(&[("JARI_RESEND", "off"), ("JARI_CIRCUIT", mode)]).await;
        shop.set(lost_after()).await;
        for _ in 0..11 {
            let (order, reply) = pay(&shop, "65000").await;
            assert_eq!(reply.status, 202, "{mode}: {:?}", reply.body);
            shop.until_status(&order, "paid").await;
        }
        assert_eq!(shop.confirms(), 11, "{mode}");
        let counted = shop.metric("circuit_would_refuse_total").await;
        assert_eq!(counted, would_refuse, "{mode}");
        shop.end().await;
    }
}
