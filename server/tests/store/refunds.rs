//! Refunds that people ask for: reserved before any call, one under way at a time, each with an end that the gateway's
//! word gives it.

use std::sync::Arc;

use payment::attempt::{Alarm, AttemptStatus, Event, Finding, Source};
use payment::id::IdempotencyKey;
use payment::money::{Money, Won};
use payment::order::OrderStatus;
use payment::reach::Lost;
use payment::refund::{RefundStatus, RefusedFor};
use payment::time::Millis;
use server::gateway::refund_account::RefundAccount;
use server::store::{
    Asker, AttemptRecord, Closed, Evidence, NewRefund, Owner, Recorded, RefundAsked, RefundRow,
    RefundWord,
};
use tokio::task::JoinSet;

use crate::{Db, NOW, PRICE, charged, on_both, owner};

on_both!(
    a_refund_is_reserved_and_begun_in_one_step,
    the_same_key_is_the_same_wish_and_another_body_is_refused,
    what_is_reserved_cannot_be_asked_for_again,
    a_hundred_wishes_at_once_reserve_no_more_than_the_charge,
    a_refund_that_waits_begins_with_the_end_of_the_one_before,
    a_refund_is_done_by_its_answer_or_by_the_gateways_list,
    as_much_given_back_at_the_desk_is_not_our_refund,
    a_refund_at_the_desk_refuses_what_no_longer_fits,
    a_whole_refund_shrinks_with_what_is_left,
    a_refused_refund_leads_back_and_the_next_begins,
    a_refusal_of_an_older_key_says_nothing_of_the_present_one,
    a_key_is_renewed_once_for_each_call,
    what_the_gateway_lists_as_under_way_holds_and_as_aborted_is_refused_with_an_alarm,
    a_refunds_call_is_one_lookers_until_it_is_given_back_or_its_time_is_over,
    a_deposit_goes_back_to_an_account_that_is_held_only_until_the_end,
    a_shopper_cancels_its_own_order_whole_and_in_time,
    what_is_not_paid_has_nothing_to_give_back,
    the_census_counts_what_is_open,
);

fn won(amount: i64) -> Won {
    Won::new(amount).expect("an amount")
}

fn wish(order: &AttemptRecord, key: &str, amount: Option<i64>) -> NewRefund {
    NewRefund {
        order_id: order.order_id.clone(),
        asker: Asker::Operator,
        client_key: IdempotencyKey::parse(key).expect("a key"),
        amount: amount.map(won),
        reason: "sent back".to_owned(),
        account: None,
        reference: format!("ref-{key}-{}", order.id.0),
        at: NOW,
    }
}

async fn paid(db: &Db, order: &str) -> AttemptRecord {
    let attempt = db.claimed(order, "mug").await;
    db.record(attempt.id, charged(won(PRICE))).await.after
}

async fn ask(db: &Db, wish: NewRefund) -> RefundAsked {
    db.store.ask_refund(wish).await.expect("stored")
}

async fn reserved(db: &Db, wish: NewRefund) -> RefundRow {
    match ask(db, wish).await {
        RefundAsked::Reserved(_, row) => *row,
        other => panic!("not reserved: {other:?}"),
    }
}

async fn status(db: &Db, row: &RefundRow) -> RefundStatus {
    now(db, row).await.refund.status
}

async fn now(db: &Db, row: &RefundRow) -> RefundRow {
    let row = db.store.refund(row.id).await.expect("read");
    row.expect("a refund")
}

/// The gateway's word that so much of the charge was given back, with its list of cancels.
async fn word(db: &Db, attempt: &AttemptRecord, canceled: i64, refunds: RefundWord) -> Recorded {
    let finding = Finding::Charged {
        charged: Money::won(won(PRICE)),
        canceled: won(canceled),
    };
    let evidence = Evidence {
        refunds,
        ..Evidence::plain("inquiry", NOW)
    };
    db.record_as(attempt.id, Event::Found(finding, Source::Inquiry), evidence)
        .await
}

fn listed(rows: &[&RefundRow]) -> RefundWord {
    RefundWord {
        listed: Some(rows.iter().map(|row| row.gateway_reason()).collect()),
        ..RefundWord::default()
    }
}

fn answer(row: &RefundRow) -> RefundWord {
    RefundWord {
        answers: Some(row.call()),
        ..RefundWord::default()
    }
}

async fn refuse(db: &Db, attempt: &AttemptRecord, row: &RefundRow) -> Recorded {
    let evidence = Evidence {
        told: "403 NOT_CANCELABLE_PAYMENT".to_owned(),
        refunds: answer(row),
        ..Evidence::plain("cancel", NOW)
    };
    db.record_as(attempt.id, Event::CancelRefused, evidence)
        .await
}

async fn a_refund_is_reserved_and_begun_in_one_step(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let free = db.free("mug").await;
    let row = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    assert_eq!(row.refund.status, RefundStatus::Asked);
    assert_eq!(
        (row.refund.amount, row.refund.lock),
        (won(3_000), won(PRICE))
    );
    let under_way = db.store.refund_under_way(attempt.id).await.unwrap();
    assert_eq!(under_way.as_ref(), Some(&row));
    let now = db.attempt(attempt.id).await;
    assert_eq!(now.attempt.status, AttemptStatus::CancelRequested);
    assert_eq!((now.ask_at, now.asks), (Some(NOW), 0));
    // It is paid until the gateway says otherwise, and its stock is sold.
    assert_eq!(db.read(&attempt.order_id).await.status(), OrderStatus::Paid);
    assert_eq!(db.free("mug").await, free);
    let evidence = db.store.evidence(&attempt.order_id).await.unwrap();
    let last = evidence.last().expect("evidence");
    assert_eq!(
        (last.source.as_str(), last.event.as_str()),
        ("operator", "cancel_asked")
    );
}

async fn a_refunds_call_is_one_lookers_until_it_is_given_back_or_its_time_is_over(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let at = |ms: u64| NOW.plus(Millis::new(ms));
    let take = async |now, until| {
        let taken = db.store.take_refund_call(attempt.id, now, until).await;
        taken.unwrap()
    };
    assert_eq!(take(NOW, at(1_000)).await, None, "nothing is under way");
    let row = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    assert_eq!(take(NOW, at(1_000)).await.as_ref(), Some(&row));
    assert_eq!(take(at(999), at(2_000)).await, None);
    // Another one's end is not this one's.
    db.store.end_refund_call(row.id, at(2_000)).await.unwrap();
    assert_eq!(take(at(999), at(2_000)).await, None);
    assert_eq!(take(at(1_000), at(2_000)).await.as_ref(), Some(&row));
    db.store.end_refund_call(row.id, at(2_000)).await.unwrap();
    // Held beyond any look's time: by a clock that was wrong.
    let wrong = at(10_000_000);
    assert_eq!(take(at(1_001), wrong).await.as_ref(), Some(&row));
    assert_eq!(take(at(1_002), at(3_000)).await.as_ref(), Some(&row));
    assert_eq!(db.store.free_calls().await.unwrap(), 1);
    assert_eq!(take(at(1_003), at(3_000)).await.as_ref(), Some(&row));
    // What has ended is nobody's to call for.
    db.store.free_calls().await.unwrap();
    let answered = RefundWord {
        answers: Some(row.call()),
        ..RefundWord::default()
    };
    let evidence = Evidence {
        refunds: answered,
        ..Evidence::plain("cancel", NOW)
    };
    db.record_as(attempt.id, Event::CancelRefused, evidence)
        .await;
    assert_eq!(take(at(5_000), at(6_000)).await, None);
}

async fn the_same_key_is_the_same_wish_and_another_body_is_refused(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let first = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    let again = NewRefund {
        reference: "another".to_owned(),
        ..wish(&attempt, "k1", Some(3_000))
    };
    let RefundAsked::Repeated(_, row) = ask(&db, again).await else {
        panic!("a second refund");
    };
    assert_eq!(*row, first);
    for other in [
        wish(&attempt, "k1", Some(3_001)),
        wish(&attempt, "k1", None),
        NewRefund {
            reason: "another".to_owned(),
            ..wish(&attempt, "k1", Some(3_000))
        },
    ] {
        assert_eq!(ask(&db, other).await, RefundAsked::KeyReused);
    }
    // The key is the order's own: another order may use it.
    let other = paid(&db, "ord_2").await;
    reserved(&db, wish(&other, "k1", Some(1))).await;
    let all = db.store.refunds_of(&attempt.order_id).await.unwrap();
    assert_eq!(all, [first]);
}

async fn what_is_reserved_cannot_be_asked_for_again(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    reserved(&db, wish(&attempt, "k1", Some(10_000))).await;
    let second = reserved(&db, wish(&attempt, "k2", Some(7_000))).await;
    assert_eq!(second.refund.status, RefundStatus::Waiting);
    let third = ask(&db, wish(&attempt, "k3", Some(1_001))).await;
    assert_eq!(third, RefundAsked::ExceedsBalance);
    let rest = reserved(&db, wish(&attempt, "k4", None)).await;
    assert_eq!(rest.refund.amount, won(PRICE - 17_000));
    let nothing = ask(&db, wish(&attempt, "k5", None)).await;
    assert_eq!(nothing, RefundAsked::ExceedsBalance);
}

async fn a_hundred_wishes_at_once_reserve_no_more_than_the_charge(db: Db) {
    let db = Arc::new(db);
    let attempt = paid(&db, "ord_1").await;
    let mut tasks = JoinSet::new();
    for n in 0..100 {
        let (db, wish) = (
            Arc::clone(&db),
            wish(&attempt, &format!("k{n}"), Some(1_000)),
        );
        tasks.spawn(async move { ask(&db, wish).await });
    }
    let answers = tasks.join_all().await;
    let reserved = |it: &&RefundAsked| matches!(it, RefundAsked::Reserved(..));
    assert_eq!(answers.iter().filter(reserved).count(), 18);
    let rows = db.store.refunds_of(&attempt.order_id).await.unwrap();
    let sum: i64 = rows.iter().map(|row| row.refund.amount.get()).sum();
    assert_eq!(sum, PRICE);
    let asked = rows
        .iter()
        .filter(|row| row.refund.status == RefundStatus::Asked);
    assert_eq!(asked.count(), 1);
}

async fn a_refund_that_waits_begins_with_the_end_of_the_one_before(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let first = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    let second = reserved(&db, wish(&attempt, "k2", Some(4_000))).await;
    let lease = NOW.plus(Millis::from_secs(90));
    assert!(
        db.store
            .move_look(attempt.id, NOW, Some(lease), 3)
            .await
            .unwrap()
    );
    let recorded = word(&db, &attempt, 3_000, answer(&first)).await;
    assert_eq!(recorded.ended.len(), 1);
    assert_eq!(recorded.order.status(), OrderStatus::PartiallyCanceled);
    assert_eq!(
        recorded.after.attempt.status,
        AttemptStatus::CancelRequested
    );
    // Its call is the next look's, at once.
    assert_eq!((recorded.after.ask_at, recorded.after.asks), (Some(NOW), 0));
    let second = now(&db, &second).await;
    assert_eq!(second.refund.status, RefundStatus::Asked);
    assert_eq!(second.refund.lock, won(PRICE - 3_000));
    let recorded = word(&db, &attempt, 7_000, answer(&second)).await;
    assert_eq!(
        recorded.after.attempt.status,
        AttemptStatus::PartiallyCanceled
    );
    assert_eq!(db.store.refund_under_way(attempt.id).await.unwrap(), None);
}

async fn a_refund_is_done_by_its_answer_or_by_the_gateways_list(db: Db) {
    let free = db.free("mug").await;
    let attempt = paid(&db, "ord_1").await;
    let part = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    // A word from before the cancel.
    word(&db, &attempt, 0, listed(&[])).await;
    assert_eq!(status(&db, &part).await, RefundStatus::Asked);
    let recorded = word(&db, &attempt, 3_000, listed(&[&part])).await;
    assert_eq!(status(&db, &part).await, RefundStatus::Done);
    assert_eq!(
        recorded.after.attempt.status,
        AttemptStatus::PartiallyCanceled
    );
    let rest = reserved(&db, wish(&attempt, "k2", None)).await;
    let recorded = word(&db, &attempt, PRICE, answer(&rest)).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Canceled);
    assert_eq!(recorded.order.status(), OrderStatus::Canceled);
    assert_eq!(status(&db, &rest).await, RefundStatus::Done);
    assert_eq!(db.free("mug").await, free);
    // Twice is once.
    let again = word(&db, &attempt, PRICE, answer(&rest)).await;
    assert!(again.ended.is_empty());
    let closed = ask(&db, wish(&attempt, "k3", None)).await;
    assert_eq!(closed, RefundAsked::Closed(Closed::Canceled));
}

async fn as_much_given_back_at_the_desk_is_not_our_refund(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let row = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    let before = row.gateway_key();
    let recorded = word(&db, &attempt, 3_000, listed(&[])).await;
    assert_eq!(
        recorded.after.attempt.status,
        AttemptStatus::CancelRequested
    );
    assert_eq!(recorded.order.status(), OrderStatus::PartiallyCanceled);
    let row = now(&db, &row).await;
    assert_eq!(row.refund.status, RefundStatus::Asked);
    assert_eq!(row.refund.lock, won(PRICE - 3_000));
    // Under the old lock it can never be executed any more: a new key, and only now.
    assert_ne!(row.gateway_key(), before);
    word(&db, &attempt, 6_000, listed(&[&row])).await;
    assert_eq!(status(&db, &row).await, RefundStatus::Done);
    let now = db.attempt(attempt.id).await;
    assert_eq!(now.attempt.canceled, won(6_000));
}

async fn a_refund_at_the_desk_refuses_what_no_longer_fits(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let first = reserved(&db, wish(&attempt, "k1", Some(10_000))).await;
    let second = reserved(&db, wish(&attempt, "k2", Some(5_000))).await;
    let third = reserved(&db, wish(&attempt, "k3", Some(2_000))).await;
    let recorded = word(&db, &attempt, 9_000, listed(&[])).await;
    let refused = RefundStatus::Refused(RefusedFor::ExceedsBalance);
    assert_eq!(status(&db, &first).await, refused);
    assert_eq!(status(&db, &second).await, RefundStatus::Asked);
    assert_eq!(status(&db, &third).await, RefundStatus::Waiting);
    assert_eq!(recorded.ended.len(), 1);
    let recorded = word(&db, &attempt, PRICE, listed(&[])).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Canceled);
    let elsewhere = RefundStatus::Refused(RefusedFor::GivenBackElsewhere);
    assert_eq!(status(&db, &second).await, elsewhere);
    assert_eq!(status(&db, &third).await, elsewhere);
}

async fn a_whole_refund_shrinks_with_what_is_left(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let row = reserved(&db, wish(&attempt, "k1", None)).await;
    word(&db, &attempt, 5_000, listed(&[])).await;
    let row = now(&db, &row).await;
    assert_eq!(row.refund.status, RefundStatus::Asked);
    assert_eq!(row.refund.amount, won(PRICE - 5_000));
    let recorded = word(&db, &attempt, PRICE, answer(&row)).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Canceled);
    assert_eq!(status(&db, &row).await, RefundStatus::Done);
}

async fn a_refused_refund_leads_back_and_the_next_begins(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let first = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    let second = reserved(&db, wish(&attempt, "k2", Some(4_000))).await;
    refuse(&db, &attempt, &first).await;
    let first = now(&db, &first).await;
    assert_eq!(
        first.refund.status,
        RefundStatus::Refused(RefusedFor::Gateway)
    );
    assert_eq!(first.told, "403 NOT_CANCELABLE_PAYMENT");
    assert_eq!(status(&db, &second).await, RefundStatus::Asked);
    let recorded = refuse(&db, &attempt, &second).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Approved);
    // What was refused is free again.
    reserved(&db, wish(&attempt, "k3", None)).await;
    // Should the gateway list it all the same, its word stands.
    word(&db, &attempt, 3_000, listed(&[&first])).await;
    assert_eq!(status(&db, &first).await, RefundStatus::Done);
}

async fn a_refusal_of_an_older_key_says_nothing_of_the_present_one(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let old = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    let renewed = db
        .store
        .renew_refund_key(old.call(), "400 PROVIDER_ERROR", NOW);
    assert!(renewed.await.unwrap());
    let recorded = refuse(&db, &attempt, &old).await;
    assert_eq!(
        recorded.after.attempt.status,
        AttemptStatus::CancelRequested
    );
    assert_eq!(recorded.alarm, None);
    assert_eq!(status(&db, &old).await, RefundStatus::Asked);
}

async fn a_key_is_renewed_once_for_each_call(db: Db) {
    let db = Arc::new(db);
    let attempt = paid(&db, "ord_1").await;
    let row = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let (db, call) = (Arc::clone(&db), row.call());
        let later = NOW.plus(Millis::new(7));
        tasks.spawn(async move {
            let renewed = db.store.renew_refund_key(call, "429", later);
            renewed.await.unwrap()
        });
    }
    let renewed = tasks.join_all().await;
    assert_eq!(renewed.into_iter().filter(|it| *it).count(), 1);
    assert_eq!(row.key_at, row.created_at);
    let renewed = now(&db, &row).await;
    assert_eq!(renewed.refund.keys, 2);
    assert_eq!(renewed.key_at, NOW.plus(Millis::new(7)));
}

async fn what_the_gateway_lists_as_under_way_holds_and_as_aborted_is_refused_with_an_alarm(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let first = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    let second = reserved(&db, wish(&attempt, "k2", Some(2_000))).await;
    let none = RefundWord {
        listed: Some(Vec::new()),
        ..RefundWord::default()
    };
    let running = RefundWord {
        running: vec![first.gateway_reason()],
        ..none.clone()
    };
    // Whatever was given back beside it: its own end is still to come, under the same key and lock.
    let recorded = word(&db, &attempt, 1_000, running).await;
    assert_eq!(recorded.alarm, None);
    assert_eq!(now(&db, &first).await.refund, first.refund);
    let aborted = RefundWord {
        aborted: vec![first.gateway_reason()],
        ..none
    };
    let recorded = word(&db, &attempt, 1_000, aborted.clone()).await;
    assert_eq!(recorded.alarm, Some(Alarm::CancelRefused));
    let refused = RefundStatus::Refused(RefusedFor::Gateway);
    assert_eq!(status(&db, &first).await, refused);
    assert_eq!(status(&db, &second).await, RefundStatus::Asked);
    // The same list again raises nothing, and what is refused stays so.
    let recorded = word(&db, &attempt, 1_000, aborted).await;
    assert_eq!(recorded.alarm, None);
    assert_eq!(status(&db, &first).await, refused);
}

async fn a_deposit_goes_back_to_an_account_that_is_held_only_until_the_end(db: Db) {
    let account = RefundAccount::of("20", "1000123456789", "김토스").expect("an account");
    let other = RefundAccount::of("20", "2222123456789", "김토스").expect("an account");
    let card = paid(&db, "ord_1").await;
    let named = |attempt: &AttemptRecord, key, amount| NewRefund {
        account: Some(account.clone()),
        ..wish(attempt, key, amount)
    };
    let refused = ask(&db, named(&card, "k1", None)).await;
    assert_eq!(refused, RefundAsked::TakesNoAccount);
    let attempt = db.claimed("ord_2", "mug").await;
    let issued = Event::Found(Finding::AwaitingDeposit, Source::Answer);
    db.record(attempt.id, issued).await;
    let attempt = db.record(attempt.id, charged(won(PRICE))).await.after;
    let nowhere = ask(&db, wish(&attempt, "k1", None)).await;
    assert_eq!(nowhere, RefundAsked::NeedsAccount);
    let day = Millis::from_secs(86_400);
    let by_shopper = NewRefund {
        asker: Asker::Shopper(owner(&attempt.order_id), day),
        ..named(&attempt, "k1", None)
    };
    assert_eq!(ask(&db, by_shopper).await, RefundAsked::NeedsAccount);
    let first = reserved(&db, named(&attempt, "k1", Some(3_000))).await;
    let second = reserved(&db, named(&attempt, "k2", Some(2_000))).await;
    assert_eq!(first.account.as_ref(), Some(&account));
    // The same wish again; and with another account, also one of the same mark.
    let again = ask(&db, named(&attempt, "k1", Some(3_000))).await;
    assert!(matches!(again, RefundAsked::Repeated(..)), "{again:?}");
    let elsewhere = NewRefund {
        account: Some(other),
        ..wish(&attempt, "k1", Some(3_000))
    };
    assert_eq!(ask(&db, elsewhere).await, RefundAsked::KeyReused);
    // A renewed key sends to the same account.
    let renewed = db.store.renew_refund_key(first.call(), "429", NOW);
    assert!(renewed.await.unwrap());
    assert_eq!(now(&db, &first).await.account.as_ref(), Some(&account));
    word(&db, &attempt, 3_000, listed(&[&first])).await;
    let ended = now(&db, &first).await;
    assert_eq!(ended.refund.status, RefundStatus::Done);
    assert_eq!(ended.account, None);
    assert_eq!(ended.account_mark.as_deref(), Some("20 ****6789"));
    // The next one still has its own, and a refusal ends that as well.
    assert_eq!(now(&db, &second).await.account, Some(account.clone()));
    refuse(&db, &attempt, &second).await;
    assert_eq!(now(&db, &second).await.account, None);
    let again = ask(&db, named(&attempt, "k1", Some(3_000))).await;
    assert!(matches!(again, RefundAsked::Repeated(..)), "{again:?}");
    assert_eq!(now(&db, &first).await.account, None);
}

async fn a_shopper_cancels_its_own_order_whole_and_in_time(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let day = Millis::from_secs(86_400);
    let shopper = |owner, amount, after| NewRefund {
        asker: Asker::Shopper(owner, day),
        at: NOW.plus(after),
        ..wish(&attempt, "k1", amount)
    };
    let own = owner(&attempt.order_id);
    let stranger = Owner("somebody else".to_owned());
    let foreign = ask(&db, shopper(stranger, None, Millis::ZERO)).await;
    assert_eq!(foreign, RefundAsked::Closed(Closed::NotFound));
    let part = ask(&db, shopper(own.clone(), Some(3_000), Millis::ZERO)).await;
    assert_eq!(part, RefundAsked::OnlyWhole);
    let late = ask(&db, shopper(own.clone(), None, day)).await;
    assert_eq!(late, RefundAsked::TooLate);
    let last = day.less(Millis::new(1));
    let row = reserved(&db, shopper(own.clone(), None, last)).await;
    assert_eq!(row.refund.amount, won(PRICE));
    // A repeat has no time limit: it asks for nothing new.
    let again = ask(&db, shopper(own, None, day)).await;
    assert!(matches!(again, RefundAsked::Repeated(..)), "{again:?}");
}

async fn what_is_not_paid_has_nothing_to_give_back(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    let approving = ask(&db, wish(&attempt, "k1", None)).await;
    assert_eq!(approving, RefundAsked::Closed(Closed::InProgress));
    db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
        .await;
    let unknown = ask(&db, wish(&attempt, "k1", None)).await;
    assert_eq!(unknown, RefundAsked::Closed(Closed::InProgress));
    let settled = Event::Found(Finding::NotFound { settled: true }, Source::Inquiry);
    db.record(attempt.id, settled).await;
    let failed = ask(&db, wish(&attempt, "k1", None)).await;
    assert_eq!(failed, RefundAsked::ExceedsBalance);
    // A charge that comes now is given back without anybody asking.
    let late = db.record(attempt.id, charged(won(PRICE))).await;
    assert_eq!(late.after.attempt.status, AttemptStatus::CancelRequested);
    assert!(!late.after.attempt.cancels_on_request());
    let owed = ask(&db, wish(&attempt, "k1", None)).await;
    assert_eq!(owed, RefundAsked::Closed(Closed::InProgress));
    let missing = NewRefund {
        order_id: payment::id::OrderId::parse("nobody").expect("an id"),
        ..wish(&attempt, "k1", None)
    };
    let missing = ask(&db, missing).await;
    assert_eq!(missing, RefundAsked::Closed(Closed::NotFound));
}

async fn the_census_counts_what_is_open(db: Db) {
    let attempt = paid(&db, "ord_1").await;
    let none = db.store.census().await.unwrap();
    assert_eq!((none.refunds_open, none.oldest_refund), (0, None));
    let row = reserved(&db, wish(&attempt, "k1", Some(3_000))).await;
    reserved(&db, wish(&attempt, "k2", Some(3_000))).await;
    let two = db.store.census().await.unwrap();
    assert_eq!((two.refunds_open, two.oldest_refund), (2, Some(NOW)));
    refuse(&db, &attempt, &row).await;
    assert_eq!(db.store.census().await.unwrap().refunds_open, 1);
}
