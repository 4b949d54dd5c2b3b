//! The server's metrics, by the names of the contract.

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use payment::attempt::{Alarm, AttemptStatus};
use payment::circuit::Why;
use payment::id::GatewayName;
use payment::reach::NotSent;
use payment::resend::Decision;
use payment::time::Millis;

use crate::clock::EpochMs;
use crate::resolve::Look;
use crate::store::Census;

/// Seconds: from a commit to beyond the gateway timeout.
const BUCKETS: [f64; 17] = [
    0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0,
    30.0, 65.0,
];

/// Installs the process-wide recorder.
///
/// # Errors
/// [`BuildError`] when one is installed already.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
        .install_recorder()
}

/// A first send that was proven not to reach the gateway.
pub fn not_sent(gateway: &GatewayName, why: NotSent) {
    counter!("pg_not_sent_total", "gateway" => gateway.to_string(), "reason" => why.label())
        .increment(1);
}

/// An attempt that came into a state.
pub fn payment(status: AttemptStatus) {
    counter!("payments_total", "status" => status.as_str()).increment(1);
}

/// How long an attempt was unknown.
pub fn time_to_known(span: Millis) {
    histogram!("payment_time_to_known_seconds").record(span.to_duration().as_secs_f64());
}

/// One look of recovery.
pub fn recovery(look: Look) {
    let result = match look {
        Look::Resolved => "resolved",
        Look::NotYet | Look::Unseen => "not_yet",
        Look::Silent => "no_answer",
        Look::Refused => "cancel_refused",
    };
    counter!("recovery_runs_total", "result" => result).increment(1);
}

/// A webhook that was received or looked at.
pub fn webhook(gateway: &GatewayName, result: &'static str) {
    counter!("webhook_events_total", "gateway" => gateway.to_string(), "result" => result)
        .increment(1);
}

/// How long a webhook's sender waited for our answer.
pub fn webhook_duration(span: Millis) {
    histogram!("webhook_duration_seconds").record(span.to_duration().as_secs_f64());
}

/// The labels of the rate limits.
const RATE_LIMITS: [&str; 4] = ["order_ip", "order_session", "confirm_ip", "confirm_session"];

/// Registers what may never happen, so that "never" can be told from "not there".
pub fn register(gateway: &GatewayName) {
    let gateway = || gateway.to_string();
    for why in [
        NotSent::Cap,
        NotSent::Circuit,
        NotSent::Deadline,
        NotSent::Connect,
    ] {
        counter!("pg_not_sent_total", "gateway" => gateway(), "reason" => why.label()).increment(0);
    }
    for decision in Decision::ALL {
        counter!("pg_resend_total", "gateway" => gateway(), "decision" => decision.label())
            .increment(0);
    }
    for status in AttemptStatus::ALL {
        counter!("payments_total", "status" => status.as_str()).increment(0);
    }
    for alarm in Alarm::ALL {
        counter!("payments_alarm_total", "alarm" => alarm.as_str()).increment(0);
    }
    for why in [Why::Slow, Why::Unknown, Why::Probe] {
        counter!("circuit_opened_total", "gateway" => gateway(), "reason" => why.label())
            .increment(0);
    }
    counter!("circuit_would_refuse_total", "gateway" => gateway()).increment(0);
    for limit in RATE_LIMITS {
        counter!("rate_limited_total", "limit" => limit).increment(0);
    }
    for source in ["cache", "database"] {
        counter!("poll_answers_total", "source" => source).increment(0);
    }
}

/// Something about money that needs an operator's eye.
pub fn alarm(alarm: Alarm) {
    counter!("payments_alarm_total", "alarm" => alarm.as_str()).increment(1);
}

/// What was decided about a lost confirm.
pub fn resend(gateway: &GatewayName, decision: Decision) {
    counter!("pg_resend_total", "gateway" => gateway.to_string(), "decision" => decision.label())
        .increment(1);
}

/// How long a send held its slot.
pub fn slot_hold(gateway: &GatewayName, span: Duration) {
    histogram!("pg_slot_hold_seconds", "gateway" => gateway.to_string()).record(span.as_secs_f64());
}

/// What waits to be known.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge's figures are far below 2^52"
)]
pub fn census(census: Census, now: EpochMs) {
    gauge!("payments_unknown").set(census.unknown as f64);
    let oldest = census
        .oldest_unknown
        .map_or(0.0, |since| now.since(since).to_duration().as_secs_f64());
    gauge!("payments_unknown_oldest_seconds").set(oldest);
    gauge!("webhooks_waiting").set(census.webhooks_waiting as f64);
}

/// One HTTP exchange.
pub fn http(route: String, status: u16, span: Duration) {
    histogram!("http_requests_duration_seconds", "route" => route, "status" => status.to_string())
        .record(span.as_secs_f64());
}
