//! The outbox: each effect is queued once, taken by one at a time, and ended by who took it last.

use std::sync::Arc;

use payment::attempt::{Event, Finding, LateSuccess, Source};
use payment::money::{Money, Won};
use payment::reach::{Decline, Lost};
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::Evidence;
use server::store::effects::{Effect, EffectEnd, EffectKind};
use sqlx::Connection as _;
use tokio::task::JoinSet;

use crate::{Db, NOW, PRICE, charged, on_both};

on_both!(
    an_effect_is_queued_once_however_often_its_outcome_is_told,
    every_transition_of_the_money_is_an_effect_of_its_own,
    a_charge_that_does_not_stand_is_told_when_it_is_back,
    of_many_takers_at_once_each_effect_has_one,
    what_its_taker_does_not_end_is_taken_again_and_the_first_one_is_not_believed,
    one_that_is_put_off_holds_up_no_other,
    what_is_told_is_told_once,
);

const LEASE: Millis = Millis::from_secs(10);

fn won(amount: i64) -> Won {
    Won::new(amount).expect("an amount")
}

fn back(canceled: i64) -> Event {
    let finding = Finding::Charged {
        charged: Money::won(won(PRICE)),
        canceled: won(canceled),
    };
    Event::Found(finding, Source::Inquiry)
}

async fn take(db: &Db, at: EpochMs) -> Vec<Effect> {
    db.store.take_effects(at, LEASE, 9).await.unwrap()
}

/// The time by which the database's leases go, that all of a lease later.
async fn wait_for_lease(db: &Db, effects: &[Effect], from: EpochMs) -> (Vec<Effect>, EpochMs) {
    if !db.store.is_shared() {
        let later = from.plus(LEASE);
        return (take(db, later).await, later);
    }
    // Its own clock: the test ends the lease in its place.
    let ends: Vec<_> = effects.iter().map(|effect| effect.id).collect();
    let mut beside = sqlx::PgConnection::connect(&db.url).await.unwrap();
    sqlx::query("UPDATE outbox SET next_at = 0 WHERE id = ANY($1)")
        .bind(&ends)
        .execute(&mut beside)
        .await
        .unwrap();
    (take(db, from).await, from)
}

fn ended(effect: &Effect, again: Option<Millis>) -> EffectEnd {
    EffectEnd {
        id: effect.id,
        takes: effect.takes,
        again,
        notification: format!("take {}", effect.takes),
    }
}

fn kinds(effects: &[Effect]) -> Vec<&'static str> {
    effects.iter().map(|effect| effect.kind.as_str()).collect()
}

async fn an_effect_is_queued_once_however_often_its_outcome_is_told(db: Db) {
    let db = Arc::new(db);
    let attempt = db.claimed("ord_1", "mug").await;
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let (db, id) = (Arc::clone(&db), attempt.id);
        tasks.spawn(async move { db.record(id, charged(won(PRICE))).await });
    }
    tasks.join_all().await;
    let waiting = db.store.effects_waiting().await.unwrap();
    assert_eq!((waiting.count, waiting.oldest), (1, Some(NOW)));
    let taken = take(&db, NOW).await;
    let [paid] = &taken[..] else {
        panic!("{taken:?}")
    };
    assert_eq!(paid.key, format!("order_paid:{}", attempt.id.0));
    assert_eq!((paid.kind, paid.takes), (EffectKind::Paid, 1));
    assert_eq!((paid.amount, paid.at), (won(PRICE), NOW));
    assert_eq!((&paid.canceled, &paid.alarm), (&None, &None));
    assert_eq!(paid.lines.len(), 1);
    assert_eq!(take(&db, NOW).await, []);
    let own = db.store.end_effects(&[ended(paid, None)], NOW).await;
    assert_eq!(own.unwrap(), [true]);
    assert_eq!(db.store.effects_waiting().await.unwrap().count, 0);
    // Told again after it was done, it is not done again.
    db.record(attempt.id, charged(won(PRICE))).await;
    assert_eq!(db.store.effects_waiting().await.unwrap().count, 0);
}

async fn every_transition_of_the_money_is_an_effect_of_its_own(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    let issued = Event::Found(Finding::AwaitingDeposit, Source::Inquiry);
    let steps = [
        issued,
        charged(won(PRICE)),
        charged(won(PRICE)),
        // The deposit is undone, and made again.
        issued,
        issued,
        charged(won(PRICE)),
        back(1_000),
        back(1_000),
        back(3_000),
        back(PRICE),
        back(PRICE),
    ];
    for event in steps {
        db.record(attempt.id, event).await;
    }
    let taken = take(&db, NOW).await;
    let told: Vec<_> = taken
        .iter()
        .map(|effect| (effect.kind.as_str(), effect.canceled.map_or(0, Won::get)))
        .collect();
    assert_eq!(
        told,
        [
            ("order_paid", 0),
            ("order_unpaid", 0),
            ("order_paid", 0),
            ("order_partially_canceled", 1_000),
            ("order_partially_canceled", 3_000),
            ("order_canceled", PRICE),
        ]
    );
}

async fn a_charge_that_does_not_stand_is_told_when_it_is_back(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
        .await;
    let declined = Event::Found(Finding::Declined(Decline::CardRefused), Source::Inquiry);
    db.record(attempt.id, declined).await;
    assert_eq!(take(&db, NOW).await, []);
    db.record(attempt.id, charged(won(PRICE))).await;
    assert_eq!(kinds(&take(&db, NOW).await), ["alarm"]);
    db.record(attempt.id, back(1)).await;
    assert_eq!(take(&db, NOW).await, [], "part of it is no end");
    db.record(attempt.id, back(PRICE)).await;
    let taken = take(&db, NOW).await;
    assert_eq!(kinds(&taken), ["charge_returned"]);
    assert_eq!(taken[0].canceled, Some(won(PRICE)));
    // By either policy: one that is known with its cancel is told once.
    let second = db.claimed("ord_2", "mug").await;
    db.record(second.id, declined).await;
    let evidence = Evidence::plain("inquiry", NOW);
    let late = db
        .store
        .record(second.id, back(PRICE), evidence, LateSuccess::Revive);
    assert_eq!(late.await.unwrap().alarm, None);
}

async fn of_many_takers_at_once_each_effect_has_one(db: Db) {
    let db = Arc::new(db);
    for n in 0..24 {
        let attempt = db.claimed(&format!("ord_{n}"), "mug").await;
        db.record(attempt.id, charged(won(PRICE))).await;
    }
    let mut tasks = JoinSet::new();
    for _ in 0..12 {
        let db = Arc::clone(&db);
        tasks.spawn(async move {
            let mut all = Vec::new();
            loop {
                let taken = db.store.take_effects(NOW, LEASE, 3).await.unwrap();
                if taken.is_empty() {
                    return all;
                }
                let ends: Vec<_> = taken.iter().map(|effect| ended(effect, None)).collect();
                let own = db.store.end_effects(&ends, NOW).await.unwrap();
                assert!(own.into_iter().all(|own| own));
                all.extend(taken.into_iter().map(|effect| effect.id));
            }
        });
    }
    let mut all: Vec<i64> = tasks.join_all().await.into_iter().flatten().collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24);
    assert_eq!(db.store.effects_waiting().await.unwrap().count, 0);
}

async fn what_its_taker_does_not_end_is_taken_again_and_the_first_one_is_not_believed(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.record(attempt.id, charged(won(PRICE))).await;
    let first = take(&db, NOW).await;
    let (second, later) = wait_for_lease(&db, &first, NOW).await;
    assert_eq!((second[0].id, second[0].takes), (first[0].id, 2));
    // The first one was only slow: neither of its words counts.
    for again in [None, Some(Millis::ZERO)] {
        let own = db
            .store
            .end_effects(&[ended(&first[0], again)], later)
            .await;
        assert_eq!(own.unwrap(), [false]);
    }
    let order = &attempt.order_id;
    assert_eq!(db.store.notifications(order).await.unwrap(), []);
    let own = db
        .store
        .end_effects(&[ended(&second[0], None)], later)
        .await;
    assert_eq!(own.unwrap(), [true]);
    let own = db
        .store
        .end_effects(&[ended(&second[0], None)], later)
        .await;
    assert_eq!(own.unwrap(), [false], "it is ended");
    let told = db.store.notifications(order).await.unwrap();
    let told: Vec<_> = told.iter().map(|row| row.body.as_str()).collect();
    assert_eq!(told, ["take 2"]);
}

async fn one_that_is_put_off_holds_up_no_other(db: Db) {
    for n in 0..3 {
        let attempt = db.claimed(&format!("ord_{n}"), "mug").await;
        db.record(attempt.id, charged(won(PRICE))).await;
    }
    let taken = take(&db, NOW).await;
    let day = Millis::from_secs(3_000);
    let ends = [
        ended(&taken[1], Some(day)),
        ended(&taken[0], Some(Millis::ZERO)),
        ended(&taken[2], None),
    ];
    let own = db.store.end_effects(&ends, NOW).await.unwrap();
    assert_eq!(own, [true; 3]);
    let again = take(&db, NOW).await;
    let ids: Vec<_> = again.iter().map(|effect| effect.id).collect();
    assert_eq!(ids, [taken[0].id]);
    let waiting = db.store.effects_waiting().await.unwrap();
    assert_eq!((waiting.count, waiting.oldest), (2, Some(NOW)));
}

async fn what_is_told_is_told_once(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.record(attempt.id, charged(won(PRICE))).await;
    db.record(attempt.id, back(PRICE)).await;
    let taken = take(&db, NOW).await;
    assert_eq!(kinds(&taken), ["order_paid", "order_canceled"]);
    // The mail of the first one fails: the shop's own systems are told all the same, and in order.
    let ends = [ended(&taken[1], None), ended(&taken[0], Some(Millis::ZERO))];
    db.store.end_effects(&ends, NOW).await.unwrap();
    let again = take(&db, NOW).await;
    db.store
        .end_effects(&[ended(&again[0], None)], NOW)
        .await
        .unwrap();
    let told = db.store.notifications(&attempt.order_id).await.unwrap();
    let told: Vec<_> = told
        .iter()
        .map(|row| (row.kind.as_str(), row.body.as_str()))
        .collect();
    assert_eq!(
        told,
        [("order_paid", "take 1"), ("order_canceled", "take 1")]
    );
}
