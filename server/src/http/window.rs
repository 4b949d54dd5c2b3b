//! The page that opens a payment window by the gateway's own script, where it has no address of its own. The one page with
//! a foreign script on it: its policy is its own, and no other page's is any wider for it.

use app::text::{Lang, WindowWord};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::get;
use axum::{Extension, Router};
use payment::attempt::AttemptStatus;
use payment::wire::ProblemCode;
use serde_json::json;

use super::Web;
use super::layers::Scope;
use super::orders::{own_order, public_url};
use super::problem::Refusal;
use super::shopper::Shopper;
use crate::gateway::{WindowRequest, WindowScript};
use crate::random;
use crate::window;

const PAGE: &str = include_str!("window/page.html");
const OPENER: &str = include_str!("window/open.js");

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/checkout/{order}/pay/{reference}", get(show))
}

async fn show(
    State(web): State<Web>,
    Shopper(owner): Shopper,
    Extension(scope): Extension<Scope>,
    Path((order, reference)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let app = &web.app;
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    let order = own_order(app, &owner, &order).await?;
    let mut attempts = order.attempts.iter();
    let attempt = attempts.find(|record| record.reference.as_str() == reference);
    let attempt = attempt.ok_or_else(missing)?;
    let line = app.line(&attempt.gateway).ok_or_else(missing)?;
    let request = window::request_of(app, line, attempt, &public_url(app, &headers)).await?;
    let script = line.gateway.window_script(&request).ok_or_else(missing)?;
    let checkout = format!("/checkout/{}", order.id);
    // What was used, or is over, is never opened again: the checkout says what is true.
    if attempt.attempt.status != AttemptStatus::Ready || attempt.window_until <= app.clock.epoch() {
        return Ok(Redirect::to(&checkout).into_response());
    }
    let look = (web.leptos.output_name.as_ref(), scope.lang);
    page(&script, &request, &checkout, look).ok_or_else(|| Refusal::new(ProblemCode::Internal))
}

/// The page, with a policy that lets in the gateway's script and whatever that loads, sends to and frames.
fn page(
    script: &WindowScript,
    request: &WindowRequest,
    checkout: &str,
    (files, lang): (&str, Lang),
) -> Option<Response> {
    let nonce = random::attempt_reference();
    let hosts = script.hosts;
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}' {hosts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: \
         {hosts}; connect-src {hosts}; font-src 'self' {hosts}; frame-src {hosts}; form-action 'self' {hosts}; \
         frame-ancestors 'none'; base-uri 'none'; object-src 'none'"
    );
    let policy = HeaderValue::from_str(&policy).ok()?;
    let data = json!({
        "src": script.src,
        "clientKey": script.client_key,
        "amount": request.amount.get(),
        "orderId": request.gateway_order_id.as_str(),
        "orderName": script.order_name,
        "successUrl": request.success_url,
        "failUrl": request.fail_url,
    });
    // Within a script element nothing but an end tag ends it.
    let data = data.to_string().replace('<', "\\u003c");
    let lang_tag = lang.tag();
    let html = [
        ("{{lang}}", lang_tag),
        ("{{files}}", files),
        ("{{title}}", lang.window(WindowWord::Title)),
        ("{{opening}}", lang.window(WindowWord::Opening)),
        ("{{blocked}}", lang.window(WindowWord::Blocked)),
        ("{{closed}}", lang.window(WindowWord::Closed)),
        ("{{refused}}", lang.window(WindowWord::Refused)),
        ("{{noscript}}", lang.window(WindowWord::NoScript)),
        ("{{back}}", lang.window(WindowWord::Back)),
        ("{{checkout}}", checkout),
        ("{{nonce}}", nonce.as_str()),
        ("{{opener}}", OPENER),
        // Last: nothing in it is a mark of ours.
        ("{{data}}", data.as_str()),
    ]
    .iter()
    .fold(PAGE.to_owned(), |page, (mark, text)| {
        page.replace(mark, text)
    });
    Some(([(header::CONTENT_SECURITY_POLICY, policy)], Html(html)).into_response())
}
