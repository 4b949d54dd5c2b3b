//! Many seeds: run, some of them twice, counted and judged.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use crate::bug::Bug;
use crate::fault::{Counts, Fault};
use crate::run::{Outcome, run};
use crate::world::lock;

/// Every this many seeds one is run twice.
const TWICE: u64 = 100;
/// From this many seeds on a fault that never struck is a failure.
const ENOUGH: u64 = 1_000;
/// Failing seeds that are named.
const NAMED: usize = 20;

/// What to simulate.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// How many seeds
    #[arg(long, default_value_t = 1_000)]
    pub seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Only this seed
    #[arg(long)]
    pub seed: Option<u64>,
    /// Prints the timeline of the seed
    #[arg(long, requires = "seed")]
    pub trace: bool,
    /// Threads, each with runs of its own
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Plants a bug, which the run must find
    #[arg(long)]
    pub bug: Option<Bug>,
    /// Faults that are left out, by their names in the report
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<String>,
}

impl Options {
    fn left_out(&self) -> anyhow::Result<Vec<Fault>> {
        let find = |name: &String| {
            let found = Fault::ALL.iter().find(|fault| fault.label() == name);
            found
                .copied()
                .ok_or_else(|| anyhow::anyhow!("there is no fault {name}"))
        };
        self.without.iter().map(find).collect()
    }
}

/// What many seeds came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Seeds run.
    pub seeds: u64,
    /// Real time.
    pub took: Duration,
    /// How often each fault struck.
    pub counts: Counts,
    /// The seeds in which something did not hold, with the first such thing.
    pub failed: Vec<(u64, String)>,
    /// Seeds run twice.
    pub twice: u64,
    /// Confirms, paid orders, unknown attempts.
    pub totals: [u64; 3],
    /// Virtual time, s.
    pub virtual_secs: u64,
    /// The longest drain, ms.
    pub longest_drain: u64,
}

impl Report {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.counts.merge(&outcome.counts);
        let figures = &outcome.figures;
        self.totals[0] += figures.confirms;
        self.totals[1] += figures.paid;
        self.totals[2] += figures.unknown;
        self.virtual_secs += figures.lasted.get() / 1_000;
        self.longest_drain = self.longest_drain.max(figures.drained.get());
        if let Some(first) = outcome.wrong.first() {
            self.failed.push((outcome.seed, first.clone()));
        }
    }

    /// Whether everything held, and every fault struck where there were seeds enough for that.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.failed.is_empty() && (self.seeds < ENOUGH || self.counts.missing().is_empty())
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let per_thousand = self.took.as_secs_f64() * 1_000.0 / self.seeds.max(1) as f64;
        let [confirms, paid, unknown] = self.totals;
        let _ = writeln!(
            text,
            "{} seeds in {:.1} s ({per_thousand:.1} s per 1,000), {} of them twice with equal timelines\n\
             {} h of virtual time, {confirms} confirms sent, {paid} orders paid, {unknown} attempts became unknown, \
             longest drain {} s\nfaults:\n{}",
            self.seeds,
            self.took.as_secs_f64(),
            self.twice,
            self.virtual_secs / 3_600,
            self.longest_drain / 1_000,
            self.counts.table()
        );
        if self.seeds >= ENOUGH && !self.counts.missing().is_empty() {
            let _ = writeln!(text, "NEVER STRUCK: {}", self.counts.missing().join(", "));
        }
        let _ = writeln!(text, "{} seeds failed", self.failed.len());
        for (seed, what) in self.failed.iter().take(NAMED) {
            let _ = writeln!(text, "  seed {seed}: {what}");
        }
        text
    }
}

/// Runs a range of seeds.
#[must_use]
pub fn run_seeds(seeds: Range<u64>, threads: usize, bug: Option<Bug>, without: &[Fault]) -> Report {
    let begun = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    one(seed, bug, without, &report);
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_default();
    report.failed.sort();
    report.took = begun.elapsed();
    report
}

fn one(seed: u64, bug: Option<Bug>, without: &[Fault], report: &Mutex<Report>) {
    let mut outcome = run(seed, bug, false, without);
    let twice = seed.is_multiple_of(TWICE);
    if twice && run(seed, bug, false, without).hash != outcome.hash {
        outcome.wrong.push("two runs of it differ".to_owned());
    }
    let mut report = lock(report);
    report.twice += u64::from(twice);
    report.add(&outcome);
}

/// The command line's part: runs, prints, and says whether all is good.
///
/// # Errors
/// When an option names what there is not.
#[expect(clippy::print_stdout, reason = "the report is what the program is for")]
pub fn command(options: &Options) -> anyhow::Result<bool> {
    let without = options.left_out()?;
    if let Some(seed) = options.seed {
        let outcome = run(seed, options.bug, options.trace, &without);
        for line in &outcome.lines {
            println!("{line}");
        }
        println!(
            "seed {seed}: hash {:016x}, {:?}",
            outcome.hash, outcome.figures
        );
        for what in &outcome.wrong {
            println!("WRONG: {what}");
        }
        return Ok(outcome.wrong.is_empty());
    }
    let seeds = options.from..options.from + options.seeds;
    let report = run_seeds(seeds, options.threads, options.bug, &without);
    println!("{}", report.text());
    if let Some((seed, _)) = report.failed.first() {
        for line in run(*seed, options.bug, true, &without).lines {
            println!("{line}");
        }
    }
    Ok(report.is_good() != options.bug.is_some())
}
