//! What operators and strangers may do: words that end a doubt, hints at a pace, raw events, and what a comparison reads.

use std::sync::Arc;

use payment::attempt::{AttemptStatus, Event, Finding, OperatorWord, Source};
use payment::id::GatewayOrderId;
use payment::money::{Money, Won};
use payment::reach::Lost;
use payment::time::Millis;
use server::clock::EpochMs;
use server::config::DatabaseUrl;
use server::store::console::ConsoleStore;
use server::store::desk::{WebhookFilter, WebhookState};
use server::store::open::attach;
use server::store::{Asked, AttemptRecord, Evidence, NewWebhook, WebhookEnd};

use crate::{Db, NOW, PRICE, charged, on_both, toss};

on_both!(
    a_word_of_an_older_look_than_the_last_recorded_is_dropped,
    an_operators_word_ends_a_doubt_once_and_is_kept,
    hints_cause_looks_at_a_pace_and_none_is_lost,
    a_hint_does_not_push_a_look_back_that_waits_for_its_turn,
    what_waits_longer_than_it_should_is_counted,
    what_was_kept_long_enough_is_swept,
    what_is_not_final_is_listed_oldest_first,
    stored_webhooks_are_listed_and_replayed,
    a_days_attempts_and_the_stock_are_read,
);

fn price() -> Won {
    Won::new(PRICE).expect("an amount")
}

/// The database as an operator's command opens it, beside the server.
async fn desk(db: &Db) -> Arc<dyn ConsoleStore> {
    let url = DatabaseUrl::new(&db.url);
    attach(&url, Millis::from_secs(20)).await.expect("attached")
}

async fn unknown(db: &Db, order: &str) -> AttemptRecord {
    let attempt = db.claimed(order, "mug").await;
    let lost = Event::AnswerLost(Lost::TimedOut);
    db.record(attempt.id, lost).await.after
}

/// The answer of a look that began when the attempt was like this.
fn answer_to(look: &AttemptRecord) -> Evidence {
    Evidence {
        asked: Some(Asked {
            payment_key: look.payment_key.clone().expect("it was sent"),
            claimed_at: look.claimed_at,
            look: look.looks,
            lease: look.ask_at.unwrap_or(NOW),
        }),
        ..Evidence::plain("inquiry", NOW)
    }
}

async fn take_look(db: &Db, record: &AttemptRecord, until: EpochMs) -> AttemptRecord {
    let due = record.ask_at.expect("it is asked about");
    let moved = db.store.move_look(record.id, due, Some(until), record.asks);
    assert!(moved.await.unwrap(), "nobody else took it");
    let taken = db.attempt(record.id).await;
    assert_eq!(taken.looks, record.looks + 1, "each look has a number");
    taken
}

async fn a_word_of_an_older_look_than_the_last_recorded_is_dropped(db: Db) {
    let lost = unknown(&db, "ord_1").await;
    let later = |secs| NOW.plus(Millis::from_secs(secs));
    // One node asks, hears "a virtual account was issued", and stands still before it can say so.
    let paused = take_look(&db, &lost, later(90)).await;
    // Its lease ends; another node asks, and the deposit has been made meanwhile.
    let second = take_look(&db, &paused, later(180)).await;
    let waiting = Event::Found(Finding::AwaitingDeposit, Source::Inquiry);
    let issued = db.record_as(lost.id, waiting, answer_to(&second)).await;
    assert_eq!(issued.after.attempt.status, AttemptStatus::AwaitingDeposit);
    let seen = Finding::Charged {
        charged: Money::won(price()),
        canceled: Won::ZERO,
    };
    let seen = Event::Found(seen, Source::Inquiry);
    let paid = db.record_as(lost.id, seen, answer_to(&second)).await;
    assert_eq!(paid.after.attempt.status, AttemptStatus::Approved);
    let evidence = db.store.evidence(&lost.order_id).await.unwrap();
    // The paused node goes on: what it heard was true before.
    let stale = db.record_as(lost.id, waiting, answer_to(&paused)).await;
    assert_eq!(stale.after.attempt.status, AttemptStatus::Approved);
    assert_eq!(
        db.attempt(lost.id).await.attempt.status,
        AttemptStatus::Approved
    );
    let after = db.store.evidence(&lost.order_id).await.unwrap();
    assert_eq!(after, evidence, "it leaves no trace");
    // Of the newest look every further word counts, as this one of the gateway's that the deposit was undone.
    let undone = db.record_as(lost.id, waiting, answer_to(&second)).await;
    assert_eq!(undone.after.attempt.status, AttemptStatus::AwaitingDeposit);
}

async fn an_operators_word_ends_a_doubt_once_and_is_kept(db: Db) {
    let free = db.free("mug").await;
    for (order, word, status) in [
        ("ord_1", OperatorWord::Charged, AttemptStatus::Approved),
        ("ord_2", OperatorWord::NotCharged, AttemptStatus::Failed),
    ] {
        let attempt = unknown(&db, order).await;
        let said = |told: &str| Evidence {
            told: told.to_owned(),
            ..Evidence::plain("operator", NOW)
        };
        let event = Event::OperatorSaid(word);
        let first = db.record_as(attempt.id, event, said("by kim: seen")).await;
        assert_eq!(first.after.attempt.status, status);
        let evidence = db.store.evidence(&attempt.order_id).await.unwrap();
        let last = evidence.last().expect("evidence");
        assert_eq!(
            (last.source.as_str(), last.told.as_str()),
            ("operator", "by kim: seen")
        );
        let opposite = match word {
            OperatorWord::Charged => OperatorWord::NotCharged,
            OperatorWord::NotCharged => OperatorWord::Charged,
        };
        let event = Event::OperatorSaid(opposite);
        let second = db.record_as(attempt.id, event, said("by lee: no")).await;
        assert_eq!(second.after.attempt, first.after.attempt);
    }
    assert_eq!(db.free("mug").await, free - 1, "one is sold, one is free");
    // The gateway knows better, however late.
    let id = GatewayOrderId::parse("ord_2").expect("an id");
    let failed = &db.store.attempts_by_gateway_order(&id).await.unwrap()[0];
    let late = db.record(failed.id, charged(price())).await;
    assert_eq!(late.after.attempt.status, AttemptStatus::CancelRequested);
    assert!(late.alarm.is_some());
}

async fn hints_cause_looks_at_a_pace_and_none_is_lost(db: Db) {
    let ended = db.claimed("ord_1", "mug").await;
    db.record(ended.id, charged(price())).await;
    let at = |ms| NOW.plus(Millis::new(ms));
    let hint = async |now| db.store.hint(ended.id, now, true).await.unwrap();
    let due = async || db.attempt(ended.id).await.ask_at;
    assert!(!hint(at(0)).await, "the first one is asked about at once");
    assert_eq!(due().await, Some(at(0)));
    // The look is done; whatever comes within the pause is asked about at its end, once.
    assert!(db.store.move_look(ended.id, at(0), None, 1).await.unwrap());
    for ms in [1, 2, 3_000, 9_999] {
        assert!(hint(at(ms)).await);
        assert_eq!(due().await, Some(at(10_000)));
    }
    assert!(
        db.store
            .move_look(ended.id, at(10_000), None, 2)
            .await
            .unwrap()
    );
    assert!(hint(at(10_001)).await, "the pause begins anew");
    assert_eq!(due().await, Some(at(20_000)));
    // An operator is not put off; a clock that was wrong puts nobody off.
    db.store.hint(ended.id, at(10_002), false).await.unwrap();
    assert_eq!(due().await, Some(at(10_002)));
    db.store.hint(ended.id, at(9_000_000), false).await.unwrap();
    assert!(!hint(at(20_000)).await);
    // While it is open the pause is a second.
    let open = unknown(&db, "ord_2").await;
    assert!(!db.store.hint(open.id, at(0), true).await.unwrap());
    let asked = take_look(&db, &db.attempt(open.id).await, at(90_000)).await;
    assert!(db.store.hint(open.id, at(1), true).await.unwrap());
    let hinted = db.attempt(open.id).await.ask_at;
    assert_eq!(
        hinted,
        Some(at(1_000)),
        "the look in progress came before it"
    );
    let pending = Event::Found(Finding::Pending { settled: false }, Source::Inquiry);
    let recorded = db.record_as(open.id, pending, answer_to(&asked)).await;
    assert!(recorded.hinted);
    assert_eq!(db.attempt(open.id).await.ask_at, Some(at(1_000)));
}

async fn a_hint_does_not_push_a_look_back_that_waits_for_its_turn(db: Db) {
    let open = unknown(&db, "ord_1").await;
    let due = open.ask_at.expect("it is asked about");
    for n in 1..50 {
        let now = due.plus(Millis::new(n * 100));
        db.store.hint(open.id, now, true).await.unwrap();
        assert_eq!(db.attempt(open.id).await.ask_at, Some(due));
    }
}

fn webhook(at: EpochMs) -> NewWebhook {
    NewWebhook {
        gateway: toss(),
        transmission: None,
        at,
        headers: "{}".to_owned(),
        body: "{}".into(),
    }
}

async fn what_waits_longer_than_it_should_is_counted(db: Db) {
    unknown(&db, "ord_1").await;
    let overdue = async |at| db.store.overdue(at).await.unwrap();
    assert_eq!(overdue(NOW).await.unknown, 0);
    let later = NOW.plus(Millis::new(1));
    let told = overdue(later).await;
    assert_eq!(
        (told.unknown, told.strangers, told.oldest_parked),
        (1, 0, None)
    );
    let attempt = db.claimed("ord_2", "mug").await;
    for n in 0..4 {
        let webhook = webhook(NOW.plus(Millis::new(n)));
        db.store.keep_webhook(webhook).await.unwrap();
    }
    let due = db.store.webhooks_due(later.plus(Millis::new(9)), 9).await;
    let ids: Vec<i64> = due.unwrap().iter().map(|row| row.id).collect();
    let ends = [
        WebhookEnd::Hint(attempt.id),
        WebhookEnd::Parked(later),
        WebhookEnd::Ignored,
    ];
    for (id, end) in ids.iter().zip(ends) {
        db.store.end_webhooks(&[(*id, end)], NOW).await.unwrap();
    }
    let told = overdue(later).await;
    assert_eq!(
        (told.strangers, told.oldest_parked),
        (3, Some(NOW.plus(Millis::new(1))))
    );
    assert_eq!(db.store.webhooks_of(attempt.id).await.unwrap(), 1);
}

async fn what_was_kept_long_enough_is_swept(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    for n in 0..4 {
        let webhook = webhook(NOW.plus(Millis::new(n)));
        db.store.keep_webhook(webhook).await.unwrap();
    }
    let due = db.store.webhooks_due(NOW.plus(Millis::new(9)), 9).await;
    let ids: Vec<i64> = due.unwrap().iter().map(|row| row.id).collect();
    let far = NOW.plus(Millis::from_secs(600));
    for (id, end) in [
        (ids[0], WebhookEnd::Hint(attempt.id)),
        (ids[1], WebhookEnd::Parked(far)),
        (ids[2], WebhookEnd::Ignored),
        (ids[3], WebhookEnd::Ignored),
    ] {
        db.store.end_webhooks(&[(id, end)], NOW).await.unwrap();
    }
    let sweep = async |before, most| db.store.sweep_webhooks(before, most).await.unwrap();
    assert_eq!(sweep(NOW, 9).await, 0);
    // The oldest first, in steps; what still waits stays, however old.
    assert_eq!(sweep(NOW.plus(Millis::new(3)), 1).await, 1);
    assert_eq!(db.store.webhooks_of(attempt.id).await.unwrap(), 0);
    assert_eq!(sweep(NOW.plus(Millis::new(3)), 9).await, 1);
    let left = desk(&db).await.webhooks(WebhookFilter::default(), 9).await;
    let left: Vec<_> = left.unwrap().iter().map(|row| row.id).collect();
    assert_eq!(left, [ids[3], ids[1]]);
}

async fn what_is_not_final_is_listed_oldest_first(db: Db) {
    let first = unknown(&db, "ord_1").await;
    let second = db.claimed("ord_2", "mug").await;
    let paid = db.claimed("ord_3", "mug").await;
    db.record(paid.id, charged(price())).await;
    let failed = db.claimed("ord_4", "mug").await;
    db.record(failed.id, Event::SendRefused(payment::reach::NotSent::Cap))
        .await;
    let desk = desk(&db).await;
    let later = NOW.plus(Millis::new(1));
    let listed = desk.unresolved(later, 9).await.unwrap();
    let ids: Vec<_> = listed.iter().map(|one| one.attempt.id).collect();
    assert_eq!(ids, [first.id, second.id]);
    let last = listed[0].last.as_ref().expect("evidence");
    assert_eq!((last.event.as_str(), listed[0].since), ("answer_lost", NOW));
    assert!(desk.unresolved(NOW, 9).await.unwrap().is_empty());
    assert_eq!(desk.unresolved(later, 1).await.unwrap().len(), 1);
}

async fn stored_webhooks_are_listed_and_replayed(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    for n in 0..3 {
        let webhook = webhook(NOW.plus(Millis::new(n)));
        db.store.keep_webhook(webhook).await.unwrap();
    }
    let later = NOW.plus(Millis::from_secs(60));
    let due = db.store.webhooks_due(later, 9).await.unwrap();
    let hint = WebhookEnd::Hint(attempt.id);
    db.store
        .end_webhooks(&[(due[0].id, hint)], NOW)
        .await
        .unwrap();
    let ignored = WebhookEnd::Ignored;
    db.store
        .end_webhooks(&[(due[1].id, ignored)], NOW)
        .await
        .unwrap();
    let desk = desk(&db).await;
    let all = WebhookFilter::default();
    let states = async |which| {
        let found = desk.webhooks(which, 9).await.unwrap();
        let n = desk.count_webhooks(which).await.unwrap();
        assert_eq!(n, found.len() as u64);
        found.iter().map(|row| row.state).collect::<Vec<_>>()
    };
    let (new, applied) = (WebhookState::New, WebhookState::Applied);
    assert_eq!(states(all).await, [new, WebhookState::Ignored, applied]);
    let since = WebhookFilter {
        since: Some(NOW.plus(Millis::new(2))),
        ..all
    };
    assert_eq!(states(since).await, [new]);
    let of_state = WebhookFilter {
        state: Some(applied),
        ..all
    };
    assert_eq!(desk.replay_webhooks(of_state, later).await.unwrap(), 1);
    assert_eq!(desk.replay_webhooks(of_state, later).await.unwrap(), 0);
    let one = WebhookFilter {
        id: Some(due[1].id),
        ..all
    };
    assert_eq!(desk.replay_webhooks(one, later).await.unwrap(), 1);
    assert_eq!(states(all).await, [new; 3]);
    let due = db.store.webhooks_due(later, 9).await.unwrap();
    assert!(due.len() == 3 && due.iter().all(|row| row.tries == 0));
    assert_eq!(desk.webhooks(all, 2).await.unwrap().len(), 2);
}

async fn a_days_attempts_and_the_stock_are_read(db: Db) {
    let paid = db.claimed("ord_1", "mug").await;
    db.record(paid.id, charged(price())).await;
    let lost = unknown(&db, "ord_2").await;
    let order = db.order("ord_3", "teapot", 1).await;
    db.open_attempt(&order).await;
    let desk = desk(&db).await;
    let later = NOW.plus(Millis::new(1));
    let after = server::store::AttemptId(i64::MIN);
    let between = async |from, until, after, most| {
        let found = desk.attempts_between(from, until, after, most).await;
        let found = found.unwrap().into_iter().map(|record| record.id);
        found.collect::<Vec<_>>()
    };
    let all = between(NOW, later, after, 9).await;
    assert_eq!((all[0], all[1], all.len()), (paid.id, lost.id, 3));
    assert_eq!(between(NOW, later, after, 2).await, all[..2]);
    assert_eq!(between(NOW, later, all[1], 9).await, all[2..]);
    assert!(between(later, later, after, 9).await.is_empty());
    assert!(between(EpochMs(0), NOW, after, 9).await.is_empty());
    let stock = desk.stock().await.unwrap();
    assert!(stock.iter().all(|count| count.counted == count.held));
    let mugs = stock.iter().find(|count| count.sku.as_str() == "mug");
    assert_eq!(mugs.expect("mugs").held, (1, 1));
}

#[tokio::test]
async fn no_command_makes_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jari.db");
    let url = DatabaseUrl::new(&format!("sqlite://{}", file.display()));
    assert!(attach(&url, Millis::from_secs(2)).await.is_err());
    assert!(!file.exists());
}
