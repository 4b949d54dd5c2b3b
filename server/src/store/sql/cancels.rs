//! Calls of cancels that the shop owes: one at a time for an attempt, with the key that was fixed for it.

use payment::id::IdempotencyKey;

use super::engine::{Sql, values};
use crate::clock::EpochMs;
use crate::store::{AttemptId, CancelTake, StoreError};

/// Takes the call of a cancel that is owed, unless somebody else's may be in flight or was made since the taker looked. No
/// look lasts twenty minutes: a call that is held for longer was taken by a clock that was wrong.
pub(super) async fn take_call<C: Sql>(
    db: &mut C,
    attempt: AttemptId,
    take: &CancelTake,
    (now, until): (EpochMs, EpochMs),
) -> Result<bool, StoreError> {
    let sql = "-- take_cancel_call\nUPDATE attempts SET cancel_key = $3, cancel_called_until = $5, \
               cancel_key_at = CASE WHEN cancel_key = $3 THEN coalesce(cancel_key_at, $4) ELSE $4 END WHERE id = $1 \
               AND status = 'cancel_requested' AND cancel_key IS NOT DISTINCT FROM $2 AND (cancel_called_until IS NULL \
               OR cancel_called_until <= $4 OR cancel_called_until > $4 + 1200000)";
    let found = take.found.as_ref().map(IdempotencyKey::as_str);
    let values = values![attempt.0, found, take.key.as_str(), now, until];
    let taken = db.execute("taking a cancel's call", sql, values).await?;
    Ok(taken == 1)
}

/// Gives a call back, if it is still the giver's; with a new key, if there is one.
pub(super) async fn end_call<C: Sql>(
    db: &mut C,
    attempt: AttemptId,
    until: EpochMs,
    new_key: Option<&IdempotencyKey>,
) -> Result<(), StoreError> {
    let sql = "-- end_cancel_call\nUPDATE attempts SET cancel_called_until = NULL, cancel_key = COALESCE($3, cancel_key), \
               cancel_key_at = CASE WHEN $3 IS NULL THEN cancel_key_at END WHERE id = $1 AND cancel_called_until = $2";
    let values = values![attempt.0, until, new_key.map(IdempotencyKey::as_str)];
    db.execute("ending a cancel's call", sql, values).await?;
    Ok(())
}

/// Gives back every call that was taken.
pub(super) async fn free_calls<C: Sql>(db: &mut C) -> Result<u64, StoreError> {
    let sql = "-- free_cancel_calls\nUPDATE attempts SET cancel_called_until = NULL \
               WHERE cancel_called_until IS NOT NULL AND status = 'cancel_requested'";
    db.execute("freeing cancels' calls", sql, &[]).await
}
