//! Webhooks that are due: drawn, delayed, doubled, swapped, dropped and sent again.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::Rng;

use super::Gateway;
use crate::scenario::Webhooks;

/// A webhook held back for a successor goes out alone after this long.
const LONGEST_HOLD_MS: u64 = 2_000;

/// One webhook to send now.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Transmission id, the same for every copy and resend.
    pub id: String,
    /// Whose wire it speaks.
    pub gateway: Gateway,
    /// How many times it was sent again.
    pub resends: u32,
    /// The body.
    pub body: Bytes,
    /// Whether it is not the gateway's own: then it bears no signature.
    pub forged: bool,
    /// Goes out once the first try of this one ended.
    follower: Option<Box<Webhook>>,
}

impl Webhook {
    /// A webhook that was not sent yet.
    pub(super) fn new(id: String, gateway: Gateway, body: Bytes) -> Self {
        Self {
            id,
            gateway,
            resends: 0,
            body,
            forged: false,
            follower: None,
        }
    }
}

/// What waits to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// By due time, then in order of entry.
    queue: BTreeMap<(u64, u64), Webhook>,
    held: Option<(u64, Webhook)>,
    entries: u64,
}

impl Outbox {
    /// Takes in a webhook, under the scenario's switches.
    pub(super) fn add(
        &mut self,
        mut webhook: Webhook,
        switches: &Webhooks,
        rng: &mut impl Rng,
        now_ms: u64,
    ) {
        let [drop, duplicate, reorder] = std::array::from_fn(|_| rng.random::<f64>());
        let due_ms = now_ms.saturating_add(switches.delay_ms.sample(rng));
        if switches.drop.hits(drop) {
            return;
        }
        if switches.duplicate.hits(duplicate) {
            self.push(due_ms, webhook.clone());
        }
        if let Some((_, held)) = self.held.take() {
            webhook.follower = Some(Box::new(held));
        } else if switches.reorder.hits(reorder) {
            self.held = Some((due_ms.saturating_add(LONGEST_HOLD_MS), webhook));
            return;
        }
        self.push(due_ms, webhook);
    }

    /// Queues a webhook past all switches.
    pub(super) fn push(&mut self, due_ms: u64, webhook: Webhook) {
        self.entries += 1;
        self.queue.insert((due_ms, self.entries), webhook);
    }

    /// Takes what is due.
    pub(super) fn due(&mut self, now_ms: u64) -> Vec<Webhook> {
        let later = self.queue.split_off(&(now_ms.saturating_add(1), 0));
        let mut due: Vec<_> = std::mem::replace(&mut self.queue, later)
            .into_values()
            .collect();
        due.extend(
            self.held
                .take_if(|(due_ms, _)| *due_ms <= now_ms)
                .map(|(_, held)| held),
        );
        due
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        let queued = self.queue.first_key_value().map(|((due_ms, _), _)| *due_ms);
        let held = self.held.as_ref().map(|(due_ms, _)| *due_ms);
        [queued, held].into_iter().flatten().min()
    }

    /// A try ended: releases its follower, and plans the next try when it failed.
    pub(super) fn tried(&mut self, mut webhook: Webhook, ok: bool, switches: &Webhooks, now: u64) {
        if let Some(follower) = webhook.follower.take() {
            self.push(now, *follower);
        }
        let wait = switches
            .resend
            .and_then(|resend| resend.wait_ms(webhook.resends));
        if let (false, Some(wait_ms)) = (ok, wait) {
            webhook.resends += 1;
            self.push(now.saturating_add(wait_ms), webhook);
        }
    }
}
