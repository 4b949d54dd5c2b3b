//! Recording what was learned, by the same rules as the databases': row, stock, order status and outbox at once.

use payment::attempt::{Alarm, Attempt, AttemptStatus, Event, LateSuccess, Step};
use payment::id::OrderId;
use payment::order::OrderStatus;
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::sql::event_name;
use server::store::{
    Asked, AttemptId, AttemptRecord, Evidence, EvidenceRow, OrderRecord, Recorded,
};

use super::Tables;

const FIRST_LOOK: Millis = Millis::from_secs(1);
const DEPOSIT_LOOK: Millis = Millis::from_secs(60);
const REFUSED_LOOK: Millis = Millis::from_secs(600);

/// When to ask next about an attempt that has just come into its state.
pub(super) fn ask_at(next: &Attempt, now: EpochMs) -> Option<EpochMs> {
    match next.status {
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

/// One entry of the evidence.
#[derive(Debug, Clone)]
pub(super) struct Told {
    order: OrderId,
    attempt: AttemptId,
    row: EvidenceRow,
    told: String,
}

impl Tables {
    /// Adds to the evidence; the same word twice in a row, with the same state, is kept once.
    pub(super) fn tell(&mut self, id: AttemptId, event: &str, evidence: &Evidence) {
        let Some(record) = self.attempt(id) else {
            return;
        };
        let entry = Told {
            order: record.order_id.clone(),
            attempt: id,
            row: EvidenceRow {
                at: evidence.at,
                source: evidence.source.to_owned(),
                event: event.to_owned(),
                status: record.attempt.status.as_str().to_owned(),
            },
            told: evidence.told.clone(),
        };
        let mut earlier = self.evidence.iter().rev();
        let same = |last: &Told| {
            (&last.row.event, &last.row.status, &last.told)
                == (&entry.row.event, &entry.row.status, &entry.told)
        };
        if !earlier.find(|told| told.attempt == id).is_some_and(same) {
            self.evidence.push(entry);
        }
    }

    /// The evidence of an order, oldest first.
    pub(crate) fn evidence(&self, order: &OrderId) -> Vec<EvidenceRow> {
        let of = self.evidence.iter().filter(|told| told.order == *order);
        of.map(|told| told.row.clone()).collect()
    }

    /// Applies an event to an attempt; `None` for a row that is not there. `fenced` says whether an answer is taken only
    /// for what it was asked about.
    pub(crate) fn record(
        &mut self,
        id: AttemptId,
        event: Event,
        evidence: &Evidence,
        late: LateSuccess,
        fenced: bool,
    ) -> Option<Recorded> {
        let stored = self.attempt(id)?.clone();
        let order = self.order(&stored.order_id)?;
        if let Some(asked) = &evidence.asked
            && fenced
            && !self.answers(&stored, &order, asked, evidence.at)
        {
            return Some(Recorded {
                before: stored.attempt,
                after: stored,
                order,
                alarm: None,
                hinted: true,
            });
        }
        let lease = evidence.asked.as_ref().map(|asked| asked.lease);
        let hinted = stored.ask_at.is_some() && stored.ask_at != lease;
        let another_paid = order
            .attempts
            .iter()
            .any(|record| record.id != id && record.attempt.counts_as_paid());
        let late = if another_paid {
            LateSuccess::Cancel
        } else {
            late
        };
        let before = stored.attempt;
        let step = self.take_step(&stored, event, late);
        if step.next != before {
            self.save_attempt(id, step.next, evidence.at, lease);
        }
        if event == Event::CancelRefused && step.next.void && step.next.holds_money() {
            self.put_off(id, &stored, evidence.at, lease);
        }
        if evidence.resent_at.is_some()
            && let Some(record) = self.attempt_mut(id)
        {
            record.resent_at = evidence.resent_at;
        }
        self.tell(id, event_name(event), evidence);
        self.save_order(&stored.order_id);
        let order = self.order(&stored.order_id)?;
        let after = self.attempt(id)?.clone();
        self.queue_effects(&before, &after, &step, &order);
        Some(Recorded {
            before,
            after,
            order,
            alarm: step.alarm,
            hinted,
        })
    }

    /// Whether an answer is about what the row is now; where another attempt owns the key, that one is asked about.
    fn answers(
        &mut self,
        stored: &AttemptRecord,
        order: &OrderRecord,
        asked: &Asked,
        now: EpochMs,
    ) -> bool {
        let same = |record: &AttemptRecord| record.payment_key.as_ref() == Some(&asked.payment_key);
        if !same(stored) || stored.claimed_at != asked.claimed_at {
            return false;
        }
        let same_key: Vec<&AttemptRecord> = order
            .attempts
            .iter()
            .filter(|record| same(record))
            .collect();
        let attempts: Vec<Attempt> = same_key.iter().map(|record| record.attempt).collect();
        let owner = payment::order::owner_of_key(&attempts).map(|index| same_key[index].id);
        if owner == Some(stored.id) {
            return true;
        }
        if let Some(record) = owner.and_then(|owner| self.attempt_mut(owner)) {
            record.ask_at = Some(now);
        }
        false
    }

    /// The machine's step with its stock moved. A charge for which there is no stock any more is given back.
    fn take_step(&mut self, stored: &AttemptRecord, event: Event, late: LateSuccess) -> Step {
        let step = stored.attempt.apply(event, late);
        let (from, to) = (stored.attempt.holding(), step.next.holding());
        if self.move_stock(&stored.order_id, from, to) {
            return step;
        }
        let ended = Attempt {
            status: AttemptStatus::Failed,
            ..stored.attempt
        };
        ended.apply(event, LateSuccess::Cancel)
    }

    fn put_off(
        &mut self,
        id: AttemptId,
        stored: &AttemptRecord,
        now: EpochMs,
        own_lease: Option<EpochMs>,
    ) {
        if stored.ask_at.is_some() && stored.ask_at != own_lease {
            return;
        }
        if let Some(record) = self.attempt_mut(id) {
            record.ask_at = Some(now.plus(REFUSED_LOOK));
        }
    }

    fn queue_effects(
        &mut self,
        before: &Attempt,
        after: &AttemptRecord,
        step: &Step,
        order: &OrderRecord,
    ) {
        let id = after.id.0;
        if step.pays(before) {
            self.outbox
                .entry(format!("order_paid:{id}"))
                .or_insert("order_paid");
        }
        if after.attempt.canceled > before.canceled {
            let kind = match order.status() {
                OrderStatus::PartiallyCanceled => Some("order_partially_canceled"),
                OrderStatus::Canceled => Some("order_canceled"),
                OrderStatus::Pending | OrderStatus::Paid | OrderStatus::Expired => None,
            };
            if let Some(kind) = kind {
                let key = format!("{kind}:{id}:{}", after.attempt.canceled);
                self.outbox.entry(key).or_insert(kind);
            }
        }
        if let Some(alarm) = step.alarm.map(Alarm::as_str) {
            self.outbox
                .entry(format!("alarm:{id}:{alarm}"))
                .or_insert("alarm");
        }
    }
}
