//! Webhooks on their way to the server: sent again until they are taken, late, doubled, overtaken, dropped, and forged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use server::store::NewWebhook;

use crate::fault::Fault;
use crate::gateway::name;
use crate::world::{World, lock};

/// Tells the shop that a payment changed. One that is very late is always told: nothing else would make it known.
pub(crate) fn tell(world: &Arc<World>, key: &str, order_id: &str, late: bool) {
    if world.plan.keyless || (!late && world.strikes(Fault::WebhookDropped)) {
        return;
    }
    let number = {
        let mut nodes = lock(&world.nodes);
        nodes.hooks += 1;
        nodes.hooks_on_the_way += 1;
        nodes.hooks
    };
    // Most name the payment; the oldest kind names the order only.
    let body = if world.perhaps(0.85) {
        format!(
            r#"{{"eventType":"PAYMENT_STATUS_CHANGED","data":{{"paymentKey":"{key}","orderId":"{order_id}"}}}}"#
        )
    } else if late {
        format!(r#"{{"data":{{"paymentKey":"{key}"}}}}"#)
    } else {
        format!(r#"{{"secret":"ps","status":"DONE","orderId":"{order_id}"}}"#)
    };
    let transmission = world.perhaps(0.8).then(|| format!("tx-{number}"));
    if world.strikes(Fault::WebhookDoubled) {
        lock(&world.nodes).hooks_on_the_way += 1;
        tokio::spawn(deliver(
            Arc::clone(world),
            body.clone(),
            transmission.clone(),
        ));
    }
    tokio::spawn(deliver(Arc::clone(world), body, transmission));
}

async fn deliver(world: Arc<World>, body: String, transmission: Option<String>) {
    world.pause(5, 400).await;
    if world.strikes(Fault::WebhookLate) {
        world.pause(2_000, 60_000).await;
    }
    if world.strikes(Fault::WebhookOvertaken) {
        world.pause(500, 3_000).await;
    }
    for wait in [1, 4, 16, 32, 64, 64, 64, 64, 64] {
        let taken = post(&world, body.clone(), transmission.clone()).await;
        // An answer that the gateway does not hear is followed by the same transmission again.
        if taken && !world.strikes(Fault::ReplyLost) {
            break;
        }
        tokio::time::sleep(Duration::from_secs(wait)).await;
    }
    lock(&world.nodes).hooks_on_the_way -= 1;
}

/// One post to any node; true when it was stored.
async fn post(world: &Arc<World>, body: String, transmission: Option<String>) -> bool {
    let node = world.any_node();
    let Some((app, _)) = lock(&world.nodes).serving(node) else {
        return false;
    };
    world.note("hook", format_args!("to node {node}: {body}"));
    let webhook = NewWebhook {
        gateway: name(),
        transmission,
        at: app.clock.epoch(),
        headers: "{}".to_owned(),
        body: Bytes::from(body),
    };
    // A dead node answers nothing: its store's calls hang.
    let limit = Duration::from_secs(10);
    let kept = tokio::time::timeout(limit, app.store.keep_webhook(webhook)).await;
    let stored = matches!(kept, Ok(Ok(_)));
    if stored {
        app.inbox.notify_one();
    }
    stored
}

/// What others post while faults strike.
pub(crate) async fn forge(world: Arc<World>) {
    while !world.is_calm() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if !world.strikes(Fault::WebhookForged) {
            continue;
        }
        let known = {
            let ledger = lock(&world.ledger);
            let pick = usize::try_from(world.draw(0, 5)).unwrap_or(0);
            let newest = ledger.payments.iter().rev().nth(pick);
            newest.map(|(key, payment)| (key.clone(), payment.order_id.clone()))
        };
        let (key, order) = known.unwrap_or_else(|| ("pk_none".to_owned(), "ord_none".to_owned()));
        let body = match world.draw(0, 7) {
            0 => "not json".to_owned(),
            1 => r#"{"data":{"paymentKey":"pk_of_nobody","orderId":"ord_of_nobody"}}"#.to_owned(),
            2 => format!(r#"{{"data":{{"paymentKey":"pk_forged","orderId":"{order}"}}}}"#),
            3 => format!(r#"{{"orderId":"{order}","status":"CANCELED"}}"#),
            _ => format!(
                r#"{{"data":{{"paymentKey":"{key}","orderId":"{order}","status":"ABORTED"}}}}"#
            ),
        };
        post(&world, body, None).await;
    }
}
