//! Toss Payments' JSON: the Payment object and the webhook around it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::engine::books::{Cancel, Payment};

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
    virtual_account: Option<()>,
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
    cancel_status: &'static str,
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

/// Writes a payment.
pub(in crate::engine) fn payment(payment: &Payment) -> Vec<u8> {
    serde_json::to_vec(&body(payment)).expect("strings and numbers always serialize")
}

/// Writes the webhook that tells of a payment's new status.
pub(in crate::engine) fn status_changed(payment: &Payment, now_ms: u64) -> Vec<u8> {
    // Five fraction digits and no offset, as real bodies carry (the documentation says six).
    let created_at = format!(
        "{}{:02}",
        in_korea(now_ms, "%Y-%m-%dT%H:%M:%S%.3f"),
        now_ms % 97
    );
    let data = body(payment);
    let envelope = Envelope {
        created_at,
        event_type: "PAYMENT_STATUS_CHANGED",
        data,
    };
    serde_json::to_vec(&envelope).expect("strings and numbers always serialize")
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
        method: "카드",
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
        card: approved.then(|| card(payment)),
        virtual_account: None,
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
        secret: approved.then(|| format!("ps_fake{:012}", payment.serial)),
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
        cancel_status: "DONE",
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
