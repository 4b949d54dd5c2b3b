//! What went wrong for others who run checkouts, tried on this one (`docs/field-reports.md`).

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail their test by panicking"
)]

mod busy_database;
mod caches;
mod cross_site;
mod gateway_words;
mod half_sent;
mod hang_ups;
mod hooks;
mod one_slow_gateway;
mod resent;
mod returns;
mod stock;
mod strangers;
mod times;
