//! Recording what was learned: the machine's step, stock, order status, evidence and outbox in one transaction.

use async_trait::async_trait;
use payment::attempt::{Attempt, AttemptStatus, Event, LateSuccess, Step};
use payment::id::OrderId;
use payment::money::Currency;
use payment::order::OrderStatus;

use super::claim::with_attempt;
use super::engine::{Engine, Lock, Sql, Statement, ran_at, values};
use super::group::{Change, Done};
use super::stock::{move_stock, moving};
use super::{deposits, refunds, rows};
use crate::clock::EpochMs;
use crate::store::rules::deposits::learn_account;
use crate::store::rules::records::{
    REFUSED_LOOK, effects_of, event_name, is_about, is_hinted, late_policy, next_look,
    owner_of_key, unknown_since, without_stock,
};
use crate::store::rules::stock::takes_more;
use crate::store::{Asked, AttemptId, AttemptRecord, Evidence, OrderRecord, Recorded, StoreError};

/// The statement that queues a side effect under a key of its kind, its attempt and this.
macro_rules! queue_effect {
    ($number:literal) => {
        concat!(
            "-- queue_effect\nINSERT INTO outbox (key, order_id, attempt_id, kind, payload, created_at) \
             VALUES ($3 || ':' || CAST($2 AS TEXT) || ",
            $number,
            ", $1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
        )
    };
}

/// Something that was learned of an attempt.
pub(super) struct Learned {
    pub(super) attempt: AttemptId,
    pub(super) event: Event,
    pub(super) evidence: Evidence,
    pub(super) late: LateSuccess,
}

#[async_trait]
impl<D: Engine> Change<D> for Learned {
    type Answer = Recorded;
    const DOING: &'static str = "recording an outcome";

    async fn make(&self, db: &mut D::Connection) -> Result<Done<Recorded>, StoreError> {
        let recorded = record(db, self.attempt, self.event, &self.evidence, self.late);
        recorded.await.map(Done::Keep)
    }
}

/// Applies an event to an attempt.
async fn record<C: Sql>(
    db: &mut C,
    id: AttemptId,
    event: Event,
    evidence: &Evidence,
    late: LateSuccess,
) -> Result<Recorded, StoreError> {
    let (order, mut stored) = lock(db, id).await?;
    if let Some(asked) = &evidence.asked
        && !answers(db, &stored, &order, asked, evidence.at).await?
    {
        return Ok(Recorded {
            before: stored.attempt,
            after: stored,
            order,
            alarm: None,
            hinted: true,
            ended: Vec::new(),
        });
    }
    let lease = evidence.asked.as_ref().map(|asked| asked.lease);
    let hinted = is_hinted(&stored, lease);
    let late = late_policy(&order, id, late);
    let before = stored.attempt;
    if let Some(told) = &evidence.deposit {
        deposits::save(db, id, told).await?;
        learn_account(&mut stored, told);
    }
    let mut step = take_step(db, &stored, event, late).await?;
    let followed = refunds::follow(db, &stored, (event, &mut step), evidence).await?;
    let learned = Learning {
        stored: &stored,
        order: &order,
        event,
        evidence,
        begun: followed.begun,
    };
    let (order, after) = write_down(db, &learned, &step, lease).await?;
    Ok(Recorded {
        before,
        after,
        order,
        alarm: step.alarm,
        hinted,
        ended: followed.ended,
    })
}

/// What was learned, of what, and whether a refund begins with it.
struct Learning<'a> {
    stored: &'a AttemptRecord,
    order: &'a OrderRecord,
    event: Event,
    evidence: &'a Evidence,
    begun: bool,
}

/// Stores a step with all that follows from it; the order and the attempt as they are then.
async fn write_down<C: Sql>(
    db: &mut C,
    learned: &Learning<'_>,
    step: &Step,
    lease: Option<EpochMs>,
) -> Result<(OrderRecord, AttemptRecord), StoreError> {
    let Learning {
        stored,
        order,
        event,
        evidence,
        begun,
    } = *learned;
    let (id, before, at) = (stored.id, stored.attempt, evidence.at);
    let next = AttemptRecord {
        attempt: step.next,
        ..stored.clone()
    };
    let status = order_with(order, &next).status();
    let effects = effects_of(&before, &step.next, step, status);
    let refused = event == Event::CancelRefused && step.next.void && step.next.holds_money();
    let mut statements = Vec::new();
    if step.next != before {
        statements.push(saving_attempt(stored, &step.next, at, lease));
    }
    if begun {
        statements.push(refunds::making_due(id, at));
    }
    // A newer hint stays.
    if refused && !is_hinted(stored, lease) {
        statements.push(putting_off(id, at));
    }
    if let Some(resent_at) = evidence.resent_at {
        statements.push(saving_resend(id, resent_at));
    }
    if evidence.asked.is_some() && at >= order.expires_at {
        statements.push(saving_answered(id, at));
    }
    statements.push(adding_evidence(
        &next,
        event_name(event),
        evidence,
        step.why,
    ));
    statements.push(saving_order(&order.id, status));
    let queued = effects.iter();
    statements.extend(queued.map(|(kind, told)| queueing_effect(&next, kind.as_str(), told, at)));
    let read = statements.len();
    statements.push(rows::reading(&order.id));
    // What takes more was taken with the step. The rest last: other orders wait for it, so it is held for the shortest time.
    let (from, to) = (before.holding(), step.next.holding());
    if !takes_more(from, to) {
        statements.extend(moving::<C>(&order.id, from, to));
    }
    let ran = db.run(&statements).await?;
    with_attempt(rows::whole_order(&ran_at(&ran, read)?.rows)?, id)
}

/// An order with one of its attempts as it is to be.
fn order_with(order: &OrderRecord, next: &AttemptRecord) -> OrderRecord {
    let mut order = order.clone();
    for record in &mut order.attempts {
        if record.id == next.id {
            record.attempt = next.attempt;
        }
    }
    order
}

/// Locks the order of an attempt and reads both.
pub(super) async fn lock<C: Sql>(
    db: &mut C,
    id: AttemptId,
) -> Result<(OrderRecord, AttemptRecord), StoreError> {
    db.lock(Lock::OrderOf(id)).await?;
    db.lock(Lock::AttemptsOf(id)).await?;
    with_attempt(rows::read_order(db, &rows::reading_of(id)).await?, id)
}

/// Whether an answer is about what the row is now. A payment key belongs to the attempt that sent it: where another has
/// sent it since, that one is to be asked about instead.
async fn answers<C: Sql>(
    db: &mut C,
    stored: &AttemptRecord,
    order: &OrderRecord,
    asked: &Asked,
    now: EpochMs,
) -> Result<bool, StoreError> {
    if !is_about(stored, asked) {
        return Ok(false);
    }
    let owner = owner_of_key(order, &asked.payment_key);
    if owner == Some(stored.id) {
        return is_newest_word(db, stored.id, asked.look).await;
    }
    if let Some(owner) = owner {
        let sql = "-- hint_owner\nUPDATE attempts SET ask_at = $2 WHERE id = $1";
        db.execute("passing a hint on", sql, values![owner.0, now])
            .await?;
    }
    Ok(false)
}

/// The fence: whether no newer look has recorded a word yet; then this one is the newest. One that was asked for earlier,
/// by a node that was paused or lost its lease, says what was true before.
async fn is_newest_word<C: Sql>(db: &mut C, id: AttemptId, look: u32) -> Result<bool, StoreError> {
    let sql = "-- newest_word\nUPDATE attempts SET looked = $2 WHERE id = $1 AND looked <= $2";
    let doing = "numbering a word";
    Ok(db.execute(doing, sql, values![id.0, look]).await? == 1)
}

/// The machine's step, with what it takes of the stock. A charge for which there is no stock any more is given back.
async fn take_step<C: Sql>(
    db: &mut C,
    stored: &AttemptRecord,
    event: Event,
    late: LateSuccess,
) -> Result<Step, StoreError> {
    let step = stored.attempt.apply(event, late);
    let (from, to) = (stored.attempt.holding(), step.next.holding());
    if !takes_more(from, to) || move_stock(db, &stored.order_id, from, to).await? {
        return Ok(step);
    }
    Ok(without_stock(&stored.attempt, event))
}

/// The statement that stores the machine's part of an attempt.
pub(super) fn saving_attempt(
    stored: &AttemptRecord,
    next: &Attempt,
    now: EpochMs,
    own_lease: Option<EpochMs>,
) -> Statement<'static> {
    let moved = next.status != stored.attempt.status;
    let ask_at = next_look(stored, next, now, own_lease);
    let unknown_since = unknown_since(stored, next, now);
    let ended = moved && !next.status.is_open() && next.status != AttemptStatus::Ready;
    let sql = "-- save_attempt\nUPDATE attempts SET status = $2, reach = $3, reason = $4, charged_won = $5, \
         charged_in_won = $6, canceled_won = $7, deposit = $8, void = $9, cancel_won = $10, cancel_from = $11, \
         unknown_since = $12, ask_at = $13, asks = CASE WHEN $14 THEN 0 ELSE asks END, \
         ended_at = CASE WHEN $15 THEN $16 ELSE ended_at END, version = version + 1 WHERE id = $1";
    let in_won = |money: payment::money::Money| i64::from(money.currency == Currency::Krw);
    let values = values![
        stored.id.0,
        next.status.as_str(),
        next.reach.as_str(),
        next.reason.map(payment::reach::Reason::as_str),
        next.charged.map(|money| money.amount.get()),
        next.charged.map(in_won),
        next.canceled.get(),
        i64::from(next.deposit),
        i64::from(next.void),
        next.cancel.map(|(amount, _)| amount.get()),
        next.cancel.map(|(_, from)| from.status().as_str()),
        unknown_since,
        ask_at,
        moved,
        ended,
        now,
    ];
    Statement::new("storing an attempt", sql, values)
}

/// Stores the machine's part of an attempt.
pub(super) async fn save_attempt<C: Sql>(
    db: &mut C,
    stored: &AttemptRecord,
    next: &Attempt,
    now: EpochMs,
    own_lease: Option<EpochMs>,
) -> Result<(), StoreError> {
    let saving = saving_attempt(stored, next, now, own_lease);
    db.run(&[saving]).await?;
    Ok(())
}

/// The statement for a refused cancel of money that is owed: tried again much later, whatever state it leads back to.
fn putting_off(id: AttemptId, now: EpochMs) -> Statement<'static> {
    let sql = "-- put_off\nUPDATE attempts SET ask_at = $2 WHERE id = $1";
    let values = values![id.0, now.plus(REFUSED_LOOK)];
    Statement::new("putting a refused cancel off", sql, values)
}

/// The statement that notes when the last send began: "not found" is no answer until the gateway has settled since then.
fn saving_resend(id: AttemptId, at: EpochMs) -> Statement<'static> {
    let sql = "-- save_resend\nUPDATE attempts SET resent_at = $2 WHERE id = $1";
    Statement::new("storing a resend", sql, values![id.0, at])
}

/// The statement that notes that the gateway was heard when the order's time was over.
fn saving_answered(id: AttemptId, at: EpochMs) -> Statement<'static> {
    let sql = "-- save_answered\nUPDATE attempts SET answered_at = $2 WHERE id = $1";
    Statement::new("noting an answer", sql, values![id.0, at])
}

/// The statement that adds to the evidence; the same word twice in a row, with the same state, is kept once.
pub(super) fn adding_evidence<'a>(
    attempt: &'a AttemptRecord,
    event: &'a str,
    evidence: &'a Evidence,
    why: &'a str,
) -> Statement<'a> {
    let sql = "-- add_evidence\nINSERT INTO evidence (order_id, attempt_id, at, source, event, told, status, why) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE NOT EXISTS (SELECT 1 FROM (SELECT event, status, told \
         FROM evidence WHERE order_id = $1 AND attempt_id = $2 ORDER BY id DESC LIMIT 1) last \
         WHERE last.event = $5 AND last.status = $7 AND last.told = $6)";
    let values = values![
        attempt.order_id.as_str(),
        attempt.id.0,
        evidence.at,
        evidence.source,
        event,
        evidence.told.as_str(),
        attempt.attempt.status.as_str(),
        why,
    ];
    Statement::new("storing evidence", sql, values)
}

/// Adds to the evidence.
pub(super) async fn add_evidence<C: Sql>(
    db: &mut C,
    attempt: &AttemptRecord,
    event: &str,
    evidence: &Evidence,
    why: &str,
) -> Result<(), StoreError> {
    db.run(&[adding_evidence(attempt, event, evidence, why)])
        .await?;
    Ok(())
}

/// The statement that stores an order's status.
fn saving_order(order: &OrderId, status: OrderStatus) -> Statement<'_> {
    let sql = "-- save_order\nUPDATE orders SET status = $2 WHERE id = $1 AND status <> $2";
    let values = values![order.as_str(), status.as_str()];
    Statement::new("storing an order's status", sql, values)
}

/// Stores an order's status.
pub(super) async fn save_order<C: Sql>(db: &mut C, order: &OrderRecord) -> Result<(), StoreError> {
    db.run(&[saving_order(&order.id, order.status())]).await?;
    Ok(())
}

/// The statement that queues a side effect of a step; each has a key, so that it is queued once in all. One that tells
/// nothing is a transition of its own each time, which its number tells apart: a deposit may be undone and made again. The
/// order is locked.
fn queueing_effect<'a>(
    after: &'a AttemptRecord,
    kind: &'a str,
    told: &'a str,
    at: EpochMs,
) -> Statement<'a> {
    let sql = if told.is_empty() {
        queue_effect!(
            "coalesce(':' || CAST(1 + nullif((SELECT count(*) FROM outbox WHERE attempt_id = $2 AND kind = $3), 0) AS TEXT), '')"
        )
    } else {
        queue_effect!("':' || $4")
    };
    let order = after.order_id.as_str();
    Statement::new(
        "queueing a side effect",
        sql,
        values![order, after.id.0, kind, told, at],
    )
}
