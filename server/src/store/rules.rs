//! What every store decides alike, whatever keeps its rows: functions of what is stored and what is asked or heard.
//!
//! The databases and the simulation's tables call these, so that what is simulated is what runs.

pub mod claims;
pub mod deposits;
pub mod hints;
pub mod records;
pub mod refunds;
pub mod stock;
