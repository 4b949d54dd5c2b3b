//! The HTTP side: routes grouped by who calls them, each parsing, calling a step and answering.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse as _;
use axum_extra::extract::cookie::Key;
use leptos::config::LeptosOptions;
use metrics_exporter_prometheus::PrometheusHandle;
use payment::wire::ProblemCode;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::CsrfLayer;

use crate::app::App;

pub mod accept;
pub(crate) mod assets;
mod body;
mod busy;
mod cancels;
mod console;
mod console_data;
mod dev;
mod forms;
pub mod guard;
mod layers;
mod link;
mod operations;
mod orders;
mod pages;
mod payments;
pub mod problem;
mod shopper;
mod timeline;
mod v1;
mod webhooks;
mod window;

/// The largest body that is read (spec section 5).
const BODY_LIMIT: usize = 64 * 1024;

/// What the routes share.
#[derive(Clone)]
pub struct Web {
    /// The process.
    pub app: Arc<App>,
    /// Signs cookies.
    pub key: Key,
    /// Where the built pages are.
    pub leptos: LeptosOptions,
    /// Renders the metrics; `None` where no recorder is installed (tests).
    pub metrics: Option<PrometheusHandle>,
}

impl FromRef<Web> for LeptosOptions {
    fn from_ref(web: &Web) -> Self {
        web.leptos.clone()
    }
}

impl FromRef<Web> for Key {
    fn from_ref(web: &Web) -> Self {
        web.key.clone()
    }
}

/// All routes under all layers.
pub fn router(web: Web) -> Router {
    let csrf = CsrfLayer::new().with_rejection_response(|_| {
        problem::Refusal::from(ProblemCode::ForbiddenOrigin).into_response()
    });
    let shopping = Router::new()
        .merge(orders::routes())
        .merge(payments::routes())
        .merge(cancels::routes())
        .merge(forms::routes())
        .merge(window::routes())
        .merge(console::routes())
        .merge(link::routes())
        .merge(dev::routes(web.app.config.is_development()))
        .layer(csrf);
    let api = Router::new()
        .merge(shopping)
        .merge(webhooks::routes())
        .merge(v1::routes())
        .merge(operations::routes())
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .method_not_allowed_fallback(|| async {
            problem::Refusal::from(ProblemCode::MethodNotAllowed)
        });
    let routes = pages::mount(api, &web)
        .layer(from_fn_with_state(web.clone(), console::door))
        .layer(from_fn_with_state(web.clone(), guard::rate))
        .layer(from_fn_with_state(web.clone(), layers::request_scope))
        .layer(from_fn_with_state(web.clone(), guard::lane));
    let routes = match web.app.config.lab_workers {
        Some(workers) => {
            let pool = Arc::new(Semaphore::new(workers as usize));
            routes.layer(from_fn(move |request, next| {
                guard::workers(Arc::clone(&pool), request, next)
            }))
        }
        None => routes,
    };
    routes
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(from_fn(layers::headers))
        .layer(from_fn(layers::observe))
        .with_state(web)
}
