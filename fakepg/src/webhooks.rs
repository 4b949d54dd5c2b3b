//! Sends the webhooks that are due.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use reqwest::header::CONTENT_TYPE;
use tokio::sync::Semaphore;

use crate::engine::Webhook;
use crate::serve::Shared;

/// Toss waits 10 s for the answer to a webhook.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Most webhooks on their way at once; the rest wait their turn.
const MOST_AT_ONCE: usize = 256;

/// The client that sends them.
pub(crate) fn client() -> anyhow::Result<reqwest::Client> {
    // Fails when some provider is installed already, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(ANSWER_WAIT)
        .build()
        .context("build the webhook client")
}

/// Sends what is due until the gateway stops.
pub(crate) async fn pump(shared: Arc<Shared>, client: reqwest::Client) {
    let permits = Arc::new(Semaphore::new(MOST_AT_ONCE));
    loop {
        let (due, next_ms) = shared.tick();
        for webhook in due {
            let sending = send(
                Arc::clone(&shared),
                client.clone(),
                Arc::clone(&permits),
                webhook,
            );
            let stopping = shared.stopping.clone();
            // Detached: a slow receiver must hold up neither the others nor the shutdown.
            tokio::spawn(async move { stopping.run_until_cancelled(sending).await });
        }
        let wait_ms = next_ms.map(|next_ms| next_ms.saturating_sub(shared.now_ms()));
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = shared.pump.notified() => {}
            () = sleep(wait_ms) => {}
        }
    }
}

async fn sleep(wait_ms: Option<u64>) {
    match wait_ms {
        Some(wait_ms) => tokio::time::sleep(Duration::from_millis(wait_ms)).await,
        None => std::future::pending().await,
    }
}

async fn send(
    shared: Arc<Shared>,
    client: reqwest::Client,
    permits: Arc<Semaphore>,
    webhook: Webhook,
) {
    let ok = match shared.webhook_url() {
        // Nobody to tell: as good as told, or it would be tried again and again.
        None => true,
        Some(url) => {
            let _permit = permits.acquire().await;
            deliver(&shared, &client, &url, &webhook).await
        }
    };
    shared.engine(|engine, now_ms| engine.webhook_tried(webhook, ok, now_ms));
}

/// One try; only 200 counts.
async fn deliver(shared: &Shared, client: &reqwest::Client, url: &str, webhook: &Webhook) -> bool {
    let address = format!(
        "{}/webhooks/{}",
        url.trim_end_matches('/'),
        webhook.gateway.name()
    );
    let mut request = client
        .post(address)
        .header(CONTENT_TYPE, "application/json")
        .body(webhook.body.clone());
    for (name, value) in shared.engine(|engine, now_ms| engine.webhook_headers(webhook, now_ms)) {
        request = request.header(name, value);
    }
    let sent = request.send().await;
    match sent {
        Ok(response) => {
            let lenient = shared.engine(|engine, _| engine.scenario().uncertain.any_2xx_received);
            let status = response.status();
            status == reqwest::StatusCode::OK || (lenient && status.is_success())
        }
        Err(error) => {
            tracing::debug!(%error, id = webhook.id, "webhook not delivered");
            false
        }
    }
}
