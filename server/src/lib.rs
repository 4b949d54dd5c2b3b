//! Jari's server.

pub mod clock;
pub mod gateway;
pub mod random;
pub mod store;
