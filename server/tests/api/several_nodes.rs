//! The real program on PostgreSQL, alone and as several nodes of one shop.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::crash::killed_and_then_paid;
use crate::shop::{Order, Shop};

const CONFIRMS: &str = "pg_places{gateway=\"toss\",operation=\"confirm\"}";

/// A lease short enough for tests: a gateway's call and five seconds.
const SHORT: [(&str, &str); 3] = [
    ("JARI_PG_TIMEOUT_MS", "1500"),
    ("JARI_NODE_LEASE_MS", "6500"),
    ("JARI_DATABASE_WAIT_MS", "1000"),
];
const LEASE: Duration = Duration::from_millis(6_500);

#[tokio::test]
async fn a_payment_goes_the_whole_way_on_postgres() {
    let shop = Shop::on_postgres(&[]).await;
    let order = shop.order("mug", 2).await;
    let reply = shop.pay(&order).await;
    assert_eq!((reply.status, &reply.body["status"]), (200, &json!("paid")));
    assert_eq!(shop.poll(&order).await.body["payable"], false);
    // Its webhook comes too, and changes nothing.
    let applied = "webhook_events_total{gateway=\"toss\",result=\"applied\"}";
    shop.until_metric(applied, 1.0).await;
    let again = shop.order("mug", 1).await;
    shop.set(json!({"decline": {"ratio": 1.0, "code": "REJECT_CARD_PAYMENT"}}))
        .await;
    shop.pay(&again).await.refused(402, "declined");
    shop.set(json!({"loss": {"ratio": 1.0, "when": "after"}, "webhooks": {"drop": 1.0}}))
        .await;
    let lost = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&lost).await.status, 202);
    shop.set(json!({})).await;
    shop.until_status(&lost, "paid").await;
    assert_eq!(shop.metric("nodes_alive").await, 1.0);
    assert_eq!(shop.metric("db_pool_max{pool=\"core\"}").await, 12.0);
    shop.end().await;
}

#[tokio::test]
async fn shoppers_are_known_to_every_node_and_a_stopped_one_leaves_its_share() {
    let shop = Shop::on_postgres(&[]).await;
    let mut other = shop.another_node().await;
    shop.until_metric(CONFIRMS, 20.0).await;
    other.until_metric(CONFIRMS, 20.0).await;
    let order = shop.order("mug", 1).await;
    assert_eq!(other.poll(&order).await.body["payable"], true);
    let key = shop.key(&order.id, order.amount);
    assert_eq!(other.confirm(&order, &key).await.status, 200);
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    assert_eq!(shop.confirms(), 1);
    let told = std::process::Command::new("kill")
        .arg(other.pid().to_string())
        .status();
    assert!(told.expect("kill runs").success());
    assert!(other.wait().success());
    let left = Instant::now();
    shop.until_metric(CONFIRMS, 40.0).await;
    assert!(left.elapsed() < Duration::from_secs(5), "at its next beat");
    shop.end().await;
}

#[tokio::test]
async fn an_outcome_of_one_process_shows_on_another_within_a_second() {
    let shop = Shop::on_postgres(&[]).await;
    let other = shop.another_node().await;
    shop.until_metric(CONFIRMS, 20.0).await;
    shop.set(json!({"delayMs": 1_000, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    let paying = shop.start_pay(&order, &key);
    // The other one has it in memory, as it is while the gateway works.
    other.until_attempt(&order, "approving").await;
    for _ in 0..5 {
        other.poll(&order).await.attempt("approving");
    }
    assert_eq!(paying.await.unwrap().unwrap().status, 200);
    let recorded = Instant::now();
    other.until_status(&order, "paid").await;
    assert!(recorded.elapsed() < Duration::from_secs(1));
    let cached = other.metric("poll_answers_total{source=\"cache\"}").await;
    assert!(cached >= 3.0, "{cached} came from memory");
    shop.end().await;
}

#[tokio::test]
async fn a_burst_over_three_nodes_never_exceeds_the_cap_of_all() {
    // Patient with the database: this is about the gateway.
    let patient = [
        ("JARI_PG_TIMEOUT_MS", "20000"),
        ("JARI_DATABASE_WAIT_MS", "20000"),
    ];
    let shop = Shop::on_postgres(&patient).await;
    let (second, third) = (shop.another_node().await, shop.another_node().await);
    let nodes = [&*shop, &second, &third];
    let began = Instant::now();
    loop {
        let mut places = 0.0;
        let mut least = f64::MAX;
        for node in nodes {
            let own = node.metric(CONFIRMS).await;
            places += own;
            least = least.min(own);
        }
        assert!(places <= 40.0, "{places} places at once");
        if least >= 13.0 && (places - 40.0).abs() < 1e-9 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "never divided");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut orders: Vec<(Order, String)> = Vec::new();
    for _ in 0..120 {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        orders.push((order, key));
    }
    shop.set(json!({"delayMs": 8_000})).await;
    let paying: Vec<_> = orders
        .iter()
        .enumerate()
        .map(|(n, (order, key))| nodes[n % 3].start_pay(order, key))
        .collect();
    let (mut paid, mut refused) = (0, 0);
    for reply in paying {
        let reply = reply.await.unwrap().expect("an answer");
        match reply.status {
            200 => paid += 1,
            503 => {
                reply.refused(503, "pg_cap_reached");
                refused += 1;
            }
            other => panic!("{other}: {:?}", reply.body),
        }
    }
    let peak = shop.pg.ledger().peak_in_flight.confirm;
    assert!(peak <= 40, "{peak} confirms were in flight");
    // All forty places were used, so that the bound was really tried.
    assert_eq!((paid, refused, peak), (40, 80, 40));
    shop.end().await;
}

#[tokio::test]
async fn a_killed_nodes_share_and_claims_are_its_own_until_its_lease_ends() {
    let shop = Shop::on_postgres(&[&SHORT[..], &[("JARI_PG_CAP", "10")]].concat()).await;
    let mut other = shop.another_node().await;
    shop.until_metric(CONFIRMS, 5.0).await;
    other.until_metric(CONFIRMS, 5.0).await;
    // The gateway books after the node has died, and nobody hears of it.
    shop.set(json!({"delayMs": 1_000, "webhooks": {"drop": 1.0}}))
        .await;
    let mut orders = Vec::new();
    for _ in 0..3 {
        let order = other.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let paying = other.start_pay(&order, &key);
        orders.push((order, paying));
    }
    shop.until_ledger(|ledger| ledger.calls.confirm.received == 3)
        .await;
    let killed = Instant::now();
    other.kill();
    for (order, _) in &orders {
        shop.poll(order).await.attempt("approving");
    }
    for (order, paying) in orders {
        assert!(paying.await.unwrap().is_none());
        // Known by the living one, after the lease and no sooner: until then the dead one's work might still go on.
        shop.until_status(&order, "paid").await;
        // Its last beat was up to a second before its death.
        assert!(killed.elapsed() > LEASE - Duration::from_millis(1_500));
    }
    shop.until_metric(CONFIRMS, 10.0).await;
    let back = killed.elapsed();
    assert!(
        back > LEASE - Duration::from_millis(1_500),
        "back after {back:?}"
    );
    assert!(back < LEASE + Duration::from_secs(6), "back after {back:?}");
    assert_eq!(shop.confirms(), 3, "nothing was sent again");
    shop.end().await;
}

#[tokio::test]
async fn a_node_killed_at_any_moment_of_a_confirm_never_charges_twice_on_postgres() {
    let window = [("JARI_PG_CONFIRM_WINDOW_MS", "700")];
    let mut shop = Shop::on_postgres(&[&SHORT[..], &window].concat()).await;
    shop.set(json!({"delayMs": 40, "confirmWindowMs": 700}))
        .await;
    for kill_after in [2, 15, 50] {
        killed_and_then_paid(&mut shop, Duration::from_millis(kill_after)).await;
    }
    shop.end().await;
}
