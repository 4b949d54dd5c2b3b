//! The worker that tells shops' endpoints what happened to their orders, by signed webhooks (Standard Webhooks 1.0.0).
//!
//! Each delivery was queued with the notification that it sends, and is taken under a lease: dying anywhere repeats it under
//! the same id. Of one order the oldest goes first. Nothing here holds up a payment, and no shop's endpoint another's.
//! What is in doubt is not told: an endpoint hears what was learned, never that nothing is known.

use std::sync::Arc;
use std::time::Duration;

use payment::backoff::Backoff;
use payment::time::Millis;
use reqwest::header::{CONTENT_TYPE, USER_AGENT};
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::clock::EpochMs;
use crate::metrics;
use crate::random;
use crate::store::StoreError;
use crate::store::merchant::{Delivery, DeliveryEnd, DeliveryState, Endpoint, MerchantStore};
use address::Addresses;
use message::Message;

pub mod address;
pub mod message;

/// How often the worker looks.
const TICK: Millis = Millis::from_secs(1);
/// How long an endpoint has to answer, from the start of connecting (Standard Webhooks: 15 to 30 s).
const TIMEOUT: Duration = Duration::from_secs(15);
/// Part of that: to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what was taken is the taker's alone: the time-out, the waits for the database, and a good deal more.
const LEASE: Millis = Millis::from_secs(45);
/// Most in flight to one shop, of all nodes together: so many an endpoint that does not answer holds up.
const OF_SHOP: u32 = 8;
/// When one that failed is tried again.
const AGAIN: Backoff = Backoff {
    first: Millis::from_secs(5),
    longest: Millis::from_secs(3_600),
};
/// From which age on a failure is the last: three days, over a weekend.
const LONGEST_AGE: Millis = Millis::from_secs(3 * 24 * 3_600);

/// Runs until the server stops.
pub async fn run(app: Arc<App>) {
    let Some(store) = app.merchants.clone() else {
        return;
    };
    let addresses = Addresses::of(&app.config);
    let client = match client(addresses) {
        Ok(client) => client,
        Err(error) => {
            tracing::error!(%error, "no webhooks can be sent");
            return;
        }
    };
    // What is in flight when the server stops is left to the next start: it has a lease.
    let sending = TaskTracker::new();
    while !app.stopping.is_cancelled() {
        let now = app.clock.epoch();
        match store.take_deliveries(now, LEASE, OF_SHOP).await {
            Ok(taken) => {
                for delivery in taken {
                    let (app, store) = (Arc::clone(&app), Arc::clone(&store));
                    let client = client.clone();
                    sending.spawn(async move {
                        deliver(&app, store.as_ref(), (&client, addresses), &delivery).await;
                    });
                }
            }
            Err(error) => warn(&error, "deliveries could not be taken"),
        }
        match store.deliveries_waiting().await {
            Ok(waiting) => metrics::deliveries_waiting(waiting, app.clock.epoch()),
            Err(error) => warn(&error, "deliveries could not be counted"),
        }
        tokio::select! {
            () = app.stopping.cancelled() => {}
            () = tokio::time::sleep(TICK.to_duration()) => {}
        }
    }
}

fn warn(error: &StoreError, what: &'static str) {
    tracing::warn!(error = error as &dyn std::error::Error, "{what}");
}

/// A client that goes where it is sent and nowhere else: no redirects, no proxies, no addresses of ours.
fn client(addresses: Addresses) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .dns_resolver(addresses)
        .build()
}

/// Tells an endpoint once, and stores what came of it.
async fn deliver(
    app: &App,
    store: &dyn MerchantStore,
    (client, addresses): (&reqwest::Client, Addresses),
    delivery: &Delivery,
) {
    let now = app.clock.epoch();
    let told = match (&delivery.endpoint, Message::of(delivery)) {
        (Some(endpoint), Some(message)) => send(client, addresses, endpoint, &message, now).await,
        (None, _) => Err("the shop has no endpoint".to_owned()),
        (_, None) => Err("what it tells cannot be read".to_owned()),
    };
    let end = end_of(delivery, told, now);
    let own = store.end_delivery(end.clone(), app.clock.epoch()).await;
    let result = match (own, end.state) {
        (Ok(false), _) => "lost",
        (Ok(true), DeliveryState::Delivered) => "delivered",
        (Ok(true), DeliveryState::Waiting) => "failed",
        (Ok(true), DeliveryState::GivenUp) => "given_up",
        (Err(error), _) => {
            warn(&error, "a delivery could not be ended");
            "lost"
        }
    };
    metrics::delivery(result);
    let order = delivery.order_id.as_str();
    tracing::info!(
        order,
        seq = delivery.seq,
        tries = delivery.tries,
        told = end.told,
        result,
        "a webhook was sent"
    );
}

/// One exchange: the status of a success, or why there was none. What an endpoint writes is not read.
async fn send(
    client: &reqwest::Client,
    addresses: Addresses,
    endpoint: &Endpoint,
    message: &Message,
    now: EpochMs,
) -> Result<String, String> {
    let url = addresses.check(&endpoint.url)?;
    let timestamp = now.0.div_euclid(1_000);
    let signature = message.signature(&endpoint.secrets, timestamp);
    let signature = signature.ok_or("the shop's secret cannot be used")?;
    let request = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "Jari-Webhooks/1")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", signature)
        .body(message.body.clone());
    match request.send().await {
        Ok(response) if response.status().is_success() => Ok(response.status().as_str().to_owned()),
        Ok(response) => Err(response.status().as_str().to_owned()),
        Err(error) if error.is_timeout() => Err("timed out".to_owned()),
        Err(error) if error.is_connect() => Err("could not be connected to".to_owned()),
        Err(_) => Err("the connection broke".to_owned()),
    }
}

fn end_of(delivery: &Delivery, told: Result<String, String>, now: EpochMs) -> DeliveryEnd {
    let (state, told) = match told {
        Ok(told) => (DeliveryState::Delivered, told),
        Err(told) if now.since(delivery.since) >= LONGEST_AGE => (DeliveryState::GivenUp, told),
        Err(told) => (DeliveryState::Waiting, told),
    };
    DeliveryEnd {
        seq: delivery.seq,
        takes: delivery.takes,
        state,
        again: AGAIN.after(delivery.tries.saturating_sub(1), random::jitter()),
        told,
    }
}

#[cfg(test)]
mod tests {
    use payment::id::OrderId;

    use super::*;

    #[test]
    fn a_failure_is_tried_again_for_three_days_and_then_given_up() {
        let made = EpochMs(1_000);
        let delivery = |tries| Delivery {
            seq: 1,
            takes: 4,
            tries,
            since: made,
            endpoint: None,
            order_id: OrderId::parse("ord_1").unwrap(),
            reference: String::new(),
            notification: String::new(),
        };
        let day = Millis::from_secs(86_400);
        let failed = |tries, now| end_of(&delivery(tries), Err("500".to_owned()), now);
        let first = failed(1, made);
        assert_eq!((first.state, first.takes), (DeliveryState::Waiting, 4));
        assert!(first.again <= Millis::from_secs(5));
        let later = failed(20, made.plus(day));
        assert_eq!(later.state, DeliveryState::Waiting);
        assert!(later.again >= Millis::from_secs(1_800) && later.again <= Millis::from_secs(3_600));
        assert_eq!(
            failed(70, made.plus(day.times(3))).state,
            DeliveryState::GivenUp
        );
        let done = end_of(&delivery(70), Ok("204".to_owned()), made.plus(day.times(9)));
        assert_eq!(done.state, DeliveryState::Delivered);
    }
}
