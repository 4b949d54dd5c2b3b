//! The real `jari` program and the fake gateway over real TCP: what a client, a shopper and the money may see.

mod answers;
mod attempts;
mod beside;
mod books;
mod confirm;
mod console;
mod crash;
mod deposits;
mod effects;
mod expiry;
mod facts;
mod input;
mod kakaopay;
mod late;
mod link;
mod load;
mod matrix;
mod merchant;
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
mod raw;
mod reconcile;
mod refunds;
mod reports;
mod several_nodes;
mod shop;
mod stripe;
mod webhook_bounds;
mod webhooks;
mod window;
