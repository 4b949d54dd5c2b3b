//! Money that a shop gives back.

use axum::Json as JsonBody;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use payment::attempt::AttemptStatus;
use payment::id::IdempotencyKey;
use payment::money::Won;
use payment::wire::{CancelAnswer, CancelRequest, ProblemCode};

use super::key::Merchant;
use super::orders::order_in;
use super::shown;
use super::wire::{NewRefund, Refund};
use crate::http::Web;
use crate::http::body::Json;
use crate::http::cancels::{check, key_of};
use crate::http::problem::Refusal;
use crate::refund::{Answer, Cancel, cancel};
use crate::store::{Asker, AttemptRecord};

/// Gives money back. The same Idempotency-Key with the same body is the same refund, for ever.
pub(super) async fn create(
    State(web): State<Web>,
    Merchant(shop): Merchant,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    Json(wish): Json<NewRefund>,
) -> Result<Response, Refusal> {
    let app = &web.app;
    if app.stopping.is_cancelled() {
        return Err(Refusal::new(ProblemCode::ShuttingDown));
    }
    let id = order_in(path)?;
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    // Whose it is comes first: of another's order nothing may be told, not even what is wrong with a wish about it.
    let merchants = app.merchants.as_ref().ok_or_else(missing)?;
    let known = merchants.shop_order(&id).await?;
    known
        .filter(|known| known.shop == shop.id)
        .ok_or_else(missing)?;
    let client_key = own_key(&key_of(&headers)?)?;
    let request = CancelRequest {
        reason: wish.reason,
        amount: wish.amount.map(won).transpose()?,
        refund_account: None,
    };
    check(&request)?;
    // No money has come yet, so none goes back: the account is its shopper's to close.
    let order = app.store.order(&id).await?.ok_or_else(missing)?;
    let waits = |record: &AttemptRecord| record.attempt.status == AttemptStatus::AwaitingDeposit;
    if order.attempts.iter().any(waits) {
        return Err(Refusal::new(ProblemCode::AttemptInProgress));
    }
    let asked = Cancel {
        order_id: id.clone(),
        asker: Asker::Operator,
        client_key,
        amount: request.amount,
        reason: request.reason.trim().to_owned(),
        account: None,
    };
    let (status, told) = match cancel(app, asked).await {
        Answer::Done(told) => (StatusCode::OK, told),
        Answer::UnderWay(told) => (StatusCode::ACCEPTED, told),
        Answer::Problem(code, None) => return Err(Refusal::new(code)),
        Answer::Problem(code, Some(detail)) => return Err(Refusal::new(code).with(detail)),
    };
    let refund = stored(&web, &told).await?;
    Ok((status, JsonBody(refund)).into_response())
}

async fn stored(web: &Web, told: &CancelAnswer) -> Result<Refund, Refusal> {
    let refunds = web.app.store.refunds_of(&told.order.order_id).await?;
    let mut refunds = refunds.iter();
    // None where it was an account that was closed: nothing was given back.
    let asked = told.refund.as_ref();
    let asked = asked.ok_or_else(|| Refusal::new(ProblemCode::AttemptInProgress))?;
    let row = refunds.find(|row| row.reference == asked.reference);
    row.map(shown::refund)
        .ok_or_else(|| Refusal::new(ProblemCode::Internal))
}

fn won(amount: i64) -> Result<Won, Refusal> {
    let invalid = || Refusal::new(ProblemCode::InvalidRequest).with("an amount is at least 1 won");
    Won::new(amount).map_err(|_| invalid())
}

/// The shop's key as it is stored: apart from those of the order's shopper and of the operator, which name other wishes.
fn own_key(key: &IdempotencyKey) -> Result<IdempotencyKey, Refusal> {
    IdempotencyKey::parse(&format!("shop:{key}"))
        .map_err(|_| Refusal::new(ProblemCode::InvalidRequest))
}
