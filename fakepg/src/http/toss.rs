//! Toss Payments' four calls.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;

use super::{Reset, work, written};
use crate::engine::{Call, Gateway, Target};
use crate::serve::Shared;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/payments/confirm", post(confirm))
        .route("/v1/payments/{payment_key}", get(by_key))
        .route("/v1/payments/orders/{order_id}", get(by_order))
        .route("/v1/payments/{payment_key}/cancel", post(cancel))
}

type Answered = Result<Response, Infallible>;

async fn confirm(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(&shared, &reset, call(Target::Confirm, &headers, body)).await
}

async fn by_key(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(payment_key): Path<String>,
    headers: HeaderMap,
) -> Answered {
    answer(
        &shared,
        &reset,
        call(Target::Payment(payment_key), &headers, Bytes::new()),
    )
    .await
}

async fn by_order(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(order_id): Path<String>,
    headers: HeaderMap,
) -> Answered {
    answer(
        &shared,
        &reset,
        call(Target::Order(order_id), &headers, Bytes::new()),
    )
    .await
}

async fn cancel(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(payment_key): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(
        &shared,
        &reset,
        call(Target::Cancel(payment_key), &headers, body),
    )
    .await
}

fn call(target: Target, headers: &HeaderMap, body: Bytes) -> Call {
    let header = |name: &str| {
        let value = headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Call {
        authorization: header("authorization"),
        idempotency_key: header("idempotency-key"),
        test_code: header("tosspayments-test-code"),
        body,
        ..Call::new(Gateway::Toss, target)
    }
}

async fn answer(shared: &Arc<Shared>, reset: &Reset, call: Call) -> Answered {
    match work::work(shared, call).await {
        Some(answer) => Ok(written(answer)),
        None => reset.now().await,
    }
}
