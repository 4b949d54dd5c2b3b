//! The shelf, orders, the webhook inbox and the installation's facts.

use std::sync::Arc;

use payment::attempt::Event;
use payment::id::{OrderId, Sku};
use payment::order::OrderStatus;
use payment::reach::NotSent;
use payment::time::Millis;
use server::store::{NewOrderRow, NewWebhook, OrderMade, Owner, WebhookEnd};
use tokio::task::JoinSet;

use crate::{Db, NOW, on_both, toss, window};

on_both!(
    the_shelf_and_an_order_are_as_they_were_made,
    an_order_that_cannot_be_made_leaves_nothing,
    a_shoppers_orders_come_newest_first_with_their_attempts,
    windows_that_closed_are_found,
    a_transmission_is_kept_once,
    a_webhook_is_ended_once,
    a_setting_is_what_it_was_first,
    it_answers_and_shows_its_pools,
);

fn new_order(id: &str, owner: &str, items: &[(&str, u32)]) -> NewOrderRow {
    let item = |(sku, quantity): &(&str, u32)| (Sku::parse(sku).expect("a sku"), *quantity);
    NewOrderRow {
        id: OrderId::parse(id).expect("an id"),
        owner: Owner(owner.to_owned()),
        items: items.iter().map(item).collect(),
        at: NOW,
        expires_at: NOW.plus(Millis::from_secs(600)),
        language: None,
    }
}

async fn the_shelf_and_an_order_are_as_they_were_made(db: Db) {
    let shelf = db.store.products().await.unwrap();
    let skus: Vec<_> = shelf.iter().map(|product| product.sku.as_str()).collect();
    assert_eq!(
        skus,
        ["mug", "teapot", "notebook", "candle", "tote", "poster"]
    );
    assert_eq!(shelf[0].name[0], "아침 머그");
    assert!(shelf[0].available >= 1_000_000 && shelf[0].price.get() >= 300);
    let order = new_order("ord_1", "me", &[("poster", 1), ("mug", 2)]);
    let id = order.id.clone();
    let OrderMade::Made(sum) = db.store.make_order(order).await.unwrap() else {
        panic!("there is enough");
    };
    assert_eq!(sum.get(), 2 * 18_000 + 15_000);
    let lines = db.store.lines(&id).await.unwrap();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| (line.sku.as_str(), line.quantity))
        .collect();
    assert_eq!(lines, [("mug", 2), ("poster", 1)]);
    let order = db.read(&id).await;
    assert_eq!(
        (order.amount, order.created_at, order.lapsed),
        (sum, NOW, false)
    );
    let other = OrderId::parse("ord_2").expect("an id");
    assert_eq!(db.store.order(&other).await.unwrap(), None);
}

async fn an_order_that_cannot_be_made_leaves_nothing(db: Db) {
    let make = async |items: &[(&str, u32)]| {
        let order = new_order("ord_1", "me", items);
        let made = db.store.make_order(order).await.unwrap();
        let id = OrderId::parse("ord_1").expect("an id");
        assert_eq!(db.store.order(&id).await.unwrap(), None);
        made
    };
    let sku = |sku| Sku::parse(sku).expect("a sku");
    assert_eq!(
        make(&[("mug", 1), ("moon", 1)]).await,
        OrderMade::UnknownSku(sku("moon"))
    );
    assert_eq!(
        make(&[("poster", 2)]).await,
        OrderMade::OutOfStock(sku("poster"))
    );
}

async fn a_shoppers_orders_come_newest_first_with_their_attempts(db: Db) {
    for (n, id) in ["ord_1", "ord_2", "ord_3"].into_iter().enumerate() {
        let mut order = new_order(id, "me", &[("mug", 1)]);
        order.at = NOW.plus(Millis::from_secs(n as u64));
        db.store.make_order(order).await.unwrap();
        let id = OrderId::parse(id).expect("an id");
        let window = server::store::NewAttemptRow {
            owner: Owner("me".to_owned()),
            ..window(&id)
        };
        db.store.open_attempt(window).await.unwrap();
    }
    db.order("ord_4", "mug", 1).await;
    let among = async |among, skip, most| {
        let owner = Owner("me".to_owned());
        let orders = db.store.orders_of(&owner, among, skip, most).await.unwrap();
        let told = orders.iter().map(|order| {
            assert_eq!(order.attempts.len(), 1);
            assert_eq!(order.attempts[0].order_id, order.id);
            order.id.as_str().to_owned()
        });
        told.collect::<Vec<_>>()
    };
    let of = async |skip, most| among(None, skip, most).await;
    assert_eq!(of(0, 2).await, ["ord_3", "ord_2"]);
    assert_eq!(of(2, 2).await, ["ord_1"]);
    assert_eq!(of(3, 2).await, [""; 0]);
    let pending = Some([OrderStatus::Pending; 2]);
    assert_eq!(among(pending, 1, 9).await, ["ord_2", "ord_1"]);
    let settled = Some([OrderStatus::Paid, OrderStatus::Canceled]);
    assert_eq!(among(settled, 0, 9).await, [""; 0]);
}

async fn windows_that_closed_are_found(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    db.open_attempt(&order).await;
    let closed = NOW.plus(Millis::from_secs(300));
    let found = async |at| db.store.lapsed_windows(at, 9).await.unwrap();
    assert_eq!(found(closed.minus(Millis::new(1))).await, []);
    let ids = found(closed).await;
    assert_eq!(ids.len(), 1);
    db.record(ids[0], Event::WindowClosed).await;
    assert_eq!(found(closed).await, []);
    // A claimed one is not ready any more.
    let claimed = db.claimed("ord_2", "mug").await;
    db.record(claimed.id, Event::SendRefused(NotSent::Cap))
        .await;
    assert_eq!(found(closed).await, []);
}

fn webhook(transmission: Option<&str>) -> NewWebhook {
    NewWebhook {
        gateway: toss(),
        transmission: transmission.map(str::to_owned),
        at: NOW,
        headers: "{}".to_owned(),
        body: b"\x00raw\xff".as_slice().into(),
    }
}

async fn a_transmission_is_kept_once(db: Db) {
    let db = Arc::new(db);
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let db = Arc::clone(&db);
        tasks.spawn(async move { db.store.keep_webhook(webhook(Some("one"))).await });
    }
    let kept = tasks.join_all().await;
    assert_eq!(
        kept.into_iter()
            .filter(|kept| *kept.as_ref().unwrap())
            .count(),
        1
    );
    // Nothing tells that two without a name are the same.
    assert!(db.store.keep_webhook(webhook(None)).await.unwrap());
    assert!(db.store.keep_webhook(webhook(None)).await.unwrap());
    let due = db.store.webhooks_due(NOW, 9).await.unwrap();
    assert_eq!(due.len(), 3);
    assert_eq!(due[0].body, b"\x00raw\xff");
    assert_eq!(db.store.census().await.unwrap().webhooks_waiting, 3);
}

async fn a_webhook_is_ended_once(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.store.keep_webhook(webhook(None)).await.unwrap();
    let id = db.store.webhooks_due(NOW, 9).await.unwrap()[0].id;
    let later = NOW.plus(Millis::from_secs(60));
    let parked = WebhookEnd::Parked(later);
    db.store.end_webhooks(&[(id, parked)], NOW).await.unwrap();
    assert!(db.store.webhooks_due(NOW, 9).await.unwrap().is_empty());
    let due = db.store.webhooks_due(later, 9).await.unwrap();
    assert_eq!((due[0].id, due[0].tries), (id, 1));
    let hint = WebhookEnd::Hint(attempt.id);
    db.store.end_webhooks(&[(id, hint)], NOW).await.unwrap();
    assert_eq!(db.attempt(attempt.id).await.ask_at, Some(NOW));
    // Another node that looked at the same time comes too late: it asks nobody again.
    db.store.end_webhooks(&[(id, hint)], later).await.unwrap();
    db.store.end_webhooks(&[(id, parked)], later).await.unwrap();
    assert_eq!(db.attempt(attempt.id).await.ask_at, Some(NOW));
    assert!(db.store.webhooks_due(later, 9).await.unwrap().is_empty());
}

async fn a_setting_is_what_it_was_first(db: Db) {
    let db = Arc::new(db);
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let db = Arc::clone(&db);
        tasks.spawn(async move { db.store.setting("secret", &n.to_string()).await });
    }
    let told: Vec<_> = tasks
        .join_all()
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert!(told.iter().all(|value| *value == told[0]), "{told:?}");
}

async fn it_answers_and_shows_its_pools(db: Db) {
    db.store.ping().await.unwrap();
    let pools = db.store.pools();
    assert!(!pools.is_empty());
    assert!(
        pools
            .iter()
            .all(|pool| pool.most > 0 && pool.busy <= pool.most)
    );
    assert_eq!(db.store.is_shared(), db.url.starts_with("postgres"));
}
