//! What page, server and lab say to each other over HTTP: the only serde types of the API.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::attempt::AttemptStatus;
use crate::id::{AttemptReference, GatewayName, GatewayOrderId, OrderId, PaymentKey, Sku};
use crate::money::Won;
use crate::order::OrderStatus;
use crate::reach::{Reach, Reason};

/// Under this name the address of a return carries what the gateway gave the shopper to come back with, where the gateway
/// opened the window by a call.
pub const RETURN_TOKEN: &str = "pg_token";

/// One product of `GET /api/products`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// What it is called in orders.
    pub sku: Sku,
    /// Its name in the language asked for.
    pub name: String,
    /// Price of one, in won.
    pub price: Won,
    /// How many can be bought now.
    pub available: u64,
}

/// One line of `POST /api/orders`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderItem {
    /// What.
    pub sku: Sku,
    /// How many; 1 to 99.
    pub quantity: u32,
}

/// The body of `POST /api/orders`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewOrder {
    /// The lines; 1 to 20.
    pub items: Vec<OrderItem>,
}

/// The answer to `POST /api/orders`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderCreated {
    /// The new order.
    pub order_id: OrderId,
    /// What it costs, by the server's own prices.
    pub amount: Won,
    /// Always `KRW`.
    pub currency: String,
    /// Where it is paid.
    pub checkout_url: String,
}

/// The body of `POST /api/orders/{order}/attempts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAttempt {
    /// Which gateway; the first configured one when absent.
    #[serde(default)]
    pub gateway: Option<GatewayName>,
}

/// The answer to `POST /api/orders/{order}/attempts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptCreated {
    /// Its number within the order, from 1.
    pub attempt: u32,
    /// The order id that the gateway sees.
    pub gateway_order_id: GatewayOrderId,
    /// The unguessable part of its return URL.
    pub reference: AttemptReference,
    /// Where the shopper pays.
    pub pay_url: String,
}

/// The body of `POST /api/payments/confirm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfirmRequest {
    /// The gateway's handle, as the return URL carries it.
    pub payment_key: PaymentKey,
    /// The gateway order id, as the return URL carries it.
    pub order_id: GatewayOrderId,
    /// The amount, as the return URL carries it; compared with the order, never trusted.
    pub amount: Won,
}

/// The latest attempt within an order's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptView {
    /// Its number within the order, from 1.
    pub number: u32,
    /// Its state.
    pub status: AttemptStatus,
    /// The highest reach over its sends.
    pub reach: Reach,
    /// Why it is in its state.
    pub reason: Option<Reason>,
}

/// A virtual account that the shopper is to pay into, as the gateway told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DepositView {
    /// The bank, by the gateway's code.
    pub bank: String,
    /// The number of the account.
    pub account_number: String,
    /// Whose name it bears, if the gateway told.
    pub holder: Option<String>,
    /// What is to be paid into it, to the won.
    pub amount: Won,
    /// Until when, in Korean time, as `2026-10-09T23:59:59+09:00`; absent when the gateway did not tell.
    pub due_at: Option<String>,
}

/// The answer to a poll, and the body of a confirm's 200 and 202.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderState {
    /// The order.
    pub order_id: OrderId,
    /// Its status.
    pub status: OrderStatus,
    /// The attempt that tells most about it: the open one, else the latest.
    pub attempt: Option<AttemptView>,
    /// Whether the order is proven not charged, so that paying again is safe.
    pub payable: bool,
    /// When to ask again, in ms.
    pub poll_after_ms: u64,
    /// The virtual account, while its deposit is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposit: Option<DepositView>,
    /// Whether its virtual account was closed, or is being closed, before anybody paid into it: then no money came, and none
    /// goes back. Absent where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed_unpaid: bool,
}

/// The body of `POST /api/orders/{order}/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Why, for people; 1 to 160 characters.
    pub reason: String,
    /// How much is to go back; all that is left when absent.
    #[serde(default)]
    pub amount: Option<Won>,
    /// Where a deposit is to go back to; only the operator names one.
    #[serde(
        default,
        rename = "refundAccount",
        skip_serializing_if = "Option::is_none"
    )]
    pub refund_account: Option<RefundAccountRequest>,
}

/// A bank account as it is named in a request. It never prints.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RefundAccountRequest {
    /// The bank, by the gateway's code of two or three digits.
    pub bank: String,
    /// Its number: digits, with hyphens or without.
    pub account_number: String,
    /// Whose name it bears; 1 to 60 characters.
    pub holder: String,
}

impl fmt::Debug for RefundAccountRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefundAccountRequest(***)")
    }
}

/// One refund within the answer to a cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundView {
    /// Its name, also part of the reason that the gateway keeps.
    pub reference: String,
    /// How much.
    pub amount: Won,
    /// `waiting`, `asked`, `done`, or why it was refused.
    pub status: String,
    /// The bank account that it goes to, masked, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// The body of a cancel's 200 and 202: the order as a poll tells it, and the refund that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelAnswer {
    /// The order.
    #[serde(flatten)]
    pub order: OrderState,
    /// What the gateway has given back of it in all.
    pub refunded: Won,
    /// The refund; absent where an account was closed that nobody had paid into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<RefundView>,
}

macro_rules! problem_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal;)*) => {
        /// The stable codes of problem answers (spec section 5).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProblemCode { $($(#[$doc])* $name,)* }

        impl ProblemCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status it comes with.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

problem_codes! {
    /// The body, a path or a query is not what it must be.
    InvalidRequest = "invalid_request", 400;
    /// `X-Request-Timeout-Ms` is not whole milliseconds up to 600000, once.
    InvalidTimeoutHeader = "invalid_timeout_header", 400;
    /// The amount is not the order's.
    AmountMismatch = "amount_mismatch", 400;
    /// No key, or none that opens anything.
    Unauthorized = "unauthorized", 401;
    /// The gateway declined.
    Declined = "declined", 402;
    /// A foreign Origin or Sec-Fetch-Site.
    ForbiddenOrigin = "forbidden_origin", 403;
    /// No such order, or another person's.
    OrderNotFound = "order_not_found", 404;
    /// No such page or resource.
    NotFound = "not_found", 404;
    /// Known path, other method.
    MethodNotAllowed = "method_not_allowed", 405;
    /// Another payment key while an attempt is open or unknown.
    AttemptInProgress = "attempt_in_progress", 409;
    /// The order is paid.
    OrderAlreadyPaid = "order_already_paid", 409;
    /// The payment key belongs to another order.
    PaymentKeyUsed = "payment_key_used", 409;
    /// The gateway order id was sent with another key before.
    NewAttemptNeeded = "new_attempt_needed", 409;
    /// The payment window closed before the confirm.
    AttemptExpired = "attempt_expired", 409;
    /// The order's time is over.
    OrderExpired = "order_expired", 409;
    /// The order was canceled.
    OrderClosed = "order_closed", 409;
    /// Not enough stock.
    OutOfStock = "out_of_stock", 409;
    /// More than is left of the charge.
    RefundExceedsBalance = "refund_exceeds_balance", 409;
    /// The body is above 64 KiB.
    BodyTooLarge = "body_too_large", 413;
    /// The body is not JSON.
    UnsupportedMediaType = "unsupported_media_type", 415;
    /// Same idempotency key, other body.
    IdempotencyKeyReused = "idempotency_key_reused", 422;
    /// Too many requests from one shopper or address.
    RateLimited = "rate_limited", 429;
    /// A fault of ours; its cause is in the log.
    Internal = "internal", 500;
    /// The cap on confirms in flight was reached; not sent.
    PgCapReached = "pg_cap_reached", 503;
    /// The circuit is open; not sent.
    CircuitOpen = "circuit_open", 503;
    /// The shopper's deadline had passed; not sent.
    DeadlinePassed = "deadline_passed", 503;
    /// The gateway could not be connected to; not sent.
    PgUnreachable = "pg_unreachable", 503;
    /// The gateway refused before processing.
    PgRefused = "pg_refused", 503;
    /// Refused for load before anything was looked at: says nothing about the order.
    Overloaded = "overloaded", 503;
    /// The database did not answer in time: says nothing about the order.
    DatabaseBusy = "database_busy", 503;
    /// The server is stopping: says nothing about the order.
    ShuttingDown = "shutting_down", 503;
}

impl ProblemCode {
    /// Whether it was refused for load: it says nothing about the order, and asking at once would add to the load.
    #[must_use]
    pub const fn asks_for_patience(self) -> bool {
        matches!(
            self,
            Self::Overloaded | Self::RateLimited | Self::DatabaseBusy | Self::ShuttingDown
        )
    }

    /// Reads a stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An RFC 9457 problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A URI reference for the kind: `/problems/<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// One line for people.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: String,
    /// What to do about it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What can be proven about the send; only when the problem speaks of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
    /// Why, when the gateway declined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_back_and_each_status_is_an_error() {
        for code in ProblemCode::ALL {
            assert_eq!(ProblemCode::parse(code.as_str()), Some(*code));
            assert!((400..600).contains(&code.status()), "{code}");
        }
        for reason in Reason::all() {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
    }

    #[test]
    fn an_order_state_has_the_documented_shape() {
        let state = OrderState {
            order_id: OrderId::parse("ord_1").unwrap(),
            status: OrderStatus::Pending,
            attempt: Some(AttemptView {
                number: 2,
                status: AttemptStatus::Unknown,
                reach: Reach::MayHaveBeenSent,
                reason: Reason::parse("timed_out"),
            }),
            payable: false,
            poll_after_ms: 2_000,
            deposit: None,
            closed_unpaid: false,
        };
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(
            json,
            r#"{"orderId":"ord_1","status":"pending","attempt":{"number":2,"status":"unknown","reach":"may_have_been_sent","reason":"timed_out"},"payable":false,"pollAfterMs":2000}"#
        );
        assert_eq!(serde_json::from_str::<OrderState>(&json).unwrap(), state);
    }

    #[test]
    fn a_confirm_takes_whole_won_and_nothing_it_does_not_know() {
        let good = r#"{"paymentKey":"pk","orderId":"ord_1-2","amount":33000}"#;
        assert!(serde_json::from_str::<ConfirmRequest>(good).is_ok());
        for bad in [
            r#"{"paymentKey":"pk","orderId":"ord_1","amount":"33000"}"#,
            r#"{"paymentKey":"pk","orderId":"ord_1","amount":330.5}"#,
            r#"{"paymentKey":"pk","orderId":"ord_1","amount":-1}"#,
            r#"{"paymentKey":"","orderId":"ord_1","amount":1}"#,
            r#"{"paymentKey":"pk","orderId":"ord 1","amount":1}"#,
            r#"{"paymentKey":"pk","orderId":"ord_1","amount":1,"extra":true}"#,
            r#"{"paymentKey":"pk","orderId":"ord_1"}"#,
        ] {
            assert!(
                serde_json::from_str::<ConfirmRequest>(bad).is_err(),
                "{bad}"
            );
        }
    }
}
