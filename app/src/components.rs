//! The parts of pages, one a file.

pub mod art;
pub mod asleep;
pub mod checkout_island;
pub mod deposit;
pub mod layout;
pub mod live_order;
pub mod mark;
pub mod panel;
pub mod refunds;
pub mod stage;
pub mod status;
pub mod steps;
pub mod summary;
pub mod timeline;
