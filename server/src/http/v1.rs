//! The merchants' API: a shop that already exists makes orders here, and hears what became of them.
//!
//! `openapi.json` is its document. It is written by hand: a generator would be a dependency that changes how half of the others
//! are built. The tests hold every answer against it.

use axum::Router;
use axum::http::header;
use axum::routing::{any, get, post};
use payment::wire::ProblemCode;

use super::Web;
use super::problem::Refusal;

mod key;
mod orders;
mod refunds;
mod shown;
mod wire;

const DOCUMENT: &str = include_str!("v1/openapi.json");

pub(super) fn routes() -> Router<Web> {
    let json = [(header::CONTENT_TYPE, "application/json")];
    Router::new()
        .route("/v1/orders", post(orders::create).get(orders::list))
        .route("/v1/orders/{order}", get(orders::show))
        .route("/v1/orders/{order}/refunds", post(refunds::create))
        .route(
            "/v1/openapi.json",
            get(move || async move { (json, DOCUMENT) }),
        )
        .route(
            "/v1/{*rest}",
            any(|| async { Refusal::new(ProblemCode::NotFound) }),
        )
}
