//! The HTTP side: which path leads to which handler, and how an answer is written.

mod control;
mod kakaopay;
mod stripe;
mod toss;
mod window;
mod work;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use tokio_util::sync::CancellationToken;

use crate::engine::Answer;
use crate::serve::Shared;

/// The wire, the window and the control API.
pub(crate) fn everything(shared: &Arc<Shared>) -> Router {
    Router::new()
        .merge(toss::router())
        .merge(kakaopay::router())
        .merge(stripe::router())
        .merge(window::router())
        .merge(control::router())
        .with_state(Arc::clone(shared))
}

/// The control API alone.
pub(crate) fn control_only(shared: &Arc<Shared>) -> Router {
    control::router().with_state(Arc::clone(shared))
}

/// Resets the connection a request came on.
#[derive(Clone, Debug)]
pub(crate) struct Reset(pub(crate) CancellationToken);

impl Reset {
    /// Orders the reset; the connection's task drops the caller of this.
    pub(crate) async fn now(&self) -> Result<Response, Infallible> {
        self.0.cancel();
        std::future::pending().await
    }
}

/// Writes an answer, with the headers Toss adds.
fn written(answer: Answer) -> Response {
    let length = answer.body.len();
    let body = match answer.drip_ms {
        None => Body::from(answer.body),
        Some(drip_ms) => dripping(answer.body, Duration::from_millis(drip_ms)),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(answer.content_type),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let named = [
        ("x-tosspayments-trace-id", Some(answer.trace)),
        ("idempotency-key", answer.idempotency_key),
        (
            "idempotent-replayed",
            answer.replayed.then(|| "true".to_owned()),
        ),
        ("location", answer.location),
        (
            "retry-after",
            answer.retry_after_s.map(|wait| wait.to_string()),
        ),
    ];
    for (name, value) in named {
        let value = value.filter(|value| !value.is_empty());
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
    response
}

fn dripping(bytes: Bytes, pause: Duration) -> Body {
    Body::from_stream(futures::stream::unfold(bytes, move |mut left| async move {
        if left.is_empty() {
            return None;
        }
        tokio::time::sleep(pause).await;
        let drop = left.split_to(1);
        Some((Ok::<_, Infallible>(drop), left))
    }))
}
