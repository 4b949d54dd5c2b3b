//! Virtual accounts: what a word about one changes beside the machine's step.

use payment::time::Millis;

use crate::clock::EpochMs;
use crate::gateway::deposit::{Account, Deposit};
use crate::store::AttemptRecord;

/// How long after the due date the gateway is asked first: its clock and ours may differ.
const AFTER_DUE: Millis = Millis::from_secs(1);

/// Takes what a word tells of an account into a row: from then on the gateway may say that its deposit was undone.
pub fn learn_account(stored: &mut AttemptRecord, told: &Deposit) {
    let known = stored.deposit.take();
    let kept = |of: fn(&Account) -> Option<String>| known.as_ref().and_then(of);
    stored.deposit = Some(Account {
        holder: told
            .account
            .holder
            .clone()
            .or_else(|| kept(|account| account.holder.clone())),
        due: told
            .account
            .due
            .or_else(|| known.as_ref().and_then(|account| account.due)),
        ..told.account.clone()
    });
    stored.attempt = stored.attempt.with_account();
}

/// When to ask about an account because its due date is over; `None` when that moment is over as well.
#[must_use]
pub fn look_at_due(stored: &AttemptRecord, now: EpochMs) -> Option<EpochMs> {
    let due = stored.deposit.as_ref()?.due?.plus(AFTER_DUE);
    (due > now).then_some(due)
}
