//! The Toss Payments adapter over real sockets: against the fake gateway, and against peers that break mid-call.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail their test by panicking"
)]

#[path = "toss/bench.rs"]
mod bench;
#[path = "toss/broken_wire.rs"]
mod broken_wire;
#[path = "toss/counted.rs"]
mod counted;
#[path = "toss/fake.rs"]
mod fake;
#[path = "toss/measured.rs"]
mod measured;
#[path = "support/outcome_tables.rs"]
mod outcome_tables;
#[path = "support/peer.rs"]
mod peer;
#[path = "toss/reused.rs"]
mod reused;
#[path = "toss/rows.rs"]
mod rows;
#[path = "toss/uncertain.rs"]
mod uncertain;
