//! A shop of its own for each test: the program, a fake gateway, a database, and shoppers.
//!
//! [`Shop::end`] checks the money of every order in the gateway's ledger against what must always hold.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fakepg::scenario::Scenario;
use serde_json::Value;
use tempfile::TempDir;

use crate::books;
use crate::link::Link;
use crate::node::{PATIENCE, free_port, launch};
use crate::postgres::Database;
use crate::postgres_own::OwnServer;

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
    Own(OwnServer, String),
}

impl Place {
    fn url(&self) -> String {
        match self {
            Self::Folder(folder) => format!("sqlite://{}", folder.path().join("jari.db").display()),
            Self::Server(database) => database.url.clone(),
            Self::Own(_, url) => url.clone(),
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

    /// A shop on PostgreSQL, and the way between them.
    pub(crate) async fn on_postgres_behind(env: &[(&str, &str)]) -> (Self, Link) {
        let database = Database::make().await;
        let link = Link::to(&database.url);
        let url = link.url(&database.url);
        let env = [env, &[("DATABASE_URL", url.as_str())]].concat();
        (Self::over(Place::Server(database), &env).await, link)
    }

    /// A shop on PostgreSQL.
    pub(crate) async fn on_postgres(env: &[(&str, &str)]) -> Self {
        let database = Database::make().await;
        Self::over(Place::Server(database), env).await
    }

    /// A shop on a PostgreSQL server of its own, to be stopped at will.
    pub(crate) async fn on_own_postgres(env: &[(&str, &str)]) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let server = tokio::task::spawn_blocking(OwnServer::start).await;
        let server = server.expect("a server");
        let url = server.database("shop").await.expect("a database");
        Self::over(Place::Own(server, url), env).await
    }

    /// The folder of the shop's own PostgreSQL server.
    pub(crate) fn own_postgres(&self) -> PathBuf {
        match &self.database {
            Place::Own(server, _) => server.server.clone(),
            Place::Folder(_) | Place::Server(_) => panic!("it has none of its own"),
        }
    }

    /// The address of the shop's database.
    pub(crate) fn database_url(&self) -> String {
        self.database.url()
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

    /// Another process on the same database, by another way.
    pub(crate) async fn another_node_through(&self, database_url: &str) -> Node {
        let mut env = self.env.clone();
        env.push(("DATABASE_URL".to_owned(), database_url.to_owned()));
        Node::start(&env).await
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

    /// Where its database is.
    pub(crate) fn database(&self) -> String {
        self.database.url()
    }

    /// Waits until the shop's own systems were told exactly this of an order.
    pub(crate) async fn until_told(&self, order: &Order, kinds: &[&str]) {
        let started = Instant::now();
        loop {
            let told = books::told(&self.database.url()).await;
            let told = told.iter().filter(|(id, ..)| *id == order.id);
            let told: Vec<_> = told.map(|(_, kind, _)| kind.as_str()).collect();
            if told == kinds {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "told {told:?}, not {kinds:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Charges and cancels in the gateway's ledger, over all attempts of an order.
    pub(crate) fn money(&self, order: &Order) -> (u64, u64) {
        let ledger = self.pg.ledger();
        let of_this = ledger
            .orders
            .iter()
            .filter(|(id, _)| id.starts_with(&order.id));
        of_this.fold((0, 0), |(charges, cancels), (_, order)| {
            (charges + order.charges, cancels + order.cancels)
        })
    }

    /// Runs an operator's command beside the shop's processes: how it ended, and what it printed.
    pub(crate) async fn command(&self, args: &[&str]) -> (i32, String) {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_jari"));
        let env = self.env.iter().map(|(name, value)| (name, value));
        command.args(args).envs(env);
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = run.await.expect("a thread").expect("the command runs");
        let code = output.status.code().expect("it ends by itself");
        let said = String::from_utf8(output.stdout).expect("text");
        (code, said + &String::from_utf8_lossy(&output.stderr))
    }

    /// The sources and the literal words of an order's evidence, oldest first.
    pub(crate) async fn evidence(&self, order: &str) -> Vec<(String, String)> {
        books::evidence(&self.database.url(), order).await
    }

    /// Changes the books behind the shop's back.
    pub(crate) async fn in_books(&self, sql: &'static str) {
        books::change(&self.database.url(), sql).await;
    }

    /// How many pieces of a product can be bought.
    pub(crate) async fn free(&self, sku: &str) -> u64 {
        let reply = Reply::of(self.get("/api/products").send().await.expect("an answer")).await;
        let shelf = reply.body.as_array().expect("a shelf");
        let product = shelf.iter().find(|product| product["sku"] == sku);
        product.expect("a product")["available"]
            .as_u64()
            .expect("a number")
    }

    /// The side effects that were queued for an order: kind and payload.
    pub(crate) async fn effects(&self, order: &Order) -> Vec<(String, String)> {
        books::effects(&self.database.url(), &order.id).await
    }

    /// [`Shop::end`], and what our books say was given back is what the gateway gave back, charge by charge.
    pub(crate) async fn end_balanced(self) {
        let ledger = self.pg.ledger();
        books::check_balances(&self.database.url(), &ledger).await;
        self.end().await;
    }

    /// What must always hold, by the gateway's ledger and our own books.
    pub(crate) async fn end(mut self) {
        let ledger = self.pg.ledger();
        self.kill();
        books::check(&self.database.url(), &ledger).await;
    }
}
