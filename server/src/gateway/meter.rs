//! What is counted about every call to a gateway (spec section 6): how many, how long, how many at once.

use metrics::{counter, gauge, histogram};
use payment::attempt::Finding;
use payment::id::GatewayName;
use payment::reach::Lost;
use tokio::time::Instant;

use super::{CancelOutcome, ConfirmOutcome, InquiryOutcome, OpenOutcome};

/// What is asked of a gateway, as a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Opening a payment window.
    Open,
    /// The approval call.
    Confirm,
    /// Asking what became of a payment.
    Inquire,
    /// Giving money back.
    Cancel,
}

impl Operation {
    const fn label(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Confirm => "confirm",
            Self::Inquire => "inquire",
            Self::Cancel => "cancel",
        }
    }
}

/// One call being measured. A call that is dropped before it ended leaves the gauge right and counts as `abandoned`.
#[derive(Debug)]
pub(super) struct Meter {
    gateway: String,
    operation: &'static str,
    outcome: &'static str,
    started: Instant,
}

impl Meter {
    /// Counts a call in.
    pub(super) fn start(gateway: &GatewayName, operation: Operation) -> Self {
        let (gateway, operation) = (gateway.as_str().to_owned(), operation.label());
        gauge!("pg_in_flight", "gateway" => gateway.clone(), "operation" => operation)
            .increment(1.0);
        Self {
            gateway,
            operation,
            outcome: "abandoned",
            started: Instant::now(),
        }
    }

    /// Counts the call out with what became of it.
    pub(super) fn end(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let (gateway, operation) = (self.gateway.clone(), self.operation);
        gauge!("pg_in_flight", "gateway" => gateway.clone(), "operation" => operation)
            .decrement(1.0);
        counter!("pg_calls_total", "gateway" => gateway.clone(), "operation" => operation,
            "outcome" => self.outcome)
        .increment(1);
        histogram!("pg_call_duration_seconds", "gateway" => gateway, "operation" => operation)
            .record(self.started.elapsed().as_secs_f64());
    }
}

impl ConfirmOutcome {
    /// The label in metrics and logs.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::NotSent(_) => "not_sent",
            Self::Refused(_) => "refused",
            Self::Found(finding, _) => finding_label(finding),
            Self::Lost(lost, _) => match lost {
                Lost::TimedOut => "timed_out",
                Lost::Reset => "connection_lost",
                Lost::Unreadable => "unreadable",
                Lost::Inconclusive => "inconclusive",
                Lost::InProgress => "in_progress",
            },
        }
    }
}

/// The label of what became of opening a window.
pub(super) const fn open_label(outcome: &OpenOutcome) -> &'static str {
    match outcome {
        OpenOutcome::Opened { .. } => "opened",
        OpenOutcome::Refused(_) => "refused",
        OpenOutcome::NoAnswer(_) => "no_answer",
    }
}

/// The label of what became of an inquiry.
pub(super) fn inquiry_label(outcome: &InquiryOutcome) -> &'static str {
    match outcome {
        InquiryOutcome::Found(finding, _) => finding_label(finding),
        InquiryOutcome::NoWord(_) => "no_word",
        InquiryOutcome::NoAnswer(_) => "no_answer",
    }
}

/// The label of what became of a cancel.
pub(super) fn cancel_label(outcome: &CancelOutcome) -> &'static str {
    match outcome {
        CancelOutcome::Found(..) => "canceled",
        CancelOutcome::Unknown(_) => "unknown",
        CancelOutcome::RetryWithNewKey(_) => "retry_with_new_key",
        CancelOutcome::Refused(_) => "refused",
    }
}

fn finding_label(finding: &Finding) -> &'static str {
    match finding {
        Finding::Charged { .. } => "approved",
        Finding::AwaitingDeposit => "awaiting_deposit",
        Finding::Closed => "closed",
        Finding::Declined(_) => "declined",
        Finding::Lapsed => "lapsed",
        Finding::Pending { .. } => "pending",
        Finding::NotFound { .. } => "not_found",
    }
}
