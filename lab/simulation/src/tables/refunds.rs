//! Refunds that people ask for, by the same rules as the databases': the wish with its reserved amount, and what each word
//! of the gateway does to it.

use payment::attempt::{Alarm, Event, Step};
use payment::id::{IdempotencyKey, OrderId};
use payment::money::Won;
use payment::refund::{Heard, Refund, RefundStatus, begin_next};
use payment::time::Millis;
use server::clock::EpochMs;
use server::gateway::refund_account::RefundAccount;
use server::store::rules::refunds::{
    answers_present_call, changed, concerns_refunds, has_begun, heard, is_same_wish, may_ask,
    nothing_to_give_back, paying, renewed, reserve, was_aborted,
};
use server::store::{
    AttemptId, AttemptRecord, Closed, Evidence, NewRefund, RefundAsked, RefundCall, RefundId,
    RefundRow,
};

use super::Tables;

/// A refund with its asker's own key.
#[derive(Debug, Clone)]
pub(crate) struct Refunded {
    client_key: IdempotencyKey,
    /// Until when its call may be in flight.
    called_until: Option<EpochMs>,
    pub(crate) row: RefundRow,
}

/// What a word did to the refunds of its attempt.
#[derive(Default)]
pub(super) struct Followed {
    pub(super) ended: Vec<RefundRow>,
    /// Whether the next one has begun.
    pub(super) begun: bool,
}

impl Tables {
    pub(crate) fn refund(&self, id: RefundId) -> Option<&RefundRow> {
        let index = usize::try_from(id.0 - 1).ok()?;
        self.refunds.get(index).map(|refund| &refund.row)
    }

    pub(crate) fn refunds_of(&self, order: &OrderId) -> Vec<RefundRow> {
        let rows = self.refunds.iter().map(|refund| &refund.row);
        rows.filter(|row| row.order_id == *order).cloned().collect()
    }

    fn refunds_of_attempt(&self, attempt: AttemptId) -> Vec<RefundRow> {
        let rows = self.refunds.iter().map(|refund| &refund.row);
        rows.filter(|row| row.attempt == attempt).cloned().collect()
    }

    pub(crate) fn refund_under_way(&self, attempt: AttemptId) -> Option<RefundRow> {
        let rows = self.refunds_of_attempt(attempt).into_iter();
        rows.rev()
            .find(|row| row.refund.status == RefundStatus::Asked)
    }

    /// Takes the call of the refund that is under way, unless somebody else's may be in flight.
    pub(crate) fn take_refund_call(
        &mut self,
        attempt: AttemptId,
        now: EpochMs,
        until: EpochMs,
    ) -> Option<RefundRow> {
        let longest = now.plus(Millis::from_secs(1_200));
        let under_way = self.refunds.iter_mut().find(|refund| {
            refund.row.attempt == attempt && refund.row.refund.status == RefundStatus::Asked
        })?;
        let in_flight = |at: &EpochMs| *at > now && *at <= longest;
        if under_way.called_until.as_ref().is_some_and(in_flight) {
            return None;
        }
        under_way.called_until = Some(until);
        Some(under_way.row.clone())
    }

    /// Gives a call back, if it is still the giver's.
    pub(crate) fn end_refund_call(&mut self, id: RefundId, until: EpochMs) {
        let taken = self.refunds.iter_mut().find(|refund| refund.row.id == id);
        if let Some(refund) = taken.filter(|refund| refund.called_until == Some(until)) {
            refund.called_until = None;
        }
    }

    /// Gives back every call that was taken.
    pub(crate) fn free_calls(&mut self) -> u64 {
        let taken = |refund: &&mut Refunded| {
            refund.called_until.is_some() && refund.row.refund.status == RefundStatus::Asked
        };
        let mut freed = self.free_cancel_calls();
        for refund in self.refunds.iter_mut().filter(taken) {
            refund.called_until = None;
            freed += 1;
        }
        freed
    }

    /// The refunds whose result is still to come.
    pub(crate) fn open_refunds(&self) -> impl Iterator<Item = &RefundRow> {
        let rows = self.refunds.iter().map(|refund| &refund.row);
        rows.filter(|row| row.refund.status.is_open())
    }

    /// Stores a wish, its amount reserved, and begins it if none of the same charge is under way.
    pub(crate) fn ask_refund(&mut self, new: NewRefund) -> RefundAsked {
        let order = self.order(&new.order_id);
        let Some(order) = order.filter(|order| may_ask(order, &new.asker)) else {
            return RefundAsked::Closed(Closed::NotFound);
        };
        let same_wish = |refund: &&Refunded| {
            refund.row.order_id == new.order_id && refund.client_key == new.client_key
        };
        if let Some(before) = self.refunds.iter().find(same_wish) {
            let row = &before.row;
            return if is_same_wish(row, &new) {
                RefundAsked::Repeated(Box::new(order), Box::new(row.clone()))
            } else {
                RefundAsked::KeyReused
            };
        }
        let Some(paying) = paying(&order).cloned() else {
            return nothing_to_give_back(&order);
        };
        match reserve(&paying, &self.refunds_of_attempt(paying.id), &new) {
            Ok(amount) => self.begin_refund(&paying, new, amount),
            Err(refusal) => refusal,
        }
    }

    fn begin_refund(&mut self, paying: &AttemptRecord, new: NewRefund, amount: Won) -> RefundAsked {
        let id = RefundId(i64::try_from(self.refunds.len()).unwrap_or(i64::MAX) + 1);
        let row = RefundRow {
            id,
            order_id: new.order_id.clone(),
            attempt: paying.id,
            asked: new.amount,
            reason: new.reason,
            reference: new.reference,
            refund: Refund {
                status: RefundStatus::Waiting,
                amount,
                whole: new.amount.is_none(),
                lock: Won::ZERO,
                keys: 1,
            },
            account_mark: new.account.as_ref().map(RefundAccount::mark),
            account: new.account,
            told: String::new(),
            key_at: new.at,
            created_at: new.at,
            ended_at: None,
        };
        let told = format!("{} {amount}", row.reference);
        self.refunds.push(Refunded {
            client_key: new.client_key,
            called_until: None,
            row,
        });
        let rows = self.refunds_of_attempt(paying.id);
        let known = rows.iter().map(|row| row.refund).collect();
        let (attempt, next) = begin_next(paying.attempt, known);
        if attempt != paying.attempt {
            self.save_attempt(paying.id, attempt, new.at, None);
            self.make_due(paying.id, new.at);
        }
        self.save_refunds(&rows, &next, "", new.at);
        let evidence = Evidence {
            told,
            ..Evidence::plain(new.asker.as_str(), new.at)
        };
        self.tell(paying.id, "cancel_asked", &evidence);
        self.save_order(&new.order_id);
        match (self.order(&new.order_id), self.refund(id)) {
            (Some(order), Some(row)) => {
                RefundAsked::Reserved(Box::new(order), Box::new(row.clone()))
            }
            _ => RefundAsked::Closed(Closed::NotFound),
        }
    }

    /// The refund that has just begun is its attempt's next question.
    pub(super) fn make_due(&mut self, attempt: AttemptId, now: EpochMs) {
        if let Some(record) = self.attempt_mut(attempt) {
            record.ask_at = Some(now);
            record.asks = 0;
        }
    }

    /// Lets the refunds of an attempt follow what was learned: `step` is changed where one ends or begins.
    pub(super) fn follow(
        &mut self,
        stored: &AttemptRecord,
        (event, step): (Event, &mut Step),
        evidence: &Evidence,
    ) -> Followed {
        if !concerns_refunds(stored, event) {
            return Followed::default();
        }
        let rows = self.refunds_of_attempt(stored.id);
        let known: Vec<Refund> = rows.iter().map(|row| row.refund).collect();
        if event == Event::CancelRefused && !answers_present_call(&rows, evidence) {
            if stored.attempt.cancels_on_request() {
                step.next = stored.attempt;
                step.alarm = None;
            }
            return Followed::default();
        }
        let heard: Vec<Heard> = rows.iter().map(|row| heard(row, event, evidence)).collect();
        let (attempt, next) = payment::refund::follow(step.next, &known, &heard);
        step.next = attempt;
        if was_aborted(&known, &next, &heard) {
            step.alarm = step.alarm.or(Some(Alarm::CancelRefused));
        }
        let ended = self.save_refunds(&rows, &next, &evidence.told, evidence.at);
        let begun = has_begun(&known, &next);
        Followed { ended, begun }
    }

    /// Stores the refunds that changed; returns those that came to their end.
    fn save_refunds(
        &mut self,
        rows: &[RefundRow],
        next: &[Refund],
        told: &str,
        at: EpochMs,
    ) -> Vec<RefundRow> {
        let mut ended = changed(rows, next, told, at);
        for row in &ended {
            self.save_refund(row.clone());
        }
        ended.retain(|row| !row.refund.status.is_open());
        ended
    }

    fn save_refund(&mut self, row: RefundRow) {
        let index = usize::try_from(row.id.0 - 1).unwrap_or(usize::MAX);
        if let Some(stored) = self.refunds.get_mut(index) {
            stored.row = row;
        }
    }

    /// Gives a refund a new key under what is left, if `call` is its present one.
    pub(crate) fn renew_refund_key(
        &mut self,
        call: RefundCall,
        (told, at): (&str, EpochMs),
    ) -> bool {
        let Some(now) = self.refund(call.refund).cloned() else {
            return false;
        };
        let balance = self
            .attempt(now.attempt)
            .map(|record| record.attempt.balance());
        let renewed = balance.and_then(|balance| renewed(now, call, balance, (told, at)));
        let is_renewed = renewed.is_some();
        if let Some(row) = renewed {
            self.save_refund(row);
        }
        is_renewed
    }
}
