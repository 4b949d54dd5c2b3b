//! How a cancel goes on after the gateway was asked: by the age of its key, and by what the gateway lists of it.

use std::sync::Arc;

use payment::id::IdempotencyKey;

use super::{Look, Looked, give_back, refused};
use crate::app::{App, Line};
use crate::clock::EpochMs;
use crate::gateway::{Told, reference_in};
use crate::random;
use crate::store::{Asked, AttemptRecord, CancelTake, RefundRow, StoreError};

/// How many of a key's last characters name its cancel on the gateway's list.
const NAMING: usize = 16;

/// Why a refund's key is renewed that the gateway may have forgotten.
const TOO_OLD: &str = "its key is older than the gateway remembers one";

/// The reason of a cancel that nobody is given a refund by name for, as the gateway keeps it: with what its list is read by.
/// `closes` says that it only closes an account that waits.
pub(super) fn reason(key: &IdempotencyKey, closes: bool) -> String {
    let why = if closes {
        "order canceled before its deposit"
    } else {
        "cancel owed by the shop"
    };
    format!("{why} [{}]", name_of(key))
}

fn name_of(key: &IdempotencyKey) -> &str {
    let text = key.as_str();
    let start = text.len().saturating_sub(NAMING);
    text.get(start..).unwrap_or(text)
}

/// The call that is owed or asked for, as the gateway's list would name it.
enum Ours {
    /// A refund that people asked for.
    Refund(Box<RefundRow>),
    /// A cancel that is owed; its key may not be fixed yet.
    Owed(Option<IdempotencyKey>),
}

impl Ours {
    async fn of(app: &App, attempt: &AttemptRecord) -> Result<Self, StoreError> {
        if attempt.attempt.cancels_on_request() {
            let row = app.store.refund_under_way(attempt.id).await?;
            return Ok(row.map_or(Self::Owed(None), |row| Self::Refund(Box::new(row))));
        }
        Ok(Self::Owed(attempt.cancel_key.clone()))
    }

    fn is_among(&self, reasons: &[String]) -> bool {
        reasons.iter().any(|reason| match self {
            Self::Refund(row) => row.is_listed_as(reason),
            Self::Owed(Some(key)) => reference_in(reason) == Some(name_of(key)),
            Self::Owed(None) => false,
        })
    }
}

/// Whether the gateway still remembers a key that is in use since then; never where it has no keys. One that was not used
/// yet is as good as remembered.
pub(super) fn is_remembered(app: &App, line: &Line, since: Option<EpochMs>) -> bool {
    let remembered = line.gateway.capabilities().idempotency;
    let age = since.map(|since| app.clock.epoch().since(since));
    remembered.is_some_and(|remembered| age.is_none_or(|age| age < remembered))
}

/// Whether the gateway surely knows a repeat of the call for what it is: it has keys, and still remembers this one.
pub(super) async fn tell_repeats(
    app: &App,
    line: &Line,
    attempt: &AttemptRecord,
) -> Result<bool, StoreError> {
    let since = match Ours::of(app, attempt).await? {
        Ours::Refund(row) => Some(row.key_at),
        Ours::Owed(_) => attempt.cancel_key_at,
    };
    Ok(is_remembered(app, line, since))
}

/// Goes on with a cancel after the gateway's word about its charge, which is recorded already; `found` is the row as the
/// look found it, and `listed` whether that word was about a payment at all whose cancels the gateway lists.
pub(super) async fn go_on(
    app: &Arc<App>,
    line: &Line,
    (attempt, found): (AttemptRecord, &AttemptRecord),
    asked: &Asked,
    (listed, told): (bool, &Told),
) -> Result<Looked, StoreError> {
    let ours = Ours::of(app, &attempt).await?;
    if ours.is_among(&told.running) {
        // Its end comes by itself; a second call could only be a second cancel.
        return Ok(Looked::not_yet(attempt));
    }
    if matches!(ours, Ours::Owed(_)) && ours.is_among(&told.aborted) {
        return aborted(app, line, attempt, asked).await;
    }
    let has_keys = line.gateway.capabilities().idempotency.is_some();
    let since = match &ours {
        Ours::Refund(row) => Some(row.key_at),
        Ours::Owed(_) => found.cancel_key_at,
    };
    if has_keys && !is_remembered(app, line, since) {
        if !listed {
            // Nothing was said of it: under a key that is forgotten a repeat might be a second cancel.
            let look = Look::Unseen;
            return Ok(Looked { look, row: attempt });
        }
        // It is not on the list, so the old key did nothing: from here on another tells repeats. Of a cancel that is owed
        // whoever takes its call fixes that.
        if let Ours::Refund(row) = ours {
            let now = app.clock.epoch();
            app.store.renew_refund_key(row.call(), TOO_OLD, now).await?;
        }
    }
    give_back(app, line, attempt, found, asked).await
}

/// An owed cancel that the gateway had accepted and did not do: as good as refused, so it is tried again much later, with a
/// key of its own.
async fn aborted(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    asked: &Asked,
) -> Result<Looked, StoreError> {
    let (id, now, until) = (attempt.id, app.clock.epoch(), asked.lease);
    let take = CancelTake {
        found: attempt.cancel_key.clone(),
        key: random::idempotency_key("cancel"),
    };
    // By this the key is another one before the refusal is recorded: the old one would only repeat its first answer.
    if !app.store.take_cancel_call(id, take, (now, until)).await? {
        return Ok(Looked::not_yet(attempt));
    }
    let told = Told {
        status: Some(200),
        code: "cancel_aborted".to_owned(),
        ..Told::default()
    };
    let looked = refused(app, line, attempt, asked, &told).await?;
    app.store.end_cancel_call(id, until, None).await?;
    Ok(looked)
}
