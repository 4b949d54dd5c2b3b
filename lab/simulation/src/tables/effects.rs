//! The outbox: effects are taken under a lease, and ended by whoever took them last.

use payment::attempt::{Attempt, Step};
use payment::id::OrderId;
use payment::money::Won;
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::effects::{Effect, EffectEnd, EffectKind, EffectsWaiting, NotificationRow};
use server::store::rules::records::effects_of;
use server::store::{AttemptId, AttemptRecord, OrderRecord};

use super::Tables;

/// No lease is ever set an hour ahead.
const ASTRAY: Millis = Millis::from_secs(3_600);

/// One side effect.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) key: String,
    pub(crate) kind: EffectKind,
    order: OrderId,
    attempt: AttemptId,
    payload: String,
    created_at: EpochMs,
    next_at: EpochMs,
    takes: u32,
    pub(crate) done: bool,
    /// How often it was ended for good.
    pub(crate) ended: u32,
}

/// What the shop's own systems are told.
#[derive(Debug, Clone)]
pub(super) struct Notification {
    seq: usize,
    order: OrderId,
    kind: &'static str,
    body: String,
}

impl Tables {
    /// Queues the side effects of a step; each has a key, so that it is queued once in all.
    pub(super) fn queue_effects(
        &mut self,
        before: &Attempt,
        after: &AttemptRecord,
        step: &Step,
        order: &OrderRecord,
        at: EpochMs,
    ) {
        for (kind, payload) in effects_of(before, &after.attempt, step, order.status()) {
            let mut key = format!("{}:{}", kind.as_str(), after.id.0);
            if payload.is_empty() {
                let times = self.index.effects_of.get(&(after.id, kind.as_str()));
                let times = times.copied().unwrap_or(0);
                if times > 0 {
                    key = format!("{key}:{}", times + 1);
                }
            } else {
                key = format!("{key}:{payload}");
            }
            if !self.index.effects.insert(key.clone()) {
                continue;
            }
            let of = self.index.effects_of.entry((after.id, kind.as_str()));
            *of.or_default() += 1;
            self.outbox.push(Queued {
                key,
                kind,
                order: order.id.clone(),
                attempt: after.id,
                payload,
                created_at: at,
                next_at: EpochMs(0),
                takes: 0,
                done: false,
                ended: 0,
            });
        }
    }

    pub(crate) fn take_effects(&mut self, now: EpochMs, lease: Millis, most: u32) -> Vec<Effect> {
        let astray = now.plus(ASTRAY);
        let due = |row: &Queued| !row.done && (row.next_at <= now || row.next_at > astray);
        let mut due: Vec<usize> = (0..self.outbox.len())
            .filter(|index| due(&self.outbox[*index]))
            .collect();
        due.sort_by_key(|index| (self.outbox[*index].next_at, *index));
        due.truncate(most as usize);
        due.sort_unstable();
        for index in &due {
            let row = &mut self.outbox[*index];
            row.next_at = now.plus(lease);
            row.takes += 1;
        }
        due.into_iter()
            .filter_map(|index| self.effect(index))
            .collect()
    }

    fn effect(&self, index: usize) -> Option<Effect> {
        let row = &self.outbox[index];
        let order = self.orders.get(&row.order)?;
        let canceled = row.payload.parse().ok();
        Some(Effect {
            id: i64::try_from(index).ok()?,
            key: row.key.clone(),
            takes: row.takes,
            kind: row.kind,
            order_id: row.order.clone(),
            attempt_id: row.attempt,
            attempt_number: self.attempt(row.attempt)?.number,
            amount: order.amount,
            language: order.language.map(str::to_owned),
            canceled: canceled.and_then(|amount: i64| Won::new(amount).ok()),
            alarm: (row.kind == EffectKind::Alarm).then(|| row.payload.clone()),
            at: row.created_at,
            lines: self.lines(&row.order),
        })
    }

    pub(crate) fn end_effects(&mut self, ends: &[EffectEnd], now: EpochMs) -> Vec<bool> {
        ends.iter().map(|end| self.end_effect(end, now)).collect()
    }

    fn end_effect(&mut self, end: &EffectEnd, now: EpochMs) -> bool {
        let seq = usize::try_from(end.id).unwrap_or(usize::MAX);
        let Some(row) = self.outbox.get_mut(seq) else {
            return false;
        };
        if row.takes != end.takes || row.done {
            return false;
        }
        row.next_at = end.again.map_or(now, |after| now.plus(after));
        row.done = end.again.is_none();
        row.ended += u32::from(row.done);
        let told = Notification {
            seq,
            order: row.order.clone(),
            kind: row.kind.as_str(),
            body: end.notification.clone(),
        };
        let key = row.key.clone();
        self.notifications.entry(key).or_insert(told);
        true
    }

    pub(crate) fn effects_waiting(&self) -> EffectsWaiting {
        let waiting = self.outbox.iter().filter(|row| !row.done);
        EffectsWaiting {
            count: waiting.clone().count() as u64,
            oldest: waiting.map(|row| row.created_at).min(),
        }
    }

    pub(crate) fn is_notified(&self, key: &str) -> bool {
        self.notifications.contains_key(key)
    }

    pub(crate) fn notifications(&self, order: &OrderId) -> Vec<NotificationRow> {
        let of_order = self.notifications.iter();
        let mut told: Vec<_> = of_order.filter(|(_, told)| told.order == *order).collect();
        told.sort_by_key(|(_, told)| told.seq);
        let row = |(key, told): (&String, &Notification)| NotificationRow {
            key: key.clone(),
            kind: told.kind.to_owned(),
            body: told.body.clone(),
        };
        told.into_iter().map(row).collect()
    }
}
