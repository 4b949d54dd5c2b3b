//! The shapes of Toss Payments' JSON, as far as the adapter relies on them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::gateway::{CancelCall, ConfirmCall};

/// A Payment: only what decides. Card data is never read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Payment {
    pub(super) payment_key: String,
    pub(super) order_id: String,
    /// An open enum: an unknown word is an unknown outcome.
    pub(super) status: String,
    pub(super) total_amount: i64,
    pub(super) balance_amount: Option<i64>,
    pub(super) currency: String,
    pub(super) approved_at: Option<String>,
    pub(super) failure: Option<Failure>,
}

/// Why a payment failed.
#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    pub(super) code: Option<String>,
}

/// An error's body.
#[derive(Debug, Deserialize)]
pub(super) struct Error {
    pub(super) code: String,
}

/// The confirm's body: the amount is a number, never text.
pub(super) fn confirm(call: &ConfirmCall) -> Value {
    json!({
        "paymentKey": call.payment_key.as_str(),
        "orderId": call.gateway_order_id.as_str(),
        "amount": call.amount.get(),
    })
}

/// The cancel's body. `refundableAmount` is an optimistic lock: when it differs nothing is cancelled.
pub(super) fn cancel(call: &CancelCall) -> Value {
    let mut body = serde_json::Map::new();
    body.insert(
        "cancelReason".to_owned(),
        call.reason.chars().take(200).collect::<String>().into(),
    );
    if let Some(amount) = call.amount {
        body.insert("cancelAmount".to_owned(), amount.get().into());
    }
    if let Some(balance) = call.balance {
        body.insert("refundableAmount".to_owned(), balance.get().into());
    }
    Value::Object(body)
}
