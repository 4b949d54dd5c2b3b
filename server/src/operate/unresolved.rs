//! `jari unresolved`: what is not final, the oldest first.

use std::process::ExitCode;

use payment::time::Millis;
use serde_json::{Value, json};

use super::Desk;
use super::output::{line, masked, plain};
use super::zone::Zone;
use crate::clock::EpochMs;
use crate::store::desk::Unresolved;

/// More than anybody reads at once.
const MOST: u32 = 10_000;

/// What to list.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what has not been final for so many minutes
    #[arg(long, value_name = "MIN", default_value_t = 0)]
    older_than: u32,
    /// As a JSON list
    #[arg(long)]
    json: bool,
    /// The time zone of what is printed
    #[arg(long, env = "JARI_ZONE", default_value = "Asia/Seoul")]
    zone: Zone,
}

/// Prints the list.
///
/// # Errors
/// When the database cannot be read.
pub async fn run(desk: &Desk, args: &Args) -> anyhow::Result<ExitCode> {
    let now = desk.clock.epoch();
    let age = Millis::from_secs(60).times(args.older_than);
    // A clock of another node may be a little ahead: without a bound, nothing is left out.
    let before = if args.older_than == 0 {
        EpochMs(i64::MAX)
    } else {
        now.minus(age)
    };
    let found = desk.store.unresolved(before, MOST).await?;
    if args.json {
        let list: Vec<Value> = found.iter().map(|one| as_json(one, now)).collect();
        line(&serde_json::to_string_pretty(&list)?);
        return Ok(ExitCode::SUCCESS);
    }
    for one in &found {
        line(&as_text(one, now, &args.zone));
    }
    line(&format!("{} not final", found.len()));
    Ok(ExitCode::SUCCESS)
}

fn as_text(one: &Unresolved, now: EpochMs, zone: &Zone) -> String {
    let record = &one.attempt;
    let last = one.last.as_ref().map_or_else(
        || "nothing learned yet".to_owned(),
        |last| {
            let told = plain(&last.told, 200);
            format!(
                "{} by {} at {} {told}",
                last.event,
                last.source,
                zone.text(last.at)
            )
        },
    );
    format!(
        "{:<16} attempt {}  order {} number {}  {} as {}  key {}  {} won  since {} ({} s)  asked {} times  last: {}",
        record.attempt.status.as_str(),
        record.id.0,
        record.order_id,
        record.number,
        record.gateway,
        record.gateway_order_id,
        masked(record.payment_key.as_ref()),
        record.attempt.expected.amount,
        zone.text(one.since),
        now.since(one.since).get() / 1_000,
        record.asks,
        last.trim_end()
    )
}

fn as_json(one: &Unresolved, now: EpochMs) -> Value {
    let record = &one.attempt;
    let last = one.last.as_ref().map(|last| {
        json!({"at": last.at.0, "source": last.source, "event": last.event, "told": plain(&last.told, 200)})
    });
    json!({
        "attempt": record.id.0,
        "orderId": record.order_id.as_str(),
        "number": record.number,
        "gateway": record.gateway.as_str(),
        "gatewayOrderId": record.gateway_order_id.as_str(),
        "paymentKey": masked(record.payment_key.as_ref()),
        "status": record.attempt.status.as_str(),
        "reason": record.attempt.reason.map(payment::reach::Reason::as_str),
        "amount": record.attempt.expected.amount.get(),
        "charged": record.attempt.charged.map(|money| money.amount.get()),
        "givenBack": record.attempt.canceled.get(),
        "since": one.since.0,
        "ageSeconds": now.since(one.since).get() / 1_000,
        "asks": record.asks,
        "nextLook": record.ask_at.map(|at| at.0),
        "last": last,
    })
}
