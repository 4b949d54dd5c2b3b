//! The circuit of one gateway at work: the shared machine behind a lock, its switch, its metrics and its log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use metrics::{counter, gauge};
use payment::attempt::Finding;
use payment::circuit::{Change, Circuit, Ended, Rules, State, Ticket};
use payment::id::GatewayName;
use payment::reach::NotSent;
use serde::Deserialize;

use super::ConfirmOutcome;
use crate::clock::Clock;

/// Whether the circuit acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitMode {
    /// An open circuit refuses confirms.
    On,
    /// Nothing is looked at.
    Off,
    /// It opens and closes, logs and counts what it would refuse, and refuses nothing.
    DryRun,
}

/// The circuit of one gateway.
#[derive(Debug)]
pub struct Breaker {
    gateway: GatewayName,
    mode: CircuitMode,
    clock: Clock,
    circuit: Mutex<Circuit>,
}

/// The right to make one send. Dropped without [`Pass::end`] it counts as a send that was not made.
#[must_use]
#[derive(Debug)]
pub struct Pass {
    breaker: Arc<Breaker>,
    /// `None` when the circuit does not follow this send.
    ticket: Option<Ticket>,
}

impl Breaker {
    /// A closed circuit.
    #[must_use]
    pub fn new(gateway: GatewayName, mode: CircuitMode, clock: Clock) -> Self {
        let breaker = Self {
            gateway,
            mode,
            clock,
            circuit: Mutex::new(Circuit::new(Rules::DEFAULT)),
        };
        breaker.look();
        breaker
    }

    /// Asks to make a send now; `None` at once when the circuit is open.
    pub fn try_pass(self: &Arc<Self>) -> Option<Pass> {
        let pass = |ticket| Pass {
            breaker: Arc::clone(self),
            ticket,
        };
        if self.mode == CircuitMode::Off {
            return Some(pass(None));
        }
        let ticket = {
            let mut circuit = self.lock();
            let ticket = circuit.admit(self.clock.now());
            self.tell(&mut circuit);
            ticket
        };
        if ticket.is_none() && self.mode == CircuitMode::DryRun {
            counter!("circuit_would_refuse_total", "gateway" => self.gateway.to_string())
                .increment(1);
            return Some(pass(None));
        }
        ticket.map(|ticket| pass(Some(ticket)))
    }

    /// Looks at the clock alone, so that state and figures move without traffic.
    pub fn look(&self) {
        let mut circuit = self.lock();
        let now = self.clock.now();
        if self.mode != CircuitMode::Off {
            circuit.look(now);
        }
        self.tell(&mut circuit);
        let sample = circuit.sample(now);
        drop(circuit);
        let label = || self.gateway.to_string();
        gauge!("circuit_calls", "gateway" => label()).set(f64::from(sample.calls));
        gauge!("circuit_bad_calls", "gateway" => label()).set(f64::from(sample.bad));
    }

    /// Its state's stable name.
    #[must_use]
    pub fn state_name(&self) -> &'static str {
        match self.lock().state() {
            State::Closed => "closed",
            State::HalfOpen => "half_open",
            State::Open => "open",
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, ticket: Ticket, ended: Ended) {
        let mut circuit = self.lock();
        circuit.end(ticket, ended, self.clock.now());
        self.tell(&mut circuit);
    }

    /// Logs and counts what changed; called under the lock, so that changes are told in their order.
    fn tell(&self, circuit: &mut Circuit) {
        let state = match circuit.state() {
            State::Closed => 0.0,
            State::HalfOpen => 1.0,
            State::Open => 2.0,
        };
        gauge!("circuit_state", "gateway" => self.gateway.to_string()).set(state);
        let dry_run = self.mode == CircuitMode::DryRun;
        for change in circuit.take_changes() {
            match change {
                Change::Opened(why) => {
                    let gateway = self.gateway.to_string();
                    counter!("circuit_opened_total", "gateway" => gateway, "reason" => why.label())
                        .increment(1);
                    tracing::warn!(gateway = %self.gateway, reason = why.label(), dry_run,
                        "the circuit opened: no confirm is sent");
                }
                Change::Probing => {
                    tracing::info!(gateway = %self.gateway, dry_run, "the circuit lets probes through");
                }
                Change::Closed => {
                    tracing::info!(gateway = %self.gateway, dry_run, "the circuit closed");
                }
            }
        }
    }
}

impl Pass {
    /// Tells what became of the send.
    pub fn end(mut self, outcome: &ConfirmOutcome) {
        if let Some(ticket) = self.ticket.take() {
            self.breaker.end(ticket, ended(outcome));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.breaker.end(ticket, Ended::NotMade);
        }
    }
}

/// What an outcome says about the gateway's health: a decline says nothing against it, and our own refusals say nothing.
const fn ended(outcome: &ConfirmOutcome) -> Ended {
    match outcome {
        ConfirmOutcome::NotSent(NotSent::Connect) => Ended::NotConnected,
        ConfirmOutcome::NotSent(NotSent::Cap | NotSent::Circuit | NotSent::Deadline) => {
            Ended::NotMade
        }
        ConfirmOutcome::Found(Finding::Declined(_) | Finding::Lapsed, _) => Ended::Declined,
        ConfirmOutcome::Found(..) | ConfirmOutcome::Refused(_) => Ended::Answered,
        ConfirmOutcome::Lost(..) => Ended::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use payment::reach::Lost;

    use super::*;
    use crate::gateway::Told;

    fn breaker(mode: CircuitMode) -> Arc<Breaker> {
        let gateway = GatewayName::parse("toss").unwrap();
        Arc::new(Breaker::new(gateway, mode, Clock::new()))
    }

    fn lose_ten(breaker: &Arc<Breaker>) {
        let passes: Vec<_> = (0..10).filter_map(|_| breaker.try_pass()).collect();
        for pass in passes {
            pass.end(&ConfirmOutcome::Lost(Lost::Reset, Told::default()));
        }
    }

    #[test]
    fn an_open_circuit_refuses_a_dry_run_refuses_nothing_and_off_does_not_look() {
        for (mode, refuses, opens) in [
            (CircuitMode::On, true, true),
            (CircuitMode::DryRun, false, true),
            (CircuitMode::Off, false, false),
        ] {
            let breaker = breaker(mode);
            lose_ten(&breaker);
            assert_eq!(breaker.try_pass().is_none(), refuses, "{mode:?}");
            let open = breaker.lock().state() == State::Open;
            assert_eq!(open, opens, "{mode:?}");
        }
    }

    #[test]
    fn a_pass_that_is_dropped_counts_for_nothing() {
        let breaker = breaker(CircuitMode::On);
        for _ in 0..100 {
            drop(breaker.try_pass());
        }
        lose_ten(&breaker);
        assert!(breaker.try_pass().is_none(), "ten of ten were bad");
    }
}
