//! Toss Payments' rules: who may call, what a confirm, an inquiry and a cancel do.

pub(crate) mod codes;
pub(crate) mod wire;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::GeneralPurposeConfig;
use serde::Deserialize;

use super::books::{Books, Payment, Status};
use super::plan::Plan;
use super::{Answer, Call, Gateway, Method, Target, Webhook};
use crate::idempotency::{Identity, LONGEST_KEY};
use crate::scenario::{AfterRefusal, BodyFault, RepeatAfterWindow, Scenario, Unconfirmed};
use codes::error;

/// Added to a charge that is booked with a wrong amount.
const WRONG_BY_WON: u64 = 1_000;

/// What a decline without a code says.
pub(super) const DECLINE: &str = "REJECT_CARD_PAYMENT";

/// Toss refuses card payments below 100 won.
const LEAST_WON: u64 = 100;

/// Padded and unpadded base64 are both seen in real clients.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfirmBody {
    payment_key: String,
    order_id: String,
    amount: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelBody {
    cancel_reason: String,
    cancel_amount: Option<u64>,
    refundable_amount: Option<u64>,
    currency: Option<String>,
    refund_receive_account: Option<RefundAccount>,
}

/// Where a deposit goes back to.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefundAccount {
    bank: String,
    account_number: String,
    holder_name: String,
}

/// The headers that Toss puts beside a webhook.
pub(super) fn webhook_headers(webhook: &Webhook, now_ms: u64) -> Vec<(&'static str, String)> {
    let named = |name: &'static str, value| (name, value);
    vec![
        named("tosspayments-webhook-transmission-id", webhook.id.clone()),
        named(
            "tosspayments-webhook-transmission-time",
            wire::timestamp(now_ms),
        ),
        named(
            "tosspayments-webhook-transmission-retried-count",
            webhook.resends.to_string(),
        ),
    ]
}

/// What a confirm says about itself, readable before it is judged.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfirmNames {
    pub(super) payment_key: Option<String>,
    pub(super) order_id: Option<String>,
}

/// Reads the names out of a confirm's body, however wrong the rest of it is.
pub(super) fn confirm_names(body: &[u8]) -> ConfirmNames {
    serde_json::from_slice(body).unwrap_or_default()
}

/// Checks headers; gives the identity a POST with an idempotency key has, or the error's code.
pub(super) fn admit(call: &Call, secret_key: &str) -> Result<Option<Identity>, String> {
    let (method, url) = match &call.target {
        Target::Window(_) | Target::KakaoPay(_) | Target::Stripe(_) => return Ok(None),
        Target::Confirm => ("POST", "/v1/payments/confirm".to_owned()),
        Target::Cancel(key) => ("POST", format!("/v1/payments/{key}/cancel")),
        Target::Payment(_) | Target::Order(_) => ("GET", String::new()),
    };
    let api_key = api_key(call.authorization.as_deref())?;
    if api_key != secret_key {
        return Err("UNAUTHORIZED_KEY".to_owned());
    }
    let key = call.idempotency_key.as_deref().filter(|_| method == "POST");
    if key.is_some_and(|key| key.chars().count() > LONGEST_KEY) {
        return Err("INVALID_IDEMPOTENCY_KEY".to_owned());
    }
    // Ignored on live keys.
    let test_code = call.test_code.as_ref();
    if let Some(code) = test_code.filter(|_| !secret_key.starts_with("live_")) {
        let known = codes::status_of(code).is_some();
        return Err(if known {
            code.clone()
        } else {
            "INVALID_TEST_CODE".to_owned()
        });
    }
    Ok(key.map(|key| Identity {
        key: key.to_owned(),
        api_key,
        method,
        url,
    }))
}

fn api_key(authorization: Option<&str>) -> Result<String, &'static str> {
    let encoded = authorization.and_then(|header| {
        let (scheme, encoded) = header.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("basic")
            .then_some(encoded.trim())
    });
    let encoded = encoded.ok_or("UNAUTHORIZED_KEY")?;
    let decoded = BASE64
        .decode(encoded)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let (key, _password) = decoded
        .as_deref()
        .and_then(|text| text.split_once(':'))
        .ok_or("INCORRECT_BASIC_AUTH_FORMAT")?;
    Ok(key.to_owned())
}

/// Does what a call asks for and books it.
pub(super) fn perform(
    books: &mut Books,
    scenario: &Scenario,
    call: &Call,
    plan: &Plan,
    now_ms: u64,
) -> Answer {
    let done = match &call.target {
        Target::Confirm => confirm(books, scenario, call, plan, now_ms),
        Target::Cancel(key) => cancel(books, scenario, (call, key), plan, now_ms),
        Target::Payment(key) => inquire(books.payment(key), scenario, now_ms),
        Target::Order(order) => inquire(books.of_order(order), scenario, now_ms),
        Target::Window(None) => Ok(Answer::json(200, "")),
        Target::Window(Some(new)) => Ok(Answer::json(
            200,
            books.authenticate(call.gateway, new.clone(), now_ms),
        )),
        Target::KakaoPay(_) | Target::Stripe(_) => Err("NOT_FOUND".to_owned()),
    };
    done.unwrap_or_else(|code| error(&code))
}

fn confirm(
    books: &mut Books,
    scenario: &Scenario,
    call: &Call,
    plan: &Plan,
    now_ms: u64,
) -> Result<Answer, String> {
    let asked: ConfirmBody = serde_json::from_slice(&call.body).map_err(|_| "INVALID_REQUEST")?;
    if !is_order_id(&asked.order_id, scenario.uncertain.order_id_equals) {
        return Err("INVALID_ORDER_ID".to_owned());
    }
    let payment = books
        .payment(&asked.payment_key)
        .ok_or("NOT_FOUND_PAYMENT")?;
    match payment.status {
        Status::InProgress => {}
        Status::Expired => return Err("NOT_FOUND_PAYMENT_SESSION".to_owned()),
        Status::Done | Status::Canceled | Status::PartialCanceled
            if payment
                .authenticated_ms
                .saturating_add(scenario.confirm_window_ms(Gateway::Toss))
                <= now_ms
                && scenario.uncertain.repeat_after_window == RepeatAfterWindow::Session =>
        {
            return Err("NOT_FOUND_PAYMENT_SESSION".to_owned());
        }
        Status::WaitingForDeposit
        | Status::Done
        | Status::Canceled
        | Status::PartialCanceled
        | Status::Aborted => {
            return Err("ALREADY_PROCESSED_PAYMENT".to_owned());
        }
    }
    if payment.order_id != asked.order_id || payment.total != asked.amount {
        return Err(scenario.mismatch_code.clone());
    }
    if asked.amount < LEAST_WON {
        return Err("BELOW_MINIMUM_AMOUNT".to_owned());
    }
    let charged_elsewhere = books.charged_elsewhere(&asked.order_id, &asked.payment_key);
    if charged_elsewhere && !scenario.allow_duplicate_order {
        return Err("DUPLICATED_ORDER_ID".to_owned());
    }
    if let Some(code) = &plan.decline {
        let ends = match scenario.uncertain.after_refusal {
            AfterRefusal::FinalWords => codes::ends_the_payment(code),
            AfterRefusal::Every => true,
            AfterRefusal::None => false,
        };
        if ends {
            books.abort(&asked.payment_key, code, codes::message_of(code), now_ms);
        }
        return Err(code.clone());
    }
    let wrong = plan.body == Some(BodyFault::WrongAmount);
    let won = asked.amount + if wrong { WRONG_BY_WON } else { 0 };
    let key = &asked.payment_key;
    match payment.method {
        Method::Card => books.charge(key, won, call.idempotency_key.as_deref(), now_ms),
        Method::VirtualAccount => {
            let due_ms = now_ms.saturating_add(scenario.deposits.due_ms);
            books.issue(key, won, due_ms, now_ms);
        }
    }
    shown(books, scenario, key)
}

fn cancel(
    books: &mut Books,
    scenario: &Scenario,
    (call, key): (&Call, &str),
    plan: &Plan,
    now_ms: u64,
) -> Result<Answer, String> {
    let asked: CancelBody = serde_json::from_slice(&call.body).map_err(|_| "INVALID_REQUEST")?;
    let reason = asked.cancel_reason.trim();
    if reason.is_empty() || reason.chars().count() > 200 || asked.cancel_amount == Some(0) {
        return Err("INVALID_REQUEST".to_owned());
    }
    let payment = books.payment(key).ok_or("NOT_FOUND_PAYMENT")?;
    match payment.status {
        Status::Done | Status::PartialCanceled | Status::WaitingForDeposit => {}
        Status::Canceled => return Err("ALREADY_CANCELED_PAYMENT".to_owned()),
        Status::InProgress | Status::Aborted | Status::Expired => {
            return Err("NOT_CANCELABLE_PAYMENT".to_owned());
        }
    }
    if asked.currency.is_some_and(|currency| currency != "KRW") {
        return Err("INVALID_REQUEST".to_owned());
    }
    if asked
        .refundable_amount
        .is_some_and(|amount| amount != payment.balance && scenario.uncertain.refundable_amount)
    {
        return Err("NOT_MATCHES_REFUNDABLE_AMOUNT".to_owned());
    }
    let available = payment.available();
    let won = asked.cancel_amount.unwrap_or(available);
    if available == 0 || won > available {
        return Err("NOT_CANCELABLE_AMOUNT".to_owned());
    }
    if payment.status == Status::WaitingForDeposit && won < payment.balance {
        return Err("NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT".to_owned());
    }
    if payment.account.is_some() && payment.status != Status::WaitingForDeposit {
        check_refund_account(asked.refund_receive_account.as_ref())?;
    }
    if let Some(code) = &plan.decline {
        return Err(code.clone());
    }
    books.cancel(key, (won, reason), scenario, now_ms);
    shown(books, scenario, key)
}

/// A deposit goes back only to an account that is named.
fn check_refund_account(account: Option<&RefundAccount>) -> Result<(), &'static str> {
    let account = account.ok_or("INVALID_REFUND_ACCOUNT_INFO")?;
    let holder = account.holder_name.trim().chars().count();
    if !(1..=60).contains(&holder) {
        return Err("INVALID_REFUND_ACCOUNT_INFO");
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(&account.account_number) || account.account_number.len() > 20 {
        return Err("INVALID_REFUND_ACCOUNT_NUMBER");
    }
    if !digits(&account.bank) || account.bank.len() != 2 {
        return Err("INVALID_BANK");
    }
    Ok(())
}

fn inquire(found: Option<&Payment>, scenario: &Scenario, now_ms: u64) -> Result<Answer, String> {
    let payment = found.ok_or("NOT_FOUND_PAYMENT")?;
    let hidden = match payment.booked_ms {
        Some(booked_ms) => now_ms < booked_ms.saturating_add(scenario.not_found_for_ms),
        None => {
            payment.status == Status::InProgress && scenario.unconfirmed == Unconfirmed::NotFound
        }
    };
    if hidden {
        return Err("NOT_FOUND_PAYMENT".to_owned());
    }
    let secret = payment.account.is_none() || scenario.deposits.secret_in_lookup;
    Ok(Answer::json(200, wire::payment(payment, scenario, secret)))
}

fn shown(books: &Books, scenario: &Scenario, key: &str) -> Result<Answer, String> {
    let payment = books.payment(key).ok_or("NOT_FOUND_PAYMENT")?;
    Ok(Answer::json(200, wire::payment(payment, scenario, true)))
}

fn is_order_id(text: &str, equals: bool) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (6..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| plain(byte) || (equals && byte == b'='))
}
