//! What must be quick: order reads, polls, the rendered history, webhooks.

use std::time::Duration;

use anyhow::Context as _;

use super::client::{Connection, address, closed_loop};
use super::paid::{FEW, MANY};
use super::shop::{self, Ready};
use crate::harness::site::Site;
use crate::stats::Latencies;

/// Orders on the history page that is rendered.
pub(super) const HISTORY: usize = 10;

/// What came, a second.
#[derive(Debug)]
pub(super) struct Reads {
    /// An order's state, whole.
    pub(super) states: f64,
    /// An order's state that had not changed.
    pub(super) polls: f64,
    /// The history page, rendered.
    pub(super) pages: f64,
    /// Its bytes.
    pub(super) page_bytes: usize,
    pub(super) webhooks: f64,
    pub(super) webhook_took: Latencies,
}

/// Measures each for a while, on orders that are paid.
pub(super) async fn reads(site: &Site, paid: &[Ready], span: Duration) -> anyhow::Result<Reads> {
    let addr = address(&site.nodes[0].url)?;
    let around = || paid.iter().cycle();
    let states = closed_loop(addr, MANY, span, around(), shop::read);
    let states = states.await.context("reading orders")?;
    let version = |(reply, ready)| Ok((ready, shop::version(reply)?));
    let mut one = Connection::open(addr).await?;
    let mut known = Vec::new();
    for ready in paid.iter().take(MANY) {
        known.push((shop::read(&mut one, ready).await?, ready));
    }
    let known = known.iter().map(|(reply, ready)| version((reply, *ready)));
    let known = known.collect::<anyhow::Result<Vec<_>>>()?;
    let unchanged = known
        .iter()
        .cycle()
        .map(|(ready, etag)| (*ready, etag.as_str()));
    let polls = closed_loop(addr, MANY, span, unchanged, shop::poll);
    let polls = polls.await.context("polling")?;
    let mut cookie = String::new();
    for _ in 0..HISTORY {
        cookie = shop::order(&mut one, &cookie).await?.cookie;
    }
    let again = std::iter::repeat(cookie.as_str());
    let pages = closed_loop(addr, MANY / 2, span, again, shop::history);
    let pages = pages.await.context("reading the history")?;
    // Numbered beyond whatever an earlier round sent: a second of the same number is no new one.
    let first = usize::try_from(
        site.rows()
            .await?
            .number("SELECT count(*) FROM webhooks")
            .await?,
    )?;
    let hooks = around().zip(first..);
    let hooks = closed_loop(addr, FEW, span, hooks, shop::webhook);
    let hooks = hooks.await.context("sending webhooks")?;
    Ok(Reads {
        states: states.rate(),
        polls: polls.rate(),
        pages: pages.rate(),
        page_bytes: pages.gave.first().copied().unwrap_or_default(),
        webhooks: hooks.rate(),
        webhook_took: hooks.took,
    })
}
