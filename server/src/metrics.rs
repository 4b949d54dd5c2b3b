//! The server's metrics, by the names of the contract.

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use payment::attempt::{Alarm, AttemptStatus};
use payment::circuit::Why;
use payment::id::GatewayName;
use payment::reach::NotSent;
use payment::refund::RefundStatus;
use payment::resend::Decision;
use payment::time::Millis;

use crate::clock::EpochMs;
use crate::resolve::Look;
use crate::store::effects::{EffectKind, EffectsWaiting};
use crate::store::merchant::DeliveriesWaiting;
use crate::store::{Census, Overdue};
use crate::strangers::Pressing;

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

/// A confirm that named another amount than its order's: refused before anything was claimed.
pub fn tampered() {
    counter!("payments_tampered_total").increment(1);
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
const RATE_LIMITS: [&str; 6] = [
    "order_ip",
    "order_session",
    "confirm_ip",
    "confirm_session",
    "shop_write",
    "shop_read",
];

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
    counter!("pg_opens_refused_total", "gateway" => gateway()).increment(0);
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
    counter!("payments_tampered_total").increment(0);
    for why in [Why::Slow, Why::Unknown, Why::Probe] {
        counter!("circuit_opened_total", "gateway" => gateway(), "reason" => why.label())
            .increment(0);
    }
    for status in RefundStatus::ALL.into_iter().filter(|it| !it.is_open()) {
        counter!("refunds_total", "result" => status.as_str()).increment(0);
    }
    for asker in ["shopper", "operator"] {
        counter!("refunds_asked_total", "by" => asker).increment(0);
    }
    counter!("operator_token_refused_total").increment(0);
    for result in ["signed_in", "wrong", "limited"] {
        counter!("console_sign_ins_total", "result" => result).increment(0);
    }
    counter!("circuit_would_refuse_total", "gateway" => gateway()).increment(0);
    for result in DELIVERY_RESULTS {
        counter!("webhook_deliveries_total", "result" => result).increment(0);
    }
    for limit in RATE_LIMITS {
        counter!("rate_limited_total", "limit" => limit).increment(0);
    }
    for kind in EffectKind::ALL {
        for result in EFFECT_RESULTS {
            counter!("outbox_effects_total", "kind" => kind.as_str(), "result" => result)
                .increment(0);
        }
    }
    let refused = Pressing::ALL.map(Pressing::label);
    for result in refused.into_iter().chain(["collapsed", "forged"]) {
        counter!("webhook_events_total", "gateway" => gateway(), "result" => result).increment(0);
    }
    counter!("webhook_hints_delayed_total", "gateway" => gateway()).increment(0);
    counter!("webhooks_swept_total").increment(0);
    for source in ["cache", "database"] {
        counter!("poll_answers_total", "source" => source).increment(0);
    }
}

/// A payment window that was not opened, as too many are being opened.
pub fn open_refused(gateway: &GatewayName) {
    counter!("pg_opens_refused_total", "gateway" => gateway.to_string()).increment(1);
}

/// Something about money that needs an operator's eye.
pub fn alarm(alarm: Alarm) {
    counter!("payments_alarm_total", "alarm" => alarm.as_str()).increment(1);
}

/// A refund that people asked for and that came to its end.
pub fn refund(status: RefundStatus) {
    counter!("refunds_total", "result" => status.as_str()).increment(1);
}

/// A refund that was stored.
pub fn refund_asked(by: &'static str) {
    counter!("refunds_asked_total", "by" => by).increment(1);
}

/// A try to enter the console.
pub fn console_sign_in(result: &'static str) {
    counter!("console_sign_ins_total", "result" => result).increment(1);
}

/// Something that an operator did in the console.
pub fn console_action(action: &'static str, result: &str) {
    counter!("console_actions_total", "action" => action, "result" => result.to_owned())
        .increment(1);
}

/// A request with a token that is not the operator's.
pub fn operator_token_refused() {
    counter!("operator_token_refused_total").increment(1);
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
    gauge!("refunds_open").set(census.refunds_open as f64);
    let oldest = census
        .oldest_refund
        .map_or(0.0, |since| now.since(since).to_duration().as_secs_f64());
    gauge!("refunds_open_oldest_seconds").set(oldest);
}

/// Attempts that were made due because their order's time is over, and orders that were ended.
pub fn orders_over(asked: u64, ended: u64) {
    counter!("payments_asked_before_expiry_total").increment(asked);
    counter!("payments_orders_expired_total").increment(ended);
}

/// What waits to be done outside.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge's figures are far below 2^52"
)]
pub fn effects_waiting(waiting: EffectsWaiting, now: EpochMs) {
    gauge!("outbox_waiting").set(waiting.count as f64);
    let oldest = waiting
        .oldest
        .map_or(0.0, |since| now.since(since).to_duration().as_secs_f64());
    gauge!("outbox_oldest_seconds").set(oldest);
}

/// One side effect that was tried.
pub fn effect(kind: &'static str, result: &'static str) {
    counter!("outbox_effects_total", "kind" => kind, "result" => result).increment(1);
}

/// What becomes of a side effect that was tried: done, put off, or done by another node meanwhile.
pub const EFFECT_RESULTS: [&str; 3] = ["done", "failed", "lost"];

/// What shops' endpoints are still to be told.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge's figures are far below 2^52"
)]
pub fn deliveries_waiting(waiting: DeliveriesWaiting, now: EpochMs) {
    gauge!("webhook_deliveries_waiting").set(waiting.count as f64);
    let oldest = waiting
        .oldest
        .map_or(0.0, |since| now.since(since).to_duration().as_secs_f64());
    gauge!("webhook_deliveries_oldest_seconds").set(oldest);
}

/// One delivery that was tried.
pub fn delivery(result: &'static str) {
    counter!("webhook_deliveries_total", "result" => result).increment(1);
}

/// What becomes of a delivery that was tried: the endpoint has it, it is tried again, it was tried for too long, or another
/// node took it meanwhile.
const DELIVERY_RESULTS: [&str; 4] = ["delivered", "failed", "given_up", "lost"];

/// What waits longer than it should.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge's figures are far below 2^52"
)]
pub fn overdue(overdue: Overdue, now: EpochMs) {
    gauge!("payments_unknown_overdue").set(overdue.unknown as f64);
    gauge!("webhooks_of_nobody").set(overdue.strangers as f64);
    let oldest = overdue
        .oldest_parked
        .map_or(0.0, |since| now.since(since).to_duration().as_secs_f64());
    gauge!("webhooks_parked_oldest_seconds").set(oldest);
}

/// Raw webhooks that were kept long enough.
pub fn webhooks_swept(swept: u64) {
    counter!("webhooks_swept_total").increment(swept);
}

/// A hint about an attempt that a hint had caused to be asked about a moment ago.
pub fn hint_waits(gateway: &GatewayName) {
    counter!("webhook_hints_delayed_total", "gateway" => gateway.to_string()).increment(1);
}

/// One HTTP exchange.
pub fn http(route: String, status: u16, span: Duration) {
    histogram!("http_requests_duration_seconds", "route" => route, "status" => status.to_string())
        .record(span.as_secs_f64());
}
