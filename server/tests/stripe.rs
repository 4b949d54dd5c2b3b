//! The Stripe adapter over real sockets: against scripted peers that answer every row, and against the fake gateway.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail their test by panicking"
)]

#[path = "stripe/bench.rs"]
mod bench;
#[path = "stripe/broken_wire.rs"]
mod broken_wire;
#[path = "stripe/capture.rs"]
mod capture;
#[path = "stripe/close.rs"]
mod close;
#[path = "stripe/fake.rs"]
mod fake;
#[path = "support/peer.rs"]
mod peer;
#[path = "stripe/refund.rs"]
mod refund;
#[path = "stripe/rows.rs"]
mod rows;
#[path = "stripe/session.rs"]
mod session;
