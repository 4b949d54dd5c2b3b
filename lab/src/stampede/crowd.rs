//! The clients: when they begin, what they ask one after the other, and how they fare.

use std::time::Duration;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::schedule::Retry;

/// What a request asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A connection, with all that it takes to make one.
    Connect,
    /// What the client had before it was cut off: its session.
    Restore,
    /// A payment's confirm: the only one that moves money.
    Confirm,
}

/// When the clients of a crowd begin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Begin {
    /// At one moment, each late by a uniform share of the noise: no two threads start at once.
    Together {
        /// The moment.
        at: Duration,
        /// The most that one is late.
        noise: Duration,
    },
    /// At even steps over a while from the beginning on.
    Evenly {
        /// The while.
        over: Duration,
    },
}

impl Begin {
    pub(super) fn moment(self, place: usize, of: usize, rng: &mut ChaCha8Rng) -> Duration {
        match self {
            Self::Together { at, noise } => at + noise.mul_f64(rng.random::<f64>()),
            Self::Evenly { over } => over.mul_f64(place as f64 / of.max(1) as f64),
        }
    }
}

/// Clients that are alike.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    /// How many.
    pub(crate) clients: usize,
    /// When they begin.
    pub(crate) begin: Begin,
    /// What each asks, one after the other; the next once the last is answered.
    pub(crate) asks: Vec<Kind>,
    /// How each tries again.
    pub(crate) retry: Retry,
}

/// How a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Served,
    GaveUp,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client<'a> {
    crowd: &'a Crowd,
    begun: Duration,
    /// Which of its requests it is at.
    at: usize,
    /// How often it has asked that.
    made: u32,
    last_pause: Duration,
    ended: Option<(End, Duration)>,
}

impl<'a> Client<'a> {
    pub(super) fn new(crowd: &'a Crowd, begun: Duration) -> Self {
        Self {
            crowd,
            begun,
            at: 0,
            made: 0,
            last_pause: Duration::ZERO,
            ended: None,
        }
    }

    pub(super) fn retry(&self) -> &Retry {
        &self.crowd.retry
    }

    /// Whether it has a payment.
    pub(super) fn confirmed(&self) -> bool {
        self.crowd.asks.contains(&Kind::Confirm)
    }

    pub(super) fn end(&self) -> Option<End> {
        self.ended.map(|(end, _)| end)
    }

    pub(super) fn took(&self) -> Option<Duration> {
        self.ended.map(|(_, at)| at - self.begun)
    }

    /// What it asks now, and the how manieth time it does.
    pub(super) fn send(&mut self) -> (Kind, u32) {
        self.made += 1;
        (self.crowd.asks[self.at], self.made)
    }

    /// It has its answer; true if it asks for something else at once.
    pub(super) fn answered(&mut self, now: Duration) -> bool {
        self.at += 1;
        self.made = 0;
        self.last_pause = Duration::ZERO;
        let more = self.at < self.crowd.asks.len();
        if !more {
            self.ended = Some((End::Served, now));
        }
        more
    }

    /// It has no answer: when it asks again, if it does.
    pub(super) fn lost(&mut self, now: Duration, rng: &mut ChaCha8Rng) -> Option<Duration> {
        let pause = self.crowd.retry.pause(self.made, self.last_pause, rng);
        match pause {
            Some(pause) => self.last_pause = pause,
            None => self.ended = Some((End::GaveUp, now)),
        }
        pause
    }
}
