//! The outbox: effects are taken under a lease, and ended by whoever took them last.

use payment::id::OrderId;
use payment::time::Millis;

use super::engine::{Columns, Engine, Sql, Statement, Tx, values};
use super::{commit, deliveries, orders, rows};
use crate::clock::EpochMs;
use crate::store::effects::{Effect, EffectEnd, EffectKind, EffectsWaiting, NotificationRow};
use crate::store::{AttemptId, StoreError};

const TAKING: &str = "taking side effects";
const ENDING: &str = "ending side effects";

/// The statement that takes effects: `$1` now, `$2` until when, `$3` how many. What another node is taking is passed over.
macro_rules! take_effects {
    ($passing_over:literal) => {
        concat!(
            "-- take_effects\nUPDATE outbox SET next_at = $2, takes = takes + 1 WHERE id IN (SELECT id FROM outbox \
             WHERE done_at IS NULL AND (next_at <= $1 OR next_at > $1 + 3600000) ORDER BY next_at, id LIMIT $3",
            $passing_over,
            ") RETURNING id"
        )
    };
}
pub(in crate::store) use take_effects;

/// Whether anything is to be taken, so that the writer is left alone when nothing is.
pub(super) async fn is_any_due<C: Sql>(db: &mut C, now: EpochMs) -> Result<bool, StoreError> {
    let now = db.clock(now).await?;
    let sql = "-- is_effect_due\nSELECT id FROM outbox WHERE done_at IS NULL AND (next_at <= $1 OR next_at > $1 + 3600000) \
               LIMIT 1";
    Ok(db.row(TAKING, sql, values![now]).await?.is_some())
}

/// Takes what is due, in the order in which it happened.
pub(super) async fn take<D: Engine>(
    mut tx: Tx<D>,
    now: EpochMs,
    lease: Millis,
    most: u32,
) -> Result<Vec<Effect>, StoreError> {
    let db = &mut *tx;
    let now = db.clock(now).await?;
    let sql = <D::Connection as Sql>::TAKE_EFFECTS;
    let values = values![now, now.plus(lease), most];
    let taken = db.rows(TAKING, sql, values).await?;
    let ids = taken.iter().map(|row| row.integer("id"));
    let mut ids = ids.collect::<Result<Vec<_>, _>>()?;
    ids.sort_unstable();
    let effects = read(db, &ids).await?;
    commit::<D>(tx, TAKING).await?;
    Ok(effects)
}

/// The effects of these ids, each with its order's lines.
async fn read<C: Sql>(db: &mut C, ids: &[i64]) -> Result<Vec<Effect>, StoreError> {
    let sql = "-- effect\nSELECT e.id, e.key, e.takes, e.kind, e.order_id, e.attempt_id, a.number, o.amount_won, o.language, \
               e.payload, e.created_at FROM outbox e JOIN orders o ON o.id = e.order_id \
               JOIN attempts a ON a.id = e.attempt_id WHERE e.id = $1";
    let statements = ids.iter().flat_map(|id| {
        let effect = Statement::new(TAKING, sql, values![*id]);
        [effect, orders::reading_lines_of_effect(*id)]
    });
    let ran = db.run(&statements.collect::<Vec<_>>()).await?;
    let mut effects = Vec::with_capacity(ids.len());
    for (id, pair) in ids.iter().zip(ran.chunks(2)) {
        let row = pair.first().and_then(|ran| ran.rows.first());
        let row = row.ok_or(StoreError::Corrupt {
            what: "side effect",
        });
        match row.and_then(effect) {
            Ok(mut effect) => {
                let lines = pair.get(1).map_or(&[][..], |ran| &ran.rows);
                effect.lines = orders::line_rows(lines)?;
                effects.push(effect);
            }
            // Of a newer version, perhaps: it stays for that one and holds up no other.
            Err(StoreError::Corrupt { what }) => {
                tracing::error!(id, what, "a side effect cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(effects)
}

fn effect<R: Columns>(row: &R) -> Result<Effect, StoreError> {
    let kind = EffectKind::parse(row.text("kind")?);
    let kind = kind.ok_or(StoreError::Corrupt { what: "kind" })?;
    let payload = row.text("payload")?;
    let canceled = payload.parse().ok();
    Ok(Effect {
        id: row.integer("id")?,
        key: row.text("key")?.to_owned(),
        takes: rows::count(row, "takes")?,
        kind,
        order_id: rows::order_id(row.text("order_id")?)?,
        attempt_id: AttemptId(row.integer("attempt_id")?),
        attempt_number: rows::count(row, "number")?,
        amount: rows::won(row.integer("amount_won")?)?,
        language: row.text_or_null("language")?.map(str::to_owned),
        canceled: canceled.map(rows::won).transpose()?,
        alarm: (kind == EffectKind::Alarm).then(|| payload.to_owned()),
        at: EpochMs(row.integer("created_at")?),
        lines: Vec::new(),
    })
}

/// Ends takes that are still the last ones of their rows; which of them were. What is told of each is stored with it, once.
pub(super) async fn end<D: Engine>(
    mut tx: Tx<D>,
    ends: &[EffectEnd],
    now: EpochMs,
) -> Result<Vec<bool>, StoreError> {
    let db = &mut *tx;
    let now = db.clock(now).await?;
    let mut own = vec![false; ends.len()];
    // In the order of their ids, so that two nodes never wait for each other.
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_unstable_by_key(|index| ends[*index].id);
    let ending: Vec<_> = order
        .iter()
        .map(|index| ending(&ends[*index], now))
        .collect();
    let ended = db.run(&ending).await?;
    let mut telling = Vec::new();
    for (index, ended) in order.iter().zip(&ended) {
        own[*index] = ended.changed == 1;
        if own[*index] {
            telling.push(notifying(&ends[*index]));
            telling.push(deliveries::queueing(ends[*index].id, now));
        }
    }
    db.run(&telling).await?;
    commit::<D>(tx, ENDING).await?;
    Ok(own)
}

/// The statement that ends a take, unless the effect was taken again or ended since.
fn ending(end: &EffectEnd, now: EpochMs) -> Statement<'_> {
    let done = end.again.is_none().then_some(now);
    let next = end.again.map_or(now, |after| now.plus(after));
    let sql = "-- end_effect\nUPDATE outbox SET done_at = $3, next_at = $4 WHERE id = $1 AND takes = $2 \
               AND done_at IS NULL";
    Statement::new(ENDING, sql, values![end.id, end.takes, done, next])
}

fn notifying(end: &EffectEnd) -> Statement<'_> {
    let sql = "-- notify\nINSERT INTO notifications (key, seq, order_id, kind, body, created_at) \
               SELECT key, id, order_id, kind, $2, created_at FROM outbox WHERE id = $1 ON CONFLICT DO NOTHING";
    Statement::new(ENDING, sql, values![end.id, end.notification.as_str()])
}

/// What waits.
pub(super) async fn waiting<C: Sql>(db: &mut C) -> Result<EffectsWaiting, StoreError> {
    let sql = "-- effects_waiting\nSELECT count(*) AS waiting, min(created_at) AS oldest FROM outbox WHERE done_at IS NULL";
    let Some(row) = db.row("counting side effects", sql, &[]).await? else {
        return Ok(EffectsWaiting::default());
    };
    Ok(EffectsWaiting {
        count: u64::try_from(row.integer("waiting")?).unwrap_or(0),
        oldest: row.integer_or_null("oldest")?.map(EpochMs),
    })
}

/// What the shop's own systems are told of an order, in the order in which it happened.
pub(super) async fn notifications<C: Sql>(
    db: &mut C,
    order: &OrderId,
) -> Result<Vec<NotificationRow>, StoreError> {
    let sql = "-- notifications\nSELECT key, kind, body FROM notifications WHERE order_id = $1 ORDER BY seq";
    let doing = "reading notifications";
    let rows = db.rows(doing, sql, values![order.as_str()]).await?;
    let notification = |row: &C::Row| {
        Ok(NotificationRow {
            key: row.text("key")?.to_owned(),
            kind: row.text("kind")?.to_owned(),
            body: row.text("body")?.to_owned(),
        })
    };
    rows.iter().map(notification).collect()
}
