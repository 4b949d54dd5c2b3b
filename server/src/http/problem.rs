//! The only place where an error meets an HTTP status.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use payment::reach::{Reach, Reason};
use payment::wire::{Problem, ProblemCode};

use crate::random;
use crate::store::StoreError;

/// A refusal on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: ProblemCode,
    reach: Option<Reach>,
    reason: Option<Reason>,
    detail: Option<String>,
}

impl Refusal {
    /// A refusal that speaks of no send.
    #[must_use]
    pub const fn new(code: ProblemCode) -> Self {
        Self {
            code,
            reach: None,
            reason: None,
            detail: None,
        }
    }

    /// A refusal that speaks of a send.
    #[must_use]
    pub const fn of_send(code: ProblemCode, reach: Option<Reach>, reason: Option<Reason>) -> Self {
        Self {
            code,
            reach,
            reason,
            detail: None,
        }
    }

    /// What is wrong, for people; never a secret, a statement or a stack trace.
    #[must_use]
    pub fn with(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Its code.
    #[must_use]
    pub const fn code(&self) -> ProblemCode {
        self.code
    }
}

impl From<ProblemCode> for Refusal {
    fn from(code: ProblemCode) -> Self {
        Self::new(code)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy => Self::new(ProblemCode::DatabaseBusy),
            StoreError::Failed { .. } | StoreError::Corrupt { .. } => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the database failed a request"
                );
                Self::new(ProblemCode::Internal)
            }
        }
    }
}

/// One line for people; the page has its own words in the shopper's language.
const fn title(code: ProblemCode) -> &'static str {
    match code {
        ProblemCode::InvalidRequest => "The request is not valid",
        ProblemCode::InvalidTimeoutHeader => "X-Request-Timeout-Ms is not valid",
        ProblemCode::AmountMismatch => "The amount is not the order's",
        ProblemCode::Unauthorized => "The API key is missing, wrong or revoked",
        ProblemCode::Declined => "The payment was declined; nothing was charged",
        ProblemCode::ForbiddenOrigin => "The request comes from another site",
        ProblemCode::OrderNotFound => "There is no such order",
        ProblemCode::NotFound => "There is nothing here",
        ProblemCode::MethodNotAllowed => "That method is not allowed here",
        ProblemCode::AttemptInProgress => "Another payment of this order is in progress",
        ProblemCode::OrderAlreadyPaid => "The order is paid",
        ProblemCode::PaymentKeyUsed => "The payment belongs to another order",
        ProblemCode::NewAttemptNeeded => "A new payment window is needed",
        ProblemCode::AttemptExpired => "The payment window has closed",
        ProblemCode::OrderExpired => "The order's time is over",
        ProblemCode::OrderClosed => "The order was canceled",
        ProblemCode::OutOfStock => "Not enough is left",
        ProblemCode::RefundExceedsBalance => "More than is left of the charge",
        ProblemCode::BodyTooLarge => "The body is too large",
        ProblemCode::UnsupportedMediaType => "The body must be JSON",
        ProblemCode::IdempotencyKeyReused => "The idempotency key was used with another body",
        ProblemCode::RateLimited => "Too many requests",
        ProblemCode::Internal => "Something failed here",
        ProblemCode::PgCapReached => "Too many payments at once; nothing was sent",
        ProblemCode::CircuitOpen => "The payment company is not answering; nothing was sent",
        ProblemCode::DeadlinePassed => "The time was over; nothing was sent",
        ProblemCode::PgUnreachable => "The payment company cannot be reached; nothing was sent",
        ProblemCode::PgRefused => "The payment company refused the request before processing it",
        ProblemCode::Overloaded => "Too busy right now",
        ProblemCode::DatabaseBusy => "The database is busy",
        ProblemCode::ShuttingDown => "The server is restarting",
    }
}

/// When to come back: spread over 1 to 4 seconds, so that those refused together do not come back together.
pub(super) fn retry_after() -> HeaderValue {
    HeaderValue::from(1 + random::jitter() % 4)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let problem = Problem {
            kind: format!("/problems/{}", self.code),
            title: title(self.code).to_owned(),
            status: status.as_u16(),
            code: self.code.as_str().to_owned(),
            detail: self.detail,
            reach: self.reach,
            reason: self.reason,
        };
        let mut response = (status, axum::Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, retry_after());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_code_reaches_the_client_with_its_status_and_reads_back() {
        for code in ProblemCode::ALL {
            let response = Refusal::new(*code).into_response();
            assert_eq!(response.status().as_u16(), code.status(), "{code}");
            assert_eq!(
                response.headers().contains_key(header::RETRY_AFTER),
                matches!(code.status(), 503 | 429)
            );
            let body = axum::body::to_bytes(response.into_body(), 4_096)
                .await
                .unwrap();
            let problem: Problem = serde_json::from_slice(&body).unwrap();
            assert_eq!(ProblemCode::parse(&problem.code), Some(*code));
            assert!(problem.reach.is_none());
        }
    }
}
