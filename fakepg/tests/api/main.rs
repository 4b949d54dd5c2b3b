//! The gateway over real sockets.

mod support;

mod cancel;
mod toss;
