//! Adapters and calls for the tests.

use payment::id::{GatewayName, GatewayOrderId, IdempotencyKey, PaymentKey};
use payment::money::Won;
use payment::time::Millis;
use server::gateway::secret::Secret;
use server::gateway::toss::{Toss, TossConfig};
use server::gateway::{CancelCall, ConfirmCall, PaymentNames};

/// What every test's order costs.
pub(crate) const PRICE: Won = match Won::new(33_000) {
    Ok(won) => won,
    Err(_) => panic!("a price"),
};

/// Patient enough for a busy machine; only tests of time-outs shorten it.
pub(crate) const PATIENT: Millis = Millis::from_secs(20);

/// The settings of an adapter for the fake gateway at `base`.
pub(crate) fn config(base: &str, pg_timeout: Millis) -> TossConfig {
    TossConfig {
        name: GatewayName::parse("toss").unwrap(),
        base_url: base.to_owned(),
        window_url: Some(format!("{base}/window")),
        client_key: "test_ck_fake".to_owned(),
        secret_key: Secret::new("test_sk_fake"),
        test_code: None,
        pg_timeout,
        connect_timeout: Millis::from_secs(3),
        inquiry_timeout: pg_timeout,
        confirm_window: Millis::from_secs(600),
    }
}

pub(crate) fn toss(base: &str, pg_timeout: Millis) -> Toss {
    Toss::new(config(base, pg_timeout)).unwrap()
}

pub(crate) fn key(text: &str) -> PaymentKey {
    PaymentKey::parse(text).unwrap()
}

pub(crate) fn order(text: &str) -> GatewayOrderId {
    GatewayOrderId::parse(text).unwrap()
}

/// The names of a payment, for an inquiry.
pub(crate) fn names(payment_key: Option<&PaymentKey>, order_id: &GatewayOrderId) -> PaymentNames {
    PaymentNames {
        handle: None,
        payment_key: payment_key.cloned(),
        gateway_order_id: order_id.clone(),
    }
}

pub(crate) fn confirm_of(payment_key: &str, order_id: &str, idempotency_key: &str) -> ConfirmCall {
    ConfirmCall {
        handle: None,
        payment_key: key(payment_key),
        gateway_order_id: order(order_id),
        amount: PRICE,
        idempotency_key: IdempotencyKey::parse(idempotency_key).unwrap(),
    }
}

pub(crate) fn cancel_of(
    payment_key: &str,
    amount: Option<i64>,
    balance: Option<i64>,
) -> CancelCall {
    let won = |won| Won::new(won).unwrap();
    let idempotency_key = format!("cancel-{payment_key}-{amount:?}-{balance:?}");
    CancelCall {
        handle: None,
        payment_key: key(payment_key),
        gateway_order_id: order("order_1"),
        amount: amount.map(won),
        balance: balance.map(won),
        reason: "late success".to_owned(),
        account: None,
        idempotency_key: IdempotencyKey::parse(&idempotency_key.replace(['(', ')'], "-")).unwrap(),
    }
}
