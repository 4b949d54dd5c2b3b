//! What a scene is made of: load, gateway, server and shoppers, all as plain data.

use payment::resend::Policy;
use payment::time::{Millis, Times};
use rand::Rng;
use rand::distr::Open01;

pub use server::gateway::circuit::CircuitMode;

/// One condition: who comes, to which server, in front of which gateway. Every time in it counts from the first arrival.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// Everything random follows from it.
    pub seed: u64,
    /// Who comes when.
    pub load: Load,
    /// The gateway.
    pub pg: Pg,
    /// The server.
    pub server: Server,
    /// How shoppers behave.
    pub shoppers: Shoppers,
    /// What is asked beside the confirms.
    pub beside: Beside,
}

/// When shoppers arrive, whatever the server does.
#[derive(Debug, Clone)]
pub struct Load {
    /// Shoppers a second.
    pub rate: u32,
    /// For how long, after the warm-up.
    pub seconds: u32,
    /// How they are spaced.
    pub arrivals: Arrivals,
    /// A phase before: shoppers a second, seconds. Counted like the rest.
    pub warm_up: Option<(u32, u32)>,
    /// How long after the last arrival everything may take to become known.
    pub drain: Millis,
}

/// The warm-up of the published runs B and E: 10 a second for 15 seconds.
pub const WARM_UP: (u32, u32) = (10, 15);

impl Default for Load {
    fn default() -> Self {
        Self {
            rate: 50,
            seconds: 60,
            arrivals: Arrivals::Even,
            warm_up: None,
            drain: Millis::from_secs(900),
        }
    }
}

/// How arrivals are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// At even steps, from a random phase of one step on, so that seeds differ.
    Even,
    /// A Poisson process.
    Poisson,
    /// All of a second at its beginning.
    Bursts,
}

/// How long something takes, in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(u64),
    /// Uniform between two bounds.
    Uniform(u64, u64),
    /// Exponential around a mean.
    Exponential(f64),
    /// Log-normal: the median, and the standard deviation of the logarithm.
    LogNormal {
        /// Half are below it.
        median: f64,
        /// Of the logarithm; the mean is median × e^(σ² ÷ 2).
        sigma: f64,
    },
    /// Pareto: never below `least`; the smaller `alpha`, the heavier the tail. The mean is α × least ÷ (α − 1).
    Pareto {
        /// The shortest.
        least: f64,
        /// Above 1 there is a mean.
        alpha: f64,
    },
}

/// No draw exceeds this: an hour outlives every caller.
const LONGEST: f64 = 3_600_000.0;

impl Delay {
    /// A log-normal delay of this mean.
    #[must_use]
    pub fn log_normal(mean: f64, sigma: f64) -> Self {
        let median = mean / (sigma * sigma / 2.0).exp();
        Self::LogNormal { median, sigma }
    }

    /// A Pareto delay of this mean; `alpha` must be above 1.
    #[must_use]
    pub fn pareto(mean: f64, alpha: f64) -> Self {
        let least = mean * (alpha - 1.0) / alpha;
        Self::Pareto { least, alpha }
    }

    /// One delay. Always two draws, so that one call more or less leaves the others' as they were.
    pub fn draw(self, dice: &mut impl Rng) -> Millis {
        let (first, second): (f64, f64) = (dice.sample(Open01), dice.sample(Open01));
        let ms = match self {
            Self::Fixed(ms) => return Millis::new(ms),
            Self::Uniform(low, high) => low as f64 + high.saturating_sub(low) as f64 * first,
            Self::Exponential(mean) => -mean * first.ln(),
            Self::LogNormal { median, sigma } => {
                // Box-Muller; the draw is above 0, so the logarithm is finite.
                let normal = (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos();
                median * (sigma * normal).exp()
            }
            Self::Pareto { least, alpha } => least / first.powf(1.0 / alpha),
        };
        Millis::new(ms.clamp(0.0, LONGEST).round() as u64)
    }
}

/// Which side of the booking a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nothing is booked.
    Before,
    /// It is booked, and the caller does not hear of it.
    After,
}

/// The gateway, with the fake's switches (`fakepg`): the booking is at the end of the delay.
#[derive(Debug, Clone)]
pub struct Pg {
    /// How long a confirm takes.
    pub delay: Delay,
    /// Share of the confirms that take so much longer.
    pub slow_tail: Option<(f64, Delay)>,
    /// Share of the confirms that are reset at once (before) or instead of their answer (after).
    pub loss: Option<(f64, When)>,
    /// Share of the confirms that hang for so long, before the booking or after it.
    pub hang: Option<(f64, When, Millis)>,
    /// Share of the confirms that are declined.
    pub decline: f64,
    /// What the weather changes, and when.
    pub weather: Vec<Weather>,
    /// At these moments every call in flight is reset.
    pub resets: Vec<Millis>,
    /// Whether it goes on with a call whose caller hung up.
    pub goes_on: bool,
    /// Whether it knows idempotency keys: 409 while the first call runs, then its answer. Without, a payment is charged
    /// by each call that comes through.
    pub idempotency: bool,
    /// More confirms at once than this are answered 429.
    pub contract: Option<u32>,
    /// More confirms than this within so long a window (fixed, from zero on) are answered 429.
    pub rate_limit: Option<(u32, Millis)>,
    /// What a confirm's exchange holds its slot beyond the gateway's delay or the timeout: the wire, and timers that fire in
    /// whole ms. A real gateway of 1,000 ms was measured to hold one for 1,002; with none, a slot would come free in the very
    /// ms of an evenly spaced arrival.
    pub wire: Delay,
    /// How long after the authentication it accepts a confirm; the server knows the same figure.
    pub confirm_window: Millis,
    /// How long an inquiry takes.
    pub inquiry: Delay,
    /// How long after a booking or a decline its webhook comes; `None` sends none.
    pub webhook: Option<Delay>,
}

impl Default for Pg {
    fn default() -> Self {
        Self {
            delay: Delay::Fixed(0),
            slow_tail: None,
            loss: None,
            hang: None,
            decline: 0.0,
            weather: Vec::new(),
            resets: Vec::new(),
            goes_on: true,
            idempotency: true,
            contract: None,
            rate_limit: None,
            wire: Delay::Uniform(1, 3),
            confirm_window: Times::DEFAULT.confirm_window,
            inquiry: Delay::Fixed(20),
            webhook: None,
        }
    }
}

/// A stretch of time in which the gateway is not itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weather {
    /// From when.
    pub from: Millis,
    /// Until when.
    pub until: Millis,
    /// What it does then.
    pub sky: Sky,
    /// Whether inquiries feel it too.
    pub inquiries: bool,
}

/// What the gateway does in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sky {
    /// Every call takes this long.
    Slow(Delay),
    /// Calls are accepted, and answered only when it is over.
    Stopped,
    /// No connection can be made.
    Down,
}

/// The server: production code with these settings.
#[derive(Debug, Clone)]
pub struct Server {
    /// Cap, reserve, timeouts, the page's times. The confirm window is the gateway's.
    pub times: Times,
    /// `JARI_DEADLINE_CHECK`.
    pub deadline_check: bool,
    /// `JARI_RESEND`.
    pub resend: Policy,
    /// `JARI_RESEND_RATIO`, in thousandths.
    pub resend_per_mille: Option<u32>,
    /// `JARI_CIRCUIT`.
    pub circuit: CircuitMode,
    /// `JARI_PG_INQUIRIES`.
    pub inquiries: u32,
    /// Recovery at whole multiples of this time instead of each payment's own back-off from 1 s.
    pub recovery_every: Option<Millis>,
    /// `JARI_LAB_WORKERS`: one shared pool of request workers that queues. A worker does not notice that its caller left.
    pub workers: Option<u32>,
    /// Whether a trusted proxy stamps when it took a request, so that time in the pool's queue counts against the deadline.
    pub stamped: bool,
    /// `JARI_LANES`.
    pub lanes: bool,
    /// What the database's only writer takes for one commit; `None` is no time, and no waiting.
    pub commit: Option<Millis>,
    /// The processor that all requests share; `None` is as much as anybody wants.
    pub processor: Option<Processor>,
    /// Nodes that share the database and the cap.
    pub nodes: usize,
    /// When which node dies, and when it comes back.
    pub deaths: Vec<Death>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            times: Times::DEFAULT,
            deadline_check: true,
            resend: Policy::DEFAULT,
            resend_per_mille: None,
            circuit: CircuitMode::On,
            inquiries: 8,
            recovery_every: None,
            workers: None,
            stamped: false,
            lanes: false,
            commit: None,
            processor: None,
            nodes: 1,
            deaths: Vec::new(),
        }
    }
}

impl Server {
    /// As the authors of A to D had it: no circuit, this gateway timeout, cap and a reserve of a tenth.
    #[must_use]
    pub fn published(pg_timeout: Millis, cap: Option<u32>) -> Self {
        Self {
            times: Times {
                pg_timeout,
                cap,
                reserve: cap.map_or(0, Times::reserve_for),
                ..Times::DEFAULT
            },
            circuit: CircuitMode::Off,
            ..Self::default()
        }
    }
}

/// A processor of so many cores, and how long a request of each class keeps one busy, µs.
#[derive(Debug, Clone, Copy)]
pub struct Processor {
    /// Cores.
    pub cores: u32,
    /// A confirm.
    pub confirm: u64,
    /// A webhook.
    pub webhook: u64,
    /// A poll.
    pub poll: u64,
    /// A read.
    pub read: u64,
}

/// The end of a node's process.
#[derive(Debug, Clone, Copy)]
pub struct Death {
    /// Which node, from 0.
    pub node: usize,
    /// When it dies.
    pub at: Millis,
    /// When a new process of it starts.
    pub back: Option<Millis>,
}

/// How shoppers behave.
#[derive(Debug, Clone)]
pub struct Shoppers {
    /// The page, or a bare client.
    pub client: Client,
    /// Share whose confirm carries 0 ms left; exactly so many of every ten in a row.
    pub departed: f64,
    /// Share who close the tab after so long, and when (from their arrival).
    pub impatient: Option<(f64, Delay)>,
    /// Share whose confirm is sent twice at once.
    pub double_click: f64,
    /// Share with so slow a network, one way.
    pub slow_network: Option<(f64, Delay)>,
    /// Share who open the page of the same return address in a second tab, so long after the first.
    pub two_tabs: Option<(f64, Delay)>,
    /// How often one who is offered to pay again does so at most, two to ten seconds later.
    pub pays_again: u32,
}

impl Default for Shoppers {
    fn default() -> Self {
        Self {
            client: Client::Page,
            departed: 0.0,
            impatient: None,
            double_click: 0.0,
            slow_network: None,
            two_tabs: None,
            pays_again: 0,
        }
    }
}

/// What sends the confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// The production page's machine.
    Page,
    /// One confirm with so much time left (`None` sends no header), no polls; it waits for the answer as long as it takes.
    Raw(Option<Millis>),
}

/// What is asked beside the confirms, as long as shoppers arrive, evenly spaced.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside {
    /// Light reads a second.
    pub reads: u32,
    /// Webhooks a second, each about a payment of a shopper who came before.
    pub webhooks: u32,
    /// Polls a second, each of an order of a shopper who came before.
    pub polls: u32,
}
