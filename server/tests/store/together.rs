//! Changes that come at the same time: each gets its own answer, and none takes another along.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use payment::attempt::AttemptStatus;
use payment::id::OrderId;
use payment::money::Won;
use server::store::{Claim, Claimed, Closed, StoreError};

use crate::{Db, PRICE, claim, on_both};

on_both!(
    of_changes_that_come_together_each_gets_the_answer_it_would_get_alone,
    what_its_caller_gave_up_before_it_was_begun_is_not_done,
);

/// What a caller asks for, when it has asked and was not answered yet.
type Asked = Pin<Box<dyn Future<Output = Result<Claimed, StoreError>> + Send>>;

impl Db {
    /// Asks for a claim: from then on it waits together with all others that were asked for.
    fn ask(&self, claim: Claim) -> Asked {
        let store = Arc::clone(&self.store);
        let mut asked: Asked = Box::pin(async move { store.claim(claim).await });
        let at_once = asked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        match at_once {
            // A store in memory makes nobody wait.
            Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
            Poll::Pending => asked,
        }
    }
}

/// The answers to what was asked for, in the order of asking.
async fn answers(asked: Vec<Asked>) -> Vec<Result<Claimed, StoreError>> {
    let running: Vec<_> = asked.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(running.len());
    for answer in running {
        answers.push(answer.await.unwrap());
    }
    answers
}

async fn orders(db: &Db, sku: &str, count: usize) -> Vec<OrderId> {
    let mut orders = Vec::with_capacity(count);
    for number in 0..count {
        orders.push(db.order(&format!("ord_{sku}_{number}"), sku, 1).await);
    }
    orders
}

async fn of_changes_that_come_together_each_gets_the_answer_it_would_get_alone(db: Db) {
    let (mugs, posters) = (orders(&db, "mug", 8).await, orders(&db, "poster", 3).await);
    let free = db.free("mug").await;
    let mut asked = Vec::new();
    for (number, order) in mugs.iter().enumerate() {
        let right = claim(order, &format!("key_{number}"));
        asked.push(db.ask(match number % 4 {
            // The same payment key as the one before it.
            1 => claim(order, &format!("key_{}", number - 1)),
            2 => Claim {
                amount: Won::new(PRICE - 1).expect("an amount"),
                ..right
            },
            _ => right,
        }));
    }
    for (number, order) in posters.iter().enumerate() {
        let amount = db.read(order).await.amount;
        asked.push(db.ask(Claim {
            amount,
            ..claim(order, &format!("poster_{number}"))
        }));
    }
    let nowhere = OrderId::parse("ord_nowhere").expect("an id");
    asked.push(db.ask(claim(&nowhere, "key_nowhere")));
    let answers = answers(asked).await;
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.unwrap()).collect();
    let (of_mugs, others) = answers.split_at(mugs.len());
    for (number, pair) in of_mugs.chunks(4).enumerate() {
        let granted = |answer: &Claimed| matches!(answer, Claimed::Granted { .. });
        // Whichever of the two came first has the key.
        assert!(granted(&pair[0]) != granted(&pair[1]), "{number}: {pair:?}");
        assert!(pair[..2].contains(&Claimed::KeyUsed), "{number}: {pair:?}");
        assert_eq!(pair[2], Claimed::AmountMismatch);
        assert!(granted(&pair[3]), "{number}: {pair:?}");
    }
    let sold_out = others
        .iter()
        .filter(|answer| **answer == Claimed::OutOfStock);
    assert_eq!(sold_out.count(), 2, "{others:?}");
    assert_eq!(others.last(), Some(&Claimed::Closed(Closed::NotFound)));
    // Nothing is left of what was refused.
    assert_eq!(
        (db.free("mug").await, db.free("poster").await),
        (free - 4, 0)
    );
    for (order, answer) in mugs.iter().chain(&posters).zip(&answers) {
        let attempts = db.read(order).await.attempts;
        let approving = attempts
            .iter()
            .filter(|record| record.attempt.status == AttemptStatus::Approving);
        let granted = usize::from(matches!(answer, Claimed::Granted { .. }));
        assert_eq!((approving.count(), attempts.len()), (granted, granted));
    }
}

async fn what_its_caller_gave_up_before_it_was_begun_is_not_done(db: Db) {
    let orders = orders(&db, "mug", 3).await;
    let [first, second, third] =
        [0, 1, 2].map(|number| claim(&orders[number], &format!("key_{number}")));
    let asked = db.ask(first);
    // A store in memory has done it by now; the others have not begun.
    let given_up = db.ask(second);
    drop(given_up);
    let last = db.ask(third);
    for answer in answers(vec![asked, last]).await {
        assert!(matches!(answer, Ok(Claimed::Granted { .. })), "{answer:?}");
    }
    if db.url != "memory" {
        assert_eq!(db.read(&orders[1]).await.attempts, []);
    }
}

/// SQLite only: its changes share transactions.
#[cfg(not(feature = "in-memory"))]
mod of_one_writer {
    use payment::attempt::LateSuccess;
    use server::store::{AttemptId, Evidence};
    use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

    use super::*;
    use crate::{NOW, charged};

    /// Makes the database fail when a payment key is claimed.
    async fn fails_at(db: &Db, key: &str, how: &str) {
        let mut beside = SqliteConnection::connect(&db.url).await.unwrap();
        let trigger = format!(
            "CREATE TRIGGER fails BEFORE INSERT ON payment_keys WHEN new.payment_key = '{key}' \
             BEGIN SELECT RAISE({how}, 'it failed'); END"
        );
        sqlx::query(AssertSqlSafe(trigger))
            .execute(&mut beside)
            .await
            .unwrap();
        beside.close().await.unwrap();
    }

    /// How many commits the write-ahead log holds: its frames that carry the size of the database.
    fn commits(db: &Db) -> usize {
        let file = format!("{}-wal", db.url.trim_start_matches("sqlite://"));
        let log = std::fs::read(file).unwrap();
        let (head, frame) = (32, 24 + 4_096);
        let frames = log[head..].chunks_exact(frame);
        let commits = frames.filter(|frame| frame[4..8] != [0; 4]);
        commits.count()
    }

    async fn claims_of(db: &Db, count: usize) -> (Vec<OrderId>, Vec<Asked>) {
        let orders = orders(db, "mug", count).await;
        let asked = orders
            .iter()
            .enumerate()
            .map(|(number, order)| db.ask(claim(order, &format!("key_{number}"))));
        let asked = asked.collect();
        (orders, asked)
    }

    /// Every claim but one is granted and stored, and the stock is taken for no more.
    async fn all_but_the_fourth(db: &Db, how: &str) {
        fails_at(db, "key_3", how).await;
        let free = db.free("mug").await;
        let (orders, asked) = claims_of(db, 7).await;
        for (number, answer) in answers(asked).await.into_iter().enumerate() {
            if number == 3 {
                assert!(
                    matches!(answer, Err(StoreError::Failed { .. })),
                    "{answer:?}"
                );
            } else {
                assert!(matches!(answer, Ok(Claimed::Granted { .. })), "{answer:?}");
            }
            let attempts = db.read(&orders[number]).await.attempts.len();
            assert_eq!(attempts, usize::from(number != 3), "{number}");
        }
        assert_eq!(db.free("mug").await, free - 6);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_change_that_the_database_refuses_takes_none_of_the_others_along() {
        all_but_the_fourth(&Db::sqlite().await, "ABORT").await;
    }

    /// As when the disk is full: what the others had written in the same transaction is gone, and they are made again.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_failure_that_undoes_the_whole_transaction_is_one_change_s_alone() {
        all_but_the_fourth(&Db::sqlite().await, "ROLLBACK").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_together_is_on_the_disk_by_one_commit() {
        let db = Db::sqlite().await;
        let (_, asked) = claims_of(&db, 20).await;
        let before = commits(&db);
        for answer in answers(asked).await {
            assert!(matches!(answer, Ok(Claimed::Granted { .. })), "{answer:?}");
        }
        assert_eq!(commits(&db), before + 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_outcome_of_no_attempt_fails_alone() {
        let db = Db::sqlite().await;
        let attempt = db.claimed("ord_1", "mug").await;
        let record = |id| {
            let store = Arc::clone(&db.store);
            let event = charged(Won::new(PRICE).expect("an amount"));
            tokio::spawn(async move {
                let evidence = Evidence::plain("confirm", NOW);
                store.record(id, event, evidence, LateSuccess::Cancel).await
            })
        };
        let (nobody, ours) = (record(AttemptId(4_711)), record(attempt.id));
        assert!(matches!(
            nobody.await.unwrap(),
            Err(StoreError::Corrupt { .. })
        ));
        let after = ours.await.unwrap().unwrap().after;
        assert_eq!(after.attempt.status, AttemptStatus::Approved);
    }
}
