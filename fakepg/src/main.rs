//! The `fakepg` program: a gateway until Ctrl-C or SIGTERM.

use anyhow::Context;
use clap::Parser;
use fakepg::{Options, scenario_file, spawn};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let options = Options::parse();
    let handle = spawn(options.config()?).await?;
    println!("fakepg listens on {}", handle.url());

    let mut terminated = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let follow = async {
        match &options.scenario {
            Some(path) => scenario_file::follow(&handle, path).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("listen for Ctrl-C")?,
        _ = terminated.recv() => {}
        () = follow => {}
    }
    handle.shutdown().await;
    Ok(())
}
