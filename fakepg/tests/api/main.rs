//! The gateway over real sockets.

mod support;

mod cancel;
mod control;
mod faults;
mod idempotency;
mod kakao;
mod kakaopay;
mod kakaopay_faults;
mod kakaopay_readings;
mod kakaopay_window;
mod lifecycle;
mod timing;
mod toss;
mod webhooks;
mod window;
