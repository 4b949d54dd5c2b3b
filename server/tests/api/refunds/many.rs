//! Many refunds at once, on one node and on two.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::*;

/// A hundred different wishes of one order at once, each for a part; more than the charge in all.
async fn a_hundred(shop: Shop, nodes: Vec<Node>) {
    let (order, _) = paid(&shop, "mug").await;
    let shop = Arc::new(shop);
    let nodes = Arc::new(nodes);
    let amount = |n: u64| 200 + n * 7;
    let asked: u64 = (0..100).map(amount).sum();
    assert!(asked > order.amount);
    let mut tasks = JoinSet::new();
    for n in 0..100_u64 {
        let (shop, nodes, order) = (Arc::clone(&shop), Arc::clone(&nodes), order.clone());
        tasks.spawn(async move {
            let turn = usize::try_from(n).expect("small") % (nodes.len() + 1);
            let node = nodes.get(turn).unwrap_or(&**shop);
            let reply = by_operator(node, &order, &format!("k{n}"), Some(amount(n))).await;
            (n, reply)
        });
    }
    let mut done = 0;
    for (n, reply) in tasks.join_all().await {
        let reply = match reply.status {
            202 | 503 => end_of(&shop, &order, &format!("k{n}"), Some(amount(n))).await,
            _ => reply,
        };
        match reply.status {
            200 => done += amount(n),
            _ => reply.refused(409, "refund_exceeds_balance"),
        }
    }
    assert!(done > 0 && done <= order.amount);
    assert_eq!(canceled_won(&shop, &order), done);
    let state = shop.poll(&order).await;
    assert!(matches!(
        state.body["status"].as_str(),
        Some("partially_canceled" | "canceled")
    ));
    shop.until_metric("refunds_open ", 0.0).await;
    drop(nodes);
    let shop = Arc::into_inner(shop).expect("the last one");
    shop.end_balanced().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_partial_refunds_at_once_never_exceed_the_charge() {
    let shop = Shop::with(&[OPERATOR]).await;
    a_hundred(shop, Vec::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_partial_refunds_over_a_bad_line_never_exceed_the_charge() {
    let shop = Shop::with(&[OPERATOR, SOON[0], SOON[1]]).await;
    let bad = json!({"loss": {"ratio": 0.2, "when": "after"}, "seed": 7});
    shop.set(of_cancels(bad)).await;
    a_hundred(shop, Vec::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_partial_refunds_on_two_nodes_never_exceed_the_charge() {
    let shop = Shop::on_postgres(&[OPERATOR]).await;
    let other = shop.another_node().await;
    a_hundred(shop, vec![other]).await;
}
