//! A payment gateway for tests and labs: speaks Toss Payments' wire, breaks on command, and keeps
//! a ledger of what it really booked. It shares no code with the server it judges.
#![doc = include_str!("../README.md")]

pub mod engine;
mod http;
pub mod idempotency;
pub mod ledger;
pub mod scenario;
mod serve;
mod webhooks;

pub use serve::{Config, Handle, spawn};
