//! One HTTP exchange with Toss Payments, and what can be proven about it. Must not know what an answer means.

use std::error::Error as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payment::id::IdempotencyKey;
use payment::reach::Lost;
use payment::time::Millis;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, Response, Url};
use serde::Serialize;

use super::wire::{Answer, Heard};
use super::{Secret, TossConfigError};

/// The most that is read of an answer. A Payment object has about 2 kB; more is no answer of Toss's.
const BODY_LIMIT: usize = 64 * 1024;
/// Idle connections are closed after this, before a peer or a balancer between closes them under a request.
const POOL_IDLE: Duration = Duration::from_secs(15);
/// Enough idle connections for the cap of a large contract, so that a burst does not connect anew each time.
const POOL_IDLE_MAX: usize = 256;

/// Toss's id of one exchange.
const TRACE: &str = "x-tosspayments-trace-id";

/// An HTTP client for one shop at Toss Payments.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
    test_code: Option<String>,
}

/// A POST's own parts.
pub(super) struct Post<'a, B> {
    pub(super) idempotency_key: &'a IdempotencyKey,
    pub(super) body: &'a B,
}

impl Client {
    /// A client of `base`. Connecting is given up after `connect_timeout`.
    pub(super) fn new(
        base: Url,
        secret: &Secret,
        connect_timeout: Duration,
    ) -> Result<Self, TossConfigError> {
        // Toss wants the secret as the user, an empty password, and padding; the colon is required.
        let basic = STANDARD.encode(format!("{}:", secret.expose()));
        let mut authorization = HeaderValue::try_from(format!("Basic {basic}"))
            .map_err(|_| TossConfigError::BadSecret)?;
        authorization.set_sensitive(true);
        let http = reqwest::Client::builder()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .tcp_nodelay(true)
            .build()
            .map_err(TossConfigError::Client)?;
        Ok(Self {
            http,
            base,
            authorization,
            test_code: None,
        })
    }

    /// The same client, whose calls that change something are answered with this error by the test environment.
    pub(super) fn answered(self, test_code: Option<String>) -> Self {
        Self { test_code, ..self }
    }

    /// Sends a POST and reads its answer, all within `limit`.
    pub(super) async fn post<B: Serialize + Sync>(
        &self,
        path: &[&str],
        post: Post<'_, B>,
        limit: Millis,
    ) -> Option<Heard> {
        let mut request = self
            .http
            .request(Method::POST, self.url(path)?)
            .header(AUTHORIZATION, self.authorization.clone())
            .header("Idempotency-Key", post.idempotency_key.as_str())
            .json(post.body);
        if let Some(code) = &self.test_code {
            request = request.header("TossPayments-Test-Code", code);
        }
        Some(exchange(request, limit).await)
    }

    /// Sends a GET and reads its answer, all within `limit`.
    pub(super) async fn get(&self, path: &[&str], limit: Millis) -> Option<Heard> {
        let request = self
            .http
            .request(Method::GET, self.url(path)?)
            .header(AUTHORIZATION, self.authorization.clone());
        Some(exchange(request, limit).await)
    }

    /// The address of a path below the base, each segment percent-encoded. `None` for a segment that an address cannot
    /// hold: `.` and `..` would silently name another resource.
    fn url(&self, path: &[&str]) -> Option<Url> {
        if path.iter().any(|segment| matches!(*segment, "." | "..")) {
            return None;
        }
        let mut url = self.base.clone();
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        Some(url)
    }
}

/// One exchange, from starting to connect to the last byte of the body.
///
/// The limit is ours and not reqwest's: at its end the exchange is looked at once more before the clock is, so a failed
/// connect is recognised as one, and an `ETIMEDOUT` of the socket is not taken for our own limit.
async fn exchange(request: reqwest::RequestBuilder, limit: Millis) -> Heard {
    let deadline = tokio::time::Instant::now() + limit.to_duration();
    let response = match tokio::time::timeout_at(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return unanswered(&error),
        Err(_elapsed) => return Heard::Nothing(Lost::TimedOut),
    };
    let status = response.status().as_u16();
    let replayed = is_replay(&response);
    // What Toss's own people find the call by.
    let trace = response
        .headers()
        .get(TRACE)
        .and_then(|id| id.to_str().ok());
    tracing::info!(status, trace, "the gateway answered");
    let body = match tokio::time::timeout_at(deadline, read(response)).await {
        Ok(body) => body,
        Err(_elapsed) => Err(Lost::TimedOut),
    };
    Heard::Answer(Answer {
        status,
        replayed,
        body,
    })
}

/// What an error before an answer's head proves.
///
/// Only an error of connecting (DNS, refused, TLS, connect timeout) comes from before the request was handed to a
/// connection; HTTP clients report every later one after bytes may have left, even "connection closed before message
/// completed". A request that a stale connection gave back unwritten was already put on a new one by the client; when
/// that cannot be made either, not a byte of it was sent.
fn unanswered(error: &reqwest::Error) -> Heard {
    // An error of building the request comes before anything else.
    if error.is_connect() || error.is_builder() {
        Heard::NotConnected
    } else if is_garbled(error) {
        Heard::Nothing(Lost::Unreadable)
    } else {
        Heard::Nothing(Lost::Reset)
    }
}

/// Whether something came back that is not HTTP.
fn is_garbled(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(http) = cause.downcast_ref::<hyper::Error>() {
            return http.is_parse();
        }
        source = cause.source();
    }
    false
}

/// Toss marks an answer that it gave before by a trace id of two parts, the new call's and the first call's.
fn is_replay(response: &Response) -> bool {
    response
        .headers()
        .get(TRACE)
        .is_some_and(|trace| trace.as_bytes().contains(&b','))
}

async fn read(mut response: Response) -> Result<Vec<u8>, Lost> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= BODY_LIMIT => {
                body.extend_from_slice(&chunk);
            }
            Ok(None) => return Ok(body),
            // Too long, or cut short.
            Ok(Some(_)) | Err(_) => return Err(Lost::Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(base: &str) -> Client {
        Client::new(
            Url::parse(base).unwrap(),
            &Secret::new("test_sk_1"),
            Duration::from_secs(1),
        )
        .unwrap()
    }

    #[test]
    fn the_secret_is_sent_as_a_user_with_an_empty_password_and_never_printed() {
        let client = client("http://127.0.0.1:9");
        assert_eq!(client.authorization, "Basic dGVzdF9za18xOg==");
        assert!(!format!("{client:?}").contains("dGVzdF9za18xOg"));
        assert_eq!(format!("{:?}", Secret::new("test_sk_1")), "***");
    }

    #[test]
    fn path_segments_are_encoded_and_cannot_climb() {
        let client = client("http://127.0.0.1:9/toss/");
        let url = |key: &str| client.url(&["v1", "payments", key]).map(String::from);
        assert_eq!(
            url("a/b?c#d%2e").as_deref(),
            Some("http://127.0.0.1:9/toss/v1/payments/a%2Fb%3Fc%23d%252e")
        );
        assert_eq!(url(".."), None);
        assert_eq!(url("."), None);
        assert_eq!(
            url("%2e%2e").as_deref(),
            Some("http://127.0.0.1:9/toss/v1/payments/%252e%252e")
        );
    }
}
