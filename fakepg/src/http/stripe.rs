//! Stripe's calls, and its hosted page.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use serde::Deserialize;

use super::window::{escaped, grouped};
use super::{Reset, work, written};
use crate::engine::stripe::View;
use crate::engine::{Call, Gateway, StripeCall, StripeStep, Target};
use crate::serve::Shared;

const PAGE: &str = include_str!("stripe/page.html");
const OVER: &str = include_str!("stripe/over.html");

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/checkout/sessions", post(create))
        .route("/v1/payment_intents/{id}", get(retrieve))
        .route("/v1/payment_intents/{id}/capture", post(capture))
        .route("/v1/payment_intents/{id}/cancel", post(cancel))
        .route("/v1/refunds", post(refund))
        .route("/v1/checkout/{*rest}", any(nowhere))
        .route("/window/stripe/{page}", get(show).post(press))
}

type Answered = Result<Response, Infallible>;

async fn create(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    let base = match &shared.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", text(&headers, "host").unwrap_or_default()),
    };
    let asked = StripeCall::CreateSession { base };
    answer(&shared, &reset, asked, &headers, body).await
}

async fn retrieve(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answered {
    let asked = StripeCall::Retrieve(id);
    answer(&shared, &reset, asked, &headers, Bytes::new()).await
}

async fn capture(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(&shared, &reset, StripeCall::Capture(id), &headers, body).await
}

async fn cancel(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(&shared, &reset, StripeCall::Cancel(id), &headers, body).await
}

async fn refund(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    answer(&shared, &reset, StripeCall::Refund, &headers, body).await
}

/// An address that this gateway does not have.
async fn nowhere() -> Response {
    written(crate::engine::stripe::codes::error("resource_missing"))
}

async fn answer(
    shared: &Arc<Shared>,
    reset: &Reset,
    asked: StripeCall,
    headers: &HeaderMap,
    body: Bytes,
) -> Answered {
    let call = Call {
        authorization: text(headers, "authorization"),
        idempotency_key: text(headers, "idempotency-key"),
        version: text(headers, "stripe-version"),
        body,
        ..Call::new(Gateway::Stripe, Target::Stripe(asked))
    };
    match work::work(shared, call).await {
        Some(answer) => Ok(written(answer)),
        None => reset.now().await,
    }
}

/// The button that was pressed.
#[derive(Deserialize)]
struct Pressed {
    action: Action,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Pay,
    PayForged,
    Refuse,
    Close,
}

async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(page): Path<String>,
) -> Answered {
    step(&shared, &reset, page, StripeStep::Show).await
}

async fn press(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path(page): Path<String>,
    Form(Pressed { action }): Form<Pressed>,
) -> Answered {
    let pressed = match action {
        Action::Pay => StripeStep::Pay,
        Action::PayForged => StripeStep::Forge,
        Action::Refuse => StripeStep::Refuse,
        Action::Close => StripeStep::Close,
    };
    step(&shared, &reset, page, pressed).await
}

async fn step(shared: &Arc<Shared>, reset: &Reset, page: String, step: StripeStep) -> Answered {
    let target = Target::Stripe(StripeCall::Page { page, step });
    let Some(answer) = work::work(shared, Call::new(Gateway::Stripe, target)).await else {
        return reset.now().await;
    };
    // A redirect or a refusal is written as it is; only a page is drawn here.
    match serde_json::from_slice::<View>(&answer.body) {
        Ok(view) if answer.status == 200 => Ok(drawn(&view)),
        _ => Ok(written(answer)),
    }
}

fn drawn(view: &View) -> Response {
    let policy = format!(
        "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' {}",
        view.origins.join(" "),
    );
    let refused = if view.refused {
        r#"<p role="alert" data-testid="pg-refused">카드가 거절되었습니다. <span lang="en">The card was declined.</span></p>"#
    } else {
        ""
    };
    let html = if view.open { PAGE } else { OVER }
        .replace("{{refused}}", refused)
        .replace("{{won}}", &grouped(view.won))
        .replace("{{order_id}}", &escaped(&view.order_id))
        .replace("{{order_name}}", &escaped(&view.name));
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (headers, Html(html)).into_response()
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}
