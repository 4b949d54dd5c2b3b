//! Prints the transition document, for `cargo xtask transitions`.

#[expect(clippy::print_stdout, reason = "printing is what it is for")]
fn main() {
    print!("{}", payment::transitions::markdown());
}
