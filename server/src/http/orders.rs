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
use crate::gateway::Window;
use crate::random;
use crate::store::{AttemptRecord, NewOrderRow, OrderMade, OrderRecord, Owner};
use crate::window::{self, NotOpened, Opening};

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
    let order_id = OrderId::parse(&id).map_err(|_| Refusal::new(ProblemCode::OrderNotFound))?;
    let opening = Opening {
        order_id,
        owner,
        gateway: new.gateway,
        left: None,
        public_url: public_url(&web.app, &headers),
    };
    let (attempt, window) = open_window(&web.app, opening).await?;
    let created = AttemptCreated {
        attempt: attempt.number,
        gateway_order_id: attempt.gateway_order_id,
        reference: attempt.reference,
        pay_url: address_of(window, &headers),
    };
    Ok((StatusCode::CREATED, JsonBody(created)).into_response())
}

/// The ready attempt of an order of this shopper, and where it is paid.
pub(super) async fn open_window(
    app: &App,
    opening: Opening,
) -> Result<(AttemptRecord, Window), Refusal> {
    window::open(app, opening).await.map_err(|why| {
        let refusal = Refusal::new(window::problem_of(&why));
        match why {
            NotOpened::NoGateway => refusal.with("there is no such gateway"),
            NotOpened::Store(error) => Refusal::from(error),
            NotOpened::Closed(_)
            | NotOpened::Full
            | NotOpened::Unreachable
            | NotOpened::Refused => refusal,
        }
    })
}

/// The address of a payment window for the device that asks. What a browser says of itself decides nothing but which of two
/// pages it is shown.
pub(super) fn address_of(window: Window, headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mobile = match text("sec-ch-ua-mobile") {
        Some(hint) => hint.trim() == "?1",
        None => text("user-agent").is_some_and(|agent| {
            ["Mobi", "Android", "iPhone", "iPad"]
                .iter()
                .any(|word| agent.contains(word))
        }),
    };
    if mobile {
        window.mobile
    } else {
        window.desktop
    }
}

/// The address that shoppers see. Only a development server believes the request's host.
pub(super) fn public_url(app: &App, headers: &HeaderMap) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_is_sent_to_the_phones_page_by_its_hint_or_its_name() {
        let told = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            let window = Window {
                desktop: "desktop".to_owned(),
                mobile: "mobile".to_owned(),
            };
            address_of(window, &headers)
        };
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Mobile/15E148";
        let computer = "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0";
        assert_eq!(told(&[("user-agent", phone)]), "mobile");
        assert_eq!(told(&[("user-agent", computer)]), "desktop");
        assert_eq!(told(&[]), "desktop");
        assert_eq!(
            told(&[("user-agent", computer), ("sec-ch-ua-mobile", "?1")]),
            "mobile"
        );
        assert_eq!(
            told(&[("user-agent", phone), ("sec-ch-ua-mobile", "?0")]),
            "desktop"
        );
    }
}
