//! A shop that talks to a gateway of its own.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use fakepg::ledger::Ledger;
use fakepg::{Config, Handle, spawn};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

pub(crate) const AUTH: &str = "Basic dGVzdF9za19mYWtlOg==";

/// A shop and its gateway.
pub(crate) struct Shop {
    pub(crate) pg: Handle,
    pub(crate) http: Client,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"]
            .as_str()
            .expect("an error code")
            .to_owned()
    }

    /// Status and error code in one.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.code())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }
}

pub(crate) async fn read(request: RequestBuilder) -> reqwest::Result<Reply> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Reply {
        status,
        headers,
        body: response.bytes().await?,
    })
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let pg = spawn(config).await.expect("the gateway starts");
        Self { pg, http: client() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.pg.url()))
            .header("authorization", AUTH)
    }

    pub(crate) fn confirm_request(
        &self,
        payment_key: &str,
        order: &str,
        won: u64,
    ) -> RequestBuilder {
        let body = json!({"paymentKey": payment_key, "orderId": order, "amount": won});
        self.request(Method::POST, "/v1/payments/confirm")
            .json(&body)
    }

    pub(crate) async fn confirm(&self, payment_key: &str, order: &str, won: u64) -> Reply {
        read(self.confirm_request(payment_key, order, won))
            .await
            .expect("an answer")
    }

    /// Confirms under an idempotency key.
    pub(crate) async fn keyed(
        &self,
        payment_key: &str,
        order: &str,
        key: &str,
    ) -> reqwest::Result<Reply> {
        read(
            self.confirm_request(payment_key, order, 1_000)
                .header("idempotency-key", key),
        )
        .await
    }

    /// Authenticates and confirms 1,000 won for an order.
    pub(crate) async fn buy(&self, order: &str) -> reqwest::Result<Reply> {
        let payment_key = self.pg.authenticate(order, 1_000);
        read(self.confirm_request(&payment_key, order, 1_000)).await
    }

    /// A paid order of 1,000 won; gives its payment key.
    pub(crate) async fn paid(&self, order: &str) -> String {
        let payment_key = self.pg.authenticate(order, 1_000);
        assert_eq!(self.confirm(&payment_key, order, 1_000).await.status, 200);
        payment_key
    }

    pub(crate) async fn inquire(&self, payment_key: &str) -> Reply {
        let path = format!("/v1/payments/{payment_key}");
        read(self.request(Method::GET, &path))
            .await
            .expect("an answer")
    }

    pub(crate) async fn cancel(&self, payment_key: &str, body: Value) -> Reply {
        let path = format!("/v1/payments/{payment_key}/cancel");
        read(self.request(Method::POST, &path).json(&body))
            .await
            .expect("an answer")
    }

    pub(crate) async fn scenario(&self, scenario: Value) {
        let url = format!("{}/_control/scenario", self.pg.url());
        let reply = read(self.http.put(url).json(&scenario))
            .await
            .expect("an answer");
        assert_eq!(reply.status, 200, "{scenario}: {:?}", reply.body);
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.pg.ledger()
    }

    pub(crate) fn charges(&self, order: &str) -> u64 {
        self.ledger()
            .orders
            .get(order)
            .map_or(0, |order| order.charges)
    }

    /// Waits until the ledger says so.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Ledger) -> bool) {
        until(what, || async { holds(&self.ledger()) }).await;
    }
}

/// A client which keeps no connections, so that one test call is one connection.
pub(crate) fn client() -> Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client")
}

/// Polls until a condition holds; fails after ten seconds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// One webhook as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn id(&self) -> &str {
        self.headers["tosspayments-webhook-transmission-id"]
            .to_str()
            .expect("text")
    }

    pub(crate) fn resends(&self) -> &str {
        self.headers["tosspayments-webhook-transmission-retried-count"]
            .to_str()
            .expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// Order and status it tells of.
    pub(crate) fn tells(&self) -> (String, String) {
        let json = self.json();
        let text = |name: &str| json["data"][name].as_str().expect("text").to_owned();
        (text("orderId"), text("status"))
    }
}

/// Takes webhooks; answers 200 once the first few were refused with 500.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    refusals: Arc<Mutex<u32>>,
}

impl Receiver {
    pub(crate) async fn open(refusals: u32) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("binds");
        let receiver = Self {
            url: format!("http://{}", listener.local_addr().expect("an address")),
            received: Arc::default(),
            refusals: Arc::new(Mutex::new(refusals)),
        };
        let router = Router::new()
            .route("/webhooks/toss", post(receive))
            .with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    pub(crate) fn all(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }

    /// Waits for so many webhooks.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Received> {
        until("the webhooks come", || async { self.all().len() >= count }).await;
        self.all()
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    receiver
        .received
        .lock()
        .expect("no panic")
        .push(Received { headers, body });
    let mut refusals = receiver.refusals.lock().expect("no panic");
    match refusals.checked_sub(1) {
        Some(left) => {
            *refusals = left;
            StatusCode::INTERNAL_SERVER_ERROR
        }
        None => StatusCode::OK,
    }
}
