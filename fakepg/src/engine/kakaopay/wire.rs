//! KakaoPay's JSON: what each call answers.

use jiff::Timestamp;
use jiff::tz::{TimeZone, offset};
use serde::Serialize;

use super::book::{Action, Amount, Method, Payment};
use crate::scenario::{KakaoPaySwitches, Shown, Zone};

#[derive(Serialize)]
struct ReadyBody<'a> {
    tid: &'a str,
    tms_result: bool,
    next_redirect_app_url: String,
    next_redirect_mobile_url: String,
    next_redirect_pc_url: String,
    android_app_scheme: String,
    ios_app_scheme: String,
    created_at: String,
}

/// An amount as KakaoPay writes it.
#[derive(Serialize)]
struct AmountBody {
    total: u64,
    tax_free: u64,
    vat: u64,
    point: u64,
    discount: u64,
    green_deposit: u64,
}

impl From<Amount> for AmountBody {
    fn from(amount: Amount) -> Self {
        Self {
            total: amount.total,
            tax_free: amount.tax_free,
            vat: amount.vat,
            point: 0,
            discount: 0,
            green_deposit: amount.green_deposit,
        }
    }
}

/// What every answer about a payment carries.
#[derive(Serialize)]
struct Common<'a> {
    tid: &'a str,
    cid: &'a str,
    partner_order_id: &'a str,
    partner_user_id: &'a str,
    payment_method_type: &'static str,
    item_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_code: Option<&'a str>,
    quantity: u64,
    amount: AmountBody,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved_at: Option<String>,
}

#[derive(Serialize)]
struct ApproveBody<'a> {
    aid: &'a str,
    #[serde(flatten)]
    common: Common<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    card_info: Option<CardInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
}

#[derive(Serialize)]
struct CardInfo {
    kakaopay_purchase_corp: &'static str,
    kakaopay_purchase_corp_code: &'static str,
    kakaopay_issuer_corp: &'static str,
    kakaopay_issuer_corp_code: &'static str,
    bin: &'static str,
    card_type: &'static str,
    install_month: String,
    approved_id: String,
    card_mid: &'static str,
    interest_free_install: &'static str,
    card_item_code: &'static str,
    installment_type: &'static str,
}

#[derive(Serialize)]
struct SelectedCardInfo {
    card_bin: &'static str,
    install_month: u64,
    installment_type: &'static str,
    card_corp_name: &'static str,
    interest_free_install: &'static str,
}

#[derive(Serialize)]
struct OrderBody<'a> {
    status: &'a str,
    #[serde(flatten)]
    common: Common<'a>,
    canceled_amount: AmountBody,
    cancel_available_amount: AmountBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_card_info: Option<SelectedCardInfo>,
    payment_action_details: Vec<ActionBody<'a>>,
}

#[derive(Serialize)]
struct ActionBody<'a> {
    aid: &'a str,
    payment_action_type: &'static str,
    payment_method_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<u64>,
    point_amount: u64,
    discount_amount: u64,
    green_deposit: u64,
    approved_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
}

#[derive(Serialize)]
struct CancelBody<'a> {
    aid: &'a str,
    status: &'static str,
    #[serde(flatten)]
    common: Common<'a>,
    approved_cancel_amount: AmountBody,
    canceled_amount: AmountBody,
    cancel_available_amount: AmountBody,
    canceled_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
}

/// Writes the answer to `ready`; pages are served below `base`.
pub(super) fn ready(payment: &Payment, base: &str, switches: &KakaoPaySwitches) -> Vec<u8> {
    let page = |device: &str| format!("{base}/window/kakaopay/{}/{device}", payment.page);
    let app = page("app");
    let scheme = |start: &str| format!("{start}://kakaopay/pg?url={app}");
    written(&ReadyBody {
        tid: &payment.tid,
        tms_result: false,
        next_redirect_mobile_url: page("mobile"),
        next_redirect_pc_url: page("pc"),
        android_app_scheme: scheme("kakaotalk"),
        ios_app_scheme: scheme("kakaotalk"),
        next_redirect_app_url: app,
        created_at: time(payment.ready_ms, switches),
    })
}

/// Writes the answer to `approve`.
pub(super) fn approved(payment: &Payment, switches: &KakaoPaySwitches) -> Vec<u8> {
    let action = payment.actions.iter().find(|action| !action.is_cancel);
    let with_card = payment.method == Method::Card && switches.card_info == Shown::Shown;
    written(&ApproveBody {
        aid: action.map_or("", |action| &action.aid),
        common: common(payment, switches),
        card_info: with_card.then(|| card_info(payment)),
        payload: action.and_then(|action| action.payload.as_deref()),
    })
}

/// Writes the answer to `order` with a status.
pub(super) fn order(payment: &Payment, status: &str, switches: &KakaoPaySwitches) -> Vec<u8> {
    let with_card = payment.method == Method::Card
        && payment.approved_ms.is_some()
        && switches.card_info == Shown::Shown;
    let selected = with_card.then_some(SelectedCardInfo {
        card_bin: "941000",
        install_month: payment.install_month,
        installment_type: "CARD_INSTALLMENT",
        card_corp_name: "신한카드",
        interest_free_install: "N",
    });
    let actions = payment.actions.iter();
    written(&OrderBody {
        status,
        common: common(payment, switches),
        canceled_amount: payment.canceled().into(),
        cancel_available_amount: payment.available().into(),
        canceled_at: payment.canceled_ms().map(|at_ms| time(at_ms, switches)),
        selected_card_info: selected,
        payment_action_details: actions
            .map(|action| detail(payment, action, switches))
            .collect(),
    })
}

/// Writes `order` as it was before anything was booked.
pub(super) fn order_before(
    payment: &Payment,
    status: &str,
    switches: &KakaoPaySwitches,
) -> Vec<u8> {
    let mut before = payment.clone();
    before.actions.pop();
    if before.actions.is_empty() {
        before.approved_ms = None;
    }
    order(&before, status, switches)
}

/// Writes the answer to the cancel that was booked last.
pub(super) fn canceled(payment: &Payment, switches: &KakaoPaySwitches) -> Vec<u8> {
    let action = payment.actions.last();
    written(&CancelBody {
        aid: action.map_or("", |action| &action.aid),
        status: payment.status.name(),
        common: common(payment, switches),
        approved_cancel_amount: action
            .map(|action| action.amount)
            .unwrap_or_default()
            .into(),
        canceled_amount: payment.canceled().into(),
        cancel_available_amount: payment.available().into(),
        canceled_at: time(action.map_or(0, |action| action.at_ms), switches),
        payload: action.and_then(|action| action.payload.as_deref()),
    })
}

fn common<'a>(payment: &'a Payment, switches: &KakaoPaySwitches) -> Common<'a> {
    Common {
        tid: &payment.tid,
        cid: &payment.cid,
        partner_order_id: &payment.order_id,
        partner_user_id: &payment.user_id,
        payment_method_type: payment.method.name(),
        item_name: &payment.item_name,
        item_code: payment.item_code.as_deref(),
        quantity: payment.quantity,
        amount: payment.amount.into(),
        created_at: time(payment.ready_ms, switches),
        approved_at: payment.approved_ms.map(|at_ms| time(at_ms, switches)),
    }
}

fn card_info(payment: &Payment) -> CardInfo {
    CardInfo {
        kakaopay_purchase_corp: "신한카드",
        kakaopay_purchase_corp_code: "11",
        kakaopay_issuer_corp: "신한카드",
        kakaopay_issuer_corp_code: "11",
        bin: "941000",
        card_type: "신용",
        install_month: format!("{:02}", payment.install_month),
        approved_id: format!("{:08}", payment.serial % 100_000_000),
        card_mid: "000000000",
        interest_free_install: "N",
        card_item_code: "000000",
        installment_type: "CARD_INSTALLMENT",
    }
}

fn detail<'a>(
    payment: &Payment,
    action: &'a Action,
    switches: &KakaoPaySwitches,
) -> ActionBody<'a> {
    let whole = switches.action_details == Shown::Shown;
    ActionBody {
        aid: &action.aid,
        payment_action_type: if action.is_cancel {
            "CANCEL"
        } else {
            "PAYMENT"
        },
        payment_method_type: payment.method.name(),
        amount: whole.then_some(action.amount.total),
        point_amount: 0,
        discount_amount: 0,
        green_deposit: action.amount.green_deposit,
        approved_at: time(action.at_ms, switches),
        payload: action.payload.as_deref().filter(|_| whole),
    }
}

/// A time as KakaoPay writes it: to the second, without a zone.
fn time(at_ms: u64, switches: &KakaoPaySwitches) -> String {
    let zone = match switches.time_zone {
        Zone::Kst => TimeZone::fixed(offset(9)),
        Zone::Utc => TimeZone::UTC,
    };
    let millis = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let at = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    at.to_zoned_datetime(zone)
        .strftime("%Y-%m-%dT%H:%M:%S")
        .to_string()
}

fn written(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("strings and numbers always serialize")
}
