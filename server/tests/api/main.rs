//! The real `jari` program and the fake gateway over real TCP: what a client, a shopper and the money may see.

mod answers;
mod attempts;
mod confirm;
mod crash;
mod input;
mod load;
mod nodes;
mod ops;
mod pages;
mod protection;
mod shop;
mod webhooks;
