//! Webhooks in: stored raw and answered at once; what they mean is found out afterwards.

use std::time::Instant;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use payment::id::GatewayName;
use payment::time::Millis;
use payment::wire::ProblemCode;

use super::Web;
use super::body::within_limits;
use super::problem::Refusal;
use crate::app::App;
use crate::gateway::webhook::{Admission, Incoming};
use crate::inbox::{self, Named};
use crate::metrics;
use crate::store::NewWebhook;
use crate::strangers::Pressing;

/// Of one payment so many raw webhooks are stored whatever strangers do; a payment's whole life takes fewer than ten.
const ENOUGH: u64 = 64;
/// The longest header that is kept with a body; a signature of today's and yesterday's key has about 220 characters.
const HEADER_LIMIT: usize = 400;

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
    // Of a gateway that sends none whatever comes is a stranger's.
    let line = line.filter(|line| !line.gateway.capabilities().webhooks.is_empty());
    let Some(line) = line else {
        return Err(Refusal::new(ProblemCode::NotFound));
    };
    let gateway = line.gateway.name().clone();
    let (head, body) = request.into_parts();
    let body = within_limits(body).await?;
    let incoming = Incoming {
        headers: &head.headers,
        body: &body,
        at: web.app.clock.epoch(),
    };
    let (transmission, headers) = match line.gateway.admit(&incoming) {
        Admission::Taken { transmission, kept } => (transmission, kept_of(&head.headers, kept)),
        // Not answered with 200: should our secret be the wrong one, the real sender comes again.
        Admission::Forged(why) => {
            metrics::webhook(&gateway, "forged");
            tracing::warn!(%gateway, why, "a webhook is not its gateway's");
            return Err(Refusal::new(ProblemCode::InvalidRequest));
        }
    };
    if let Some(met) = web.app.strangers.pressing()
        && !is_to_be_kept(&web.app, &gateway, &body, met).await?
    {
        return Ok(StatusCode::OK);
    }
    let webhook = NewWebhook {
        gateway: gateway.clone(),
        transmission,
        at: web.app.clock.epoch(),
        headers,
        body,
    };
    let new = web.app.store.keep_webhook(webhook).await?;
    if new {
        web.app.strangers.kept();
    }
    metrics::webhook(&gateway, if new { "stored" } else { "duplicate" });
    web.app.inbox.notify_one();
    metrics::webhook_duration(Millis::new(
        u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    ));
    Ok(StatusCode::OK)
}

/// Whether a webhook that meets a bound is stored all the same: what names a payment of ours is, unless many are stored of
/// that one already. Then it still has its whole effect, which is that the gateway is asked.
async fn is_to_be_kept(
    app: &App,
    gateway: &GatewayName,
    body: &[u8],
    met: Pressing,
) -> Result<bool, Refusal> {
    let attempt = match inbox::named(app, gateway, body).await? {
        Named::Hint(attempt) | Named::Proven(attempt) => attempt,
        // It would change nothing: not even a place in the store.
        Named::Forged => {
            metrics::webhook(gateway, "forged");
            return Ok(false);
        }
        Named::Nothing | Named::Nobody => {
            metrics::webhook(gateway, met.label());
            return Err(Refusal::new(ProblemCode::Overloaded));
        }
    };
    if app.store.webhooks_of(attempt).await? < ENOUGH {
        return Ok(true);
    }
    if app.store.hint(attempt, app.clock.epoch(), true).await? {
        metrics::hint_waits(gateway);
    }
    app.recovery.notify_one();
    metrics::webhook(gateway, "collapsed");
    Ok(false)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty() && value.len() <= HEADER_LIMIT).then(|| value.to_owned())
}

fn kept_of(headers: &HeaderMap, names: &[&str]) -> String {
    let pairs = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), text(headers, name)?.into())));
    serde_json::Value::Object(pairs.collect()).to_string()
}
