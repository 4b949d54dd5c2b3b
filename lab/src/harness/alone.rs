//! A gateway without a shop, for clients that call it themselves.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::gateway::Gateway;
use super::process::Program;
use super::{LOOK, Lab, START_LIMIT, free_ports, is_free, now_ms};

/// The only secret that the fake gateway takes, unless told another.
const SECRET_KEY: &str = "test_sk_fake";

/// A running gateway.
#[derive(Debug)]
pub(crate) struct Alone {
    /// Its control API.
    pub(crate) gateway: Gateway,
    /// When it was opened, in Unix ms.
    pub(crate) opened_ms: u64,
    client: Client,
    program: Program,
    port: u16,
    _folder: TempDir,
}

impl Alone {
    /// Starts it and waits until it answers.
    pub(crate) async fn open(lab: &Lab) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for the log")?;
        let [port, _] = free_ports()?;
        let addr = format!("127.0.0.1:{port}");
        let opened_ms = now_ms();
        let program = Program::start(
            "fakepg",
            &lab.bin_dir.join("fakepg"),
            &["--addr".to_owned(), addr.clone()],
            &[],
            folder.path().join("fakepg.log"),
        )?;
        let client = Client::builder().no_proxy().build()?;
        let mut alone = Self {
            gateway: Gateway::new(client.clone(), format!("http://{addr}")),
            opened_ms,
            client,
            program,
            port,
            _folder: folder,
        };
        let begun = Instant::now();
        while !alone.gateway.is_alive().await {
            alone.program.must_run()?;
            if begun.elapsed() > START_LIMIT {
                bail!("the gateway did not answer: {}", alone.program.last_words());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(alone)
    }

    /// An authenticated payment's key.
    pub(crate) async fn authenticate(&self, order: &str, amount: u64) -> anyhow::Result<String> {
        let url = format!("{}/_control/payments", self.gateway.url);
        let body = json!({"orderId": order, "amount": amount});
        let answer = self.client.post(url).json(&body).send().await?;
        let made: Value = answer.error_for_status()?.json().await?;
        let key = made["paymentKey"].as_str();
        Ok(key.context("the fake gateway gave no key")?.to_owned())
    }

    /// A confirm on Toss Payments' wire, to be sent as often as one likes.
    pub(crate) fn confirm(&self, body: &Value, key: &str, timeout: Duration) -> RequestBuilder {
        confirm(&self.client, &self.gateway.url, body, key).timeout(timeout)
    }

    /// Stops it; whether it ended when asked to and nothing is left.
    pub(crate) async fn close(self) -> anyhow::Result<bool> {
        let stopped = self.program.stop().await?;
        Ok(stopped && is_free(self.port))
    }
}

/// A confirm on Toss Payments' wire, past any shop.
pub(crate) fn confirm(client: &Client, gateway: &str, body: &Value, key: &str) -> RequestBuilder {
    client
        .post(format!("{gateway}/v1/payments/confirm"))
        .basic_auth(SECRET_KEY, Some(""))
        .header("Idempotency-Key", key)
        .json(body)
}
