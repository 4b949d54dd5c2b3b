//! The gateway of a scene, in memory. Shares no code with `payment`'s machines: what it says is the truth.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use payment::time::Millis;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::time::{Instant, sleep_until};

use super::spec::{Pg, Sky, When};
use crate::world::lock;

/// What a confirm is answered, if it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// 200: this much was charged.
    Charged(u64),
    /// A listed refusal.
    Declined,
    /// The confirm came after the window.
    Lapsed,
    /// 429.
    TooMany,
    /// 409: the first call under this key still runs.
    InProgress,
    /// The connection broke.
    Reset,
    /// No connection could be made.
    NotConnected,
}

/// What an inquiry is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// There is no such payment.
    Nothing,
    /// Authenticated, and not charged yet.
    Pending,
    /// Declined.
    Declined,
    /// Not confirmed in time.
    Lapsed,
    /// Charged so much, of which so much went back.
    Charged(u64, u64),
}

/// What the gateway counted.
#[derive(Debug, Clone, Default)]
pub struct Books {
    /// Confirms that arrived.
    pub received: u64,
    /// Charges booked.
    pub approved: u64,
    /// Confirms refused for good.
    pub declined: u64,
    /// Answered again from the key's first answer.
    pub replayed: u64,
    /// Answered 409.
    pub in_progress: u64,
    /// Answered 429.
    pub limited: u64,
    /// Reset, before or after the booking.
    pub lost: u64,
    /// Given up unbooked since the caller hung up.
    pub dropped: u64,
    /// Inquiries that arrived.
    pub inquiries: u64,
    /// Cancels booked.
    pub canceled: u64,
    /// Most confirms worked on at once.
    pub peak: u32,
    /// When each confirm arrived, ms from the start of the load.
    pub arrivals: Vec<u64>,
    /// When each inquiry arrived, likewise.
    pub inquired: Vec<u64>,
    /// How many confirms are worked on, from each moment on, ms from the start.
    pub working: Vec<(u64, u32)>,
}

#[derive(Debug)]
struct Payment {
    order: String,
    window_until: u64,
    declined: bool,
    confirming: u32,
    /// Charged, given back.
    charges: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct State {
    dice: ChaCha8Rng,
    payments: HashMap<String, Payment>,
    keys: HashMap<String, Option<Reply>>,
    cancels: HashMap<String, u64>,
    working: u32,
    /// The window, and the calls in it.
    rate: (u64, u32),
    books: Books,
}

type Tell = Box<dyn Fn(&str, &str) + Send + Sync>;

/// The gateway.
pub struct Bank {
    pg: Pg,
    start: OnceLock<Instant>,
    state: Mutex<State>,
    tell: OnceLock<Tell>,
}

impl std::fmt::Debug for Bank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bank").field("pg", &self.pg).finish()
    }
}

/// A confirm on the wire.
#[derive(Debug, Clone)]
pub struct Wire {
    /// The payment's key.
    pub key: String,
    /// Won.
    pub amount: u64,
    /// The idempotency key.
    pub idem: String,
}

/// What is drawn for one call, always as many draws.
struct Throws {
    loss: Option<When>,
    declined: bool,
    work: Millis,
    hold: Millis,
}

/// The place of a call that is worked on; dropped unfinished, the call is given up.
struct Place {
    bank: Arc<Bank>,
    wire: Wire,
    said: Option<Reply>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let now = self.bank.now();
        let state = &mut *lock(&self.bank.state);
        state.working -= 1;
        state.books.working.push((now, state.working));
        if let Some(payment) = state.payments.get_mut(&self.wire.key) {
            payment.confirming -= 1;
        }
        match self.said {
            Some(said) => {
                state.keys.insert(self.wire.idem.clone(), Some(said));
            }
            None => {
                state.keys.remove(&self.wire.idem);
                state.books.dropped += 1;
            }
        }
    }
}

impl Bank {
    /// A gateway whose time starts with its first call, or with [`Bank::begin`].
    #[must_use]
    pub fn new(pg: Pg, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            pg,
            start: OnceLock::new(),
            state: Mutex::new(State {
                dice: ChaCha8Rng::seed_from_u64(seed ^ 0x6a61_7269),
                payments: HashMap::new(),
                keys: HashMap::new(),
                cancels: HashMap::new(),
                working: 0,
                rate: (0, 0),
                books: Books::default(),
            }),
            tell: OnceLock::new(),
        })
    }

    /// How it is set.
    #[must_use]
    pub const fn pg(&self) -> &Pg {
        &self.pg
    }

    /// Who is told of bookings and declines: payment key, gateway order id.
    pub(super) fn told_to(&self, tell: Tell) {
        let _ = self.tell.set(tell);
    }

    /// The moment from which all its times count; now, if it has not begun.
    pub fn begin(&self) -> Instant {
        *self.start.get_or_init(Instant::now)
    }

    /// ms since the start.
    #[must_use]
    pub fn now(&self) -> u64 {
        u64::try_from(self.begin().elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The books as they stand.
    #[must_use]
    pub fn books(&self) -> Books {
        lock(&self.state).books.clone()
    }

    /// The charges of each gateway order id that stand, and all that were ever booked.
    #[must_use]
    pub fn charges(&self) -> HashMap<String, (u32, u32)> {
        let mut of = HashMap::new();
        for payment in lock(&self.state).payments.values() {
            let (stand, ever): &mut (u32, u32) = of.entry(payment.order.clone()).or_default();
            for (charged, back) in &payment.charges {
                *stand += u32::from(back < charged);
                *ever += 1;
            }
        }
        of
    }

    /// A shopper authenticates a payment of an order; returns its key.
    pub fn authenticate(&self, order: &str) -> String {
        let window_until = self.now() + self.pg.confirm_window.get();
        let mut state = lock(&self.state);
        let key = format!("pk_{}", state.payments.len() + 1);
        let payment = Payment {
            order: order.to_owned(),
            window_until,
            declined: false,
            confirming: 0,
            charges: Vec::new(),
        };
        state.payments.insert(key.clone(), payment);
        key
    }

    fn sky(&self, inquiry: bool) -> Option<(Sky, Millis)> {
        let now = Millis::new(self.now());
        let over = |weather: &&super::spec::Weather| {
            weather.from <= now && now < weather.until && (!inquiry || weather.inquiries)
        };
        let weather = self.pg.weather.iter().find(over)?;
        Some((weather.sky, weather.until))
    }

    /// Waits until the gateway is not stopped.
    async fn unless_stopped(&self, inquiry: bool) {
        while let Some((Sky::Stopped, until)) = self.sky(inquiry) {
            sleep_until(self.begin() + until.to_duration()).await;
        }
    }

    fn is_down(&self, inquiry: bool) -> bool {
        matches!(self.sky(inquiry), Some((Sky::Down, _)))
    }

    /// One confirm, from its arrival to its answer. Dropping it hangs up.
    pub async fn confirm(self: &Arc<Self>, wire: Wire) -> Reply {
        if self.is_down(false) {
            return Reply::NotConnected;
        }
        let now = self.now();
        let throws = {
            let mut state = lock(&self.state);
            state.books.received += 1;
            state.books.arrivals.push(now);
            self.throw(&mut state.dice)
        };
        let reset = self.pg.resets.iter().find(|at| at.get() > now);
        let answer = self.answer(wire, throws);
        match reset {
            None => answer.await,
            Some(at) => tokio::select! {
                biased;
                answer = answer => answer,
                () = sleep_until(self.begin() + at.to_duration()) => Reply::Reset,
            },
        }
    }

    fn throw(&self, dice: &mut ChaCha8Rng) -> Throws {
        let [loss, hang, tail, decline]: [f64; 4] = dice.random();
        let delay = match self.sky(false) {
            Some((Sky::Slow(delay), _)) => delay,
            _ => self.pg.delay,
        };
        let delay = delay.draw(dice);
        let longer = self
            .pg
            .slow_tail
            .map(|(share, longer)| (share, longer.draw(dice)))
            .filter(|(share, _)| tail < *share)
            .map_or(Millis::ZERO, |(_, longer)| longer);
        let hung = |side| {
            let hang = self
                .pg
                .hang
                .filter(|(share, when, _)| hang < *share && *when == side);
            hang.map_or(Millis::ZERO, |(.., long)| long)
        };
        Throws {
            loss: self
                .pg
                .loss
                .filter(|(share, _)| loss < *share)
                .map(|(_, when)| when),
            declined: decline < self.pg.decline,
            work: delay.plus(longer).plus(hung(When::Before)),
            hold: hung(When::After),
        }
    }

    async fn answer(self: &Arc<Self>, wire: Wire, throws: Throws) -> Reply {
        self.unless_stopped(false).await;
        if throws.loss == Some(When::Before) {
            lock(&self.state).books.lost += 1;
            return Reply::Reset;
        }
        let lost = throws.loss == Some(When::After);
        let place = match self.admit(wire) {
            Ok(place) => place,
            Err(refused) => return refused,
        };
        let work = Arc::clone(self).work(place, throws);
        let said = if self.pg.goes_on {
            tokio::spawn(work).await.unwrap_or(Reply::Reset)
        } else {
            work.await
        };
        if lost {
            lock(&self.state).books.lost += 1;
            return Reply::Reset;
        }
        said
    }

    /// What the next exchange takes beside the gateway's own time.
    pub(super) fn wire(&self) -> Millis {
        let state = &mut *lock(&self.state);
        self.pg.wire.draw(&mut state.dice)
    }

    /// Limits and keys, in the fake's order: rate, key, contract.
    fn admit(self: &Arc<Self>, wire: Wire) -> Result<Place, Reply> {
        let now = self.now();
        let state = &mut *lock(&self.state);
        if let Some((most, window)) = self.pg.rate_limit {
            let number = now / window.get().max(1);
            if state.rate.0 != number {
                state.rate = (number, 0);
            }
            state.rate.1 += 1;
            if state.rate.1 > most {
                state.books.limited += 1;
                return Err(Reply::TooMany);
            }
        }
        if self.pg.idempotency {
            match state.keys.get(&wire.idem) {
                Some(None) => {
                    state.books.in_progress += 1;
                    return Err(Reply::InProgress);
                }
                Some(Some(said)) => {
                    state.books.replayed += 1;
                    return Err(*said);
                }
                None => {}
            }
        }
        if self.pg.contract.is_some_and(|most| state.working >= most) {
            state.books.limited += 1;
            return Err(Reply::TooMany);
        }
        if self.pg.idempotency {
            state.keys.insert(wire.idem.clone(), None);
        }
        if let Some(payment) = state.payments.get_mut(&wire.key) {
            payment.confirming += 1;
        }
        state.working += 1;
        state.books.peak = state.books.peak.max(state.working);
        state.books.working.push((now, state.working));
        Ok(Place {
            bank: Arc::clone(self),
            wire,
            said: None,
        })
    }

    async fn work(self: Arc<Self>, mut place: Place, throws: Throws) -> Reply {
        let began = self.now();
        tokio::time::sleep(throws.work.to_duration()).await;
        self.unless_stopped(false).await;
        let said = self.book(&place.wire, throws.declined, began);
        place.said = Some(said);
        if throws.hold > Millis::ZERO {
            tokio::time::sleep(throws.hold.to_duration()).await;
        }
        said
    }

    fn book(&self, wire: &Wire, declined: bool, began: u64) -> Reply {
        let (said, order) = {
            let state = &mut *lock(&self.state);
            let Some(payment) = state.payments.get_mut(&wire.key) else {
                return Reply::Declined;
            };
            let said = match payment.charges.first() {
                // Without keys whatever comes through is one charge more.
                Some((charged, _)) if self.pg.idempotency => Reply::Charged(*charged),
                _ if payment.declined => Reply::Declined,
                _ if began >= payment.window_until => Reply::Lapsed,
                _ if declined => {
                    payment.declined = true;
                    Reply::Declined
                }
                _ => {
                    payment.charges.push((wire.amount, 0));
                    Reply::Charged(wire.amount)
                }
            };
            match said {
                Reply::Charged(_) => state.books.approved += 1,
                _ => state.books.declined += 1,
            }
            (said, payment.order.clone())
        };
        if let Some(tell) = self.tell.get() {
            tell(&wire.key, &order);
        }
        said
    }

    /// What is known of a payment; `None` when there is no answer while the asker waits, or no connection.
    pub async fn inquire(&self, key: &str) -> Option<Known> {
        if self.is_down(true) {
            return None;
        }
        let took = {
            let state = &mut *lock(&self.state);
            state.books.inquiries += 1;
            state.books.inquired.push(self.now());
            let delay = match self.sky(true) {
                Some((Sky::Slow(delay), _)) => delay,
                _ => self.pg.inquiry,
            };
            delay.draw(&mut state.dice)
        };
        tokio::time::sleep(took.to_duration()).await;
        self.unless_stopped(true).await;
        let now = self.now();
        let state = lock(&self.state);
        let Some(payment) = state.payments.get(key) else {
            return Some(Known::Nothing);
        };
        Some(match payment.charges.first() {
            Some((charged, back)) => Known::Charged(*charged, *back),
            None if payment.declined => Known::Declined,
            None if now >= payment.window_until && payment.confirming == 0 => Known::Lapsed,
            None => Known::Pending,
        })
    }

    /// Gives back what is left of a payment's first charge that stands, once for each key.
    pub fn give_back(&self, key: &str, idem: &str) -> Option<Known> {
        let state = &mut *lock(&self.state);
        let payment = state.payments.get_mut(key)?;
        if !state.cancels.contains_key(idem) {
            let standing = payment.charges.iter_mut().find(|(all, back)| back < all)?;
            standing.1 = standing.0;
            state.cancels.insert(idem.to_owned(), standing.0);
            state.books.canceled += 1;
        }
        let (charged, back) = payment.charges.first()?;
        Some(Known::Charged(*charged, *back))
    }
}
