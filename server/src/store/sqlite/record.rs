//! Recording what was learned: the machine's step, stock, order status, evidence and outbox in one transaction.

use payment::attempt::{Alarm, Attempt, AttemptStatus, Event, Finding, Holding, LateSuccess, Step};
use payment::id::OrderId;
use payment::money::Currency;
use payment::order::OrderStatus;
use payment::time::Millis;

use super::rows;
use super::{Tx, commit, failed};
use crate::clock::EpochMs;
use crate::store::{Asked, AttemptId, AttemptRecord, Evidence, OrderRecord, Recorded, StoreError};

/// The first look at an attempt that became unknown (spec section 3 of recovery: about one second).
const FIRST_LOOK: Millis = Millis::from_secs(1);
/// How often a virtual account is looked at without a webhook.
const DEPOSIT_LOOK: Millis = Millis::from_secs(60);
/// How often a cancel that the gateway refused is tried again.
const REFUSED_LOOK: Millis = Millis::from_secs(600);

/// Applies an event to an attempt.
pub(super) async fn record(
    mut tx: Tx,
    id: AttemptId,
    event: Event,
    evidence: Evidence,
    late: LateSuccess,
) -> Result<Recorded, StoreError> {
    let stored = rows::attempt(&mut tx, id)
        .await?
        .ok_or(StoreError::Corrupt {
            what: "attempt to record",
        })?;
    let order = rows::order(&mut tx, &stored.order_id)
        .await?
        .ok_or(StoreError::Corrupt {
            what: "order to record",
        })?;
    if let Some(asked) = &evidence.asked
        && !answers(&mut tx, &stored, &order, asked, evidence.at).await?
    {
        commit(tx, "passing a hint on").await?;
        return Ok(Recorded {
            before: stored.attempt,
            after: stored,
            order,
            alarm: None,
            hinted: true,
        });
    }
    let lease = evidence.asked.as_ref().map(|asked| asked.lease);
    let hinted = stored.ask_at.is_some() && stored.ask_at != lease;
    let late = if paid_by_another(&order, id) {
        LateSuccess::Cancel
    } else {
        late
    };
    let before = stored.attempt;
    let step = take_step(&mut tx, &stored, event, late).await?;
    if step.next != before {
        save_attempt(&mut tx, &stored, &step.next, evidence.at, lease).await?;
    }
    if event == Event::CancelRefused && step.next.void && step.next.holds_money() {
        put_off(&mut tx, &stored, evidence.at, lease).await?;
    }
    if let Some(resent_at) = evidence.resent_at {
        save_resend(&mut tx, id, resent_at).await?;
    }
    let after = AttemptRecord {
        attempt: step.next,
        ..stored
    };
    add_evidence(&mut tx, &after, event_name(event), &evidence, step.why).await?;
    let order = rows::order(&mut tx, &order.id)
        .await?
        .ok_or(StoreError::Corrupt {
            what: "order to record",
        })?;
    save_order(&mut tx, &order).await?;
    queue_effects(&mut tx, &before, &after, &step, &order, evidence.at).await?;
    let after = rows::attempt(&mut tx, id)
        .await?
        .ok_or(StoreError::Corrupt {
            what: "recorded attempt",
        })?;
    commit(tx, "recording an outcome").await?;
    Ok(Recorded {
        before,
        after,
        order,
        alarm: step.alarm,
        hinted,
    })
}

/// Whether an answer is about what the row is now. A payment key belongs to the attempt that sent it: where another has
/// sent it since, that one is to be asked about instead.
async fn answers(
    tx: &mut Tx,
    stored: &AttemptRecord,
    order: &OrderRecord,
    asked: &Asked,
    now: EpochMs,
) -> Result<bool, StoreError> {
    if stored.payment_key.as_ref() != Some(&asked.payment_key)
        || stored.claimed_at != asked.claimed_at
    {
        return Ok(false);
    }
    let same_key: Vec<&AttemptRecord> = order
        .attempts
        .iter()
        .filter(|record| record.payment_key.as_ref() == Some(&asked.payment_key))
        .collect();
    let attempts: Vec<Attempt> = same_key.iter().map(|record| record.attempt).collect();
    let owner = payment::order::owner_of_key(&attempts).map(|index| same_key[index].id);
    if owner == Some(stored.id) {
        return Ok(true);
    }
    if let Some(owner) = owner {
        sqlx::query("-- hint_owner\nUPDATE attempts SET ask_at = ?2 WHERE id = ?1")
            .bind(owner.0)
            .bind(now.0)
            .execute(&mut **tx)
            .await
            .map_err(|error| failed("passing a hint on", error))?;
    }
    Ok(false)
}

fn paid_by_another(order: &OrderRecord, id: AttemptId) -> bool {
    order
        .attempts
        .iter()
        .any(|record| record.id != id && record.attempt.counts_as_paid())
}

/// The machine's step with its stock moved. A charge for which there is no stock any more is given back.
async fn take_step(
    tx: &mut Tx,
    stored: &AttemptRecord,
    event: Event,
    late: LateSuccess,
) -> Result<Step, StoreError> {
    let step = stored.attempt.apply(event, late);
    if move_stock(
        tx,
        &stored.order_id,
        stored.attempt.holding(),
        step.next.holding(),
    )
    .await?
    {
        return Ok(step);
    }
    let ended = Attempt {
        status: AttemptStatus::Failed,
        ..stored.attempt
    };
    Ok(ended.apply(event, LateSuccess::Cancel))
}

/// Moves the stock of an order's lines; false, and nothing moved, when there is not enough.
pub(super) async fn move_stock(
    tx: &mut Tx,
    order: &OrderId,
    from: Holding,
    to: Holding,
) -> Result<bool, StoreError> {
    if from == to {
        return Ok(true);
    }
    let sign = |holding, counted| i64::from(to == holding) - i64::from(from == holding && counted);
    let (reserved, sold) = (sign(Holding::Reserved, true), sign(Holding::Sold, true));
    let lines: i64 = sqlx::query_scalar(
        "-- move_stock_lines\nSELECT count(*) FROM order_lines WHERE order_id = ?1",
    )
    .bind(order.as_str())
    .fetch_one(&mut **tx)
    .await
    .map_err(|error| failed("moving stock", error))?;
    let enough = "SELECT count(*) FROM order_lines l JOIN products p ON p.sku = l.sku \
                  WHERE l.order_id = ?1 AND p.total - p.reserved - p.sold >= l.quantity * ?2";
    let can: i64 = sqlx::query_scalar(enough)
        .bind(order.as_str())
        .bind(reserved + sold)
        .fetch_one(&mut **tx)
        .await
        .map_err(|error| failed("moving stock", error))?;
    if can < lines {
        return Ok(false);
    }
    sqlx::query(
        "-- move_stock\nUPDATE products SET \
         reserved = reserved + ?2 * (SELECT quantity FROM order_lines l WHERE l.order_id = ?1 AND l.sku = products.sku), \
         sold = sold + ?3 * (SELECT quantity FROM order_lines l WHERE l.order_id = ?1 AND l.sku = products.sku) \
         WHERE sku IN (SELECT sku FROM order_lines WHERE order_id = ?1)",
    )
    .bind(order.as_str())
    .bind(reserved)
    .bind(sold)
    .execute(&mut **tx)
    .await
    .map(|_| true)
    .map_err(|error| failed("moving stock", error))
}

/// When to ask next about an attempt that has just come into its state.
fn ask_at(next: &Attempt, now: EpochMs) -> Option<EpochMs> {
    match next.status {
        // Its cancel was refused: the money is still there, and an operator was told.
        AttemptStatus::Failed | AttemptStatus::Expired if next.holds_money() => {
            Some(now.plus(REFUSED_LOOK))
        }
        AttemptStatus::Unknown => Some(now.plus(FIRST_LOOK)),
        AttemptStatus::Mischarged | AttemptStatus::CancelRequested => Some(now),
        AttemptStatus::AwaitingDeposit => Some(now.plus(DEPOSIT_LOOK)),
        AttemptStatus::Ready
        | AttemptStatus::Approving
        | AttemptStatus::Approved
        | AttemptStatus::PartiallyCanceled
        | AttemptStatus::Canceled
        | AttemptStatus::Failed
        | AttemptStatus::Expired => None,
    }
}

/// Stores the machine's part of an attempt.
pub(super) async fn save_attempt(
    tx: &mut Tx,
    stored: &AttemptRecord,
    next: &Attempt,
    now: EpochMs,
    own_lease: Option<EpochMs>,
) -> Result<(), StoreError> {
    let moved = next.status != stored.attempt.status;
    // A hint that is not the asker's own place-holder is kept: it may be newer than what is being recorded.
    let hint = stored.ask_at.filter(|at| Some(*at) != own_lease);
    let ask_at = if moved {
        [ask_at(next, now), hint].into_iter().flatten().min()
    } else {
        stored.ask_at
    };
    let unknown_since = match next.status {
        AttemptStatus::Unknown => Some(stored.unknown_since.unwrap_or(now)),
        _ => None,
    };
    let ended = moved && !next.status.is_open() && next.status != AttemptStatus::Ready;
    sqlx::query(
        "-- save_attempt\nUPDATE attempts SET status = ?2, reach = ?3, reason = ?4, charged_won = ?5, \
         charged_in_won = ?6, canceled_won = ?7, deposit = ?8, void = ?9, cancel_won = ?10, cancel_from = ?11, \
         unknown_since = ?12, ask_at = ?13, asks = CASE WHEN ?14 THEN 0 ELSE asks END, \
         ended_at = CASE WHEN ?15 THEN ?16 ELSE ended_at END, version = version + 1 WHERE id = ?1",
    )
    .bind(stored.id.0)
    .bind(next.status.as_str())
    .bind(next.reach.as_str())
    .bind(next.reason.map(payment::reach::Reason::as_str))
    .bind(next.charged.map(|money| money.amount.get()))
    .bind(next.charged.map(|money| i64::from(money.currency == Currency::Krw)))
    .bind(next.canceled.get())
    .bind(i64::from(next.deposit))
    .bind(i64::from(next.void))
    .bind(next.cancel.map(|(amount, _)| amount.get()))
    .bind(next.cancel.map(|(_, from)| from.status().as_str()))
    .bind(unknown_since.map(|at| at.0))
    .bind(ask_at.map(|at| at.0))
    .bind(moved)
    .bind(ended)
    .bind(now.0)
    .execute(&mut **tx)
    .await
    .map(|_| ())
    .map_err(|error| failed("storing an attempt", error))
}

/// A refused cancel of money that is owed is tried again much later, whatever state it leads back to; a newer hint stays.
async fn put_off(
    tx: &mut Tx,
    stored: &AttemptRecord,
    now: EpochMs,
    own_lease: Option<EpochMs>,
) -> Result<(), StoreError> {
    if stored.ask_at.is_some() && stored.ask_at != own_lease {
        return Ok(());
    }
    sqlx::query("-- put_off\nUPDATE attempts SET ask_at = ?2 WHERE id = ?1")
        .bind(stored.id.0)
        .bind(now.plus(REFUSED_LOOK).0)
        .execute(&mut **tx)
        .await
        .map(|_| ())
        .map_err(|error| failed("putting a refused cancel off", error))
}

/// Notes when the last send began: "not found" is no answer until the gateway has settled since then.
async fn save_resend(tx: &mut Tx, id: AttemptId, at: EpochMs) -> Result<(), StoreError> {
    sqlx::query("-- save_resend\nUPDATE attempts SET resent_at = ?2 WHERE id = ?1")
        .bind(id.0)
        .bind(at.0)
        .execute(&mut **tx)
        .await
        .map(|_| ())
        .map_err(|error| failed("storing a resend", error))
}

/// The stable name of an event in the evidence.
fn event_name(event: Event) -> &'static str {
    match event {
        Event::Claimed => "claimed",
        Event::WindowClosed => "window_closed",
        Event::SendRefused(_) => "not_sent",
        Event::RefusedByGateway => "refused_by_gateway",
        Event::AnswerLost(_) => "answer_lost",
        Event::Interrupted => "interrupted",
        Event::Found(Finding::Charged { .. }, _) => "charged",
        Event::Found(Finding::AwaitingDeposit, _) => "awaiting_deposit",
        Event::Found(Finding::Declined(_), _) => "declined",
        Event::Found(Finding::Lapsed, _) => "lapsed",
        Event::Found(Finding::Pending { .. }, _) => "pending",
        Event::Found(Finding::NotFound { .. }, _) => "not_found",
        Event::CancelAsked(_) => "cancel_asked",
        Event::CancelRefused => "cancel_refused",
    }
}

/// Adds to the evidence; the same word twice in a row, with the same state, is kept once.
pub(super) async fn add_evidence(
    tx: &mut Tx,
    attempt: &AttemptRecord,
    event: &str,
    evidence: &Evidence,
    why: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "-- add_evidence\nINSERT INTO evidence (order_id, attempt_id, at, source, event, told, status, why) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (SELECT 1 FROM (SELECT event, status, told \
         FROM evidence WHERE order_id = ?1 AND attempt_id = ?2 ORDER BY id DESC LIMIT 1) last \
         WHERE last.event = ?5 AND last.status = ?7 AND last.told = ?6)",
    )
    .bind(attempt.order_id.as_str())
    .bind(attempt.id.0)
    .bind(evidence.at.0)
    .bind(evidence.source)
    .bind(event)
    .bind(&evidence.told)
    .bind(attempt.attempt.status.as_str())
    .bind(why)
    .execute(&mut **tx)
    .await
    .map(|_| ())
    .map_err(|error| failed("storing evidence", error))
}

async fn save_order(tx: &mut Tx, order: &OrderRecord) -> Result<(), StoreError> {
    sqlx::query("-- save_order\nUPDATE orders SET status = ?2 WHERE id = ?1 AND status <> ?2")
        .bind(order.id.as_str())
        .bind(order.status().as_str())
        .execute(&mut **tx)
        .await
        .map(|_| ())
        .map_err(|error| failed("storing an order's status", error))
}

/// Queues the side effects of a step; each has a key, so that it is queued once in all.
async fn queue_effects(
    tx: &mut Tx,
    before: &Attempt,
    after: &AttemptRecord,
    step: &Step,
    order: &OrderRecord,
    at: EpochMs,
) -> Result<(), StoreError> {
    let id = after.id.0;
    let mut effects = Vec::new();
    if step.pays(before) {
        effects.push(("order_paid", format!("order_paid:{id}"), String::new()));
    }
    if after.attempt.canceled > before.canceled {
        let canceled = after.attempt.canceled;
        let kind = match order.status() {
            OrderStatus::PartiallyCanceled => Some("order_partially_canceled"),
            OrderStatus::Canceled => Some("order_canceled"),
            OrderStatus::Pending | OrderStatus::Paid | OrderStatus::Expired => None,
        };
        effects.extend(kind.map(|kind| {
            (
                kind,
                format!("{kind}:{id}:{canceled}"),
                canceled.to_string(),
            )
        }));
    }
    if let Some(alarm) = step.alarm.map(Alarm::as_str) {
        effects.push(("alarm", format!("alarm:{id}:{alarm}"), alarm.to_owned()));
    }
    for (kind, key, payload) in effects {
        sqlx::query(
            "-- queue_effect\nINSERT INTO outbox (key, order_id, attempt_id, kind, payload, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        )
        .bind(key)
        .bind(order.id.as_str())
        .bind(id)
        .bind(kind)
        .bind(payload)
        .bind(at.0)
        .execute(&mut **tx)
        .await
        .map_err(|error| failed("queueing a side effect", error))?;
    }
    Ok(())
}
