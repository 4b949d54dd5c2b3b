//! The questions that the authors left open: nobody has published these. Expectations come from formulas.

mod deadline_below_cap;
mod departed_share;
mod heavy_tails;
mod known;
mod loss_and_saturation;
mod polls;
mod proxy_queue;
mod rate_limit;
mod regret;
mod reserve_sweep;
mod shared_cap;
mod shed_first;
mod stopped;

use super::Virtual;

/// Every one, in the order of the questions.
pub(super) const ALL: &[Virtual] = &[
    departed_share::EXPERIMENT,
    deadline_below_cap::EXPERIMENT,
    proxy_queue::EXPERIMENT,
    loss_and_saturation::EXPERIMENT,
    reserve_sweep::EXPERIMENT,
    shared_cap::EXPERIMENT,
    heavy_tails::EXPERIMENT,
    shed_first::EXPERIMENT,
    stopped::EXPERIMENT,
    rate_limit::EXPERIMENT,
    known::EXPERIMENT,
    regret::EXPERIMENT,
    polls::EXPERIMENT,
];
