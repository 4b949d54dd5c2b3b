//! The payment state machines shared by browser, server and lab.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no randomness, no async. Time is an
//! argument ([`time::Millis`]), and what should happen is *returned*, never done. That is why the page in the
//! browser, the page without script, the server and the lab's shoppers can all run the same code.
//!
//! The one rule for whoever drives the checkout page machine: call [`checkout::Checkout::handle`], run every
//! command it returns, then sleep until the wake time it named or the next event. A wake that comes late, early
//! or twice changes nothing.
//!
//! ```
//! use payment::checkout::{Checkout, Command, Event};
//! use payment::time::{Millis, PageTimes};
//! use payment::wire::{AttemptView, OrderState};
//! use payment::{attempt::AttemptStatus, order::OrderStatus, reach::Reach, id::OrderId};
//!
//! let order = OrderState {
//!     order_id: OrderId::parse("ord_1").expect("a valid id"),
//!     status: OrderStatus::Pending,
//!     attempt: Some(AttemptView { number: 1, status: AttemptStatus::Ready, reach: Reach::NotSent, reason: None }),
//!     payable: true,
//!     poll_after_ms: 2_000,
//!     deposit: None,
//!     closed_unpaid: false,
//! };
//! let mut page = Checkout::new(PageTimes::DEFAULT, Some(order), None);
//! let commands = page.handle(Event::ConfirmStarted { already: Millis::ZERO }, Millis::new(0));
//! assert!(commands.contains(&Command::SendConfirm { time_left: Millis::from_secs(65) }));
//! assert!(commands.contains(&Command::WakeAt(Millis::from_secs(15))));
//! ```

pub mod attempt;
pub mod backoff;
pub mod checkout;
pub mod circuit;
pub mod deadline;
pub mod id;
pub mod money;
pub mod order;
pub mod predict;
pub mod proof;
pub mod reach;
pub mod refund;
pub mod resend;
pub mod share;
pub mod time;
pub mod transitions;
pub mod view;
pub mod wire;
