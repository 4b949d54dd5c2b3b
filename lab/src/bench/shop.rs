//! What shoppers and the gateway ask of the shop, one exchange a function.

use anyhow::Context as _;
use hyper::StatusCode;
use hyper::header::{ETAG, HeaderName, IF_NONE_MATCH, SET_COOKIE};
use payment::wire::{ConfirmRequest, OrderCreated};
use serde_json::{Value, json};

use super::client::{Connection, Reply};

/// The sender's own id of a webhook.
const TRANSMISSION: HeaderName = HeaderName::from_static("tosspayments-webhook-transmission-id");

/// An order and whose it is.
#[derive(Debug, Clone)]
pub(super) struct Ordered {
    pub(super) cookie: String,
    pub(super) order: OrderCreated,
}

/// An order whose payment was authenticated.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    pub(super) cookie: String,
    pub(super) path: String,
    pub(super) request: ConfirmRequest,
}

/// Orders one piece of what never runs out; an empty cookie is a new shopper.
pub(super) async fn order(shop: &mut Connection, cookie: &str) -> anyhow::Result<Ordered> {
    let body = r#"{"items":[{"sku":"mug","quantity":1}]}"#;
    let made = shop.post("/api/orders", cookie, &[], body).await?;
    let made = made.must_be(StatusCode::CREATED)?;
    let given = made.headers.get(SET_COOKIE);
    let cookie = match given {
        Some(given) => given.to_str()?.split(';').next().unwrap_or_default(),
        None => cookie,
    };
    Ok(Ordered {
        cookie: cookie.to_owned(),
        order: serde_json::from_slice(&made.body)?,
    })
}

/// The shopper authenticates the payment in the gateway's window.
pub(super) async fn authenticate(
    gateway: &mut Connection,
    ordered: Ordered,
) -> anyhow::Result<Ready> {
    let Ordered { cookie, order } = ordered;
    let body = json!({"orderId": order.order_id, "amount": order.amount}).to_string();
    let made = gateway.post("/_control/payments", "", &[], body).await?;
    let made: Value = serde_json::from_slice(&made.must_be(StatusCode::OK)?.body)?;
    let key = made["paymentKey"].as_str().context("no payment key")?;
    Ok(Ready {
        cookie,
        path: format!("/api/orders/{}", order.order_id),
        request: ConfirmRequest {
            payment_key: payment::id::PaymentKey::parse(key)?,
            order_id: order.order_id.gateway_order_id(1),
            amount: order.amount,
        },
    })
}

/// Confirms, and is told that it is paid.
pub(super) async fn confirm(shop: &mut Connection, ready: &Ready) -> anyhow::Result<()> {
    let body = serde_json::to_vec(&ready.request)?;
    let said = shop
        .post("/api/payments/confirm", &ready.cookie, &[], body)
        .await?;
    said.must_be(StatusCode::OK)?;
    Ok(())
}

/// Reads an order's state.
pub(super) async fn read(shop: &mut Connection, ready: &Ready) -> anyhow::Result<Reply> {
    let said = shop.get(&ready.path, &ready.cookie, &[]).await?;
    said.must_be(StatusCode::OK)
}

/// Polls an order whose state is known already.
pub(super) async fn poll(
    shop: &mut Connection,
    (ready, etag): (&Ready, &str),
) -> anyhow::Result<()> {
    let known = [(IF_NONE_MATCH, etag)];
    let said = shop.get(&ready.path, &ready.cookie, &known).await?;
    said.must_be(StatusCode::NOT_MODIFIED)?;
    Ok(())
}

/// The version of a state.
pub(super) fn version(reply: &Reply) -> anyhow::Result<String> {
    let etag = reply.headers.get(ETAG).context("a state has no version")?;
    Ok(etag.to_str()?.to_owned())
}

/// Reads the history page; how long it is, in bytes.
pub(super) async fn history(shop: &mut Connection, cookie: &str) -> anyhow::Result<usize> {
    let page = shop.get("/orders", cookie, &[]).await?;
    Ok(page.must_be(StatusCode::OK)?.body.len())
}

/// The gateway tells of a paid order, under an id of its own.
pub(super) async fn webhook(
    shop: &mut Connection,
    (ready, number): (&Ready, usize),
) -> anyhow::Result<()> {
    let request = &ready.request;
    let data = json!({"paymentKey": request.payment_key, "orderId": request.order_id, "status": "DONE", "totalAmount": request.amount});
    let body = json!({"eventType": "PAYMENT_STATUS_CHANGED", "createdAt": "2026-10-02T10:15:41.20417", "data": data});
    let id = format!("bench-{number}");
    let named = [(TRANSMISSION, id.as_str())];
    let told = shop.post("/webhooks/toss", "", &named, body.to_string());
    told.await?.must_be(StatusCode::OK)?;
    Ok(())
}
