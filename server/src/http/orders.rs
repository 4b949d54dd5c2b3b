//! Products, orders, attempts and the poll.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json as JsonBody};
use payment::id::{OrderId, Sku};
use payment::money::Won;
use payment::wire::{
    AttemptCreated, NewAttempt, NewOrder, OrderCreated, OrderState, ProblemCode, Product,
};

use super::Web;
use super::body::Json;
use super::layers::Scope;
use super::problem::Refusal;
use super::shopper::{Shopper, owner_or_new};
use crate::app::App;
use crate::changes;
use crate::confirm::closed_code;
use crate::gateway::{OpenOutcome, WindowRequest};
use crate::random;
use crate::store::{
    AttemptRecord, NewAttemptRow, NewOrderRow, Opened, OrderMade, OrderRecord, Owner,
};

/// Most lines of an order, and most of one product.
const MOST_LINES: usize = 20;
const MOST_OF_ONE: u32 = 99;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/api/products", get(products))
        .route("/api/orders", post(create))
        .route("/api/orders/{order}", get(poll))
        .route("/api/orders/{order}/attempts", post(open))
}

async fn products(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
) -> Result<JsonBody<Vec<Product>>, Refusal> {
    let shelf = web.app.reads.products().await?;
    let index = usize::from(scope.lang == app::text::Lang::En);
    let product = |row: crate::store::ProductRow| Product {
        sku: row.sku,
        name: row.name[index].clone(),
        price: row.price,
        available: row.available,
    };
    Ok(JsonBody(shelf.into_iter().map(product).collect()))
}

async fn create(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    headers: HeaderMap,
    Json(order): Json<NewOrder>,
) -> Result<Response, Refusal> {
    let items: Vec<_> = order
        .items
        .into_iter()
        .map(|item| (item.sku, item.quantity))
        .collect();
    let (owner, jar) = owner_or_new(&headers, &web);
    let (order_id, amount) = make_order(&web.app, owner, scope.lang, items).await?;
    let checkout_url = format!("/checkout/{order_id}");
    let created = OrderCreated {
        order_id,
        amount,
        currency: "KRW".to_owned(),
        checkout_url,
    };
    Ok((StatusCode::CREATED, jar, JsonBody(created)).into_response())
}

/// Makes an order at the shelf's prices.
pub(super) async fn make_order(
    app: &App,
    owner: Owner,
    lang: app::text::Lang,
    items: Vec<(Sku, u32)>,
) -> Result<(OrderId, Won), Refusal> {
    let invalid = |detail: &str| Refusal::new(ProblemCode::InvalidRequest).with(detail);
    if items.is_empty() || items.len() > MOST_LINES {
        return Err(invalid("an order has 1 to 20 lines"));
    }
    // Two lines of one product are one line: stock is moved per product.
    let mut merged: BTreeMap<Sku, u32> = BTreeMap::new();
    for (sku, quantity) in items {
        let sum = merged.entry(sku).or_default();
        *sum = sum.saturating_add(quantity);
        if quantity == 0 || *sum > MOST_OF_ONE {
            return Err(invalid("a quantity is 1 to 99"));
        }
    }
    let at = app.clock.epoch();
    let id = random::order_id();
    let row = NewOrderRow {
        id: id.clone(),
        owner,
        items: merged.into_iter().collect(),
        at,
        expires_at: at.plus(app.config.order_ttl),
        language: Some(lang.tag()),
    };
    match app.store.make_order(row).await? {
        OrderMade::Made(amount) => Ok((id, amount)),
        OrderMade::UnknownSku(sku) => Err(invalid(&format!("there is no product {sku}"))),
        OrderMade::OutOfStock(sku) => {
            Err(Refusal::new(ProblemCode::OutOfStock).with(format!("not enough of {sku} is left")))
        }
        OrderMade::TooMuch => Err(invalid("the sum is too large")),
    }
}

/// An order of this shopper; another's is answered like one that is not there.
pub(super) async fn own_order(app: &App, owner: &Owner, id: &str) -> Result<OrderRecord, Refusal> {
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    let id = OrderId::parse(id).map_err(|_| missing())?;
    let order = app.store.order(&id).await?;
    order
        .filter(|order| order.owner == *owner)
        .ok_or_else(missing)
}

async fn poll(
    State(web): State<Web>,
    Shopper(owner): Shopper,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let missing = || Refusal::new(ProblemCode::OrderNotFound);
    let id = OrderId::parse(&id).map_err(|_| missing())?;
    let state = changes::state_of(&web.app, &owner, &id).await?;
    Ok(state_response(&state.ok_or_else(missing)?, &headers))
}

/// An order's state with its ETag, or 304 when the page has it already.
fn state_response(state: &OrderState, headers: &HeaderMap) -> Response {
    let Ok(body) = serde_json::to_string(state) else {
        return Refusal::new(ProblemCode::Internal).into_response();
    };
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let etag = format!("\"{:016x}\"", hasher.finish());
    let same = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|value| value.as_bytes() == etag.as_bytes());
    let fresh = [
        (header::ETAG, etag),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    if same {
        return (StatusCode::NOT_MODIFIED, fresh).into_response();
    }
    (fresh, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn open(
    State(web): State<Web>,
    Shopper(owner): Shopper,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewAttempt>,
) -> Result<Response, Refusal> {
    let gateway = new.gateway.map(|name| name.to_string());
    let attempt = open_attempt(&web.app, owner, &id, gateway.as_deref()).await?;
    let created = AttemptCreated {
        attempt: attempt.number,
        gateway_order_id: attempt.gateway_order_id.clone(),
        reference: attempt.reference.clone(),
        pay_url: window_url(&web.app, &attempt, &headers).await?,
    };
    Ok((StatusCode::CREATED, JsonBody(created)).into_response())
}

/// The ready attempt of an order of this shopper.
pub(super) async fn open_attempt(
    app: &App,
    owner: Owner,
    id: &str,
    gateway: Option<&str>,
) -> Result<AttemptRecord, Refusal> {
    let order_id = OrderId::parse(id).map_err(|_| Refusal::new(ProblemCode::OrderNotFound))?;
    let line = match gateway {
        None => app.lines.first(),
        Some(name) => app
            .lines
            .iter()
            .find(|line| line.gateway.name().as_str() == name),
    };
    let Some(line) = line else {
        return Err(Refusal::new(ProblemCode::InvalidRequest).with("there is no such gateway"));
    };
    let at = app.clock.epoch();
    let row = NewAttemptRow {
        order_id,
        owner,
        gateway: line.gateway.name().clone(),
        reference: random::attempt_reference(),
        at,
        window_until: at
            .plus(line.times.authentication_window)
            .plus(line.times.confirm_window),
    };
    let opened = app.store.open_attempt(row).await?;
    match opened {
        Opened::Ready(attempt) => {
            app.cache.forget(&attempt.order_id);
            Ok(*attempt)
        }
        Opened::Closed(closed) => Err(Refusal::new(closed_code(closed))),
    }
}

/// What the payment window of an attempt is told.
pub(super) async fn window_request(
    app: &App,
    attempt: &AttemptRecord,
    headers: &HeaderMap,
) -> Result<WindowRequest, Refusal> {
    let lines = app.store.lines(&attempt.order_id).await?;
    let name = lines
        .first()
        .map_or_else(|| attempt.order_id.to_string(), |line| line.name[0].clone());
    let quantity = lines.iter().map(|line| line.quantity).sum::<u32>().max(1);
    let order_name = match lines.len() {
        0 | 1 => name,
        n => format!("{name} 외 {}건", n - 1),
    };
    let checkout = format!("{}/checkout/{}", public_url(app, headers), attempt.order_id);
    let back = format!("{checkout}/return/{}", attempt.reference);
    Ok(WindowRequest {
        gateway_order_id: attempt.gateway_order_id.clone(),
        order_name,
        quantity,
        amount: attempt.attempt.expected.amount,
        success_url: back.clone(),
        fail_url: back.clone(),
        close_url: back,
        page_url: format!("{checkout}/pay/{}", attempt.reference),
    })
}

/// Where the shopper pays an attempt.
pub(super) async fn window_url(
    app: &App,
    attempt: &AttemptRecord,
    headers: &HeaderMap,
) -> Result<String, Refusal> {
    let Some(line) = app.line(&attempt.gateway) else {
        return Err(Refusal::new(ProblemCode::Internal));
    };
    let request = window_request(app, attempt, headers).await?;
    match line.gateway.open(&request).await {
        OpenOutcome::Opened { window, .. } => Ok(window.desktop),
        OpenOutcome::Refused(_) => Err(Refusal::new(ProblemCode::PgRefused)),
        OpenOutcome::NoAnswer(_) => Err(Refusal::new(ProblemCode::PgUnreachable)),
    }
}

/// The address that shoppers see. Only a development server believes the request's host.
fn public_url(app: &App, headers: &HeaderMap) -> String {
    if let Some(url) = &app.config.public_url {
        return url.clone();
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    host.map_or_else(
        || format!("http://{}", app.config.addr),
        |host| format!("http://{host}"),
    )
}
