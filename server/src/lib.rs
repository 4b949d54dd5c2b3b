//! Jari's server.

pub mod gateway;
