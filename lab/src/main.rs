//! The `lab` program: load of simulated shoppers against a running server and fake gateway, counted by the ledger.

mod load;
mod shopper;

use clap::{Parser, Subcommand};

/// Measures a running shop with shoppers that are the real checkout page's machine.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// An open-loop run: shoppers arrive at a fixed rate, whatever the server does, and behave as the page does
    Load(load::Options),
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the report is what the program is for")]
async fn main() -> anyhow::Result<()> {
    // The HTTP client names no TLS provider of its own.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("a TLS provider is installed already"))?;
    match Cli::parse().command {
        Command::Load(options) => println!(
            "{}",
            serde_json::to_string_pretty(&load::run(options).await?)?
        ),
    }
    Ok(())
}
