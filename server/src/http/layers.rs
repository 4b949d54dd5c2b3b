//! What every exchange passes through: measures, security headers, and who asks in which language.

use std::any::Any;
use std::time::Instant;

use app::text::Lang;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use payment::wire::ProblemCode;
use tracing::Instrument as _;

use super::Web;
use super::link::Links;
use super::problem::{Refusal, retry_after};
use super::shopper;
use crate::metrics;
use crate::random;
use crate::store::Owner;

/// The id by which one exchange is found in the logs of page, proxy and server.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Who asks, in which language: found once, used by pages and API alike.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// The shopper; `None` before the first order. Where the address names an order whose link was opened here, whoever
    /// may see that one.
    pub(super) owner: Option<Owner>,
    /// Whether that is by a link of another shop's order.
    pub(super) linked: bool,
    /// The orders whose links were opened here.
    pub(super) links: Links,
    /// The language of pages.
    pub(super) lang: Lang,
}

/// Puts the [`Scope`] into the request, and its id into every line that is logged for it, down to the gateway's call.
pub(super) async fn request_scope(
    State(web): State<Web>,
    mut request: Request,
    next: Next,
) -> Response {
    let links = Links::of(request.headers(), &web);
    let linked = links.owner_in(request.uri().path());
    let scope = Scope {
        linked: linked.is_some(),
        owner: linked.or_else(|| shopper::owner(request.headers(), &web)),
        links,
        lang: language(request.headers()),
    };
    request.extensions_mut().insert(scope);
    let id = request_id(request.headers());
    let span = tracing::info_span!("request", %id, method = %request.method());
    let mut response = next.run(request).instrument(span).await;
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The page's own id of the exchange, or a new one. A stranger's text must not make a log line: short word characters only.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let plain = |id: &&str| {
        (8..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    given
        .filter(plain)
        .map_or_else(random::request_id, str::to_owned)
}

/// The language: the shopper's choice, else the first of the browser's that we speak, else Korean.
fn language(headers: &HeaderMap) -> Lang {
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let chosen = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().strip_prefix("jari_lang="))
        .find_map(Lang::parse);
    let accepted = || {
        let value = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?;
        value
            .split(',')
            .find_map(|tag| Lang::parse(tag.trim().get(..2)?))
    };
    chosen.or_else(accepted).unwrap_or(Lang::Ko)
}

/// Headers of every answer; what an answer set itself stays.
pub(super) async fn headers(request: Request, next: Next) -> Response {
    let asset = request.uri().path().starts_with("/pkg/");
    let mut response = next.run(request).await;
    let busy = response.status() == StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    if busy {
        headers
            .entry(header::RETRY_AFTER)
            .or_insert_with(retry_after);
    }
    let mut set = |name: HeaderName, value: &'static str| {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    };
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "same-origin");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin-allow-popups",
    );
    set(
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=()",
    );
    set(
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    );
    if asset {
        // Which of the stored encodings is sent depends on what the browser takes.
        set(header::VARY, "accept-encoding");
    }
    // Whatever tells of an order must never come out of a cache.
    set(
        header::CACHE_CONTROL,
        if asset { "no-cache" } else { "no-store" },
    );
    response
}

/// Measures every exchange by its route, never by its path.
pub(super) async fn observe(request: Request, next: Next) -> Response {
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(|path| path.as_str().to_owned());
    let started = Instant::now();
    let response = next.run(request).await;
    let route = route.unwrap_or_else(|| "other".to_owned());
    metrics::http(route, response.status().as_u16(), started.elapsed());
    response
}

/// A panic in a handler becomes a plain 500; what it held is released by unwinding.
pub(super) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = said.unwrap_or("no message"), "a handler panicked");
    Refusal::from(ProblemCode::Internal).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_its_id_unless_that_could_forge_a_log_line() {
        let of = |text: &'static str| {
            request_id(&HeaderMap::from_iter([(
                REQUEST_ID,
                HeaderValue::from_static(text),
            )]))
        };
        assert_eq!(of("0192f0c4-7b1e"), "0192f0c4-7b1e");
        for bad in ["short", "has space in it", "quote\"quote", ""] {
            assert_ne!(of(bad), bad);
            assert_eq!(of(bad).len(), 16);
        }
    }

    #[test]
    fn the_shoppers_choice_outranks_the_browsers_and_korean_is_the_default() {
        let with = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            language(&pairs.collect())
        };
        assert_eq!(with(&[]), Lang::Ko);
        assert_eq!(
            with(&[(header::ACCEPT_LANGUAGE, "fr-FR, en-US;q=0.8, ko;q=0.5")]),
            Lang::En
        );
        assert_eq!(with(&[(header::ACCEPT_LANGUAGE, "xx-XX, *")]), Lang::Ko);
        let chosen = [
            (header::ACCEPT_LANGUAGE, "en"),
            (header::COOKIE, "a=b; jari_lang=ko"),
        ];
        assert_eq!(with(&chosen), Lang::Ko);
    }
}
