//! The KakaoPay adapter over real sockets: against scripted peers that answer every row, and peers that break mid-call.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail their test by panicking"
)]

#[path = "kakaopay/approve.rs"]
mod approve;
#[path = "kakaopay/bench.rs"]
mod bench;
#[path = "kakaopay/broken_wire.rs"]
mod broken_wire;
#[path = "kakaopay/cancel.rs"]
mod cancel;
#[path = "kakaopay/counted.rs"]
mod counted;
#[path = "kakaopay/fake.rs"]
mod fake;
#[path = "kakaopay/order.rs"]
mod order;
#[path = "support/outcome_tables.rs"]
mod outcome_tables;
#[path = "support/peer.rs"]
mod peer;
#[path = "kakaopay/ready.rs"]
mod ready;
#[path = "kakaopay/rows.rs"]
mod rows;
