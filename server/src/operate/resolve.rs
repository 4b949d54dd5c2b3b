//! `jari resolve`: an operator ends a doubt that no gateway ends, with a reason that is kept for ever.

use std::process::ExitCode;

use payment::attempt::{AttemptStatus, Event, LateSuccess, OperatorWord};
use payment::time::Millis;

use super::Desk;
use super::output::{attempt, line, plain};
use crate::clock::EpochMs;
use crate::store::{AttemptRecord, Evidence, StoreError};

/// The longest name that is kept, in characters.
const NAME_LIMIT: usize = 100;
/// The longest reason that is kept, in characters.
pub const REASON_LIMIT: usize = 1_000;

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
    let saying = Saying {
        word: args.word,
        by,
        reason,
        early: args.early,
    };
    let told = attempt(&record);
    match end_doubt(desk, &record, &saying).await? {
        Ended::NotUnknown => {
            line(&format!("{told} is not unknown: nothing is changed"));
            Ok(ExitCode::FAILURE)
        }
        Ended::TooEarly => {
            anyhow::bail!(
                "the gateway may still charge {told}: wait until its confirm window is over, or say --early"
            )
        }
        Ended::Meanwhile(after) => {
            let told = attempt(&after);
            line(&format!(
                "{told} became known meanwhile: nothing is changed"
            ));
            Ok(ExitCode::FAILURE)
        }
        Ended::Resolved(after) => {
            line(&format!("resolved: {}", attempt(&after)));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What an operator says of a doubt.
#[derive(Debug, Clone)]
pub struct Saying {
    /// How it ends.
    pub word: Word,
    /// Who says so.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Whether "not charged" is said though the gateway may still charge it.
    pub early: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Ended {
    /// The doubt is over.
    Resolved(Box<AttemptRecord>),
    /// There was none: nothing is changed.
    NotUnknown,
    /// It became known just before: nothing is changed.
    Meanwhile(Box<AttemptRecord>),
    /// The gateway may still charge it: nothing is changed.
    TooEarly,
}

/// Ends a doubt by an operator's word.
///
/// # Errors
/// [`StoreError`] when the database cannot be written.
pub async fn end_doubt(
    desk: &Desk,
    record: &AttemptRecord,
    saying: &Saying,
) -> Result<Ended, StoreError> {
    if record.attempt.status != AttemptStatus::Unknown {
        return Ok(Ended::NotUnknown);
    }
    let now = desk.clock.epoch();
    if saying.word == Word::NotCharged && !saying.early && !is_over(desk, record, now) {
        return Ok(Ended::TooEarly);
    }
    let word = match saying.word {
        Word::Charged => OperatorWord::Charged,
        Word::NotCharged => OperatorWord::NotCharged,
    };
    let evidence = Evidence {
        told: format!("by {}: {}", saying.by, saying.reason),
        ..Evidence::plain("operator", now)
    };
    let event = Event::OperatorSaid(word);
    let recorded = desk
        .store
        .record(record.id, event, evidence, LateSuccess::Cancel);
    let recorded = recorded.await?;
    Ok(if recorded.before.status == AttemptStatus::Unknown {
        Ended::Resolved(Box::new(recorded.after))
    } else {
        Ended::Meanwhile(Box::new(recorded.after))
    })
}

/// Whether the gateway accepts no confirm of it any more, and a send of it would have ended.
#[must_use]
pub fn is_over(desk: &Desk, record: &AttemptRecord, now: EpochMs) -> bool {
    let times = desk.config.times_of(&record.gateway);
    let sent = [record.claimed_at, record.resent_at].into_iter().flatten();
    // Of a process that died nobody knows when it last sent: at the latest a total wait after its claim.
    let span = times.settling_time().plus(times.total_wait());
    sent.max()
        .is_none_or(|last| now.since(last) >= span.plus(Millis::from_secs(1)))
}
