//! Shops that are killed and started again: a gateway, a database of either kind, and nodes that share it.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;

use super::gateway::Gateway;
use super::process::{Program, command};
use super::truth::{Rows, Truth};
use super::{Lab, START_LIMIT, is_free, now_ms, scrape};
use crate::postgres_own::OwnServer;
use crate::prometheus::Scrape;
use crate::shopper::{Prepared, prepare};

/// How often a program that starts is asked whether it is ready.
const LOOK: Duration = Duration::from_millis(5);
/// How often the rows are counted while they are waited for.
const COUNT: Duration = Duration::from_millis(500);
/// How many orders are prepared at once.
const PREPARING: usize = 16;

/// A kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}

/// Where the rows are, and the server that serves them, for as long as they are needed.
#[derive(Debug)]
struct Database {
    url: String,
    _server: Option<OwnServer>,
}

/// One process of the shop, by its place.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its base URL, without a slash at its end; the same after every start.
    pub(crate) url: String,
    jari: PathBuf,
    env: Vec<(String, String)>,
    log: PathBuf,
    program: Option<Program>,
    /// Under which it claims, as the list of those that share the database has it.
    pub(crate) name: Option<String>,
}

/// A running gateway, a database and the shop's nodes.
#[derive(Debug)]
pub(crate) struct Site {
    /// The gateway's control API.
    pub(crate) gateway: Gateway,
    /// For everything.
    pub(crate) client: Client,
    /// The shop's processes.
    pub(crate) nodes: Vec<Node>,
    fakepg: Program,
    database: Database,
    ports: Vec<u16>,
    /// All names that nodes ever had.
    names: BTreeSet<String>,
    /// When it was opened, in Unix ms.
    pub(crate) opened_ms: u64,
    /// How many orders were made.
    prepared: AtomicUsize,
    _folder: TempDir,
}

impl Node {
    /// Starts its program and waits until it serves; how long that took.
    async fn start(&mut self, client: &Client) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let args = ["serve".to_owned()];
        let program = Program::start("jari", &self.jari, &args, &self.env, self.log.clone())?;
        let program = self.program.insert(program);
        loop {
            program.must_run()?;
            let answer = client.get(format!("{}/readyz", self.url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > START_LIMIT {
                bail!("a node did not become ready: {}", program.last_words());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Its process's id, while its program runs.
    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        let program = self.program.as_ref().context("the node does not run")?;
        Ok(program.pid())
    }

    /// Ends its program as a power cut would.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        let program = self.program.take().context("the node does not run")?;
        program.kill().await
    }
}

impl Site {
    /// Starts everything with these settings and waits until every node serves.
    pub(crate) async fn open(
        lab: &Lab,
        engine: Engine,
        nodes: usize,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("making a folder")?;
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(90))
            .build()?;
        let database = Database::make(engine, &folder).await?;
        let ports = (0..=nodes)
            .map(|_| lasting_port())
            .collect::<anyhow::Result<Vec<_>>>()?;
        let gateway = format!("127.0.0.1:{}", ports[nodes]);
        let hooks = format!("http://127.0.0.1:{}", ports[0]);
        let args = ["--addr", &gateway, "--webhook-url", &hooks].map(str::to_owned);
        let log = folder.path().join("fakepg.log");
        let fakepg = Program::start("fakepg", &lab.bin_dir.join("fakepg"), &args, &[], log)?;
        let node = |index: usize| {
            let addr = format!("127.0.0.1:{}", ports[index]);
            let mut env = vec![
                ("JARI_ENV".to_owned(), "development".to_owned()),
                ("JARI_ADDR".to_owned(), addr.clone()),
                ("JARI_FAKEPG_URL".to_owned(), format!("http://{gateway}")),
                ("DATABASE_URL".to_owned(), database.url.clone()),
            ];
            let settings = settings.iter();
            env.extend(settings.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
            Node {
                url: format!("http://{addr}"),
                jari: lab.bin_dir.join("jari"),
                env,
                log: folder.path().join(format!("jari-{index}.log")),
                program: None,
                name: None,
            }
        };
        let mut site = Self {
            gateway: Gateway::new(client.clone(), format!("http://{gateway}")),
            client,
            nodes: (0..nodes).map(node).collect(),
            fakepg,
            database,
            ports,
            names: BTreeSet::new(),
            opened_ms: now_ms(),
            prepared: AtomicUsize::new(0),
            _folder: folder,
        };
        for index in 0..nodes {
            site.start(index).await?;
        }
        let begun = Instant::now();
        while !site.gateway.is_alive().await {
            site.fakepg.must_run()?;
            if begun.elapsed() > START_LIMIT {
                bail!("the gateway did not start: {}", site.fakepg.last_words());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(site)
    }

    /// Starts a node's program and waits until it serves; how long that took.
    pub(crate) async fn start(&mut self, node: usize) -> anyhow::Result<Duration> {
        let took = self.nodes[node].start(&self.client).await?;
        // The only one that was not there before: they are started one by one. A process with a database of its own is
        // on no list.
        let listed: Vec<(String,)> = self.rows().await?.all("SELECT id FROM nodes").await?;
        let mut new = listed.into_iter().filter(|(id,)| !self.names.contains(id));
        let name = new.next().map(|(id,)| id);
        self.names.extend(name.clone());
        self.nodes[node].name = name;
        Ok(took)
    }

    /// Makes orders and authenticates their payments, a few at once; then the ledger is reset.
    pub(crate) async fn prepare(&self, count: usize) -> anyhow::Result<Vec<Prepared>> {
        let orders = stream::iter(0..count)
            .map(|index| {
                let shop = &self.nodes[index % self.nodes.len()].url;
                prepare(&self.client, shop, &self.gateway.url, "mug")
            })
            .buffer_unordered(PREPARING)
            .try_collect()
            .await
            .context("preparing orders")?;
        self.gateway.reset_ledger().await?;
        self.prepared.fetch_add(count, Ordering::Relaxed);
        Ok(orders)
    }

    /// How many orders were made.
    pub(crate) fn prepared(&self) -> usize {
        self.prepared.load(Ordering::Relaxed)
    }

    /// The metrics of a node now.
    pub(crate) async fn scrape(&self, node: usize) -> anyhow::Result<Scrape> {
        scrape(&self.client, &self.nodes[node].url).await
    }

    /// A connection to the database. On SQLite only while a node has the file open: a last one that closes it would tidy
    /// up what a crash left.
    pub(crate) async fn rows(&self) -> anyhow::Result<Rows> {
        Rows::open(&self.database.url).await
    }

    /// Waits until no attempt is in progress or in doubt; how long that took, `None` when it did not come in time.
    pub(crate) async fn all_known(&self, limit: Duration) -> anyhow::Result<Option<Duration>> {
        let begun = Instant::now();
        let mut rows = self.rows().await?;
        loop {
            if rows.in_doubt().await? == 0 {
                return Ok(Some(begun.elapsed()));
            }
            if begun.elapsed() > limit {
                return Ok(None);
            }
            tokio::time::sleep(COUNT).await;
        }
    }

    /// Has the shop's own command hold all books against the gateway's; what it says.
    pub(crate) async fn reconcile(&self) -> anyhow::Result<Value> {
        let node = &self.nodes[0];
        let mut command = command(&node.jari, &node.env);
        command.args(["reconcile", "--all", "--json"]);
        command.args(["--concurrency", "16", "--per-second", "1000"]);
        let done = command.output().await.context("reconciling")?;
        serde_json::from_slice(&done.stdout).with_context(|| {
            let said = String::from_utf8_lossy(&done.stderr);
            format!("reconciling ended with {}: {said}", done.status)
        })
    }

    /// Stops every program, the nodes first, and reads the rows. The flag: all ended when asked to, and nothing is left.
    pub(crate) async fn close(self) -> anyhow::Result<(Truth, bool)> {
        let mut tidy = true;
        for program in self.nodes.into_iter().filter_map(|node| node.program) {
            tidy &= program.stop().await?;
        }
        tidy &= self.fakepg.stop().await?;
        tidy &= self.ports.into_iter().all(is_free);
        let truth = Rows::open(&self.database.url).await?.truth().await?;
        Ok((truth, tidy))
    }
}

impl Database {
    async fn make(engine: Engine, folder: &TempDir) -> anyhow::Result<Self> {
        if engine == Engine::Sqlite {
            let file = folder.path().join("jari.db");
            return Ok(Self {
                url: format!("sqlite://{}", file.display()),
                _server: None,
            });
        }
        let server = tokio::task::spawn_blocking(OwnServer::start).await;
        let server = server.context("starting PostgreSQL")?;
        let url = server.database("lab").await;
        Ok(Self {
            url: url.context("making a database")?,
            _server: Some(server),
        })
    }
}

/// A port that nobody listens on, below those that the system gives to outgoing connections: a node that is dead for a
/// moment finds its port free again.
pub(crate) fn lasting_port() -> anyhow::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 10_000)?;
    for _ in 0..10_000 {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + first.wrapping_add(step) % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free")
}
