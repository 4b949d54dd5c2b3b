//! `jari ask`: has the gateway asked about a payment now.

use std::process::ExitCode;

use super::Desk;
use super::output::{attempt, line};

/// About which one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An attempt's number, or an order id as the shop or the gateway calls it
    #[arg(value_name = "ATTEMPT|ORDER")]
    payment: String,
}

/// Makes the attempt due; a running server asks within about a second.
///
/// # Errors
/// When there is no such payment, or the database cannot be written.
pub async fn run(desk: &Desk, args: &Args) -> anyhow::Result<ExitCode> {
    let record = desk.find(&args.payment).await?;
    if record.payment_key.is_none() {
        anyhow::bail!("nothing was ever sent for {}", attempt(&record));
    }
    desk.store
        .hint(record.id, desk.clock.epoch(), false)
        .await?;
    line(&format!(
        "{} is asked about as soon as a server runs",
        attempt(&record)
    ));
    Ok(ExitCode::SUCCESS)
}
