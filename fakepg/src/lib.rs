//! A payment gateway for tests and labs: speaks the wires of Toss Payments, KakaoPay and Stripe, breaks on
//! command, and keeps a ledger of what it really booked. It shares no code with the server it judges.
#![doc = include_str!("../README.md")]

pub mod engine;
mod http;
pub mod idempotency;
pub mod ledger;
mod options;
pub mod scenario;
pub mod scenario_file;
mod serve;
mod webhooks;

pub use options::Options;
pub use serve::{Config, Handle, spawn};
