//! Virtual accounts of attempts: what the gateway told of them, and the secret that came with it.

use super::engine::{Columns, Sql, values};
use crate::clock::EpochMs;
use crate::gateway::deposit::{Account, Deposit};
use crate::gateway::secret::Secret;
use crate::store::{AttemptId, StoreError};

/// Stores what was told. The first secret stays: it came with the answer that issued the account.
pub(super) async fn save<C: Sql>(
    db: &mut C,
    attempt: AttemptId,
    told: &Deposit,
) -> Result<(), StoreError> {
    let sql = "-- save_deposit\nUPDATE attempts SET deposit_bank = $2, deposit_number = $3, \
               deposit_holder = coalesce($4, deposit_holder), deposit_due = coalesce($5, deposit_due), \
               deposit_secret = coalesce(deposit_secret, $6) WHERE id = $1";
    let account = &told.account;
    let values = values![
        attempt.0,
        account.bank.as_str(),
        account.number.as_str(),
        account.holder.as_deref(),
        account.due,
        told.secret.as_ref().map(Secret::expose),
    ];
    db.execute("storing a virtual account", sql, values).await?;
    Ok(())
}

/// The account of a row.
pub(super) fn account<R: Columns>(row: &R) -> Result<Option<Account>, StoreError> {
    let bank = row.text_or_null("deposit_bank")?.map(str::to_owned);
    let number = row.text_or_null("deposit_number")?.map(str::to_owned);
    let holder = row.text_or_null("deposit_holder")?.map(str::to_owned);
    let due = row.integer_or_null("deposit_due")?.map(EpochMs);
    Ok(bank.zip(number).map(|(bank, number)| Account {
        bank,
        number,
        holder,
        due,
    }))
}

/// The secret by which the gateway's own webhooks about an account are known.
pub(super) async fn secret<C: Sql>(
    db: &mut C,
    attempt: AttemptId,
) -> Result<Option<Secret>, StoreError> {
    let sql = "-- deposit_secret\nSELECT deposit_secret FROM attempts WHERE id = $1";
    let doing = "reading a virtual account's secret";
    let Some(row) = db.row(doing, sql, values![attempt.0]).await? else {
        return Ok(None);
    };
    Ok(row.text_or_null("deposit_secret")?.map(Secret::new))
}
