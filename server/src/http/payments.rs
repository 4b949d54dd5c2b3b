//! The confirm.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json as JsonBody, Router};
use payment::deadline::{
    Deadline, LONGEST_TIMEOUT, REQUEST_START_HEADER, TIMEOUT_HEADER, TimeLeft, parse_request_start,
    parse_timeout,
};
use payment::time::Millis;
use payment::wire::{ConfirmRequest, ProblemCode};

use super::Web;
use super::body::Json;
use super::layers::Scope;
use super::problem::Refusal;
use crate::app::App;
use crate::clock::EpochMs;
use crate::config::Switch;
use crate::confirm::{Answer, Confirm, confirm};

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/api/payments/confirm", post(confirm_payment))
}

/// The instant a request's head was read, on the server's monotonic clock: the deadline counts from here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received(pub(super) Millis);

async fn confirm_payment(
    State(web): State<Web>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    received: Receipt,
    headers: HeaderMap,
    Extension(scope): Extension<Scope>,
    Json(request): Json<ConfirmRequest>,
) -> Result<Response, Refusal> {
    let app = &web.app;
    if app.stopping.is_cancelled() {
        return Err(Refusal::new(ProblemCode::ShuttingDown));
    }
    let deadline = deadline(app, &headers, peer.ip(), received.0)?;
    let linked = scope.links.owner_of_payment(app, &request.order_id).await?;
    let owner = linked.or(scope.owner);
    let owner = owner.ok_or_else(|| Refusal::new(ProblemCode::OrderNotFound))?;
    let answer = confirm(
        app,
        Confirm {
            request,
            owner,
            deadline,
            received: received.0,
        },
    )
    .await;
    Ok(respond(answer))
}

/// When a request was received. Taken before its body is read, so that a slow upload counts against its shopper's time.
pub(super) struct Receipt(pub(super) Millis);

impl axum::extract::FromRequestParts<Web> for Receipt {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        web: &Web,
    ) -> Result<Self, Self::Rejection> {
        let received = parts
            .extensions
            .get::<Received>()
            .map(|received| received.0);
        Ok(Self(received.unwrap_or_else(|| web.app.clock.now())))
    }
}

/// The shopper's deadline, by the server's clock: receipt + time left, less what a trusted proxy's queue took.
fn deadline(
    app: &App,
    headers: &HeaderMap,
    peer: IpAddr,
    received: Millis,
) -> Result<Deadline, Refusal> {
    let values = headers
        .get_all(TIMEOUT_HEADER)
        .iter()
        .map(axum::http::HeaderValue::as_bytes);
    let left = parse_timeout(values)
        .map_err(|error| Refusal::new(ProblemCode::InvalidTimeoutHeader).with(error.to_string()))?;
    // Switched off, the header is parsed and then treated as absent.
    let left = if app.config.deadline_check == Switch::On {
        left
    } else {
        TimeLeft::Absent
    };
    let queued = if app.config.trusted_proxies.contains(&peer.to_canonical()) {
        queue_time(app, headers)
    } else {
        Millis::ZERO
    };
    Ok(Deadline::new(left, received, queued))
}

fn queue_time(app: &App, headers: &HeaderMap) -> Millis {
    let stamped = headers
        .get(REQUEST_START_HEADER)
        .and_then(|value| parse_request_start(value.as_bytes()));
    let Some(stamped) = stamped.and_then(|at| i64::try_from(at).ok()) else {
        return Millis::ZERO;
    };
    // Two machines' clocks differ: a stamp from the future is no queue, and none is longer than the longest wait.
    app.clock
        .epoch()
        .since(EpochMs(stamped))
        .min(LONGEST_TIMEOUT)
}

fn respond(answer: Answer) -> Response {
    match answer {
        Answer::Known(state) => (StatusCode::OK, JsonBody(state)).into_response(),
        Answer::InDoubt(state) => (StatusCode::ACCEPTED, JsonBody(state)).into_response(),
        Answer::Problem(code, reach, reason) => {
            Refusal::of_send(code, reach, reason).into_response()
        }
    }
}
