//! Calls of cancels that the shop owes.

use payment::attempt::AttemptStatus;
use payment::id::IdempotencyKey;
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::{AttemptId, CancelTake};

use super::Tables;

impl Tables {
    /// Takes the call of a cancel that is owed, unless somebody else's may be in flight or was made since the taker looked.
    pub(crate) fn take_cancel_call(
        &mut self,
        id: AttemptId,
        take: CancelTake,
        (now, until): (EpochMs, EpochMs),
    ) -> bool {
        let longest = now.plus(Millis::from_secs(1_200));
        let beside = self.beside.get(&id);
        let called = beside.and_then(|beside| beside.cancel_called_until);
        if called.is_some_and(|at| at > now && at <= longest) {
            return false;
        }
        let owed = |record: &&mut server::store::AttemptRecord| {
            record.attempt.status == AttemptStatus::CancelRequested
                && record.cancel_key == take.found
        };
        let Some(record) = self.attempt_mut(id).filter(owed) else {
            return false;
        };
        if record.cancel_key.as_ref() != Some(&take.key) || record.cancel_key_at.is_none() {
            record.cancel_key_at = Some(now);
        }
        record.cancel_key = Some(take.key);
        self.beside.entry(id).or_default().cancel_called_until = Some(until);
        true
    }

    /// Gives a call back, if it is still the giver's; with a new key, if there is one.
    pub(crate) fn end_cancel_call(
        &mut self,
        id: AttemptId,
        until: EpochMs,
        new_key: Option<IdempotencyKey>,
    ) {
        let beside = self.beside.entry(id).or_default();
        if beside.cancel_called_until != Some(until) {
            return;
        }
        beside.cancel_called_until = None;
        if let (Some(record), Some(key)) = (self.attempt_mut(id), new_key) {
            record.cancel_key = Some(key);
            record.cancel_key_at = None;
        }
    }

    /// Gives back every call of a cancel that was taken.
    pub(super) fn free_cancel_calls(&mut self) -> u64 {
        let owed: Vec<_> = self
            .attempts
            .iter()
            .filter(|record| record.attempt.status == AttemptStatus::CancelRequested)
            .map(|record| record.id)
            .collect();
        let taken = owed
            .iter()
            .filter_map(|id| self.beside.get_mut(id)?.cancel_called_until.take());
        taken.count() as u64
    }
}
