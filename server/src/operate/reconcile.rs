//! `jari reconcile`: the books held against the gateway's, for a day. It asks and reads; it changes nothing.
//!
//! What differs while a payment is on its way is looked at again before it is called a break, so it may run beside a
//! server under load.

mod books;
mod judge;
mod orders;

use std::process::ExitCode;

use anyhow::Context as _;
use jiff::ToSpan as _;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::Desk;
use super::output::line;
use super::zone::Zone;
use crate::clock::EpochMs;
use crate::config::Config;
use judge::Break;
use orders::Asked;

/// The exit code when something differs.
const BROKEN: u8 = 1;
/// The exit code when somebody could not be asked, so that nothing is proven.
const UNASKED: u8 = 2;

/// What to compare.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The day on which the payments were claimed [default: yesterday]
    #[arg(long, value_name = "YYYY-MM-DD", conflicts_with = "all")]
    day: Option<Date>,
    /// All payments there are
    #[arg(long)]
    all: bool,
    /// As a JSON object
    #[arg(long)]
    json: bool,
    /// Whose day it is
    #[arg(long, env = "JARI_ZONE", default_value = "Asia/Seoul")]
    zone: Zone,
    /// Most questions to the gateway at once
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    concurrency: u32,
    /// Most questions to the gateway a second
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    per_second: u32,
}

/// What a comparison came to.
#[derive(Debug, Default)]
struct Outcome {
    asked: Asked,
    breaks: Vec<Break>,
}

impl Outcome {
    /// A break is certain, whoever else could not be asked; that all is well is certain only when everybody was.
    fn code(&self) -> u8 {
        if !self.breaks.is_empty() {
            BROKEN
        } else if self.asked.unasked > 0 {
            UNASKED
        } else {
            0
        }
    }
}

/// Compares and prints: 0 when the books agree, 1 when not, 2 when it could not find out.
pub async fn run(config: Config, args: &Args) -> ExitCode {
    match compare(config, args).await {
        Ok(outcome) => {
            print(&outcome, args);
            ExitCode::from(outcome.code())
        }
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "could not compare");
            ExitCode::from(UNASKED)
        }
    }
}

async fn compare(config: Config, args: &Args) -> anyhow::Result<Outcome> {
    let desk = Desk::open(config).await?;
    let span = span(&desk, args).context("reading the day")?;
    let mut outcome = orders::compare(&desk, args, span).await?;
    outcome.breaks.extend(books::stock(&*desk.store).await?);
    Ok(outcome)
}

fn span(desk: &Desk, args: &Args) -> anyhow::Result<(EpochMs, EpochMs)> {
    if args.all {
        return Ok((EpochMs(i64::MIN), EpochMs(i64::MAX)));
    }
    let day = match args.day {
        Some(day) => day,
        None => args.zone.day(desk.clock.epoch())?.checked_sub(1.day())?,
    };
    Ok(args.zone.bounds(day)?)
}

fn print(outcome: &Outcome, args: &Args) {
    let asked = &outcome.asked;
    let verdict = match outcome.code() {
        0 => "clean",
        BROKEN => "breaks",
        _ => "could not ask",
    };
    if args.json {
        let breaks: Vec<Value> = outcome.breaks.iter().map(Break::as_json).collect();
        let told = json!({
            "verdict": verdict,
            "orders": asked.orders,
            "payments": asked.payments,
            "inFlight": asked.in_flight,
            "couldNotAsk": asked.unasked,
            "breaks": breaks,
        });
        line(&format!("{told:#}"));
        return;
    }
    for one in &outcome.breaks {
        line(&one.to_string());
    }
    line(&format!(
        "{verdict}: {} orders, {} payments compared, {} in flight, {} could not be asked about, {} breaks",
        asked.orders,
        asked.payments,
        asked.in_flight,
        asked.unasked,
        outcome.breaks.len()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_clean_while_somebody_could_not_be_asked() {
        let mut outcome = Outcome::default();
        assert_eq!(outcome.code(), 0);
        outcome.asked.unasked = 1;
        assert_eq!(outcome.code(), UNASKED);
        outcome.breaks.push(Break::stock("mug", String::new()));
        assert_eq!(outcome.code(), BROKEN);
    }
}
