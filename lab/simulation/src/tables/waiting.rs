//! What waits for the gateway's word or for the clock: which rows are due, and when to look again.

use std::collections::BTreeSet;

use payment::attempt::AttemptStatus;
use payment::id::GatewayName;
use payment::time::Millis;
use server::clock::EpochMs;
use server::store::{AttemptId, AttemptRecord, Overdue};

use super::Tables;

/// Whether a state may still bring money, as the database's index of open attempts lists them.
fn is_waiting(status: AttemptStatus) -> bool {
    matches!(
        status,
        AttemptStatus::Unknown | AttemptStatus::Mischarged | AttemptStatus::CancelRequested
    )
}

impl Tables {
    pub(crate) fn due(&self, gateway: &GatewayName, now: EpochMs, most: u32) -> Vec<AttemptRecord> {
        let astray = now.plus(Millis::from_secs(1_200));
        let awaits = now.plus(Millis::from_secs(7_200));
        let is_due = |record: &&AttemptRecord| {
            let farthest = match record.attempt.status {
                AttemptStatus::AwaitingDeposit => awaits,
                _ => astray,
            };
            let due = record.ask_at.is_some_and(|at| at <= now || at > farthest);
            due && record.gateway == *gateway
        };
        let mut due: Vec<_> = self.looked_at().filter(is_due).collect();
        due.sort_by_key(|record| record.ask_at);
        due.truncate(most as usize);
        due.into_iter().cloned().collect()
    }

    /// The gateways of which attempts wait for a look.
    pub(crate) fn gateways_waiting(&self) -> Vec<GatewayName> {
        let waiting = self.looked_at();
        let gateways: BTreeSet<_> = waiting.map(|record| record.gateway.clone()).collect();
        gateways.into_iter().collect()
    }

    pub(crate) fn next_due(&self, gateway: &GatewayName) -> Option<EpochMs> {
        self.looked_at()
            .filter(|record| record.gateway == *gateway)
            .filter_map(|record| record.ask_at)
            .min()
    }

    pub(crate) fn oldest_waiting(&self, gateway: &GatewayName) -> Option<AttemptRecord> {
        let waits = |record: &&AttemptRecord| {
            record.gateway == *gateway
                && record.ask_at.is_some()
                && is_waiting(record.attempt.status)
        };
        let oldest = self.looked_at().filter(waits);
        oldest
            .min_by_key(|record| (record.unknown_since, record.id))
            .cloned()
    }

    pub(crate) fn move_look(
        &mut self,
        id: AttemptId,
        from: EpochMs,
        to: Option<EpochMs>,
        asks: u32,
    ) -> bool {
        match self.attempt_mut(id) {
            Some(record) if record.ask_at == Some(from) => {
                record.ask_at = to;
                record.asks = asks;
                record.looks += 1;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn rearm(&mut self, now: EpochMs) -> u64 {
        let mut armed = 0;
        for (row, record) in self.attempts.iter_mut().enumerate() {
            let status = record.attempt.status;
            let waits = is_waiting(status) || status == AttemptStatus::AwaitingDeposit;
            if waits && record.ask_at.is_none() && record.payment_key.is_some() {
                record.ask_at = Some(now);
                self.index.touched.push(row);
                armed += 1;
            }
        }
        armed
    }

    pub(crate) fn wake_waiting(&mut self, gateway: &GatewayName, now: EpochMs) -> u64 {
        let mut woken = 0;
        for record in &mut self.attempts {
            let later = record.ask_at.is_some_and(|at| at > now);
            if record.gateway == *gateway && later && is_waiting(record.attempt.status) {
                record.ask_at = Some(now);
                woken += 1;
            }
        }
        woken
    }

    pub(crate) fn approving_since(&self, before: EpochMs) -> Vec<AttemptId> {
        let left = |record: &&AttemptRecord| {
            record.attempt.status == AttemptStatus::Approving
                && record.claimed_at.is_some_and(|at| at < before)
        };
        self.attempts
            .iter()
            .filter(left)
            .map(|record| record.id)
            .collect()
    }

    pub(crate) fn lapsed_windows(&self, now: EpochMs, most: u32) -> Vec<AttemptId> {
        let lapsed = |record: &&AttemptRecord| {
            record.attempt.status == AttemptStatus::Ready && record.window_until <= now
        };
        let lapsed = self.attempts.iter().filter(lapsed).map(|record| record.id);
        lapsed.take(most as usize).collect()
    }

    pub(crate) fn overdue(&self, unknown_before: EpochMs) -> Overdue {
        let late = |record: &&AttemptRecord| {
            record.attempt.status == AttemptStatus::Unknown
                && record.unknown_since.is_some_and(|at| at < unknown_before)
        };
        let webhooks = self.webhooks.values();
        let parked = |row: &&super::Webhook| row.next_at.is_some() && row.tries > 0;
        Overdue {
            unknown: self.attempts.iter().filter(late).count() as u64,
            strangers: webhooks.clone().filter(|row| row.attempt.is_none()).count() as u64,
            oldest_parked: webhooks.filter(parked).map(|row| row.received_at).min(),
        }
    }
}
