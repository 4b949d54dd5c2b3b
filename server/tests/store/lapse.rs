//! The end of an order's time: asked about first, and never while money may move. What its attempts hold of the stock.

use payment::attempt::{AttemptStatus, Event, Finding, Source};
use payment::id::OrderId;
use payment::money::{Money, Won};
use payment::reach::{Decline, Lost, NotSent};
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::{AttemptId, AttemptRecord, Claimed, Closed, Opened};

use crate::{Db, NOW, asked, charged, claim, on_both, toss};

on_both!(
    an_order_of_which_nothing_was_sent_ends_at_once,
    an_order_of_which_something_was_sent_ends_when_the_gateway_was_heard_since,
    of_attempts_with_one_key_the_one_that_owns_it_is_asked_about,
    only_so_many_are_asked_about_at_a_time,
    an_order_with_an_open_attempt_never_ends_and_keeps_its_stock,
    each_state_holds_what_it_must_and_nothing_else_does,
);

/// When the orders of these tests are over.
fn over() -> EpochMs {
    NOW.plus(Millis::from_secs(600))
}

async fn ask(db: &Db, most: u32) -> u64 {
    db.store
        .ask_before_lapse(&toss(), over(), most)
        .await
        .unwrap()
}

async fn asking(db: &Db, at: EpochMs) -> u64 {
    let asked = db.store.ask_before_lapse(&toss(), at, 9).await;
    asked.unwrap()
}

async fn lapse(db: &Db) -> u64 {
    db.store.lapse_orders(over()).await.unwrap()
}

async fn status(db: &Db, id: &OrderId) -> &'static str {
    db.read(id).await.status().as_str()
}

const NOTHING: Event = Event::Found(Finding::NotFound { settled: true }, Source::Inquiry);

async fn declined(db: &Db, order: &str) -> AttemptRecord {
    let attempt = db.claimed(order, "mug").await;
    let declined = Event::Found(Finding::Declined(Decline::CardRefused), Source::Answer);
    db.record(attempt.id, declined).await.after
}

async fn an_order_of_which_nothing_was_sent_ends_at_once(db: Db) {
    let bare = db.order("ord_1", "mug", 1).await;
    let opened = db.order("ord_2", "mug", 1).await;
    db.open_attempt(&opened).await;
    let not_sent = db.claimed("ord_3", "mug").await;
    db.record(not_sent.id, Event::SendRefused(NotSent::Cap))
        .await;
    let early = over().minus(Millis::new(1));
    assert_eq!(db.store.lapse_orders(early).await.unwrap(), 0);
    assert_eq!(ask(&db, 9).await, 0);
    assert_eq!(lapse(&db).await, 3);
    for id in [&bare, &opened, &not_sent.order_id] {
        assert_eq!(status(&db, id).await, "expired");
        let again = db.claim(claim(id, "key")).await;
        assert_eq!(again, Claimed::Closed(Closed::Expired));
    }
}

async fn an_order_of_which_something_was_sent_ends_when_the_gateway_was_heard_since(db: Db) {
    let attempt = declined(&db, "ord_1").await;
    let order = attempt.order_id.clone();
    // An answer from before that moment says nothing of it.
    let early = over().minus(Millis::new(1));
    db.record_as(attempt.id, NOTHING, asked(&attempt, early))
        .await;
    assert_eq!(asking(&db, early).await, 0);
    assert_eq!(lapse(&db).await, 0);
    assert_eq!(ask(&db, 9).await, 1);
    assert_eq!(db.attempt(attempt.id).await.ask_at, Some(over()));
    assert_eq!(ask(&db, 9).await, 0, "it is asked about already");
    // As often as it is looked at: a silent gateway is no answer.
    assert_eq!(lapse(&db).await, 0);
    assert_eq!(status(&db, &order).await, "pending");
    let late = server::store::Claim {
        at: over(),
        ..claim(&order, "other")
    };
    assert_eq!(db.claim(late).await, Claimed::Closed(Closed::Expired));
    db.record_as(attempt.id, NOTHING, asked(&attempt, over()))
        .await;
    assert_eq!(ask(&db, 9).await, 0);
    assert_eq!(lapse(&db).await, 1);
    assert_eq!(lapse(&db).await, 0);
    assert_eq!(status(&db, &order).await, "expired");
}

async fn of_attempts_with_one_key_the_one_that_owns_it_is_asked_about(db: Db) {
    let first = db.claimed("ord_1", "mug").await;
    db.record(first.id, Event::RefusedByGateway).await;
    let order = first.order_id.clone();
    let Claimed::Granted { attempt: owner, .. } = db.claim(claim(&order, "key_ord_1")).await else {
        panic!("the gateway had processed nothing");
    };
    db.record(owner.id, Event::RefusedByGateway).await;
    let Claimed::Granted { attempt: third, .. } = db.claim(claim(&order, "key_ord_1")).await else {
        panic!("the gateway had processed nothing");
    };
    db.record(third.id, Event::SendRefused(NotSent::Cap)).await;
    assert_eq!(ask(&db, 9).await, 1);
    let ask_at = async |id: AttemptId| db.attempt(id).await.ask_at;
    assert_eq!(
        (
            ask_at(first.id).await,
            ask_at(owner.id).await,
            ask_at(third.id).await
        ),
        (None, Some(over()), None)
    );
    assert_eq!(lapse(&db).await, 0);
    db.record_as(owner.id, NOTHING, asked(&owner, over())).await;
    assert_eq!(lapse(&db).await, 1);
}

async fn only_so_many_are_asked_about_at_a_time(db: Db) {
    let mut attempts = Vec::new();
    for n in 0..5 {
        attempts.push(declined(&db, &format!("ord_{n}")).await);
    }
    assert_eq!(ask(&db, 3).await, 3);
    assert_eq!(ask(&db, 3).await, 0);
    let due = db.store.due(&toss(), over(), 9).await.unwrap();
    assert_eq!(due.len(), 3);
    for attempt in &due[..2] {
        db.record_as(attempt.id, NOTHING, asked(attempt, over()))
            .await;
    }
    assert_eq!(lapse(&db).await, 2);
    assert_eq!(ask(&db, 3).await, 2);
    assert_eq!(ask(&db, 3).await, 0);
    // Asked about in vain for minutes, they keep no place from others; nor does another gateway.
    for attempt in db.store.due(&toss(), over(), 9).await.unwrap() {
        let later = Some(over().plus(Millis::from_secs(60)));
        let moved = db.store.move_look(attempt.id, over(), later, 7).await;
        assert!(moved.unwrap());
    }
    declined(&db, "ord_5").await;
    let other = payment::id::GatewayName::parse("kakaopay").expect("a name");
    let asked = db.store.ask_before_lapse(&other, over(), 3).await;
    assert_eq!(asked.unwrap(), 0);
    assert_eq!(ask(&db, 3).await, 1);
    assert_eq!(lapse(&db).await, 0);
}

async fn an_order_with_an_open_attempt_never_ends_and_keeps_its_stock(db: Db) {
    let far = over().plus(Millis::from_secs(365 * 24 * 3_600));
    let attempt = db.claimed("ord_1", "poster").await;
    let amount = attempt.attempt.expected.amount;
    let order = attempt.order_id.clone();
    let still = async |what: &str| {
        assert_eq!(db.store.lapse_orders(far).await.unwrap(), 0, "{what}");
        assert_eq!(asking(&db, far).await, 0);
        assert_eq!(status(&db, &order).await, "pending", "{what}");
        assert_eq!(db.free("poster").await, 0, "{what}");
    };
    still("approving").await;
    db.record(attempt.id, Event::AnswerLost(Lost::TimedOut))
        .await;
    still("unknown").await;
    let pending = Event::Found(Finding::Pending { settled: false }, Source::Inquiry);
    db.record_as(attempt.id, pending, asked(&attempt, far))
        .await;
    still("unknown, and heard that it is in progress").await;
    let issued = Event::Found(Finding::AwaitingDeposit, Source::Inquiry);
    db.record(attempt.id, issued).await;
    still("awaiting a deposit").await;
    let wrong = Won::new(amount.get() - 1).unwrap();
    db.record(attempt.id, charged(wrong)).await;
    still("another amount was charged").await;
    db.record(attempt.id, Event::CancelAsked(wrong)).await;
    still("it is to be given back").await;
    let back = Finding::Charged {
        charged: Money::won(wrong),
        canceled: wrong,
    };
    db.record(attempt.id, Event::Found(back, Source::Inquiry))
        .await;
    assert_eq!(db.free("poster").await, 1);
    assert_eq!(db.store.lapse_orders(far).await.unwrap(), 1);
    assert_eq!(status(&db, &order).await, "expired");
}

async fn each_state_holds_what_it_must_and_nothing_else_does(db: Db) {
    let total = db.free("teapot").await;
    let order = db.order("ord_1", "teapot", 3).await;
    let free = async |pieces: u64, what: &str| {
        assert_eq!(db.free("teapot").await, total - pieces, "{what}");
    };
    free(0, "an order alone holds nothing").await;
    db.open_attempt(&order).await;
    free(0, "nor does an open window").await;
    let amount = db.read(&order).await.amount;
    let claim = |key| server::store::Claim {
        amount,
        ..claim(&order, key)
    };
    let granted = async |key| match db.claim(claim(key)).await {
        Claimed::Granted { attempt, .. } => attempt.id,
        other => panic!("not granted: {other:?}"),
    };
    let first = granted("one").await;
    free(3, "a claim holds").await;
    db.record(first, Event::SendRefused(NotSent::Cap)).await;
    free(0, "what was not sent holds nothing").await;
    let second = granted("one").await;
    free(3, "the next claim holds").await;
    db.record(second, Event::AnswerLost(Lost::TimedOut)).await;
    free(3, "doubt holds").await;
    db.record(second, NOTHING).await;
    free(0, "failed holds nothing").await;
    let late = db.record(second, charged(amount)).await;
    assert_eq!(late.after.attempt.status, AttemptStatus::CancelRequested);
    free(0, "nor does what goes back").await;
    let back = |charge: Won, canceled: Won| {
        let finding = Finding::Charged {
            charged: Money::won(charge),
            canceled,
        };
        Event::Found(finding, Source::Inquiry)
    };
    db.record(second, back(amount, amount)).await;
    let Opened::Ready(ready) = db.open_attempt(&order).await else {
        panic!("nothing is in its way");
    };
    let again = server::store::Claim {
        gateway_order_id: ready.gateway_order_id.clone(),
        ..claim("two")
    };
    let Claimed::Granted { attempt: third, .. } = db.claim(again).await else {
        panic!("nothing is in its way");
    };
    db.record(third.id, charged(amount)).await;
    free(3, "paid is sold").await;
    db.record(third.id, back(amount, Won::new(1).unwrap()))
        .await;
    free(3, "given back in part is sold").await;
    db.record(third.id, back(amount, amount)).await;
    free(0, "given back in full is free").await;
}
