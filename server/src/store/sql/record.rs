//! Recording what was learned: the machine's step, stock, order status, evidence and outbox in one transaction.

use async_trait::async_trait;
use payment::attempt::{Attempt, AttemptStatus, Event, LateSuccess, Step};
use payment::money::Currency;

use super::claim::read_back;
use super::engine::{Columns as _, Engine, Lock, Sql, values};
use super::group::{Change, Done};
use super::stock::move_stock;
use super::{deposits, refunds, rows};
use crate::clock::EpochMs;
use crate::store::rules::deposits::learn_account;
use crate::store::rules::records::{
    REFUSED_LOOK, effects_of, event_name, is_about, is_hinted, late_policy, next_look,
    owner_of_key, unknown_since, without_stock,
};
use crate::store::rules::stock::takes_more;
use crate::store::{Asked, AttemptId, AttemptRecord, Evidence, OrderRecord, Recorded, StoreError};

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
    if step.next != before {
        save_attempt(db, &stored, &step.next, evidence.at, lease).await?;
    }
    if followed.begun {
        refunds::make_due(db, id, evidence.at).await?;
    }
    if event == Event::CancelRefused && step.next.void && step.next.holds_money() {
        put_off(db, &stored, evidence.at, lease).await?;
    }
    if let Some(resent_at) = evidence.resent_at {
        save_resend(db, id, resent_at).await?;
    }
    if evidence.asked.is_some() && evidence.at >= order.expires_at {
        save_answered(db, id, evidence.at).await?;
    }
    let (order, after) = read_back(db, &order.id, id).await?;
    add_evidence(db, &after, event_name(event), evidence, step.why).await?;
    save_order(db, &order).await?;
    queue_effects(db, &before, &after, &step, &order, evidence.at).await?;
    // What takes more was taken with the step. The rest last: other orders wait for it, so it is held for the shortest time.
    let (from, to) = (before.holding(), step.next.holding());
    if !takes_more(from, to) {
        move_stock(db, &order.id, from, to).await?;
    }
    Ok(Recorded {
        before,
        after,
        order,
        alarm: step.alarm,
        hinted,
        ended: followed.ended,
    })
}

/// Locks the order of an attempt and reads both.
pub(super) async fn lock<C: Sql>(
    db: &mut C,
    id: AttemptId,
) -> Result<(OrderRecord, AttemptRecord), StoreError> {
    // To which order it belongs never changes; what it is may, until its order is locked.
    let attempt = rows::attempt(db, id).await?.ok_or(StoreError::Corrupt {
        what: "attempt to record",
    })?;
    let order = &attempt.order_id;
    db.lock(Lock::Order(order)).await?;
    db.lock(Lock::Attempts(order)).await?;
    read_back(db, order, id).await
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

/// Stores the machine's part of an attempt.
pub(super) async fn save_attempt<C: Sql>(
    db: &mut C,
    stored: &AttemptRecord,
    next: &Attempt,
    now: EpochMs,
    own_lease: Option<EpochMs>,
) -> Result<(), StoreError> {
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
    db.execute("storing an attempt", sql, values).await?;
    Ok(())
}

/// A refused cancel of money that is owed is tried again much later, whatever state it leads back to; a newer hint stays.
async fn put_off<C: Sql>(
    db: &mut C,
    stored: &AttemptRecord,
    now: EpochMs,
    own_lease: Option<EpochMs>,
) -> Result<(), StoreError> {
    if is_hinted(stored, own_lease) {
        return Ok(());
    }
    let sql = "-- put_off\nUPDATE attempts SET ask_at = $2 WHERE id = $1";
    let values = values![stored.id.0, now.plus(REFUSED_LOOK)];
    db.execute("putting a refused cancel off", sql, values)
        .await?;
    Ok(())
}

/// Notes when the last send began: "not found" is no answer until the gateway has settled since then.
async fn save_resend<C: Sql>(db: &mut C, id: AttemptId, at: EpochMs) -> Result<(), StoreError> {
    let sql = "-- save_resend\nUPDATE attempts SET resent_at = $2 WHERE id = $1";
    db.execute("storing a resend", sql, values![id.0, at])
        .await?;
    Ok(())
}

/// Notes that the gateway was heard when the order's time was over.
async fn save_answered<C: Sql>(db: &mut C, id: AttemptId, at: EpochMs) -> Result<(), StoreError> {
    let sql = "-- save_answered\nUPDATE attempts SET answered_at = $2 WHERE id = $1";
    db.execute("noting an answer", sql, values![id.0, at])
        .await?;
    Ok(())
}

/// Adds to the evidence; the same word twice in a row, with the same state, is kept once.
pub(super) async fn add_evidence<C: Sql>(
    db: &mut C,
    attempt: &AttemptRecord,
    event: &str,
    evidence: &Evidence,
    why: &str,
) -> Result<(), StoreError> {
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
    db.execute("storing evidence", sql, values).await?;
    Ok(())
}

pub(super) async fn save_order<C: Sql>(db: &mut C, order: &OrderRecord) -> Result<(), StoreError> {
    let sql = "-- save_order\nUPDATE orders SET status = $2 WHERE id = $1 AND status <> $2";
    let values = values![order.id.as_str(), order.status().as_str()];
    db.execute("storing an order's status", sql, values).await?;
    Ok(())
}

/// Queues the side effects of a step; each has a key, so that it is queued once in all.
async fn queue_effects<C: Sql>(
    db: &mut C,
    before: &Attempt,
    after: &AttemptRecord,
    step: &Step,
    order: &OrderRecord,
    at: EpochMs,
) -> Result<(), StoreError> {
    let doing = "queueing a side effect";
    let id = after.id.0;
    for (kind, told) in effects_of(before, &after.attempt, step, order.status()) {
        let kind = kind.as_str();
        let mut key = format!("{kind}:{id}");
        if told.is_empty() {
            // The order is locked, so this is a transition of its own: a deposit may be undone and made again.
            let sql = "-- count_effects\nSELECT count(*) AS earlier FROM outbox WHERE attempt_id = $1 AND kind = $2";
            let row = db.row(doing, sql, values![id, kind]).await?;
            let times = row.map_or(Ok(0), |row| row.integer("earlier"))?;
            if times > 0 {
                key = format!("{key}:{}", times + 1);
            }
        } else {
            key = format!("{key}:{told}");
        }
        let sql = "-- queue_effect\nINSERT INTO outbox (key, order_id, attempt_id, kind, payload, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
        let order = order.id.as_str();
        let values = values![key.as_str(), order, id, kind, told.as_str(), at];
        db.execute(doing, sql, values).await?;
    }
    Ok(())
}
