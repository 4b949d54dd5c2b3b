//! How the gateway behaves: every switch of `PUT /_control/scenario`, strict about names.

mod cancels;
mod kakaopay;
mod stripe;
mod uncertain;
mod values;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::engine::kakaopay::codes::Code;
use crate::engine::stripe::codes::is_listed;
use crate::engine::toss::codes;
use crate::engine::{Gateway, Operation};
pub use cancels::{AsyncCancels, BalanceFalls, CancelEnd};
pub use kakaopay::{
    DeclineLeaves, ExpiredOrder, HttpStatus, KakaoPaySwitches, PgToken, ReturnQuery, Shown, Zone,
};
pub use stripe::{ExpiredSession, RefundStatus, StripeSwitches};
pub use uncertain::{AfterRefusal, LimitedBody, RepeatAfterWindow, Uncertain};
pub use values::{Delay, Ratio, When};

/// The whole scenario; the default is a healthy gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Scenario {
    /// Calls which the faults below apply to.
    pub operations: Vec<Operation>,
    /// Gateways which the faults below, `up` included, apply to.
    pub gateways: Vec<Gateway>,
    /// False: every wire connection is reset before anything is read or booked.
    pub up: bool,
    /// True: calls are accepted and answered only once this is lifted.
    pub stop: bool,
    /// How long the work takes; the booking is at its end.
    pub delay_ms: Delay,
    /// Some calls take this much longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_tail: Option<SlowTail>,
    /// Connections reset before or after the booking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Calls which hang before or after the booking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang: Option<Hang>,
    /// Whether work goes on once the caller hung up.
    pub continue_after_disconnect: bool,
    /// Off: idempotency keys are ignored.
    pub idempotency: Switch,
    /// Whether 5xx, 429 and 401 answers are bound to their idempotency key too.
    pub bind_server_errors: bool,
    /// More concurrent calls of an operation than this are answered 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_limit: Option<u64>,
    /// More calls of an operation in one second than this are answered 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<u64>,
    /// Confirms refused as a card company would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decline: Option<Decline>,
    /// Calls answered with an error, before or after the booking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Calls answered with a redirect, nothing booked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// What is done to the body of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyFault>,
    /// Time between two bytes of a dripping body.
    pub drip_ms: u64,
    /// How long after its booking a payment is not found by an inquiry.
    pub not_found_for_ms: u64,
    /// What an inquiry about a payment that is not confirmed says.
    pub unconfirmed: Unconfirmed,
    /// Time to the latest confirm: at Toss from the authentication, at KakaoPay from the opening, at Stripe from the
    /// authorisation.
    /// When absent, each gateway's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm_window_ms: Option<u64>,
    /// Code of Toss's answer to a confirm whose amount or order differs from the authenticated one.
    #[serde(deserialize_with = "toss_code")]
    pub mismatch_code: String,
    /// True: another payment of an order that is already charged is charged too.
    pub allow_duplicate_order: bool,
    /// How webhooks are sent.
    pub webhooks: Webhooks,
    /// Which reading of what is not known about KakaoPay is in force.
    pub kakaopay: KakaoPaySwitches,
    /// Which reading of what is not known about Stripe is in force.
    pub stripe: StripeSwitches,
    /// How virtual accounts behave.
    pub deposits: Deposits,
    /// Toss's cancels are accepted at once and end later; when absent, they are booked at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub async_cancels: Option<AsyncCancels>,
    /// What nobody outside knows of the real gateway, each with both of its readings.
    pub uncertain: Uncertain,
    /// Seeds the randomness anew when given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            operations: vec![Operation::Confirm],
            gateways: Gateway::ALL.to_vec(),
            up: true,
            stop: false,
            delay_ms: Delay::default(),
            slow_tail: None,
            loss: None,
            hang: None,
            continue_after_disconnect: true,
            idempotency: Switch::On,
            bind_server_errors: false,
            contract_limit: None,
            rate_limit: None,
            decline: None,
            error: None,
            redirect: None,
            body: None,
            drip_ms: 5_000,
            not_found_for_ms: 0,
            unconfirmed: Unconfirmed::Payment,
            confirm_window_ms: None,
            mismatch_code: "INVALID_REQUEST".to_owned(),
            allow_duplicate_order: false,
            webhooks: Webhooks::default(),
            kakaopay: KakaoPaySwitches::default(),
            stripe: StripeSwitches::default(),
            deposits: Deposits::default(),
            async_cancels: None,
            uncertain: Uncertain::default(),
            seed: None,
        }
    }
}

impl Scenario {
    /// Reads a scenario from JSON; the error names the field, what was expected, line and column.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let read: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let (path, told) = (error.path().to_string(), error.inner().to_string());
            match (path.as_str(), place(text, &path)) {
                (".", _) => told,
                (path, None) => format!("{path}: {told}"),
                (path, Some((line, column))) => {
                    let why = told
                        .rfind(" at line ")
                        .map_or(told.as_str(), |end| &told[..end]);
                    format!("{path}: {why} at line {line} column {column}")
                }
            }
        })?;
        reader.end().map_err(|error| error.to_string())?;
        Ok(read)
    }

    /// Whether the faults apply to this operation of this gateway.
    pub fn strikes(&self, gateway: Gateway, operation: Operation) -> bool {
        self.gateways.contains(&gateway) && self.operations.contains(&operation)
    }

    /// Whether a gateway's wire is down.
    pub fn is_down(&self, gateway: Gateway) -> bool {
        !self.up && self.gateways.contains(&gateway)
    }

    /// Whether every gateway's wire is down.
    pub fn all_down(&self) -> bool {
        Gateway::ALL
            .into_iter()
            .all(|gateway| self.is_down(gateway))
    }

    /// Time to the latest confirm: 10 minutes from the authentication at Toss, 15 minutes from the opening at KakaoPay, 7 days
    /// from the authorisation at Stripe, if the scenario says nothing else.
    pub fn confirm_window_ms(&self, gateway: Gateway) -> u64 {
        self.confirm_window_ms.unwrap_or(match gateway {
            Gateway::Toss => 600_000,
            Gateway::KakaoPay => 900_000,
            Gateway::Stripe => 604_800_000,
        })
    }
}

/// Line and column of the field at the end of a path, if its name stands in the text only once. The
/// JSON reader tells of a value that it could read only at the end of what is around it.
fn place(text: &[u8], path: &str) -> Option<(usize, usize)> {
    let name = path.rsplit('.').next()?.split('[').next()?;
    let (text, quoted) = (std::str::from_utf8(text).ok()?, format!("\"{name}\""));
    let mut found = text.match_indices(&quoted);
    let (Some((at, _)), None) = (found.next(), found.next()) else {
        return None;
    };
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|one| *one != '\n').count() + 1;
    Some((line, column))
}

/// On or off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Switch {
    /// On (default).
    #[default]
    On,
    /// Off.
    Off,
}

/// What an inquiry about a payment that is not confirmed says; which of both is real is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unconfirmed {
    /// The payment, in progress (default).
    #[default]
    Payment,
    /// 404.
    NotFound,
}

/// What is done to the body of an answer; the booking stays as it is, save `wrongAmount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BodyFault {
    /// JSON cut in the middle.
    Broken,
    /// The charge is booked, and answered, with another amount.
    WrongAmount,
    /// An HTML page in place of the JSON, same status.
    Html,
    /// One byte per `dripMs`.
    Drip,
}

/// Some calls take longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SlowTail {
    /// Share of the calls.
    #[serde(default)]
    pub ratio: Ratio,
    /// Added to the delay.
    pub delay_ms: Delay,
}

/// Resets of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Loss {
    /// Share of the calls.
    #[serde(default)]
    pub ratio: Ratio,
    /// Before or after the booking.
    #[serde(default)]
    pub when: When,
}

/// Calls which hang.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hang {
    /// Share of the calls.
    #[serde(default)]
    pub ratio: Ratio,
    /// Before: waits, then books. After: books, then waits.
    #[serde(default)]
    pub when: When,
    /// How long.
    pub ms: u64,
}

/// Refusals as a card company gives them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decline {
    /// Share of the calls.
    #[serde(default)]
    pub ratio: Ratio,
    /// A code of a gateway's tables, answered with its documented status: strikes only where that
    /// gateway has it. When absent, each gateway's own.
    #[serde(
        default,
        deserialize_with = "listed_code",
        skip_serializing_if = "Option::is_none"
    )]
    pub code: Option<String>,
}

/// Errors of the gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Share of the calls.
    #[serde(default)]
    pub ratio: Ratio,
    /// HTTP status.
    #[serde(default = "default_error_status", deserialize_with = "error_status")]
    pub status: u16,
    /// Code of the JSON body; without one the body is an HTML page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Before or after the booking.
    #[serde(default)]
    pub when: When,
}

/// Redirects in place of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Redirect {
    /// HTTP status, 3xx.
    #[serde(deserialize_with = "redirect_status")]
    pub status: u16,
    /// Where to.
    #[serde(deserialize_with = "visible_ascii")]
    pub location: String,
}

/// How virtual accounts behave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Deposits {
    /// From the confirm to the due date.
    pub due_ms: u64,
    /// What a look-up after the due date says; which of both is real is not known.
    pub expired: ExpiredAccounts,
    /// Whether look-ups show the secret that the confirm's answer gave; which of both is real is not known.
    pub secret_in_lookup: bool,
    /// Which webhooks tell of an account.
    pub events: DepositEvents,
    /// What is left of an account that was cancelled before its deposit; which of both is real is not known.
    pub canceled_balance: CanceledBalance,
}

impl Default for Deposits {
    fn default() -> Self {
        Self {
            // A week.
            due_ms: 604_800_000,
            expired: ExpiredAccounts::Flagged,
            secret_in_lookup: true,
            events: DepositEvents::Both,
            canceled_balance: CanceledBalance::Zero,
        }
    }
}

/// What a look-up says of an account whose due date is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpiredAccounts {
    /// `virtualAccount.expired` is true (default).
    #[default]
    Flagged,
    /// Nothing: it goes on waiting.
    Unflagged,
}

/// Which webhooks a merchant has registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DepositEvents {
    /// Two webhooks for one deposit (default).
    #[default]
    Both,
    /// `DEPOSIT_CALLBACK` alone.
    Deposit,
    /// `PAYMENT_STATUS_CHANGED` alone.
    Status,
}

/// The balance of an account that was cancelled before its deposit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CanceledBalance {
    /// Nothing is left (default).
    #[default]
    Zero,
    /// The whole amount, since none was ever paid.
    Whole,
}

/// How webhooks are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Webhooks {
    /// From the event to the first try.
    pub delay_ms: Delay,
    /// Share which is sent twice.
    pub duplicate: Ratio,
    /// Share which is sent only after the webhook that follows it.
    pub reorder: Ratio,
    /// Share which is never sent.
    pub drop: Ratio,
    /// Resends after a failed try; off when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resend: Option<Resend>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            delay_ms: Delay::default(),
            duplicate: Ratio::NONE,
            reorder: Ratio::NONE,
            drop: Ratio::NONE,
            resend: None,
        }
    }
}

/// Resends on Toss's schedule of 1, 4, 16, 64, 256, 1024 and 4096 minutes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resend {
    /// Factor on the schedule.
    pub scale: f64,
}

impl Default for Resend {
    fn default() -> Self {
        Self { scale: 1.0 }
    }
}

impl Resend {
    /// Time from a failed try to the next, by how many resends there were; none after the seventh.
    pub fn wait_ms(self, resends: u32) -> Option<u64> {
        let minute_ms = 60_000.0;
        let minutes = 4_f64.powi(i32::try_from(resends).ok()?);
        (resends < 7).then(|| (minutes * minute_ms * self.scale.max(0.0)).round() as u64)
    }
}

fn default_error_status() -> u16 {
    500
}

fn listed_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let code = String::deserialize(deserializer)?;
    if codes::status_of(&code).is_some() || code.parse::<Code>().is_ok() || is_listed(&code) {
        Ok(Some(code))
    } else {
        Err(D::Error::custom(format!("unknown gateway code `{code}`")))
    }
}

fn toss_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let code = String::deserialize(deserializer)?;
    match codes::status_of(&code) {
        Some(_) => Ok(code),
        None => Err(D::Error::custom(format!("unknown code `{code}` of Toss"))),
    }
}

fn error_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    status_between(deserializer, 400, 599)
}

fn redirect_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    status_between(deserializer, 300, 399)
}

fn status_between<'de, D: Deserializer<'de>>(
    deserializer: D,
    low: u16,
    high: u16,
) -> Result<u16, D::Error> {
    let status = u16::deserialize(deserializer)?;
    if (low..=high).contains(&status) {
        Ok(status)
    } else {
        Err(D::Error::custom(format!(
            "status {status} is not within {low} to {high}"
        )))
    }
}

fn visible_ascii<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text)
    } else {
        Err(D::Error::custom("location must be a URL without spaces"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_object_is_the_healthy_default_and_what_is_written_reads_back() {
        let healthy = Scenario::from_json(b"{}").expect("reads");
        assert_eq!(healthy, Scenario::default());
        let text = serde_json::to_vec(&healthy).expect("writes");
        assert_eq!(Scenario::from_json(&text).expect("reads back"), healthy);
    }

    #[test]
    fn unknown_names_and_codes_are_refused_by_name() {
        for (text, named) in [
            (r#"{"delay":5}"#, "delay"),
            (r#"{"loss":{"rate":1}}"#, "rate"),
            (r#"{"operations":["refund"]}"#, "refund"),
            (r#"{"decline":{"code":"NO_SUCH_CODE"}}"#, "NO_SUCH_CODE"),
            (r#"{"error":{"status":200}}"#, "200"),
            (r#"{"body":"torn"}"#, "torn"),
        ] {
            let error = Scenario::from_json(text.as_bytes()).expect_err(text);
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn resends_follow_the_schedule_and_end_after_seven() {
        let resend = Resend { scale: 0.001 };
        let waits: Vec<_> = (0..8).map(|resends| resend.wait_ms(resends)).collect();
        assert_eq!(&waits[..3], &[Some(60), Some(240), Some(960)]);
        assert_eq!(waits[6], Some(245_760));
        assert_eq!(waits[7], None);
    }
}
