//! `jari key`: the keys of shops that sell through this checkout. A key is printed once, when it is made.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::Desk;
use super::output::{line, plain};
use super::zone::Zone;
use crate::merchant::{MadeKey, origin};
use crate::store::merchant::{KeyRow, NewKey};

/// The longest name and title that are kept, in characters.
const LONGEST_NAME: usize = 64;
const LONGEST_TITLE: usize = 100;

/// What to do with keys.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Makes a key, and its shop when there is none of that name; prints the key, this once
    New(NewArgs),
    /// Lists them, the oldest first
    List(ListArgs),
    /// Revokes one: it opens nothing any more
    Revoke(RevokeArgs),
}

/// For whom.
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// The shop: all its keys see the same orders
    #[arg(long)]
    shop: String,
    /// What shoppers read of it [default: as it is, or the shop's name]
    #[arg(long)]
    title: Option<String>,
    /// An origin that its shoppers may be led back to, as https://shop.example; can be repeated; replaces those there are
    #[arg(long, value_name = "ORIGIN")]
    return_origin: Vec<String>,
    /// What the key is for
    #[arg(long, default_value = "key")]
    name: String,
}

/// How to list.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// The time zone of what is printed
    #[arg(long, env = "JARI_ZONE", default_value = "Asia/Seoul")]
    zone: Zone,
    /// As a JSON list
    #[arg(long)]
    json: bool,
}

/// Which one.
#[derive(Debug, clap::Args)]
pub struct RevokeArgs {
    /// What `jari key list` calls it
    handle: String,
}

/// Makes, lists or revokes.
///
/// # Errors
/// When an origin or a name cannot be used, or the database cannot be written.
pub async fn run(desk: &Desk, command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::New(args) => new(desk, args).await,
        Command::List(args) => list(desk, args).await,
        Command::Revoke(args) => revoke(desk, args).await,
    }
}

async fn new(desk: &Desk, args: &NewArgs) -> anyhow::Result<ExitCode> {
    let shop = plain(&args.shop, LONGEST_NAME);
    let name = plain(&args.name, LONGEST_NAME);
    if shop.is_empty() || name.is_empty() {
        anyhow::bail!("--shop and --name must say something");
    }
    let known = desk.store.shop(&shop).await?;
    let title = args
        .title
        .as_deref()
        .map(|title| plain(title, LONGEST_TITLE));
    let title = title.filter(|title| !title.is_empty());
    let title = title
        .or_else(|| known.as_ref().map(|known| known.title.clone()))
        .unwrap_or_else(|| shop.clone());
    let production = !desk.config.is_development();
    let given = args.return_origin.iter().map(|text| {
        origin(text, production).map_err(|why| anyhow::anyhow!("--return-origin {text}: {why}"))
    });
    let mut origins = given.collect::<anyhow::Result<Vec<_>>>()?;
    if origins.is_empty() {
        origins = known.map_or_else(Vec::new, |known| known.return_origins);
    }
    if origins.is_empty() {
        anyhow::bail!("name where its shoppers may be led back to: --return-origin https://…");
    }
    let now = desk.clock.epoch();
    let shop = desk.store.save_shop(&shop, &title, &origins, now).await?;
    let made = MadeKey::random();
    let key = NewKey {
        shop,
        handle: made.handle.clone(),
        hash: made.hash(),
        name,
        at: now,
    };
    desk.store.new_key(key).await?;
    line(made.key.expose());
    Ok(ExitCode::SUCCESS)
}

async fn list(desk: &Desk, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let keys = desk.store.keys().await?;
    if args.json {
        let list: Vec<Value> = keys.iter().map(as_json).collect();
        line(&serde_json::to_string_pretty(&list)?);
        return Ok(ExitCode::SUCCESS);
    }
    for key in &keys {
        let moment =
            |at: Option<_>, none: &str| at.map_or_else(|| none.to_owned(), |at| args.zone.text(at));
        line(&format!(
            "{}  {}  {}  made {}  last used {}  {}",
            key.handle,
            key.shop,
            key.name,
            args.zone.text(key.created_at),
            moment(key.used_at, "never"),
            key.revoked_at.map_or_else(
                || "in use".to_owned(),
                |at| format!("revoked {}", args.zone.text(at))
            ),
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(key: &KeyRow) -> Value {
    json!({
        "handle": key.handle,
        "shop": key.shop,
        "name": key.name,
        "createdAt": key.created_at.0,
        "usedAt": key.used_at.map(|at| at.0),
        "revokedAt": key.revoked_at.map(|at| at.0),
    })
}

async fn revoke(desk: &Desk, args: &RevokeArgs) -> anyhow::Result<ExitCode> {
    let now = desk.clock.epoch();
    if desk.store.revoke_key(&args.handle, now).await? {
        line(&format!("revoked: {}", args.handle));
        return Ok(ExitCode::SUCCESS);
    }
    line("there is no such key in use: nothing is changed");
    Ok(ExitCode::FAILURE)
}
