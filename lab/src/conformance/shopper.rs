//! Where authenticated payments come from: the fake's control API, or what a person recorded.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a person did and saw.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Recorded {
    payments: VecDeque<Payment>,
    seen: BTreeMap<String, String>,
}

/// An authenticated payment that was not confirmed yet.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Payment {
    /// The order's id at the gateway.
    pub(super) order_id: String,
    /// Won.
    pub(super) amount: u64,
    /// Toss's `paymentKey`, KakaoPay's `pg_token`.
    pub(super) payment_key: String,
    /// KakaoPay's handle.
    #[serde(default)]
    pub(super) tid: String,
    /// KakaoPay's `partner_user_id`.
    #[serde(default)]
    pub(super) user_id: String,
}

/// Authenticates payments.
#[derive(Debug)]
pub(super) struct Shopper {
    client: Client,
    /// The fake's control API, if the gateway is the fake.
    control: Option<String>,
    recorded: Recorded,
    orders: u64,
    started: u128,
}

impl Shopper {
    pub(super) async fn new(
        client: Client,
        url: &str,
        recorded: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let recorded = match recorded {
            None => Recorded::default(),
            Some(path) => {
                let text =
                    std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
                serde_json::from_slice(&text).with_context(|| format!("in {}", path.display()))?
            }
        };
        let control = format!("{url}/_control");
        let health = client.get(format!("{control}/health")).send().await;
        let health: Value = match health {
            Ok(answer) if answer.status().is_success() => answer.json().await.unwrap_or_default(),
            _ => Value::Null,
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            client,
            control: (health["status"] == "ok").then_some(control),
            recorded,
            orders: 0,
            started: since_epoch.unwrap_or_default().as_millis(),
        })
    }

    /// An order id that nobody used before.
    pub(super) fn order_id(&mut self) -> String {
        self.orders += 1;
        format!("conformance_{:x}_{}", self.started, self.orders)
    }

    /// Whether the gateway authenticates on command.
    pub(super) fn is_fake(&self) -> bool {
        self.control.is_some()
    }

    /// A payment that a person authenticated, if there is another.
    pub(super) fn recorded(&mut self) -> Option<Payment> {
        self.recorded.payments.pop_front()
    }

    /// Lets the fake authenticate a payment; why not, if it does not.
    pub(super) async fn authenticate(
        &self,
        gateway: &str,
        order: &str,
        won: u64,
    ) -> Result<String, String> {
        let Some(control) = &self.control else {
            return Err("only the fake authenticates on command".to_owned());
        };
        let body = json!({"gateway": gateway, "orderId": order, "amount": won});
        let request = self.client.post(format!("{control}/payments")).json(&body);
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let told: Value = answer.json().await.map_err(|error| error.to_string())?;
        match told["paymentKey"].as_str() {
            Some(key) => Ok(key.to_owned()),
            None => Err(told.to_string()),
        }
    }

    /// What a person saw, by fact.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&str, &str)> {
        let seen = self.recorded.seen.iter();
        seen.map(|(id, saw)| (id.as_str(), saw.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::Recorded;

    #[test]
    fn the_recording_in_the_readme_can_be_read() {
        let readme = include_str!("../../README.md");
        let block = readme.split("```json\n").nth(1).expect("a block");
        let text = block.split("```").next().expect("its end");
        let recorded: Recorded = serde_json::from_str(text).expect("a recording");
        assert_eq!((recorded.payments.len(), recorded.seen.len()), (1, 2));
    }
}
