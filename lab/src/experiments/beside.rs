//! What goes on beside the confirms: light reads, and webhooks of payments that the shop does not know.

use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::json;

use crate::harness::Stage;
use crate::harness::books::TRANSMISSION_PREFIX;
use crate::pace::{Driven, Pace, drive};
use crate::stats::Latencies;

/// Pages and product lists a second, half each.
pub(super) const READS: u32 = 10;
/// Webhooks a second (measurements C4).
pub(super) const WEBHOOKS: u32 = 10;

/// One answered request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    /// Whether it was answered 200.
    pub(super) ok: bool,
    /// From the intended start to the whole answer.
    pub(super) took: Duration,
}

/// How long they took.
pub(super) fn spans(driven: &Driven<Exchange>) -> Latencies {
    Latencies::of(driven.outcomes().map(|one| one.took))
}

/// Reads `/` and `/api/products` in turn.
pub(super) async fn read(
    stage: &Stage,
    seconds: u32,
    start: Instant,
) -> anyhow::Result<Driven<Exchange>> {
    let (client, shop) = (stage.client.clone(), stage.shop.clone());
    let paths = ["/", "/api/products"].into_iter().cycle();
    let urls = paths.map(move |path| format!("{shop}{path}"));
    let get = move |url: String, due| exchange(client.get(url), due);
    drive(&Pace::steady(READS, seconds), start, urls, get).await
}

/// Sends webhooks of payments that the shop does not know.
pub(super) async fn send_webhooks(
    stage: &Stage,
    seconds: u32,
    start: Instant,
) -> anyhow::Result<Driven<Exchange>> {
    let (client, shop) = (stage.client.clone(), stage.shop.clone());
    let post = move |number: u64, due| exchange(webhook(&client, &shop, number), due);
    drive(&Pace::steady(WEBHOOKS, seconds), start, 0.., post).await
}

/// News of a payment that the shop does not know, so that storing it is all that the shop can do.
fn webhook(client: &Client, shop: &str, number: u64) -> reqwest::RequestBuilder {
    let body = json!({
        "eventType": "PAYMENT_STATUS_CHANGED",
        "createdAt": "2026-01-02T10:15:41.204170",
        "data": {"paymentKey": format!("pk_lab_{number}"), "orderId": format!("lab_{number}"),
            "status": "DONE", "totalAmount": 18_000},
    });
    let transmission = format!("{TRANSMISSION_PREFIX}{number}");
    client
        .post(format!("{shop}/webhooks/toss"))
        .header("tosspayments-webhook-transmission-id", transmission)
        .json(&body)
}

async fn exchange(request: reqwest::RequestBuilder, due: Instant) -> Exchange {
    let whole = async { request.send().await?.error_for_status()?.bytes().await };
    let ok = whole.await.is_ok();
    Exchange {
        ok,
        took: due.elapsed(),
    }
}
