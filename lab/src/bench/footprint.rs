//! What the shop weighs: memory idle, at its peak and for each payment that waits, its pages, and the time of a start.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use hyper::StatusCode;
use hyper::header::ACCEPT_ENCODING;
use serde_json::json;

use super::Bench;
use super::client::{Connection, address};
use super::shop;
use crate::harness::site::Site;
use crate::plan::Condition;
use crate::stats::{Latencies, rounded};

/// How long a shop stands idle before it is weighed.
const IDLE: Duration = Duration::from_secs(2);
/// What the gateway takes for the payments that wait, ms: below the time after which the shop calls an answer lost.
const HOLD_MS: u64 = 4_000;
/// Between the confirms of two of them: all at one moment would be more claims than the database takes within its wait, and
/// some would be turned away.
const PACE: Duration = Duration::from_micros(2_500);
/// How long may pass until all of them wait.
const GATHER: Duration = Duration::from_secs(4);
/// How often the waiting are counted.
const LOOK: Duration = Duration::from_millis(50);

/// A figure of `/proc/<pid>/status`, KiB.
pub(super) fn status_kib(pid: u32, name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next());
    Ok(value.with_context(|| format!("no {name}"))?.parse()?)
}

/// Resident memory before anything was asked, KiB.
pub(super) async fn idle(site: &Site) -> anyhow::Result<u64> {
    tokio::time::sleep(IDLE).await;
    status_kib(site.nodes[0].pid()?, "VmRSS:")
}

/// The bytes that a browser loads, as the shop sends them to one that takes Brotli.
pub(super) async fn pages(site: &Site, condition: &mut Condition) -> anyhow::Result<()> {
    let mut shop = Connection::open(address(&site.nodes[0].url)?).await?;
    let ordered = shop::order(&mut shop, "").await?;
    let checkout = format!("/checkout/{}", ordered.order.order_id);
    let mut whole = 0;
    for (name, path) in [
        ("checkout", checkout.as_str()),
        ("script", "/pkg/jari.js"),
        ("wasm", "/pkg/jari.wasm"),
        ("style", "/pkg/jari.css"),
    ] {
        let asked = shop.get(path, &ordered.cookie, &[(ACCEPT_ENCODING, "br")]);
        let answer = asked.await?;
        if answer.status != StatusCode::OK {
            condition.figure("pageBytes", "the pages are not built");
            return Ok(());
        }
        whole += answer.body.len();
        condition.figure(&format!("pageBytes.{name}"), answer.body.len());
    }
    condition.figure("pageBytes", whole);
    Ok(())
}

/// Kills the shop and starts it on what it has stored, some times; the median until it serves.
pub(super) async fn starts(
    site: &mut Site,
    times: usize,
    condition: &mut Condition,
) -> anyhow::Result<()> {
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        site.nodes[0].kill().await?;
        took.push(site.start(0).await?);
    }
    let took = Latencies::of(took);
    condition.figure("startMs", took.percentile_ms(50.0).map(rounded));
    Ok(())
}

/// What each payment costs the shop that the gateway takes its time for: shopper's connection, gateway's connection, all.
pub(super) async fn waiting(bench: &Bench<'_>, condition: &mut Condition) -> anyhow::Result<()> {
    let count = bench.size.waiting;
    let settings = [("JARI_PG_CAP", "off"), ("JARI_RATE_LIMITS", "off")];
    let site = Site::open(bench.lab, bench.engine, 1, &settings).await?;
    let (addr, gateway) = (address(&site.nodes[0].url)?, address(&site.gateway.url)?);
    let (mut one, mut window) = (
        Connection::open(addr).await?,
        Connection::open(gateway).await?,
    );
    let mut orders = Vec::with_capacity(count);
    for _ in 0..count {
        let ordered = shop::order(&mut one, "").await?;
        orders.push(shop::authenticate(&mut window, ordered).await?);
    }
    let pid = site.nodes[0].pid()?;
    let before = status_kib(pid, "VmRSS:")?;
    site.gateway.set(&json!({"delayMs": HOLD_MS})).await?;
    let mut shoppers = try_join_all((0..count).map(|_| Connection::open(addr))).await?;
    let pairs = shoppers.iter_mut().zip(&orders).zip(0_u32..);
    let paying = try_join_all(pairs.map(|((shop, ready), place)| async move {
        tokio::time::sleep(PACE * place).await;
        shop::confirm(shop, ready).await
    }));
    let weighing = async {
        let begun = Instant::now();
        loop {
            let scrape = site.scrape(0).await?;
            let held = scrape.sum("pg_in_flight", &[("operation", "confirm")]);
            if held >= count as f64 || begun.elapsed() > GATHER {
                return anyhow::Ok((held, status_kib(pid, "VmRSS:")?));
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let (paid, weighed) = tokio::join!(paying, weighing);
    let (held, after) = weighed?;
    paid.context("confirming what waits")?;
    ensure!(held > 0.0, "nothing waited");
    condition.figure("waitingAtOnce", held);
    let each = after.saturating_sub(before) as f64 / held;
    condition.figure("kibPerWaitingPayment", rounded(each));
    let (_, tidy) = site.close().await?;
    condition.check("nothing is left of the waiting shop", tidy, tidy);
    Ok(())
}
