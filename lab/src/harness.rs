//! The stage of one condition: a fresh gateway, a fresh shop and a fresh database, gone when the condition is over.

pub(crate) mod alone;
pub(crate) mod books;
pub(crate) mod gateway;
pub(crate) mod process;
pub(crate) mod regret;
pub(crate) mod sampler;
pub(crate) mod site;
pub(crate) mod truth;
pub(crate) mod validity;

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use reqwest::Client;
use tempfile::TempDir;

use crate::prometheus::Scrape;
use crate::shopper::{Prepared, prepare};
use books::Books;
use gateway::Gateway;
use process::Program;

/// How long a program may take until it is ready.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How often something that cannot be awaited is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How many orders are prepared at once.
const PREPARING: usize = 16;
/// The server counts its unknowns once a second: twice nothing, with a margin, is nothing.
const QUIET: Duration = Duration::from_millis(2_500);

/// Where the programs are and how long a run may be.
#[derive(Debug, Clone)]
pub(crate) struct Lab {
    /// The folder of `jari`, `fakepg` and `lab`.
    pub(crate) bin_dir: PathBuf,
    /// Shortened runs.
    pub(crate) quick: bool,
    /// How many shoppers wait in the experiment `waiting`; `None` is as planned.
    pub(crate) shoppers: Option<u32>,
}

impl Lab {
    /// `full`, or `short` when the run is a quick one.
    pub(crate) const fn pick(&self, full: u32, short: u32) -> u32 {
        if self.quick { short } else { full }
    }
}

/// A running gateway and shop.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The gateway's control API.
    pub(crate) gateway: Gateway,
    /// The shop's base URL, without a slash at its end.
    pub(crate) shop: String,
    /// For everything but raw connections.
    pub(crate) client: Client,
    /// The shop's process.
    pub(crate) jari: Program,
    /// When it was opened, in Unix ms.
    pub(crate) opened_ms: u64,
    fakepg: Program,
    folder: TempDir,
    ports: [u16; 2],
}

/// What is left of a stage.
#[derive(Debug)]
pub(crate) struct Closed {
    /// The shop's database.
    pub(crate) books: Books,
    /// Both programs ended when asked to, and their processes and ports are free.
    pub(crate) tidy: bool,
}

impl Stage {
    /// Starts both programs with these settings and waits until the shop is ready.
    pub(crate) async fn open(lab: &Lab, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for the database")?;
        let ports = free_ports()?;
        let [shop, gateway] = ports.map(|port| format!("127.0.0.1:{port}"));
        let args = [
            "--addr",
            &gateway,
            "--webhook-url",
            &format!("http://{shop}"),
        ];
        let fakepg = Program::start(
            "fakepg",
            &lab.bin_dir.join("fakepg"),
            &args.map(str::to_owned),
            &[],
            folder.path().join("fakepg.log"),
        )?;
        let database = format!("sqlite://{}", folder.path().join("jari.db").display());
        let mut env = vec![
            ("JARI_ENV".to_owned(), "development".to_owned()),
            ("JARI_ADDR".to_owned(), shop.clone()),
            ("JARI_FAKEPG_URL".to_owned(), format!("http://{gateway}")),
            ("DATABASE_URL".to_owned(), database),
        ];
        let settings = settings.iter();
        env.extend(settings.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let jari = Program::start(
            "jari",
            &lab.bin_dir.join("jari"),
            &["serve".to_owned()],
            &env,
            folder.path().join("jari.log"),
        )?;
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(90))
            .build()?;
        let mut stage = Self {
            opened_ms: now_ms(),
            gateway: Gateway::new(client.clone(), format!("http://{gateway}")),
            shop: format!("http://{shop}"),
            client,
            jari,
            fakepg,
            folder,
            ports,
        };
        stage.ready().await?;
        Ok(stage)
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            self.jari.must_run()?;
            self.fakepg.must_run()?;
            let answer = self
                .client
                .get(format!("{}/readyz", self.shop))
                .send()
                .await;
            let ready = answer.is_ok_and(|answer| answer.status().is_success());
            if ready && self.gateway.is_alive().await {
                return Ok(());
            }
            if started.elapsed() > START_LIMIT {
                bail!("the shop did not become ready: {}", self.jari.last_words());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Makes orders and authenticates their payments, a few at once, before any clock runs; then the ledger is reset.
    pub(crate) async fn prepare(&self, count: usize) -> anyhow::Result<Vec<Prepared>> {
        let (shop, gateway) = (self.shop.as_str(), self.gateway.url.as_str());
        let orders = stream::iter(0..count)
            .map(|_| prepare(&self.client, shop, gateway, "mug"))
            .buffer_unordered(PREPARING)
            .try_collect()
            .await
            .context("preparing orders")?;
        self.gateway.reset_ledger().await?;
        Ok(orders)
    }

    /// The shop's metrics now.
    pub(crate) async fn scrape(&self) -> anyhow::Result<Scrape> {
        scrape(&self.client, &self.shop).await
    }

    /// Waits until no confirm is in flight and no payment is unknown; false when that did not come in time.
    pub(crate) async fn drained(&self, limit: Duration) -> anyhow::Result<bool> {
        let started = Instant::now();
        let mut quiet_since = None;
        while started.elapsed() < limit {
            let scrape = self.scrape().await?;
            // A gauge that is not there yet has not been counted yet.
            let unknown = scrape.find("payments_unknown", &[]).unwrap_or(1.0);
            let in_flight = scrape.sum("pg_in_flight", &[("operation", "confirm")]);
            if unknown > 0.0 || in_flight > 0.0 {
                quiet_since = None;
            } else if quiet_since.get_or_insert_with(Instant::now).elapsed() >= QUIET {
                return Ok(true);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(false)
    }

    /// Kills the gateway, as a power cut would: for controls that must be found out.
    pub(crate) fn kill_gateway(&mut self) -> anyhow::Result<()> {
        self.fakepg.kill_now()
    }

    /// Stops both programs, the shop first, and reads the shop's books.
    pub(crate) async fn close(self) -> anyhow::Result<Closed> {
        let jari = self.jari.stop().await?;
        let fakepg = self.fakepg.stop().await?;
        let ports = self.ports.into_iter().all(is_free);
        Ok(Closed {
            books: Books::read(&self.folder.path().join("jari.db")).await?,
            tidy: jari && fakepg && ports,
        })
    }
}

/// This moment in Unix ms.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The metrics of a shop now.
pub(crate) async fn scrape(client: &Client, shop: &str) -> anyhow::Result<Scrape> {
    let answer = client.get(format!("{shop}/metrics")).send().await?;
    Scrape::parse(&answer.error_for_status()?.text().await?)
}

/// Whether nobody listens on a port.
fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Two ports that nobody listens on, chosen by the system.
fn free_ports() -> anyhow::Result<[u16; 2]> {
    let bind = || TcpListener::bind("127.0.0.1:0").context("finding a free port");
    // Both are held until both are known, so that they differ.
    let (first, second) = (bind()?, bind()?);
    Ok([first.local_addr()?.port(), second.local_addr()?.port()])
}
