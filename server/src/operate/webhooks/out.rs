//! `jari webhooks out`: where shops are told what happens to their orders, and telling it again.

use anyhow::Context as _;
use payment::time::Millis;
use serde_json::{Value, json};

use crate::deliveries::address::Addresses;
use crate::operate::Desk;
use crate::operate::output::line;
use crate::operate::zone::Zone;
use crate::random;
use crate::store::merchant::{DeliveryFilter, DeliveryRow, DeliveryState, ShopId};

/// What to do with what shops are told.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Sets a shop's endpoint; prints its secret when it is the first
    Set(SetArgs),
    /// Gives a shop another secret and prints it; the one before goes on signing for a while
    Rotate(RotateArgs),
    /// Lists deliveries, the newest first
    List(ListArgs),
    /// Has them sent again by a running server, under the same ids
    Replay(ReplayArgs),
}

/// Whose, and where.
#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// The shop
    #[arg(long)]
    shop: String,
    /// Its endpoint, or `off`
    #[arg(long)]
    url: String,
}

/// Whose, and how long.
#[derive(Debug, clap::Args)]
pub struct RotateArgs {
    /// The shop
    #[arg(long)]
    shop: String,
    /// For how long the secret before goes on signing, hours
    #[arg(long, default_value_t = 24)]
    keep_hours: u32,
}

/// Which ones.
#[derive(Debug, clap::Args)]
struct Which {
    /// Of this shop
    #[arg(long)]
    shop: Option<String>,
    /// What happened at this moment or later: with an offset, or as the zone's day or clock has it
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Those that have come to this
    #[arg(long, value_enum)]
    state: Option<DeliveryState>,
    /// The time zone of what is read and printed
    #[arg(long, env = "JARI_ZONE", default_value = "Asia/Seoul")]
    zone: Zone,
}

impl Which {
    fn filter(&self, seq: Option<i64>) -> anyhow::Result<DeliveryFilter> {
        let since = self.since.as_deref();
        Ok(DeliveryFilter {
            seq,
            shop: self.shop.clone(),
            order: None,
            tried: false,
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

/// Which ones to send again.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// This one
    #[arg(long)]
    id: Option<i64>,
    #[command(flatten)]
    which: Which,
}

/// Sets, rotates, lists or replays.
///
/// # Errors
/// When there is no such shop, an address or a time cannot be used, nothing is named to replay, or the database cannot be
/// used.
pub(super) async fn run(desk: &Desk, command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Set(args) => set(desk, args).await,
        Command::Rotate(args) => rotate(desk, args).await,
        Command::List(args) => list(desk, args).await,
        Command::Replay(args) => replay(desk, args).await,
    }
}

async fn shop(desk: &Desk, name: &str) -> anyhow::Result<ShopId> {
    let shop = desk.store.shop(name).await?;
    let shop =
        shop.with_context(|| format!("there is no shop {name:?}: make a key for it first"))?;
    Ok(shop.id)
}

async fn set(desk: &Desk, args: &SetArgs) -> anyhow::Result<()> {
    let shop = shop(desk, &args.shop).await?;
    let url = Some(args.url.as_str()).filter(|url| *url != "off");
    if let Some(url) = url {
        let checked = Addresses::of(&desk.config).check(url);
        checked.map_err(|why| anyhow::anyhow!("--url: {why}"))?;
    }
    let secret = random::webhook_secret();
    if desk.store.set_endpoint(shop, url, &secret).await? {
        line(secret.expose());
    }
    Ok(())
}

async fn rotate(desk: &Desk, args: &RotateArgs) -> anyhow::Result<()> {
    let shop = shop(desk, &args.shop).await?;
    let secret = random::webhook_secret();
    let kept = Millis::from_secs(3_600).times(args.keep_hours);
    let until = desk.clock.epoch().plus(kept);
    desk.store.rotate_secret(shop, &secret, until).await?;
    line(secret.expose());
    Ok(())
}

async fn list(desk: &Desk, args: &ListArgs) -> anyhow::Result<()> {
    let which = args.which.filter(None)?;
    let found = desk.store.deliveries(which, args.limit).await?;
    if args.json {
        let list: Vec<Value> = found.iter().map(as_json).collect();
        line(&serde_json::to_string_pretty(&list)?);
        return Ok(());
    }
    for row in &found {
        line(&format!(
            "{:>8}  {}  {}  {}  order {}  {}  tried {} times  {}",
            row.seq,
            args.which.zone.text(row.created_at),
            row.shop,
            row.kind,
            row.order_id,
            row.state.as_str(),
            row.tries,
            row.told,
        ));
    }
    Ok(())
}

fn as_json(row: &DeliveryRow) -> Value {
    json!({
        "id": row.seq,
        "shop": row.shop,
        "orderId": row.order_id.as_str(),
        "event": row.kind,
        "state": row.state.as_str(),
        "tries": row.tries,
        "told": row.told,
        "at": row.created_at.0,
    })
}

async fn replay(desk: &Desk, args: &ReplayArgs) -> anyhow::Result<()> {
    let which = args.which.filter(args.id)?;
    if which == DeliveryFilter::default() {
        anyhow::bail!("name what to send again: --id, --shop, --since or --state");
    }
    let n = desk
        .store
        .replay_deliveries(which, desk.clock.epoch())
        .await?;
    line(&format!("{n} are sent again as soon as a server runs"));
    Ok(())
}
