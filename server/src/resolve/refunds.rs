//! Carrying out a refund that people asked for: one call at a time for a charge, the same key until it is proven unused.

use std::sync::Arc;
use std::time::Duration;

use payment::attempt::{Event, Source};
use payment::time::Millis;

use super::{Look, Looked, ask_what_stands, record, warn_if_alarming};
use crate::app::{App, Line};
use crate::confirm::told_text;
use crate::gateway::{CancelCall, CancelOutcome, Told};
use crate::store::{Asked, AttemptRecord, Recorded, RefundCall, RefundRow, StoreError};

/// How long a refund waits for one of the few places for cancels; then it is looked at again later.
const PLACE_WAIT: Duration = Duration::from_secs(5);
/// How long before the end of a look its answer is still recorded again after the database failed.
const RECORD_MARGIN: Millis = Millis::from_secs(5);
/// Between two tries to record an answer.
const RECORD_PAUSE: Millis = Millis::new(250);

/// Makes the call of the refund that is under way.
pub(super) async fn carry_out(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    asked: &Asked,
) -> Result<Looked, StoreError> {
    let place = tokio::time::timeout(PLACE_WAIT, line.cancels.acquire()).await;
    let Ok(Ok(_place)) = place else {
        return Ok(Looked::not_yet(attempt));
    };
    // As late as possible: its key and lock are those of this moment. A hint may have caused a second look, here or on
    // another node, while the first one's call is under way: two calls at once could be refused and carried out.
    let (now, until) = (app.clock.epoch(), asked.lease);
    let taken = app.store.take_refund_call(attempt.id, now, until).await?;
    let Some(refund) = taken else {
        return Ok(Looked::not_yet(attempt));
    };
    let id = refund.id;
    let looked = call(app, line, attempt, asked, refund).await;
    // Not after a failure to record: what was heard may have to be heard again, and nobody else does that meanwhile.
    if looked
        .as_ref()
        .is_ok_and(|looked| looked.look == Look::NotYet)
    {
        app.store.end_refund_call(id, until).await?;
    }
    looked
}

/// Makes the call and records its answer.
async fn call(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    asked: &Asked,
    refund: RefundRow,
) -> Result<Looked, StoreError> {
    let Some(call) = call_of(&refund, &attempt, asked) else {
        return Ok(Looked::not_yet(attempt));
    };
    match line.gateway.cancel(&call).await {
        CancelOutcome::Found(finding, told) => {
            let event = Event::Found(finding, Source::Inquiry);
            let recorded =
                record_until_landed(app, &attempt, event, asked, (&told, refund.call())).await?;
            Ok(Looked {
                look: Look::Resolved,
                row: recorded.after,
            })
        }
        CancelOutcome::Unknown(told) => {
            warn_if_alarming(&attempt, &told);
            Ok(Looked::not_yet(attempt))
        }
        CancelOutcome::RetryWithNewKey(told) => {
            warn_if_alarming(&attempt, &told);
            // It was not executed under this key; the next look asks before it uses the new one.
            app.store
                .renew_refund_key(refund.call(), &told_text(&told), app.clock.epoch())
                .await?;
            Ok(Looked::not_yet(attempt))
        }
        CancelOutcome::Refused(told) => {
            warn_if_alarming(&attempt, &told);
            refused(app, line, attempt, asked, (&told, refund.call())).await
        }
    }
}

/// A refusal speaks of its own call only. An earlier one, of a process that died before it heard the answer, may have been
/// carried out: the gateway is asked, and only what it does not list then is refused.
async fn refused(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    asked: &Asked,
    (told, call): (&Told, RefundCall),
) -> Result<Looked, StoreError> {
    let Some(recorded) = ask_what_stands(app, line, &attempt, asked).await? else {
        // Nobody knows yet, also where the gateway cannot see the payment; the next look asks before it calls again.
        return Ok(Looked::not_yet(attempt));
    };
    let under_way = app.store.refund_under_way(attempt.id).await?;
    if under_way.is_none_or(|refund| refund.call() != call) {
        return Ok(Looked {
            look: Look::Resolved,
            row: recorded.after,
        });
    }
    let asked = asked.holding(&recorded);
    let event = Event::CancelRefused;
    let recorded = record_until_landed(app, &recorded.after, event, &asked, (told, call)).await?;
    Ok(Looked {
        look: Look::Refused,
        row: recorded.after,
    })
}

/// The same bytes for the same key: all that the call says is fixed with it.
fn call_of(refund: &RefundRow, attempt: &AttemptRecord, asked: &Asked) -> Option<CancelCall> {
    let known = &refund.refund;
    Some(CancelCall {
        handle: attempt.handle.clone(),
        payment_key: asked.payment_key.clone(),
        gateway_order_id: attempt.gateway_order_id.clone(),
        amount: (known.amount < known.lock).then_some(known.amount),
        balance: Some(known.lock),
        reason: refund.gateway_reason(),
        account: refund.account.clone(),
        idempotency_key: refund.gateway_key()?,
    })
}

/// The money has moved, or never will: while the look lasts, its record is tried again. After that, or when the process
/// dies, the next look repeats the same key and hears the same answer.
async fn record_until_landed(
    app: &App,
    attempt: &AttemptRecord,
    event: Event,
    asked: &Asked,
    (told, call): (&Told, RefundCall),
) -> Result<Recorded, StoreError> {
    loop {
        let word = (told, Some(call));
        let error = match record(app, attempt, event, ("cancel", asked), word).await {
            Ok(recorded) => return Ok(recorded),
            Err(error) => error,
        };
        if app.clock.epoch().plus(RECORD_MARGIN) >= asked.lease {
            return Err(error);
        }
        tracing::error!(
            attempt = attempt.id.0,
            error = &error as &dyn std::error::Error,
            "recording a refund again"
        );
        tokio::time::sleep(RECORD_PAUSE.to_duration()).await;
    }
}
