//! Windows that a gateway opens by a call: kept once, claimed only once they are open, and never taken for another's.

use std::sync::Arc;

use payment::attempt::{AttemptStatus, Event};
use payment::id::{GatewayHandle, GatewayName, OrderId};
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use server::gateway::Window;
use server::store::{AttemptRecord, Claim, Claimed, Closed, NewAttemptRow, Opened, OpenedWindow};
use tokio::task::JoinSet;

use crate::{Db, NOW, claim, on_both, window};

on_both!(
    a_window_is_kept_once_and_found_again,
    of_many_windows_opened_at_once_the_first_is_everybodys,
    an_attempt_that_was_not_opened_takes_no_claim,
    what_was_not_sent_goes_on_with_the_same_opened_payment,
    each_gateway_and_each_opened_payment_has_an_order_id_of_its_own,
    a_window_that_was_left_is_not_opened_again,
    a_window_that_comes_too_late_is_not_kept,
);

fn by_call() -> GatewayName {
    GatewayName::parse("by_call").expect("a name")
}

/// A wish for a window that is opened by a call.
fn wish(order: &OrderId) -> NewAttemptRow {
    NewAttemptRow {
        gateway: by_call(),
        by_call: true,
        ..window(order)
    }
}

fn opened(handle: &str) -> OpenedWindow {
    OpenedWindow {
        handle: Some(GatewayHandle::parse(handle).expect("a handle")),
        window: Window {
            desktop: format!("https://window.example/{handle}/pc"),
            mobile: format!("https://window.example/{handle}/mobile"),
        },
        window_until: NOW.plus(Millis::from_secs(900)),
        at: NOW,
    }
}

async fn ready(db: &Db, wish: NewAttemptRow) -> AttemptRecord {
    match db.store.open_attempt(wish).await.expect("opened") {
        Opened::Ready(attempt) => *attempt,
        Opened::Closed(closed) => panic!("the order takes none: {closed:?}"),
    }
}

async fn keep(db: &Db, attempt: &AttemptRecord, handle: &str) -> AttemptRecord {
    let kept = db.store.keep_window(attempt.id, opened(handle)).await;
    kept.expect("kept")
}

/// A confirm of an attempt where the first gateway of all opens by a call.
fn claim_of(attempt: &AttemptRecord, key: &str) -> Claim {
    Claim {
        gateway_order_id: attempt.gateway_order_id.clone(),
        gateway: by_call(),
        by_call: vec![by_call()],
        ..claim(&attempt.order_id, key)
    }
}

async fn openings(db: &Db, order: &OrderId) -> usize {
    let evidence = db.store.evidence(order).await.expect("read");
    let said = evidence.iter().filter(|row| row.event == "window_opened");
    said.count()
}

async fn a_window_is_kept_once_and_found_again(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let first = ready(&db, wish(&order)).await;
    assert_eq!((&first.handle, &first.window), (&None, &None));
    assert_eq!(openings(&db, &order).await, 0, "it is only wished for");
    let kept = keep(&db, &first, "T1").await;
    let said = opened("T1");
    assert_eq!(
        (&kept.handle, &kept.window),
        (&said.handle, &Some(said.window))
    );
    assert_eq!(kept.window_until, said.window_until);
    assert_eq!(kept, db.attempt(first.id).await);
    assert_eq!(kept, keep(&db, &first, "T2").await, "the first stays");
    assert_eq!(kept, ready(&db, wish(&order)).await, "found again, open");
    assert_eq!(openings(&db, &order).await, 1);
}

async fn of_many_windows_opened_at_once_the_first_is_everybodys(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let db = Arc::new(db);
    let mut tabs = JoinSet::new();
    for n in 0..8 {
        let (db, order) = (Arc::clone(&db), order.clone());
        tabs.spawn(async move {
            let attempt = ready(&db, wish(&order)).await;
            keep(&db, &attempt, &format!("T{n}")).await
        });
    }
    let told = tabs.join_all().await;
    assert_eq!(db.read(&order).await.attempts.len(), 1);
    assert!(told[0].window.is_some());
    for one in &told {
        assert_eq!(one, &told[0]);
    }
}

async fn an_attempt_that_was_not_opened_takes_no_claim(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let unasked = Claim {
        gateway: by_call(),
        by_call: vec![by_call()],
        ..claim(&order, "key")
    };
    assert_eq!(db.claim(unasked).await, Claimed::NewAttemptNeeded);
    assert_eq!(db.read(&order).await.attempts, [], "and none is made");
    let attempt = ready(&db, wish(&order)).await;
    assert_eq!(
        db.claim(claim_of(&attempt, "key")).await,
        Claimed::NewAttemptNeeded
    );
    assert_eq!(db.attempt(attempt.id).await, attempt, "it is ready still");
    keep(&db, &attempt, "T1").await;
    let Claimed::Granted { attempt: taken, .. } = db.claim(claim_of(&attempt, "key")).await else {
        panic!("it is open");
    };
    assert_eq!(taken.id, attempt.id);
    assert_eq!(taken.handle, opened("T1").handle);
}

async fn what_was_not_sent_goes_on_with_the_same_opened_payment(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let first = ready(&db, wish(&order)).await;
    keep(&db, &first, "T1").await;
    assert!(matches!(
        db.claim(claim_of(&first, "key")).await,
        Claimed::Granted { .. }
    ));
    db.record(first.id, Event::SendRefused(NotSent::Cap)).await;
    let Claimed::Granted {
        attempt: second, ..
    } = db.claim(claim_of(&first, "key")).await
    else {
        panic!("nothing was sent");
    };
    assert_ne!(second.id, first.id);
    assert_eq!(second.gateway, by_call());
    assert_eq!(second.names(), db.attempt(first.id).await.names());
    assert_eq!(second.window, Some(opened("T1").window));
    db.record(second.id, Event::SendRefused(NotSent::Connect))
        .await;
    let third = ready(&db, wish(&order)).await;
    assert_ne!(
        third.gateway_order_id, first.gateway_order_id,
        "a payment of its own"
    );
    assert_eq!(third.window, None, "which is to be opened");
}

async fn each_gateway_and_each_opened_payment_has_an_order_id_of_its_own(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let plain = ready(&db, window(&order)).await;
    let called = ready(&db, wish(&order)).await;
    assert_ne!(plain.gateway_order_id, called.gateway_order_id);
    keep(&db, &called, "T1").await;
    // Whoever comes back from the first window is not taken for one who comes from the second.
    let back = Claim {
        gateway: by_call(),
        ..claim_of(&plain, "key")
    };
    assert_eq!(
        db.claim(back).await,
        Claimed::Closed(Closed::AttemptExpired)
    );
    let again = ready(&db, window(&order)).await;
    let ids = [&plain, &called, &again].map(|attempt| &attempt.gateway_order_id);
    assert!(ids[2] != ids[1], "{ids:?}");
    let late = db.claim(claim_of(&called, "key_2")).await;
    assert_eq!(late, Claimed::Closed(Closed::AttemptExpired));
    let Claimed::Granted { attempt, .. } = db.claim(claim_of(&again, "key_3")).await else {
        panic!("it needs no call");
    };
    assert_eq!(attempt.gateway, again.gateway);
    db.record(attempt.id, Event::AnswerLost(Lost::Reset)).await;
    let open = db.store.open_attempt(wish(&order)).await.expect("asked");
    assert_eq!(
        open,
        Opened::Closed(Closed::InProgress),
        "while it is unknown"
    );
}

async fn a_window_that_was_left_is_not_opened_again(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let first = ready(&db, wish(&order)).await;
    keep(&db, &first, "T1").await;
    let other = NewAttemptRow {
        left: Some(crate::reference()),
        ..wish(&order)
    };
    assert_eq!(
        ready(&db, other).await.id,
        first.id,
        "another's is no matter"
    );
    let leaving = || NewAttemptRow {
        left: Some(first.reference.clone()),
        ..wish(&order)
    };
    let second = ready(&db, leaving()).await;
    assert_ne!(second.id, first.id);
    assert_eq!(second.window, None);
    let left = db.attempt(first.id).await.attempt.status;
    assert_eq!(left, AttemptStatus::Expired);
    assert_eq!(ready(&db, leaving()).await.id, second.id, "pressed twice");
}

async fn a_window_that_comes_too_late_is_not_kept(db: Db) {
    let order = db.order("ord_1", "mug", 1).await;
    let first = ready(&db, wish(&order)).await;
    ready(&db, window(&order)).await;
    let late = keep(&db, &first, "T1").await;
    assert_eq!(late.attempt.status, AttemptStatus::Expired);
    assert_eq!((late.handle, late.window), (None, None));
}
