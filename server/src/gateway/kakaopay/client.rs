//! KakaoPay's four calls as HTTP requests. Must not know what an answer means.

use std::time::Duration;

use payment::time::Millis;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde::Serialize;

use super::KakaoPayConfigError;
use crate::gateway::exchange::{self, Heard, Marks};
use crate::gateway::secret::Secret;

/// One of the calls: each is a POST of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Opens a payment.
    Ready,
    /// Charges it.
    Approve,
    /// Tells what became of it.
    Order,
    /// Gives money back.
    Cancel,
}

impl Call {
    const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Approve => "approve",
            Self::Order => "order",
            Self::Cancel => "cancel",
        }
    }
}

/// An HTTP client for one shop at KakaoPay.
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
    ) -> Result<Self, KakaoPayConfigError> {
        let mut authorization = HeaderValue::try_from(format!("SECRET_KEY {}", secret.expose()))
            .map_err(|_| KakaoPayConfigError::BadSecret)?;
        authorization.set_sensitive(true);
        let http = exchange::http_client(connect_timeout).map_err(KakaoPayConfigError::Client)?;
        Ok(Self {
            http,
            base,
            authorization,
        })
    }

    /// Makes one call and reads its answer, all within `limit`.
    pub(super) async fn post<B: Serialize + Sync>(
        &self,
        call: Call,
        body: &B,
        limit: Millis,
    ) -> Heard {
        let request = self
            .http
            .post(self.url(call))
            .header(AUTHORIZATION, self.authorization.clone())
            .json(body);
        exchange::exchange(request, limit, Marks::NONE).await
    }

    fn url(&self, call: Call) -> Url {
        let mut url = self.base.clone();
        // The base was checked to be http or https, which always have path segments.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments
                .pop_if_empty()
                .extend(["online", "v1", "payment", call.name()]);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(base: &str) -> Client {
        Client::new(
            Url::parse(base).unwrap(),
            &Secret::new("DEV1234567890"),
            Duration::from_secs(1),
        )
        .unwrap()
    }

    #[test]
    fn the_secret_is_sent_after_its_scheme_and_never_printed() {
        let client = client("http://127.0.0.1:9");
        assert_eq!(client.authorization, "SECRET_KEY DEV1234567890");
        assert!(!format!("{client:?}").contains("DEV1234567890"));
    }

    #[test]
    fn each_call_has_its_own_address_below_the_base() {
        let urls = [Call::Ready, Call::Approve, Call::Order, Call::Cancel].map(|call| {
            let base = client("http://127.0.0.1:9/kakao/");
            String::from(base.url(call))
        });
        let expected = ["ready", "approve", "order", "cancel"]
            .map(|call| format!("http://127.0.0.1:9/kakao/online/v1/payment/{call}"));
        assert_eq!(urls, expected);
        let root = client("https://open-api.kakaopay.com");
        assert_eq!(
            root.url(Call::Order).as_str(),
            "https://open-api.kakaopay.com/online/v1/payment/order"
        );
    }
}
