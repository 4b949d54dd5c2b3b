//! One `jari` process: what it answers, and how it ends.

use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, COOKIE, HeaderMap, SET_COOKIE};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Node {
    pub(crate) url: String,
    pub(crate) client: Client,
    process: Child,
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

impl Node {
    /// Starts a process with these settings and waits until it serves.
    pub(crate) async fn start(env: &[(String, String)]) -> Self {
        let url = format!("http://127.0.0.1:{}", free_port());
        let address = url.trim_start_matches("http://").to_owned();
        Self::start_at(url, address, env).await
    }

    pub(crate) async fn start_at(url: String, address: String, env: &[(String, String)]) -> Self {
        let mut env = env.to_vec();
        env.push(("JARI_ADDR".to_owned(), address));
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client");
        let node = Self {
            url,
            client,
            process: launch(&env),
            env,
        };
        node.ready().await;
        node
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

    /// Ends the process as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ends");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Lets none of the process's files grow, as a full disk would, or again as they will.
    pub(crate) fn set_disk_full(&self, full: bool) {
        let limit = if full { "0" } else { "unlimited" };
        let told = Command::new("prlimit")
            .args(["--pid", &self.pid().to_string()])
            // Only the soft limit: whoever lowered the other could not raise it again.
            .arg(format!("--fsize={limit}:"))
            .status();
        assert!(told.expect("prlimit runs").success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }

    /// Waits for the process to end, while all else in this test goes on.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("it is ours") {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "it did not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts the process anew with the same database.
    pub(crate) async fn restart(&mut self) {
        self.process = launch(&self.env);
        self.ready().await;
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url))
    }

    /// A new shopper's order of one product.
    pub(crate) async fn order(&self, sku: &str, quantity: u32) -> Order {
        let items = json!([{"sku": sku, "quantity": quantity}]);
        self.order_of(&items, "*").await
    }

    /// A new shopper's order, by somebody who reads this language.
    pub(crate) async fn order_of(&self, items: &Value, language: &str) -> Order {
        let response = self
            .post("/api/orders")
            .header(ACCEPT_LANGUAGE, language)
            .json(&json!({"items": items}))
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

    /// Waits until this process may send confirms.
    pub(crate) async fn until_some_places(&self) {
        let started = Instant::now();
        while self
            .metric("pg_places{gateway=\"toss\",operation=\"confirm\"}")
            .await
            < 3.0
        {
            assert!(started.elapsed() < PATIENCE, "no share comes");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until one lost answer was decided about like this.
    pub(crate) async fn until_decided(&self, decision: &str) {
        let metric = format!("pg_resend_total{{gateway=\"toss\",decision=\"{decision}\"}}");
        self.until_metric(&metric, 1.0).await;
    }

    pub(crate) async fn metric(&self, start: &str) -> f64 {
        let text = self.metrics().await;
        let line = text.lines().find(|line| line.starts_with(start));
        line.and_then(|line| line.rsplit(' ').next())
            .and_then(|value| value.parse().ok())
            .unwrap_or(0.0)
    }
}

/// Starts the program.
pub(crate) fn launch(env: &[(String, String)]) -> Child {
    // A file that may not grow is an error to the program, as a full disk is, and not a signal that ends it.
    let mut command = Command::new("env");
    command.args(["--ignore-signal=XFSZ", env!("CARGO_BIN_EXE_jari"), "serve"]);
    command.stdin(Stdio::null());
    if std::env::var_os("JARI_TEST_LOG").is_none() {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    command
        .envs(env.iter().map(|(name, value)| (name, value)))
        .spawn()
        .expect("the program starts")
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
