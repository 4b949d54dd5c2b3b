//! One HTTP exchange with the gateway: what can be proven about it, and nothing about what it means.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use metrics::{counter, gauge, histogram};
use payment::id::IdempotencyKey;
use payment::reach::Lost;
use payment::time::Millis;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

use super::TossConfig;
use crate::gateway::Told;

/// The largest answer that is read: a payment is a few kilobytes.
const BODY_LIMIT: usize = 64 * 1024;
/// An idle connection is given up before a gateway's own keep-alive (often 20 to 60 s) can close it under a confirm.
const IDLE: Duration = Duration::from_secs(15);

/// What one exchange came to.
pub(super) enum Exchange {
    /// No connection was made: no byte of the request can have left.
    NotSent(Told),
    /// The request may have been sent, and no whole answer came.
    Lost(Lost, Told),
    /// A whole answer.
    Answered(Answer),
}

/// A whole answer.
pub(super) struct Answer {
    /// Its HTTP status.
    pub(super) status: u16,
    /// Its body.
    pub(super) body: Bytes,
}

/// The HTTP client of one gateway.
pub(super) struct Client {
    http: reqwest::Client,
    authorization: HeaderValue,
    gateway: String,
    total: Duration,
    inquiry: Duration,
}

impl Client {
    pub(super) fn new(config: &TossConfig) -> Result<Self, reqwest::Error> {
        // A little below the total, so that a connection that cannot be made is seen as just that.
        let most = Millis::new(config.pg_timeout.get() * 9 / 10);
        let http = reqwest::Client::builder()
            .connect_timeout(config.connect_timeout.min(most).to_duration())
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            // Every send is counted by us; nothing below may send again by itself.
            .retry(reqwest::retry::never())
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE)
            .build()?;
        let credentials = STANDARD.encode(format!("{}:", config.secret_key.expose()));
        let mut authorization = HeaderValue::try_from(format!("Basic {credentials}"))
            .unwrap_or_else(|_| HeaderValue::from_static("Basic"));
        authorization.set_sensitive(true);
        Ok(Self {
            http,
            authorization,
            gateway: config.name.to_string(),
            total: config.pg_timeout.to_duration(),
            inquiry: config.inquiry_timeout.min(config.pg_timeout).to_duration(),
        })
    }

    /// Makes one exchange, from starting to connect to the last byte of the answer within one time limit.
    pub(super) async fn exchange(
        &self,
        operation: &'static str,
        method: Method,
        url: Url,
        body: Option<Value>,
        key: Option<&IdempotencyKey>,
    ) -> Exchange {
        let _in_flight = InFlight::new(&self.gateway, operation);
        let started = Instant::now();
        let limit = if operation == "get" {
            self.inquiry
        } else {
            self.total
        };
        let mut request = self
            .http
            .request(method, url)
            .timeout(limit)
            .header(AUTHORIZATION, self.authorization.clone());
        if let Some(key) = key {
            request = request.header("idempotency-key", key.as_str());
        }
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let exchange = match request.send().await {
            Err(error) if error.is_connect() => Exchange::NotSent(Told::wire("connect failed")),
            Err(error) => lost(&error),
            Ok(response) => read(response).await,
        };
        let outcome = match &exchange {
            Exchange::NotSent(_) => "not_sent",
            Exchange::Lost(..) => "lost",
            Exchange::Answered(answer) if answer.status < 300 => "ok",
            Exchange::Answered(_) => "error",
        };
        let gateway = self.gateway.clone();
        counter!("pg_calls_total", "gateway" => gateway.clone(), "operation" => operation, "outcome" => outcome).increment(1);
        histogram!("pg_call_duration_seconds", "gateway" => gateway, "operation" => operation)
            .record(started.elapsed().as_secs_f64());
        exchange
    }
}

/// Everything that is not a failed connect may have been sent, whatever the library calls it: "connection closed before
/// message completed" also comes when the whole request was read and processed.
fn lost(error: &reqwest::Error) -> Exchange {
    if error.is_timeout() {
        Exchange::Lost(Lost::TimedOut, Told::wire("timed out"))
    } else {
        Exchange::Lost(Lost::Reset, Told::wire("connection lost"))
    }
}

async fn read(mut response: reqwest::Response) -> Exchange {
    let status = response.status().as_u16();
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > BODY_LIMIT => {
                let told = Told {
                    status: Some(status),
                    code: "answer too large".to_owned(),
                    alarm: true,
                };
                return Exchange::Lost(Lost::Unreadable, told);
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => {
                return Exchange::Answered(Answer {
                    status,
                    body: body.freeze(),
                });
            }
            Err(error) if error.is_timeout() => {
                let told = Told {
                    status: Some(status),
                    code: "answer timed out".to_owned(),
                    alarm: false,
                };
                return Exchange::Lost(Lost::TimedOut, told);
            }
            Err(_) => {
                let told = Told {
                    status: Some(status),
                    code: "answer cut short".to_owned(),
                    alarm: false,
                };
                return Exchange::Lost(Lost::Unreadable, told);
            }
        }
    }
}

/// Counts a call while it is in flight, also when its future is dropped.
struct InFlight {
    gateway: String,
    operation: &'static str,
}

impl InFlight {
    fn new(gateway: &str, operation: &'static str) -> Self {
        gauge!("pg_in_flight", "gateway" => gateway.to_owned(), "operation" => operation)
            .increment(1.0);
        Self {
            gateway: gateway.to_owned(),
            operation,
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        gauge!("pg_in_flight", "gateway" => self.gateway.clone(), "operation" => self.operation)
            .decrement(1.0);
    }
}
