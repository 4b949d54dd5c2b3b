//! Confirm, in the order of the contract: claim, work detached from the connection, deadline, slot, send, record.
//!
//! Knows the store, the gateway and the machine only as ports; how a request becomes a [`Confirm`] and an answer becomes
//! HTTP is elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use payment::attempt::{Attempt, AttemptStatus, Event};
use payment::deadline::Deadline;
use payment::reach::{NotSent, Reach, Reason};
use payment::time::Millis;
use payment::wire::{ConfirmRequest, OrderState, ProblemCode};
use tokio::sync::oneshot;
use tracing::Instrument as _;

use crate::app::{App, Line};
use crate::clock::EpochMs;
use crate::gateway::{ConfirmCall, Told};
use crate::metrics;
use crate::random;
use crate::store::{
    AttemptRecord, Claim, Claimed, Closed, Evidence, OrderRecord, Owner, Recorded, RefundWord,
    StoreError,
};

mod send;

/// How long a record is tried again after the database failed it: soon, then every second until it lands.
const RECORD_RETRY: [Millis; 4] = [
    Millis::new(50),
    Millis::new(200),
    Millis::new(500),
    Millis::new(1_000),
];

/// Beyond the two database waits, the first word takes no longer than this.
const FIRST_WORD_GRACE: Millis = Millis::new(500);

/// A confirm that was parsed and whose shopper is known.
#[derive(Debug, Clone)]
pub struct Confirm {
    /// What the request says.
    pub request: ConfirmRequest,
    /// Who asks.
    pub owner: Owner,
    /// When the shopper has left.
    pub deadline: Deadline,
    /// When it was received, on the server's monotonic clock.
    pub received: Millis,
}

/// The answer to a confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 200: a result, with the order's state.
    Known(OrderState),
    /// 202: unknown or in progress, with the order's state.
    InDoubt(OrderState),
    /// A problem.
    Problem(ProblemCode, Option<Reach>, Option<Reason>),
}

impl Answer {
    const fn refused(code: ProblemCode) -> Self {
        Self::Problem(code, None, None)
    }
}

/// What a started confirm tells while it works.
enum Progress {
    /// The answer is there already: nothing was claimed, or nothing was sent.
    Done(Answer),
    /// The send is being made, and its result comes.
    Sending {
        /// The order's state until then.
        state: OrderState,
        /// When the shopper has left.
        leaves: Millis,
        /// The answer.
        result: oneshot::Receiver<Answer>,
    },
}

/// Starts a confirm and waits for its answer, at the latest until the deadline (without one: the total wait).
///
/// Everything from the claim on runs detached: if the caller is dropped, the work goes on.
pub async fn confirm(app: &Arc<App>, confirm: Confirm) -> Answer {
    match begin(app, confirm).await {
        Progress::Done(answer) => answer,
        Progress::Sending {
            state,
            leaves,
            result,
        } => {
            let left = leaves.less(app.clock.now()).to_duration();
            match tokio::time::timeout(left, result).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Answer::InDoubt(state),
            }
        }
    }
}

/// Starts a confirm for a page without script: returns once its send is being made, and the work goes on.
pub async fn start(app: &Arc<App>, confirm: Confirm) -> Answer {
    match begin(app, confirm).await {
        Progress::Done(answer) => answer,
        Progress::Sending { state, .. } => Answer::InDoubt(state),
    }
}

/// Who speaks first about a confirm: the task that sends it, or the caller that can wait no longer. One atomic step
/// decides, so that "we could not do it" is never said of a confirm that is then sent.
#[derive(Default)]
struct FirstWord(AtomicU8);

impl FirstWord {
    const SENDING: u8 = 1;
    const GIVEN_UP: u8 = 2;

    fn try_take(&self, word: u8) -> bool {
        self.0
            .compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Hands a confirm to a task of its own and returns what that tells first: the claim and, where nothing is sent, the
/// record of that, each bounded by the database wait.
async fn begin(app: &Arc<App>, confirm: Confirm) -> Progress {
    let database_wait = app.config.times.database_wait;
    let longest = database_wait.times(2).plus(FIRST_WORD_GRACE).to_duration();
    let first_word = Arc::new(FirstWord::default());
    let (tell, mut told) = oneshot::channel();
    let task = run(Arc::clone(app), confirm, Arc::clone(&first_word), tell);
    // Safe to drop the caller at any await: the task owns the claim, the send and the record. Its log lines keep the id of
    // the request that began it.
    app.tracker.spawn(task.in_current_span());
    let progress = match tokio::time::timeout(longest, &mut told).await {
        Ok(progress) => progress,
        // The database does not let us say anything about the order, and now nothing will be sent: the page will ask.
        Err(_) if first_word.try_take(FirstWord::GIVEN_UP) => {
            return Progress::Done(Answer::refused(ProblemCode::DatabaseBusy));
        }
        // The send has begun in this very moment.
        Err(_) => told.await,
    };
    progress.unwrap_or(Progress::Done(Answer::refused(ProblemCode::Internal)))
}

async fn run(
    app: Arc<App>,
    confirm: Confirm,
    first_word: Arc<FirstWord>,
    tell: oneshot::Sender<Progress>,
) {
    let (order, attempt) = match claim(&app, &confirm).await {
        Ok(Claimed::Granted { order, attempt }) => (order, attempt),
        Ok(other) => {
            if other == Claimed::AmountMismatch {
                metrics::tampered();
                tracing::warn!(
                    order = %confirm.request.order_id,
                    said = confirm.request.amount.get(),
                    "a confirm names another amount than its order's"
                );
            }
            let _ = tell.send(Progress::Done(refusal(&app, other)));
            return;
        }
        Err(error) => {
            let _ = tell.send(Progress::Done(store_fault(&error)));
            return;
        }
    };
    let _at_work = app.working.begin(attempt.id);
    let admitted = addressed(&app, &attempt).and_then(|(line, call)| {
        let admitted = send::admit(&app, &line, confirm.deadline)?;
        // Nobody waits for a send of which "too busy" was said.
        if first_word.try_take(FirstWord::SENDING) {
            Ok((line, call, admitted))
        } else {
            Err(NotSent::Deadline)
        }
    });
    let (line, call, admitted) = match admitted {
        Ok(admitted) => admitted,
        Err(why) => {
            metrics::not_sent(&attempt.gateway, why);
            let told = Told::default();
            let answer = settle(&app, &attempt, Event::SendRefused(why), &told, None).await;
            let _ = tell.send(Progress::Done(answer));
            return;
        }
    };
    let (finish, finished) = oneshot::channel();
    let leaves = leaves_at(&line, &confirm);
    let _ = tell.send(Progress::Sending {
        state: app.order_state(&order),
        leaves,
        result: finished,
    });
    let sent = send::send(&app, &line, &call, admitted, leaves).await;
    let told = &sent.told;
    if let Event::SendRefused(why) = sent.event {
        metrics::not_sent(&attempt.gateway, why);
    }
    if told.alarm {
        tracing::error!(
            attempt = attempt.id.0,
            status = told.status,
            code = told.code,
            "the gateway's answer needs an operator"
        );
    }
    let answer = settle(&app, &attempt, sent.event, told, sent.resent_at).await;
    let _ = finish.send(answer);
}

/// When the shopper of a confirm has left: the deadline, or without one the total wait from receipt.
fn leaves_at(line: &Line, confirm: &Confirm) -> Millis {
    let whole = line.times.total_wait();
    confirm.deadline.answer_by(confirm.received.plus(whole))
}

async fn claim(app: &App, confirm: &Confirm) -> Result<Claimed, StoreError> {
    let Some(first) = app.lines.first() else {
        return Err(StoreError::Corrupt {
            what: "list of gateways",
        });
    };
    let claim = Claim {
        owner: confirm.owner.clone(),
        gateway_order_id: confirm.request.order_id.clone(),
        payment_key: confirm.request.payment_key.clone(),
        amount: confirm.request.amount,
        gateway: first.gateway.name().clone(),
        by_call: app
            .lines
            .iter()
            .filter(|line| line.gateway.capabilities().opens_by_call)
            .map(|line| line.gateway.name().clone())
            .collect(),
        idempotency_key: random::idempotency_key("confirm"),
        reference: random::attempt_reference(),
        node: app.node.clone(),
        at: app.clock.epoch(),
    };
    let claimed = app.store.claim(claim).await;
    if let Ok(Claimed::Granted { order, .. }) = &claimed {
        app.cache.forget(&order.id);
    }
    claimed
}

/// What a claimed attempt needs to be sent. A gateway taken out of the configuration while its window was open can be sent
/// nothing.
fn addressed(app: &App, attempt: &AttemptRecord) -> Result<(Arc<Line>, ConfirmCall), NotSent> {
    let line = app.line(&attempt.gateway).ok_or(NotSent::Circuit)?;
    let call = call_of(attempt).ok_or(NotSent::Circuit)?;
    Ok((Arc::clone(line), call))
}

fn call_of(attempt: &AttemptRecord) -> Option<ConfirmCall> {
    Some(ConfirmCall {
        handle: attempt.handle.clone(),
        payment_key: attempt.payment_key.clone()?,
        gateway_order_id: attempt.gateway_order_id.clone(),
        amount: attempt.attempt.expected.amount,
        idempotency_key: attempt.idempotency_key.clone()?,
    })
}

/// What the gateway literally said, for the evidence.
#[must_use]
pub fn told_text(told: &Told) -> String {
    match told.status {
        Some(status) => format!("{status} {}", told.code),
        None => told.code.clone(),
    }
}

/// Records an outcome until it lands, and turns the recorded truth into the answer.
async fn settle(
    app: &Arc<App>,
    attempt: &AttemptRecord,
    event: Event,
    told: &Told,
    resent_at: Option<EpochMs>,
) -> Answer {
    let recorded = record_until_landed(app, attempt, event, told, resent_at).await;
    app.cache.forget(&recorded.order.id);
    metrics::payment(recorded.after.attempt.status);
    if let Some(alarm) = recorded.alarm {
        metrics::alarm(alarm);
        tracing::error!(
            attempt = attempt.id.0,
            alarm = alarm.as_str(),
            "money needs an operator's eye"
        );
    }
    if recorded.after.ask_at.is_some() {
        app.recovery.notify_one();
    }
    answer_of(&recorded.after.attempt, app.order_state(&recorded.order))
}

/// The money may have moved, so the record is never given up: the attempt stays approving until it lands, and if the
/// process dies first the next start takes the attempt for unknown.
async fn record_until_landed(
    app: &App,
    attempt: &AttemptRecord,
    event: Event,
    told: &Told,
    resent_at: Option<EpochMs>,
) -> Recorded {
    let mut tries = 0_usize;
    loop {
        let evidence = Evidence {
            source: "confirm",
            asked: None,
            resent_at,
            told: told_text(told),
            refunds: RefundWord::default(),
            deposit: told.deposit.clone(),
            at: app.clock.epoch(),
        };
        match app
            .store
            .record(attempt.id, event, evidence, app.late())
            .await
        {
            Ok(recorded) => return recorded,
            Err(error) => {
                tracing::error!(
                    attempt = attempt.id.0,
                    tries,
                    error = &error as &dyn std::error::Error,
                    "recording again"
                );
            }
        }
        let wait = RECORD_RETRY[tries.min(RECORD_RETRY.len() - 1)];
        tries += 1;
        tokio::time::sleep(wait.to_duration()).await;
    }
}

/// The answer that an attempt's stored truth gives, now and for every later repeat of the same confirm.
fn answer_of(attempt: &Attempt, state: OrderState) -> Answer {
    let reach = Some(attempt.reach);
    match attempt.status {
        AttemptStatus::Approved | AttemptStatus::PartiallyCanceled => Answer::Known(state),
        AttemptStatus::Ready
        | AttemptStatus::Approving
        | AttemptStatus::Unknown
        | AttemptStatus::AwaitingDeposit
        | AttemptStatus::Mischarged
        | AttemptStatus::CancelRequested => Answer::InDoubt(state),
        AttemptStatus::Canceled => Answer::refused(ProblemCode::OrderClosed),
        AttemptStatus::Expired => Answer::refused(ProblemCode::AttemptExpired),
        AttemptStatus::Failed => match attempt.reason {
            Some(Reason::NotSent(why)) => {
                Answer::Problem(not_sent_code(why), reach, attempt.reason)
            }
            Some(Reason::PgRefused) => {
                Answer::Problem(ProblemCode::PgRefused, reach, attempt.reason)
            }
            _ => Answer::Problem(ProblemCode::Declined, reach, attempt.reason),
        },
    }
}

const fn not_sent_code(why: NotSent) -> ProblemCode {
    match why {
        NotSent::Cap => ProblemCode::PgCapReached,
        NotSent::Circuit => ProblemCode::CircuitOpen,
        NotSent::Deadline => ProblemCode::DeadlinePassed,
        NotSent::Connect => ProblemCode::PgUnreachable,
    }
}

fn refusal(app: &App, claimed: Claimed) -> Answer {
    match claimed {
        Claimed::Granted { order, .. } => Answer::InDoubt(app.order_state(&order)),
        Claimed::Repeated { order, attempt } => repeated(app, &order, &attempt),
        Claimed::Closed(closed) => Answer::refused(closed_code(closed)),
        Claimed::AmountMismatch => Answer::refused(ProblemCode::AmountMismatch),
        Claimed::KeyUsed => Answer::refused(ProblemCode::PaymentKeyUsed),
        Claimed::NewAttemptNeeded => Answer::refused(ProblemCode::NewAttemptNeeded),
        Claimed::OutOfStock => Answer::refused(ProblemCode::OutOfStock),
    }
}

fn repeated(app: &App, order: &OrderRecord, attempt: &AttemptRecord) -> Answer {
    answer_of(&attempt.attempt, app.order_state(order))
}

/// The code of an order that takes no attempt or confirm.
#[must_use]
pub const fn closed_code(closed: Closed) -> ProblemCode {
    match closed {
        Closed::NotFound => ProblemCode::OrderNotFound,
        Closed::Paid => ProblemCode::OrderAlreadyPaid,
        Closed::Canceled => ProblemCode::OrderClosed,
        Closed::Expired => ProblemCode::OrderExpired,
        Closed::AttemptExpired => ProblemCode::AttemptExpired,
        Closed::InProgress => ProblemCode::AttemptInProgress,
    }
}

fn store_fault(error: &StoreError) -> Answer {
    match error {
        StoreError::Busy => Answer::refused(ProblemCode::DatabaseBusy),
        StoreError::Failed { .. } | StoreError::Corrupt { .. } => {
            tracing::error!(error = error as &dyn std::error::Error, "a claim failed");
            Answer::refused(ProblemCode::Internal)
        }
    }
}
