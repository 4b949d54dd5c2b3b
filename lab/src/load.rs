//! An open-loop run: arrivals evenly spaced, latency from the intended start, the truth from the gateway's ledger.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use payment::time::{Millis, PageTimes};
use reqwest::Client;
use serde_json::{Value, json};

use crate::shopper::{Seen, prepare, shop};

/// What to run against what.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:3000")]
    url: String,
    /// The fake gateway
    #[arg(long, default_value = "http://127.0.0.1:3900")]
    gateway: String,
    /// Shoppers a second
    #[arg(long, default_value_t = 50)]
    rate: u32,
    /// How long they keep arriving, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// What each of them buys one piece of
    #[arg(long, default_value = "mug")]
    sku: String,
    /// The gateway's scenario as JSON, set for the run and lifted after it
    #[arg(long, default_value = "{}")]
    scenario: String,
    /// How long the page holds the confirm's response, ms; as the server's JARI_RESPONSE_WAIT_MS
    #[arg(long, default_value_t = 15_000)]
    response_wait_ms: u64,
}

/// Runs the load and counts.
pub(crate) async fn run(options: Options) -> anyhow::Result<Value> {
    let client = Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(90))
        .build()?;
    let scenario: Value = serde_json::from_str(&options.scenario)?;
    control(&client, &options, &json!({})).await?;
    let shoppers = (options.rate * options.seconds) as usize;
    let mut prepared = Vec::with_capacity(shoppers);
    for _ in 0..shoppers {
        prepared.push(prepare(&client, &options.url, &options.gateway, &options.sku).await?);
    }
    client
        .delete(format!("{}/_control/ledger", options.gateway))
        .send()
        .await?
        .error_for_status()?;
    control(&client, &options, &scenario).await?;

    let times = PageTimes {
        response_wait: Millis::new(options.response_wait_ms),
        ..PageTimes::DEFAULT
    };
    let start = Instant::now();
    let mut running = Vec::with_capacity(shoppers);
    let mut lag = Duration::ZERO;
    for (index, prepared) in prepared.into_iter().enumerate() {
        let intended = start
            + Duration::from_secs_f64(f64::from(u32::try_from(index)?) / f64::from(options.rate));
        tokio::time::sleep_until(intended.into()).await;
        lag = lag.max(intended.elapsed());
        running.push(tokio::spawn(shop(
            client.clone(),
            options.url.clone(),
            prepared,
            times,
            intended,
        )));
    }
    let mut seen = Vec::with_capacity(shoppers);
    for shopper in running {
        seen.push(shopper.await?);
    }
    control(&client, &options, &json!({})).await?;
    let ledger = client
        .get(format!("{}/_control/ledger", options.gateway))
        .send()
        .await?;
    let ledger: Value = ledger.error_for_status()?.json().await?;
    ensure!(
        ledger["calls"]["confirm"]["received"].as_u64() > Some(0),
        "not valid: the gateway was never reached"
    );
    Ok(report(&options, &seen, &ledger, lag))
}

async fn control(client: &Client, options: &Options, scenario: &Value) -> anyhow::Result<()> {
    let url = format!("{}/_control/scenario", options.gateway);
    client
        .put(url)
        .json(scenario)
        .send()
        .await?
        .error_for_status()?;
    Ok(())
}

fn report(options: &Options, seen: &[Seen], ledger: &Value, lag: Duration) -> Value {
    let mut stages: BTreeMap<String, u32> = BTreeMap::new();
    let mut refusals: BTreeMap<&str, u32> = BTreeMap::new();
    for seen in seen {
        let name = format!("{:?}", seen.stage);
        *stages
            .entry(name.split('(').next().unwrap_or_default().to_owned())
            .or_default() += 1;
        if let Some(code) = seen.refused {
            *refusals.entry(code.as_str()).or_default() += 1;
        }
    }
    let mut answered: Vec<_> = seen.iter().filter_map(|seen| seen.answered).collect();
    answered.sort_unstable();
    let mut took: Vec<_> = seen.iter().map(|seen| seen.took).collect();
    took.sort_unstable();
    let orders = ledger["orders"].as_object();
    let twice = orders
        .into_iter()
        .flatten()
        .filter(|(_, order)| order["charges"].as_u64() > Some(1))
        .count();
    json!({
        "arrivalsPerSecond": options.rate,
        "shoppers": seen.len(),
        "pagesEndedAs": stages,
        "refusals": refusals,
        "confirmAnswerMs": {"p50": percentile(&answered, 50), "p95": percentile(&answered, 95)},
        "untilKnownMs": {"p50": percentile(&took, 50), "p95": percentile(&took, 95)},
        "gateway": {
            "confirms": ledger["calls"]["confirm"]["received"],
            "approved": ledger["calls"]["confirm"]["approved"],
            "peakInFlight": ledger["peakInFlight"]["confirm"],
            "ordersChargedTwice": twice,
        },
        "driverLagMs": lag.as_millis(),
    })
}

fn percentile(sorted: &[Duration], percent: usize) -> Option<u128> {
    let index = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(index).map(Duration::as_millis)
}
