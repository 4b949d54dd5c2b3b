//! The real `jari` program and the fake gateway over real TCP: what a client, a shopper and the money may see.

mod answers;
mod attempts;
mod books;
mod confirm;
mod crash;
mod effects;
mod expiry;
mod input;
mod late;
mod load;
mod node;
mod nodes;
mod once;
mod operator;
mod ops;
mod outages;
mod pages;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/postgres_own.rs"]
mod postgres_own;
#[path = "../support/postgres_server.rs"]
mod postgres_server;
mod protection;
mod proxy;
mod reconcile;
mod refunds;
mod several_nodes;
mod shop;
mod webhook_bounds;
mod webhooks;
