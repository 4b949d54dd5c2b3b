//! What one seed is made of: how many shoppers and nodes, which times, and how often each fault strikes.

use payment::attempt::LateSuccess;
use payment::time::{Millis, PageTimes, Times};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use crate::fault::Fault;

/// One seed's draw.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The timing contract, always one that a server would start with.
    pub(crate) times: Times,
    /// How long an order can be paid.
    pub(crate) order_ttl: Millis,
    /// Nodes that share the store.
    pub(crate) nodes: usize,
    /// Shoppers.
    pub(crate) shoppers: u32,
    /// How long faults strike.
    pub(crate) storm: Millis,
    /// Whether the gateway itself charges a payment only once; where it does not, only our idempotency key prevents it.
    pub(crate) charges_once: bool,
    /// Whether the gateway knows no idempotency keys and sends no webhooks.
    pub(crate) keyless: bool,
    /// What becomes of a charge that is learned after its attempt had ended.
    pub(crate) late: LateSuccess,
    /// Pieces of the scarce product.
    pub(crate) scarce: u32,
    /// The longest wait before and after a commit, ms.
    pub(crate) commit_pause: u64,
    rates: Vec<f64>,
}

impl Plan {
    pub(crate) fn draw(rng: &mut ChaCha8Rng) -> Self {
        // Half of the kinds strike in a run, each at a rate of its own: rare ones show what is hidden by frequent ones.
        let rates = Fault::ALL
            .iter()
            .map(|fault| {
                let strikes = rng.random_bool(0.5);
                let share = 10_f64.powf(-1.2 * rng.random::<f64>());
                if strikes { fault.most() * share } else { 0.0 }
            })
            .collect();
        let times = times(rng);
        Self {
            times,
            order_ttl: Millis::from_secs(if rng.random_bool(0.3) {
                rng.random_range(20..=120)
            } else {
                86_400
            }),
            nodes: if rng.random_bool(0.4) { 2 } else { 1 },
            shoppers: rng.random_range(1..=16),
            storm: Millis::from_secs(rng.random_range(20..=180)),
            charges_once: rng.random_bool(0.4),
            keyless: false,
            late: if rng.random_bool(0.3) {
                LateSuccess::Revive
            } else {
                LateSuccess::Cancel
            },
            scarce: rng.random_range(1..=6),
            commit_pause: 3,
            rates,
        }
    }

    pub(crate) fn rate(&self, fault: Fault) -> f64 {
        self.rates[fault as usize]
    }

    /// The plan of a seed: every fourth has a gateway without keys and webhooks, so that nothing may be sent again unasked.
    pub(crate) fn of_seed(self, seed: u64) -> Self {
        if seed % 4 != 3 {
            return self;
        }
        // What is booked after every promise, or given back at the gateway's own desk, and told by no webhook: nobody could
        // know of it before the books are reconciled.
        let told = self
            .without(Fault::VeryLateBooking)
            .without(Fault::DeskRefunds);
        Self {
            keyless: true,
            ..told
        }
    }

    /// A plan of one node that has its database for itself, with a single piece of what is scarce.
    pub(crate) fn of_one_node(self) -> Self {
        Self {
            nodes: 1,
            scarce: 1,
            commit_pause: 0,
            ..self
        }
    }

    /// A plan with these times, for so many nodes.
    pub(crate) fn with(self, times: Times, nodes: usize) -> Self {
        Self {
            times,
            nodes,
            order_ttl: Millis::from_secs(86_400),
            late: LateSuccess::Cancel,
            ..self
        }
    }

    /// A plan without a kind of fault.
    pub(crate) fn without(mut self, fault: Fault) -> Self {
        self.rates[fault as usize] = 0.0;
        self
    }
}

fn times(rng: &mut ChaCha8Rng) -> Times {
    let cap = match rng.random_range(0..10) {
        0 => None,
        1..=2 => Some(40),
        _ => Some(rng.random_range(2..=8)),
    };
    let base = Times {
        cap,
        reserve: cap.map_or(0, |cap| Times::reserve_for(cap).min(cap - 1)),
        ..Times::DEFAULT
    };
    if rng.random_bool(0.25) {
        return base;
    }
    let pg_timeout = Millis::new(rng.random_range(1_000..=20_000));
    let database_wait = Millis::new(rng.random_range(100..=2_000));
    let needed = database_wait
        .times(2)
        .plus(pg_timeout)
        .plus(Millis::new(1_000));
    let response_wait = Millis::new(rng.random_range(500..=15_000));
    let poll_interval = Millis::new(rng.random_range(1_000..=3_000));
    let rest = needed
        .less(response_wait)
        .get()
        .div_ceil(poll_interval.get());
    let polls = u32::try_from(rest).unwrap_or(u32::MAX) + rng.random_range(1..=8);
    let times = Times {
        page: PageTimes {
            response_wait,
            poll_interval,
            poll_count: polls,
            poll_limit: PageTimes::DEFAULT.poll_limit,
        },
        pg_timeout,
        pg_connect_timeout: Millis::new(rng.random_range(100..=3_000)),
        database_wait,
        node_lease: pg_timeout.plus(Millis::new(rng.random_range(5_000..=10_000))),
        confirm_window: Millis::from_secs(rng.random_range(20..=120)),
        authentication_window: Millis::from_secs(rng.random_range(60..=600)),
        ..base
    };
    debug_assert!(times.check().is_ok());
    times
}
