//! Cancelling an order whose virtual account waits for its deposit: nothing was paid, so nothing goes back, and the account is
//! closed at the gateway. A deposit that is faster pays the order, and is told as that.

use std::sync::Arc;

use payment::attempt::{AttemptStatus, Event};
use payment::id::OrderId;
use payment::money::Won;
use payment::wire::{CancelAnswer, ProblemCode};
use tokio::sync::oneshot;

use super::{Answer, Started, Wished, refusal, store_fault, work_on};
use crate::app::App;
use crate::store::{
    AttemptId, AttemptRecord, Closed, Evidence, OrderRecord, RefundAsked, StoreError,
};

/// Who wants which order cancelled, and how.
pub(super) struct Wish {
    /// Which.
    pub(super) order: OrderId,
    /// `shopper` or `operator`.
    pub(super) by: &'static str,
    /// How much was asked to have back, if that was named.
    pub(super) amount: Option<Won>,
    /// Whether a bank account was named to give money back to.
    pub(super) names_account: bool,
}

/// Closes the account of an order that has nothing to give back; where no account waits, that is refused as before, with
/// what the order is. Repeats find the wish by the order's own state, whatever key they come with.
pub(super) async fn close(
    app: &Arc<App>,
    wish: Wish,
    closed: Closed,
    tell: oneshot::Sender<Started>,
) {
    let (order, id) = match ask(app, &wish, closed).await {
        Ok(Ok(asked)) => asked,
        Ok(Err(refused)) => {
            let _ = tell.send(Started::Ended(refused));
            return;
        }
        Err(error) => {
            let _ = tell.send(Started::Ended(store_fault(&error)));
            return;
        }
    };
    let answer = answer_of(app, &order, id);
    if !matches!(answer, Answer::UnderWay(_)) {
        let _ = tell.send(Started::Ended(answer));
        return;
    }
    let (finish, finished) = oneshot::channel();
    let _ = tell.send(Started::Open {
        what: Wished::Closing(order.id.clone(), id),
        answer,
        wait: app.page_times(&order).response_wait,
        over: finished,
    });
    if let Err(error) = work_on(app, id).await {
        tracing::warn!(
            attempt = id.0,
            error = &error as &dyn std::error::Error,
            "closing an account is left to recovery"
        );
    }
    let _ = finish.send(());
    // Whatever is left is recovery's, at its own time.
    app.recovery.notify_one();
}

/// Records the wish; the order as it is then, and whose account it is.
async fn ask(
    app: &App,
    wish: &Wish,
    closed: Closed,
) -> Result<Result<(OrderRecord, AttemptId), Answer>, StoreError> {
    let found = app.store.order(&wish.order).await?;
    let account = found.and_then(|order| account_of(&order).map(|record| (record, order)));
    let Some((account, order)) = account else {
        return Ok(Err(refusal(&RefundAsked::Closed(closed))));
    };
    if wish.names_account {
        return Ok(Err(refusal(&RefundAsked::TakesNoAccount)));
    }
    if wish.amount.is_some_and(|amount| amount != order.amount) {
        return Ok(Err(refusal(&RefundAsked::OnlyWhole)));
    }
    if account.attempt.status != AttemptStatus::AwaitingDeposit {
        return Ok(Ok((order, account.id)));
    }
    let evidence = Evidence::plain(wish.by, app.clock.epoch());
    let recorded = app
        .store
        .record(account.id, Event::CloseAsked, evidence, app.late())
        .await?;
    app.cache.forget(&wish.order);
    tracing::info!(order = %wish.order, by = wish.by, "an account that waits is to be closed");
    Ok(Ok((recorded.order, account.id)))
}

/// The attempt of an order whose account waits, is being closed, or was closed unpaid.
fn account_of(order: &OrderRecord) -> Option<AttemptRecord> {
    let waits = |record: &&AttemptRecord| {
        record.attempt.status == AttemptStatus::AwaitingDeposit || record.attempt.ends_unpaid()
    };
    order.attempts.iter().rev().find(waits).cloned()
}

/// Whether an account of an order waits, so that the order can be cancelled by closing it.
#[must_use]
pub(super) fn waits(order: &OrderRecord) -> bool {
    let mut attempts = order.attempts.iter();
    attempts.any(|record| record.attempt.status == AttemptStatus::AwaitingDeposit)
}

/// The answer that the stored truth gives, now and for every repeat.
pub(super) fn answer_of(app: &App, order: &OrderRecord, id: AttemptId) -> Answer {
    let found = order.attempts.iter().find(|record| record.id == id);
    let Some(attempt) = found.map(|record| record.attempt) else {
        return Answer::refused(ProblemCode::Internal);
    };
    let told = || {
        Box::new(CancelAnswer {
            order: app.order_state(order),
            refunded: attempt.canceled,
            refund: None,
        })
    };
    match attempt.status {
        _ if attempt.closes_account() => Answer::UnderWay(told()),
        AttemptStatus::Canceled => Answer::Done(told()),
        AttemptStatus::AwaitingDeposit => {
            let detail = "the payment company did not close the account: it waits for its deposit";
            Answer::Problem(ProblemCode::Declined, Some(detail.to_owned()))
        }
        _ if attempt.counts_as_paid() => {
            let detail = "a deposit came before the account was closed, and pays the order: it goes back only to a bank \
                          account that its owner names";
            Answer::Problem(ProblemCode::OrderAlreadyPaid, Some(detail.to_owned()))
        }
        _ => Answer::refused(ProblemCode::OrderClosed),
    }
}
