//! Recording what was learned, by the same rules as the databases': row, stock, order status and outbox at once.

use payment::attempt::{Attempt, AttemptStatus, Event, LateSuccess, Step};
use payment::id::OrderId;
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::sql::event_name;
use server::store::{
    Asked, AttemptId, AttemptRecord, Evidence, EvidenceRow, OrderRecord, Recorded,
};

use super::Tables;
use super::shelf::takes_more;

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
                told: evidence.told.clone(),
            },
        };
        let mut earlier = self.evidence.iter().rev();
        let same = |last: &Told| {
            (&last.row.event, &last.row.status, &last.row.told)
                == (&entry.row.event, &entry.row.status, &entry.row.told)
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
                ended: Vec::new(),
            });
        }
        let lease = evidence.asked.as_ref().map(|asked| asked.lease);
        let hinted = stored.ask_at.is_some() && stored.ask_at != lease;
        let others = order.attempts.iter().filter(|record| record.id != id);
        let others: Vec<Attempt> = others.map(|record| record.attempt).collect();
        let late = if payment::order::may_revive(&others) {
            late
        } else {
            LateSuccess::Cancel
        };
        let before = stored.attempt;
        let mut step = self.take_step(&stored, event, late);
        let followed = self.follow(&stored, (event, &mut step), evidence);
        if step.next != before {
            self.save_attempt(id, step.next, evidence.at, lease);
        }
        if followed.begun {
            self.make_due(id, evidence.at);
        }
        if event == Event::CancelRefused && step.next.void && step.next.holds_money() {
            self.put_off(id, &stored, evidence.at, lease);
        }
        if evidence.resent_at.is_some()
            && let Some(record) = self.attempt_mut(id)
        {
            record.resent_at = evidence.resent_at;
        }
        if evidence.asked.is_some() && evidence.at >= order.expires_at {
            self.beside.entry(id).or_default().answered_at = Some(evidence.at);
        }
        self.tell(id, event_name(event), evidence);
        self.save_order(&stored.order_id);
        let order = self.order(&stored.order_id)?;
        let after = self.attempt(id)?.clone();
        self.queue_effects(&before, &after, &step, &order, evidence.at);
        let (from, to) = (before.holding(), step.next.holding());
        if !takes_more(from, to) {
            self.move_stock(&order.id, from, to);
        }
        Some(Recorded {
            before,
            after,
            order,
            alarm: step.alarm,
            hinted,
            ended: followed.ended,
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
            return self.is_newest_word(stored.id, asked.look);
        }
        if let Some(record) = owner.and_then(|owner| self.attempt_mut(owner)) {
            record.ask_at = Some(now);
        }
        false
    }

    /// The fence: whether no newer look has recorded a word yet.
    fn is_newest_word(&mut self, id: AttemptId, look: u32) -> bool {
        let beside = self.beside.entry(id).or_default();
        let newest = beside.looked <= look;
        if newest {
            beside.looked = look;
        }
        newest
    }

    /// The machine's step with what it takes of the stock. A charge for which there is no stock any more is given back.
    fn take_step(&mut self, stored: &AttemptRecord, event: Event, late: LateSuccess) -> Step {
        let step = stored.attempt.apply(event, late);
        let (from, to) = (stored.attempt.holding(), step.next.holding());
        if !takes_more(from, to) || self.move_stock(&stored.order_id, from, to) {
            return step;
        }
        let status = match stored.attempt.status {
            AttemptStatus::Expired => AttemptStatus::Expired,
            _ => AttemptStatus::Failed,
        };
        let ended = Attempt {
            status,
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
}
