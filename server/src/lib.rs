//! Jari's server. Reading order: `confirm` (the one path that moves money), `resolve` and `recovery` (how what is unknown
//! becomes known), `inbox` (webhooks), then the ports `store` and `gateway`, and `http` around all of it. `operate`
//! holds the commands that people run beside a server.

pub mod app;
pub mod changes;
pub mod clock;
pub mod config;
pub mod confirm;
pub mod console;
pub mod deliveries;
pub mod effects;
pub mod gateway;
pub mod gauges;
pub mod http;
pub mod inbox;
pub mod lanes;
pub mod merchant;
pub mod metrics;
pub mod nodes;
pub mod operate;
pub mod pressure;
pub mod random;
pub mod recovery;
pub mod refund;
pub mod report;
pub mod resolve;
pub mod serve;
pub mod store;
pub mod strangers;
pub mod window;
