//! What a record does, once and however often; and hints that no record may lose.

use std::sync::Arc;

use payment::attempt::{AttemptStatus, Event, Finding, LateSuccess, Source};
use payment::id::IdempotencyKey;
use payment::money::Won;
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::{Asked, CancelTake, Claimed, Evidence, NewWebhook, WebhookEnd};
use tokio::task::JoinSet;

use crate::{Db, NOW, PRICE, charged, claim, idempotency_key, key, on_both, toss};

on_both!(
    the_same_outcome_twice_is_one,
    the_same_outcome_from_many_at_once_is_one,
    the_next_look_is_moved_only_from_where_it_is,
    a_hint_that_comes_with_a_record_is_never_lost,
    an_answer_about_an_older_claim_is_dropped,
    what_is_due_is_told_for_each_gateway,
    what_ends_as_never_charged_is_looked_at_further_when_somebody_said_that_it_moved,
    a_charge_without_stock_is_given_back,
    all_that_waits_is_woken_and_armed,
    what_the_gateway_says_can_always_be_stored,
    a_cancels_call_is_one_lookers_with_the_key_that_was_fixed,
    attempts_are_found_by_what_is_known_of_them,
);

fn price() -> Won {
    Won::new(PRICE).expect("an amount")
}

async fn the_same_outcome_twice_is_one(db: Db) {
    let free = db.free("mug").await;
    let attempt = db.claimed("ord_1", "mug").await;
    let first = db.record(attempt.id, charged(price())).await;
    assert_eq!(first.before.status, AttemptStatus::Approving);
    assert_eq!(first.after.attempt.status, AttemptStatus::Approved);
    assert_eq!(first.order.status().as_str(), "paid");
    let evidence = db.store.evidence(&attempt.order_id).await.unwrap();
    let second = db.record(attempt.id, charged(price())).await;
    assert_eq!((second.after, second.alarm), (first.after, None));
    let after = db.store.evidence(&attempt.order_id).await.unwrap();
    assert_eq!(after, evidence);
    let events: Vec<_> = evidence.iter().map(|entry| entry.event.as_str()).collect();
    assert_eq!(events, ["claimed", "charged"]);
    assert_eq!(db.free("mug").await, free - 1);
    // A refusal of ours afterwards changes nothing of it.
    let refused = db
        .record(attempt.id, Event::SendRefused(NotSent::Cap))
        .await;
    assert_eq!(refused.after.attempt.status, AttemptStatus::Approved);
}

async fn the_same_outcome_from_many_at_once_is_one(db: Db) {
    let db = Arc::new(db);
    let free = db.free("mug").await;
    let attempt = db.claimed("ord_1", "mug").await;
    let mut tasks = JoinSet::new();
    for n in 0..32 {
        let (db, id) = (Arc::clone(&db), attempt.id);
        // Inquiry, webhook and late answer come together, some before and some after the loss is noted.
        let event = if n % 4 == 0 {
            Event::AnswerLost(Lost::TimedOut)
        } else {
            charged(price())
        };
        tasks.spawn(async move { db.record(id, event).await });
    }
    let recorded = tasks.join_all().await;
    let paid = recorded.iter().filter(|recorded| {
        recorded.after.attempt.counts_as_paid()
            && !matches!(recorded.before.status, AttemptStatus::Approved)
    });
    assert_eq!(paid.count(), 1);
    let now = db.attempt(attempt.id).await;
    assert_eq!(now.attempt.status, AttemptStatus::Approved);
    assert_eq!(db.free("mug").await, free - 1);
}

async fn the_next_look_is_moved_only_from_where_it_is(db: Db) {
    let db = Arc::new(db);
    let attempt = db.claimed("ord_1", "mug").await;
    let lost = db
        .record(attempt.id, Event::AnswerLost(Lost::TimedOut))
        .await;
    let due = lost.after.ask_at.expect("it is asked about");
    assert_eq!(db.store.next_due(&toss()).await.unwrap(), Some(due));
    assert!(db.store.due(&toss(), NOW, 9).await.unwrap().is_empty());
    let found = db.store.due(&toss(), due, 9).await.unwrap();
    assert_eq!(found.first(), Some(&lost.after));
    let oldest = db.store.oldest_waiting(&toss()).await.unwrap();
    assert_eq!(oldest, Some(lost.after));
    let mut tasks = JoinSet::new();
    for n in 0..32 {
        let (db, id) = (Arc::clone(&db), attempt.id);
        let to = due.plus(Millis::new(1_000 + n));
        tasks.spawn(async move { db.store.move_look(id, due, Some(to), 1).await });
    }
    let moved = tasks.join_all().await;
    assert_eq!(
        moved
            .into_iter()
            .filter(|moved| *moved.as_ref().unwrap())
            .count(),
        1
    );
    let now = db.attempt(attempt.id).await;
    assert_eq!(now.asks, 1);
    let census = db.store.census().await.unwrap();
    assert_eq!((census.unknown, census.oldest_unknown), (1, Some(NOW)));
}

async fn a_hint_that_comes_with_a_record_is_never_lost(db: Db) {
    let db = Arc::new(db);
    for n in 0..16 {
        let attempt = db.claimed(&format!("ord_{n}"), "mug").await;
        let lost = db
            .record(attempt.id, Event::AnswerLost(Lost::TimedOut))
            .await;
        let webhook = NewWebhook {
            gateway: toss(),
            transmission: None,
            at: NOW,
            headers: "{}".to_owned(),
            body: "{}".into(),
        };
        db.store.keep_webhook(webhook).await.unwrap();
        let webhook = db.store.webhooks_due(NOW, 1).await.unwrap()[0].id;
        // It asks, holding the look far in the future, and records that nothing is known yet.
        let lease = NOW.plus(Millis::from_secs(70));
        let due = lost.after.ask_at.expect("it is asked about");
        assert!(
            db.store
                .move_look(attempt.id, due, Some(lease), 1)
                .await
                .unwrap()
        );
        let evidence = Evidence {
            asked: Some(Asked {
                payment_key: key(&format!("key_ord_{n}")),
                claimed_at: attempt.claimed_at,
                look: attempt.looks + 1,
                lease,
            }),
            ..Evidence::plain("inquiry", NOW)
        };
        let pending = Event::Found(Finding::AwaitingDeposit, Source::Inquiry);
        let recording = tokio::spawn({
            let (db, id) = (Arc::clone(&db), attempt.id);
            async move { db.record_as(id, pending, evidence).await }
        });
        let hinted = EpochMs(NOW.0 + 1);
        let hint = WebhookEnd::Hint(attempt.id);
        db.store
            .end_webhooks(&[(webhook, hint)], hinted)
            .await
            .unwrap();
        recording.await.unwrap();
        assert_eq!(db.attempt(attempt.id).await.ask_at, Some(hinted));
    }
}

async fn what_ends_as_never_charged_is_looked_at_further_when_somebody_said_that_it_moved(db: Db) {
    let nothing = Event::Found(Finding::NotFound { settled: true }, Source::Inquiry);
    for (order, hinted) in [("ord_1", false), ("ord_2", true)] {
        let attempt = db.claimed(order, "mug").await;
        db.record(attempt.id, Event::Interrupted).await;
        if hinted {
            db.store.hint(attempt.id, NOW, true).await.unwrap();
        }
        let unknown = db.attempt(attempt.id).await;
        let evidence = Evidence {
            asked: Some(Asked {
                payment_key: unknown.payment_key.clone().expect("was claimed"),
                claimed_at: unknown.claimed_at,
                look: unknown.looks + 1,
                lease: unknown.ask_at.expect("waits for a look"),
            }),
            ..Evidence::plain("inquiry", NOW)
        };
        let ended = db.record_as(attempt.id, nothing, evidence).await.after;
        assert_eq!(ended.attempt.status, AttemptStatus::Failed);
        let further = hinted.then(|| NOW.plus(Millis::from_secs(1)));
        assert_eq!((ended.ask_at, ended.asks), (further, 0), "{order}");
    }
}

async fn what_is_due_is_told_for_each_gateway(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.record(attempt.id, Event::Interrupted).await;
    let due = db.attempt(attempt.id).await.ask_at.expect("a look");
    let other = payment::id::GatewayName::parse("kakaopay").expect("a name");
    assert!(db.store.due(&other, due, 9).await.unwrap().is_empty());
    assert_eq!(db.store.next_due(&other).await.unwrap(), None);
    assert_eq!(db.store.due(&toss(), due, 9).await.unwrap().len(), 1);
    assert_eq!(db.store.gateways_waiting().await.unwrap(), [toss()]);
}

async fn an_answer_about_an_older_claim_is_dropped(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.record(attempt.id, Event::SendRefused(NotSent::Cap))
        .await;
    let Claimed::Granted {
        attempt: second, ..
    } = db.claim(claim(&attempt.order_id, "key_ord_1")).await
    else {
        panic!("nothing was sent");
    };
    let evidence = |claimed_at| Evidence {
        asked: Some(Asked {
            payment_key: key("key_ord_1"),
            claimed_at,
            look: 0,
            lease: NOW,
        }),
        ..Evidence::plain("inquiry", NOW)
    };
    // The key belongs to the second now: it is asked about instead.
    let dropped = db
        .record_as(attempt.id, charged(price()), evidence(attempt.claimed_at))
        .await;
    assert_eq!(dropped.after.attempt.status, AttemptStatus::Failed);
    assert_eq!(db.attempt(second.id).await.ask_at, Some(NOW));
    let older = Some(NOW.minus(Millis::new(1)));
    let dropped = db
        .record_as(second.id, charged(price()), evidence(older))
        .await;
    assert_eq!(dropped.after.attempt.status, AttemptStatus::Approving);
    let taken = db
        .record_as(second.id, charged(price()), evidence(second.claimed_at))
        .await;
    assert_eq!(taken.after.attempt.status, AttemptStatus::Approved);
}

async fn a_charge_without_stock_is_given_back(db: Db) {
    let other = db.order("ord_2", "poster", 1).await;
    let first = db.claimed("ord_1", "poster").await;
    let amount = first.attempt.expected.amount;
    let settled = Event::Found(Finding::NotFound { settled: true }, Source::Inquiry);
    db.record(first.id, Event::AnswerLost(Lost::TimedOut)).await;
    db.record(first.id, settled).await;
    let claim = server::store::Claim {
        amount,
        ..claim(&other, "other")
    };
    assert!(matches!(db.claim(claim).await, Claimed::Granted { .. }));
    // The first one was charged after all, and would be revived; but the only piece is reserved for the other.
    let evidence = Evidence::plain("inquiry", NOW);
    let late = db
        .store
        .record(first.id, charged(amount), evidence, LateSuccess::Revive);
    let late = late.await.unwrap();
    assert_eq!(late.after.attempt.status, AttemptStatus::CancelRequested);
    assert!(late.alarm.is_some());
    assert_eq!(db.free("poster").await, 0);
}

async fn all_that_waits_is_woken_and_armed(db: Db) {
    let mut ids = Vec::new();
    for n in 0..5 {
        let attempt = db.claimed(&format!("ord_{n}"), "mug").await;
        db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
            .await;
        ids.push(attempt.id);
    }
    let due = db.attempt(ids[0]).await.ask_at.expect("it is asked about");
    assert!(db.store.move_look(ids[0], due, None, 0).await.unwrap());
    assert_eq!(db.store.wake_waiting(&toss(), NOW).await.unwrap(), 4);
    assert_eq!(db.store.wake_waiting(&toss(), NOW).await.unwrap(), 0);
    assert_eq!(db.store.rearm(NOW).await.unwrap(), 1);
    assert_eq!(db.store.rearm(NOW).await.unwrap(), 0);
    assert_eq!(db.store.due(&toss(), NOW, 9).await.unwrap().len(), 5);
    // A look that a wrong clock set far ahead is due; one that is set as far as any is not.
    for (ahead, due) in [(2 * 3_600, 5), (600, 4)] {
        let now = db.attempt(ids[0]).await.ask_at.expect("armed");
        let later = NOW.plus(Millis::from_secs(ahead));
        assert!(
            db.store
                .move_look(ids[0], now, Some(later), 0)
                .await
                .unwrap()
        );
        assert_eq!(
            db.store.due(&toss(), NOW, 9).await.unwrap().len(),
            due,
            "{ahead} s"
        );
    }
}

async fn what_the_gateway_says_can_always_be_stored(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    let evidence = Evidence {
        told: "500 \0 \u{1f4a5} '; DROP TABLE attempts; --".to_owned(),
        ..Evidence::plain("confirm", NOW)
    };
    let lost = Event::AnswerLost(Lost::TimedOut);
    let recorded = db.record_as(attempt.id, lost, evidence).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Unknown);
}

async fn a_cancels_call_is_one_lookers_with_the_key_that_was_fixed(db: Db) {
    let db = Arc::new(db);
    let attempt = db.claimed("ord_1", "mug").await;
    let id = attempt.id;
    let at = |ms: u64| NOW.plus(Millis::new(ms));
    let take = async |found: Option<&IdempotencyKey>, key: &IdempotencyKey, now, until| {
        let take = CancelTake {
            found: found.cloned(),
            key: key.clone(),
        };
        let taken = db.store.take_cancel_call(id, take, (now, until)).await;
        taken.unwrap()
    };
    let first = idempotency_key();
    assert!(!take(None, &first, NOW, at(1_000)).await, "nothing is owed");
    let wrong = Won::new(1).expect("an amount");
    db.record(id, charged(wrong)).await;
    let owed = db.record(id, Event::CancelAsked(wrong)).await;
    assert_eq!(owed.after.attempt.status, AttemptStatus::CancelRequested);

    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let db = Arc::clone(&db);
        tasks.spawn(async move {
            let key = idempotency_key();
            let take = CancelTake {
                found: None,
                key: key.clone(),
            };
            let taken = db.store.take_cancel_call(id, take, (NOW, at(1_000))).await;
            taken.unwrap().then_some(key)
        });
    }
    let taken: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 1);
    let first = taken.first();
    assert_eq!(db.attempt(id).await.cancel_key.as_ref(), first);
    assert_eq!(db.attempt(id).await.cancel_key_at, Some(NOW));
    let first = first.unwrap();

    let second = idempotency_key();
    assert!(!take(Some(first), &second, at(999), at(2_000)).await);
    // Another one's end is not this one's.
    db.store.end_cancel_call(id, at(2_000), None).await.unwrap();
    assert!(!take(Some(first), &second, at(999), at(2_000)).await);
    db.store.end_cancel_call(id, at(1_000), None).await.unwrap();
    // Who found no key has not heard of the call that was made since.
    assert!(!take(None, &second, at(999), at(2_000)).await);
    assert!(take(Some(first), &second, at(999), at(2_000)).await);
    assert_eq!(db.attempt(id).await.cancel_key_at, Some(at(999)));
    let third = idempotency_key();
    let ended = db.store.end_cancel_call(id, at(2_000), Some(third.clone()));
    ended.await.unwrap();
    assert_eq!(db.attempt(id).await.cancel_key.as_ref(), Some(&third));
    assert_eq!(db.attempt(id).await.cancel_key_at, None);
    // Held beyond any look's time: by a clock that was wrong.
    assert!(take(Some(&third), &third, at(1_000), at(10_000_000)).await);
    assert!(take(Some(&third), &third, at(1_001), at(3_000)).await);
    // The same key is as old as its first call.
    assert_eq!(db.attempt(id).await.cancel_key_at, Some(at(1_000)));
    assert_eq!(db.store.free_calls().await.unwrap(), 1);
    assert!(take(Some(&third), &third, at(1_002), at(3_000)).await);
    // Its time is over: whoever took it is dead.
    assert!(take(Some(&third), &third, at(3_000), at(4_000)).await);
}

async fn attempts_are_found_by_what_is_known_of_them(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    let found = db.store.attempts_by_key(&toss(), &key("key_ord_1")).await;
    assert_eq!(found.unwrap().first(), Some(&attempt));
    let found = db
        .store
        .attempts_by_gateway_order(&attempt.gateway_order_id)
        .await;
    assert_eq!(found.unwrap().first(), Some(&attempt));
    let other = payment::id::GatewayName::parse("kakaopay").expect("a name");
    let found = db.store.attempts_by_key(&other, &key("key_ord_1")).await;
    assert_eq!(found.unwrap(), []);
    let since = db.store.approving_since(NOW).await.unwrap();
    assert_eq!(since, []);
    let later = NOW.plus(Millis::new(1));
    assert_eq!(db.store.approving_since(later).await.unwrap(), [attempt.id]);
}
