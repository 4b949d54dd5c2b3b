//! A charge that is learned after its attempt had ended: what pays the order, and what goes back.

use std::sync::Arc;

use payment::attempt::{Alarm, AttemptStatus, Event, Finding, LateSuccess, Source};
use payment::money::{Money, Won};
use payment::reach::{Decline, Lost};
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::{AttemptId, AttemptRecord, Claim, Claimed, Closed, Evidence, Opened, Recorded};
use tokio::task::JoinSet;

use crate::{Db, NOW, asked, charged, claim, on_both};

on_both!(
    a_late_success_pays_its_order_again_where_that_is_the_policy,
    it_brings_an_order_back_whose_time_was_over,
    it_goes_back_while_another_attempt_is_open_or_has_paid,
    it_goes_back_when_the_order_was_paid_and_given_back,
    what_was_decided_to_go_back_is_never_revived,
    of_two_late_successes_at_once_one_pays,
    a_late_success_and_a_new_claim_at_once_leave_one_of_them,
    the_last_piece_is_sold_to_one_of_two_late_successes,
);

/// An attempt that was sent and has ended without a charge, as far as anybody knows.
async fn failed(db: &Db, attempt: &AttemptRecord) {
    db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
        .await;
    let nothing = Event::Found(Finding::NotFound { settled: true }, Source::Inquiry);
    let recorded = db.record(attempt.id, nothing).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Failed);
}

async fn revive(db: &Db, id: AttemptId, event: Event) -> Recorded {
    let evidence = Evidence::plain("inquiry", NOW);
    let recorded = db.store.record(id, event, evidence, LateSuccess::Revive);
    recorded.await.unwrap()
}

/// Another attempt of the same order, claimed.
async fn second(db: &Db, first: &AttemptRecord) -> AttemptRecord {
    second_with(db, first, "second").await
}

async fn second_with(db: &Db, first: &AttemptRecord, key: &str) -> AttemptRecord {
    let Opened::Ready(ready) = db.open_attempt(&first.order_id).await else {
        panic!("nothing is in its way");
    };
    let claim = Claim {
        gateway_order_id: ready.gateway_order_id.clone(),
        amount: first.attempt.expected.amount,
        ..claim(&first.order_id, key)
    };
    match db.claim(claim).await {
        Claimed::Granted { attempt, .. } => *attempt,
        other => panic!("not granted: {other:?}"),
    }
}

fn kinds(effects: &[server::store::effects::Effect]) -> Vec<&'static str> {
    effects.iter().map(|effect| effect.kind.as_str()).collect()
}

async fn a_late_success_pays_its_order_again_where_that_is_the_policy(db: Db) {
    let free = db.free("mug").await;
    let first = db.claimed("ord_1", "mug").await;
    let amount = first.attempt.expected.amount;
    failed(&db, &first).await;
    assert_eq!(db.free("mug").await, free, "a failed attempt holds nothing");
    let late = revive(&db, first.id, charged(amount)).await;
    assert_eq!(late.after.attempt.status, AttemptStatus::Approved);
    assert_eq!(late.alarm, Some(Alarm::LateSuccess));
    assert_eq!(late.order.status().as_str(), "paid");
    assert_eq!(db.free("mug").await, free - 1);
    // The same word again, by either policy, is nothing new.
    assert_eq!(revive(&db, first.id, charged(amount)).await.alarm, None);
    let again = db.record(first.id, charged(amount)).await;
    assert_eq!(again.after, late.after);
    assert_eq!(db.free("mug").await, free - 1);
    let taken = db.store.take_effects(NOW, Millis::from_secs(10), 9).await;
    assert_eq!(kinds(&taken.unwrap()), ["order_paid", "alarm"]);
    let evidence = db.store.evidence(&first.order_id).await.unwrap();
    let last = evidence.last().unwrap();
    assert_eq!(
        (last.event.as_str(), last.status.as_str()),
        ("charged", "approved")
    );
}

async fn it_brings_an_order_back_whose_time_was_over(db: Db) {
    let first = db.claimed("ord_1", "poster").await;
    let amount = first.attempt.expected.amount;
    failed(&db, &first).await;
    let over = NOW.plus(Millis::from_secs(600));
    heard(&db, &first, over).await;
    assert_eq!(db.store.lapse_orders(over).await.unwrap(), 1);
    assert_eq!(db.read(&first.order_id).await.status().as_str(), "expired");
    assert_eq!(db.free("poster").await, 1);
    let late = revive(&db, first.id, charged(amount)).await;
    assert_eq!(late.order.status().as_str(), "paid");
    assert_eq!(db.free("poster").await, 0);
    assert_eq!(db.store.lapse_orders(over).await.unwrap(), 0);
    assert_eq!(db.read(&first.order_id).await.status().as_str(), "paid");
}

/// The gateway's word, asked for, that it still has no charge.
async fn heard(db: &Db, attempt: &AttemptRecord, at: EpochMs) {
    let evidence = asked(attempt, at);
    let nothing = Event::Found(Finding::NotFound { settled: true }, Source::Inquiry);
    db.record_as(attempt.id, nothing, evidence).await;
}

async fn it_goes_back_while_another_attempt_is_open_or_has_paid(db: Db) {
    let declined = Event::Found(Finding::Declined(Decline::CardRefused), Source::Answer);
    let lost = Event::AnswerLost(Lost::TimedOut);
    for (n, meanwhile) in [None, Some(lost), Some(declined), Some(Event::Claimed)]
        .into_iter()
        .enumerate()
    {
        let free = db.free("mug").await;
        let first = db.claimed(&format!("ord_{n}"), "mug").await;
        let amount = first.attempt.expected.amount;
        failed(&db, &first).await;
        let second = match meanwhile {
            None => None,
            Some(event) => {
                let key = format!("second_{n}");
                let attempt = second_with(&db, &first, &key).await;
                let event = if event == Event::Claimed {
                    charged(amount)
                } else {
                    event
                };
                db.record(attempt.id, event).await;
                Some(attempt)
            }
        };
        let late = revive(&db, first.id, charged(amount)).await;
        let open = matches!(meanwhile, Some(event) if event != declined);
        let expected = if open {
            AttemptStatus::CancelRequested
        } else {
            AttemptStatus::Approved
        };
        assert_eq!(late.after.attempt.status, expected, "{meanwhile:?}");
        assert_eq!(late.alarm, Some(Alarm::LateSuccess));
        // One piece is held, by whichever holds the order.
        assert_eq!(db.free("mug").await, free - 1);
        let Some(second) = second.filter(|_| open) else {
            continue;
        };
        // The other is charged after all, or was; the late one goes back, and the order stays paid.
        db.record(second.id, charged(amount)).await;
        let back = Finding::Charged {
            charged: Money::won(amount),
            canceled: amount,
        };
        let back = revive(&db, first.id, Event::Found(back, Source::Inquiry)).await;
        assert_eq!(back.after.attempt.status, AttemptStatus::Canceled);
        assert_eq!(back.order.status().as_str(), "paid");
        assert_eq!(db.free("mug").await, free - 1);
    }
}

async fn it_goes_back_when_the_order_was_paid_and_given_back(db: Db) {
    let first = db.claimed("ord_1", "mug").await;
    let amount = first.attempt.expected.amount;
    failed(&db, &first).await;
    let second = second(&db, &first).await;
    let back = Finding::Charged {
        charged: Money::won(amount),
        canceled: amount,
    };
    db.record(second.id, Event::Found(back, Source::Answer))
        .await;
    let late = revive(&db, first.id, charged(amount)).await;
    assert_eq!(late.after.attempt.status, AttemptStatus::CancelRequested);
    assert_eq!(late.order.status().as_str(), "canceled");
}

async fn what_was_decided_to_go_back_is_never_revived(db: Db) {
    let free = db.free("mug").await;
    let first = db.claimed("ord_1", "mug").await;
    let amount = first.attempt.expected.amount;
    failed(&db, &first).await;
    db.record(first.id, charged(amount)).await;
    let refused = db.record(first.id, Event::CancelRefused).await;
    assert_eq!(refused.after.attempt.status, AttemptStatus::Failed);
    // The setting was changed meanwhile.
    let late = revive(&db, first.id, charged(amount)).await;
    assert_eq!(late.after.attempt.status, AttemptStatus::CancelRequested);
    assert_eq!(db.free("mug").await, free);
}

async fn of_two_late_successes_at_once_one_pays(db: Db) {
    let db = Arc::new(db);
    let free = db.free("mug").await;
    let first = db.claimed("ord_1", "mug").await;
    let amount = first.attempt.expected.amount;
    failed(&db, &first).await;
    let second = second(&db, &first).await;
    failed(&db, &second).await;
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let (db, id) = (Arc::clone(&db), [first.id, second.id][n % 2]);
        tasks.spawn(async move { revive(&db, id, charged(amount)).await });
    }
    tasks.join_all().await;
    let order = db.read(&first.order_id).await;
    let mut statuses: Vec<_> = order
        .attempts
        .iter()
        .map(|record| record.attempt.status)
        .collect();
    statuses.sort_by_key(|status| status.as_str());
    assert_eq!(
        statuses,
        [AttemptStatus::Approved, AttemptStatus::CancelRequested]
    );
    assert_eq!(order.status().as_str(), "paid");
    assert_eq!(db.free("mug").await, free - 1);
}

async fn a_late_success_and_a_new_claim_at_once_leave_one_of_them(db: Db) {
    let db = Arc::new(db);
    for n in 0..8 {
        let free = db.free("mug").await;
        let first = db.claimed(&format!("ord_{n}"), "mug").await;
        let amount = first.attempt.expected.amount;
        failed(&db, &first).await;
        let Opened::Ready(ready) = db.open_attempt(&first.order_id).await else {
            panic!("nothing is in its way");
        };
        let claim = Claim {
            gateway_order_id: ready.gateway_order_id.clone(),
            amount,
            ..claim(&first.order_id, &format!("new_{n}"))
        };
        let claiming = tokio::spawn({
            let db = Arc::clone(&db);
            async move { db.claim(claim).await }
        });
        let late = revive(&db, first.id, charged(amount)).await;
        match claiming.await.unwrap() {
            Claimed::Granted { .. } => {
                assert_eq!(late.after.attempt.status, AttemptStatus::CancelRequested);
            }
            Claimed::Closed(Closed::Paid) => {
                assert_eq!(late.after.attempt.status, AttemptStatus::Approved);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(db.free("mug").await, free - 1);
    }
}

async fn the_last_piece_is_sold_to_one_of_two_late_successes(db: Db) {
    let db = Arc::new(db);
    let mut late: Vec<(AttemptId, Won)> = Vec::new();
    for id in ["ord_1", "ord_2"] {
        let attempt = db.claimed(id, "poster").await;
        failed(&db, &attempt).await;
        late.push((attempt.id, attempt.attempt.expected.amount));
    }
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let (db, (id, amount)) = (Arc::clone(&db), late[n % 2]);
        tasks.spawn(async move { revive(&db, id, charged(amount)).await });
    }
    tasks.join_all().await;
    let mut paid = 0;
    for (id, _) in late {
        let attempt = db.attempt(id).await.attempt;
        paid += u32::from(attempt.counts_as_paid());
        assert!(attempt.counts_as_paid() || attempt.status == AttemptStatus::CancelRequested);
    }
    assert_eq!((paid, db.free("poster").await), (1, 0));
}
