//! `jari webhooks`: what was stored raw, and replaying it. A webhook is a hint, so replaying one only has the gateway
//! asked again: it is applied once in effect, however often.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Desk;
use super::output::{line, masked};
use super::zone::Zone;
use crate::gateway::Gateway;
use crate::gateway::webhook::Subject;
use crate::serve;
use crate::store::desk::{StoredWebhook, WebhookFilter, WebhookState};

mod out;

/// What to do with stored webhooks.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Lists them, the newest first
    List(ListArgs),
    /// Has them looked at again by a running server
    Replay(ReplayArgs),
    /// What shops' own endpoints are told
    #[command(subcommand)]
    Out(out::Command),
}

/// Which ones.
#[derive(Debug, clap::Args)]
struct Which {
    /// Those that came at this moment or later: with an offset, or as the zone's day or clock has it
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Those that have come to this
    #[arg(long, value_enum)]
    state: Option<WebhookState>,
    /// The time zone of what is read and printed
    #[arg(long, env = "JARI_ZONE", default_value = "Asia/Seoul")]
    zone: Zone,
}

impl Which {
    fn filter(&self, id: Option<i64>) -> anyhow::Result<WebhookFilter> {
        let since = self.since.as_deref();
        Ok(WebhookFilter {
            id,
            since: since.map(|text| self.zone.moment(text)).transpose()?,
            state: self.state,
        })
    }
}

/// Which ones to list.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    which: Which,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// As a JSON list
    #[arg(long)]
    json: bool,
}

/// Which ones to replay.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// This one
    #[arg(long)]
    id: Option<i64>,
    #[command(flatten)]
    which: Which,
    /// Only say how many they are
    #[arg(long)]
    dry_run: bool,
}

/// Lists or replays.
///
/// # Errors
/// When a time cannot be read, nothing is named to replay, or the database cannot be used.
pub async fn run(desk: &Desk, command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list(desk, args).await?,
        Command::Replay(args) => replay(desk, args).await?,
        Command::Out(command) => out::run(desk, command).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(desk: &Desk, args: &ListArgs) -> anyhow::Result<()> {
    let which = args.which.filter(None)?;
    let found = desk.store.webhooks(which, args.limit).await?;
    let readers = Readers::of(desk);
    if args.json {
        let list: Vec<Value> = found.iter().map(|row| as_json(&readers, row)).collect();
        line(&serde_json::to_string_pretty(&list)?);
        return Ok(());
    }
    for row in &found {
        let (key, order) = readers.subject(row);
        line(&format!(
            "{:>8}  {}  {}  {:<7}  looked at {} times  order {order}  key {key}  {}  {} bytes",
            row.id,
            args.which.zone.text(row.received_at),
            row.gateway,
            row.state.as_str(),
            row.tries,
            row.attempt
                .map_or_else(|| "no attempt".to_owned(), |id| format!("attempt {}", id.0)),
            row.body.len()
        ));
    }
    let all = desk.store.count_webhooks(which).await?;
    line(&format!("{} of {all}", found.len()));
    Ok(())
}

/// The adapters, which read what their gateways sent. Of one whose settings cannot be used nothing is read.
struct Readers(Vec<Arc<dyn Gateway>>);

impl Readers {
    fn of(desk: &Desk) -> Self {
        let settings = desk.config.gateways.iter();
        Self(
            settings
                .filter_map(|one| serve::gateway(one).ok())
                .collect(),
        )
    }

    /// The payment that a webhook names, masked.
    fn subject(&self, row: &StoredWebhook) -> (String, String) {
        let reader = self.0.iter().find(|one| *one.name() == row.gateway);
        let notice = reader.and_then(|one| one.notice(&row.body));
        let (key, order) = match notice.map(|notice| notice.subject) {
            Some(Subject {
                payment_key,
                gateway_order_id,
            }) => (payment_key, gateway_order_id),
            None => (None, None),
        };
        let order = order.map_or_else(|| "none".to_owned(), |order| order.to_string());
        (masked(key.as_ref()), order)
    }
}

fn as_json(readers: &Readers, row: &StoredWebhook) -> Value {
    let (key, order) = readers.subject(row);
    json!({
        "id": row.id,
        "gateway": row.gateway.as_str(),
        "transmission": row.transmission,
        "receivedAt": row.received_at.0,
        "state": row.state.as_str(),
        "tries": row.tries,
        "attempt": row.attempt.map(|id| id.0),
        "gatewayOrderId": order,
        "paymentKey": key,
        "bytes": row.body.len(),
    })
}

async fn replay(desk: &Desk, args: &ReplayArgs) -> anyhow::Result<()> {
    let which = args.which.filter(args.id)?;
    if which == WebhookFilter::default() {
        anyhow::bail!("name what to replay: --id, --since or --state");
    }
    if args.dry_run {
        let n = desk.store.count_webhooks(which).await?;
        line(&format!("{n} would be looked at again"));
        return Ok(());
    }
    let n = desk
        .store
        .replay_webhooks(which, desk.clock.epoch())
        .await?;
    line(&format!("{n} are looked at again as soon as a server runs"));
    Ok(())
}
