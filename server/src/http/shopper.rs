//! Guest shoppers: an unguessable id in a signed cookie, made by the first order and by nothing else.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum_extra::extract::cookie::{Cookie, SameSite, SignedCookieJar};
use payment::wire::ProblemCode;

use super::Web;
use super::layers::Scope;
use super::problem::Refusal;
use crate::random;
use crate::store::Owner;

/// The cookie's name. The `__Host-` prefix needs TLS, which a development server and a lab's client do not have.
fn cookie_name(web: &Web) -> &'static str {
    if web.app.config.is_development() {
        "jari_shopper"
    } else {
        "__Host-jari_shopper"
    }
}

/// The shopper that a request's cookie names, if its signature is ours.
pub(super) fn owner(headers: &HeaderMap, web: &Web) -> Option<Owner> {
    let jar = SignedCookieJar::from_headers(headers, web.key.clone());
    let cookie = jar.get(cookie_name(web))?;
    Some(Owner(cookie.value().to_owned()))
}

/// The shopper of a request, made now if there is none, and the cookie jar to answer with.
pub(super) fn owner_or_new(headers: &HeaderMap, web: &Web) -> (Owner, SignedCookieJar) {
    let jar = SignedCookieJar::from_headers(headers, web.key.clone());
    if let Some(cookie) = jar.get(cookie_name(web)) {
        return (Owner(cookie.value().to_owned()), jar);
    }
    let id = random::secret();
    let cookie = Cookie::build((cookie_name(web), id.clone()))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(!web.app.config.is_development())
        // A guest's orders stay reachable as long as the browser allows.
        .permanent()
        .build();
    (Owner(id), jar.add(cookie))
}

/// The shopper of a request. Without one there is no order of theirs: the same answer as for an order that is not there.
pub(super) struct Shopper(pub(super) Owner);

impl FromRequestParts<Web> for Shopper {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Refusal> {
        let scope = parts.extensions.get::<Scope>();
        let owner = scope.and_then(|scope| scope.owner.clone());
        owner
            .map(Self)
            .ok_or_else(|| Refusal::new(ProblemCode::OrderNotFound))
    }
}
