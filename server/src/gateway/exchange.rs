//! One HTTP exchange with a gateway, and what can be proven about it. Must not know any gateway's wire, nor what an answer
//! means.

use std::error::Error as _;
use std::time::Duration;

use payment::reach::Lost;
use payment::time::Millis;
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response, Url};

use super::Told;

/// The most that is read of an answer. What a gateway tells of a payment has a few kB; more is no answer of one.
const BODY_LIMIT: usize = 64 * 1024;
/// Idle connections are closed after this, before a peer or a balancer between closes them under a request.
const POOL_IDLE: Duration = Duration::from_secs(15);
/// Enough idle connections for the cap of a large contract, so that a burst does not connect anew each time.
const POOL_IDLE_MAX: usize = 256;
/// The longest code that is kept as evidence; Toss's longest has 51 characters.
pub(super) const CODE_LIMIT: usize = 64;

/// Less than this is no timeout but a mistake of units.
const LEAST_TIMEOUT: Millis = Millis::new(10);

/// A time that would end every call before it begins.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{setting} must be at least {LEAST_TIMEOUT}, not {given}")]
pub struct TooShort {
    setting: &'static str,
    given: Millis,
}

/// Checks the times of an adapter.
///
/// # Errors
/// The first one that is too short.
pub(super) fn long_enough(
    times: impl IntoIterator<Item = (&'static str, Millis)>,
) -> Result<(), TooShort> {
    let mut times = times.into_iter();
    match times.find(|(_, given)| *given < LEAST_TIMEOUT) {
        Some((setting, given)) => Err(TooShort { setting, given }),
        None => Ok(()),
    }
}

/// What one HTTP exchange brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// No connection could be made, so no byte of the request was written.
    NotConnected,
    /// The request may have been written, and no answer's head came back.
    Nothing(Lost),
    /// At least the head of an answer came back.
    Answer(Answer),
}

/// An answer: its head, and its body if that could be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The HTTP status.
    pub(super) status: u16,
    /// Whether it is an earlier answer to the same idempotency key, where the gateway tells.
    pub(super) replayed: bool,
    /// The body, or how it was lost.
    pub(super) body: Result<Vec<u8>, Lost>,
}

/// What a gateway's headers tell beside an answer's status and body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    /// The header by which its own people find the call.
    pub(super) trace: Option<&'static str>,
    /// Whether an answer with these headers was given before.
    pub(super) replayed: fn(&HeaderMap) -> bool,
}

impl Marks {
    /// Of a gateway that marks nothing.
    pub(super) const NONE: Self = Self {
        trace: None,
        replayed: |_| false,
    };
}

/// A client that sends what it is given once, to where it was told, and nowhere else.
pub(super) fn http_client(connect_timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
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
}

/// How long to try to connect: the smaller of the two times, and a little less than the whole, so that a connect which
/// fails at its limit is seen as that (not sent) before the whole call ends (may have been sent).
pub(super) fn connect_limit(connect: Millis, whole: Millis) -> Duration {
    let margin = Millis::new((whole.get() / 20).clamp(2, 100));
    connect.min(whole.less(margin)).to_duration()
}

/// An address that paths can be put below; `None` when it is not http or https, or holds a query, a fragment or a user.
pub(super) fn base_address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let plain = url.query().is_none() && url.fragment().is_none();
    let nobody = url.username().is_empty() && url.password().is_none();
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host() && plain && nobody;
    usable.then_some(url)
}

/// One exchange, from starting to connect to the last byte of the body.
///
/// The limit is ours and not reqwest's: at its end the exchange is looked at once more before the clock is, so a failed
/// connect is recognised as one, and an `ETIMEDOUT` of the socket is not taken for our own limit.
pub(super) async fn exchange(request: RequestBuilder, limit: Millis, marks: Marks) -> Heard {
    let deadline = tokio::time::Instant::now() + limit.to_duration();
    let response = match tokio::time::timeout_at(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return unanswered(&error),
        Err(_elapsed) => return Heard::Nothing(Lost::TimedOut),
    };
    let status = response.status().as_u16();
    let replayed = (marks.replayed)(response.headers());
    let trace = marks.trace.and_then(|name| response.headers().get(name));
    let trace = trace.and_then(|id| id.to_str().ok());
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

/// A redirect, or a success that no gateway here documents. Nothing is followed: the secret goes to no other host.
pub(super) fn redirected(status: u16) -> Option<Told> {
    match status {
        300..=399 => Some(alarming(told(status, "redirect"))),
        ..=199 | 201..=299 => Some(alarming(told(status, "undocumented_status"))),
        _ => None,
    }
}

/// Evidence. A code comes from outside, so it is cut and stripped of what could break a log line.
pub(super) fn told(status: u16, code: &str) -> Told {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    Told {
        status: Some(status),
        code: code.chars().filter(plain).take(CODE_LIMIT).collect(),
        ..Told::default()
    }
}

/// Evidence of a request that brought no answer's head.
pub(super) fn unheard(lost: Lost) -> Told {
    Told {
        code: word(lost).to_owned(),
        ..Told::default()
    }
}

/// The same evidence, for an operator to see.
pub(super) fn alarming(told: Told) -> Told {
    Told {
        alarm: true,
        ..told
    }
}

/// Our word for what happened on the wire.
pub(super) const fn word(lost: Lost) -> &'static str {
    match lost {
        Lost::TimedOut => "timed_out",
        Lost::Reset => "connection_lost",
        Lost::Unreadable => "unreadable",
        Lost::Inconclusive => "inconclusive",
        Lost::InProgress => "in_progress",
    }
}
