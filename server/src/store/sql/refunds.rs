//! Refunds that people ask for: the wish with its reserved amount, and what each word of the gateway does to it.

use payment::attempt::{Alarm, Event, Step};
use payment::id::OrderId;
use payment::money::Won;
use payment::refund::{Heard, Refund, RefundStatus, begin_next};

use super::claim::read_back;
use super::engine::{Columns, Engine, Lock, Sql, Statement, Tx, Value, values};
use super::record::{add_evidence, save_attempt, save_order};
use super::rows::{order_id, won};
use super::{commit, rows};
use crate::clock::EpochMs;
use crate::gateway::refund_account::RefundAccount;
use crate::store::rules::refunds::{
    answers_present_call, changed, concerns_refunds, has_begun, heard, is_same_wish, may_ask,
    nothing_to_give_back, paying, renewed, reserve, was_aborted,
};
use crate::store::{
    AttemptId, AttemptRecord, Closed, Evidence, NewRefund, RefundAsked, RefundCall, RefundId,
    RefundRow, StoreError,
};

/// A statement that selects whole refunds; the tail says which.
macro_rules! select_refunds {
    ($name:literal, $tail:literal) => {
        concat!(
            "-- ",
            $name,
            "\nSELECT id, order_id, attempt_id, asked_won, amount_won, reason, reference, keys, lock_won, state, told, \
             account_bank, account_number, account_holder, account_mark, coalesce(key_at, created_at) AS key_at, created_at, ended_at FROM refunds ",
            $tail
        )
    };
}

const DOING: &str = "reading refunds";

fn corrupt(what: &'static str) -> StoreError {
    StoreError::Corrupt { what }
}

fn refund_row<R: Columns>(row: &R) -> Result<RefundRow, StoreError> {
    let asked = row.integer_or_null("asked_won")?.map(won).transpose()?;
    let status = RefundStatus::parse(row.text("state")?).ok_or_else(|| corrupt("refund state"))?;
    Ok(RefundRow {
        id: RefundId(row.integer("id")?),
        order_id: order_id(row.text("order_id")?)?,
        attempt: AttemptId(row.integer("attempt_id")?),
        asked,
        reason: row.text("reason")?.to_owned(),
        reference: row.text("reference")?.to_owned(),
        refund: Refund {
            status,
            amount: won(row.integer("amount_won")?)?,
            whole: asked.is_none(),
            lock: won(row.integer("lock_won")?)?,
            keys: u32::try_from(row.integer("keys")?).map_err(|_| corrupt("refund keys"))?,
        },
        account: account(row)?,
        account_mark: row.text_or_null("account_mark")?.map(str::to_owned),
        told: row.text("told")?.to_owned(),
        key_at: EpochMs(row.integer("key_at")?),
        created_at: EpochMs(row.integer("created_at")?),
        ended_at: row.integer_or_null("ended_at")?.map(EpochMs),
    })
}

fn account<R: Columns>(row: &R) -> Result<Option<RefundAccount>, StoreError> {
    let bank = row.text_or_null("account_bank")?;
    let number = row.text_or_null("account_number")?;
    let holder = row.text_or_null("account_holder")?;
    let (Some(bank), Some(number), Some(holder)) = (bank, number, holder) else {
        return Ok(None);
    };
    let account = RefundAccount::of(bank, number, holder);
    account.map(Some).ok_or_else(|| corrupt("refund account"))
}

async fn select<C: Sql>(
    db: &mut C,
    sql: &'static str,
    values: &[Value<'_>],
) -> Result<Vec<RefundRow>, StoreError> {
    let rows = db.rows(DOING, sql, values).await?;
    rows.iter().map(refund_row).collect()
}

/// One refund.
pub(super) async fn refund<C: Sql>(
    db: &mut C,
    id: RefundId,
) -> Result<Option<RefundRow>, StoreError> {
    let sql = select_refunds!("refund", "WHERE id = $1");
    Ok(select(db, sql, values![id.0]).await?.pop())
}

/// The refunds of an order, oldest first.
pub(super) async fn of_order<C: Sql>(
    db: &mut C,
    order: &OrderId,
) -> Result<Vec<RefundRow>, StoreError> {
    let sql = select_refunds!("refunds_of", "WHERE order_id = $1 ORDER BY id");
    select(db, sql, values![order.as_str()]).await
}

/// The refund of an attempt that is under way.
pub(super) async fn under_way<C: Sql>(
    db: &mut C,
    attempt: AttemptId,
) -> Result<Option<RefundRow>, StoreError> {
    let sql = select_refunds!(
        "refund_under_way",
        "WHERE attempt_id = $1 AND state = 'asked'"
    );
    Ok(select(db, sql, values![attempt.0]).await?.pop())
}

/// Takes the call of the refund that is under way, unless somebody else's may be in flight. No look lasts twenty minutes:
/// a call that is held for longer was taken by a clock that was wrong.
pub(super) async fn take_call<D: Engine>(
    mut tx: Tx<D>,
    attempt: AttemptId,
    now: EpochMs,
    until: EpochMs,
) -> Result<Option<RefundRow>, StoreError> {
    let sql = "-- take_refund_call\nUPDATE refunds SET called_until = $3 WHERE attempt_id = $1 AND state = 'asked' \
               AND (called_until IS NULL OR called_until <= $2 OR called_until > $2 + 1200000)";
    let doing = "taking a refund's call";
    let values = values![attempt.0, now, until];
    let taken = tx.execute(doing, sql, values).await?;
    let row = if taken == 1 {
        under_way(&mut *tx, attempt).await?
    } else {
        None
    };
    commit::<D>(tx, doing).await?;
    Ok(row)
}

/// Gives a call back, if it is still the giver's.
pub(super) async fn end_call<C: Sql>(
    db: &mut C,
    refund: RefundId,
    until: EpochMs,
) -> Result<(), StoreError> {
    let sql = "-- end_refund_call\nUPDATE refunds SET called_until = NULL WHERE id = $1 AND called_until = $2";
    db.execute("ending a refund's call", sql, values![refund.0, until])
        .await?;
    Ok(())
}

/// Gives back every call that was taken.
pub(super) async fn free_calls<C: Sql>(db: &mut C) -> Result<u64, StoreError> {
    let sql = "-- free_refund_calls\nUPDATE refunds SET called_until = NULL WHERE called_until IS NOT NULL AND state = 'asked'";
    db.execute("freeing refunds' calls", sql, &[]).await
}

async fn of_attempt<C: Sql>(db: &mut C, attempt: AttemptId) -> Result<Vec<RefundRow>, StoreError> {
    let sql = select_refunds!("refunds_of_attempt", "WHERE attempt_id = $1 ORDER BY id");
    select(db, sql, values![attempt.0]).await
}

/// Stores a wish, its amount reserved, and begins it if none of the same charge is under way.
pub(super) async fn ask<D: Engine>(
    mut tx: Tx<D>,
    new: &NewRefund,
) -> Result<RefundAsked, StoreError> {
    let db = &mut *tx;
    db.lock(Lock::Order(&new.order_id)).await?;
    db.lock(Lock::Attempts(&new.order_id)).await?;
    let order = rows::order(db, &new.order_id).await?;
    let Some(order) = order.filter(|order| may_ask(order, &new.asker)) else {
        return Ok(RefundAsked::Closed(Closed::NotFound));
    };
    let sql = select_refunds!("refund_by_key", "WHERE order_id = $1 AND client_key = $2");
    let values = values![new.order_id.as_str(), new.client_key.as_str()];
    if let Some(before) = select(db, sql, values).await?.pop() {
        return Ok(if is_same_wish(&before, new) {
            RefundAsked::Repeated(Box::new(order), Box::new(before))
        } else {
            RefundAsked::KeyReused
        });
    }
    let Some(paying) = paying(&order) else {
        return Ok(nothing_to_give_back(&order));
    };
    let mut refunds = of_attempt(db, paying.id).await?;
    let amount = match reserve(paying, &refunds, new) {
        Ok(amount) => amount,
        Err(refusal) => return Ok(refusal),
    };
    let made = insert(db, paying, new, amount).await?;
    refunds.push(made.clone());
    let known: Vec<Refund> = refunds.iter().map(|row| row.refund).collect();
    let (attempt, next) = begin_next(paying.attempt, known);
    let begun = attempt != paying.attempt;
    if begun {
        save_attempt(db, paying, &attempt, new.at, None).await?;
        db.run(&[making_due(paying.id, new.at)]).await?;
    }
    save_changed(db, &refunds, &next, "", new.at).await?;
    let (order, after) = read_back(db, &new.order_id, paying.id).await?;
    let evidence = Evidence {
        told: format!("{} {amount}", made.reference),
        ..Evidence::plain(new.asker.as_str(), new.at)
    };
    let why = "a refund was asked for";
    add_evidence(db, &after, "cancel_asked", &evidence, why).await?;
    save_order(db, &order).await?;
    let made = refund(db, made.id)
        .await?
        .ok_or_else(|| corrupt("new refund"))?;
    commit::<D>(tx, "storing a refund").await?;
    Ok(RefundAsked::Reserved(Box::new(order), Box::new(made)))
}

async fn insert<C: Sql>(
    db: &mut C,
    paying: &AttemptRecord,
    new: &NewRefund,
    amount: Won,
) -> Result<RefundRow, StoreError> {
    let sql = "-- insert_refund\nINSERT INTO refunds (order_id, attempt_id, client_key, asked_won, amount_won, reason, \
               asker, reference, state, created_at, account_bank, account_number, account_holder, account_mark) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', $9, $10, $11, $12, $13) \
               RETURNING id, order_id, attempt_id, asked_won, amount_won, reason, reference, keys, lock_won, state, \
               told, account_bank, account_number, account_holder, account_mark, created_at AS key_at, created_at, ended_at";
    let account = new.account.as_ref();
    let mark = account.map(RefundAccount::mark);
    let values = values![
        new.order_id.as_str(),
        paying.id.0,
        new.client_key.as_str(),
        new.amount.map(Won::get),
        amount.get(),
        new.reason.as_str(),
        new.asker.as_str(),
        new.reference.as_str(),
        new.at,
        account.map(RefundAccount::bank),
        account.map(RefundAccount::number),
        account.map(RefundAccount::holder),
        mark.as_deref(),
    ];
    let row = db.row("storing a refund", sql, values).await?;
    refund_row(&row.ok_or_else(|| corrupt("new refund"))?)
}

/// The statement that makes an attempt's look due at once: the refund that has just begun is its question.
pub(super) fn making_due(attempt: AttemptId, now: EpochMs) -> Statement<'static> {
    let sql = "-- make_due\nUPDATE attempts SET ask_at = $2, asks = 0 WHERE id = $1";
    Statement::new("beginning a refund", sql, values![attempt.0, now])
}

/// What a word did to the refunds of its attempt.
#[derive(Default)]
pub(super) struct Followed {
    /// The refunds that came to their end.
    pub(super) ended: Vec<RefundRow>,
    /// Whether the next one has begun.
    pub(super) begun: bool,
}

/// Lets the refunds of an attempt follow what was learned of its money: `step` is changed where one ends or begins.
pub(super) async fn follow<C: Sql>(
    db: &mut C,
    stored: &AttemptRecord,
    (event, step): (Event, &mut Step),
    evidence: &Evidence,
) -> Result<Followed, StoreError> {
    if !concerns_refunds(stored, event) {
        return Ok(Followed::default());
    }
    let refunds = of_attempt(db, stored.id).await?;
    let known: Vec<Refund> = refunds.iter().map(|row| row.refund).collect();
    if event == Event::CancelRefused && !answers_present_call(&refunds, evidence) {
        // The refusal of a call whose key is the refund's no more: it says nothing of the one that is under way.
        if stored.attempt.cancels_on_request() {
            step.next = stored.attempt;
            step.alarm = None;
        }
        return Ok(Followed::default());
    }
    let heard: Vec<Heard> = refunds
        .iter()
        .map(|row| heard(row, event, evidence))
        .collect();
    let (attempt, next) = payment::refund::follow(step.next, &known, &heard);
    step.next = attempt;
    if was_aborted(&known, &next, &heard) {
        step.alarm = step.alarm.or(Some(Alarm::CancelRefused));
    }
    let now = evidence.at;
    let ended = save_changed(db, &refunds, &next, &evidence.told, now).await?;
    let begun = has_begun(&known, &next);
    Ok(Followed { ended, begun })
}

/// Stores the refunds that changed; returns those that came to their end.
async fn save_changed<C: Sql>(
    db: &mut C,
    rows: &[RefundRow],
    next: &[Refund],
    told: &str,
    at: EpochMs,
) -> Result<Vec<RefundRow>, StoreError> {
    let mut ended = changed(rows, next, told, at);
    for row in &ended {
        save(db, row).await?;
    }
    ended.retain(|row| !row.refund.status.is_open());
    Ok(ended)
}

async fn save<C: Sql>(db: &mut C, row: &RefundRow) -> Result<(), StoreError> {
    let sql = "-- save_refund\nUPDATE refunds SET state = $2, amount_won = $3, lock_won = $4, keys = $5, told = $6, \
               ended_at = $7, key_at = $8, \
               account_bank = $9, account_number = $10, account_holder = $11 WHERE id = $1";
    let account = row.account.as_ref();
    let values = values![
        row.id.0,
        row.refund.status.as_str(),
        row.refund.amount.get(),
        row.refund.lock.get(),
        row.refund.keys,
        row.told.as_str(),
        row.ended_at,
        row.key_at,
        account.map(RefundAccount::bank),
        account.map(RefundAccount::number),
        account.map(RefundAccount::holder),
    ];
    db.execute("storing a refund", sql, values).await?;
    Ok(())
}

/// Gives a refund a new key under what is left, if `call` is its present one.
pub(super) async fn renew_key<D: Engine>(
    mut tx: Tx<D>,
    call: RefundCall,
    (told, at): (&str, EpochMs),
) -> Result<bool, StoreError> {
    let db = &mut *tx;
    let missing = || corrupt("refund to renew");
    let found = refund(db, call.refund).await?.ok_or_else(missing)?;
    db.lock(Lock::Order(&found.order_id)).await?;
    db.lock(Lock::Attempts(&found.order_id)).await?;
    let now = refund(db, call.refund).await?.ok_or_else(missing)?;
    let attempt = rows::attempt(db, now.attempt).await?.ok_or_else(missing)?;
    let Some(renewed) = renewed(now, call, attempt.attempt.balance(), (told, at)) else {
        return Ok(false);
    };
    save(db, &renewed).await?;
    commit::<D>(tx, "renewing a refund's key").await?;
    Ok(true)
}
