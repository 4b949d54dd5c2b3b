//! The payment state machines.
