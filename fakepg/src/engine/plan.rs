//! What the scenario has in store for one call.

use rand::Rng;

use super::{Gateway, Operation, wires};
use crate::scenario::{BodyFault, Fault, Redirect, Scenario, When};

/// The random draws of one call. Always the same number, in order of arrival, so that one switch
/// more or less leaves what the others do to later calls as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throws {
    loss: f64,
    hang: f64,
    tail: f64,
    decline: f64,
    error: f64,
    delay: [f64; 2],
    tail_delay: [f64; 2],
}

impl Throws {
    pub(super) fn draw(rng: &mut impl Rng) -> Self {
        Self {
            loss: rng.random(),
            hang: rng.random(),
            tail: rng.random(),
            decline: rng.random(),
            error: rng.random(),
            delay: [rng.random(), rng.random()],
            tail_delay: [rng.random(), rng.random()],
        }
    }
}

/// The faults which strike one call, fixed when its work begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) loss: Option<When>,
    pub(super) redirect: Option<Redirect>,
    /// Delay, slow tail and a hang before the booking.
    pub(super) work_ms: u64,
    /// A hang after the booking.
    pub(super) hold_ms: u64,
    pub(super) decline: Option<String>,
    pub(super) error: Option<Fault>,
    pub(super) body: Option<BodyFault>,
}

impl Plan {
    pub(super) fn new(
        scenario: &Scenario,
        gateway: Gateway,
        operation: Operation,
        throws: &Throws,
    ) -> Self {
        if !scenario.strikes(gateway, operation) {
            return Self::default();
        }
        let loss = scenario.loss.filter(|loss| loss.ratio.hits(throws.loss));
        let tail = scenario
            .slow_tail
            .filter(|tail| tail.ratio.hits(throws.tail));
        let hang = scenario.hang.filter(|hang| hang.ratio.hits(throws.hang));
        let decline = scenario
            .decline
            .as_ref()
            .filter(|d| d.ratio.hits(throws.decline));
        let error = scenario
            .error
            .as_ref()
            .filter(|error| error.ratio.hits(throws.error));
        let hang_ms = |side| {
            hang.filter(|hang| hang.when == side)
                .map_or(0, |hang| hang.ms)
        };
        Self {
            loss: loss.map(|loss| loss.when),
            redirect: scenario.redirect.clone(),
            work_ms: scenario
                .delay_ms
                .draw(throws.delay)
                .saturating_add(tail.map_or(0, |tail| tail.delay_ms.draw(throws.tail_delay)))
                .saturating_add(hang_ms(When::Before)),
            hold_ms: hang_ms(When::After),
            decline: decline.and_then(|_| wires::decline(gateway, scenario)),
            error: error.cloned(),
            // The window's answer is a page of its own, with no JSON to spoil.
            body: scenario.body.filter(|_| operation != Operation::Window),
        }
    }
}
