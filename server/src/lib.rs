//! Jari's server.
