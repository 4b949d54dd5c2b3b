//! The circuit of one gateway: stops sending confirms to a gateway that does not answer, so that fewer shoppers are left
//! in doubt. Pure: time is an argument, and what is decided is returned.
//!
//! It looks at how long calls have been in flight, not only at how they ended: a gateway that stops must be seen before
//! its calls end. A gateway that takes 5 s or 20 s does not trip it.

use std::collections::{BTreeMap, VecDeque};

use crate::time::Millis;

/// When it opens and closes (spec section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How far back ended calls count, and from which age on a call in flight counts: 30 s.
    pub window: Millis,
    /// How many calls it must have seen before it judges: 10.
    pub least_calls: u32,
    /// At how many bad calls of a hundred it opens: 50.
    pub bad_percent: u32,
    /// How long it stays open before probes: 10 s.
    pub pause: Millis,
    /// How many probes may be in flight at once: 2.
    pub probes: u32,
    /// How many good probes close it: 5.
    pub good_to_close: u32,
}

impl Rules {
    /// The shipped values.
    pub const DEFAULT: Self = Self {
        window: Millis::from_secs(30),
        least_calls: 10,
        bad_percent: 50,
        pause: Millis::from_secs(10),
        probes: 2,
        good_to_close: 5,
    };
}

/// How one admitted call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The gateway answered with a result.
    Answered,
    /// The gateway declined. Says that it answers, and never counts against it.
    Declined,
    /// The result is unknown.
    Unknown,
    /// No connection could be made: nothing was sent. Only as a probe it says something.
    NotConnected,
    /// It was not made after all.
    NotMade,
}

/// Why it opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Most of the bad calls were in flight for longer than the window.
    Slow,
    /// Most of the bad calls ended unknown.
    Unknown,
    /// A probe was bad.
    Probe,
}

impl Why {
    /// The label in metrics and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Unknown => "unknown",
            Self::Probe => "probe",
        }
    }
}

/// Its state, as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Confirms are sent.
    Closed,
    /// A few confirms are sent to see whether the gateway answers.
    HalfOpen,
    /// No confirm is sent.
    Open,
}

/// A change of state, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It opened.
    Opened(Why),
    /// Probes may be sent.
    Probing,
    /// It closed.
    Closed,
}

/// An admitted call; to be given to [`Circuit::end`].
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

#[derive(Debug, Clone, Copy)]
struct Call {
    begun: Millis,
    /// Calls of an earlier period say nothing about this one.
    period: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    Open { until: Millis },
    HalfOpen { good: u32 },
}

/// The calls that are judged at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// How many.
    pub calls: u32,
    /// How many of them ended unknown or late.
    pub bad: u32,
    /// How many of them are in flight for longer than the window; bad as well.
    pub overdue: u32,
}

/// The circuit.
#[derive(Debug)]
pub struct Circuit {
    rules: Rules,
    phase: Phase,
    period: u32,
    next: u64,
    in_flight: BTreeMap<u64, Call>,
    /// When counted calls of this period ended, and whether they were bad.
    ended: VecDeque<(Millis, bool)>,
    changes: Vec<Change>,
}

impl Circuit {
    /// A closed circuit.
    #[must_use]
    pub const fn new(rules: Rules) -> Self {
        Self {
            rules,
            phase: Phase::Closed,
            period: 0,
            next: 0,
            in_flight: BTreeMap::new(),
            ended: VecDeque::new(),
            changes: Vec::new(),
        }
    }

    /// Asks to send a confirm now; `None` is a refusal.
    #[must_use]
    pub fn admit(&mut self, now: Millis) -> Option<Ticket> {
        self.look(now);
        let admitted = match self.phase {
            Phase::Closed => true,
            Phase::Open { .. } => false,
            Phase::HalfOpen { .. } => self.probes_in_flight() < self.rules.probes,
        };
        admitted.then(|| {
            let id = self.next;
            self.next += 1;
            let call = Call {
                begun: now,
                period: self.period,
            };
            self.in_flight.insert(id, call);
            Ticket(id)
        })
    }

    /// Tells how an admitted call ended.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a ticket is used up: it must not end twice"
    )]
    pub fn end(&mut self, ticket: Ticket, ended: Ended, now: Millis) {
        // Before it is taken out: an overdue probe must be seen as that.
        self.look(now);
        let Some(call) = self.in_flight.remove(&ticket.0) else {
            return;
        };
        if call.period != self.period || ended == Ended::NotMade {
            return;
        }
        let late = now.less(call.begun) > self.rules.window;
        match self.phase {
            Phase::Closed => {
                if matches!(ended, Ended::Answered | Ended::Unknown) {
                    self.ended.push_back((now, late || ended == Ended::Unknown));
                    self.look(now);
                }
            }
            Phase::HalfOpen { good } => {
                let answered = matches!(ended, Ended::Answered | Ended::Declined);
                if late || !answered {
                    self.open(Why::Probe, now);
                } else if good + 1 >= self.rules.good_to_close {
                    self.turn(Phase::Closed, Change::Closed);
                } else {
                    self.phase = Phase::HalfOpen { good: good + 1 };
                }
            }
            Phase::Open { .. } => {}
        }
    }

    /// Looks at the clock alone: calls become overdue and pauses end without anybody calling.
    pub fn look(&mut self, now: Millis) {
        match self.phase {
            Phase::Closed => {
                let sample = self.sample(now);
                let bad = u64::from(sample.bad) * 100;
                if sample.calls >= self.rules.least_calls
                    && bad >= u64::from(sample.calls) * u64::from(self.rules.bad_percent)
                {
                    let slow = sample.overdue * 2 > sample.bad;
                    let why = if slow { Why::Slow } else { Why::Unknown };
                    self.open(why, now);
                }
            }
            Phase::Open { until } => {
                if now >= until {
                    self.turn(Phase::HalfOpen { good: 0 }, Change::Probing);
                }
            }
            Phase::HalfOpen { .. } => {
                if let Some(begun) = self.overdue(now).min() {
                    // As if it had been seen at the moment when it became overdue.
                    self.open(Why::Probe, begun.plus(self.rules.window));
                    self.look(now);
                }
            }
        }
    }

    /// Its state at the last look.
    #[must_use]
    pub const fn state(&self) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
        }
    }

    /// The calls that are judged at `now`.
    pub fn sample(&mut self, now: Millis) -> Sample {
        let window = self.rules.window;
        while let Some((at, _)) = self.ended.front()
            && now.less(*at) > window
        {
            self.ended.pop_front();
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let overdue = count(self.overdue(now).count());
        let bad = count(self.ended.iter().filter(|(_, bad)| *bad).count());
        Sample {
            calls: count(self.ended.len()).saturating_add(overdue),
            bad: bad.saturating_add(overdue),
            overdue,
        }
    }

    /// The changes of state since they were taken last.
    #[must_use]
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// When this period's calls that are in flight for longer than the window were begun.
    fn overdue(&self, now: Millis) -> impl Iterator<Item = Millis> {
        let (period, window) = (self.period, self.rules.window);
        self.in_flight
            .values()
            .filter(move |call| call.period == period && now.less(call.begun) > window)
            .map(|call| call.begun)
    }

    fn probes_in_flight(&self) -> u32 {
        let probes = self
            .in_flight
            .values()
            .filter(|call| call.period == self.period);
        u32::try_from(probes.count()).unwrap_or(u32::MAX)
    }

    fn open(&mut self, why: Why, now: Millis) {
        let until = now.plus(self.rules.pause);
        self.turn(Phase::Open { until }, Change::Opened(why));
    }

    /// Begins a new period: what was seen in the last one is not counted twice.
    fn turn(&mut self, phase: Phase, change: Change) {
        self.phase = phase;
        self.period = self.period.wrapping_add(1);
        self.ended.clear();
        self.changes.push(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Millis {
        Millis::from_secs(secs)
    }

    fn circuit() -> Circuit {
        Circuit::new(Rules::DEFAULT)
    }

    /// Sends `n` calls at `begun` that end as `ended` at `now`.
    fn calls(circuit: &mut Circuit, n: u32, ended: Ended, begun: Millis, now: Millis) {
        let tickets: Vec<_> = (0..n).map(|_| circuit.admit(begun).unwrap()).collect();
        for ticket in tickets {
            circuit.end(ticket, ended, now);
        }
    }

    fn open_circuit() -> Circuit {
        let mut circuit = circuit();
        calls(&mut circuit, 10, Ended::Unknown, at(0), at(1));
        assert_eq!(circuit.state(), State::Open);
        circuit
    }

    #[test]
    fn half_of_ten_calls_unknown_opens_it_and_nine_do_not() {
        let mut circuit = circuit();
        calls(&mut circuit, 5, Ended::Answered, at(0), at(1));
        calls(&mut circuit, 4, Ended::Unknown, at(0), at(1));
        assert_eq!(circuit.state(), State::Closed);
        calls(&mut circuit, 1, Ended::Unknown, at(1), at(2));
        assert_eq!(circuit.state(), State::Open);
        assert_eq!(circuit.take_changes(), [Change::Opened(Why::Unknown)]);
        assert!(circuit.admit(at(11)).is_none());
    }

    #[test]
    fn a_gateway_that_stops_is_seen_before_its_calls_end() {
        let mut circuit = circuit();
        let waiting: Vec<_> = (0..40).map(|_| circuit.admit(at(100)).unwrap()).collect();
        assert!(circuit.admit(at(130)).is_some(), "30 s are not over 30 s");
        assert!(circuit.admit(Millis::new(130_001)).is_none());
        assert_eq!(circuit.take_changes(), [Change::Opened(Why::Slow)]);
        drop(waiting);
    }

    #[test]
    fn slow_answers_of_5_and_20_seconds_declines_and_refusals_do_not_trip_it() {
        for delay in [5, 20, 30] {
            let mut circuit = circuit();
            for second in 0..120 {
                calls(
                    &mut circuit,
                    3,
                    Ended::Answered,
                    at(second),
                    at(second + delay),
                );
            }
            assert_eq!(circuit.state(), State::Closed, "{delay} s");
        }
        for ended in [Ended::Declined, Ended::NotConnected, Ended::NotMade] {
            let mut circuit = circuit();
            calls(&mut circuit, 100, ended, at(0), at(20));
            assert_eq!(circuit.state(), State::Closed, "{ended:?}");
        }
    }

    #[test]
    fn declines_dilute_nothing() {
        let mut circuit = circuit();
        calls(&mut circuit, 100, Ended::Declined, at(0), at(1));
        calls(&mut circuit, 10, Ended::Unknown, at(1), at(2));
        assert_eq!(circuit.state(), State::Open);
    }

    #[test]
    fn an_answer_after_more_than_thirty_seconds_is_bad() {
        let mut circuit = circuit();
        calls(&mut circuit, 10, Ended::Answered, at(0), at(31));
        assert_eq!(circuit.state(), State::Open);
    }

    #[test]
    fn what_ended_more_than_thirty_seconds_ago_is_forgotten() {
        let mut circuit = circuit();
        calls(&mut circuit, 9, Ended::Unknown, at(0), at(1));
        calls(&mut circuit, 1, Ended::Unknown, at(31), at(32));
        assert_eq!(circuit.state(), State::Closed);
    }

    #[test]
    fn after_the_pause_two_probes_at_a_time_and_five_good_ones_close_it() {
        let mut circuit = open_circuit();
        assert!(circuit.admit(Millis::new(10_999)).is_none());
        let first = circuit.admit(at(11)).unwrap();
        let second = circuit.admit(at(11)).unwrap();
        assert!(circuit.admit(at(11)).is_none(), "two at a time");
        assert_eq!(circuit.state(), State::HalfOpen);
        circuit.end(first, Ended::Answered, at(12));
        let third = circuit.admit(at(12)).unwrap();
        for (ticket, ended) in [(second, Ended::Declined), (third, Ended::Answered)] {
            circuit.end(ticket, ended, at(13));
        }
        calls(&mut circuit, 1, Ended::Answered, at(13), at(14));
        assert_eq!(circuit.state(), State::HalfOpen);
        calls(&mut circuit, 1, Ended::Answered, at(14), at(15));
        assert_eq!(circuit.state(), State::Closed);
        assert!((0..100).all(|_| circuit.admit(at(15)).is_some()));
    }

    #[test]
    fn a_bad_probe_opens_it_for_another_pause() {
        for bad in [Ended::Unknown, Ended::NotConnected] {
            let mut circuit = open_circuit();
            calls(&mut circuit, 1, bad, at(11), at(12));
            assert_eq!(circuit.state(), State::Open);
            assert!(circuit.admit(Millis::new(21_999)).is_none());
            assert!(circuit.admit(at(22)).is_some());
        }
    }

    #[test]
    fn a_probe_in_flight_for_over_thirty_seconds_is_bad_before_it_ends() {
        let mut circuit = open_circuit();
        let probe = circuit.admit(at(11)).unwrap();
        assert!(circuit.admit(at(41)).is_some(), "the second probe");
        assert!(circuit.admit(at(42)).is_none());
        assert_eq!(circuit.state(), State::Open);
        // Its late answer says nothing about the next probes.
        circuit.end(probe, Ended::Answered, at(43));
        assert!(circuit.admit(at(50)).is_none());
        assert!(circuit.admit(at(51)).is_some());
    }

    #[test]
    fn calls_from_before_it_opened_cannot_open_it_again() {
        let mut circuit = circuit();
        let old: Vec<_> = (0..40).map(|_| circuit.admit(at(0)).unwrap()).collect();
        circuit.look(at(31));
        assert_eq!(circuit.state(), State::Open);
        for second in 41..46 {
            calls(&mut circuit, 1, Ended::Answered, at(second), at(second));
        }
        assert_eq!(circuit.state(), State::Closed);
        for ticket in old {
            circuit.end(ticket, Ended::Unknown, at(60));
        }
        circuit.look(at(61));
        assert_eq!(circuit.state(), State::Closed);
    }

    #[test]
    fn a_probe_that_was_not_made_makes_room_for_another() {
        let mut circuit = open_circuit();
        let first = circuit.admit(at(11)).unwrap();
        let _second = circuit.admit(at(11)).unwrap();
        circuit.end(first, Ended::NotMade, at(11));
        assert!(circuit.admit(at(11)).is_some());
    }
}
