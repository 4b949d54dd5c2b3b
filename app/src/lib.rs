//! Jari's pages.

pub mod data;
pub mod text;
