//! Resolving: asking a gateway about one attempt, and giving back what must not stand. Never sends a confirm.

use std::sync::Arc;

use payment::attempt::{AttemptStatus, Event, Finding, Source};
use payment::backoff::Backoff;
use payment::time::Millis;

use crate::app::{App, Line};
use crate::confirm::told_text;
use crate::gateway::{CancelCall, CancelOutcome, InquiryOutcome, Told};
use crate::metrics;
use crate::random;
use crate::store::{AttemptRecord, Evidence, Recorded, StoreError};

/// What one look at an attempt brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Its state changed.
    Resolved,
    /// The gateway answered, and it is to be asked again.
    NotYet,
    /// The gateway did not answer.
    Silent,
}

/// Takes one look at an attempt: asks, and gives money back where it is owed.
///
/// # Errors
/// [`StoreError`]; the attempt stays due.
pub async fn look(
    app: &Arc<App>,
    line: &Line,
    attempt: &AttemptRecord,
) -> Result<Look, StoreError> {
    let look = if attempt.attempt.status == AttemptStatus::CancelRequested && attempt.asks == 0 {
        // Decided by us a moment ago: the cancel itself is the question.
        give_back(app, line, attempt).await?
    } else {
        ask(app, line, attempt).await?
    };
    if look != Look::Resolved {
        ask_later(app, line, attempt).await?;
    }
    metrics::recovery(look);
    Ok(look)
}

async fn ask_later(app: &App, line: &Line, attempt: &AttemptRecord) -> Result<(), StoreError> {
    let waits =
        attempt.attempt.status.is_open() && attempt.attempt.status != AttemptStatus::Approving;
    let now = app.clock.epoch();
    let wait = Backoff::INQUIRY.after(attempt.asks, random::jitter());
    // Not later than the moment at which "not found" becomes an answer.
    let settles = settles_at(line, attempt).plus(Millis::new(100));
    let next = now.plus(wait);
    let next = if settles > now && settles < next {
        settles
    } else {
        next
    };
    let asks = attempt.asks.saturating_add(1);
    app.store
        .ask_again(attempt.id, waits.then_some(next), asks)
        .await
}

fn settles_at(line: &Line, attempt: &AttemptRecord) -> crate::clock::EpochMs {
    let from = attempt.claimed_at.unwrap_or_default();
    // A send begins at most a moment after its claim: the database wait covers the record in between.
    from.plus(line.times.settling_time())
        .plus(line.times.database_wait)
}

/// Asks the gateway and records its word.
async fn ask(app: &Arc<App>, line: &Line, attempt: &AttemptRecord) -> Result<Look, StoreError> {
    let outcome = line
        .gateway
        .inquire(attempt.payment_key.as_ref(), &attempt.gateway_order_id)
        .await;
    let (finding, told) = match outcome {
        InquiryOutcome::NoAnswer(told) => {
            tracing::debug!(
                attempt = attempt.id.0,
                code = told.code,
                "the gateway did not answer an inquiry"
            );
            line.note_silent();
            return Ok(Look::Silent);
        }
        InquiryOutcome::NoWord(told) => {
            warn_if_alarming(attempt, &told);
            wake_if_it_was_silent(app, line).await?;
            return Ok(Look::NotYet);
        }
        InquiryOutcome::Found(finding, told) => (finding, told),
    };
    warn_if_alarming(attempt, &told);
    wake_if_it_was_silent(app, line).await?;
    let settled = app.clock.epoch() >= settles_at(line, attempt);
    let finding = match finding {
        Finding::Pending { .. } => Finding::Pending { settled },
        Finding::NotFound { .. } => Finding::NotFound { settled },
        other @ (Finding::Charged { .. }
        | Finding::AwaitingDeposit
        | Finding::Declined(_)
        | Finding::Lapsed) => other,
    };
    let recorded = record(
        app,
        attempt,
        Event::Found(finding, Source::Inquiry),
        "inquiry",
        &told,
    )
    .await?;
    if recorded.after.attempt.status == AttemptStatus::Mischarged {
        return demand_back(app, line, &recorded.after).await;
    }
    if recorded.after.attempt.status == AttemptStatus::CancelRequested {
        return give_back(app, line, &recorded.after).await;
    }
    Ok(if recorded.after.attempt == recorded.before {
        Look::NotYet
    } else {
        Look::Resolved
    })
}

fn warn_if_alarming(attempt: &AttemptRecord, told: &Told) {
    if told.alarm {
        tracing::error!(
            attempt = attempt.id.0,
            status = told.status,
            code = told.code,
            "an inquiry's answer needs an operator"
        );
    }
}

/// The first answer from a gateway that had been silent wakes everything that waits for it.
async fn wake_if_it_was_silent(app: &App, line: &Line) -> Result<(), StoreError> {
    if line.note_answer() {
        let woken = app
            .store
            .wake_waiting(line.gateway.name(), app.clock.epoch())
            .await?;
        tracing::info!(gateway = %line.gateway.name(), woken, "the gateway answers again");
        app.recovery.notify_one();
    }
    Ok(())
}

async fn record(
    app: &App,
    attempt: &AttemptRecord,
    event: Event,
    source: &'static str,
    told: &Told,
) -> Result<Recorded, StoreError> {
    let evidence = Evidence {
        source,
        told: told_text(told),
        at: app.clock.epoch(),
    };
    let recorded = app
        .store
        .record(attempt.id, event, evidence, app.late())
        .await?;
    if let Some(alarm) = recorded.alarm {
        tracing::error!(
            attempt = attempt.id.0,
            alarm = alarm.as_str(),
            "money needs an operator's eye"
        );
    }
    if recorded.before.status != recorded.after.attempt.status {
        metrics::payment(recorded.after.attempt.status);
        if let Some(since) = attempt.unknown_since {
            metrics::time_to_known(app.clock.epoch().since(since));
        }
    }
    Ok(recorded)
}

/// A wrong charge is to go back in full.
async fn demand_back(
    app: &Arc<App>,
    line: &Line,
    attempt: &AttemptRecord,
) -> Result<Look, StoreError> {
    let charge = attempt
        .attempt
        .charged
        .unwrap_or(attempt.attempt.expected)
        .amount;
    let left = charge.less(attempt.attempt.canceled);
    let recorded = record(
        app,
        attempt,
        Event::CancelAsked(left),
        "cancel",
        &Told::default(),
    )
    .await?;
    give_back(app, line, &recorded.after).await
}

/// Makes the cancel that is owed: with the key that was fixed for it, so that a crash or a lost answer repeats the same.
async fn give_back(
    app: &Arc<App>,
    line: &Line,
    attempt: &AttemptRecord,
) -> Result<Look, StoreError> {
    let (Some((wanted, _)), Some(payment_key)) =
        (attempt.attempt.cancel, attempt.payment_key.clone())
    else {
        return Ok(Look::NotYet);
    };
    let charge = attempt
        .attempt
        .charged
        .unwrap_or(attempt.attempt.expected)
        .amount;
    let key = app
        .store
        .cancel_key(attempt.id, random::idempotency_key("cancel"), false)
        .await?;
    let call = CancelCall {
        payment_key,
        amount: (wanted < charge).then(|| wanted.less(attempt.attempt.canceled)),
        balance: Some(charge.less(attempt.attempt.canceled)),
        reason: "cancel owed by the shop".to_owned(),
        idempotency_key: key,
    };
    let Ok(_permit) = line.cancels.acquire().await else {
        return Ok(Look::NotYet);
    };
    match line.gateway.cancel(&call).await {
        CancelOutcome::Found(finding, told) => {
            let event = Event::Found(finding, Source::Inquiry);
            let recorded = record(app, attempt, event, "cancel", &told).await?;
            let open = recorded.after.attempt.status == AttemptStatus::CancelRequested;
            Ok(if open { Look::NotYet } else { Look::Resolved })
        }
        CancelOutcome::Unknown(told) => {
            warn_if_alarming(attempt, &told);
            Ok(Look::NotYet)
        }
        CancelOutcome::RetryWithNewKey(told) => {
            warn_if_alarming(attempt, &told);
            app.store
                .cancel_key(attempt.id, random::idempotency_key("cancel"), true)
                .await?;
            Ok(Look::NotYet)
        }
        CancelOutcome::Refused(told) => {
            warn_if_alarming(attempt, &told);
            record(app, attempt, Event::CancelRefused, "cancel", &told).await?;
            Ok(Look::NotYet)
        }
    }
}
