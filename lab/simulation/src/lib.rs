//! The whole system in one thread under virtual time, from one seed: the production pages' machine, the production steps
//! of the server, recovery and inbox, over a store, a gateway and a network in memory that break in every way they can.
//!
//! What is true is what the gateway's ledger says (`ledger`), which shares no code with the crate `payment`. A run has two
//! phases: a storm, then calm weather in which everything must come to its end. A run that does not is a failure.

mod bank;
mod bug;
mod campaign;
mod desk;
mod fault;
mod gateway;
mod hooks;
mod ledger;
mod network;
mod nodes;
mod plan;
mod run;
pub mod scene;
mod shopper;
mod store;
mod tab;
mod tables;
mod watch;
mod world;

pub use bug::Bug;
pub use campaign::{Options, Report, command, run_seeds};
pub use fault::{Counts, Fault};
pub use run::{Figures, Outcome, run};
pub use store::store;
