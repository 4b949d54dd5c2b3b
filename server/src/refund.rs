//! Refunds that people ask for: stored with their amount reserved before any call, then carried out one after the other.
//!
//! The request works on what it began; recovery works on whatever is left, after a crash too. Knows no HTTP and no SQL.

use std::sync::Arc;

use payment::attempt::Attempt;
use payment::id::{IdempotencyKey, OrderId};
use payment::money::Won;
use payment::refund::{Refund, RefundStatus, RefusedFor, free_balance};
use payment::time::Millis;
use payment::wire::{CancelAnswer, ProblemCode, RefundView};
use tokio::sync::oneshot;
use tracing::Instrument as _;

use crate::app::App;
use crate::confirm::closed_code;
use crate::gateway::refund_account::RefundAccount;
use crate::metrics;
use crate::random;
use crate::resolve;
use crate::store::{
    Asker, AttemptId, AttemptRecord, Closed, NewRefund, OrderRecord, RefundAsked, RefundId,
    RefundRow, StoreError,
};

mod account;

/// The first pause between two looks at a refund that somebody waits for; it doubles up to the longest.
const FIRST_PAUSE: Millis = Millis::new(100);
const LONGEST_PAUSE: Millis = Millis::from_secs(1);

/// A wish to have money back.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// Of which order.
    pub order_id: OrderId,
    /// Who asks.
    pub asker: Asker,
    /// The asker's own key of this wish.
    pub client_key: IdempotencyKey,
    /// How much; `None` is all that is left.
    pub amount: Option<Won>,
    /// Why, for people; at most 160 characters.
    pub reason: String,
    /// Where a deposit is to go back to.
    pub account: Option<RefundAccount>,
}

/// The answer to a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 200: given back.
    Done(Box<CancelAnswer>),
    /// 202: waiting, or its result is not known yet.
    UnderWay(Box<CancelAnswer>),
    /// A problem, with what is wrong for people.
    Problem(ProblemCode, Option<String>),
}

impl Answer {
    const fn refused(code: ProblemCode) -> Self {
        Self::Problem(code, None)
    }
}

/// A wish that is stored.
enum Wished {
    /// A refund, by its row.
    Refund(RefundId),
    /// An account of an order that is to be closed.
    Closing(OrderId, AttemptId),
}

/// What a wish tells as soon as it is stored.
enum Started {
    /// There is nothing to wait for.
    Ended(Answer),
    /// It is stored and worked on.
    Open {
        /// What it is.
        what: Wished,
        /// What to answer until its end.
        answer: Answer,
        /// How long a page holds the response.
        wait: Millis,
        /// Word that this work is over.
        over: oneshot::Receiver<()>,
    },
}

/// Stores a wish, carries it out and waits for its end, at most as long as a page holds a response.
///
/// The work is detached: if the caller is dropped, it goes on.
pub async fn cancel(app: &Arc<App>, cancel: Cancel) -> Answer {
    match begin(app, cancel).await {
        Started::Ended(answer) => answer,
        Started::Open {
            what,
            answer,
            wait,
            over,
        } => wait_for_end(app, &what, answer, (wait, over)).await,
    }
}

/// The same for a page without script: returns once the wish is stored.
pub async fn start(app: &Arc<App>, cancel: Cancel) -> Answer {
    match begin(app, cancel).await {
        Started::Ended(answer) | Started::Open { answer, .. } => answer,
    }
}

async fn begin(app: &Arc<App>, cancel: Cancel) -> Started {
    let (tell, told) = oneshot::channel();
    // Safe to drop the caller at any await: the task owns the wish and its work, and recovery what it leaves.
    let task = run(Arc::clone(app), cancel, tell).in_current_span();
    app.tracker.spawn(task);
    told.await
        .unwrap_or(Started::Ended(Answer::refused(ProblemCode::Internal)))
}

async fn run(app: Arc<App>, cancel: Cancel, tell: oneshot::Sender<Started>) {
    let by = cancel.asker.as_str();
    let wish = account::Wish {
        order: cancel.order_id.clone(),
        by,
        amount: cancel.amount,
        names_account: cancel.account.is_some(),
    };
    let new = NewRefund {
        order_id: cancel.order_id,
        asker: cancel.asker,
        client_key: cancel.client_key,
        amount: cancel.amount,
        reason: cancel.reason,
        account: cancel.account,
        reference: random::request_id(),
        at: app.clock.epoch(),
    };
    let (order, row) = match app.store.ask_refund(new).await {
        Ok(RefundAsked::Reserved(order, row)) => {
            metrics::refund_asked(by);
            tracing::info!(order = %order.id, refund = row.reference, amount = %row.refund.amount, by, "a refund is asked for");
            (order, row)
        }
        Ok(RefundAsked::Repeated(order, row)) => (order, row),
        Ok(RefundAsked::Closed(closed @ (Closed::InProgress | Closed::Canceled))) => {
            account::close(&app, wish, closed, tell).await;
            return;
        }
        Ok(other) => {
            let _ = tell.send(Started::Ended(refusal(&other)));
            return;
        }
        Err(error) => {
            let _ = tell.send(Started::Ended(store_fault(&error)));
            return;
        }
    };
    app.cache.forget(&order.id);
    let answer = answer_of(&app, &order, &row);
    if !row.refund.status.is_open() {
        let _ = tell.send(Started::Ended(answer));
        return;
    }
    let (finish, finished) = oneshot::channel();
    let _ = tell.send(Started::Open {
        what: Wished::Refund(row.id),
        answer,
        wait: app.page_times(&order).response_wait,
        over: finished,
    });
    if let Err(error) = work_on(&app, row.attempt).await {
        tracing::warn!(
            refund = row.reference,
            error = &error as &dyn std::error::Error,
            "a refund is left to recovery"
        );
    }
    let _ = finish.send(());
    // Whatever is left is recovery's, at its own time.
    app.recovery.notify_one();
}

/// Takes the looks of an attempt that are due, as long as one of its refunds is under way (one ends, the next begins), or its
/// account is being closed.
async fn work_on(app: &Arc<App>, id: AttemptId) -> Result<(), StoreError> {
    while !app.stopping.is_cancelled() {
        let Some(attempt) = app.store.attempt(id).await? else {
            break;
        };
        let now = app.clock.epoch();
        let due = attempt.ask_at.filter(|at| *at <= now);
        let line = app.line(&attempt.gateway).map(Arc::clone);
        let (Some(due), Some(line)) = (due, line) else {
            break;
        };
        let lease = now.plus(resolve::look_limit(&line));
        let wanted = attempt.attempt.cancels_on_request() || attempt.attempt.closes_account();
        let takes = wanted
            && app
                .store
                .move_look(id, due, Some(lease), attempt.asks)
                .await?;
        if !takes {
            break;
        }
        let leased = AttemptRecord {
            ask_at: Some(lease),
            looks: attempt.looks.saturating_add(1),
            ..attempt
        };
        resolve::look(app, &line, &leased).await?;
    }
    Ok(())
}

async fn wait_for_end(
    app: &App,
    what: &Wished,
    answer: Answer,
    (wait, mut over): (Millis, oneshot::Receiver<()>),
) -> Answer {
    let until = app.clock.now().plus(wait);
    let mut pause = FIRST_PAUSE;
    let mut working = true;
    loop {
        match ended(app, what).await {
            Ok(Some(ended)) => return ended,
            Ok(None) => {}
            Err(error) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "a cancel that is waited for could not be read"
            ),
        }
        let left = until.less(app.clock.now());
        if left == Millis::ZERO || app.stopping.is_cancelled() {
            return answer;
        }
        tokio::select! {
            // In this order, so that a simulated run repeats exactly.
            biased;
            _ = &mut over, if working => working = false,
            () = tokio::time::sleep(pause.min(left).to_duration()) => {
                pause = pause.times(2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// The answer of a wish that has come to its end.
async fn ended(app: &App, what: &Wished) -> Result<Option<Answer>, StoreError> {
    let id = match what {
        Wished::Refund(id) => *id,
        Wished::Closing(order, id) => {
            let order = app.store.order(order).await?;
            let answer = order.map(|order| account::answer_of(app, &order, *id));
            return Ok(answer.filter(|answer| !matches!(answer, Answer::UnderWay(_))));
        }
    };
    let Some(row) = app.store.refund(id).await? else {
        return Ok(None);
    };
    if row.refund.status.is_open() {
        return Ok(None);
    }
    let order = app.store.order(&row.order_id).await?;
    Ok(order.map(|order| answer_of(app, &order, &row)))
}

/// The answer that a refund's stored truth gives, now and for every repeat of the same wish.
fn answer_of(app: &App, order: &OrderRecord, row: &RefundRow) -> Answer {
    let charge = order
        .attempts
        .iter()
        .find(|record| record.id == row.attempt);
    let refunded = charge.map_or(Won::ZERO, |record| record.attempt.canceled);
    let told = || {
        Box::new(CancelAnswer {
            order: app.order_state(order),
            refunded,
            refund: Some(RefundView {
                reference: row.reference.clone(),
                amount: row.refund.amount,
                status: row.refund.status.as_str().to_owned(),
                account: row.account_mark.clone(),
            }),
        })
    };
    match row.refund.status {
        RefundStatus::Done => Answer::Done(told()),
        RefundStatus::Waiting | RefundStatus::Asked => Answer::UnderWay(told()),
        RefundStatus::Refused(RefusedFor::Gateway) => {
            let detail = format!("the payment company refused the refund: {}", row.told);
            Answer::Problem(ProblemCode::Declined, Some(detail))
        }
        RefundStatus::Refused(RefusedFor::ExceedsBalance | RefusedFor::GivenBackElsewhere) => {
            let detail = "money was given back elsewhere meanwhile".to_owned();
            Answer::Problem(ProblemCode::RefundExceedsBalance, Some(detail))
        }
    }
}

fn refusal(asked: &RefundAsked) -> Answer {
    match asked {
        RefundAsked::Reserved(..) | RefundAsked::Repeated(..) => {
            Answer::refused(ProblemCode::Internal)
        }
        RefundAsked::KeyReused => Answer::refused(ProblemCode::IdempotencyKeyReused),
        RefundAsked::ExceedsBalance => Answer::refused(ProblemCode::RefundExceedsBalance),
        RefundAsked::OnlyWhole => {
            let detail = "a shopper cancels all that is left of an order".to_owned();
            Answer::Problem(ProblemCode::InvalidRequest, Some(detail))
        }
        RefundAsked::NeedsAccount => {
            let detail = "a deposit goes back only to a bank account that its owner names: the operator names it as \
                          refundAccount, or refunds it in the payment company's own console, from where it is learned";
            Answer::Problem(ProblemCode::InvalidRequest, Some(detail.to_owned()))
        }
        RefundAsked::TakesNoAccount => {
            let detail = "this charge goes back to where it came from: it takes no refundAccount";
            Answer::Problem(ProblemCode::InvalidRequest, Some(detail.to_owned()))
        }
        RefundAsked::TooLate => {
            let detail = "the time to cancel it is over".to_owned();
            Answer::Problem(ProblemCode::OrderClosed, Some(detail))
        }
        RefundAsked::Closed(closed) => Answer::refused(closed_code(*closed)),
    }
}

fn store_fault(error: &StoreError) -> Answer {
    match error {
        StoreError::Busy => Answer::refused(ProblemCode::DatabaseBusy),
        StoreError::Failed { .. } | StoreError::Corrupt { .. } => {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "a refund could not be stored"
            );
            Answer::refused(ProblemCode::Internal)
        }
    }
}

/// What the order's shopper may cancel now: how much would go back, which is nothing where an account waits for its deposit
/// and is only closed. `None` is no cancel.
#[must_use]
pub fn offered(app: &App, order: &OrderRecord, refunds: &[RefundRow]) -> Option<Won> {
    if account::waits(order) {
        return Some(Won::ZERO);
    }
    let (left, paying) = left(order, refunds)?;
    let since = app.clock.epoch().since(paying.claimed_at?);
    (since < app.config.cancel_cutoff).then_some(left)
}

/// How much of an order may still be given back, and the attempt that paid it; `None` where that is nothing, or where it
/// takes an account to give it back to.
#[must_use]
pub fn left<'a>(order: &'a OrderRecord, refunds: &[RefundRow]) -> Option<(Won, &'a AttemptRecord)> {
    let pays = |record: &&AttemptRecord| Attempt::counts_as_paid(&record.attempt);
    let paying = order.attempts.iter().find(pays)?;
    let of_it = refunds.iter().filter(|row| row.attempt == paying.id);
    let known: Vec<Refund> = of_it.map(|row| row.refund).collect();
    let free = free_balance(&paying.attempt, &known);
    (free > Won::ZERO && !paying.attempt.deposit).then_some((free, paying))
}
