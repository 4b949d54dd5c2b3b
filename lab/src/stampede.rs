//! A crowd of clients with retry schedules against one gateway, as seeded discrete events: what retries do to a gateway
//! that hangs, resets or comes back. No server takes part, and neither does the checkout page: the server must not retry
//! like this.

mod crowd;
mod gateway;
mod peaks;
mod schedule;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

pub(crate) use crowd::{Begin, Crowd, Kind};
pub(crate) use gateway::{Gateway, Hang, Holds, When};
pub(crate) use peaks::{binned_peak, expected_peak, sliding_peak};
pub(crate) use schedule::{Retry, Schedule};

use crowd::{Client, End};
use gateway::{Desk, Request, Step};

/// Everything that one run is made of; the same scene gives the same run.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    /// Who comes.
    pub(crate) crowds: Vec<Crowd>,
    /// Where they come to.
    pub(crate) gateway: Gateway,
    /// When every open connection is reset at once.
    pub(crate) reset_at: Option<Duration>,
    /// Seeds all chance.
    pub(crate) seed: u64,
}

/// One request as it arrived at the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When, from the beginning of the run.
    pub(crate) at: Duration,
    /// What was asked.
    pub(crate) kind: Kind,
    /// The how manieth time this client asked the same: 1 is no retry.
    pub(crate) time: u32,
}

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ran {
    /// Every request, in order.
    pub(crate) arrivals: Vec<Arrival>,
    /// How often each payment that was confirmed at all was charged.
    pub(crate) charges: Vec<u32>,
    /// How long each client took from its first request to its end.
    pub(crate) took: Vec<Duration>,
    /// Clients who had no answer in the end.
    pub(crate) given_up: usize,
    /// The most requests that the gateway had not done with at once: what a thread for each request would hold.
    pub(crate) peak_threads: usize,
    /// The most connections that were open at once.
    pub(crate) peak_connections: usize,
    /// The longest queue before the gateway's workers.
    pub(crate) longest_queue: usize,
    /// The longest that a request stood in it.
    pub(crate) longest_wait: Duration,
}

impl Ran {
    /// When requests arrived that the filter lets through.
    pub(crate) fn moments(&self, filter: impl Fn(&Arrival) -> bool) -> Vec<Duration> {
        let kept = self.arrivals.iter().filter(|arrival| filter(arrival));
        kept.map(|arrival| arrival.at).collect()
    }

    /// When retries of anything arrived.
    pub(crate) fn retries(&self) -> Vec<Duration> {
        self.moments(|arrival| arrival.time > 1)
    }

    /// Charges for each payment that was confirmed, in the mean.
    pub(crate) fn charges_each(&self) -> f64 {
        let all: u32 = self.charges.iter().sum();
        f64::from(all) / self.charges.len().max(1) as f64
    }

    /// What the clients took in the mean, ms.
    pub(crate) fn mean_ms(&self) -> f64 {
        let all: Duration = self.took.iter().sum();
        crate::stats::ms(all) / self.took.len().max(1) as f64
    }

    /// What half of the clients took at most, ms.
    pub(crate) fn p50_ms(&self) -> f64 {
        let took = crate::stats::Latencies::of(self.took.iter().copied());
        took.percentile_ms(50.0).unwrap_or(0.0)
    }
}

/// What happens next, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A client sends what it is at.
    Send { client: usize },
    /// A client's patience with a request is over.
    TimedOut { request: usize },
    /// The gateway takes its next step with a request.
    Step { request: usize },
    /// Every connection is reset.
    Reset,
}

/// Runs a scene to its end.
pub(crate) fn run(scene: &Scene) -> Ran {
    let mut rng = ChaCha8Rng::seed_from_u64(scene.seed);
    let mut run = Run {
        desk: Desk::new(scene.gateway),
        clients: Vec::new(),
        requests: Vec::new(),
        agenda: BinaryHeap::new(),
        noted: 0,
        open: 0,
        ran: Ran::default(),
    };
    for crowd in &scene.crowds {
        for place in 0..crowd.clients {
            let at = crowd.begin.moment(place, crowd.clients, &mut rng);
            let client = run.clients.len();
            run.clients.push(Client::new(crowd, at));
            run.note(at, What::Send { client });
        }
    }
    if let Some(at) = scene.reset_at {
        run.note(at, What::Reset);
    }
    while let Some(Reverse((now, _, what))) = run.agenda.pop() {
        run.happen(now, what, &mut rng);
    }
    run.end()
}

struct Run<'a> {
    desk: Desk,
    clients: Vec<Client<'a>>,
    requests: Vec<Request>,
    agenda: BinaryHeap<Reverse<(Duration, u64, What)>>,
    /// Counts what was put on the agenda: what falls on one moment happens in that order.
    noted: u64,
    /// Connections open now.
    open: usize,
    ran: Ran,
}

impl Run<'_> {
    fn note(&mut self, at: Duration, what: What) {
        self.noted += 1;
        self.agenda.push(Reverse((at, self.noted, what)));
    }

    fn happen(&mut self, now: Duration, what: What, rng: &mut ChaCha8Rng) {
        match what {
            What::Send { client } => self.send(now, client, rng),
            What::TimedOut { request } => self.lose(now, request, rng),
            What::Step { request } => self.step(now, request, rng),
            What::Reset => {
                for request in 0..self.requests.len() {
                    self.lose(now, request, rng);
                }
            }
        }
    }

    fn send(&mut self, now: Duration, client: usize, rng: &mut ChaCha8Rng) {
        let who = &mut self.clients[client];
        let (kind, time) = who.send();
        let timeout = who.retry().timeout;
        let request = self.requests.len();
        self.requests.push(Request::new(client, kind, now));
        self.ran.arrivals.push(Arrival {
            at: now,
            kind,
            time,
        });
        self.open += 1;
        self.ran.peak_connections = self.ran.peak_connections.max(self.open);
        self.note(now + timeout, What::TimedOut { request });
        self.step(now, request, rng);
    }

    /// Lets the gateway go on with a request until it has to wait for something.
    fn step(&mut self, now: Duration, request: usize, rng: &mut ChaCha8Rng) {
        loop {
            let step = self.desk.step(&mut self.requests, request, now, rng);
            self.ran.peak_threads = self.ran.peak_threads.max(self.desk.held());
            match step {
                Step::On => {}
                Step::Until(at) => return self.note(at, What::Step { request }),
                Step::Queued | Step::Dropped => return self.next_in_queue(now),
                Step::Lost => {
                    self.next_in_queue(now);
                    return self.lose(now, request, rng);
                }
                Step::Answered => {
                    self.next_in_queue(now);
                    return self.answered(now, request);
                }
            }
        }
    }

    fn next_in_queue(&mut self, now: Duration) {
        while let Some((request, since)) = self.desk.next() {
            self.ran.longest_wait = self.ran.longest_wait.max(now - since);
            self.note(now, What::Step { request });
        }
        self.ran.longest_queue = self.ran.longest_queue.max(self.desk.queued());
    }

    fn answered(&mut self, now: Duration, request: usize) {
        let client = self.requests[request].client;
        if !std::mem::take(&mut self.requests[request].listened_to) {
            return;
        }
        self.open -= 1;
        if self.clients[client].answered(now) {
            self.note(now, What::Send { client });
        }
    }

    /// A client has no answer and will have none from this request.
    fn lose(&mut self, now: Duration, request: usize, rng: &mut ChaCha8Rng) {
        let client = self.requests[request].client;
        if !std::mem::take(&mut self.requests[request].listened_to) {
            return;
        }
        self.open -= 1;
        if let Some(pause) = self.clients[client].lost(now, rng) {
            self.note(now + pause, What::Send { client });
        }
    }

    fn end(self) -> Ran {
        let confirmed = self.clients.iter().enumerate();
        let confirmed = confirmed.filter(|(_, client)| client.confirmed());
        Ran {
            charges: confirmed
                .map(|(payment, _)| self.desk.charges(payment))
                .collect(),
            took: self.clients.iter().filter_map(Client::took).collect(),
            given_up: self
                .clients
                .iter()
                .filter(|client| client.end() == Some(End::GaveUp))
                .count(),
            ..self.ran
        }
    }
}

#[cfg(test)]
mod tests;
