//! The truth: what the gateway received and booked, whether or not a caller ever heard of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::Operation;

/// Width of an arrival bin.
const BIN_MS: u64 = 10;

/// Everything counted since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// Counts per operation.
    pub calls: PerOperation<CallCounts>,
    /// Most calls being worked on at once, as the gateway sees it.
    pub peak_in_flight: PerOperation<u64>,
    /// Confirms received, in bins of 10 ms; `atMs` is the bin's start in Unix milliseconds.
    pub arrivals: Vec<Arrivals>,
    /// What happened to each order.
    pub orders: BTreeMap<String, OrderCounts>,
    /// What happened under each idempotency key of a confirm.
    pub keys: BTreeMap<String, KeyCounts>,
    /// Where each payment touched since the last reset stands.
    #[serde(default)]
    pub payments: BTreeMap<String, PaymentEntry>,
}

/// One value for each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PerOperation<T> {
    /// Confirms.
    pub confirm: T,
    /// Inquiries.
    pub get: T,
    /// Cancels.
    pub cancel: T,
    /// Requests of the hosted window.
    pub window: T,
}

impl<T> PerOperation<T> {
    /// The value of one operation.
    pub fn of(&mut self, operation: Operation) -> &mut T {
        match operation {
            Operation::Confirm => &mut self.confirm,
            Operation::Get => &mut self.get,
            Operation::Cancel => &mut self.cancel,
            Operation::Window => &mut self.window,
        }
    }
}

/// How calls of one operation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallCounts {
    /// All that arrived.
    pub received: u64,
    /// Done: a charge or cancel booked, an inquiry or page served.
    pub approved: u64,
    /// Refused with a 4xx that is none of the below.
    pub declined: u64,
    /// Answered from the idempotency store.
    pub replayed: u64,
    /// Answered 409 since the first call under their key was still running.
    pub in_progress: u64,
    /// Answered 429.
    pub limited: u64,
    /// Reset, before or after the booking: the caller heard nothing.
    pub lost: u64,
    /// Answered with an injected error or redirect.
    pub failed: u64,
    /// Given up unbooked since the caller hung up.
    pub dropped: u64,
}

/// Confirms received in one bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Arrivals {
    /// Start of the bin, Unix milliseconds.
    pub at_ms: u64,
    /// How many.
    pub count: u64,
}

/// What happened to one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderCounts {
    /// Confirms received.
    pub confirms: u64,
    /// Charges booked.
    pub charges: u64,
    /// Full cancels booked: a payment's balance fell to zero.
    pub cancels: u64,
    /// Won charged.
    pub charged_won: u64,
    /// Won given back.
    pub canceled_won: u64,
}

/// What happened under one idempotency key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyCounts {
    /// Confirms received.
    pub confirms: u64,
    /// Charges booked.
    pub charges: u64,
}

/// Where one payment stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentEntry {
    /// Gateway order id.
    pub order_id: String,
    /// Status as the wire names it.
    pub status: String,
    /// Won authenticated or charged.
    pub total_amount: u64,
    /// Won that can still be cancelled.
    pub balance_amount: u64,
}

impl Ledger {
    /// Counts a received call.
    pub(crate) fn received(&mut self, operation: Operation) {
        self.calls.of(operation).received += 1;
    }

    /// Counts a received confirm by time, order and key.
    pub(crate) fn confirm_received(&mut self, order: Option<&str>, key: Option<&str>, now_ms: u64) {
        let at_ms = now_ms - now_ms % BIN_MS;
        match self.arrivals.last_mut() {
            Some(last) if last.at_ms >= at_ms => last.count += 1,
            _ => self.arrivals.push(Arrivals { at_ms, count: 1 }),
        }
        if let Some(order) = order {
            self.order(order).confirms += 1;
        }
        if let Some(key) = key {
            self.keys.entry(key.to_owned()).or_default().confirms += 1;
        }
    }

    /// Counts a booked charge.
    pub(crate) fn charged(&mut self, order: &str, key: Option<&str>, won: u64) {
        let entry = self.order(order);
        entry.charges += 1;
        entry.charged_won += won;
        if let Some(key) = key {
            self.keys.entry(key.to_owned()).or_default().charges += 1;
        }
    }

    /// Takes back a charge that a bank has undone.
    pub(crate) fn undone(&mut self, order: &str, won: u64) {
        let entry = self.order(order);
        entry.charges = entry.charges.saturating_sub(1);
        entry.charged_won = entry.charged_won.saturating_sub(won);
    }

    /// Counts a booked cancel; `full` when the payment's balance is zero now.
    pub(crate) fn canceled(&mut self, order: &str, won: u64, full: bool) {
        let entry = self.order(order);
        entry.cancels += u64::from(full);
        entry.canceled_won += won;
    }

    /// Notes how many calls are being worked on.
    pub(crate) fn in_flight(&mut self, operation: Operation, count: u64) {
        let peak = self.peak_in_flight.of(operation);
        *peak = (*peak).max(count);
    }

    fn order(&mut self, order: &str) -> &mut OrderCounts {
        self.orders.entry(order.to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_fall_into_bins_of_ten_milliseconds() {
        let mut ledger = Ledger::default();
        for at_ms in [1_000, 1_009, 1_010, 1_055] {
            ledger.confirm_received(Some("order_1"), Some("k"), at_ms);
        }
        let bins: Vec<_> = ledger
            .arrivals
            .iter()
            .map(|bin| (bin.at_ms, bin.count))
            .collect();
        assert_eq!(bins, [(1_000, 2), (1_010, 1), (1_050, 1)]);
        assert_eq!(ledger.orders["order_1"].confirms, 4);
        assert_eq!(ledger.keys["k"].confirms, 4);
    }
}
