//! What all parts of one server process share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use payment::attempt::{AttemptStatus, LateSuccess};
use payment::id::GatewayName;
use payment::proof::NotCharged;
use payment::resend::RatioGate;
use payment::time::{Millis, PageTimes, Times};
use payment::wire::{AttemptView, DepositView, OrderState};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::changes::OrderCache;
use crate::clock::{Clock, EpochMs};
use crate::config::Config;
use crate::console::Console;
use crate::gateway::Gateway;
use crate::gateway::circuit::Breaker;
use crate::gateway::slots::Slots;
use crate::http::guard::RateLimits;
use crate::lanes::Lanes;
use crate::pressure::Pressure;
use crate::store::merchant::MerchantStore;
use crate::store::{AttemptId, AttemptRecord, OrderRecord, Store};
use crate::strangers::Strangers;

/// Most cancels in flight at one gateway.
pub const CANCELS: usize = 4;
/// Most payment windows being opened by a call at one gateway: fewer than the requests that its lane works on at once, so
/// that a gateway which answers none leaves room for the other's.
pub const OPENS: usize = 8;

/// One gateway with its limits.
pub struct Line {
    /// The gateway.
    pub gateway: Arc<dyn Gateway>,
    /// Its timing contract.
    pub times: Times,
    /// The cap on confirms in flight.
    pub slots: Slots,
    /// Refuses confirms while the gateway does not answer.
    pub breaker: Arc<Breaker>,
    /// The second gate of resends.
    ratio: Mutex<RatioGate>,
    /// The limit on inquiries in flight: by default enough to resolve a hundred unknowns in seconds, too few to hurt a
    /// slow gateway.
    pub inquiries: Arc<Semaphore>,
    /// How many places that limit has.
    pub inquiry_places: u32,
    /// The limit on cancels in flight.
    pub cancels: Arc<Semaphore>,
    /// The limit on windows being opened by a call.
    pub opens: Semaphore,
    /// Whether the last inquiry found it silent: then its first answer wakes everything that waits for it.
    silent: AtomicBool,
}

impl Line {
    /// A gateway under its contract.
    #[must_use]
    pub fn new(gateway: Arc<dyn Gateway>, times: Times, config: &Config, clock: Clock) -> Self {
        let breaker = Breaker::new(gateway.name().clone(), config.circuit, clock);
        Self {
            gateway,
            times,
            slots: Slots::new(times.cap, times.reserve),
            breaker: Arc::new(breaker),
            ratio: Mutex::new(RatioGate::new(config.resend_per_mille)),
            inquiries: Arc::new(Semaphore::new(
                usize::try_from(config.bounds.inquiries).unwrap_or(usize::MAX),
            )),
            inquiry_places: config.bounds.inquiries,
            cancels: Arc::new(Semaphore::new(CANCELS)),
            opens: Semaphore::new(OPENS),
            silent: AtomicBool::new(false),
        }
    }

    /// The second gate of resends, for one step.
    pub fn ratio(&self) -> MutexGuard<'_, RatioGate> {
        self.ratio.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the gateway did not answer.
    pub fn note_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Notes that the gateway answered; true when it had been silent before.
    pub fn note_answer(&self) -> bool {
        self.silent.swap(false, Ordering::Relaxed)
    }

    /// Whether the gateway was silent when last asked.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }
}

/// A set of attempts that are worked on.
#[derive(Debug, Clone, Default)]
pub struct Working(Arc<Mutex<HashSet<AttemptId>>>);

/// One attempt's place in the set; dropping it takes the attempt out, however the work ends.
#[must_use]
#[derive(Debug)]
pub struct AtWork {
    set: Working,
    id: AttemptId,
}

impl Working {
    /// Puts an attempt in; `None` when it is in already.
    pub fn begin(&self, id: AttemptId) -> Option<AtWork> {
        // Made only when it is due: dropping one takes the attempt out.
        let new = self.lock().insert(id);
        new.then(|| AtWork {
            set: self.clone(),
            id,
        })
    }

    /// Whether an attempt is in.
    #[must_use]
    pub fn holds(&self, id: AttemptId) -> bool {
        self.lock().contains(&id)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<AttemptId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.set.lock().remove(&self.id);
    }
}

/// One server process.
pub struct App {
    /// The settings it was started with.
    pub config: Config,
    /// Its clocks.
    pub clock: Clock,
    /// Its name among the nodes that share the database; a new one at each start.
    pub node: String,
    /// Its database, for confirms, webhooks and recovery.
    pub store: Arc<dyn Store>,
    /// The same database, for polls.
    pub polls: Arc<dyn Store>,
    /// The same database, for what is only looked at.
    pub reads: Arc<dyn Store>,
    /// The same database, for shops that sell through this checkout; `None` where there can be none (the simulation).
    pub merchants: Option<Arc<dyn MerchantStore>>,
    /// The orders that shoppers wait for, as last read.
    pub cache: OrderCache,
    /// The bounds of each class of requests.
    pub lanes: Lanes,
    /// How much is being asked of the process.
    pub pressure: Pressure,
    /// What one address or shopper may ask.
    pub rate_limits: RateLimits,
    /// The bounds on webhooks of nobody.
    pub strangers: Strangers,
    /// Its gateways, the first one first choice.
    pub lines: Vec<Arc<Line>>,
    /// Work that outlives its connection.
    pub tracker: TaskTracker,
    /// Set when the server stops: no new confirm is taken.
    pub stopping: CancellationToken,
    /// Attempts whose confirm this process is working on: never taken for interrupted, however the wall clock steps.
    pub working: Working,
    /// Wakes recovery.
    pub recovery: Notify,
    /// Wakes the webhook inbox.
    pub inbox: Notify,
    /// The operators' console, where it is configured.
    pub console: Option<Console>,
}

impl App {
    /// The line of a gateway.
    #[must_use]
    pub fn line(&self, name: &GatewayName) -> Option<&Arc<Line>> {
        self.lines.iter().find(|line| line.gateway.name() == name)
    }

    /// What to do with a late success.
    #[must_use]
    pub const fn late(&self) -> LateSuccess {
        self.config.late_success
    }

    /// The times of the page that waits for an order: those of the gateway of its open attempt, else of its latest, else of
    /// the first.
    #[must_use]
    pub fn page_times(&self, order: &OrderRecord) -> PageTimes {
        let attempts = order.attempts.iter().rev();
        let open = attempts
            .clone()
            .find(|record| record.attempt.status.is_open());
        open.or_else(|| attempts.clone().next())
            .and_then(|record| self.line(&record.gateway))
            .or(self.lines.first())
            .map_or(PageTimes::DEFAULT, |line| line.times.page)
    }

    /// An order's state as a poll tells it.
    #[must_use]
    pub fn order_state(&self, order: &OrderRecord) -> OrderState {
        let state = order_state(order, self.poll_after(self.page_times(order).poll_interval));
        OrderState {
            poll_after_ms: patient(&state, state.poll_after_ms),
            ..state
        }
    }

    /// When a page is to ask again, ms: its own step, longer while too many ask.
    #[must_use]
    pub fn poll_after(&self, step: Millis) -> u64 {
        self.pressure.poll_after(step).get()
    }

    /// The longest that a call to any of the gateways takes.
    #[must_use]
    pub fn longest_timeout(&self) -> Millis {
        let timeouts = self.lines.iter().map(|line| line.times.pg_timeout);
        timeouts.max().unwrap_or_default()
    }
}

/// How often a page asks about a deposit, which may take days, ms.
const DEPOSIT_POLL: u64 = 60_000;

/// When to ask again about an order, ms: seldom while its deposit is awaited.
#[must_use]
pub fn patient(state: &OrderState, poll_after_ms: u64) -> u64 {
    if state.deposit.is_some() {
        poll_after_ms.max(DEPOSIT_POLL)
    } else {
        poll_after_ms
    }
}

fn deposit_of(record: &AttemptRecord) -> Option<DepositView> {
    let waits = record.attempt.status == AttemptStatus::AwaitingDeposit;
    let account = record.deposit.as_ref().filter(|_| waits)?;
    Some(DepositView {
        bank: account.bank.clone(),
        account_number: account.number.clone(),
        holder: account.holder.clone(),
        amount: record.attempt.expected.amount,
        due_at: account.due.and_then(EpochMs::in_korea),
    })
}

/// An order's state: the attempt that tells most is the open one, else the one that paid, else the latest.
#[must_use]
pub fn order_state(order: &OrderRecord, poll_after_ms: u64) -> OrderState {
    let attempts = &order.attempts;
    let telling = attempts
        .iter()
        .rev()
        .find(|record| record.attempt.status.is_open())
        .or_else(|| {
            attempts
                .iter()
                .rev()
                .find(|record| record.attempt.counts_as_paid())
        })
        .or_else(|| {
            attempts
                .iter()
                .rev()
                .find(|record| record.attempt.status != AttemptStatus::Expired)
        })
        .or(attempts.last());
    let status = order.status();
    OrderState {
        order_id: order.id.clone(),
        status,
        attempt: telling.map(|record| AttemptView {
            number: record.number,
            status: record.attempt.status,
            reach: record.attempt.reach,
            reason: record.attempt.reason,
        }),
        payable: NotCharged::of_attempts(status, attempts.iter().map(|record| &record.attempt))
            .is_some(),
        poll_after_ms,
        deposit: telling.and_then(deposit_of),
        closed_unpaid: telling.is_some_and(|record| record.attempt.ends_unpaid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_in_once_and_out_when_its_place_is_dropped() {
        let (set, id) = (Working::default(), AttemptId(1));
        let place = set.begin(id).unwrap();
        assert!(set.begin(id).is_none());
        assert!(set.holds(id), "a refused second one takes nothing out");
        drop(place);
        assert!(!set.holds(id));
    }
}
