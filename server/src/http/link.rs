//! The links by which shoppers of other shops come: whoever brings one may see and pay its order, and no other.
//!
//! A browser keeps the orders whose links it opened in a cookie of their own, signed, beside the shopper's: several tabs with
//! several orders are open at once, and none may lose its order while it is being paid.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use axum::{Extension, Router};
use axum_extra::extract::cookie::{Cookie, SameSite, SignedCookieJar};
use payment::id::{GatewayOrderId, OrderId};
use payment::wire::ProblemCode;

use super::Web;
use super::forms::language_cookie;
use super::layers::Scope;
use super::problem::Refusal;
use crate::app::App;
use crate::gateway::secret::Secret;
use crate::store::{Owner, StoreError};

/// Most orders that a browser keeps: the oldest is forgotten, and its link opens it again. All of them fit into a cookie.
const MOST_LINKS: usize = 8;

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/pay/{order}/{link}", get(open))
}

/// The address that opens an order for whoever has it.
pub(super) fn address(public_url: &str, order: &OrderId, owner: &Owner) -> String {
    format!("{public_url}/pay/{order}/{}", owner.0)
}

fn cookie_name(web: &Web) -> &'static str {
    if web.app.config.is_development() {
        "jari_links"
    } else {
        "__Host-jari_links"
    }
}

/// The orders whose links were opened in a browser, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Links(Vec<(OrderId, Owner)>);

impl Links {
    /// What a request's cookie names, if its signature is ours.
    pub(super) fn of(headers: &HeaderMap, web: &Web) -> Self {
        let jar = SignedCookieJar::from_headers(headers, web.key.clone());
        let cookie = jar.get(cookie_name(web));
        cookie.map_or_else(Self::default, |cookie| Self::parse(cookie.value()))
    }

    fn parse(text: &str) -> Self {
        let link = |pair: &str| {
            let (order, owner) = pair.split_once('.')?;
            Some((OrderId::parse(order).ok()?, Owner(owner.to_owned())))
        };
        Self(text.split('~').filter_map(link).take(MOST_LINKS).collect())
    }

    fn text(&self) -> String {
        let links = self.0.iter().map(|(id, owner)| format!("{id}.{}", owner.0));
        links.collect::<Vec<_>>().join("~")
    }

    fn with(mut self, order: OrderId, owner: Owner) -> Self {
        self.0.retain(|(id, _)| *id != order);
        self.0.insert(0, (order, owner));
        self.0.truncate(MOST_LINKS);
        self
    }

    fn owner_of(&self, order: &str) -> Option<Owner> {
        let mut links = self.0.iter();
        links
            .find(|(id, _)| id.as_str() == order)
            .map(|(_, owner)| owner.clone())
    }

    /// Whoever may see the order that an address names.
    pub(super) fn owner_in(&self, path: &str) -> Option<Owner> {
        if self.0.is_empty() {
            return None;
        }
        path.split('/').find_map(|part| self.owner_of(part))
    }

    /// Whoever may pay what a gateway calls by this name; it is looked up, and only for browsers that opened a link.
    pub(super) async fn owner_of_payment(
        &self,
        app: &App,
        id: &GatewayOrderId,
    ) -> Result<Option<Owner>, StoreError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        // A first attempt that was never opened is made by its claim, under the order's own name.
        if let Some(owner) = self.owner_of(id.as_str()) {
            return Ok(Some(owner));
        }
        let attempts = app.store.attempts_by_gateway_order(id).await?;
        let mut orders = attempts.iter().map(|record| record.order_id.as_str());
        Ok(orders.find_map(|order| self.owner_of(order)))
    }
}

/// Opens an order for the browser that brings its link, and leads to its checkout.
async fn open(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    Path((order, link)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    let id = OrderId::parse(&order).map_err(|_| missing())?;
    let app = &web.app;
    let to = Redirect::to(&format!("/checkout/{id}"));
    let order = app.polls.order(&id).await?;
    let opened = order.filter(|order| Secret::new(&order.owner.0).is(&link));
    let merchants = app.merchants.as_ref().ok_or_else(missing)?;
    // An order that was made here has no link: its shopper's own cookie is not to be given away by an address.
    let (Some(order), Some(known)) = (opened, merchants.shop_order(&id).await?) else {
        // The page of an order that is not there.
        return Ok(to.into_response());
    };
    let language = order_language(&headers, known.language.as_deref());
    let links = scope.links.with(id, order.owner);
    let cookie = Cookie::build((cookie_name(&web), links.text()))
        .path("/")
        .http_only(true)
        // The gateway's window leads back from another site.
        .same_site(SameSite::Lax)
        .secure(!app.config.is_development())
        .permanent()
        .build();
    let jar = SignedCookieJar::from_headers(&headers, web.key.clone()).add(cookie);
    let mut response = (jar, to).into_response();
    let language = language.map(|lang| language_cookie(app, lang));
    if let Some(cookie) = language.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The language that the shop says its shopper reads, unless the shopper has chosen one here.
fn order_language(headers: &HeaderMap, told: Option<&str>) -> Option<app::text::Lang> {
    let mut cookies = headers.get_all(header::COOKIE).iter();
    let chosen = cookies.any(|value| {
        let text = value.to_str().unwrap_or_default();
        text.split(';')
            .any(|cookie| cookie.trim().starts_with("jari_lang="))
    });
    told.filter(|_| !chosen).and_then(app::text::Lang::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: usize) -> OrderId {
        OrderId::parse(&format!("ord_{n}")).unwrap()
    }

    #[test]
    fn links_are_read_back_the_newest_first_and_the_oldest_is_forgotten() {
        let owner = |n: usize| Owner(format!("secret{n}"));
        let links =
            (0..=MOST_LINKS).fold(Links::default(), |links, n| links.with(order(n), owner(n)));
        let links = links.with(order(3), owner(3));
        assert_eq!(links.0.len(), MOST_LINKS);
        assert_eq!(links.0[0], (order(3), owner(3)));
        assert_eq!(Links::parse(&links.text()), links);
        assert_eq!(links.owner_in("/checkout/ord_3/return/x"), Some(owner(3)));
        assert_eq!(links.owner_in("/api/orders/ord_0"), None, "forgotten");
        assert_eq!(links.owner_in("/orders"), None);
        for bad in ["", "~", "ord_1", "a b.c", "."] {
            assert_eq!(Links::parse(bad), Links::default(), "{bad:?}");
        }
    }
}
