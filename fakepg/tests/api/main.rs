//! The gateway over real sockets.

mod support;

mod cancel;
mod control;
mod deposits;
mod faults;
mod idempotency;
mod kakao;
mod kakaopay;
mod kakaopay_cancel;
mod kakaopay_control;
mod kakaopay_faults;
mod kakaopay_readings;
mod kakaopay_window;
mod lifecycle;
mod program;
mod readme;
mod timing;
mod toss;
mod uncertain;
mod webhooks;
mod window;
