//! The gateway that a crowd runs against: how long its work takes, how many it works on at once, how it fails, and what a
//! repeated key does.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::crowd::Kind;

/// On which side of the booking something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Nothing is booked yet.
    Before,
    /// The money has moved.
    After,
}

/// Calls that stand still.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hang {
    /// On which side of the booking.
    pub(crate) when: When,
    /// For how long.
    pub(crate) lasts: Duration,
    /// Calls that arrive from then on do not hang.
    pub(crate) until: Option<Duration>,
}

/// What a call that stands still takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A worker, as a program with a thread for each request.
    Worker,
    /// Nothing but its connection, as an asynchronous program.
    Connection,
}

/// How a gateway is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gateway {
    /// What a confirm takes; connections and sessions take a tenth.
    pub(crate) work: Duration,
    /// How many it works on at once; `None` is any number.
    pub(crate) workers: Option<usize>,
    /// What a call that stands still takes up.
    pub(crate) holds: Holds,
    /// The calls that stand still.
    pub(crate) hang: Option<Hang>,
    /// The share of confirms, 0 to 1, whose connection is reset, before or right after the booking.
    pub(crate) loss: Option<(f64, When)>,
    /// Whether it goes on with a call whose caller hung up.
    pub(crate) works_on: bool,
    /// Whether a repeated key is answered with the first result, and refused while that is being worked on.
    pub(crate) keys: bool,
}

impl Gateway {
    /// A gateway that takes a while for a confirm, and that nothing is wrong with.
    pub(crate) const fn healthy(work: Duration) -> Self {
        Self {
            work,
            workers: None,
            holds: Holds::Connection,
            hang: None,
            loss: None,
            works_on: true,
            keys: true,
        }
    }
}

/// Where the gateway is with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Arrived,
    /// Stood still before the work.
    Stood,
    Queued,
    /// May begin its work.
    Called,
    Working,
    /// Has its result, and stood still after it if it had to.
    Done,
    Gone,
}

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) client: usize,
    kind: Kind,
    arrived: Duration,
    /// Whether its client waits for the answer.
    pub(super) listened_to: bool,
    place: Place,
    /// Holds a worker.
    worker: bool,
    /// Is the one that works on its payment's key.
    first: bool,
}

impl Request {
    pub(super) const fn new(client: usize, kind: Kind, arrived: Duration) -> Self {
        Self {
            client,
            kind,
            arrived,
            listened_to: true,
            place: Place::Arrived,
            worker: false,
            first: false,
        }
    }
}

/// What becomes of a request at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The next step comes at once.
    On,
    /// The next step comes then.
    Until(Duration),
    /// It waits for a worker.
    Queued,
    /// Nobody waits for it, and the gateway let it go.
    Dropped,
    /// Its connection is reset.
    Lost,
    /// It is answered.
    Answered,
}

/// What is known of a payment's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    InProgress,
    Booked,
}

/// The gateway at work.
#[derive(Debug)]
pub(super) struct Desk {
    made: Gateway,
    busy: usize,
    held: usize,
    queue: VecDeque<(usize, Duration)>,
    keys: BTreeMap<usize, Key>,
    charges: BTreeMap<usize, u32>,
}

impl Desk {
    pub(super) const fn new(made: Gateway) -> Self {
        Self {
            made,
            busy: 0,
            held: 0,
            queue: VecDeque::new(),
            keys: BTreeMap::new(),
            charges: BTreeMap::new(),
        }
    }

    /// Requests that it has not done with.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Requests that wait for a worker.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How often a payment was charged.
    pub(super) fn charges(&self, payment: usize) -> u32 {
        self.charges.get(&payment).copied().unwrap_or_default()
    }

    /// The request that may begin since a worker is free, and since when it waited.
    pub(super) fn next(&mut self) -> Option<(usize, Duration)> {
        if self
            .made
            .workers
            .is_some_and(|workers| self.busy >= workers)
        {
            return None;
        }
        let next = self.queue.pop_front();
        self.busy += usize::from(next.is_some());
        next
    }

    /// Goes on with a request.
    pub(super) fn step(
        &mut self,
        requests: &mut [Request],
        index: usize,
        now: Duration,
        rng: &mut ChaCha8Rng,
    ) -> Step {
        let request = &mut requests[index];
        match request.place {
            Place::Arrived => self.arrived(request, index, now),
            Place::Stood => self.stood(request, index, now, rng),
            Place::Queued => {
                // Called by `next`, which took the worker for it.
                request.worker = true;
                request.place = Place::Called;
                Step::On
            }
            Place::Called => self.begin(request, now, rng),
            Place::Working => self.book(request, now, rng),
            Place::Done => self.leave(request, Step::Answered),
            Place::Gone => Step::Dropped,
        }
    }

    fn hangs(&self, request: &Request, when: When) -> Option<Duration> {
        let hang = self.made.hang.filter(|hang| hang.when == when)?;
        let strikes = hang.until.is_none_or(|until| request.arrived < until);
        strikes.then_some(hang.lasts)
    }

    fn arrived(&mut self, request: &mut Request, index: usize, now: Duration) -> Step {
        self.held += 1;
        let Some(lasts) = self.hangs(request, When::Before) else {
            request.place = Place::Stood;
            return Step::On;
        };
        if self.made.holds == Holds::Worker {
            // A thread is taken first, and stands still with its call.
            return self.queue(request, index, now);
        }
        request.place = Place::Stood;
        Step::Until(now + lasts)
    }

    fn stood(
        &mut self,
        request: &mut Request,
        index: usize,
        now: Duration,
        rng: &mut ChaCha8Rng,
    ) -> Step {
        if !request.listened_to && !self.made.works_on {
            return self.leave(request, Step::Dropped);
        }
        if request.worker {
            return self.work(request, now, rng);
        }
        self.queue(request, index, now)
    }

    fn queue(&mut self, request: &mut Request, index: usize, now: Duration) -> Step {
        request.place = Place::Queued;
        self.queue.push_back((index, now));
        Step::Queued
    }

    /// A worker has it.
    fn begin(&mut self, request: &mut Request, now: Duration, rng: &mut ChaCha8Rng) -> Step {
        if let Some(lasts) = self.hangs(request, When::Before)
            && self.made.holds == Holds::Worker
        {
            request.place = Place::Stood;
            return Step::Until(now + lasts);
        }
        self.work(request, now, rng)
    }

    fn work(&mut self, request: &mut Request, now: Duration, rng: &mut ChaCha8Rng) -> Step {
        if self.is_lost(request, When::Before, rng) {
            return self.leave(request, Step::Lost);
        }
        if request.kind != Kind::Confirm {
            request.place = Place::Working;
            return Step::Until(now + self.made.work / 10);
        }
        if self.made.keys {
            match self.keys.get(&request.client) {
                // The first result again, or a refusal: either way nothing is worked on.
                Some(Key::Booked) => return self.leave(request, Step::Answered),
                Some(Key::InProgress) => return self.leave(request, Step::Lost),
                None => {}
            }
            self.keys.insert(request.client, Key::InProgress);
        }
        request.first = true;
        request.place = Place::Working;
        Step::Until(now + self.made.work)
    }

    fn book(&mut self, request: &mut Request, now: Duration, rng: &mut ChaCha8Rng) -> Step {
        request.place = Place::Done;
        if !request.first {
            return Step::On;
        }
        if !request.listened_to && !self.made.works_on {
            self.keys.remove(&request.client);
            return self.leave(request, Step::Dropped);
        }
        *self.charges.entry(request.client).or_default() += 1;
        self.keys.insert(request.client, Key::Booked);
        if self.is_lost(request, When::After, rng) {
            return self.leave(request, Step::Lost);
        }
        match self.hangs(request, When::After) {
            Some(lasts) => {
                if self.made.holds == Holds::Connection {
                    self.free(request);
                }
                Step::Until(now + lasts)
            }
            None => Step::On,
        }
    }

    fn is_lost(&self, request: &Request, when: When, rng: &mut ChaCha8Rng) -> bool {
        let loss = self.made.loss.filter(|loss| loss.1 == when);
        request.kind == Kind::Confirm && loss.is_some_and(|(share, _)| rng.random_bool(share))
    }

    fn free(&mut self, request: &mut Request) {
        self.busy -= usize::from(std::mem::take(&mut request.worker));
    }

    fn leave(&mut self, request: &mut Request, how: Step) -> Step {
        self.free(request);
        request.place = Place::Gone;
        self.held -= 1;
        how
    }
}
