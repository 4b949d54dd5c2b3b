//! The real `jari` program and the fake gateway over real TCP: what a client, a shopper and the money may see.

mod answers;
mod attempts;
mod beside;
mod books;
mod confirm;
mod crash;
mod input;
mod link;
mod load;
mod matrix;
mod node;
mod nodes;
mod ops;
mod pages;
#[path = "../support/postgres.rs"]
mod postgres;
mod protection;
mod raw;
mod reports;
mod several_nodes;
mod shop;
mod webhooks;
