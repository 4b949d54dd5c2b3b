//! What is not known about KakaoPay, as switches with each reading.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::engine::kakaopay::codes::Code;

/// The readings in force; each field's default is the likelier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KakaoPaySwitches {
    /// HTTP statuses of the codes -400 to -603.
    pub http_status: HttpStatus,
    /// Whether a `pg_token` may come again while its payment is neither charged nor ended.
    pub pg_token: PgToken,
    /// What is added to `fail_url` and `cancel_url`.
    pub return_query: ReturnQuery,
    /// The zone of the times, which are written without one.
    pub time_zone: Zone,
    /// Whether `card_info` and `selected_card_info` are there.
    pub card_info: Shown,
    /// Whether the actions which `order` lists carry amount and payload.
    pub action_details: Shown,
    /// The platform gives up on a call after so long, while the work behind goes on; 0: never.
    pub platform_timeout_ms: u64,
    /// Code of the answer it gives then.
    #[serde(deserialize_with = "code")]
    pub platform_timeout_code: String,
    /// Code of the answer to a request whose fields are wrong.
    #[serde(deserialize_with = "code")]
    pub invalid_request_code: String,
    /// Code of the answer to an approve or cancel while another of the same payment runs.
    #[serde(deserialize_with = "code")]
    pub concurrent_code: String,
    /// Code of the answer to a cancel of a payment that is cancelled wholly.
    #[serde(deserialize_with = "code")]
    pub cancel_again_code: String,
    /// What `order` says of a payment whose 15 minutes are over.
    pub expired_order: ExpiredOrder,
    /// What a refused approve leaves behind.
    pub decline_leaves: DeclineLeaves,
    /// How long after its booking `order` still shows the status before it.
    pub stale_for_ms: u64,
}

impl Default for KakaoPaySwitches {
    fn default() -> Self {
        Self {
            http_status: HttpStatus::default(),
            pg_token: PgToken::default(),
            return_query: ReturnQuery::default(),
            time_zone: Zone::default(),
            card_info: Shown::default(),
            action_details: Shown::default(),
            platform_timeout_ms: 11_000,
            platform_timeout_code: "-603".to_owned(),
            invalid_request_code: "-2".to_owned(),
            concurrent_code: "-785".to_owned(),
            cancel_again_code: "-710".to_owned(),
            expired_order: ExpiredOrder::default(),
            decline_leaves: DeclineLeaves::default(),
            stale_for_ms: 0,
        }
    }
}

/// HTTP statuses of the codes -400 to -603.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HttpStatus {
    /// Equal to the code; -603 comes with 500 (default).
    #[default]
    ByCode,
    /// 400, as for every other code.
    Always400,
}

/// Whether a `pg_token` may come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PgToken {
    /// While its payment is neither charged nor ended (default).
    #[default]
    Reusable,
    /// Never: another approve with it is -708, whatever became of the first.
    Once,
}

/// What is added to `fail_url` and `cancel_url`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReturnQuery {
    /// Nothing (default).
    #[default]
    None,
    /// `error_code` and `error_message`.
    Added,
}

/// The zone of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Zone {
    /// Korean time (default).
    #[default]
    Kst,
    /// UTC.
    Utc,
}

/// Whether something optional is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shown {
    /// It is (default).
    #[default]
    Shown,
    /// It is not.
    Absent,
}

/// What `order` says of a payment whose 15 minutes are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpiredOrder {
    /// The status that it had (default).
    #[default]
    LastStatus,
    /// `FAIL_PAYMENT`.
    FailPayment,
    /// Refused with -723.
    Refused,
}

/// What a refused approve leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeclineLeaves {
    /// `FAIL_PAYMENT` after a refusal that is the last word (default).
    #[default]
    Failed,
    /// The payment as it was.
    Pending,
}

fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.parse::<Code>() {
        Ok(_) => Ok(text),
        Err(why) => Err(D::Error::custom(why)),
    }
}
