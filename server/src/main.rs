//! The `jari` program: `serve`, `migrate`, `check-config`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use server::config::{Config, Settings};
use server::store::sqlite::SqliteStore;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// A checkout page and payment server that stays honest when the payment gateway is slow.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves; makes and migrates an SQLite file itself.
    Serve(Given),
    /// Migrates the database and ends.
    Migrate(Given),
    /// Checks the settings, prints those in force without secrets, and ends.
    CheckConfig(Given),
}

#[derive(Debug, clap::Args)]
struct Given {
    /// A TOML file with settings by their flags' names; flags and environment outrank it
    #[arg(long, env = "JARI_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Given {
    fn check(self) -> anyhow::Result<Config> {
        let file = match &self.config {
            None => Settings::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("reading {}", path.display()))?;
                toml::from_str(&text).map_err(|error| {
                    // Its full text would repeat the line, and with it perhaps a secret.
                    anyhow::anyhow!("reading {}: {}", path.display(), error.message())
                })?
            }
        };
        Ok(Config::check(self.settings.or(file))?)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env("JARI_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    // Two TLS libraries' choices must not meet at the first handshake.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("a TLS provider is installed already"))?;
    match Cli::parse().command {
        Command::Serve(given) => serve(given.check()?).await,
        Command::Migrate(given) => {
            let config = given.check()?;
            SqliteStore::open(&config.database_url, config.times.database_wait).await?;
            Ok(())
        }
        Command::CheckConfig(given) => {
            print_config(&given.check()?);
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "printing is what the command is for")]
fn print_config(config: &Config) {
    println!("{config:#?}");
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let metrics = server::metrics::install().context("installing the metrics")?;
    let stop = CancellationToken::new();
    tokio::spawn(wait_for_signal(stop.clone()));
    server::serve::run(config, Some(metrics), stop).await
}

/// The first signal drains; a second one ends at once and leaves the rest to the next start.
async fn wait_for_signal(stop: CancellationToken) {
    signal().await;
    tracing::info!("stopping: no new payments, sent ones are finished");
    stop.cancel();
    signal().await;
    tracing::warn!("stopped at once");
    std::process::exit(130);
}

async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
