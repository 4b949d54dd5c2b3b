//! A shop's endpoint: it answers as it is told, and remembers what it heard.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::node::PATIENCE;
use crate::shop::Shop;

/// One webhook as it came.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    pub(super) body: Value,
}

impl Heard {
    pub(super) fn id(&self) -> &str {
        self.headers["webhook-id"].to_str().expect("text")
    }

    pub(super) fn kind(&self) -> &str {
        self.body["type"].as_str().expect("a type")
    }

    /// Whether this secret signed it, by the words of Standard Webhooks: `id.timestamp.body`.
    pub(super) fn is_signed_by(&self, secret: &str) -> bool {
        let header = |name: &str| self.headers[name].to_str().expect("text");
        let key = secret.strip_prefix("whsec_").expect("a secret");
        let key = STANDARD.decode(key).expect("base64");
        let mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
        let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
        let mac = mac.chain_update(format!("{id}.{at}.{}", self.text));
        let given = header("webhook-signature").split(' ');
        let mut given = given.map(|one| one.strip_prefix("v1,").expect("version 1"));
        given.any(|one| {
            let one = STANDARD.decode(one).expect("base64");
            mac.clone().verify_slice(&one).is_ok()
        })
    }
}

#[derive(Clone, Default)]
struct Ears {
    heard: Arc<Mutex<Vec<Heard>>>,
    answers: Arc<Mutex<VecDeque<u16>>>,
}

pub(super) struct Endpoint {
    pub(super) url: String,
    ears: Ears,
}

/// Answers that never come.
pub(super) const SILENCE: u16 = 0;

impl Endpoint {
    /// One that answers with these first, and then with 204.
    pub(super) async fn open(answers: &[u16]) -> Self {
        let ears = Ears::default();
        ears.answers.lock().expect("not poisoned").extend(answers);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let router = Router::new()
            .route("/hook", post(hear))
            .with_state(ears.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, ears }
    }

    /// Makes it a shop's; its secret.
    pub(super) async fn of(&self, shop: &Shop, name: &str) -> String {
        let args = ["webhooks", "out", "set", "--shop", name, "--url", &self.url];
        secret_in(&shop.command(&args).await)
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.ears.heard.lock().expect("not poisoned").clone()
    }

    /// Waits until so many came.
    pub(super) async fn until(&self, count: usize) -> Vec<Heard> {
        let started = Instant::now();
        loop {
            let heard = self.heard();
            if heard.len() >= count {
                return heard;
            }
            assert!(started.elapsed() < PATIENCE, "only {heard:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The secret that a command printed.
pub(super) fn secret_in((code, said): &(i32, String)) -> String {
    assert_eq!(*code, 0, "{said}");
    let secret = said.lines().find(|line| line.starts_with("whsec_"));
    secret.expect("a secret").to_owned()
}

async fn hear(State(ears): State<Ears>, headers: HeaderMap, text: String) -> impl IntoResponse {
    let body = serde_json::from_str(&text).unwrap_or_default();
    let heard = Heard {
        headers,
        text,
        body,
    };
    ears.heard.lock().expect("not poisoned").push(heard);
    let answer = ears.answers.lock().expect("not poisoned").pop_front();
    if answer == Some(SILENCE) {
        std::future::pending::<()>().await;
    }
    let status = answer.map_or(Ok(StatusCode::NO_CONTENT), StatusCode::from_u16);
    (
        status.expect("a status"),
        [(header::LOCATION, "/elsewhere")],
    )
}
