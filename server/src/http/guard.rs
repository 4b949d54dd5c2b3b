//! What an exchange must pass before anything is looked at: its lane, and what one address or shopper may ask.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use metrics::counter;
use payment::wire::ProblemCode;
use tokio::sync::Semaphore;

use super::busy::busy;
use super::layers::Scope;
use super::problem::Refusal;
use super::{Web, body};
use crate::config::Switch;
use crate::lanes::Class;
use crate::store::Owner;
use crate::store::merchant::ShopId;

/// Orders that one address may make a minute, and at once. Mobile carriers put thousands of shoppers behind one address.
const ORDERS_OF_ADDRESS: (u32, u32) = (300, 100);
/// Orders that one shopper may make a minute, and at once.
const ORDERS_OF_SHOPPER: (u32, u32) = (20, 10);
/// Confirms of one address a minute, and at once.
const CONFIRMS_OF_ADDRESS: (u32, u32) = (600, 200);
/// Confirms of one shopper a minute, and at once: a declined card is tried again by hand.
const CONFIRMS_OF_SHOPPER: (u32, u32) = (30, 10);
/// Orders and refunds that one shop may ask for by its keys a minute, and at once: one machine asks for all its shoppers.
const WRITES_OF_SHOP: (u32, u32) = (1_200, 200);
/// What one shop may look at by its keys a minute, and at once.
const READS_OF_SHOP: (u32, u32) = (2_400, 400);

/// Holds a request in its lane for as long as it is worked on. A refusal says nothing about any order.
///
/// The body comes first: a place that is held while a body drips in could be held by anybody.
pub(super) async fn lane(State(web): State<Web>, request: Request, next: Next) -> Response {
    let get = matches!(*request.method(), Method::GET | Method::HEAD);
    let Some(class) = Class::of(get, request.uri().path()) else {
        return next.run(request).await;
    };
    let request = match whole(request).await {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(),
    };
    let app = &web.app;
    let wait = app.config.times.database_wait;
    match app.lanes.enter(class, &app.pressure, wait).await {
        Some(place) => {
            let response = next.run(request).await;
            drop(place);
            response
        }
        None => busy(&request, ProblemCode::Overloaded),
    }
}

/// A request with its body read; at most 64 KiB, so that all connections together hold little.
async fn whole(request: Request) -> Result<Request, Refusal> {
    if request.body().is_end_stream() {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let bytes = body::within_limits(body).await?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// Imitates a server with one thread per request (for measurements): all requests queue for one shared pool, and a worker
/// stays taken until its answer is made, whether or not anybody still waits for it.
pub(super) async fn workers(pool: Arc<Semaphore>, request: Request, next: Next) -> Response {
    let work = tokio::spawn(async move {
        let worker = pool.acquire_owned().await;
        let response = next.run(request).await;
        drop(worker);
        response
    });
    work.await
        .unwrap_or_else(|_| Refusal::new(ProblemCode::Internal).into_response())
}

/// How much one address or shopper may ask of what costs something.
pub struct RateLimits {
    order_ip: DefaultKeyedRateLimiter<IpAddr>,
    order_session: DefaultKeyedRateLimiter<Owner>,
    confirm_ip: DefaultKeyedRateLimiter<IpAddr>,
    confirm_session: DefaultKeyedRateLimiter<Owner>,
    shop_write: DefaultKeyedRateLimiter<ShopId>,
    shop_read: DefaultKeyedRateLimiter<ShopId>,
}

impl Default for RateLimits {
    fn default() -> Self {
        let quota = |(minute, burst)| {
            let some = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
            Quota::per_minute(some(minute)).allow_burst(some(burst))
        };
        Self {
            order_ip: RateLimiter::keyed(quota(ORDERS_OF_ADDRESS)),
            order_session: RateLimiter::keyed(quota(ORDERS_OF_SHOPPER)),
            confirm_ip: RateLimiter::keyed(quota(CONFIRMS_OF_ADDRESS)),
            confirm_session: RateLimiter::keyed(quota(CONFIRMS_OF_SHOPPER)),
            shop_write: RateLimiter::keyed(quota(WRITES_OF_SHOP)),
            shop_read: RateLimiter::keyed(quota(READS_OF_SHOP)),
        }
    }
}

impl RateLimits {
    /// The limit that an exchange exceeds, by its label. Counts the exchange otherwise.
    fn exceeded(&self, class: Class, ip: IpAddr, owner: Option<&Owner>) -> Option<&'static str> {
        let (of_ip, of_session, labels) = match class {
            Class::Order => (
                &self.order_ip,
                &self.order_session,
                ("order_ip", "order_session"),
            ),
            Class::Confirm => (
                &self.confirm_ip,
                &self.confirm_session,
                ("confirm_ip", "confirm_session"),
            ),
            Class::Webhook | Class::Poll | Class::Read | Class::Asset => return None,
        };
        // The shopper first: one that asks too much must not use up what others behind the same address may ask.
        if owner.is_some_and(|owner| of_session.check_key(owner).is_err()) {
            return Some(labels.1);
        }
        of_ip.check_key(&ip).is_err().then_some(labels.0)
    }

    /// Whether a shop asks too much by its keys. Counts the exchange otherwise.
    pub(super) fn shop_exceeds(&self, shop: ShopId, writes: bool) -> bool {
        let (limits, label) = if writes {
            (&self.shop_write, "shop_write")
        } else {
            (&self.shop_read, "shop_read")
        };
        let exceeds = limits.check_key(&shop).is_err();
        if exceeds {
            counter!("rate_limited_total", "limit" => label).increment(1);
        }
        exceeds
    }

    /// Drops what is not needed any more.
    pub fn tidy(&self) {
        self.order_ip.retain_recent();
        self.order_session.retain_recent();
        self.confirm_ip.retain_recent();
        self.confirm_session.retain_recent();
        self.shop_write.retain_recent();
        self.shop_read.retain_recent();
    }
}

/// Refuses an address or a shopper that asks too much; nothing is claimed by a refusal.
pub(super) async fn rate(State(web): State<Web>, request: Request, next: Next) -> Response {
    let app = &web.app;
    let by_key = request.uri().path().starts_with("/v1/");
    if app.config.rate_limits == Switch::Off || by_key || request.method() != Method::POST {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|info| info.0.ip());
    let class = Class::of(false, request.uri().path());
    if let (Some(peer), Some(class)) = (peer, class) {
        let scope = request.extensions().get::<Scope>();
        let owner = scope.and_then(|scope| scope.owner.as_ref());
        let ip = address(peer, request.headers(), &app.config.trusted_proxies);
        if let Some(limit) = app.rate_limits.exceeded(class, ip, owner) {
            counter!("rate_limited_total", "limit" => limit).increment(1);
            return busy(&request, ProblemCode::RateLimited);
        }
    }
    next.run(request).await
}

/// The address that asks: the peer's, or behind trusted proxies the last one that none of them is. An IPv6 customer has a
/// whole /64, so that counts as one.
pub(super) fn address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
    let trusts = |ip: &IpAddr| trusted.contains(&ip.to_canonical());
    let mut ip = peer;
    if trusts(&peer) {
        let forwarded = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|part| hop(part.trim()));
        let hops: Vec<_> = forwarded.collect();
        // What cannot be read is where trust ends: what stands before it is the client's own text.
        let mut readable = hops.into_iter().rev().map_while(|hop| hop);
        ip = readable.find(|ip| !trusts(ip)).unwrap_or(peer);
    }
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let mut parts = ip.segments();
            parts[4..].fill(0);
            IpAddr::V6(Ipv6Addr::from(parts))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// One hop of `X-Forwarded-For`: an address, with or without a port.
fn hop(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let with_port = || text.parse::<SocketAddr>().ok().map(|addr| addr.ip());
    bare.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_about_who_asks() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-forwarded-for",
            HeaderValue::from_static("6.6.6.6, 203.0.113.9, 10.0.0.2"),
        );
        let trusted = [ip("10.0.0.1"), ip("10.0.0.2")];
        assert_eq!(
            address(ip("10.0.0.1"), &headers, &trusted),
            ip("203.0.113.9")
        );
        assert_eq!(
            address(ip("198.51.100.1"), &headers, &trusted),
            ip("198.51.100.1")
        );
        assert_eq!(
            address(ip("10.0.0.1"), &HeaderMap::new(), &trusted),
            ip("10.0.0.1")
        );
        for (value, seen) in [
            ("6.6.6.6, 203.0.113.9:4711", "203.0.113.9"),
            ("6.6.6.6, [2001:db8::9]:443", "2001:db8::"),
            ("6.6.6.6, unknown", "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", HeaderValue::from_static(value));
            assert_eq!(
                address(ip("10.0.0.1"), &headers, &trusted),
                ip(seen),
                "{value}"
            );
        }
        let none = HeaderMap::new();
        assert_eq!(address(ip("2001:db8::1"), &none, &[]), ip("2001:db8::"));
        assert_eq!(address(ip("::ffff:192.0.2.1"), &none, &[]), ip("192.0.2.1"));
    }

    #[test]
    fn one_shopper_is_stopped_before_the_address_that_it_shares() {
        let limits = RateLimits::default();
        let (busy, other) = (Owner("a".to_owned()), Owner("b".to_owned()));
        let exceeded = |owner| limits.exceeded(Class::Confirm, ip("192.0.2.1"), Some(owner));
        for _ in 0..CONFIRMS_OF_SHOPPER.1 {
            assert_eq!(exceeded(&busy), None);
        }
        for _ in 0..1_000 {
            assert_eq!(exceeded(&busy), Some("confirm_session"));
        }
        assert_eq!(exceeded(&other), None);
        for _ in 0..WRITES_OF_SHOP.1 {
            assert!(!limits.shop_exceeds(ShopId(1), true));
        }
        let stopped = (0..1_000).filter(|_| limits.shop_exceeds(ShopId(1), true));
        assert!(stopped.count() > 500);
        assert!(!limits.shop_exceeds(ShopId(1), false));
        assert!(!limits.shop_exceeds(ShopId(2), true));
        let poll = limits.exceeded(Class::Poll, ip("192.0.2.1"), Some(&busy));
        assert_eq!(poll, None);
    }
}
