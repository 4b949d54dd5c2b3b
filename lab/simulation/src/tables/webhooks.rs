//! The webhook inbox: kept raw, looked at afterwards.

use payment::id::GatewayName;
use server::clock::EpochMs;
use server::store::{NewWebhook, WebhookEnd, WebhookRow};

use super::Tables;

/// A stored webhook.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub(crate) gateway: GatewayName,
    pub(crate) transmission: Option<String>,
    pub(crate) received_at: EpochMs,
    pub(crate) body: Vec<u8>,
    pub(crate) tries: u32,
    pub(crate) next_at: Option<EpochMs>,
    /// How often its look ended for good.
    pub(crate) ended: u32,
}

impl Tables {
    /// Stores a webhook; false when its transmission is stored already.
    pub(crate) fn keep_webhook(&mut self, new: NewWebhook, once: bool) -> bool {
        let same = |stored: &Webhook| {
            stored.gateway == new.gateway && stored.transmission == new.transmission
        };
        if once && new.transmission.is_some() && self.webhooks.iter().any(same) {
            return false;
        }
        self.webhooks.push(Webhook {
            gateway: new.gateway,
            transmission: new.transmission,
            received_at: new.at,
            body: new.body.to_vec(),
            tries: 0,
            next_at: Some(new.at),
            ended: 0,
        });
        true
    }

    pub(crate) fn webhooks_due(&self, now: EpochMs, most: u32) -> Vec<WebhookRow> {
        let mut due: Vec<_> = self
            .webhooks
            .iter()
            .zip(0_i64..)
            .filter(|(webhook, _)| webhook.next_at.is_some_and(|at| at <= now))
            .collect();
        due.sort_by_key(|(webhook, id)| (webhook.next_at, *id));
        due.truncate(most as usize);
        let row = |(webhook, id): (&Webhook, i64)| WebhookRow {
            id,
            gateway: webhook.gateway.clone(),
            received_at: webhook.received_at,
            body: webhook.body.clone(),
            tries: webhook.tries,
        };
        due.into_iter().map(row).collect()
    }

    pub(crate) fn end_webhook(&mut self, id: i64, end: WebhookEnd, now: EpochMs, ends: bool) {
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        let Some(webhook) = self.webhooks.get_mut(index) else {
            return;
        };
        // Another node has ended it meanwhile.
        if webhook.next_at.is_none() {
            return;
        }
        webhook.tries += 1;
        match end {
            WebhookEnd::Parked(until) => webhook.next_at = Some(until),
            WebhookEnd::Hint(_) | WebhookEnd::Ignored => {
                webhook.ended += 1;
                webhook.next_at = if ends { None } else { Some(now) };
            }
        }
        if let WebhookEnd::Hint(attempt) = end
            && let Some(record) = self.attempt_mut(attempt)
        {
            record.ask_at = Some(now);
        }
    }
}
