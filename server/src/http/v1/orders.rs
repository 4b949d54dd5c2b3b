//! A shop's orders: made once for each of its keys, seen by it alone.

use axum::Json as JsonBody;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use payment::id::OrderId;
use payment::money::Won;
use payment::time::Millis;
use payment::wire::ProblemCode;

use super::key::Merchant;
use super::shown;
use super::wire::{ByReference, Language, NewOrder, Order, OrderLine, Orders};
use crate::http::Web;
use crate::http::body::Json;
use crate::http::cancels::key_of;
use crate::http::orders::public_url;
use crate::http::problem::Refusal;
use crate::merchant::{return_url, sha256};
use crate::random;
use crate::store::merchant::{NewShopOrder, ShopLine, ShopOrderMade};

/// Most lines of an order, and the longest name of one.
const MOST_LINES: usize = 50;
const LONGEST_NAME: usize = 100;
/// Most of one line.
const MOST_OF_ONE: u32 = 9_999;
/// The longest reference.
const LONGEST_REFERENCE: usize = 200;
/// The largest order, in won; a mistake of a shop's is rather this large than an order.
const LARGEST: i64 = 1_000_000_000;
/// For how long an order may be payable, in seconds: a minute to 30 days.
const EXPIRY: std::ops::RangeInclusive<u64> = 60..=2_592_000;
/// Most orders of one reference that are told.
const MOST_TOLD: u32 = 20;

/// Makes an order. The same Idempotency-Key with the same body is the same order, for ever.
pub(super) async fn create(
    State(web): State<Web>,
    Merchant(shop): Merchant,
    headers: HeaderMap,
    Json(wish): Json<NewOrder>,
) -> Result<Response, Refusal> {
    let app = &web.app;
    if app.stopping.is_cancelled() {
        return Err(Refusal::new(ProblemCode::ShuttingDown));
    }
    let idempotency_key = key_of(&headers)?;
    let (lines, amount) = checked_lines(&wish.lines)?;
    check_texts(&wish)?;
    let production = !app.config.is_development();
    return_url(&wish.return_url, &shop.return_origins, production)
        .map_err(|why| invalid(&format!("returnUrl: {why}")))?;
    let ttl = wish
        .expires_in_seconds
        .map_or(app.config.order_ttl, Millis::from_secs);
    let merchants = app.merchants.as_ref();
    let merchants = merchants.ok_or_else(|| Refusal::new(ProblemCode::Unauthorized))?;
    // As it was understood, so that another spelling of the same wish is the same.
    let body = serde_json::to_vec(&wish).map_err(|_| Refusal::new(ProblemCode::Internal))?;
    let (id, at) = (random::order_id(), app.clock.epoch());
    let new = NewShopOrder {
        id: id.clone(),
        shop: shop.id,
        link: random::secret(),
        idempotency_key,
        body_hash: sha256(&body),
        reference: wish.reference,
        return_url: wish.return_url,
        lines,
        amount,
        language: wish.language.map(|language| match language {
            Language::Ko => "ko",
            Language::En => "en",
        }),
        at,
        expires_at: at.plus(ttl),
    };
    let (status, id) = match merchants.make_shop_order(new).await? {
        ShopOrderMade::Made => (StatusCode::CREATED, id),
        ShopOrderMade::Repeated(id) => (StatusCode::OK, id),
        ShopOrderMade::KeyReused => {
            return Err(Refusal::new(ProblemCode::IdempotencyKeyReused));
        }
    };
    let order = shown::order(app, shop.id, &id, &public_url(app, &headers)).await?;
    Ok((status, JsonBody(order)).into_response())
}

/// Tells of an order.
pub(super) async fn show(
    State(web): State<Web>,
    Merchant(shop): Merchant,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> Result<JsonBody<Order>, Refusal> {
    let id = order_in(path)?;
    let app = &web.app;
    let order = shown::order(app, shop.id, &id, &public_url(app, &headers)).await?;
    Ok(JsonBody(order))
}

/// Tells of the orders that a shop calls by a name, the newest first.
pub(super) async fn list(
    State(web): State<Web>,
    Merchant(shop): Merchant,
    headers: HeaderMap,
    query: Result<Query<ByReference>, QueryRejection>,
) -> Result<JsonBody<Orders>, Refusal> {
    let Query(which) = query.map_err(|_| invalid("the query is reference=…, once"))?;
    check_text("reference", &which.reference, LONGEST_REFERENCE)?;
    let app = &web.app;
    let merchants = app.merchants.as_ref();
    let merchants = merchants.ok_or_else(|| Refusal::new(ProblemCode::Unauthorized))?;
    let ids = merchants
        .orders_by_reference(shop.id, &which.reference, MOST_TOLD)
        .await?;
    let public_url = public_url(app, &headers);
    let mut orders = Vec::with_capacity(ids.len());
    for id in ids {
        orders.push(shown::order(app, shop.id, &id, &public_url).await?);
    }
    Ok(JsonBody(Orders { orders }))
}

/// The order that an address names; what cannot be an id is no order.
pub(super) fn order_in(path: Result<Path<String>, PathRejection>) -> Result<OrderId, Refusal> {
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    let Path(text) = path.map_err(|_| missing())?;
    OrderId::parse(&text).map_err(|_| missing())
}

fn invalid(detail: &str) -> Refusal {
    Refusal::new(ProblemCode::InvalidRequest).with(detail)
}

fn check_text(name: &str, text: &str, most: usize) -> Result<(), Refusal> {
    let plain = !text.trim().is_empty() && !text.chars().any(char::is_control);
    if plain && text.chars().count() <= most {
        return Ok(());
    }
    Err(invalid(&format!(
        "{name} has 1 to {most} characters on one line"
    )))
}

fn check_texts(wish: &NewOrder) -> Result<(), Refusal> {
    check_text("reference", &wish.reference, LONGEST_REFERENCE)?;
    if wish
        .expires_in_seconds
        .is_some_and(|seconds| !EXPIRY.contains(&seconds))
    {
        return Err(invalid("expiresInSeconds is 60 to 2592000"));
    }
    Ok(())
}

/// The lines as they are stored, and their sum.
fn checked_lines(lines: &[OrderLine]) -> Result<(Vec<ShopLine>, Won), Refusal> {
    if lines.is_empty() || lines.len() > MOST_LINES {
        return Err(invalid("an order has 1 to 50 lines"));
    }
    let bounded = |amount: i64| (0..=LARGEST).contains(&amount);
    let mut sum = Won::ZERO;
    let mut checked = Vec::with_capacity(lines.len());
    for line in lines {
        check_text("name", &line.name, LONGEST_NAME)?;
        if !(1..=MOST_OF_ONE).contains(&line.quantity) {
            return Err(invalid("quantity is 1 to 9999"));
        }
        let price = Won::new(line.unit_amount).ok();
        let price = price.filter(|price| bounded(price.get()));
        let price = price.ok_or_else(|| invalid("unitAmount is 0 to 1000000000"))?;
        let total = price.times(line.quantity).and_then(|line| sum.plus(line));
        sum = total.ok_or_else(|| invalid("the sum is too large"))?;
        checked.push(ShopLine {
            name: line.name.clone(),
            quantity: line.quantity,
            price,
        });
    }
    if sum == Won::ZERO || !bounded(sum.get()) {
        return Err(invalid("the sum is 1 to 1000000000"));
    }
    Ok((checked, sum))
}
