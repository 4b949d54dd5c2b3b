//! Recording what was learned, by the same rules as the databases': row, stock, order status and outbox at once.

use payment::attempt::{Event, LateSuccess, Step};
use payment::id::OrderId;
use server::clock::EpochMs;
use server::store::rules::deposits::learn_account;
use server::store::rules::records::{
    REFUSED_LOOK, event_name, is_about, is_hinted, late_policy, owner_of_key, without_stock,
};
use server::store::rules::stock::takes_more;
use server::store::{
    Asked, AttemptId, AttemptRecord, Evidence, EvidenceRow, OrderRecord, Recorded,
};

use super::Tables;

/// One entry of the evidence.
#[derive(Debug, Clone)]
pub(super) struct Told {
    order: OrderId,
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
            row: EvidenceRow {
                at: evidence.at,
                source: evidence.source.to_owned(),
                event: event.to_owned(),
                status: record.attempt.status.as_str().to_owned(),
                told: evidence.told.clone(),
            },
        };
        let last = self.index.last_told.get(&id);
        let last = last.map(|row| &self.evidence[*row]);
        let same = |last: &Told| {
            (&last.row.event, &last.row.status, &last.row.told)
                == (&entry.row.event, &entry.row.status, &entry.row.told)
        };
        if !last.is_some_and(same) {
            self.index.last_told.insert(id, self.evidence.len());
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
        let mut stored = self.attempt(id)?.clone();
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
        let hinted = is_hinted(&stored, lease);
        let late = late_policy(&order, id, late);
        let before = stored.attempt;
        if let Some(told) = &evidence.deposit {
            learn_account(&mut stored, told);
            let beside = self.beside.entry(id).or_default();
            beside.secret = beside.secret.take().or_else(|| told.secret.clone());
            if let Some(record) = self.attempt_mut(id) {
                record.deposit.clone_from(&stored.deposit);
            }
        }
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
        if !is_about(stored, asked) {
            return false;
        }
        let owner = owner_of_key(order, &asked.payment_key);
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
        without_stock(&stored.attempt, event)
    }

    fn put_off(
        &mut self,
        id: AttemptId,
        stored: &AttemptRecord,
        now: EpochMs,
        own_lease: Option<EpochMs>,
    ) {
        if is_hinted(stored, own_lease) {
            return;
        }
        if let Some(record) = self.attempt_mut(id) {
            record.ask_at = Some(now.plus(REFUSED_LOOK));
        }
    }
}
