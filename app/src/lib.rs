//! Jari's pages.
