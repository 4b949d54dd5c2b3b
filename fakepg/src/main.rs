//! The `fakepg` program: a gateway until Ctrl-C or SIGTERM.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use fakepg::scenario::Scenario;
use fakepg::{Config, spawn};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// A payment gateway for tests and labs: speaks Toss Payments' wire and breaks on command.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Where the wire, the payment window and the control API are served.
    #[arg(long, default_value = "127.0.0.1:3900")]
    addr: SocketAddr,

    /// Where the control API is served too; with it, `"up": false` closes the main socket, so
    /// that connecting is refused.
    #[arg(long)]
    control_addr: Option<SocketAddr>,

    /// Webhooks go to <URL>/webhooks/<gateway>; none are sent without.
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,

    /// The merchant's secret key.
    #[arg(long, default_value = "test_sk_fake")]
    secret_key: String,

    /// Seeds all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The scenario at the start, as `PUT /_control/scenario` takes it.
    #[arg(long, value_name = "FILE.json")]
    scenario: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let options = Options::parse();
    let scenario = match &options.scenario {
        None => Scenario::default(),
        Some(path) => {
            let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
            Scenario::from_json(&text)
                .map_err(anyhow::Error::msg)
                .with_context(|| format!("read the scenario in {}", path.display()))?
        }
    };
    let handle = spawn(Config {
        addr: options.addr,
        control_addr: options.control_addr,
        webhook_url: options.webhook_url,
        secret_key: options.secret_key,
        seed: options.seed,
        scenario,
    })
    .await?;
    println!("fakepg listens on {}", handle.url());

    let mut terminated = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("listen for Ctrl-C")?,
        _ = terminated.recv() => {}
    }
    handle.shutdown().await;
    Ok(())
}
