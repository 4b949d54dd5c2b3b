//! Toss Payments' calls as HTTP requests. Must not know what an answer means.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payment::id::IdempotencyKey;
use payment::time::Millis;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Serialize;

use super::{Secret, TossConfigError};
use crate::gateway::exchange::{self, Heard, Marks};

/// Toss's id of one exchange.
const TRACE: &str = "x-tosspayments-trace-id";

/// What Toss's own people find a call by, and how it marks an answer that it gave before.
const MARKS: Marks = Marks {
    trace: Some(TRACE),
    replayed: is_replay,
};

/// An HTTP client for one shop at Toss Payments.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
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
        let http = exchange::http_client(connect_timeout).map_err(TossConfigError::Client)?;
        Ok(Self {
            http,
            base,
            authorization,
        })
    }

    /// Sends a POST and reads its answer, all within `limit`.
    pub(super) async fn post<B: Serialize + Sync>(
        &self,
        path: &[&str],
        post: Post<'_, B>,
        limit: Millis,
    ) -> Option<Heard> {
        let request = self
            .http
            .request(Method::POST, self.url(path)?)
            .header(AUTHORIZATION, self.authorization.clone())
            .header("Idempotency-Key", post.idempotency_key.as_str())
            .json(post.body);
        Some(exchange::exchange(request, limit, MARKS).await)
    }

    /// Sends a GET and reads its answer, all within `limit`.
    pub(super) async fn get(&self, path: &[&str], limit: Millis) -> Option<Heard> {
        let request = self
            .http
            .request(Method::GET, self.url(path)?)
            .header(AUTHORIZATION, self.authorization.clone());
        Some(exchange::exchange(request, limit, MARKS).await)
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

/// Toss marks an answer that it gave before by a trace id of two parts, the new call's and the first call's.
fn is_replay(headers: &HeaderMap) -> bool {
    headers
        .get(TRACE)
        .is_some_and(|trace| trace.as_bytes().contains(&b','))
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
