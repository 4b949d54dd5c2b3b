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
mod pages;
#[path = "../support/postgres.rs"]
mod postgres;
mod protection;
mod several_nodes;
mod shop;
mod webhooks;
