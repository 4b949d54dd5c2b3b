//! A whole shop of one mug, paid through Jari's hosted checkout: see `docs/merchant.md`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, Redirect};
use axum::routing::{get, post};
use axum::{Router, extract::State};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

/// What the shop knows of Jari, and what it remembers; a real one remembers in its database.
#[derive(Default)]
pub struct Shop {
    /// Jari's address, and the shop's own.
    pub urls: [String; 2],
    /// What `jari key new` and `jari webhooks out set` printed.
    pub secrets: [String; 2],
    /// How many signed webhooks came, and which orders were shipped.
    pub told: Mutex<(u32, BTreeSet<String>)>,
}

const PAGE: &str = "<form method=post><button>Buy</button> We ship once it is paid.</form>";

/// The shop's pages and its webhook endpoint.
pub fn router(shop: Arc<Shop>) -> Router {
    Router::new()
        .route("/", get(|| async { Html(PAGE) }).post(buy))
        .route("/webhooks", post(webhook))
        .with_state(shop)
}

async fn buy(State(shop): State<Arc<Shop>>) -> Result<Redirect, StatusCode> {
    // The shop's own number of the order: sent again after a lost answer, it makes no second one.
    let since = UNIX_EPOCH.elapsed().unwrap_or_default();
    let reference = format!("mug-{}", since.as_micros());
    let [jari, own] = &shop.urls;
    let order = json!({
        "lines": [{"name": "Morning mug", "quantity": 1, "unitAmount": 18_000}],
        "reference": reference,
        "returnUrl": format!("{own}/"),
    });
    let request = reqwest::Client::new().post(format!("{jari}/v1/orders"));
    let request = request.bearer_auth(&shop.secrets[0]).json(&order);
    let answer = request.header("Idempotency-Key", reference).send().await;
    let failed = |_| StatusCode::BAD_GATEWAY;
    let made: Value = answer.map_err(failed)?.json().await.map_err(failed)?;
    let to = made["checkoutUrl"].as_str().map(Redirect::to);
    to.ok_or(StatusCode::BAD_GATEWAY)
}

async fn webhook(State(shop): State<Arc<Shop>>, headers: HeaderMap, body: String) -> StatusCode {
    if is_signed(&shop.secrets[1], &headers, &body) != Some(true) {
        return StatusCode::UNAUTHORIZED;
    }
    let event: Value = serde_json::from_str(&body).unwrap_or_default();
    let mut told = shop.told.lock().unwrap_or_else(PoisonError::into_inner);
    told.0 += 1;
    if event["type"] == "order.paid" {
        // It may come more than once: a set has an order once.
        told.1.insert(event["data"]["orderId"].to_string());
    }
    StatusCode::NO_CONTENT
}

/// Whether Jari signed this (Standard Webhooks), within the last five minutes.
fn is_signed(secret: &str, headers: &HeaderMap, body: &str) -> Option<bool> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let (id, at) = (header("webhook-id")?, header("webhook-timestamp")?);
    let key = BASE64.decode(secret.strip_prefix("whsec_")?).ok()?;
    let mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    let mac = mac.chain_update(format!("{id}.{at}.{body}"));
    let given = header("webhook-signature")?.split(' ');
    let mut given = given.filter_map(|one| BASE64.decode(one.strip_prefix("v1,")?).ok());
    let now = UNIX_EPOCH.elapsed().ok()?.as_secs();
    let recent = now.abs_diff(at.parse().ok()?) <= 300;
    Some(recent && given.any(|one| mac.clone().verify_slice(&one).is_ok()))
}
