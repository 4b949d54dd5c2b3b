//! The published measurements A to E in virtual time, under the authors' conditions, judged by their figures.

mod busy_workers;
mod cap_sweep;
pub(super) mod departed;
mod page_shoppers;
mod page_times;
mod read_timeout;
pub(super) mod resend_budget;
mod stampede;
mod thread_pool;

use super::Virtual;

/// Every one.
pub(super) const ALL: &[Virtual] = &[
    departed::EXPERIMENT,
    page_shoppers::EXPERIMENT,
    page_times::EXPERIMENT,
    resend_budget::EXPERIMENT,
    busy_workers::EXPERIMENT,
    cap_sweep::EXPERIMENT,
    thread_pool::EXPERIMENT,
    stampede::EXPERIMENT,
    read_timeout::EXPERIMENT,
];
