//! Virtual accounts: the account and its secret are stored with the word that names them, and when to ask again.

use payment::attempt::{Alarm, AttemptStatus, Event, Finding, LateSuccess, Source};
use payment::money::Won;
use payment::order::OrderStatus;
use payment::time::Millis;
use server::clock::EpochMs;
use server::gateway::deposit::{Account, Deposit};
use server::gateway::secret::Secret;
use server::store::{Evidence, NewWebhook, WebhookEnd};

use crate::{Db, NOW, PRICE, asked, charged, on_both, toss};

on_both! {
    an_account_is_stored_with_the_word_that_names_it_and_its_first_secret_stays,
    a_deposit_can_be_undone_also_where_its_account_was_first_heard_of_with_the_charge,
    an_account_whose_time_is_over_frees_the_stock_and_the_order_can_be_paid_again,
    an_account_closed_before_its_deposit_ends_the_order_and_nothing_went_back,
    an_account_that_is_to_be_closed_is_looked_at_at_once_and_ends_closed_or_paid_or_waits_again,
    a_look_at_an_account_is_set_at_its_due_date_and_one_far_ahead_is_no_mistake,
    a_proven_webhook_is_heard_at_once_and_a_forged_one_causes_nothing,
}

const WEEK: Millis = Millis::from_secs(7 * 86_400);

fn told(secret: Option<&str>, due: Option<EpochMs>) -> Box<Deposit> {
    Box::new(Deposit {
        account: Account {
            bank: "20".to_owned(),
            number: "X0001".to_owned(),
            holder: Some("김토스".to_owned()),
            due,
        },
        secret: secret.map(Secret::new),
        over: false,
    })
}

fn with(deposit: Box<Deposit>) -> Evidence {
    Evidence {
        deposit: Some(deposit),
        ..Evidence::plain("confirm", NOW)
    }
}

const ISSUED: Event = Event::Found(Finding::AwaitingDeposit, Source::Answer);

async fn an_account_is_stored_with_the_word_that_names_it_and_its_first_secret_stays(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    assert_eq!(db.attempt(attempt.id).await.deposit, None);
    assert_eq!(db.store.deposit_secret(attempt.id).await.unwrap(), None);
    let due = Some(NOW.plus(WEEK));
    let first = told(Some("ps_1"), due);
    let recorded = db.record_as(attempt.id, ISSUED, with(first.clone())).await;
    assert_eq!(
        recorded.after.attempt.status,
        AttemptStatus::AwaitingDeposit
    );
    assert_eq!(recorded.after.deposit.as_ref(), Some(&first.account));
    // A look-up says it again, with less, and with another secret or none.
    for secret in [None, Some("ps_2")] {
        let mut again = told(secret, None);
        again.account.holder = None;
        db.record_as(attempt.id, ISSUED, with(again)).await;
        let stored = db.attempt(attempt.id).await;
        assert_eq!(stored.deposit.as_ref(), Some(&first.account));
        let held = db.store.deposit_secret(attempt.id).await.unwrap();
        assert_eq!(held, Some(Secret::new("ps_1")));
    }
    assert!(!format!("{:?}", db.attempt(attempt.id).await).contains("ps_1"));
}

async fn a_deposit_can_be_undone_also_where_its_account_was_first_heard_of_with_the_charge(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    let paid = charged(Won::new(PRICE).unwrap());
    let recorded = db
        .record_as(attempt.id, paid, with(told(Some("ps_1"), None)))
        .await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Approved);
    let recorded = db.record(attempt.id, ISSUED).await;
    let after = recorded.after.attempt;
    assert_eq!(after.status, AttemptStatus::AwaitingDeposit);
    assert_eq!(after.charged, None);
    // A payment by card is never led back.
    let card = db.claimed("ord_2", "mug").await;
    db.record(card.id, paid).await;
    let recorded = db.record(card.id, ISSUED).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Approved);
}

async fn an_account_whose_time_is_over_frees_the_stock_and_the_order_can_be_paid_again(db: Db) {
    let free = db.free("mug").await;
    let attempt = db.claimed("ord_1", "mug").await;
    db.record_as(attempt.id, ISSUED, with(told(None, None)))
        .await;
    assert_eq!(db.free("mug").await, free - 1);
    let lapsed = Event::Found(Finding::Lapsed, Source::Inquiry);
    let recorded = db.record(attempt.id, lapsed).await;
    assert_eq!(recorded.after.attempt.status, AttemptStatus::Expired);
    assert_eq!(db.free("mug").await, free);
    let server::store::Opened::Ready(again) = db.open_attempt(&attempt.order_id).await else {
        panic!("it can be paid again");
    };
    assert_ne!(again.gateway_order_id, attempt.gateway_order_id);
    // Whoever pays into it at the last moment gets the money back.
    let late = db
        .record(attempt.id, charged(Won::new(PRICE).unwrap()))
        .await;
    assert_eq!(
        late.after.attempt.status,
        AttemptStatus::CancelRequested,
        "{late:?}"
    );
}

async fn an_account_closed_before_its_deposit_ends_the_order_and_nothing_went_back(db: Db) {
    let free = db.free("mug").await;
    let attempt = db.claimed("ord_1", "mug").await;
    db.record_as(attempt.id, ISSUED, with(told(None, None)))
        .await;
    let closed = Event::Found(Finding::Closed, Source::Inquiry);
    for _ in 0..2 {
        let recorded = db.record(attempt.id, closed).await;
        let after = recorded.after.attempt;
        assert_eq!(after.status, AttemptStatus::Canceled);
        assert_eq!((after.charged, after.canceled), (None, Won::ZERO));
        assert_eq!(recorded.order.status(), OrderStatus::Canceled);
        assert_eq!(db.free("mug").await, free);
    }
    // Should the money come all the same, it goes back.
    let late = db
        .record(attempt.id, charged(Won::new(PRICE).unwrap()))
        .await;
    let after = late.after.attempt;
    assert_eq!(after.status, AttemptStatus::CancelRequested);
    assert_eq!(late.alarm, Some(Alarm::LateSuccess));
    assert!(!after.counts_as_paid());
}

async fn an_account_that_is_to_be_closed_is_looked_at_at_once_and_ends_closed_or_paid_or_waits_again(
    db: Db,
) {
    use AttemptStatus::{Approved, AwaitingDeposit, CancelRequested, Canceled};
    let free = db.free("mug").await;
    let paid = charged(Won::new(PRICE).unwrap());
    let ends = [
        (Event::Found(Finding::Closed, Source::Inquiry), Canceled, 0),
        (Event::Found(Finding::Lapsed, Source::Inquiry), Canceled, 0),
        (paid, Approved, 1),
        (Event::CancelRefused, AwaitingDeposit, 1),
    ];
    let mut held = 0;
    for (n, (end, status, holds)) in ends.into_iter().enumerate() {
        let attempt = db.claimed(&format!("ord_{n}"), "mug").await;
        // Nothing waits yet: the wish changes nothing.
        let early = db.record(attempt.id, Event::CloseAsked).await;
        assert_eq!(early.after.attempt, early.before);
        db.record_as(attempt.id, ISSUED, with(told(Some("ps_1"), None)))
            .await;
        for _ in 0..2 {
            let asked = db.record(attempt.id, Event::CloseAsked).await;
            assert_eq!(asked.after.attempt.status, CancelRequested);
            assert!(asked.after.attempt.closes_account());
            assert_eq!(asked.after.ask_at, Some(NOW));
            assert_eq!(asked.order.status(), OrderStatus::Pending);
            assert_eq!(db.free("mug").await, free - held - 1);
        }
        let stored = db.attempt(attempt.id).await;
        assert!(
            stored.attempt.closes_account(),
            "read back as it was stored"
        );
        let ended = db.record(attempt.id, end).await;
        assert_eq!(ended.after.attempt.status, status);
        assert_eq!(ended.after.attempt.cancel, None);
        assert_eq!(ended.alarm, None);
        held += holds;
        assert_eq!(db.free("mug").await, free - held);
    }
}

async fn a_look_at_an_account_is_set_at_its_due_date_and_one_far_ahead_is_no_mistake(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    let due = NOW.plus(Millis::from_secs(30));
    let recorded = db
        .record_as(attempt.id, ISSUED, with(told(None, Some(due))))
        .await;
    let look = recorded.after.ask_at.expect("it is asked about");
    assert!(
        look > due && look <= due.plus(Millis::from_secs(2)),
        "{look:?}"
    );
    let hour = NOW.plus(Millis::from_secs(3_600));
    assert!(
        db.store
            .move_look(attempt.id, look, Some(hour), 1)
            .await
            .unwrap()
    );
    assert!(db.store.due(&toss(), NOW, 10).await.unwrap().is_empty());
    // Farther than any look is ever set: by a clock that was wrong.
    let day = NOW.plus(Millis::from_secs(86_400));
    assert!(
        db.store
            .move_look(attempt.id, hour, Some(day), 1)
            .await
            .unwrap()
    );
    assert_eq!(db.store.due(&toss(), NOW, 10).await.unwrap().len(), 1);
}

async fn a_proven_webhook_is_heard_at_once_and_a_forged_one_causes_nothing(db: Db) {
    let attempt = db.claimed("ord_1", "mug").await;
    db.record_as(attempt.id, ISSUED, with(told(Some("ps_1"), None)))
        .await;
    let before = db.attempt(attempt.id).await.ask_at;
    let keep = async |name: &str| {
        let webhook = NewWebhook {
            gateway: toss(),
            transmission: Some(name.to_owned()),
            at: NOW,
            headers: "{}".to_owned(),
            body: "{}".into(),
        };
        assert!(db.store.keep_webhook(webhook).await.unwrap());
        db.store.webhooks_due(NOW, 1).await.unwrap()[0].id
    };
    let forged = keep("forged").await;
    let end = WebhookEnd::Forged;
    assert!(!db.store.end_webhooks(&[(forged, end)], NOW).await.unwrap()[0]);
    assert_eq!(db.attempt(attempt.id).await.ask_at, before);
    assert_eq!(db.store.webhooks_of(attempt.id).await.unwrap(), 0);
    assert!(db.store.webhooks_due(NOW, 1).await.unwrap().is_empty());
    // A hint has made it due a moment ago: another one would wait, a proven one does not.
    db.store.hint(attempt.id, NOW, true).await.unwrap();
    let proven = keep("proven").await;
    let soon = NOW.plus(Millis::new(10));
    let end = WebhookEnd::Proven(attempt.id);
    assert!(!db.store.end_webhooks(&[(proven, end)], soon).await.unwrap()[0]);
    let ask_at = db.attempt(attempt.id).await.ask_at;
    assert!(ask_at.is_some_and(|at| at <= soon), "{ask_at:?}");
    let undone = asked(&db.attempt(attempt.id).await, NOW);
    let kept = db
        .store
        .record(attempt.id, ISSUED, undone, LateSuccess::Cancel)
        .await
        .unwrap();
    assert_eq!(kept.after.attempt.status, AttemptStatus::AwaitingDeposit);
}
