//! Cancelling an order: by its shopper or the operator, by API or by form.

use app::text::SHOPPERS_REASON;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use axum::{Extension, Json as JsonBody, Router};
use payment::id::{IdempotencyKey, OrderId};
use payment::wire::{CancelRequest, ProblemCode};
use serde::Deserialize;

use super::Web;
use super::body::{Form, Json};
use super::layers::Scope;
use super::problem::Refusal;
use crate::app::App;
use crate::gateway::refund_account::RefundAccount;
use crate::metrics;
use crate::refund::{Answer, Cancel, cancel, start};
use crate::store::{Asker, Owner};

/// By which a wish is known, however often it is sent.
const KEY_HEADER: &str = "idempotency-key";
/// The longest key that is kept.
const LONGEST_KEY: usize = 200;
/// The longest reason: the gateway keeps it with our reference in 200 characters.
pub(super) const LONGEST_REASON: usize = 160;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/api/orders/{order}/cancel", post(cancel_order))
        .route("/orders/{order}", post(cancel_by_form))
}

async fn cancel_order(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    Path(order): Path<String>,
    headers: HeaderMap,
    Json(request): Json<CancelRequest>,
) -> Result<Response, Refusal> {
    let app = &web.app;
    if app.stopping.is_cancelled() {
        return Err(Refusal::new(ProblemCode::ShuttingDown));
    }
    let client_key = key_of(&headers)?;
    check(&request)?;
    let asker = asker(app, &headers, own(scope));
    let order_id = visible(app, &order, asker.as_ref()).await?;
    let Some(asker) = asker else {
        return Err(Refusal::new(ProblemCode::OrderNotFound));
    };
    let wish = Cancel {
        order_id,
        asker,
        client_key,
        amount: request.amount,
        reason: request.reason.trim().to_owned(),
        account: account_of(&request)?,
    };
    Ok(match cancel(app, wish).await {
        Answer::Done(told) => (StatusCode::OK, JsonBody(told)).into_response(),
        Answer::UnderWay(told) => (StatusCode::ACCEPTED, JsonBody(told)).into_response(),
        Answer::Problem(code, None) => Refusal::new(code).into_response(),
        Answer::Problem(code, Some(detail)) => Refusal::new(code).with(detail).into_response(),
    })
}

/// The shopper, of an order of this shop: another shop decides itself what it gives back.
fn own(scope: Scope) -> Option<Owner> {
    scope.owner.filter(|_| !scope.linked)
}

/// Who asks: the operator by its token, else the shopper by the cookie. Whoever comes with a wrong token is nobody.
fn asker(app: &App, headers: &HeaderMap, owner: Option<Owner>) -> Option<Asker> {
    let given = headers.get(header::AUTHORIZATION);
    let bearer = given
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split_once(' ').unwrap_or((value, "")))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some((_, token)) = bearer else {
        let cut_off = app.config.cancel_cutoff;
        return owner.map(|owner| Asker::Shopper(owner, cut_off));
    };
    let operator = app.config.operator_token.as_ref();
    if operator.is_some_and(|operator| operator.is(token.trim())) {
        return Some(Asker::Operator);
    }
    metrics::operator_token_refused();
    tracing::warn!("a request came with a token that is not the operator's");
    None
}

/// The order, if whoever asks may know of it. Read before the writer is taken: strangers must not keep that busy.
async fn visible(app: &App, order: &str, asker: Option<&Asker>) -> Result<OrderId, Refusal> {
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    let id = OrderId::parse(order).map_err(|_| missing())?;
    let order = app.store.order(&id).await?.ok_or_else(missing)?;
    let may = match asker {
        None => false,
        Some(Asker::Operator) => true,
        Some(Asker::Shopper(owner, _)) => order.owner == *owner,
    };
    may.then_some(id).ok_or_else(missing)
}

pub(super) fn key_of(headers: &HeaderMap) -> Result<IdempotencyKey, Refusal> {
    let bad = || {
        Refusal::new(ProblemCode::InvalidRequest)
            .with("Idempotency-Key: once, 1 to 200 visible ASCII characters")
    };
    let mut given = headers.get_all(KEY_HEADER).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Err(bad());
    };
    let text = value.to_str().map_err(|_| bad())?;
    parse_key(text).ok_or_else(bad)
}

pub(super) fn parse_key(text: &str) -> Option<IdempotencyKey> {
    let key = IdempotencyKey::parse(text).ok()?;
    (text.len() <= LONGEST_KEY).then_some(key)
}

/// The account that a request names. What is wrong with it is told without repeating any of it.
fn account_of(request: &CancelRequest) -> Result<Option<RefundAccount>, Refusal> {
    let Some(named) = &request.refund_account else {
        return Ok(None);
    };
    let account = RefundAccount::of(&named.bank, &named.account_number, &named.holder);
    account.map(Some).ok_or_else(|| {
        Refusal::new(ProblemCode::InvalidRequest).with(
            "a refundAccount has a bank (code of 2 or 3 digits), an accountNumber (at most 20 digits) and a holder (1 to \
             60 characters on one line)",
        )
    })
}

pub(super) fn check(request: &CancelRequest) -> Result<(), Refusal> {
    let invalid = |detail: &str| Refusal::new(ProblemCode::InvalidRequest).with(detail);
    let reason = &request.reason;
    let plain = !reason.trim().is_empty() && !reason.chars().any(char::is_control);
    if !plain || reason.chars().count() > LONGEST_REASON {
        return Err(invalid("a reason has 1 to 160 characters on one line"));
    }
    if request
        .amount
        .is_some_and(|amount| amount == payment::money::Won::ZERO)
    {
        return Err(invalid("an amount is at least 1 won"));
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
struct CancelForm {
    key: String,
}

/// The order page's form: stores the wish, leaves the work to go on detached, and leads back to the page.
async fn cancel_by_form(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    Path(order): Path<String>,
    Form(form): Form<CancelForm>,
) -> Result<Response, Refusal> {
    let app = &web.app;
    let order_id = OrderId::parse(&order).map_err(|_| Refusal::new(ProblemCode::OrderNotFound))?;
    let here = format!("/orders/{order_id}");
    let with = |code: ProblemCode| Redirect::to(&format!("{here}?notice={code}")).into_response();
    let (Some(owner), Some(client_key)) = (own(scope), parse_key(&form.key)) else {
        return Ok(with(ProblemCode::InvalidRequest));
    };
    if app.stopping.is_cancelled() {
        return Ok(with(ProblemCode::ShuttingDown));
    }
    let asker = Asker::Shopper(owner, app.config.cancel_cutoff);
    if let Err(refusal) = visible(app, order_id.as_str(), Some(&asker)).await {
        return Ok(with(refusal.code()));
    }
    let wish = Cancel {
        order_id,
        asker,
        client_key,
        amount: None,
        reason: SHOPPERS_REASON.to_owned(),
        account: None,
    };
    Ok(match start(app, wish).await {
        Answer::Done(_) | Answer::UnderWay(_) => Redirect::to(&here).into_response(),
        Answer::Problem(code, _) => with(code),
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_key_is_given_once_and_visible() {
        let with = |values: &[&'static [u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(KEY_HEADER, HeaderValue::from_bytes(value).unwrap());
            }
            key_of(&headers).map(|key| key.as_str().to_owned()).ok()
        };
        assert_eq!(with(&[b"a-key"]).as_deref(), Some("a-key"));
        let bad: [&[&'static [u8]]; 5] = [&[], &[b""], &[b"a", b"b"], &[b"a b"], &[b"\xff"]];
        for bad in bad {
            assert_eq!(with(bad), None, "{bad:?}");
        }
        assert!(parse_key(&"k".repeat(200)).is_some());
        assert!(parse_key(&"k".repeat(201)).is_none());
    }

    #[test]
    fn a_reason_is_one_line_and_an_amount_is_money() {
        let request = |reason: &str, amount| CancelRequest {
            reason: reason.to_owned(),
            amount: payment::money::Won::new(amount).ok(),
            refund_account: None,
        };
        assert!(check(&request("변심", 1)).is_ok());
        for (reason, amount) in [("", 1), ("  ", 1), ("a\nb", 1), ("변심", 0)] {
            assert!(check(&request(reason, amount)).is_err(), "{reason:?}");
        }
        assert!(check(&request(&"가".repeat(160), 1)).is_ok());
        assert!(check(&request(&"가".repeat(161), 1)).is_err());
    }
}
