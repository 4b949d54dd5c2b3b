//! Waiting shoppers in a process of their own, so that their cost is told apart from the server's.
//!
//! Says `ready` when all are connected, begins on a line of input, says what it saw as one line of JSON, and keeps the
//! connections until its input ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::harness::process::usage_of;
use crate::keep_alive::{KeepAlive, Reply};
use crate::stats::Latencies;

/// How many connect at once: below the listener's queue.
const CONNECTING: usize = 64;
/// A poll without an answer for so long is lost.
const POLL_LIMIT: Duration = Duration::from_secs(30);

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A JSON file: the shoppers and how they poll
    #[arg(long)]
    input: PathBuf,
}

/// The shoppers and how they poll.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Input {
    /// The server.
    pub(crate) addr: SocketAddr,
    /// How long they poll, in seconds.
    pub(crate) seconds: u64,
    /// The step between two polls of one shopper, ms.
    pub(crate) interval_ms: u64,
    /// Who polls.
    pub(crate) shoppers: Vec<Waiting>,
}

/// One shopper.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// What is polled.
    pub(crate) path: String,
    /// Whose it is, as the `Cookie` header carries it.
    pub(crate) cookie: String,
}

/// What the shoppers saw.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Polls begun.
    pub(crate) polls: u64,
    /// Their answers by status; `lost` had none.
    pub(crate) answers: BTreeMap<String, u64>,
    /// Percentiles from the intended start to the answer, ms.
    pub(crate) p50_ms: f64,
    /// As above.
    pub(crate) p99_ms: f64,
    /// Whether the 95th percentile agrees with a share counted apart.
    pub(crate) agree: bool,
    /// 99th percentile of how much later than it could a poll began, ms.
    pub(crate) late_p99_ms: f64,
    /// This process's CPU time while the shoppers polled, in seconds.
    pub(crate) cpu_seconds: f64,
}

/// Runs the shoppers.
pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    let text =
        tokio::task::spawn_blocking(move || std::fs::read_to_string(options.input)).await??;
    let input: Input = serde_json::from_str(&text)?;
    let addr = input.addr;
    let connections: Vec<_> = stream::iter(input.shoppers)
        .map(|waiting| async move {
            let connection = KeepAlive::connect(addr).await?;
            Ok::<_, anyhow::Error>(Shopper::new(waiting, connection, addr))
        })
        .buffered(CONNECTING)
        .try_collect()
        .await?;
    tell("ready").await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    lines
        .next_line()
        .await?
        .context("told to end before the beginning")?;
    let pid = std::process::id();
    let before = usage_of(pid)?;
    let step = Duration::from_millis(input.interval_ms);
    let (saw, kept) = poll(connections, step, Duration::from_secs(input.seconds)).await?;
    let output = output(saw, usage_of(pid)?.cpu_seconds - before.cpu_seconds);
    tell(&serde_json::to_string(&output)?).await?;
    // What the server holds for them is measured now.
    while lines.next_line().await?.is_some() {}
    drop(kept);
    Ok(())
}

async fn tell(line: &str) -> anyhow::Result<()> {
    let mut out = tokio::io::stdout();
    out.write_all(format!("{line}\n").as_bytes()).await?;
    Ok(out.flush().await?)
}

/// What one poll saw; `None` is lost.
struct Poll {
    status: Option<u16>,
    took: Duration,
    late: Duration,
}

async fn poll(
    shoppers: Vec<Shopper>,
    step: Duration,
    span: Duration,
) -> anyhow::Result<(Vec<Poll>, Vec<Shopper>)> {
    let count = shoppers.len().max(1);
    let start = Instant::now();
    let mut running = Vec::with_capacity(count);
    for (place, shopper) in shoppers.into_iter().enumerate() {
        // Phases spread uniformly: real shoppers came at any moment.
        let phase = step.mul_f64(place as f64 / count as f64);
        running.push(tokio::spawn(shopper.wait(
            start + phase,
            step,
            start + span,
        )));
    }
    let (mut saw, mut kept) = (Vec::new(), Vec::with_capacity(count));
    for shopper in running {
        let (polls, shopper) = shopper.await.context("a shopper's task")?;
        saw.extend(polls);
        kept.push(shopper);
    }
    Ok((saw, kept))
}

fn output(saw: Vec<Poll>, cpu_seconds: f64) -> Output {
    let mut answers: BTreeMap<String, u64> = BTreeMap::new();
    for poll in &saw {
        let name = poll
            .status
            .map_or_else(|| "lost".to_owned(), |status| status.to_string());
        *answers.entry(name).or_default() += 1;
    }
    let took = Latencies::of(saw.iter().map(|poll| poll.took));
    let late = Latencies::of(saw.iter().map(|poll| poll.late));
    Output {
        polls: saw.len() as u64,
        answers,
        p50_ms: took.percentile_ms(50.0).unwrap_or_default(),
        p99_ms: took.percentile_ms(99.0).unwrap_or_default(),
        agree: took.agrees(95.0),
        late_p99_ms: late.percentile_ms(99.0).unwrap_or_default(),
        cpu_seconds,
    }
}

/// A shopper with a connection.
struct Shopper {
    waiting: Waiting,
    connection: Option<KeepAlive>,
    addr: SocketAddr,
    etag: Option<String>,
}

impl Shopper {
    const fn new(waiting: Waiting, connection: KeepAlive, addr: SocketAddr) -> Self {
        Self {
            waiting,
            connection: Some(connection),
            addr,
            etag: None,
        }
    }

    /// Polls every step from the first moment until the end, one poll at a time, each counted from when it was due.
    async fn wait(mut self, first: Instant, step: Duration, end: Instant) -> (Vec<Poll>, Self) {
        let mut polls = Vec::new();
        let (mut due, mut free) = (first, first);
        while due < end {
            tokio::time::sleep_until(due.into()).await;
            let late = due.max(free).elapsed();
            let reply = self.ask().await;
            polls.push(Poll {
                status: reply.as_ref().map(|reply| reply.status),
                took: due.elapsed(),
                late,
            });
            if let Some(etag) = reply.and_then(|reply| reply.etag) {
                self.etag = Some(etag);
            }
            free = Instant::now();
            due += step;
        }
        (polls, self)
    }

    async fn ask(&mut self) -> Option<Reply> {
        let request = self.request();
        let addr = self.addr;
        let connection = &mut self.connection;
        let exchange = async {
            if connection.is_none() {
                *connection = Some(KeepAlive::connect(addr).await?);
            }
            let open = connection.as_mut().context("just connected")?;
            open.exchange(request.as_bytes()).await
        };
        let reply = tokio::time::timeout(POLL_LIMIT, exchange)
            .await
            .ok()
            .and_then(Result::ok);
        if reply.is_none() {
            // Half an answer may still be in it.
            self.connection = None;
        }
        reply
    }

    fn request(&self) -> String {
        let Waiting { path, cookie } = &self.waiting;
        let known = self
            .etag
            .as_ref()
            .map_or_else(String::new, |etag| format!("If-None-Match: {etag}\r\n"));
        format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n{known}\r\n",
            self.addr
        )
    }
}
