//! What a claim is answered, and what may never be claimed twice however many try at once.

use std::sync::Arc;

use payment::attempt::{AttemptStatus, Event, Finding, LateSuccess, Source};
use payment::id::OrderId;
use payment::money::Won;
use payment::reach::{Decline, Lost, NotSent};
use payment::time::Millis;
use server::store::{Claim, Claimed, Closed, Evidence, NewAttemptRow, Opened, Owner};
use tokio::task::JoinSet;

use crate::{Db, NOW, PRICE, charged, claim, on_both, window};

on_both!(
    a_claim_reserves_and_fixes_its_key_and_the_same_payment_again_is_told_its_truth,
    whatever_the_request_says_the_stored_order_decides,
    an_order_takes_one_payment_at_a_time,
    a_decline_asks_for_a_new_window_and_not_sent_for_none,
    a_payment_key_belongs_to_one_order_for_ever,
    closed_windows_and_lapsed_orders_take_no_confirm,
    a_window_that_is_open_is_found_again,
    of_many_claims_at_once_exactly_one_is_granted,
    of_many_orders_with_one_payment_key_exactly_one_is_granted,
    the_last_pieces_are_sold_once,
    orders_of_two_products_each_never_wait_for_each_other,
    an_order_never_lapses_while_it_is_being_claimed,
);

fn won(amount: i64) -> Won {
    Won::new(amount).expect("an amount")
}

async fn a_claim_reserves_and_fixes_its_key_and_the_same_payment_again_is_told_its_truth(db: Db) {
    let before = db.free("mug").await;
    let order = db.order("ord_1", "mug", 1).await;
    let first = claim(&order, "key");
    let Claimed::Granted {
        order: now,
        attempt,
    } = db.claim(first.clone()).await
    else {
        panic!("nothing is in its way");
    };
    assert_eq!(attempt.attempt.status, AttemptStatus::Approving);
    assert_eq!(attempt.idempotency_key, Some(first.idempotency_key));
    assert_eq!(attempt.payment_key, Some(first.payment_key));
    assert_eq!((attempt.number, attempt.claimed_at), (1, Some(NOW)));
    assert_eq!(*now, db.read(&order).await);
    assert_eq!(db.free("mug").await, before - 1);
    let Claimed::Repeated { attempt: again, .. } = db.claim(claim(&order, "key")).await else {
        panic!("the same payment again");
    };
    assert_eq!(*again, *attempt);
    db.record(attempt.id, charged(won(PRICE))).await;
    let Claimed::Repeated { order: paid, .. } = db.claim(claim(&order, "key")).await else {
        panic!("the same payment again");
    };
    assert_eq!(paid.status().as_str(), "paid");
    assert_eq!(db.free("mug").await, before - 1);
}

async fn whatever_the_request_says_the_stored_order_decides(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let not_there = OrderId::parse("ord_2").expect("an id");
    let not_found = Claimed::Closed(Closed::NotFound);
    assert_eq!(db.claim(claim(&not_there, "key")).await, not_found);
    let of_another = Claim {
        owner: Owner("somebody else".to_owned()),
        ..claim(&order, "key")
    };
    assert_eq!(db.claim(of_another).await, not_found);
    let cheaper = Claim {
        amount: won(PRICE - 1),
        ..claim(&order, "key")
    };
    assert_eq!(db.claim(cheaper).await, Claimed::AmountMismatch);
    assert_eq!(db.read(&order).await.attempts, []);
}

async fn an_order_takes_one_payment_at_a_time(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let Claimed::Granted { attempt, .. } = db.claim(claim(&order, "one")).await else {
        panic!("nothing is in its way");
    };
    let other = || db.claim(claim(&order, "other"));
    assert_eq!(other().await, Claimed::Closed(Closed::InProgress));
    assert_eq!(
        db.open_attempt(&order).await,
        Opened::Closed(Closed::InProgress)
    );
    db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
        .await;
    assert_eq!(other().await, Claimed::Closed(Closed::InProgress));
    db.record(attempt.id, charged(won(PRICE))).await;
    assert_eq!(other().await, Claimed::Closed(Closed::Paid));
    let undone = Finding::Charged {
        charged: payment::money::Money::won(won(PRICE)),
        canceled: won(PRICE),
    };
    db.record(attempt.id, Event::Found(undone, Source::Inquiry))
        .await;
    assert_eq!(other().await, Claimed::Closed(Closed::Canceled));
}

async fn a_decline_asks_for_a_new_window_and_not_sent_for_none(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let Claimed::Granted { attempt, .. } = db.claim(claim(&order, "one")).await else {
        panic!("nothing is in its way");
    };
    db.record(attempt.id, Event::SendRefused(NotSent::Cap))
        .await;
    let Claimed::Granted {
        attempt: second, ..
    } = db.claim(claim(&order, "one")).await
    else {
        panic!("nothing was sent");
    };
    assert_eq!(
        (second.number, &second.payment_key),
        (2, &attempt.payment_key)
    );
    assert_ne!(second.idempotency_key, attempt.idempotency_key);
    let declined = Event::Found(Finding::Declined(Decline::CardRefused), Source::Answer);
    db.record(second.id, declined).await;
    assert_eq!(
        db.claim(claim(&order, "two")).await,
        Claimed::NewAttemptNeeded
    );
    let Opened::Ready(third) = db.open_attempt(&order).await else {
        panic!("it can be paid again");
    };
    assert_ne!(third.gateway_order_id, attempt.gateway_order_id);
    let again = Claim {
        gateway_order_id: third.gateway_order_id.clone(),
        ..claim(&order, "two")
    };
    assert!(matches!(db.claim(again).await, Claimed::Granted { .. }));
}

async fn a_payment_key_belongs_to_one_order_for_ever(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.record(attempt.id, Event::SendRefused(NotSent::Cap))
        .await;
    let other = db.order("ord_2", "mug", 1).await;
    assert_eq!(db.claim(claim(&other, "key_ord_1")).await, Claimed::KeyUsed);
    assert_eq!(db.read(&other).await.attempts, []);
}

async fn closed_windows_and_lapsed_orders_take_no_confirm(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    db.open_attempt(&order).await;
    let late = Claim {
        at: NOW.plus(Millis::from_secs(300)),
        ..claim(&order, "key")
    };
    let expired = Claimed::Closed(Closed::AttemptExpired);
    assert_eq!(db.claim(late.clone()).await, expired);
    assert_eq!(db.claim(late).await, expired);
    let second = db.order("ord_2", "mug", 1).await;
    let too_late = NOW.plus(Millis::from_secs(600));
    let claim = Claim {
        at: too_late,
        ..claim(&second, "key")
    };
    let expired = Claimed::Closed(Closed::Expired);
    assert_eq!(db.claim(claim.clone()).await, expired);
    assert_eq!(db.store.lapse_orders(too_late).await.unwrap(), 2);
    assert_eq!(db.store.lapse_orders(too_late).await.unwrap(), 0);
    assert_eq!(db.claim(claim).await, expired);
    assert_eq!(db.read(&order).await.status().as_str(), "expired");
}

async fn a_window_that_is_open_is_found_again(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let Opened::Ready(first) = db.open_attempt(&order).await else {
        panic!("it can be paid");
    };
    assert_eq!(db.open_attempt(&order).await, Opened::Ready(first.clone()));
    let elsewhere = NewAttemptRow {
        gateway: payment::id::GatewayName::parse("kakaopay").expect("a name"),
        ..window(&order)
    };
    let Opened::Ready(second) = db.store.open_attempt(elsewhere).await.unwrap() else {
        panic!("it can be paid elsewhere");
    };
    assert_eq!(second.number, 2);
    let first = db.attempt(first.id).await;
    assert_eq!(first.attempt.status, AttemptStatus::Expired);
    let stranger = NewAttemptRow {
        owner: Owner("somebody else".to_owned()),
        ..window(&order)
    };
    let refused = db.store.open_attempt(stranger).await.unwrap();
    assert_eq!(refused, Opened::Closed(Closed::NotFound));
}

/// Makes these claims all at once.
async fn all_at_once(db: &Arc<Db>, claims: Vec<Claim>) -> Vec<Claimed> {
    let mut tasks = JoinSet::new();
    for claim in claims {
        let db = Arc::clone(db);
        tasks.spawn(async move { db.claim(claim).await });
    }
    tasks.join_all().await
}

fn granted(answers: &[Claimed]) -> usize {
    let is_granted = |answer: &&Claimed| matches!(answer, Claimed::Granted { .. });
    answers.iter().filter(is_granted).count()
}

async fn of_many_claims_at_once_exactly_one_is_granted(db: Db) {
    let db = Arc::new(db);
    let free = db.free("mug").await;
    for round in 0..4 {
        let order = db.order(&format!("ord_{round}"), "mug", 1).await;
        // Half of them are the same payment, the others each another.
        let claims = (0..32)
            .map(|n| claim(&order, &format!("key_{round}_{}", n.max(16))))
            .collect();
        let answers = all_at_once(&db, claims).await;
        assert_eq!(granted(&answers), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| matches!(
            answer,
            Claimed::Granted { .. }
                | Claimed::Repeated { .. }
                | Claimed::Closed(Closed::InProgress)
        )));
        assert_eq!(db.read(&order).await.attempts.len(), 1);
    }
    assert_eq!(db.free("mug").await, free - 4);
}

async fn of_many_orders_with_one_payment_key_exactly_one_is_granted(db: Db) {
    let db = Arc::new(db);
    let free = db.free("mug").await;
    let mut claims = Vec::new();
    for n in 0..32 {
        let order = db.order(&format!("ord_{n}"), "mug", 1).await;
        claims.push(claim(&order, "the_one_key"));
    }
    let answers = all_at_once(&db, claims).await;
    assert_eq!(granted(&answers), 1, "{answers:?}");
    let used = answers.iter().filter(|answer| **answer == Claimed::KeyUsed);
    assert_eq!(used.count(), 31);
    assert_eq!(db.free("mug").await, free - 1);
}

async fn the_last_pieces_are_sold_once(db: Db) {
    let db = Arc::new(db);
    // A single poster.
    let mut claims = Vec::new();
    for n in 0..32 {
        let order = db.order(&format!("ord_{n}"), "poster", 1).await;
        let amount = db.read(&order).await.amount;
        claims.push(Claim {
            amount,
            ..claim(&order, &format!("key_{n}"))
        });
    }
    let answers = all_at_once(&db, claims).await;
    assert_eq!(granted(&answers), 1, "{answers:?}");
    let out = answers
        .iter()
        .filter(|answer| **answer == Claimed::OutOfStock);
    assert_eq!(out.count(), 31);
    assert_eq!(db.free("poster").await, 0);
    for n in 0..32 {
        let id = OrderId::parse(&format!("ord_{n}")).expect("an id");
        // What was refused left nothing behind.
        let attempts = db.read(&id).await.attempts;
        assert!(
            attempts
                .iter()
                .all(|record| record.attempt.status == AttemptStatus::Approving)
        );
        if let Some(attempt) = attempts.first() {
            let declined = Event::Found(Finding::Declined(Decline::CardRefused), Source::Answer);
            db.record(attempt.id, declined).await;
        }
    }
    assert_eq!(db.free("poster").await, 1);
}

async fn orders_of_two_products_each_never_wait_for_each_other(db: Db) {
    let db = Arc::new(db);
    let free = (db.free("teapot").await, db.free("candle").await);
    let mut tasks = JoinSet::new();
    for n in 0..24 {
        let db = Arc::clone(&db);
        tasks.spawn(async move {
            // Each names them in another order than the one before.
            let mut skus = ["teapot", "candle"];
            skus.rotate_left(n % 2);
            let id = OrderId::parse(&format!("ord_{n}")).expect("an id");
            let sku = |sku| (payment::id::Sku::parse(sku).expect("a sku"), 1);
            let order = server::store::NewOrderRow {
                id: id.clone(),
                owner: crate::owner(&id),
                items: skus.map(sku).to_vec(),
                at: NOW,
                expires_at: NOW.plus(Millis::from_secs(600)),
                language: None,
            };
            db.store.make_order(order).await.expect("stored");
            let claim = Claim {
                amount: won(42_000 + 26_000),
                ..claim(&id, &format!("key_{n}"))
            };
            let Claimed::Granted { attempt, .. } = db.claim(claim).await else {
                panic!("there is enough of both");
            };
            db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
                .await;
            db.record(attempt.id, charged(won(42_000 + 26_000))).await;
        });
    }
    tasks.join_all().await;
    let left = (db.free("teapot").await, db.free("candle").await);
    assert_eq!(left, (free.0 - 24, free.1 - 24));
}

async fn an_order_never_lapses_while_it_is_being_claimed(db: Db) {
    let db = Arc::new(db);
    for n in 0..24 {
        let order = db.order(&format!("ord_{n}"), "mug", 1).await;
        let in_time = claim(&order, &format!("key_{n}"));
        let claiming = tokio::spawn({
            let db = Arc::clone(&db);
            async move { db.claim(in_time).await }
        });
        // By a clock that is ahead of the claim's.
        let lapsed = db.store.lapse_orders(NOW.plus(Millis::from_secs(600)));
        lapsed.await.unwrap();
        let claimed = claiming.await.unwrap();
        let now = db.read(&order).await;
        match claimed {
            Claimed::Granted { attempt, .. } => {
                assert!(!now.lapsed, "a claimed order lapsed");
                let gone = Evidence::plain("start", NOW);
                let late = LateSuccess::Cancel;
                let refused = Event::SendRefused(NotSent::Cap);
                db.store
                    .record(attempt.id, refused, gone, late)
                    .await
                    .unwrap();
            }
            Claimed::Closed(Closed::Expired) => {
                assert!(now.lapsed);
                assert_eq!(now.attempts, []);
            }
            other => panic!("{other:?}"),
        }
        // It does not stand in the way of the next one.
        let later = NOW.plus(Millis::from_secs(600));
        db.store.lapse_orders(later).await.unwrap();
    }
}
