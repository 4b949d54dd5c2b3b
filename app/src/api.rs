//! The page's two calls to the server: confirm and poll. Reading the body is part of each; whoever drops out aborts
//! through the signal.

use gloo_net::http::{Request, Response};
use payment::checkout::ConfirmAnswer;
use payment::id::OrderId;
use payment::time::Millis;
use payment::wire::{ConfirmRequest, OrderState, Problem, ProblemCode};
use web_sys::{AbortSignal, RequestCache};

/// What a poll brought.
#[derive(Debug)]
pub(crate) enum Polled {
    /// 200: the order's state, and the tag to ask with next time.
    State(OrderState, Option<String>),
    /// 304: as last time.
    Unchanged,
    /// Refused for load.
    Shed(Option<Millis>),
    /// Nothing that says anything about the order.
    Lost,
}

/// Sends the confirm; `None` when no answer came.
pub(crate) async fn confirm(
    body: &ConfirmRequest,
    time_left: Millis,
    signal: Option<&AbortSignal>,
) -> Option<ConfirmAnswer> {
    let request = Request::post("/api/payments/confirm")
        .cache(RequestCache::NoStore)
        .header("X-Request-Timeout-Ms", &time_left.get().to_string())
        .header("X-Request-Id", &request_id())
        .abort_signal(signal)
        .json(body)
        .ok()?;
    let response = request.send().await.ok()?;
    let status = response.status();
    let retry_after = retry_after(&response);
    let text = response.text().await.ok()?;
    if matches!(status, 200 | 202)
        && let Ok(order) = serde_json::from_str::<OrderState>(&text)
    {
        return Some(ConfirmAnswer::Order(order));
    }
    let problem = serde_json::from_str::<Problem>(&text).ok();
    let code = problem.and_then(|problem| ProblemCode::parse(&problem.code));
    Some(ConfirmAnswer::Refused { code, retry_after })
}

/// The id by which this confirm is found in the server's log; it need not be unguessable.
fn request_id() -> String {
    let part = || format!("{:06x}", (js_sys::Math::random() * 16_777_216.0) as u32);
    format!("page-{}{}", part(), part())
}

/// Asks for the order's state; `tag` is that of the last answer.
pub(crate) async fn poll(
    order: &OrderId,
    tag: Option<&str>,
    signal: Option<&AbortSignal>,
) -> Polled {
    let request = Request::get(&format!("/api/orders/{order}"))
        .cache(RequestCache::NoStore)
        .abort_signal(signal);
    let request = match tag {
        Some(tag) => request.header("If-None-Match", tag),
        None => request,
    };
    let Ok(response) = request.send().await else {
        return Polled::Lost;
    };
    match response.status() {
        200 => {
            let tag = response.headers().get("ETag");
            let Ok(text) = response.text().await else {
                return Polled::Lost;
            };
            serde_json::from_str(&text).map_or(Polled::Lost, |state| Polled::State(state, tag))
        }
        304 => Polled::Unchanged,
        429 | 503 => Polled::Shed(retry_after(&response)),
        _ => Polled::Lost,
    }
}

/// `Retry-After` in seconds, as our own server sends it.
fn retry_after(response: &Response) -> Option<Millis> {
    let seconds = response.headers().get("Retry-After")?;
    seconds.trim().parse().ok().map(Millis::from_secs)
}
