//! The real `jari` program and the fake gateway over real TCP: what a client, a shopper and the money may see.

mod answers;
mod attempts;
mod books;
mod confirm;
mod crash;
mod input;
mod load;
mod node;
mod nodes;
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
mod several_nodes;
mod shop;
mod webhooks;
