//! Shops: keys open what they should, a wish is one order, and a delivery has one sender at a time.

use std::sync::Arc;

use payment::attempt::Event;
use payment::id::{IdempotencyKey, OrderId};
use payment::money::Won;
use payment::time::Millis;
use server::clock::EpochMs;
use server::config::DatabaseUrl;
use server::gateway::secret::Secret;
use server::store::desk::DeskStore;
use server::store::effects::EffectEnd;
use server::store::merchant::{
    Delivery, DeliveryEnd, DeliveryFilter, DeliveryState, NewKey, NewShopOrder, ShopId, ShopLine,
    ShopOrderMade,
};
use server::store::open::attach;
use server::store::{Claim, Claimed, Owner};
use sqlx::Connection as _;
use tokio::task::JoinSet;

use crate::{Db, NOW, PRICE, charged, claim, on_both};

on_both!(
    a_key_opens_until_it_is_revoked,
    a_wish_is_one_order_however_many_come_at_once,
    a_shops_lines_are_read_like_any_and_hold_no_stock,
    a_delivery_has_one_sender_and_an_older_one_is_not_believed,
    of_one_order_the_older_delivery_goes_first_and_of_one_shop_only_so_many,
    deliveries_are_listed_and_replayed,
);

const LEASE: Millis = Millis::from_secs(45);
const MANY: u32 = 99;

async fn desk(db: &Db) -> Arc<dyn DeskStore> {
    let url = DatabaseUrl::new(&db.url);
    attach(&url, Millis::from_secs(20)).await.expect("attached")
}

async fn shop(desk: &dyn DeskStore, name: &str) -> ShopId {
    let origins = [
        "https://a.example".to_owned(),
        "https://b.example".to_owned(),
    ];
    let made = desk.save_shop(name, "Vase & Co", &origins, NOW).await;
    made.expect("stored")
}

fn won(amount: i64) -> Won {
    Won::new(amount).expect("an amount")
}

fn wish(shop: ShopId, id: &str, key: &str) -> NewShopOrder {
    NewShopOrder {
        id: OrderId::parse(id).expect("an id"),
        shop,
        link: format!("owner of {id}"),
        idempotency_key: IdempotencyKey::parse(key).expect("a key"),
        body_hash: "hash".to_owned(),
        reference: "A-1".to_owned(),
        return_url: "https://a.example/done".to_owned(),
        lines: vec![ShopLine {
            name: "화병".to_owned(),
            quantity: 2,
            price: won(PRICE / 2),
        }],
        amount: won(PRICE),
        language: Some("ko"),
        at: NOW,
        expires_at: NOW.plus(Millis::from_secs(600)),
    }
}

/// A paid order of a shop, with what that causes ended.
async fn paid(db: &Db, desk: &dyn DeskStore, shop: ShopId, id: &str) {
    let wish = wish(shop, id, id);
    assert_eq!(
        desk.make_shop_order(wish).await.expect("stored"),
        ShopOrderMade::Made
    );
    let order = OrderId::parse(id).expect("an id");
    let claim = Claim {
        owner: Owner(format!("owner of {id}")),
        ..claim(&order, &format!("key_{id}"))
    };
    let Claimed::Granted { attempt, .. } = db.claim(claim).await else {
        panic!("not granted");
    };
    db.record(attempt.id, charged(won(PRICE))).await;
    end_effects(db).await;
}

async fn end_effects(db: &Db) {
    let taken = db
        .store
        .take_effects(NOW, LEASE, MANY)
        .await
        .expect("taken");
    let ends: Vec<_> = taken
        .iter()
        .map(|effect| EffectEnd {
            id: effect.id,
            takes: effect.takes,
            again: None,
            notification: format!("of {}", effect.order_id),
        })
        .collect();
    let own = db.store.end_effects(&ends, NOW).await.expect("ended");
    assert!(own.iter().all(|own| *own));
}

async fn take(desk: &dyn DeskStore, of_shop: u32) -> Vec<Delivery> {
    let mut taken = desk
        .take_deliveries(later(), LEASE, of_shop)
        .await
        .expect("taken");
    taken.sort_by_key(|delivery| delivery.seq);
    taken
}

/// When everything that was queued at the tests' own now is due.
fn later() -> EpochMs {
    NOW.plus(Millis::from_secs(1))
}

fn ended(delivery: &Delivery, state: DeliveryState) -> DeliveryEnd {
    DeliveryEnd {
        seq: delivery.seq,
        takes: delivery.takes,
        state,
        again: Millis::ZERO,
        told: "204".to_owned(),
    }
}

/// Ends every lease, in the place of time.
async fn end_leases(db: &Db) {
    let sql = "UPDATE deliveries SET next_at = 0, taken_until = 0 WHERE state = 'waiting'";
    if db.store.is_shared() {
        let mut beside = sqlx::PgConnection::connect(&db.url).await.unwrap();
        sqlx::query(sql).execute(&mut beside).await.unwrap();
    } else {
        let mut beside = sqlx::SqliteConnection::connect(&db.url).await.unwrap();
        sqlx::query(sql).execute(&mut beside).await.unwrap();
    }
}

async fn a_key_opens_until_it_is_revoked(db: Db) {
    let desk = desk(&db).await;
    let vases = shop(desk.as_ref(), "vases").await;
    assert_eq!(shop(desk.as_ref(), "vases").await, vases);
    let key = NewKey {
        shop: vases,
        handle: "handle".to_owned(),
        hash: Secret::new(&"a".repeat(64)),
        name: "checkout".to_owned(),
        at: NOW,
    };
    desk.new_key(key).await.unwrap();
    let known = desk.key("handle").await.unwrap().expect("a key");
    assert_eq!((known.shop.id, known.used_at), (vases, None));
    assert_eq!(
        known.shop.return_origins,
        ["https://a.example", "https://b.example"]
    );
    assert_eq!(desk.key("other").await.unwrap(), None);
    desk.key_used(known.id, later()).await.unwrap();
    assert_eq!(
        desk.key("handle").await.unwrap().unwrap().used_at,
        Some(later())
    );
    assert!(desk.revoke_key("handle", NOW).await.unwrap());
    assert!(!desk.revoke_key("handle", later()).await.unwrap());
    assert_eq!(desk.key("handle").await.unwrap(), None);
    let keys = desk.keys().await.unwrap();
    assert_eq!(keys[0].revoked_at, Some(NOW));
}

async fn a_wish_is_one_order_however_many_come_at_once(db: Db) {
    let desk = desk(&db).await;
    let (vases, other) = (
        shop(desk.as_ref(), "vases").await,
        shop(desk.as_ref(), "other").await,
    );
    let mut wishes = JoinSet::new();
    for n in 0..8 {
        let (desk, wish) = (Arc::clone(&desk), wish(vases, &format!("ord_{n}"), "key"));
        wishes.spawn(async move {
            let id = wish.id.clone();
            match desk.make_shop_order(wish).await.unwrap() {
                ShopOrderMade::Made => id,
                ShopOrderMade::Repeated(id) => id,
                ShopOrderMade::KeyReused => panic!("it is the same wish"),
            }
        });
    }
    let ids = wishes.join_all().await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    for n in 0..8 {
        let id = OrderId::parse(&format!("ord_{n}")).unwrap();
        let there = db.store.order(&id).await.unwrap().is_some();
        assert_eq!(
            there,
            id == ids[0],
            "what came second leaves nothing behind"
        );
    }
    let another = NewShopOrder {
        body_hash: "another".to_owned(),
        ..wish(vases, "ord_x", "key")
    };
    assert_eq!(
        desk.make_shop_order(another).await.unwrap(),
        ShopOrderMade::KeyReused
    );
    let others = wish(other, "ord_y", "key");
    assert_eq!(
        desk.make_shop_order(others).await.unwrap(),
        ShopOrderMade::Made
    );
    let found = desk.orders_by_reference(vases, "A-1", 9).await.unwrap();
    assert_eq!(found, [ids[0].clone()]);
    assert!(
        desk.orders_by_reference(vases, "A-2", 9)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_shops_lines_are_read_like_any_and_hold_no_stock(db: Db) {
    let desk = desk(&db).await;
    let vases = shop(desk.as_ref(), "vases").await;
    let before = db.store.products().await.unwrap();
    paid(&db, desk.as_ref(), vases, "ord_1").await;
    assert_eq!(db.store.products().await.unwrap(), before);
    let id = OrderId::parse("ord_1").unwrap();
    let lines = db.store.lines(&id).await.unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].name, ["화병", "화병"]);
    assert_eq!((lines[0].quantity, lines[0].price), (2, won(PRICE / 2)));
    let known = desk.shop_order(&id).await.unwrap().expect("a shop's");
    assert_eq!((known.shop, known.title.as_str()), (vases, "Vase & Co"));
    assert_eq!(known.language.as_deref(), Some("ko"));
    let own = db.order("ord_2", "mug", 1).await;
    assert_eq!(desk.shop_order(&own).await.unwrap(), None);
}

async fn a_delivery_has_one_sender_and_an_older_one_is_not_believed(db: Db) {
    let desk = desk(&db).await;
    let vases = shop(desk.as_ref(), "vases").await;
    let secret = Secret::new("whsec_one");
    // Without an endpoint nothing is queued.
    paid(&db, desk.as_ref(), vases, "ord_0").await;
    assert!(
        desk.set_endpoint(vases, Some("https://a.example/hook"), &secret)
            .await
            .unwrap()
    );
    let other = Secret::new("whsec_other");
    assert!(
        !desk
            .set_endpoint(vases, Some("https://a.example/hook"), &other)
            .await
            .unwrap()
    );
    for n in 1..=6 {
        paid(&db, desk.as_ref(), vases, &format!("ord_{n}")).await;
    }
    assert_eq!(desk.deliveries_waiting().await.unwrap().count, 6);
    let mut takers = JoinSet::new();
    for _ in 0..4 {
        let desk = Arc::clone(&desk);
        takers.spawn(async move {
            // One that is refused for the others took nothing.
            desk.take_deliveries(later(), LEASE, MANY)
                .await
                .unwrap_or_default()
        });
    }
    let taken: Vec<_> = takers.join_all().await.concat();
    let rest = take(desk.as_ref(), MANY).await;
    assert_eq!(taken.len() + rest.len(), 6, "each has one sender");
    let first = taken
        .iter()
        .chain(&rest)
        .min_by_key(|delivery| delivery.seq)
        .unwrap();
    assert_eq!(first.notification, "of ord_1");
    let endpoint = first.endpoint.as_ref().expect("an endpoint");
    assert_eq!(
        (endpoint.url.as_str(), &endpoint.secrets[..]),
        ("https://a.example/hook", &[secret][..])
    );
    end_leases(&db).await;
    let again = take(desk.as_ref(), MANY).await;
    assert_eq!((again[0].seq, again[0].takes), (first.seq, first.takes + 1));
    let end = |delivery, state| desk.end_delivery(ended(delivery, state), later());
    assert!(!end(first, DeliveryState::Delivered).await.unwrap());
    assert!(end(&again[0], DeliveryState::Delivered).await.unwrap());
    assert!(!end(&again[0], DeliveryState::Waiting).await.unwrap());
    assert_eq!(desk.deliveries_waiting().await.unwrap().count, 5);
}

async fn of_one_order_the_older_delivery_goes_first_and_of_one_shop_only_so_many(db: Db) {
    let desk = desk(&db).await;
    let (vases, other) = (
        shop(desk.as_ref(), "vases").await,
        shop(desk.as_ref(), "other").await,
    );
    for shop in [vases, other] {
        let secret = Secret::new("whsec_one");
        desk.set_endpoint(shop, Some("https://a.example"), &secret)
            .await
            .unwrap();
    }
    for n in 1..=4 {
        paid(&db, desk.as_ref(), vases, &format!("ord_{n}")).await;
    }
    paid(&db, desk.as_ref(), other, "ord_5").await;
    // A second step of the first order.
    let id = OrderId::parse("ord_1").unwrap();
    let attempt = db.read(&id).await.attempts[0].id;
    let finding = payment::attempt::Finding::Charged {
        charged: payment::money::Money::won(won(PRICE)),
        canceled: won(1_000),
    };
    db.record(
        attempt,
        Event::Found(finding, payment::attempt::Source::Inquiry),
    )
    .await;
    end_effects(&db).await;
    let taken = take(desk.as_ref(), 2).await;
    let told: Vec<_> = taken.iter().map(|one| one.order_id.as_str()).collect();
    assert_eq!(
        told,
        ["ord_1", "ord_2", "ord_5"],
        "two of one shop, and the other's"
    );
    assert!(
        take(desk.as_ref(), 2).await.is_empty(),
        "those in flight count"
    );
    let end = |delivery, state| desk.end_delivery(ended(delivery, state), later());
    assert!(end(&taken[1], DeliveryState::Delivered).await.unwrap());
    let next = take(desk.as_ref(), 2).await;
    let told: Vec<_> = next.iter().map(|one| one.order_id.as_str()).collect();
    assert_eq!(
        told,
        ["ord_3"],
        "not the second step of an order whose first is in flight"
    );
    assert!(end(&taken[0], DeliveryState::GivenUp).await.unwrap());
    end_leases(&db).await;
    let rest = take(desk.as_ref(), MANY).await;
    let told: Vec<_> = rest.iter().map(|one| one.order_id.as_str()).collect();
    assert_eq!(told, ["ord_3", "ord_4", "ord_5", "ord_1"]);
}

async fn deliveries_are_listed_and_replayed(db: Db) {
    let desk = desk(&db).await;
    let vases = shop(desk.as_ref(), "vases").await;
    let (old, new) = (Secret::new("whsec_old"), Secret::new("whsec_new"));
    desk.set_endpoint(vases, Some("https://a.example"), &old)
        .await
        .unwrap();
    paid(&db, desk.as_ref(), vases, "ord_1").await;
    paid(&db, desk.as_ref(), vases, "ord_2").await;
    for delivery in take(desk.as_ref(), MANY).await {
        desk.end_delivery(ended(&delivery, DeliveryState::Delivered), later())
            .await
            .unwrap();
    }
    let listed = desk.deliveries(DeliveryFilter::default(), 9).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(
        (listed[0].order_id.as_str(), listed[0].told.as_str()),
        ("ord_2", "204")
    );
    assert_eq!(
        (listed[0].shop.as_str(), listed[0].kind.as_str()),
        ("vases", "order_paid")
    );
    let which = |seq, state| DeliveryFilter {
        seq,
        state,
        shop: Some("vases".to_owned()),
        order: None,
        tried: false,
        since: Some(NOW),
    };
    let none = which(None, Some(DeliveryState::GivenUp));
    assert!(desk.deliveries(none.clone(), 9).await.unwrap().is_empty());
    assert_eq!(desk.replay_deliveries(none, NOW).await.unwrap(), 0);
    let of_first = DeliveryFilter {
        order: Some(OrderId::parse("ord_1").unwrap()),
        ..DeliveryFilter::default()
    };
    let of_first = desk.deliveries(of_first, 9).await.unwrap();
    assert_eq!(of_first, [listed[1].clone()]);
    let tried = DeliveryFilter {
        tried: true,
        ..DeliveryFilter::default()
    };
    assert_eq!(desk.deliveries(tried, 9).await.unwrap(), listed);
    let one = which(Some(listed[0].seq), None);
    assert_eq!(desk.replay_deliveries(one, NOW).await.unwrap(), 1);
    // Both secrets sign until the old one's time is over.
    let far = EpochMs(i64::MAX / 2);
    desk.rotate_secret(vases, &new, far).await.unwrap();
    let again = take(desk.as_ref(), MANY).await;
    assert_eq!((again.len(), again[0].tries), (1, 1));
    assert_eq!(again[0].endpoint.as_ref().unwrap().secrets, [new, old]);
    let newest = Secret::new("whsec_newest");
    desk.rotate_secret(vases, &newest, NOW).await.unwrap();
    end_leases(&db).await;
    let again = take(desk.as_ref(), MANY).await;
    assert_eq!(again[0].endpoint.as_ref().unwrap().secrets, [newest]);
    desk.set_endpoint(vases, None, &Secret::new("whsec_x"))
        .await
        .unwrap();
    end_leases(&db).await;
    assert_eq!(take(desk.as_ref(), MANY).await[0].endpoint, None);
}
