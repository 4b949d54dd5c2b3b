//! The `fakepg` program.

fn main() {}
