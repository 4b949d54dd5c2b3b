//! The rounds: floor and shop by turns, so that what else the machine does meets both.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use sqlx::{ConnectOptions as _, PgConnection, SqliteConnection};
use tempfile::TempDir;

use super::client::{Connection, Ran, address, closed_loop};
use super::floor::{INSERT, TABLE, durable};
use super::quick::{self, Reads};
use super::shop::{self, Ready};
use super::{Bench, footprint};
use crate::harness::process::Program;
use crate::harness::site::{Engine, Site, lasting_port};
use crate::plan::Condition;
use crate::postgres_own::OwnServer;
use crate::prometheus::{Histogram, Scrape};
use crate::stats::Latencies;

/// Shoppers at once where throughput is measured, and where the time of one confirm is.
pub(super) const MANY: usize = 64;
pub(super) const FEW: usize = 8;
/// Commits that are timed one after the other, with nothing else to do.
const COMMITS: usize = 200;
/// How long a program of the floor may take to start.
const START: Duration = Duration::from_secs(10);

/// Orders and confirms a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) orders: f64,
    pub(super) confirms: f64,
}

impl Rates {
    /// Orders that are made and paid a second: each takes the time of both.
    pub(super) fn paid(self) -> f64 {
        1.0 / (1.0 / self.orders + 1.0 / self.confirms)
    }
}

/// What one round came to.
#[derive(Debug)]
pub(super) struct Round {
    /// The shop.
    pub(super) shop: Rates,
    /// Each commit by itself.
    pub(super) floor: Rates,
    /// All that wait in one commit; `None` where the database does that itself.
    pub(super) grouped: Option<Rates>,
    /// Of the floor that is the shop's rival at reads, reads a second.
    pub(super) floor_reads: f64,
    /// Webhooks of the floor a second.
    pub(super) floor_webhooks: f64,
    /// Commits that the shop made for each order that was paid, with everything that follows from it.
    pub(super) commits: f64,
    /// A commit alone, ms.
    pub(super) commit_ms: f64,
    /// Confirms of few shoppers.
    pub(super) confirm: Latencies,
    pub(super) reads: Reads,
    /// CPU of the shop for each order that was paid, ms.
    pub(super) cpu_ms: f64,
    /// The commits of the shop while webhooks came.
    pub(super) webhook_commits: Option<Histogram>,
}

/// All rounds, and what the shop weighed.
#[derive(Debug)]
pub(super) struct Paid {
    pub(super) rounds: Vec<Round>,
    pub(super) idle_kib: u64,
    pub(super) peak_kib: u64,
}

impl Bench<'_> {
    /// All rounds against one shop, and the checks that make them count.
    pub(super) async fn paid(&self, condition: &mut Condition) -> anyhow::Result<Paid> {
        let settings = [
            // 64 shoppers at once from one address are not to be refused.
            ("JARI_PG_CAP", "off"),
            ("JARI_RATE_LIMITS", "off"),
            ("JARI_WEBHOOK_STRANGERS", "4000000"),
            ("JARI_SITE_ROOT", self.site_root),
        ];
        let mut site = Site::open(self.lab, self.engine, 1, &settings).await?;
        let idle_kib = footprint::idle(&site).await?;
        let rival = Rival::make(self.engine).await?;
        let (mut rounds, mut confirmed) = (Vec::new(), 0);
        for _ in 0..self.size.rounds {
            let (round, paid) = self.round(&site, &rival).await?;
            rounds.push(round);
            confirmed += paid;
        }
        let peak_kib = footprint::status_kib(site.nodes[0].pid()?, "VmHWM:")?;
        footprint::pages(&site, condition).await?;
        drop(rival);
        self.check(&site, confirmed, condition).await?;
        footprint::starts(&mut site, self.size.starts, condition).await?;
        let (_, tidy) = site.close().await?;
        condition.check("nothing is left of the programs", tidy, tidy);
        Ok(Paid {
            rounds,
            idle_kib,
            peak_kib,
        })
    }

    /// Whether the gateway charged what was confirmed, once, and nothing was refused or left in doubt.
    async fn check(
        &self,
        site: &Site,
        confirmed: usize,
        condition: &mut Condition,
    ) -> anyhow::Result<()> {
        let known = site.all_known(Duration::from_secs(60)).await?;
        condition.check("nothing stays unknown", known.is_some(), known.is_some());
        let ledger = site.gateway.ledger().await?;
        let (charged, twice) = (ledger.charged_orders(), ledger.charged_twice());
        let seen = format!("{charged} of {confirmed}");
        condition.check(
            "the gateway charged every order that was told to be paid",
            charged == confirmed as u64 && charged > 0,
            seen,
        );
        condition.check("no order was charged twice", twice == 0, twice);
        let refused = site.scrape(0).await?.sum("pg_not_sent_total", &[]);
        condition.check("no confirm was refused", refused == 0.0, refused);
        Ok(())
    }

    async fn round(&self, site: &Site, rival: &Rival) -> anyhow::Result<(Round, usize)> {
        let span = self.size.span;
        let commit_ms = rival.commit_ms().await?;
        let plain = rival.start(self.lab, false).await?;
        let floor = rates(&plain, span).await?;
        let floor_reads = hammer(&plain, "/read", MANY, span).await?;
        let floor_webhooks = hammer(&plain, "/one", FEW, span).await?;
        plain.program.stop().await?;
        let Payments {
            rates: shop,
            mut paid,
            rest: seen,
            cost,
        } = self.pay(site).await?;
        let grouped = match self.engine {
            // The server writes what commits at once in one go, by itself.
            Engine::Postgres => None,
            Engine::Sqlite => {
                let program = rival.start(self.lab, true).await?;
                let rates = rates(&program, span).await?;
                program.program.stop().await?;
                Some(rates)
            }
        };
        let confirm = seen.confirm_few(site, span).await?;
        let count = paid.len() + confirm.gave.len();
        paid.truncate(2_000);
        let earlier = commits_of(&site.scrape(0).await?);
        let reads = quick::reads(site, &paid, span).await?;
        let later = commits_of(&site.scrape(0).await?);
        let round = Round {
            shop,
            floor,
            grouped,
            floor_reads,
            floor_webhooks,
            commits: cost.commits,
            commit_ms,
            confirm: confirm.took,
            reads,
            cpu_ms: cost.cpu_ms,
            webhook_commits: later.map(|later| later.since(earlier.as_ref())),
        };
        Ok((round, count))
    }

    /// Makes orders for a while, authenticates all of them off the clock, and confirms most; the rest waits for the few.
    async fn pay(&self, site: &Site) -> anyhow::Result<Payments> {
        let (shop, gateway) = (address(&site.nodes[0].url)?, address(&site.gateway.url)?);
        let span = self.size.span;
        let forever = std::iter::repeat(());
        let before = Before::now(site).await?;
        let ordered = closed_loop(shop, MANY, span, forever, async |shop, ()| {
            shop::order(shop, "").await
        });
        let ordered: Ran<_> = ordered.await.context("ordering")?;
        let ordering = before.each(site, ordered.gave.len()).await?;
        let orders = ordered.rate();
        let long = Duration::from_secs(600);
        let waiting = ordered.gave.into_iter();
        let ready = closed_loop(gateway, MANY, long, waiting, shop::authenticate);
        let mut ready = ready.await.context("authenticating")?.gave;
        let few = ready.split_off(ready.len() - ready.len() / 5);
        let before = Before::now(site).await?;
        let confirmed = closed_loop(
            shop,
            MANY,
            2 * span,
            ready.into_iter(),
            async |shop, one| {
                shop::confirm(shop, &one).await?;
                Ok(one)
            },
        );
        let confirmed = confirmed.await.context("confirming")?;
        let confirming = before.each(site, confirmed.gave.len()).await?;
        let rates = Rates {
            orders,
            confirms: confirmed.rate(),
        };
        Ok(Payments {
            rates,
            paid: confirmed.gave,
            rest: Rest(few),
            cost: ordering.and(confirming),
        })
    }
}

/// Payments of one round, and what is left to be confirmed.
struct Payments {
    rates: Rates,
    paid: Vec<Ready>,
    rest: Rest,
    cost: Cost,
}

/// What something cost the shop each time.
struct Cost {
    commits: f64,
    cpu_ms: f64,
}

impl Cost {
    /// Of something and something else.
    fn and(self, other: Self) -> Self {
        Self {
            commits: self.commits + other.commits,
            cpu_ms: self.cpu_ms + other.cpu_ms,
        }
    }
}

/// Orders that are ready and that nobody has confirmed yet.
struct Rest(Vec<Ready>);

impl Rest {
    async fn confirm_few(self, site: &Site, span: Duration) -> anyhow::Result<Ran<()>> {
        let shop = address(&site.nodes[0].url)?;
        let orders = self.0.into_iter();
        let few = closed_loop(shop, FEW, span, orders, async |shop, one| {
            shop::confirm(shop, &one).await
        });
        few.await.context("confirming with few shoppers")
    }
}

/// What the shop had used and committed before something.
struct Before {
    commits: f64,
    cpu_seconds: f64,
}

impl Before {
    async fn now(site: &Site) -> anyhow::Result<Self> {
        let usage = crate::harness::process::usage_of(site.nodes[0].pid()?)?;
        Ok(Self {
            commits: commit_count(&site.scrape(0).await?),
            cpu_seconds: usage.cpu_seconds,
        })
    }

    /// For each of so many: commits, and ms of CPU.
    async fn each(self, site: &Site, count: usize) -> anyhow::Result<Cost> {
        let now = Self::now(site).await?;
        let count = count.max(1) as f64;
        Ok(Cost {
            commits: (now.commits - self.commits) / count,
            cpu_ms: (now.cpu_seconds - self.cpu_seconds) * 1_000.0 / count,
        })
    }
}

fn commits_of(scrape: &Scrape) -> Option<Histogram> {
    scrape.histogram("database_commit_seconds", &[])
}

fn commit_count(scrape: &Scrape) -> f64 {
    scrape.sum("database_commit_seconds_count", &[])
}

/// Where the floor is: a database of the shop's kind, on the same disk.
struct Rival {
    folder: TempDir,
    server: Option<(OwnServer, String)>,
}

/// The floor's program while it runs.
struct Serving {
    program: Program,
    url: String,
}

impl Rival {
    async fn make(engine: Engine) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("making a folder")?;
        if engine == Engine::Sqlite {
            return Ok(Self {
                folder,
                server: None,
            });
        }
        let server = tokio::task::spawn_blocking(OwnServer::start).await?;
        let url = server.database("floor").await?;
        Ok(Self {
            folder,
            server: Some((server, url)),
        })
    }

    fn database(&self, name: &str) -> String {
        match &self.server {
            Some((_, url)) => url.clone(),
            None => format!("sqlite://{}", self.folder.path().join(name).display()),
        }
    }

    async fn start(&self, lab: &crate::harness::Lab, grouped: bool) -> anyhow::Result<Serving> {
        let addr = format!("127.0.0.1:{}", lasting_port()?);
        let name = if grouped { "grouped.db" } else { "floor.db" };
        let database = self.database(name);
        let mut args = ["floor", "--addr", &addr, "--database", &database]
            .map(str::to_owned)
            .to_vec();
        if grouped {
            args.push("--grouped".to_owned());
        }
        let log = self.folder.path().join("floor.log");
        let path = lab.bin_dir.join("lab");
        let mut program = Program::start("floor", &path, &args, &[], log)?;
        let begun = Instant::now();
        while Connection::open(addr.parse()?).await.is_err() {
            program.must_run()?;
            anyhow::ensure!(begun.elapsed() < START, "the floor did not start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(Serving {
            program,
            url: format!("http://{addr}"),
        })
    }

    /// The median of commits of one row, one after the other, by this process, ms.
    async fn commit_ms(&self) -> anyhow::Result<f64> {
        let url = self.database("alone.db");
        let mut took = Vec::with_capacity(COMMITS);
        if self.server.is_some() {
            let options: sqlx::postgres::PgConnectOptions = url.parse()?;
            let mut db: PgConnection = options.connect().await?;
            sqlx::query(TABLE).execute(&mut db).await?;
            for _ in 0..COMMITS {
                let begun = Instant::now();
                sqlx::query(INSERT).bind("alone").execute(&mut db).await?;
                took.push(begun.elapsed());
            }
        } else {
            let mut db: SqliteConnection = durable(&url)?.connect().await?;
            sqlx::query(TABLE).execute(&mut db).await?;
            for _ in 0..COMMITS {
                let begun = Instant::now();
                sqlx::query(INSERT).bind("alone").execute(&mut db).await?;
                took.push(begun.elapsed());
            }
        }
        let median = Latencies::of(took).percentile_ms(50.0);
        median.context("no commit was timed")
    }
}

/// The floor's orders and confirms a second.
async fn rates(floor: &Serving, span: Duration) -> anyhow::Result<Rates> {
    Ok(Rates {
        orders: hammer(floor, "/one", MANY, span).await?,
        confirms: hammer(floor, "/two", MANY, span).await?,
    })
}

/// Exchanges a second with the floor.
async fn hammer(
    floor: &Serving,
    path: &str,
    shoppers: usize,
    span: Duration,
) -> anyhow::Result<f64> {
    let addr = address(&floor.url)?;
    let body = "x".repeat(150);
    let forever = std::iter::repeat(());
    let ran = closed_loop(addr, shoppers, span, forever, async |floor, ()| {
        let said = if path == "/read" {
            floor.get(path, "", &[]).await?
        } else {
            floor.post(path, "", &[], body.clone()).await?
        };
        said.must_be(hyper::StatusCode::OK)
    });
    Ok(ran.await.context("loading the floor")?.rate())
}
