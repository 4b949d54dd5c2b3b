//! Stripe's calls as HTTP requests. Must not know what an answer means.

use std::time::Duration;

use payment::id::IdempotencyKey;
use payment::time::Millis;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Url};

use super::StripeConfigError;
use crate::gateway::exchange::{self, Heard, Marks};
use crate::gateway::secret::Secret;

/// The version whose shapes are relied upon, sent with every call, whatever the account's own is. In it a session makes its
/// payment at once (from 2022-08-01 on only when the shopper confirms), and a payment lists its charges and their refunds
/// (from 2022-11-15 on only the latest charge's id).
pub(super) const VERSION: &str = "2020-08-27";

/// What Stripe's own people find a call by, and how it marks an answer that it gave before.
const MARKS: Marks = Marks {
    trace: Some("request-id"),
    replayed: is_replay,
};

/// Form parameters in order.
pub(super) type Form<'a> = [(&'a str, &'a str)];

/// An HTTP client for one account.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
}

impl Client {
    /// A client of `base`. Connecting is given up after `connect_timeout`.
    pub(super) fn new(
        base: Url,
        secret: &Secret,
        connect_timeout: Duration,
    ) -> Result<Self, StripeConfigError> {
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", secret.expose()))
            .map_err(|_| StripeConfigError::BadSecret)?;
        authorization.set_sensitive(true);
        let http = exchange::http_client(connect_timeout).map_err(StripeConfigError::Client)?;
        Ok(Self {
            http,
            base,
            authorization,
        })
    }

    /// Sends a POST and reads its answer, all within `limit`.
    pub(super) async fn post(
        &self,
        path: &[&str],
        key: Option<&IdempotencyKey>,
        form: &Form<'_>,
        limit: Millis,
    ) -> Heard {
        let Some(mut request) = self.request(Method::POST, path) else {
            return Heard::NotConnected;
        };
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key.as_str());
        }
        exchange::exchange(request.form(form), limit, MARKS).await
    }

    /// Sends a GET and reads its answer, all within `limit`.
    pub(super) async fn get(&self, path: &[&str], limit: Millis) -> Heard {
        match self.request(Method::GET, path) {
            Some(request) => exchange::exchange(request, limit, MARKS).await,
            None => Heard::NotConnected,
        }
    }

    /// A request of a path below the base, each segment percent-encoded. `None` for a segment that an address cannot hold:
    /// `.` and `..` would silently name another resource, so nothing is sent.
    fn request(&self, method: Method, path: &[&str]) -> Option<RequestBuilder> {
        if path.iter().any(|segment| matches!(*segment, "." | "..")) {
            return None;
        }
        let mut url = self.base.clone();
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        let request = self.http.request(method, url);
        let request = request.header(AUTHORIZATION, self.authorization.clone());
        Some(request.header("Stripe-Version", VERSION))
    }
}

fn is_replay(headers: &HeaderMap) -> bool {
    let mark = headers.get("idempotent-replayed");
    mark.is_some_and(|mark| mark.as_bytes().eq_ignore_ascii_case(b"true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_bears_the_key_and_the_version_and_its_path_cannot_climb() {
        let base = Url::parse("http://127.0.0.1:9/stripe/").unwrap();
        let secret = Secret::new("sk_test_1");
        let client = Client::new(base, &secret, Duration::from_secs(1)).unwrap();
        assert!(!format!("{client:?}").contains("sk_test_1"));
        let path = ["v1", "payment_intents", "pi_1/../x"];
        let request = client.request(Method::GET, &path).unwrap().build().unwrap();
        assert_eq!(
            request.url().as_str(),
            "http://127.0.0.1:9/stripe/v1/payment_intents/pi_1%2F..%2Fx"
        );
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer sk_test_1");
        assert_eq!(request.headers()["stripe-version"], "2020-08-27");
        assert!(client.request(Method::GET, &["v1", ".."]).is_none());
    }
}
