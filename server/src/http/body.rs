//! JSON bodies: read whole and checked before anything is done with them. A body that drips holds nothing for long.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, OptionalFromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use payment::wire::ProblemCode;
use serde::de::DeserializeOwned;

use super::problem::Refusal;
use super::{BODY_LIMIT, Web};

/// A body must be there within this of its head: it is at most 64 KiB.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

fn slow() -> Refusal {
    Refusal::new(ProblemCode::InvalidRequest).with("the body took longer than 10 s")
}

/// A JSON body.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Web> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &Web) -> Result<Self, Refusal> {
        let json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                value
                    .split(';')
                    .next()
                    .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
            });
        if !json {
            return Err(Refusal::new(ProblemCode::UnsupportedMediaType));
        }
        let bytes = within_limits(request.into_body()).await?;
        // The parser's own words name fields and positions, never values of ours.
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Refusal::new(ProblemCode::InvalidRequest).with(error.to_string()))
    }
}

/// An HTML form's fields.
pub(super) struct Form<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Web> for Form<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Refusal> {
        let form = axum::extract::Form::<T>::from_request(request, web).await;
        form.map(|form| Self(form.0)).map_err(|rejection| {
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(ProblemCode::BodyTooLarge),
                StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                    Refusal::new(ProblemCode::UnsupportedMediaType)
                }
                _ => Refusal::new(ProblemCode::InvalidRequest).with("not this form's fields"),
            }
        })
    }
}

/// A form that need not be there: a post that names no kind of body has none.
impl<T: DeserializeOwned> OptionalFromRequest<Web> for Form<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, web: &Web) -> Result<Option<Self>, Refusal> {
        if !request.headers().contains_key(header::CONTENT_TYPE) {
            return Ok(None);
        }
        <Self as FromRequest<Web>>::from_request(request, web)
            .await
            .map(Some)
    }
}

/// A body, whole, in time and within the limit.
pub(super) async fn within_limits(body: Body) -> Result<Bytes, Refusal> {
    let read = axum::body::to_bytes(body, BODY_LIMIT);
    let bytes = tokio::time::timeout(BODY_TIMEOUT, read)
        .await
        .map_err(|_| slow())?;
    bytes.map_err(|error| {
        let large = std::error::Error::source(&error)
            .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>());
        if large {
            Refusal::new(ProblemCode::BodyTooLarge)
        } else {
            Refusal::new(ProblemCode::InvalidRequest).with("the body did not arrive whole")
        }
    })
}
