//! Which shop asks: by its key, and never by a cookie.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Method, header};
use payment::time::Millis;
use payment::wire::ProblemCode;

use crate::config::Switch;
use crate::http::Web;
use crate::http::problem::Refusal;
use crate::merchant::{fits, handle_of};
use crate::store::merchant::{KnownKey, ShopRow};

/// How exactly a key's last use is known: a write for every request would be one too many.
const USE_STEP: Millis = Millis::from_secs(60);

/// The shop whose key a request carries.
pub(super) struct Merchant(pub(super) ShopRow);

impl FromRequestParts<Web> for Merchant {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Refusal> {
        let app = &web.app;
        let unauthorized = || Refusal::new(ProblemCode::Unauthorized);
        let text = bearer(parts).ok_or_else(unauthorized)?;
        let handle = handle_of(text).ok_or_else(unauthorized)?;
        let merchants = app.merchants.as_ref().ok_or_else(unauthorized)?;
        let known = merchants.key(handle).await?;
        let known = known
            .filter(|known| fits(text, &known.hash))
            .ok_or_else(unauthorized)?;
        let writes = parts.method == Method::POST;
        if app.config.rate_limits == Switch::On
            && app.rate_limits.shop_exceeds(known.shop.id, writes)
        {
            return Err(Refusal::new(ProblemCode::RateLimited));
        }
        note_use(web, &known).await;
        Ok(Self(known.shop))
    }
}

/// The token of the one Authorization header, if it is a bearer's.
fn bearer(parts: &Parts) -> Option<&str> {
    let mut given = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

/// Notes now and then that a key is in use; whether that can be stored decides nothing.
async fn note_use(web: &Web, known: &KnownKey) {
    let now = web.app.clock.epoch();
    let fresh = known
        .used_at
        .is_some_and(|at| at.plus(USE_STEP) > now && at <= now);
    let Some(merchants) = web.app.merchants.as_ref().filter(|_| !fresh) else {
        return;
    };
    if let Err(error) = merchants.key_used(known.id, now).await {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "a key's use could not be noted"
        );
    }
}
