//! The `lab` program: experiments with simulated shoppers against the real server and the fake gateway, judged by the
//! ledger, the metrics and the database.

mod bench;
mod conformance;
mod experiments;
mod harness;
mod keep_alive;
mod load;
mod pace;
mod paper;
mod plan;
mod pollers;
// The tests of the server start PostgreSQL the same way.
#[path = "../../server/tests/support/postgres_own.rs"]
mod postgres_own;
#[path = "../../server/tests/support/postgres_server.rs"]
mod postgres_server;
mod prometheus;
mod raw;
mod report;
mod selftest;
mod shopper;
mod stampede;
mod stats;
mod verdict;
mod virtual_time;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use harness::Lab;

/// Measures the shop with shoppers that are the real checkout page's machine.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Names the experiments and what they ask
    List,
    /// Runs experiments, each with servers and databases of its own
    Run(Run),
    /// An open-loop run: shoppers arrive at a fixed rate, whatever the server does, and behave as the page does
    Load(load::Options),
    /// One page, with tables and plots, of what `lab run` wrote into a folder
    Report(paper::Options),
    /// What is written down about a gateway's wire, asked of a gateway fact by fact
    Conformance(conformance::Options),
    /// The whole system in one thread under virtual time, with faults drawn from seeds
    Simulate(simulation::Options),
    /// Runs that are broken on purpose, each of which must be found out; exits with 0 only if all are
    Selftest(selftest::Options),
    /// How fast the shop is, beside what its machine, web server and database could do at most
    Bench(bench::Options),
    /// Bare axum over a bare table; started by `bench`
    #[command(hide = true)]
    Floor(bench::floor::Options),
    /// Waiting shoppers that poll; started by the experiment `waiting`
    #[command(hide = true)]
    Pollers(pollers::Options),
}

#[derive(Debug, Args)]
struct Run {
    /// Which, by the names of `lab list`; `all` is every one, `published` those that somebody published figures for. What
    /// can be asked both ways is asked both ways
    #[arg(required = true)]
    names: Vec<String>,
    /// Shortened: shows that an experiment works, not what it is to show
    #[arg(long)]
    quick: bool,
    /// Only in virtual time: seconds in place of minutes, the logic without the programs
    #[arg(long = "virtual", conflicts_with = "real")]
    virtual_time: bool,
    /// Only the real programs
    #[arg(long)]
    real: bool,
    /// The long set in virtual time: thirty runs of each condition
    #[arg(long)]
    full: bool,
    /// How many shoppers wait in the experiment `waiting` [default: 10000, quick: 500]
    #[arg(long)]
    shoppers: Option<u32>,
    /// Where the reports go
    #[arg(long, default_value = "target/lab")]
    out: PathBuf,
    /// The folder of `jari` and `fakepg` [default: where `lab` is]
    #[arg(long)]
    bin_dir: Option<PathBuf>,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the report is what the program is for")]
async fn main() -> anyhow::Result<ExitCode> {
    // The HTTP client names no TLS provider of its own.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("a TLS provider is installed already"))?;
    match Cli::parse().command {
        Command::Conformance(options) => {
            let (table, well) = conformance::run(&options).await?;
            print!("{table}");
            return Ok(if well {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        Command::List => print!("{}", list()),
        Command::Simulate(options) => {
            // Each run has a runtime of its own, and those cannot be nested.
            let good = tokio::task::spawn_blocking(move || simulation::command(&options)).await??;
            return Ok(if good {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        Command::Report(options) => println!("{}", paper::run(&options)?),
        Command::Run(options) => return run(options).await,
        Command::Selftest(options) => {
            let lab = Lab {
                bin_dir: options.bin_dir.clone().map_or_else(own_folder, Ok)?,
                quick: true,
                shoppers: None,
            };
            let (table, well) = selftest::run(&lab, &options).await?;
            print!("{table}");
            return Ok(if well {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        Command::Load(options) => println!(
            "{}",
            serde_json::to_string_pretty(&load::run(options).await?)?
        ),
        Command::Bench(options) => {
            let (report, well) = bench::run(options).await?;
            println!("{report}");
            return Ok(if well {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        Command::Floor(options) => bench::floor::serve(options).await?,
        Command::Pollers(options) => pollers::run(options).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn own_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("finding the lab's own folder")?;
    let folder = program.parent().context("the lab has no folder")?;
    Ok(folder.to_owned())
}

fn list() -> String {
    let lab = Lab {
        bin_dir: PathBuf::new(),
        quick: false,
        shoppers: None,
    };
    let mut names: Vec<&str> = experiments::ALL.iter().map(|one| one.name).collect();
    names.extend(
        virtual_time::all()
            .map(|one| one.name)
            .filter(|name| experiments::find(name).is_err()),
    );
    let line = |name: &&str| {
        let real = experiments::find(name).ok();
        let played = virtual_time::all().find(|one| one.name == *name);
        let question = real.map(|one| (one.plan)(&lab).question);
        let question = question
            .or_else(|| played.map(|one| (one.plan)(virtual_time::Size { full: true }).question));
        let ways = match (real, played) {
            (Some(_), Some(_)) => "real, virtual",
            (Some(_), None) => "real",
            (None, _) => "virtual",
        };
        format!("{name:<20} {ways:<14} {}\n", question.unwrap_or_default())
    };
    names.iter().map(line).collect()
}

/// The experiments that are asked for: with the real programs, and in virtual time.
type Chosen = (
    Vec<&'static experiments::Experiment>,
    Vec<&'static virtual_time::Virtual>,
);

fn chosen(options: &Run) -> anyhow::Result<Chosen> {
    let (mut real, mut played) = (Vec::new(), Vec::new());
    for name in &options.names {
        let is_meant = |known: &str| match name.as_str() {
            "all" => true,
            "published" => virtual_time::is_published(known),
            name => known == name,
        };
        let found = (
            experiments::ALL.iter().filter(|one| is_meant(one.name)),
            virtual_time::all().filter(|one| is_meant(one.name)),
        );
        let before = real.len() + played.len();
        if !options.virtual_time {
            real.extend(found.0);
        }
        if !options.real {
            played.extend(found.1);
        }
        if real.len() + played.len() == before {
            bail!("there is no such experiment as {name}, or not this way; `lab list` names them");
        }
    }
    Ok((real, played))
}

/// Plays the chosen ones in virtual time; whether everything was as expected.
#[expect(clippy::print_stdout, reason = "the report is what the program is for")]
fn play(
    played: &[&virtual_time::Virtual],
    size: virtual_time::Size,
    out: &std::path::Path,
) -> anyhow::Result<bool> {
    let mut all_well = true;
    for experiment in played {
        let (report, well) = virtual_time::run(experiment, size, out)?;
        println!("{report}");
        all_well &= well;
    }
    Ok(all_well)
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the report is what the program is for"
)]
async fn run(options: Run) -> anyhow::Result<ExitCode> {
    let (chosen, played) = chosen(&options)?;
    let size = virtual_time::Size { full: options.full };
    let out = options.out.clone();
    // Each run has a runtime of its own, and those cannot be nested.
    let mut all_well = tokio::task::spawn_blocking(move || play(&played, size, &out)).await??;
    let lab = Lab {
        bin_dir: options.bin_dir.map_or_else(own_folder, Ok)?,
        quick: options.quick,
        shoppers: options.shoppers,
    };
    for experiment in chosen {
        let ran = tokio::select! {
            ran = experiments::run(experiment, &lab, &options.out) => ran,
            // Dropped where it stands, which takes its programs and its database along.
            () = interrupted() => bail!("interrupted"),
        };
        match ran {
            Ok((report, well)) => {
                println!("{report}");
                all_well &= well;
            }
            // One that could not run does not take the others' reports.
            Err(error) => {
                eprintln!("{error:#}");
                all_well = false;
            }
        }
    }
    Ok(if all_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Ctrl-C or SIGTERM. Where no handler can be set, the signal's default ends the program.
async fn interrupted() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => {}
        Some(()) = terminated.recv() => {}
    }
}
