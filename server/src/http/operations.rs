//! What operators and their tools ask.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use payment::wire::ProblemCode;

use super::Web;
use super::problem::Refusal;
use crate::gauges;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

/// Ready: the database answers and the server is not stopping.
async fn ready(State(web): State<Web>) -> Result<&'static str, Refusal> {
    if web.app.stopping.is_cancelled() {
        return Err(Refusal::new(ProblemCode::ShuttingDown));
    }
    web.app.store.ping().await?;
    Ok("ready")
}

async fn metrics(State(web): State<Web>) -> impl IntoResponse {
    gauges::sample(&web.app);
    let text = web
        .metrics
        .as_ref()
        .map(metrics_exporter_prometheus::PrometheusHandle::render);
    match text {
        Some(text) => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
            text,
        ),
        None => (
            StatusCode::NOT_FOUND,
            [(header::CONTENT_TYPE, "text/plain")],
            String::new(),
        ),
    }
}
