//! `lab bench`: how fast the shop is, as ratios to a floor that is measured in the same run, on both databases.
//!
//! The load's client, the fake gateway, the database and the shop share one machine. Absolute figures are that machine's;
//! the ratios to the floor, which shares it the same way, are the shop's.

mod client;
pub(crate) mod floor;
mod footprint;
mod judge;
mod paid;
mod plan;
mod quick;
mod shop;
mod table;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::harness::Lab;
use crate::harness::site::Engine;
use crate::own_folder;
use crate::plan::{Condition, Findings, is_success};
use crate::report::Report;
use crate::stats::rounded;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Shortened: shows that it works, not how fast anything is
    #[arg(long)]
    quick: bool,
    /// On which database [default: both]
    #[arg(long)]
    database: Option<Database>,
    /// How often everything is measured; the medians are judged [default: 3, quick: 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// Where the report goes
    #[arg(long, default_value = "target/lab")]
    out: PathBuf,
    /// The folder of `jari` and `fakepg` [default: where `lab` is]
    #[arg(long)]
    bin_dir: Option<PathBuf>,
    /// The built pages, for their weight
    #[arg(long, default_value = "target/site")]
    site_root: PathBuf,
}

/// A kind of database, on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    Sqlite,
    Postgres,
}

/// How long and with how many each part is measured.
#[derive(Debug, Clone, Copy)]
struct Size {
    rounds: usize,
    /// Of each loop.
    span: Duration,
    /// Confirms that the gateway holds at once.
    waiting: usize,
    /// Starts of the program.
    starts: usize,
}

/// One run on one database.
struct Bench<'a> {
    lab: &'a Lab,
    size: Size,
    engine: Engine,
    /// The engine's name, with which its conditions and criteria begin.
    name: &'static str,
    site_root: &'a str,
}

/// Both databases, with the names of their conditions.
const ENGINES: [(Engine, Database, &str); 2] = [
    (Engine::Sqlite, Database::Sqlite, "sqlite"),
    (Engine::Postgres, Database::Postgres, "postgres"),
];

/// Measures, writes the report, and gives the table and whether everything was as expected.
pub(crate) async fn run(options: Options) -> anyhow::Result<(String, bool)> {
    let begun = Instant::now();
    let lab = Lab {
        bin_dir: options.bin_dir.map_or_else(own_folder, Ok)?,
        quick: options.quick,
        shoppers: None,
    };
    let size = Size {
        rounds: options.rounds.unwrap_or(lab.pick(3, 1) as usize).max(1),
        span: Duration::from_millis(u64::from(lab.pick(4_000, 700))),
        waiting: lab.pick(1_000, 100) as usize,
        starts: lab.pick(5, 2) as usize,
    };
    let engines: Vec<_> = ENGINES
        .into_iter()
        .filter(|(_, database, _)| options.database.is_none_or(|only| only == *database))
        .collect();
    let names: Vec<_> = engines.iter().map(|(_, _, name)| *name).collect();
    let plan = plan::plan(&names, size);
    let mut report = Report {
        name: "bench",
        quick: lab.quick,
        plan: &plan,
        findings: None,
    };
    // The promise is on disk before anything is measured.
    report.write(&options.out)?;
    let mut findings = Findings::default();
    let site_root = std::path::absolute(&options.site_root)?;
    for (engine, _, name) in engines {
        let bench = Bench {
            lab: &lab,
            size,
            engine,
            name,
            site_root: site_root.to_str().unwrap_or_default(),
        };
        let condition = bench.run(&mut findings).await?;
        findings.add(name, condition);
    }
    judge::answer(&names, &mut findings);
    report.findings = Some(&findings);
    report.write(&options.out)?;
    let well = is_success(&report.judged(), &findings);
    let table = table::text(&names, &report.judged(), &findings);
    let took = rounded(begun.elapsed().as_secs_f64());
    Ok((format!("{table}\nIt took {took} s.\n"), well))
}

impl Bench<'_> {
    async fn run(&self, findings: &mut Findings) -> anyhow::Result<Condition> {
        let mut condition = Condition::default();
        let paid = self.paid(&mut condition).await?;
        judge::paid(self.name, &paid, &mut condition, findings);
        footprint::waiting(self, &mut condition).await?;
        Ok(condition)
    }
}
