//! The webhook inbox: kept raw, looked at afterwards.

use payment::id::GatewayName;
use server::clock::EpochMs;
use server::store::rules::hints::{self, Hinted};
use server::store::{AttemptId, NewWebhook, WebhookEnd, WebhookRow};

use super::Tables;

/// A stored webhook.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub(crate) gateway: GatewayName,
    pub(crate) transmission: Option<String>,
    pub(crate) received_at: EpochMs,
    pub(crate) body: Vec<u8>,
    pub(crate) tries: u32,
    /// The attempt that it named.
    pub(crate) attempt: Option<AttemptId>,
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
        if once && new.transmission.is_some() && self.webhooks.values().any(same) {
            return false;
        }
        self.next_webhook += 1;
        let row = Webhook {
            gateway: new.gateway,
            transmission: new.transmission,
            received_at: new.at,
            body: new.body.to_vec(),
            tries: 0,
            attempt: None,
            next_at: Some(new.at),
            ended: 0,
        };
        self.webhooks.insert(self.next_webhook, row);
        true
    }

    pub(crate) fn webhooks_due(&self, now: EpochMs, most: u32) -> Vec<WebhookRow> {
        let mut due: Vec<_> = self
            .webhooks
            .iter()
            .filter(|(_, webhook)| webhook.next_at.is_some_and(|at| at <= now))
            .collect();
        due.sort_by_key(|(id, webhook)| (webhook.next_at, **id));
        due.truncate(most as usize);
        let row = |(id, webhook): (&i64, &Webhook)| WebhookRow {
            id: *id,
            gateway: webhook.gateway.clone(),
            received_at: webhook.received_at,
            body: webhook.body.clone(),
            tries: webhook.tries,
        };
        due.into_iter().map(row).collect()
    }

    /// Ends a look at a webhook; whether a look that it caused has to wait.
    pub(crate) fn end_webhook(
        &mut self,
        id: i64,
        end: WebhookEnd,
        now: EpochMs,
        ends: bool,
    ) -> bool {
        let Some(webhook) = self.webhooks.get_mut(&id) else {
            return false;
        };
        // Another node has ended it meanwhile.
        if webhook.next_at.is_none() {
            return false;
        }
        webhook.tries += 1;
        match end {
            WebhookEnd::Parked(until) => webhook.next_at = Some(until),
            WebhookEnd::Hint(_)
            | WebhookEnd::Proven(_)
            | WebhookEnd::Ignored
            | WebhookEnd::Forged => {
                webhook.ended += 1;
                webhook.next_at = if ends { None } else { Some(now) };
            }
        }
        let (attempt, pause) = match end {
            WebhookEnd::Hint(attempt) => (attempt, true),
            WebhookEnd::Proven(attempt) => (attempt, false),
            WebhookEnd::Parked(_) | WebhookEnd::Ignored | WebhookEnd::Forged => return false,
        };
        webhook.attempt = Some(attempt);
        self.hint(attempt, now, pause)
    }

    /// Makes an attempt due because somebody outside said that it moved; whether that has to wait.
    pub(crate) fn hint(&mut self, id: AttemptId, now: EpochMs, pause: bool) -> bool {
        let Some(record) = self.attempt_mut(id) else {
            return false;
        };
        let found = Hinted {
            status: record.attempt.status,
            ask_at: record.ask_at,
            hint_at: record.hint_at,
        };
        let hint = hints::set(&found, now, pause);
        record.ask_at = Some(hint.ask_at);
        record.hint_at = Some(hint.hint_at);
        hint.hint_at > now
    }

    pub(crate) fn webhooks_of(&self, id: AttemptId) -> u64 {
        let of = self.webhooks.values().filter(|row| row.attempt == Some(id));
        of.count() as u64
    }

    /// Drops webhooks that are done with and came before a moment, the oldest first.
    pub(crate) fn sweep_webhooks(&mut self, before: EpochMs, most: u32) -> u64 {
        let done = |row: &Webhook| row.next_at.is_none() && row.received_at < before;
        let rows = self.webhooks.iter().filter(|(_, row)| done(row));
        let mut old: Vec<_> = rows.map(|(id, row)| (row.received_at, *id)).collect();
        old.sort_unstable();
        old.truncate(most as usize);
        for (_, id) in &old {
            self.webhooks.remove(id);
        }
        old.len() as u64
    }
}
