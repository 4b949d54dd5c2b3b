//! Webhooks in: stored raw and answered at once; what they mean is found out afterwards.

use std::time::Instant;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use payment::time::Millis;
use payment::wire::ProblemCode;

use super::Web;
use super::body::within_limits;
use super::problem::Refusal;
use crate::metrics;
use crate::store::NewWebhook;

/// The sender's own id of a transmission.
const TRANSMISSION: &str = "tosspayments-webhook-transmission-id";
/// Headers that are kept with the body.
const KEPT: [&str; 4] = [
    TRANSMISSION,
    "tosspayments-webhook-transmission-time",
    "tosspayments-webhook-transmission-retried-count",
    "content-type",
];

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/webhooks/{gateway}", post(receive))
}

async fn receive(
    State(web): State<Web>,
    Path(gateway): Path<String>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let started = Instant::now();
    let line = web
        .app
        .lines
        .iter()
        .find(|line| line.gateway.name().as_str() == gateway);
    let Some(gateway) = line.map(|line| line.gateway.name().clone()) else {
        return Err(Refusal::new(ProblemCode::NotFound));
    };
    let headers = kept(request.headers());
    let transmission = text(request.headers(), TRANSMISSION);
    let body = within_limits(request.into_body()).await?;
    let webhook = NewWebhook {
        gateway: gateway.clone(),
        transmission,
        at: web.app.clock.epoch(),
        headers,
        body,
    };
    let new = web.app.store.keep_webhook(webhook).await?;
    metrics::webhook(&gateway, if new { "stored" } else { "duplicate" });
    web.app.inbox.notify_one();
    metrics::webhook_duration(Millis::new(
        u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    ));
    Ok(StatusCode::OK)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty() && value.len() <= 200).then(|| value.to_owned())
}

fn kept(headers: &HeaderMap) -> String {
    let pairs = KEPT
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), text(headers, name)?.into())));
    serde_json::Value::Object(pairs.collect()).to_string()
}
