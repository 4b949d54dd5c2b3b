//! A shop of its own for each test: the program, a fake gateway, a database, and shoppers.
//!
//! [`Shop::end`] checks the money of every order in the gateway's ledger against what must always hold.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use fakepg::scenario::Scenario;
use serde_json::Value;
use tempfile::TempDir;

use crate::books;
use crate::node::{PATIENCE, free_port, launch};
use crate::postgres::Database;

pub(crate) use crate::node::{Node, Order, Reply};

/// A fake gateway, a database, and a first process, as which the shop can be used itself.
pub(crate) struct Shop {
    pub(crate) pg: fakepg::Handle,
    first: Node,
    database: Place,
    env: Vec<(String, String)>,
}

/// Where the database is.
enum Place {
    Folder(TempDir),
    Server(Database),
}

impl Place {
    fn url(&self) -> String {
        match self {
            Self::Folder(folder) => format!("sqlite://{}", folder.path().join("jari.db").display()),
            Self::Server(database) => database.url.clone(),
        }
    }
}

impl Deref for Shop {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.first
    }
}

impl DerefMut for Shop {
    fn deref_mut(&mut self) -> &mut Node {
        &mut self.first
    }
}

pub(crate) fn scenario(json: &Value) -> Scenario {
    Scenario::from_json(json.to_string().as_bytes()).expect("a scenario")
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::with(&[]).await
    }

    /// A shop with settings beyond the tests' usual ones.
    pub(crate) async fn with(env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::over(Place::Folder(folder), env).await
    }

    /// A shop on PostgreSQL.
    pub(crate) async fn on_postgres(env: &[(&str, &str)]) -> Self {
        let database = Database::make().await;
        Self::over(Place::Server(database), env).await
    }

    async fn over(database: Place, env: &[(&str, &str)]) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let address = format!("127.0.0.1:{}", free_port());
        let url = format!("http://{address}");
        let config = fakepg::Config {
            webhook_url: Some(url.clone()),
            ..fakepg::Config::default()
        };
        let pg = fakepg::spawn(config).await.expect("the fake gateway");
        let usual = [
            ("JARI_ENV", "development"),
            ("JARI_FAKEPG_URL", &pg.url()),
            ("DATABASE_URL", &database.url()),
        ];
        let all = usual.iter().chain(env);
        let all = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let all: Vec<_> = all.collect();
        let first = Node::start_at(url, address, &all).await;
        Self {
            pg,
            first,
            database,
            env: all,
        }
    }

    /// Another process on the same database, elsewhere.
    pub(crate) async fn another_node(&self) -> Node {
        Node::start(&self.env).await
    }

    pub(crate) async fn set(&self, json: Value) {
        self.pg
            .set_scenario(scenario(&json))
            .await
            .expect("the scenario is set");
    }

    /// A payment that the shopper authenticated in the window.
    pub(crate) fn key(&self, gateway_order_id: &str, amount: u64) -> String {
        self.pg.authenticate(gateway_order_id, amount)
    }

    /// Authenticates and confirms with a page's header.
    pub(crate) async fn pay(&self, order: &Order) -> Reply {
        let key = self.key(&order.id, order.amount);
        let request = self
            .confirm_request(order, &order.id, &key)
            .header("X-Request-Timeout-Ms", "65000");
        Reply::of(request.send().await.expect("an answer")).await
    }

    /// Waits until the gateway's ledger shows this.
    pub(crate) async fn until_ledger(&self, what: impl Fn(&fakepg::ledger::Ledger) -> bool) {
        let started = Instant::now();
        while !what(&self.pg.ledger()) {
            assert!(
                started.elapsed() < PATIENCE,
                "the ledger never showed it: {:?}",
                self.pg.ledger()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn charges(&self, gateway_order_id: &str) -> u64 {
        self.pg
            .ledger()
            .orders
            .get(gateway_order_id)
            .map_or(0, |order| order.charges)
    }

    pub(crate) fn confirms(&self) -> u64 {
        self.pg.ledger().calls.confirm.received
    }

    /// Starts a second process on the same database, elsewhere, and waits for it to end.
    pub(crate) async fn second_process(&self) -> std::process::ExitStatus {
        let mut env = self.env.clone();
        env.push(("JARI_ADDR".to_owned(), format!("127.0.0.1:{}", free_port())));
        let mut process = launch(&env);
        let wait = tokio::task::spawn_blocking(move || process.wait());
        wait.await.expect("a thread").expect("it ends")
    }

    /// What must always hold, by the gateway's ledger and our own books.
    pub(crate) async fn end(mut self) {
        let ledger = self.pg.ledger();
        self.kill();
        books::check(&self.database.url(), &ledger).await;
    }
}
