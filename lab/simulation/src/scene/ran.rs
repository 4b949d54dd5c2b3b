//! What a played scene came to.

use std::collections::BTreeMap;

use payment::time::Millis;
use payment::view::Stage;
use payment::wire::ProblemCode;

use super::bank::Books;

/// What a confirm's own answer said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// 200.
    Paid,
    /// 202.
    InDoubt,
    /// A problem.
    Refused(ProblemCode),
}

/// What one shopper saw.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When it arrived.
    pub at: Millis,
    /// Whether its confirm carried 0 ms left.
    pub departed: bool,
    /// What the first confirm's answer said; `None` when the page gave it up, or it was lost.
    pub said: Option<Said>,
    /// How long that answer took.
    pub answered: Option<Millis>,
    /// What the page showed last; of a bare client what its answer means.
    pub stage: Stage,
    /// From the arrival until the page had no more to say, or its shopper left.
    pub took: Millis,
    /// Whether the shopper closed the page before its end.
    pub left: bool,
    /// When the page first said that nobody knows yet, from the arrival.
    pub checking: Option<Millis>,
    /// How long the page showed that nobody knows.
    pub doubt: Millis,
    /// How often the shopper paid again.
    pub again: u32,
    /// The order's charges that stand at the end.
    pub charged: u32,
    /// All charges that were ever booked for it.
    pub charged_ever: u32,
}

impl Seen {
    /// Whether the first answer was this refusal.
    #[must_use]
    pub fn refused(&self, code: ProblemCode) -> bool {
        self.said == Some(Said::Refused(code))
    }
}

/// What shoppers were shown against the gateway's truth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Regret {
    /// Shoppers with a page.
    pub shoppers: u64,
    /// Shown last that nothing was charged, and charged.
    pub false_failures: u64,
    /// Shown last that it was paid, and not charged.
    pub false_successes: u64,
    /// With more than one charge that stands.
    pub double_charges: u64,
    /// Shown for any time that nobody knows.
    pub in_doubt: u64,
    /// Still in doubt when they had waited as long as the page waits.
    pub left_in_doubt: u64,
    /// All time in doubt, ms.
    pub doubt_ms: u64,
    /// The longest time in doubt, ms.
    pub longest_doubt_ms: u64,
}

impl Regret {
    pub(super) fn of(seen: &[Seen]) -> Self {
        let count =
            |test: &dyn Fn(&Seen) -> bool| seen.iter().filter(|one| test(one)).count() as u64;
        let failed = |one: &Seen| matches!(one.stage, Stage::NotCharged(_));
        let doubt = seen.iter().map(|one| one.doubt.get());
        Self {
            shoppers: seen.len() as u64,
            false_failures: count(&|one| failed(one) && one.charged > 0),
            false_successes: count(&|one| one.stage == Stage::Paid && one.charged == 0),
            double_charges: count(&|one| one.charged > 1),
            in_doubt: count(&|one| one.doubt > Millis::ZERO),
            left_in_doubt: count(&|one| !one.left && one.stage == Stage::StillUnknown),
            doubt_ms: doubt.clone().sum(),
            longest_doubt_ms: doubt.max().unwrap_or(0),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            shoppers: self.shoppers + other.shoppers,
            false_failures: self.false_failures + other.false_failures,
            false_successes: self.false_successes + other.false_successes,
            double_charges: self.double_charges + other.double_charges,
            in_doubt: self.in_doubt + other.in_doubt,
            left_in_doubt: self.left_in_doubt + other.left_in_doubt,
            doubt_ms: self.doubt_ms + other.doubt_ms,
            longest_doubt_ms: self.longest_doubt_ms.max(other.longest_doubt_ms),
        }
    }
}

/// What was asked beside the confirms, of one kind.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// All.
    pub asked: u64,
    /// How long each took that was served.
    pub served: Vec<Millis>,
    /// Refused for load.
    pub shed: u64,
    /// Neither: a busy database, or a dead node.
    pub failed: u64,
}

/// How the attempts ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    /// All that were claimed.
    pub claimed: u64,
    /// Approved.
    pub approved: u64,
    /// Failed without a send: cap, circuit, deadline, no connection.
    pub not_sent: u64,
    /// Failed since the gateway refused the call before processing it.
    pub pg_refused: u64,
    /// Failed otherwise.
    pub failed: u64,
    /// Given back, or on the way.
    pub given_back: u64,
    /// Not known when the scene ended.
    pub open: u64,
}

/// All that a scene came to. Times count from the first arrival.
#[derive(Debug, Clone, Default)]
pub struct Ran {
    /// Every shopper, in the order of arrival.
    pub seen: Vec<Seen>,
    /// What shoppers were shown against the truth. A bare client shows what its answer means, and no doubt.
    pub regret: Regret,
    /// The gateway's counts.
    pub books: Books,
    /// The server's, by name and the label that is not the gateway's.
    pub counters: BTreeMap<(String, String), u64>,
    /// How the attempts ended.
    pub ends: Ends,
    /// Attempts that were ever unknown.
    pub ever_unknown: u64,
    /// How long each was unknown that became known.
    pub time_to_known: Vec<Millis>,
    /// How many were unknown, from each moment on.
    pub unknown: Vec<(Millis, i64)>,
    /// Confirms in flight by the server's own count, ten times a second.
    pub slots: Vec<(Millis, u32)>,
    /// The most confirms in flight at once, of all nodes together, counted apart from the slots.
    pub slots_peak: u32,
    /// Reads beside the confirms.
    pub reads: Side,
    /// Webhooks beside the confirms.
    pub webhooks: Side,
    /// Polls beside the confirms.
    pub polls: Side,
    /// Whether everything was known, and every page at its end, within the drain.
    pub drained: bool,
    /// Virtual time in all.
    pub lasted: Millis,
}

impl Ran {
    /// A counter of the server's: `counter("pg_resend_total", "sent")`.
    #[must_use]
    pub fn counter(&self, name: &str, label: &str) -> u64 {
        let key = (name.to_owned(), label.to_owned());
        self.counters.get(&key).copied().unwrap_or(0)
    }

    /// Shoppers of whom a condition holds.
    #[must_use]
    pub fn count(&self, test: impl Fn(&Seen) -> bool) -> u64 {
        self.seen.iter().filter(|seen| test(seen)).count() as u64
    }

    /// Orders with a charge that stands.
    #[must_use]
    pub fn sold(&self) -> u64 {
        self.count(|seen| seen.charged > 0)
    }

    /// Shoppers whose confirm was refused first with this code.
    #[must_use]
    pub fn refused(&self, code: ProblemCode) -> u64 {
        self.count(|seen| seen.refused(code))
    }

    /// The mean of the confirms in flight between two moments; `None` without a sample between.
    #[must_use]
    pub fn mean_in_flight(&self, from: Millis, until: Millis) -> Option<f64> {
        let within = self
            .slots
            .iter()
            .filter(|(at, _)| from <= *at && *at < until);
        let (sum, count) = within.fold((0_u64, 0_u64), |(sum, count), (_, taken)| {
            (sum + u64::from(*taken), count + 1)
        });
        (count > 0).then(|| sum as f64 / count as f64)
    }
}
