//! The control API: scenario, ledger, payments and webhooks by hand.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::engine::{Gateway, Method, NewPayment, NoDeposit};
use crate::ledger::{CallCounts, Ledger, OrderCounts, PerOperation};
use crate::scenario::Scenario;
use crate::serve::Shared;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/_control/health", get(health))
        .route("/_control/payments", post(authenticate))
        .route("/_control/deposits", post(deposit))
        .route("/_control/scenario", get(scenario).put(set_scenario))
        .route("/_control/ledger", get(ledger).delete(reset_ledger))
        .route("/_control/ledger/calls", get(calls))
        .route("/_control/ledger/orders/{order}", get(order))
        .route("/_control/webhooks", post(send_webhook))
        .route("/_control/kakaopay/status", put(show_status))
}

/// A refusal, with what to mend.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"error": self.1}))).into_response()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PaymentWanted {
    order_id: String,
    amount: u64,
    #[serde(default)]
    gateway: Gateway,
    #[serde(default)]
    order_name: String,
    #[serde(default)]
    method: Method,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DepositWanted {
    order_id: String,
    /// The bank takes the deposit back.
    #[serde(default)]
    undo: bool,
    /// Nothing is booked: only a webhook is sent that says so.
    forged: Option<ForgedDeposit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum ForgedDeposit {
    WrongSecret,
    NoSecret,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WebhookWanted {
    order_id: Option<String>,
    payment_key: Option<String>,
    #[serde(default)]
    gateway: Gateway,
    /// Sent as it stands; a string is sent without its quotes.
    forged: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatusWanted {
    order_id: String,
    /// Any text, also one that KakaoPay does not list; null shows the truth again.
    status: Option<String>,
}

async fn health(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let up = shared.engine(|engine, _| engine.scenario().up);
    Json(json!({"status": "ok", "up": up}))
}

async fn authenticate(
    State(shared): State<Arc<Shared>>,
    body: Bytes,
) -> Result<Json<Value>, Refused> {
    let PaymentWanted {
        order_id,
        amount,
        gateway,
        order_name,
        method,
    } = read(&body)?;
    let key = shared.engine(|engine, now_ms| match gateway {
        Gateway::Toss => {
            let new = NewPayment {
                order_id,
                order_name,
                amount,
                method,
            };
            Ok(engine.authenticate(gateway, new, now_ms))
        }
        Gateway::KakaoPay => engine.authenticate_ready(&order_id, amount, now_ms),
        Gateway::Stripe => engine.authorise(&order_id, amount, now_ms),
    });
    let key = key.map_err(|why| Refused(StatusCode::CONFLICT, why))?;
    Ok(Json(json!({"paymentKey": key})))
}

async fn deposit(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<Json<Value>, Refused> {
    let wanted: DepositWanted = read(&body)?;
    let order = wanted.order_id.as_str();
    let done = match wanted.forged {
        None => shared.engine(|engine, now_ms| engine.deposit(order, wanted.undo, now_ms)),
        Some(forged) => {
            let secret = match forged {
                ForgedDeposit::WrongSecret => Some("ps_forged"),
                ForgedDeposit::NoSecret => None,
            };
            let told = shared.engine(|engine, now_ms| engine.forge_deposit(order, secret, now_ms));
            told.then_some(()).ok_or(NoDeposit::NoAccount)
        }
    };
    done.map(|()| Json(json!({}))).map_err(|why| {
        let status = match why {
            NoDeposit::NoAccount => StatusCode::NOT_FOUND,
            NoDeposit::WrongState | NoDeposit::Over => StatusCode::CONFLICT,
        };
        Refused(status, why.to_string())
    })
}

async fn scenario(State(shared): State<Arc<Shared>>) -> Json<Scenario> {
    Json(shared.engine(|engine, _| engine.scenario().clone()))
}

async fn set_scenario(
    State(shared): State<Arc<Shared>>,
    body: Bytes,
) -> Result<Json<Scenario>, Refused> {
    let wanted = Scenario::from_json(&body).map_err(|why| Refused(StatusCode::BAD_REQUEST, why))?;
    let set = shared.set_scenario(wanted.clone()).await;
    set.map_err(|error| {
        Refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("could not listen again: {error}"),
        )
    })?;
    Ok(Json(wanted))
}

async fn ledger(State(shared): State<Arc<Shared>>) -> Json<Ledger> {
    Json(shared.engine(|engine, _| engine.ledger()))
}

async fn calls(State(shared): State<Arc<Shared>>) -> Json<PerOperation<CallCounts>> {
    Json(shared.engine(|engine, _| engine.calls()))
}

async fn order(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Json<OrderCounts> {
    Json(shared.engine(|engine, _| engine.order(&id)))
}

async fn reset_ledger(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.engine(|engine, _| engine.reset_ledger());
    StatusCode::NO_CONTENT
}

async fn show_status(
    State(shared): State<Arc<Shared>>,
    body: Bytes,
) -> Result<StatusCode, Refused> {
    let StatusWanted { order_id, status } = read(&body)?;
    if shared.engine(|engine, _| engine.show_status(&order_id, status)) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        let why = format!("no payment of order {order_id} was made ready");
        Err(Refused(StatusCode::NOT_FOUND, why))
    }
}

async fn send_webhook(
    State(shared): State<Arc<Shared>>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let wanted: WebhookWanted = read(&body)?;
    if shared.webhook_url().is_none() {
        return Err(Refused(
            StatusCode::BAD_REQUEST,
            "started without a webhook URL".to_owned(),
        ));
    }
    let (key, order) = (wanted.payment_key.as_deref(), wanted.order_id.as_deref());
    match (wanted.forged, key.or(order)) {
        (Some(forged), None) => {
            let raw = match forged {
                Value::String(text) => text,
                other => other.to_string(),
            };
            shared.engine(|engine, now_ms| engine.tell_raw(wanted.gateway, raw.into(), now_ms));
        }
        (None, Some(_)) => {
            let told = shared.engine(|engine, now_ms| match (wanted.gateway, order) {
                (Gateway::Stripe, Some(order)) => engine.tell_stripe(order, now_ms),
                _ => engine.tell(key, order, now_ms),
            });
            if !told {
                return Err(Refused(StatusCode::NOT_FOUND, "no such payment".to_owned()));
            }
        }
        (Some(_), Some(_)) | (None, None) => {
            let why = "give orderId, paymentKey or forged".to_owned();
            return Err(Refused(StatusCode::BAD_REQUEST, why));
        }
    }
    Ok((StatusCode::ACCEPTED, Json(json!({}))))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body)
        .map_err(|error| Refused(StatusCode::BAD_REQUEST, error.to_string()))
}
