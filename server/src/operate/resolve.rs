//! `jari resolve`: an operator ends a doubt that no gateway ends, with a reason that is kept for ever.

use std::process::ExitCode;

use payment::attempt::{AttemptStatus, Event, LateSuccess, OperatorWord};
use payment::time::Millis;

use super::Desk;
use super::output::{attempt, line, plain};
use crate::clock::EpochMs;
use crate::store::{AttemptRecord, Evidence};

/// The longest name and the longest reason that are kept, in characters.
const NAME_LIMIT: usize = 100;
const REASON_LIMIT: usize = 1_000;

/// What an operator can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Word {
    /// The order's amount was charged: the order is paid
    Charged,
    /// Nothing was charged: the order can be paid again
    NotCharged,
}

/// Which doubt, and how it ends.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An attempt's number in `jari unresolved`, or an order id
    #[arg(value_name = "ATTEMPT|ORDER")]
    payment: String,
    /// What the gateway's desk or the bank statement shows
    #[arg(long = "as", value_enum)]
    word: Word,
    /// Why, for whoever looks at it later
    #[arg(long)]
    reason: String,
    /// Who says so
    #[arg(long)]
    by: String,
    /// Say that it was not charged though the gateway may still charge it
    #[arg(long)]
    early: bool,
}

/// Ends the doubt; 1 when there was none.
///
/// # Errors
/// When there is no such payment, the name or the reason is empty, it is too early, or the database cannot be written.
pub async fn run(desk: &Desk, args: &Args) -> anyhow::Result<ExitCode> {
    let (by, reason) = (
        plain(&args.by, NAME_LIMIT),
        plain(&args.reason, REASON_LIMIT),
    );
    if by.is_empty() || reason.is_empty() {
        anyhow::bail!("--by and --reason must say something");
    }
    let record = desk.find(&args.payment).await?;
    if record.attempt.status != AttemptStatus::Unknown {
        line(&format!(
            "{} is not unknown: nothing is changed",
            attempt(&record)
        ));
        return Ok(ExitCode::FAILURE);
    }
    let now = desk.clock.epoch();
    if args.word == Word::NotCharged && !args.early && !is_over(desk, &record, now) {
        anyhow::bail!(
            "the gateway may still charge {}: wait until its confirm window is over, or say --early",
            attempt(&record)
        );
    }
    let word = match args.word {
        Word::Charged => OperatorWord::Charged,
        Word::NotCharged => OperatorWord::NotCharged,
    };
    let evidence = Evidence {
        told: format!("by {by}: {reason}"),
        ..Evidence::plain("operator", now)
    };
    let recorded = desk.store.record(
        record.id,
        Event::OperatorSaid(word),
        evidence,
        LateSuccess::Cancel,
    );
    let recorded = recorded.await?;
    let told = attempt(&recorded.after);
    if recorded.before.status != AttemptStatus::Unknown {
        line(&format!(
            "{told} became known meanwhile: nothing is changed"
        ));
        return Ok(ExitCode::FAILURE);
    }
    line(&format!("resolved: {told}"));
    Ok(ExitCode::SUCCESS)
}

/// Whether the gateway accepts no confirm of it any more, and a send of it would have ended.
fn is_over(desk: &Desk, record: &AttemptRecord, now: EpochMs) -> bool {
    let times = desk.config.times_of(&record.gateway);
    let sent = [record.claimed_at, record.resent_at].into_iter().flatten();
    // Of a process that died nobody knows when it last sent: at the latest a total wait after its claim.
    let span = times.settling_time().plus(times.total_wait());
    sent.max()
        .is_none_or(|last| now.since(last) >= span.plus(Millis::from_secs(1)))
}
