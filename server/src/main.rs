//! The `jari` program.

fn main() {}
