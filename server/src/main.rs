//! The `jari` program: `serve`, `migrate`, `check-config`, and operators' commands.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use payment::time::Millis;
use server::config::{Config, Settings};
use server::operate::{self, Desk};
use server::report::{Load, report};
use server::store;
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
    /// Serves; migrates the database itself, and makes an SQLite file.
    Serve(Given),
    /// Migrates the database and ends.
    Migrate(Given),
    /// Checks the settings; prints those in force without secrets, the inequalities between them, and what they mean
    /// under load.
    CheckConfig {
        #[command(flatten)]
        given: Given,
        /// Confirms a second to predict for
        #[arg(long, default_value_t = 50.0)]
        rate: f64,
        /// How long the gateway takes, ms
        #[arg(long, default_value_t = 1_000)]
        delay_ms: u64,
        /// The share of confirms that may be refused, 0 to 1
        #[arg(long, default_value_t = 0.0)]
        target: f64,
    },
    /// Prints every setting as a Markdown table.
    Settings,
    /// Lists the payments that are not final, the oldest first.
    Unresolved {
        #[command(flatten)]
        given: Given,
        #[command(flatten)]
        args: operate::unresolved::Args,
    },
    /// Ends the doubt about a payment by an operator's word, with a reason that is kept for ever.
    Resolve {
        #[command(flatten)]
        given: Given,
        #[command(flatten)]
        args: operate::resolve::Args,
    },
    /// Has the gateway asked about a payment now.
    Ask {
        #[command(flatten)]
        given: Given,
        #[command(flatten)]
        args: operate::ask::Args,
    },
    /// Lists stored webhooks, or has them looked at again.
    Webhooks {
        #[command(flatten)]
        given: Given,
        #[command(subcommand)]
        command: operate::webhooks::Command,
    },
    /// Reads a password from standard input and prints its hash, for `JARI_OPS_PASSWORD_HASH`.
    HashPassword,
    /// Makes, lists and revokes the keys of shops that sell through this checkout.
    Key {
        #[command(flatten)]
        given: Given,
        #[command(subcommand)]
        command: operate::key::Command,
    },
    /// Compares a day's payments with the gateway's books; ends with 0 when they agree, 1 when not, 2 when it could not ask.
    Reconcile {
        #[command(flatten)]
        given: Given,
        #[command(flatten)]
        args: operate::reconcile::Args,
    },
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
    async fn desk(self) -> anyhow::Result<Desk> {
        Desk::open(self.check()?).await
    }

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
async fn main() -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_from_env("JARI_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if std::env::var("JARI_LOG_FORMAT").is_ok_and(|format| format == "json") {
        log.json().init();
    } else {
        log.init();
    }
    // Two TLS libraries' choices must not meet at the first handshake.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("a TLS provider is installed already"))?;
    run(Cli::parse().command).await
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(given) => serve(given.check()?).await?,
        Command::Migrate(given) => migrate(&given.check()?).await?,
        Command::CheckConfig {
            given,
            rate,
            delay_ms,
            target,
        } => {
            let load = Load {
                rate,
                delay: Millis::new(delay_ms),
                target,
            };
            print(&report(&given.check()?, load));
        }
        Command::Unresolved { given, args } => {
            return operate::unresolved::run(&given.desk().await?, &args).await;
        }
        Command::Resolve { given, args } => {
            return operate::resolve::run(&given.desk().await?, &args).await;
        }
        Command::Ask { given, args } => {
            return operate::ask::run(&given.desk().await?, &args).await;
        }
        Command::Webhooks { given, command } => {
            return operate::webhooks::run(&given.desk().await?, &command).await;
        }
        Command::Settings => print(&server::config::table::markdown()),
        Command::HashPassword => {
            let mut password = String::new();
            std::io::stdin().read_line(&mut password)?;
            let password = password.trim_end_matches(['\r', '\n']);
            if password.chars().count() < 12 {
                anyhow::bail!("a password has at least 12 characters");
            }
            print(&format!("{}\n", server::console::hash_password(password)?));
        }
        Command::Key { given, command } => {
            return operate::key::run(&given.desk().await?, &command).await;
        }
        Command::Reconcile { given, args } => {
            let config = given.check()?;
            return Ok(operate::reconcile::run(config, &args).await);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn migrate(config: &Config) -> anyhow::Result<()> {
    let url = &config.database_url;
    let _only = server::serve::only_process(url.expose())?;
    store::open::open(url, config.times.database_wait, false)
        .await
        .with_context(|| format!("migrating {url}"))?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "printing is what the command is for")]
fn print(text: &str) {
    print!("{text}");
}

async fn serve(config: Config) -> anyhow::Result<()> {
    // A connection is a file: the soft limit of many systems is 1,024, the contract's least is 4,096.
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) if files >= 8_192 => {}
        Ok(files) => tracing::warn!(files, "few files may be open: connections will be refused"),
        Err(error) => tracing::warn!(%error, "the limit of open files could not be raised"),
    }
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
