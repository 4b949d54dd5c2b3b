//! A shop of its own for each test: the program, a fake gateway, a database, and shoppers.
//!
//! [`Shop::end`] checks the money of every order in the gateway's ledger against what must always hold.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fakepg::scenario::Scenario;
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, SET_COOKIE};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use sqlx::Connection as _;
use tempfile::TempDir;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Shop {
    pub(crate) pg: fakepg::Handle,
    pub(crate) url: String,
    pub(crate) client: Client,
    process: Child,
    folder: TempDir,
    env: Vec<(String, String)>,
}

/// An order with its shopper's cookie.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) amount: u64,
    pub(crate) cookie: String,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.expect("a whole body");
        Self {
            status,
            headers,
            body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
        }
    }

    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// Asserts a problem answer of this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(
            (self.status, self.code()),
            (status, code),
            "{:?}",
            self.body
        );
        assert_eq!(self.headers[CONTENT_TYPE], "application/problem+json");
        assert_eq!(self.headers["cache-control"], "no-store");
        assert_eq!(
            self.headers.contains_key("retry-after"),
            status == 503 || status == 429
        );
    }

    #[track_caller]
    pub(crate) fn attempt(&self, status: &str) {
        assert_eq!(self.body["attempt"]["status"], status, "{:?}", self.body);
    }
}

/// A port that nothing listens on. Below those that the system gives to outgoing connections, so that no connection of
/// another test takes it before the server does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let spread = (std::process::id() * 7 + n) % 12_000;
        let port = 20_000 + u16::try_from(spread).expect("below 12,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
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
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let url = format!("http://127.0.0.1:{}", free_port());
        let config = fakepg::Config {
            webhook_url: Some(url.clone()),
            ..fakepg::Config::default()
        };
        let pg = fakepg::spawn(config).await.expect("the fake gateway");
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = vec![
            ("JARI_ENV".to_owned(), "development".to_owned()),
            ("JARI_FAKEPG_URL".to_owned(), pg.url()),
            (
                "JARI_ADDR".to_owned(),
                url.trim_start_matches("http://").to_owned(),
            ),
            (
                "DATABASE_URL".to_owned(),
                format!("sqlite://{}", folder.path().join("jari.db").display()),
            ),
        ];
        all.extend(
            env.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client");
        let process = launch(&all);
        let shop = Self {
            pg,
            url,
            client,
            process,
            folder,
            env: all,
        };
        shop.ready().await;
        shop
    }

    async fn ready(&self) {
        let started = Instant::now();
        while !matches!(self.get("/readyz").send().await, Ok(response) if response.status() == 200)
        {
            assert!(
                started.elapsed() < PATIENCE,
                "the server did not become ready"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn set(&self, json: Value) {
        self.pg
            .set_scenario(scenario(&json))
            .await
            .expect("the scenario is set");
    }

    /// Ends the process as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ends");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.process.wait().expect("it ends")
    }

    /// Starts the process anew with the same database.
    pub(crate) async fn restart(&mut self) {
        self.process = launch(&self.env);
        self.ready().await;
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("jari.db")
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url))
    }

    /// A new shopper's order of one product.
    pub(crate) async fn order(&self, sku: &str, quantity: u32) -> Order {
        let body = json!({"items": [{"sku": sku, "quantity": quantity}]});
        let response = self
            .post("/api/orders")
            .json(&body)
            .send()
            .await
            .expect("an answer");
        let cookie = response.headers()[SET_COOKIE]
            .to_str()
            .expect("text")
            .split(';')
            .next()
            .expect("a pair")
            .to_owned();
        let reply = Reply::of(response).await;
        assert_eq!(reply.status, 201, "{:?}", reply.body);
        Order {
            id: reply.body["orderId"].as_str().expect("an id").to_owned(),
            amount: reply.body["amount"].as_u64().expect("an amount"),
            cookie,
        }
    }

    /// A payment that the shopper authenticated in the window.
    pub(crate) fn key(&self, gateway_order_id: &str, amount: u64) -> String {
        self.pg.authenticate(gateway_order_id, amount)
    }

    pub(crate) fn confirm_request(
        &self,
        order: &Order,
        gateway_order_id: &str,
        key: &str,
    ) -> RequestBuilder {
        let body = json!({"paymentKey": key, "orderId": gateway_order_id, "amount": order.amount});
        self.post("/api/payments/confirm")
            .header(COOKIE, &order.cookie)
            .json(&body)
    }

    pub(crate) async fn confirm(&self, order: &Order, key: &str) -> Reply {
        Reply::of(
            self.confirm_request(order, &order.id, key)
                .send()
                .await
                .expect("an answer"),
        )
        .await
    }

    /// Authenticates and confirms with a page's header.
    pub(crate) async fn pay(&self, order: &Order) -> Reply {
        let key = self.key(&order.id, order.amount);
        let request = self
            .confirm_request(order, &order.id, &key)
            .header("X-Request-Timeout-Ms", "65000");
        Reply::of(request.send().await.expect("an answer")).await
    }

    /// Starts a confirm and leaves it running.
    pub(crate) fn start_pay(
        &self,
        order: &Order,
        key: &str,
    ) -> tokio::task::JoinHandle<Option<Reply>> {
        let request = self
            .confirm_request(order, &order.id, key)
            .header("X-Request-Timeout-Ms", "65000");
        tokio::spawn(async move {
            match request.send().await {
                Ok(response) => Some(Reply::of(response).await),
                Err(_) => None,
            }
        })
    }

    pub(crate) async fn poll(&self, order: &Order) -> Reply {
        let request = self
            .get(&format!("/api/orders/{}", order.id))
            .header(COOKIE, &order.cookie);
        Reply::of(request.send().await.expect("an answer")).await
    }

    pub(crate) async fn attempt(&self, order: &Order) -> Reply {
        let request = self
            .post(&format!("/api/orders/{}/attempts", order.id))
            .header(COOKIE, &order.cookie);
        Reply::of(request.json(&json!({})).send().await.expect("an answer")).await
    }

    /// Polls until the order tells this, and returns that answer. No answer on the way may be payable if `never_payable`.
    pub(crate) async fn until(&self, order: &Order, what: impl Fn(&Value) -> bool) -> Reply {
        let started = Instant::now();
        loop {
            let reply = self.poll(order).await;
            if what(&reply.body) {
                return reply;
            }
            let doubtful = matches!(
                reply.body["attempt"]["status"].as_str(),
                Some("approving" | "unknown" | "mischarged" | "cancel_requested")
            );
            assert!(
                !(doubtful && reply.body["payable"] == true),
                "payable while in doubt: {:?}",
                reply.body
            );
            assert!(started.elapsed() < PATIENCE, "never came: {:?}", reply.body);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn until_status(&self, order: &Order, status: &str) -> Reply {
        self.until(order, |body| body["status"] == status).await
    }

    pub(crate) async fn until_attempt(&self, order: &Order, status: &str) -> Reply {
        self.until(order, |body| body["attempt"]["status"] == status)
            .await
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

    pub(crate) async fn metrics(&self) -> String {
        let answer = self.get("/metrics").send().await.expect("an answer");
        answer.text().await.expect("text")
    }

    /// Waits until a metric has this value.
    pub(crate) async fn until_metric(&self, start: &str, value: f64) {
        let started = Instant::now();
        loop {
            let now = self.metric(start).await;
            if (now - value).abs() < 1e-9 {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{start} stays {now}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until one lost answer was decided about like this.
    pub(crate) async fn until_decided(&self, decision: &str) {
        let metric = format!("pg_resend_total{{gateway=\"toss\",decision=\"{decision}\"}}");
        self.until_metric(&metric, 1.0).await;
    }

    /// Starts a second process on the same database, elsewhere, and waits for it to end.
    pub(crate) async fn second_process(&self) -> std::process::ExitStatus {
        let mut env = self.env.clone();
        env.push(("JARI_ADDR".to_owned(), format!("127.0.0.1:{}", free_port())));
        let mut process = launch(&env);
        let wait = tokio::task::spawn_blocking(move || process.wait());
        wait.await.expect("a thread").expect("it ends")
    }

    pub(crate) async fn metric(&self, start: &str) -> f64 {
        let text = self.metrics().await;
        let line = text.lines().find(|line| line.starts_with(start));
        line.and_then(|line| line.rsplit(' ').next())
            .and_then(|value| value.parse().ok())
            .unwrap_or(0.0)
    }

    /// What must always hold, by the gateway's ledger and our own books.
    pub(crate) async fn end(mut self) {
        let ledger = self.pg.ledger();
        for (id, order) in &ledger.orders {
            assert!(
                order.charges <= order.cancels + 1,
                "{id} was charged twice: {order:?}"
            );
        }
        self.kill();
        let url = format!("sqlite://{}", self.database().display());
        let mut db = sqlx::SqliteConnection::connect(&url)
            .await
            .expect("the database");
        let not_sent: Vec<String> = sqlx::query_scalar(
            "SELECT idempotency_key FROM attempts WHERE reach = 'not_sent' AND idempotency_key IS NOT NULL",
        )
        .fetch_all(&mut db)
        .await
        .expect("the attempts");
        for key in not_sent {
            assert!(
                !ledger.keys.contains_key(&key),
                "a send that was proven not sent is in the ledger"
            );
        }
        let failed: Vec<(String, String)> = sqlx::query_as(
            "SELECT gateway_order_id, payment_key FROM attempts WHERE status = 'failed' AND payment_key IS NOT NULL",
        )
        .fetch_all(&mut db)
        .await
        .expect("the attempts");
        for (order, key) in failed {
            let paid_by_it = ledger
                .payments
                .get(&key)
                .is_some_and(|payment| payment.status == "DONE");
            let other: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM attempts WHERE payment_key = ?1 AND status IN ('approved', 'unknown', 'approving')",
            )
            .bind(&key)
            .fetch_one(&mut db)
            .await
            .expect("a count");
            assert!(
                !paid_by_it || other > 0,
                "{order} is failed while the gateway holds its charge"
            );
        }
        let stock: Vec<(String, i64, i64)> = sqlx::query_as(
            "SELECT p.sku, p.reserved - coalesce(sum(CASE WHEN a.status IN ('approving', 'unknown', 'awaiting_deposit', \
             'mischarged') OR (a.status = 'cancel_requested' AND a.cancel_from = 'mischarged') THEN l.quantity END), 0), \
             p.sold - coalesce(sum(CASE WHEN a.status IN ('approved', 'partially_canceled') OR (a.status = \
             'cancel_requested' AND a.cancel_from IN ('approved', 'partially_canceled')) THEN l.quantity END), 0) \
             FROM products p LEFT JOIN order_lines l ON l.sku = p.sku LEFT JOIN attempts a ON a.order_id = l.order_id \
             GROUP BY p.sku",
        )
        .fetch_all(&mut db)
        .await
        .expect("the stock");
        for (sku, reserved, sold) in stock {
            assert_eq!(
                (reserved, sold),
                (0, 0),
                "the stock of {sku} does not add up"
            );
        }
    }
}

fn launch(env: &[(String, String)]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jari"));
    command.arg("serve").stdin(Stdio::null());
    if std::env::var_os("JARI_TEST_LOG").is_none() {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    command
        .envs(env.iter().map(|(name, value)| (name, value)))
        .spawn()
        .expect("the program starts")
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
