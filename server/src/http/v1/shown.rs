//! An order as its shop may see it: in public words, and never "not paid" while anything of it is in doubt.

use payment::attempt::AttemptStatus as Stored;
use payment::money::Won;
use payment::order::OrderStatus;
use payment::refund::RefundStatus as StoredRefund;

use super::wire::{Attempt, AttemptStatus, Order, OrderLine, Refund, RefundStatus, Status};
use crate::clock::EpochMs;
use crate::http::link;
use crate::http::problem::Refusal;
use crate::store::merchant::{ShopId, ShopOrder};
use crate::store::{AttemptRecord, LineRow, OrderRecord, RefundRow, Store};
use payment::id::OrderId;
use payment::wire::ProblemCode;

use crate::app::App;

/// One order of a shop; another's is answered like one that is not there.
pub(super) async fn order(
    app: &App,
    shop: ShopId,
    id: &OrderId,
    public_url: &str,
) -> Result<Order, Refusal> {
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    let merchants = app.merchants.as_ref().ok_or_else(missing)?;
    let known = merchants.shop_order(id).await?;
    let known = known
        .filter(|known| known.shop == shop)
        .ok_or_else(missing)?;
    // What was stored a moment ago must be seen.
    let store: &dyn Store = app.store.as_ref();
    let record = store.order(id).await?.ok_or_else(missing)?;
    let lines = store.lines(id).await?;
    let refunds = store.refunds_of(id).await?;
    Ok(shown(&record, &known, (lines, &refunds), public_url))
}

fn shown(
    record: &OrderRecord,
    known: &ShopOrder,
    (lines, refunds): (Vec<LineRow>, &[RefundRow]),
    public_url: &str,
) -> Order {
    let unknown = record.attempts.iter().any(in_doubt);
    let paid = paying(&record.attempts);
    Order {
        id: record.id.to_string(),
        reference: known.reference.clone(),
        status: status(record.status()),
        unknown,
        amount: record.amount.get(),
        refunded: paid.map_or(0, |attempt| attempt.attempt.canceled.get()),
        currency: "KRW".to_owned(),
        lines: lines.into_iter().map(line).collect(),
        checkout_url: link::address(public_url, &record.id, &record.owner),
        return_url: known.return_url.clone(),
        created_at: moment(record.created_at),
        expires_at: moment(record.expires_at),
        attempts: record
            .attempts
            .iter()
            .map(|attempt| Attempt {
                number: attempt.number,
                gateway: attempt.gateway.to_string(),
                status: told(attempt, unknown),
            })
            .collect(),
        refunds: refunds.iter().map(refund).collect(),
    }
}

/// The try that pays the order, else the one that paid it before all of it went back: by whose charge the order has its
/// status (`payment::order::derive`).
fn paying(attempts: &[AttemptRecord]) -> Option<&AttemptRecord> {
    let pays = |record: &&AttemptRecord| record.attempt.counts_as_paid();
    let went_back =
        |record: &&AttemptRecord| record.attempt.status == Stored::Canceled && !record.attempt.void;
    let mut attempts = attempts.iter();
    let paying = attempts.clone().find(pays);
    paying.or_else(|| attempts.find(went_back))
}

fn line(line: LineRow) -> OrderLine {
    let [name, _] = line.name;
    OrderLine {
        name,
        quantity: line.quantity,
        unit_amount: line.price.get(),
    }
}

/// A refund as its shop may see it.
pub(super) fn refund(row: &RefundRow) -> Refund {
    shown_refund(
        &row.reference,
        row.refund.amount,
        row.refund.status,
        row.created_at,
    )
}

fn shown_refund(id: &str, amount: Won, status: StoredRefund, at: EpochMs) -> Refund {
    use payment::refund::RefusedFor;
    Refund {
        id: id.to_owned(),
        amount: amount.get(),
        status: match status {
            StoredRefund::Waiting | StoredRefund::Asked => RefundStatus::Pending,
            StoredRefund::Done => RefundStatus::Done,
            StoredRefund::Refused(RefusedFor::Gateway) => RefundStatus::Refused,
            StoredRefund::Refused(RefusedFor::ExceedsBalance | RefusedFor::GivenBackElsewhere) => {
                RefundStatus::ExceedsBalance
            }
        },
        created_at: moment(at),
    }
}

fn moment(at: EpochMs) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map(|at| at.to_string())
        .unwrap_or_default()
}

const fn status(status: OrderStatus) -> Status {
    match status {
        OrderStatus::Pending => Status::Pending,
        OrderStatus::Paid => Status::Paid,
        OrderStatus::PartiallyCanceled => Status::PartiallyCanceled,
        OrderStatus::Canceled => Status::Canceled,
        OrderStatus::Expired => Status::Expired,
    }
}

fn in_doubt(record: &AttemptRecord) -> bool {
    matches!(
        record.attempt.status,
        Stored::Approving | Stored::Unknown | Stored::Mischarged
    )
}

/// What is told of one try. That one was not charged is told only when no other one may have been: whoever reads "not paid"
/// would sell again.
fn told(record: &AttemptRecord, unknown: bool) -> AttemptStatus {
    let attempt = &record.attempt;
    match attempt.status {
        Stored::Ready => AttemptStatus::WaitingForShopper,
        Stored::Approving => AttemptStatus::InProgress,
        Stored::Unknown => AttemptStatus::Unknown,
        Stored::AwaitingDeposit => AttemptStatus::AwaitingDeposit,
        Stored::Mischarged => AttemptStatus::ReturningMoney,
        Stored::Approved if attempt.counts_as_paid() => AttemptStatus::Paid,
        Stored::CancelRequested if attempt.counts_as_paid() => AttemptStatus::Refunding,
        Stored::Approved | Stored::CancelRequested => AttemptStatus::ReturningMoney,
        Stored::PartiallyCanceled => AttemptStatus::PartiallyRefunded,
        Stored::Canceled => AttemptStatus::Refunded,
        Stored::Failed | Stored::Expired if unknown => AttemptStatus::Ended,
        Stored::Failed | Stored::Expired => AttemptStatus::NotPaid,
    }
}
