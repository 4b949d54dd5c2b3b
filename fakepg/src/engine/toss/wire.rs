//! Toss Payments' JSON: the Payment object and the webhook around it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::engine::Method;
use crate::engine::books::{Cancel, Payment, Status};
use crate::scenario::{CanceledBalance, DepositEvents, Scenario};

/// The Payment object, fields in the order Toss writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    m_id: &'static str,
    version: &'static str,
    r#type: &'static str,
    payment_key: &'a str,
    last_transaction_key: Option<&'a str>,
    order_id: &'a str,
    order_name: &'a str,
    currency: &'static str,
    method: &'static str,
    status: &'static str,
    total_amount: u64,
    balance_amount: u64,
    supplied_amount: u64,
    vat: u64,
    tax_free_amount: u64,
    tax_exemption_amount: u64,
    requested_at: String,
    approved_at: Option<String>,
    use_escrow: bool,
    culture_expense: bool,
    is_partial_cancelable: bool,
    card: Option<Card>,
    virtual_account: Option<VirtualAccount<'a>>,
    transfer: Option<()>,
    mobile_phone: Option<()>,
    gift_certificate: Option<()>,
    easy_pay: Option<()>,
    cash_receipt: Option<()>,
    cash_receipts: Option<()>,
    discount: Option<()>,
    cancels: Option<Vec<CancelBody<'a>>>,
    failure: Option<Failure<'a>>,
    secret: Option<String>,
    metadata: Option<()>,
    country: &'static str,
    receipt: Option<Link>,
    checkout: Link,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Card {
    amount: u64,
    issuer_code: &'static str,
    acquirer_code: &'static str,
    number: &'static str,
    installment_plan_months: u32,
    approve_no: String,
    use_card_point: bool,
    card_type: &'static str,
    owner_type: &'static str,
    acquire_status: &'static str,
    is_interest_free: bool,
    interest_payer: Option<()>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VirtualAccount<'a> {
    account_type: &'static str,
    account_number: &'a str,
    bank_code: &'static str,
    customer_name: &'static str,
    due_date: String,
    expired: bool,
    settlement_status: &'static str,
    refund_status: &'static str,
    refund_receive_account: Option<()>,
    depositor_name: Option<&'static str>,
}

/// A deposit's webhook: flat, without the event's name and without the payment key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DepositCallback<'a> {
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
    status: &'a str,
    transaction_key: &'a str,
    order_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CancelBody<'a> {
    transaction_key: &'a str,
    cancel_reason: &'a str,
    tax_exemption_amount: u64,
    canceled_at: String,
    transfer_discount_amount: u64,
    easy_pay_discount_amount: u64,
    receipt_key: Option<()>,
    cancel_amount: u64,
    tax_free_amount: u64,
    refundable_amount: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_status: Option<&'static str>,
    cancel_request_id: Option<()>,
}

#[derive(Serialize)]
struct Failure<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Link {
    url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    created_at: String,
    event_type: &'static str,
    data: Body<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CancelEnvelope<'a> {
    created_at: String,
    event_type: &'static str,
    data: CancelBody<'a>,
}

/// Writes a payment; a look-up may leave its secret out.
pub(in crate::engine) fn payment(payment: &Payment, scenario: &Scenario, secret: bool) -> Vec<u8> {
    let mut body = body(payment);
    body.secret = body.secret.filter(|_| secret);
    if !scenario.uncertain.cancel_status {
        // Of one that is under way there must be a word, or it would be taken for done.
        let entries = body.cancels.iter_mut().flatten();
        for entry in entries.filter(|entry| entry.cancel_status == Some("DONE")) {
            entry.cancel_status = None;
        }
    }
    let untouched = payment.account.is_some() && payment.approved_ms.is_none();
    if untouched
        && payment.status == Status::Canceled
        && scenario.deposits.canceled_balance == CanceledBalance::Whole
    {
        body.balance_amount = payment.total;
    }
    serde_json::to_vec(&body).expect("strings and numbers always serialize")
}

/// The webhooks that tell of a payment's new status.
pub(in crate::engine) fn events(
    payment: &Payment,
    scenario: &Scenario,
    now_ms: u64,
) -> Vec<Vec<u8>> {
    if payment.account.is_none() {
        return vec![status_changed(payment, now_ms)];
    }
    let registered = scenario.deposits.events;
    let mut events = Vec::new();
    if registered != DepositEvents::Status {
        let secret = secret(payment);
        let status = payment.status.name();
        events.push(deposit_callback(payment, status, Some(&secret), now_ms));
    }
    // Of an account that waits only the deposit's own webhook tells.
    if registered != DepositEvents::Deposit && payment.status != Status::WaitingForDeposit {
        events.push(status_changed(payment, now_ms));
    }
    events
}

/// Writes the webhook about a virtual account.
pub(in crate::engine) fn deposit_callback(
    payment: &Payment,
    status: &str,
    secret: Option<&str>,
    now_ms: u64,
) -> Vec<u8> {
    let envelope = DepositCallback {
        created_at: created_at(now_ms),
        secret,
        status,
        transaction_key: payment.last_transaction.as_deref().unwrap_or("9A0FAKE"),
        order_id: &payment.order_id,
    };
    serde_json::to_vec(&envelope).expect("strings always serialize")
}

/// By which a deposit's webhook proves that it is Toss's.
fn secret(payment: &Payment) -> String {
    format!("ps_fake{:012}", payment.serial)
}

/// Five fraction digits and no offset, as real bodies carry (the documentation says six).
fn created_at(now_ms: u64) -> String {
    format!(
        "{}{:02}",
        in_korea(now_ms, "%Y-%m-%dT%H:%M:%S%.3f"),
        now_ms % 97
    )
}

/// Writes the webhook that tells of a payment's new status.
pub(in crate::engine) fn status_changed(payment: &Payment, now_ms: u64) -> Vec<u8> {
    let data = body(payment);
    let envelope = Envelope {
        created_at: created_at(now_ms),
        event_type: "PAYMENT_STATUS_CHANGED",
        data,
    };
    serde_json::to_vec(&envelope).expect("strings and numbers always serialize")
}

/// Writes the webhook that tells of the end of a cancel: its data is the cancel alone, which names no payment.
pub(in crate::engine) fn cancel_changed(
    payment: &Payment,
    index: usize,
    now_ms: u64,
) -> Option<Vec<u8>> {
    let data = cancel(payment.cancels.get(index)?);
    let envelope = CancelEnvelope {
        created_at: created_at(now_ms),
        event_type: "CANCEL_STATUS_CHANGED",
        data,
    };
    Some(serde_json::to_vec(&envelope).expect("strings and numbers always serialize"))
}

/// A time as Toss writes it.
pub(crate) fn timestamp(at_ms: u64) -> String {
    in_korea(at_ms, "%Y-%m-%dT%H:%M:%S+09:00")
}

fn in_korea(at_ms: u64, format: &str) -> String {
    let millis = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let at = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    at.to_zoned_datetime(TimeZone::fixed(jiff::tz::offset(9)))
        .strftime(format)
        .to_string()
}

fn body(payment: &Payment) -> Body<'_> {
    let vat = (payment.balance + 5) / 11;
    let approved = payment.approved_ms.is_some();
    let api = "https://api.tosspayments.com/v1/payments";
    let receipt = format!("https://dashboard.tosspayments.com/receipt/{}", payment.key);
    let cancels: Vec<_> = payment.cancels.iter().map(cancel).collect();
    Body {
        m_id: "fakepg",
        version: "2022-11-16",
        r#type: "NORMAL",
        payment_key: &payment.key,
        last_transaction_key: payment.last_transaction.as_deref(),
        order_id: &payment.order_id,
        order_name: &payment.order_name,
        currency: "KRW",
        method: match payment.method {
            Method::Card => "카드",
            Method::VirtualAccount => "가상계좌",
        },
        status: payment.status.name(),
        total_amount: payment.total,
        balance_amount: payment.balance,
        supplied_amount: payment.balance - vat,
        vat,
        tax_free_amount: 0,
        tax_exemption_amount: 0,
        requested_at: timestamp(payment.authenticated_ms),
        approved_at: payment.approved_ms.map(timestamp),
        use_escrow: false,
        culture_expense: false,
        is_partial_cancelable: true,
        card: (approved && payment.method == Method::Card).then(|| card(payment)),
        virtual_account: virtual_account(payment),
        transfer: None,
        mobile_phone: None,
        gift_certificate: None,
        easy_pay: None,
        cash_receipt: None,
        cash_receipts: None,
        discount: None,
        // Null, not an empty list, when there are none.
        cancels: (!cancels.is_empty()).then_some(cancels),
        failure: payment
            .failure
            .as_ref()
            .map(|(code, message)| Failure { code, message }),
        // Not only accounts have one: it was seen on card payments too.
        secret: (approved || payment.account.is_some()).then(|| secret(payment)),
        metadata: None,
        country: "KR",
        receipt: approved.then_some(Link { url: receipt }),
        checkout: Link {
            url: format!("{api}/{}/checkout", payment.key),
        },
    }
}

fn card(payment: &Payment) -> Card {
    Card {
        amount: payment.total,
        issuer_code: "11",
        acquirer_code: "11",
        number: "94100000****321*",
        installment_plan_months: 0,
        approve_no: format!("{:08}", payment.serial % 100_000_000),
        use_card_point: false,
        card_type: "신용",
        owner_type: "개인",
        acquire_status: if payment.balance == 0 {
            "CANCELED"
        } else {
            "READY"
        },
        is_interest_free: false,
        interest_payer: None,
    }
}

fn virtual_account(payment: &Payment) -> Option<VirtualAccount<'_>> {
    let account = payment.account.as_ref()?;
    let paid = payment.approved_ms.is_some();
    Some(VirtualAccount {
        account_type: "일반",
        account_number: &account.number,
        bank_code: "20",
        customer_name: "김토스",
        due_date: timestamp(account.due_ms),
        expired: account.expired,
        settlement_status: if paid { "COMPLETED" } else { "INCOMPLETED" },
        refund_status: match payment.status {
            Status::Canceled | Status::PartialCanceled if paid => "COMPLETED",
            _ => "NONE",
        },
        refund_receive_account: None,
        depositor_name: paid.then_some("김토스"),
    })
}

fn cancel(cancel: &Cancel) -> CancelBody<'_> {
    CancelBody {
        transaction_key: &cancel.transaction,
        cancel_reason: &cancel.reason,
        tax_exemption_amount: 0,
        canceled_at: timestamp(cancel.at_ms),
        transfer_discount_amount: 0,
        easy_pay_discount_amount: 0,
        receipt_key: None,
        cancel_amount: cancel.amount,
        tax_free_amount: 0,
        refundable_amount: cancel.left,
        cancel_status: Some(cancel.standing.name()),
        cancel_request_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_korean_time() {
        assert_eq!(timestamp(1_790_903_700_123), "2026-10-02T10:15:00+09:00");
        assert_eq!(
            in_korea(5, "%Y-%m-%dT%H:%M:%S%.3f"),
            "1970-01-01T09:00:00.005"
        );
    }
}
