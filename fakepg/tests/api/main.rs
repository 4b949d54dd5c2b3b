//! The gateway over real sockets.

mod support;

mod cancel;
mod control;
mod deposits;
mod faults;
mod idempotency;
mod lifecycle;
mod timing;
mod toss;
mod uncertain;
mod webhooks;
mod window;
