//! The fake gateway's control API: scenario, ledger, health.

use anyhow::Context as _;
use reqwest::Client;
use serde_json::{Value, json};

/// A running fake gateway.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    client: Client,
    /// Its base URL, without a slash at its end.
    pub(crate) url: String,
}

impl Gateway {
    /// The gateway at a URL.
    pub(crate) const fn new(client: Client, url: String) -> Self {
        Self { client, url }
    }

    /// Replaces the whole scenario.
    pub(crate) async fn set(&self, scenario: &Value) -> anyhow::Result<()> {
        let request = self.client.put(self.control("scenario")).json(scenario);
        let answer = request.send().await.context("setting the scenario")?;
        answer
            .error_for_status()
            .with_context(|| format!("the scenario {scenario}"))?;
        Ok(())
    }

    /// Ends every payment that still waits for its confirm, so that an inquiry about a call that was lost before its
    /// booking gets a final answer.
    pub(crate) async fn expire_unconfirmed(&self) -> anyhow::Result<()> {
        self.set(&json!({"confirmWindowMs": 1})).await
    }

    /// What it received and booked since the last reset.
    pub(crate) async fn ledger(&self) -> anyhow::Result<Ledger> {
        let answer = self.client.get(self.control("ledger")).send().await?;
        Ok(Ledger(answer.error_for_status()?.json().await?))
    }

    /// How often one order was confirmed and how often it was charged, so far.
    pub(crate) async fn order(&self, gateway_order_id: &str) -> anyhow::Result<(u64, u64)> {
        let url = self.control(&format!("ledger/orders/{gateway_order_id}"));
        let order = self.client.get(url).send().await?.error_for_status()?;
        let order: Value = order.json().await?;
        let count = |name: &str| order[name].as_u64().unwrap_or(0);
        Ok((count("confirms"), count("charges")))
    }

    /// Counts anew.
    pub(crate) async fn reset_ledger(&self) -> anyhow::Result<()> {
        let answer = self.client.delete(self.control("ledger")).send().await?;
        answer.error_for_status()?;
        Ok(())
    }

    /// Whether it answers.
    pub(crate) async fn is_alive(&self) -> bool {
        let answer = self.client.get(self.control("health")).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    fn control(&self, what: &str) -> String {
        format!("{}/_control/{what}", self.url)
    }
}

/// The gateway's truth.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Value);

#[cfg(test)]
impl From<Value> for Ledger {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl Ledger {
    /// A count of confirm calls, such as `received` or `approved`.
    pub(crate) fn confirms(&self, what: &str) -> u64 {
        self.calls("confirm", what)
    }

    /// A count of calls of one operation.
    pub(crate) fn calls(&self, operation: &str, what: &str) -> u64 {
        self.0["calls"][operation][what].as_u64().unwrap_or(0)
    }

    /// The most confirms that the gateway worked on at once.
    pub(crate) fn peak_confirms(&self) -> u64 {
        self.0["peakInFlight"]["confirm"].as_u64().unwrap_or(0)
    }

    /// How often an order was charged.
    pub(crate) fn charges(&self, gateway_order_id: &str) -> u64 {
        self.0["orders"][gateway_order_id]["charges"]
            .as_u64()
            .unwrap_or(0)
    }

    /// How often an order was charged, less how often all of it was given back.
    pub(crate) fn net_charges(&self, gateway_order_id: &str) -> i64 {
        let count = |what: &str| {
            self.0["orders"][gateway_order_id][what]
                .as_i64()
                .unwrap_or(0)
        };
        count("charges") - count("cancels")
    }

    /// What was given back of an order, in won.
    pub(crate) fn canceled_won(&self, gateway_order_id: &str) -> u64 {
        self.0["orders"][gateway_order_id]["canceledWon"]
            .as_u64()
            .unwrap_or(0)
    }

    /// Whether a confirm with this idempotency key ever came.
    pub(crate) fn saw_key(&self, idempotency_key: &str) -> bool {
        self.0["keys"].get(idempotency_key).is_some()
    }

    /// Whether a payment is in this status, by the wire's name.
    pub(crate) fn payment_is(&self, payment_key: &str, status: &str) -> bool {
        self.0["payments"][payment_key]["status"] == status
    }

    /// When confirms arrived, in bins of 10 ms: the bin's start in Unix ms, and how many.
    pub(crate) fn arrivals(&self) -> Vec<(u64, u64)> {
        let bins = self.0["arrivals"].as_array().into_iter().flatten();
        let bin = |bin: &Value| Some((bin["atMs"].as_u64()?, bin["count"].as_u64()?));
        bins.filter_map(bin).collect()
    }

    /// How many orders were charged.
    pub(crate) fn charged_orders(&self) -> u64 {
        let orders = self.0["orders"].as_object();
        let charged = |order: &&Value| order["charges"].as_u64() > Some(0);
        orders.map_or(0, |orders| orders.values().filter(charged).count() as u64)
    }

    /// How many orders were charged more than once.
    pub(crate) fn charged_twice(&self) -> u64 {
        let orders = self.0["orders"].as_object();
        let twice = |order: &&Value| order["charges"].as_u64() > Some(1);
        orders.map_or(0, |orders| orders.values().filter(twice).count() as u64)
    }
}
