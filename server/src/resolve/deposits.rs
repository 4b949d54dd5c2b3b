//! Virtual accounts: when to ask about one that waits, and when its time is over.

use payment::attempt::AttemptStatus;
use payment::backoff::Backoff;
use payment::time::Millis;

use crate::app::App;
use crate::clock::EpochMs;
use crate::gateway::Told;
use crate::random;
use crate::store::AttemptRecord;

/// A little after the moment at which a word would be an end, so that it is one.
const MARGIN: Millis = Millis::new(1_000);

/// Whether a word that an account waits says that nobody will pay into it any more: the gateway says so, or its due date
/// is over for longer than a deposit takes to be told. A deposit that was undone counts as undone first.
pub(super) fn is_over(app: &App, attempt: &AttemptRecord, told: &Told, asked_at: EpochMs) -> bool {
    let waits = matches!(
        attempt.attempt.status,
        AttemptStatus::AwaitingDeposit | AttemptStatus::Unknown
    );
    let said = told.deposit.as_ref();
    let known = said.map(|deposit| &deposit.account);
    let due = known.or(attempt.deposit.as_ref());
    let due = due.and_then(|account| account.due);
    let grace = app.config.bounds.deposit_grace;
    let passed = due.is_some_and(|due| asked_at >= due.plus(grace));
    waits && (passed || said.is_some_and(|deposit| deposit.over))
}

/// When to ask next about an account that waits: seldom, but not later than its due date, nor than the end of the grace.
pub(super) fn next_look(app: &App, row: &AttemptRecord, asks: u32) -> EpochMs {
    let now = app.clock.epoch();
    let step = now.plus(Backoff::DEPOSIT.after(asks, random::jitter()));
    let due = row.deposit.as_ref().and_then(|account| account.due);
    let grace = app.config.bounds.deposit_grace;
    let ends = due.map(|due| [due.plus(MARGIN), due.plus(grace).plus(MARGIN)]);
    let ends = ends.into_iter().flatten().filter(|at| *at > now);
    ends.min().map_or(step, |end| end.min(step))
}
