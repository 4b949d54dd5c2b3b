//! The gateway over real sockets.

mod support;

mod cancel;
mod control;
mod faults;
mod idempotency;
mod lifecycle;
mod timing;
mod toss;
mod webhooks;
mod window;
