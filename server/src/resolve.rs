//! Resolving: asking a gateway about one attempt, and giving back what must not stand. Never sends a confirm.

use std::sync::Arc;

use payment::attempt::{AttemptStatus, Event, Finding, Source};
use payment::backoff::Backoff;
use payment::id::IdempotencyKey;
use payment::reach::Reason;
use payment::time::Millis;

use crate::app::{App, Line};
use crate::clock::EpochMs;
use crate::confirm::told_text;
use crate::gateway::{CancelCall, CancelOutcome, InquiryOutcome, PaymentNames, Told};
use crate::metrics;
use crate::random;
use crate::store::{
    Asked, AttemptRecord, CancelTake, Evidence, Recorded, RefundCall, RefundWord, StoreError,
};

mod deposits;
mod keys;
mod refunds;

/// What one look at an attempt brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Its state changed.
    Resolved,
    /// The gateway answered, and it is to be asked again.
    NotYet,
    /// The gateway answered that it knows nothing of it yet.
    Unseen,
    /// The gateway did not answer.
    Silent,
    /// The gateway refused to give money back: the record has set a look much later.
    Refused,
}

/// What a look came to, and the row as the look last knew it.
struct Looked {
    look: Look,
    row: AttemptRecord,
}

impl Looked {
    /// To be asked about again.
    fn not_yet(row: AttemptRecord) -> Self {
        let look = Look::NotYet;
        Self { look, row }
    }
}

/// How often the gateway is asked about an attempt that has ended, after a hint that it moved and a word that shows nothing
/// of it yet: a booking may be told before it can be seen. In all, so that forged hints cause no more.
const ENDED_LOOKS: u32 = 7;

/// How long a look may take at most: an inquiry by both routes, or a cancel.
#[must_use]
pub fn look_limit(line: &Line) -> Millis {
    line.times.pg_timeout.plus(Millis::from_secs(30))
}

/// Takes one look at an attempt whose next look is `lease`: asks, and gives money back where it is owed or asked for.
///
/// # Errors
/// [`StoreError`]; the attempt is looked at again when the lease is over.
pub async fn look(
    app: &Arc<App>,
    line: &Line,
    attempt: &AttemptRecord,
) -> Result<Look, StoreError> {
    let (Some(lease), Some(key)) = (attempt.ask_at, attempt.payment_key.clone()) else {
        return Ok(Look::Resolved);
    };
    let asked = Asked {
        payment_key: key,
        claimed_at: attempt.claimed_at,
        look: attempt.looks,
        lease,
    };
    let decided = attempt.attempt.status == AttemptStatus::CancelRequested && attempt.asks == 0;
    // Decided by us a moment ago: the cancel itself is the question. Where no key tells a repeat from a second cancel, the
    // gateway is asked before each, the first as well: a process that died may have made it.
    let looked = if decided && keys::tell_repeats(app, line, attempt).await? {
        give_back(app, line, attempt.clone(), attempt, &asked).await?
    } else {
        ask(app, line, attempt, &asked).await?
    };
    ask_later(app, line, &looked, lease).await?;
    metrics::recovery(looked.look);
    Ok(looked.look)
}

/// Whether the gateway knows a repeated call for what it is.
fn tells_repeats(line: &Line) -> bool {
    line.gateway.capabilities().idempotency.is_some()
}

/// Sets the next look, unless something newer did.
async fn ask_later(
    app: &App,
    line: &Line,
    looked: &Looked,
    lease: EpochMs,
) -> Result<(), StoreError> {
    if looked.look == Look::Refused {
        return Ok(());
    }
    // Its count is the row's own: another look may have begun a new one meanwhile.
    let row = &looked.row;
    // Anything but the look's own place was set by somebody else: a hint, a wish, another look. It stays.
    let from = row.ask_at.filter(|at| *at == lease);
    let Some(from) = from else { return Ok(()) };
    let waits = row.attempt.status.is_open() && row.attempt.status != AttemptStatus::Approving;
    // A look that brought no word is owed still, whatever the state: a hint may have caused it.
    let ended = !row.attempt.status.is_open() && row.attempt.status != AttemptStatus::Ready;
    let unseen = ended && looked.look == Look::Unseen && row.asks < ENDED_LOOKS;
    let again = waits
        || unseen
        || (row.attempt.void && row.attempt.holds_money())
        || looked.look == Look::Silent;
    let now = app.clock.epoch();
    let next = again.then(|| {
        if row.attempt.status == AttemptStatus::AwaitingDeposit {
            return deposits::next_look(app, row, row.asks);
        }
        let next = now.plus(Backoff::INQUIRY.after(row.asks, random::jitter()));
        // Not later than the moment at which "not found" becomes an answer.
        let settles = settles_at(line, row).map(|at| at.plus(Millis::new(100)));
        settles.filter(|at| *at > now && *at < next).unwrap_or(next)
    });
    let asks = row.asks.saturating_add(1);
    app.store
        .move_look(row.id, from, next, asks)
        .await
        .map(|_| ())
}

/// When "not found" and "in progress" become proof of no charge; never for what was not claimed.
fn settles_at(line: &Line, attempt: &AttemptRecord) -> Option<EpochMs> {
    let claimed = attempt.claimed_at?;
    // A first send begins at most a moment after its claim: the database wait covers the record in between. Of a process
    // that died nobody knows whether it sent again; when it was found dead, it had.
    let last_send = match attempt.attempt.reason {
        Some(Reason::Interrupted) => attempt.unknown_since.map_or(claimed, |since| {
            // Of whoever found it dead the clock may be behind.
            since.clamp(claimed, claimed.plus(line.times.total_wait()))
        }),
        _ => attempt.resent_at.unwrap_or(claimed),
    };
    let span = line.times.settling_time().plus(line.times.database_wait);
    Some(last_send.plus(span))
}

/// The gateway's word; with the payment's window over, it is to be the last.
async fn inquired(line: &Line, payment: &PaymentNames, over: bool) -> InquiryOutcome {
    if over {
        line.gateway.close(payment).await
    } else {
        line.gateway.inquire(payment).await
    }
}

/// Asks the gateway and records its word.
async fn ask(
    app: &Arc<App>,
    line: &Line,
    attempt: &AttemptRecord,
    asked: &Asked,
) -> Result<Looked, StoreError> {
    let no_word = |look| {
        Ok(Looked {
            look,
            row: attempt.clone(),
        })
    };
    // By this moment: a payment that is booked while the question travels must not be settled by its answer.
    let asked_at = app.clock.epoch();
    let settled = settles_at(line, attempt).is_some_and(|at| asked_at >= at);
    let outcome = inquired(line, &asked.names(attempt), settled).await;
    let (finding, told) = match outcome {
        InquiryOutcome::NoAnswer(told) => {
            tracing::debug!(
                attempt = attempt.id.0,
                code = told.code,
                "no answer to an inquiry"
            );
            line.note_silent();
            return no_word(Look::Silent);
        }
        InquiryOutcome::NoWord(told) => {
            warn_if_alarming(attempt, &told);
            wake_if_it_was_silent(app, line).await?;
            return no_word(Look::Silent);
        }
        InquiryOutcome::Found(finding, told) => (finding, told),
    };
    warn_if_alarming(attempt, &told);
    wake_if_it_was_silent(app, line).await?;
    let finding = match finding {
        Finding::Pending { .. } => Finding::Pending { settled },
        Finding::NotFound { .. } => Finding::NotFound { settled },
        Finding::AwaitingDeposit if deposits::is_over(app, attempt, &told, asked_at) => {
            Finding::Lapsed
        }
        other @ (Finding::Charged { .. }
        | Finding::AwaitingDeposit
        | Finding::Closed
        | Finding::Declined(_)
        | Finding::Lapsed) => other,
    };
    let event = Event::Found(finding, Source::Inquiry);
    let recorded = record(app, attempt, event, ("inquiry", asked), (&told, None)).await?;
    match recorded.after.attempt.status {
        AttemptStatus::Mischarged => {
            let asked = asked.holding(&recorded);
            demand_back(app, line, recorded.after, attempt, &asked).await
        }
        AttemptStatus::CancelRequested => {
            let asked = asked.holding(&recorded);
            let listed = matches!(finding, Finding::Charged { .. } | Finding::AwaitingDeposit);
            let word = (listed, &told);
            keys::go_on(app, line, (recorded.after, attempt), &asked, word).await
        }
        _ => {
            let weak = matches!(finding, Finding::Pending { .. } | Finding::NotFound { .. });
            let look = if recorded.after.attempt != recorded.before {
                Look::Resolved
            } else if weak {
                Look::Unseen
            } else {
                Look::NotYet
            };
            Ok(Looked {
                look,
                row: recorded.after,
            })
        }
    }
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
    (source, asked): (&'static str, &Asked),
    (told, answers): (&Told, Option<RefundCall>),
) -> Result<Recorded, StoreError> {
    let at = app.clock.epoch();
    let evidence = Evidence {
        source,
        asked: Some(asked.clone()),
        resent_at: None,
        told: told_text(told),
        refunds: RefundWord {
            answers,
            listed: told.given_back.clone(),
            running: told.running.clone(),
            aborted: told.aborted.clone(),
        },
        deposit: told.deposit.clone(),
        at,
    };
    let recorded = app
        .store
        .record(attempt.id, event, evidence, app.late())
        .await?;
    app.cache.forget(&recorded.order.id);
    if let Some(alarm) = recorded.alarm {
        metrics::alarm(alarm);
        tracing::error!(
            attempt = attempt.id.0,
            alarm = alarm.as_str(),
            "money needs an operator's eye"
        );
    }
    for row in &recorded.ended {
        metrics::refund(row.refund.status);
    }
    if recorded.before.status != recorded.after.attempt.status {
        metrics::payment(recorded.after.attempt.status);
        if let Some(since) = attempt.unknown_since {
            metrics::time_to_known(at.since(since));
        }
    }
    Ok(recorded)
}

/// A wrong charge is to go back in full.
async fn demand_back(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    found: &AttemptRecord,
    asked: &Asked,
) -> Result<Looked, StoreError> {
    let charge = attempt
        .attempt
        .charged
        .unwrap_or(attempt.attempt.expected)
        .amount;
    let event = Event::CancelAsked(charge.less(attempt.attempt.canceled));
    let word = (&Told::default(), None);
    let recorded = record(app, &attempt, event, ("cancel", asked), word).await?;
    let asked = asked.holding(&recorded);
    give_back(app, line, recorded.after, found, &asked).await
}

/// Makes the cancel that is owed: with the key that was fixed for it, so that a crash or a lost answer repeats the same.
/// `found` is the row as the look found it, before the gateway was asked.
async fn give_back(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    found: &AttemptRecord,
    asked: &Asked,
) -> Result<Looked, StoreError> {
    if attempt.attempt.cancels_on_request() {
        return refunds::carry_out(app, line, attempt, asked).await;
    }
    let Some((wanted, _)) = attempt.attempt.cancel else {
        return Ok(Looked::not_yet(attempt));
    };
    // No place for a cancel now: it is owed still, and the place of an inquiry is not held for it.
    let Ok(_place) = line.cancels.try_acquire() else {
        return Ok(Looked::not_yet(attempt));
    };
    let charge = attempt
        .attempt
        .charged
        .unwrap_or(attempt.attempt.expected)
        .amount;
    // Where no key tells a repeat from a second cancel, each call has its own: a call that was made since the gateway was
    // asked is seen by it.
    let known_key = found.cancel_key.clone();
    let known_key = known_key.filter(|_| keys::is_remembered(app, line, found.cancel_key_at));
    let key = known_key.unwrap_or_else(|| random::idempotency_key("cancel"));
    let take = CancelTake {
        found: found.cancel_key.clone(),
        key: key.clone(),
    };
    let (now, until) = (app.clock.epoch(), asked.lease);
    // A hint or the gateway's first answer may have caused a second look, here or on another node, while the first one's
    // call is under way.
    if !app
        .store
        .take_cancel_call(attempt.id, take, (now, until))
        .await?
    {
        return Ok(Looked::not_yet(attempt));
    }
    let closes = attempt.attempt.closes_account();
    let call = CancelCall {
        handle: attempt.handle.clone(),
        payment_key: asked.payment_key.clone(),
        gateway_order_id: attempt.gateway_order_id.clone(),
        amount: (wanted < charge).then(|| wanted.less(attempt.attempt.canceled)),
        // Of an account that waits there is no balance yet.
        balance: (!closes).then(|| charge.less(attempt.attempt.canceled)),
        reason: keys::reason(&key, closes),
        account: None,
        idempotency_key: key,
    };
    let (id, mut new_key) = (attempt.id, None);
    let looked = called(app, line, attempt, asked, &call, &mut new_key).await;
    // Not after a failure to record: what was heard may have to be heard again, and nobody else calls meanwhile.
    if looked.is_ok() {
        app.store.end_cancel_call(id, until, new_key).await?;
    }
    looked
}

/// Calls for the cancel that is owed, and records the answer. What it leaves in `new_key` is for the next call.
async fn called(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    asked: &Asked,
    call: &CancelCall,
    new_key: &mut Option<IdempotencyKey>,
) -> Result<Looked, StoreError> {
    match line.gateway.cancel(call).await {
        CancelOutcome::Found(finding, told) => {
            let event = Event::Found(finding, Source::Inquiry);
            let recorded = record(app, &attempt, event, ("cancel", asked), (&told, None)).await?;
            let open = recorded.after.attempt.status == AttemptStatus::CancelRequested;
            let look = if open { Look::NotYet } else { Look::Resolved };
            Ok(Looked {
                look,
                row: recorded.after,
            })
        }
        CancelOutcome::Unknown(told) => {
            warn_if_alarming(&attempt, &told);
            Ok(Looked::not_yet(attempt))
        }
        CancelOutcome::RetryWithNewKey(told) => {
            warn_if_alarming(&attempt, &told);
            *new_key = Some(random::idempotency_key("cancel"));
            Ok(Looked::not_yet(attempt))
        }
        CancelOutcome::Refused(told) if attempt.attempt.closes_account() => {
            warn_if_alarming(&attempt, &told);
            // Should somebody want it closed once more, that is another call.
            *new_key = Some(random::idempotency_key("cancel"));
            not_closed(app, line, attempt, asked, &told).await
        }
        CancelOutcome::Refused(told) => {
            warn_if_alarming(&attempt, &told);
            let looked = refused(app, line, attempt, asked, &told).await?;
            // Tried again, with a key of its own, when the next look asks.
            *new_key = (looked.look == Look::Refused).then(|| random::idempotency_key("cancel"));
            Ok(looked)
        }
    }
}

/// The gateway refused to close an account, most likely because a deposit was faster: it is asked, and only an account that
/// waits still was refused.
async fn not_closed(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    asked: &Asked,
    told: &Told,
) -> Result<Looked, StoreError> {
    let inquiry = line.gateway.inquire(&asked.names(&attempt)).await;
    let InquiryOutcome::Found(finding, word) = inquiry else {
        return Ok(Looked::not_yet(attempt));
    };
    warn_if_alarming(&attempt, &word);
    let event = Event::Found(finding, Source::Inquiry);
    let word = (&word, None);
    let recorded = record(app, &attempt, event, ("inquiry", asked), word).await?;
    if !recorded.after.attempt.closes_account() {
        return Ok(Looked {
            look: Look::Resolved,
            row: recorded.after,
        });
    }
    if finding != Finding::AwaitingDeposit {
        return Ok(Looked::not_yet(recorded.after));
    }
    let asked = asked.holding(&recorded);
    let (event, word) = (Event::CancelRefused, (told, None));
    let recorded = record(app, &recorded.after, event, ("cancel", &asked), word).await?;
    Ok(Looked {
        look: Look::Refused,
        row: recorded.after,
    })
}

/// Has the gateway say what it holds of a charge, and records that; `None` where it does not say.
async fn ask_what_stands(
    app: &App,
    line: &Line,
    attempt: &AttemptRecord,
    asked: &Asked,
) -> Result<Option<Recorded>, StoreError> {
    let inquiry = line.gateway.inquire(&asked.names(attempt)).await;
    let InquiryOutcome::Found(finding @ Finding::Charged { .. }, told) = inquiry else {
        return Ok(None);
    };
    warn_if_alarming(attempt, &told);
    let event = Event::Found(finding, Source::Inquiry);
    let word = (&told, None);
    let recorded = record(app, attempt, event, ("inquiry", asked), word).await?;
    Ok(Some(recorded))
}

/// A refusal speaks of its own call only. Where no key tells calls apart, it may come because an earlier one was carried
/// out meanwhile: the gateway is asked, and only a charge that stands as it was makes the refusal the last word.
async fn refused(
    app: &Arc<App>,
    line: &Line,
    attempt: AttemptRecord,
    asked: &Asked,
    told: &Told,
) -> Result<Looked, StoreError> {
    let (mut attempt, mut asked) = (attempt, asked.clone());
    if !tells_repeats(line) {
        let Some(recorded) = ask_what_stands(app, line, &attempt, &asked).await? else {
            return Ok(Looked::not_yet(attempt));
        };
        let open = recorded.after.attempt.status == AttemptStatus::CancelRequested;
        if !open || recorded.after.attempt.canceled != attempt.attempt.canceled {
            let look = if open { Look::NotYet } else { Look::Resolved };
            return Ok(Looked {
                look,
                row: recorded.after,
            });
        }
        asked = asked.holding(&recorded);
        attempt = recorded.after;
    }
    let event = Event::CancelRefused;
    let recorded = record(app, &attempt, event, ("cancel", &asked), (told, None)).await?;
    Ok(Looked {
        look: Look::Refused,
        row: recorded.after,
    })
}
