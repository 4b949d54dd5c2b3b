//! KakaoPay's four calls.

mod window;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::{any, post};
use axum::{Extension, Router};
use bytes::Bytes;

use super::{Reset, work, written};
use crate::engine::{Answer, Call, Gateway, KakaoPayCall, Target};
use crate::serve::Shared;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/online/v1/payment/ready", post(ready).fallback(nowhere))
        .route(
            "/online/v1/payment/approve",
            post(approve).fallback(nowhere),
        )
        .route("/online/v1/payment/order", post(order).fallback(nowhere))
        .route("/online/v1/payment/cancel", post(cancel).fallback(nowhere))
        .route("/online/{*rest}", any(nowhere))
        .merge(window::router())
}

type Answered = Result<Response, Infallible>;

async fn ready(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    let base = match &shared.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", text(&headers, "host").unwrap_or_default()),
    };
    answer(
        &shared,
        &reset,
        KakaoPayCall::Ready { base },
        &headers,
        body,
    )
    .await
}

async fn approve(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(&shared, &reset, KakaoPayCall::Approve, &headers, body).await
}

async fn order(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(&shared, &reset, KakaoPayCall::Order, &headers, body).await
}

async fn cancel(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(&shared, &reset, KakaoPayCall::Cancel, &headers, body).await
}

/// An address or method that KakaoPay does not have.
async fn nowhere(State(shared): State<Arc<Shared>>) -> Response {
    written(shared.engine(|engine, _| engine.nowhere()))
}

async fn answer(
    shared: &Arc<Shared>,
    reset: &Reset,
    asked: KakaoPayCall,
    headers: &HeaderMap,
    body: Bytes,
) -> Answered {
    let json = text(headers, header::CONTENT_TYPE.as_str())
        .is_some_and(|kind| kind.starts_with("application/json"));
    let call = Call {
        authorization: text(headers, "authorization"),
        idempotency_key: text(headers, "idempotency-key"),
        // A form, as the old API took it, holds no field here.
        body: if json { body } else { Bytes::new() },
        ..Call::new(Gateway::KakaoPay, Target::KakaoPay(asked))
    };
    match work::work(shared, call).await {
        Some(answer) => Ok(written(answer)),
        None => reset.now().await,
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// What a page's call came to: its answer, or a reset.
async fn paged(
    shared: &Arc<Shared>,
    reset: &Reset,
    asked: KakaoPayCall,
) -> Result<Answer, Answered> {
    let call = Call::new(Gateway::KakaoPay, Target::KakaoPay(asked));
    match work::work(shared, call).await {
        Some(answer) => Ok(answer),
        None => Err(reset.now().await),
    }
}
