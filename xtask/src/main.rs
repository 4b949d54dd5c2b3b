//! The project's own commands: `cargo xtask dev` to look at the shop, `cargo xtask test` to judge it.

mod build;
mod dev;
mod install;
mod process;
mod repo;
mod test;
mod tidy;
mod tools;
mod transitions;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use repo::Repo;

/// The project's own commands. `dev` and `test` need nothing but Rust and Node.js beforehand.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs what is missing, builds, starts the shop and the fake gateway, prints the addresses
    Dev(dev::DevOptions),
    /// Installs what is missing and builds the programs, the browser's half included
    Build(build::BuildOptions),
    /// Installs what is missing and runs every check and test, the browser's included
    Test(test::TestOptions),
    /// Checks the house rules that no compiler checks
    Tidy,
    /// Writes docs/transitions.md from the payment machines
    Transitions,
    /// Installs what the other commands need, and does nothing else
    Install,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let repo = Repo::find()?;
    match command {
        Command::Dev(options) => dev::dev(&repo, &options),
        Command::Build(options) => {
            install::install(&repo, build::NEEDS)?;
            build::build(&repo, &options)
        }
        Command::Test(options) => test::test(&repo, &options),
        Command::Tidy => tidy::tidy(&repo),
        Command::Transitions => transitions::write(&repo),
        Command::Install => install::install(&repo, tools::ALL),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_commands_and_their_options_do_not_contradict() {
        Cli::command().debug_assert();
    }
}
