//! The truth: what the gateway received and booked, whether or not a caller ever heard of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::engine::{Gateway, Operation};

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
    /// The counts above for each gateway alone.
    #[serde(default)]
    pub gateways: PerGateway<GatewayCounts>,
}

/// One value for each gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", default)]
pub struct PerGateway<T> {
    /// Toss Payments.
    pub toss: T,
    /// KakaoPay.
    pub kakaopay: T,
    /// Stripe.
    pub stripe: T,
}

impl<T> PerGateway<T> {
    /// The value of one gateway.
    pub fn of(&mut self, gateway: Gateway) -> &mut T {
        match gateway {
            Gateway::Toss => &mut self.toss,
            Gateway::KakaoPay => &mut self.kakaopay,
            Gateway::Stripe => &mut self.stripe,
        }
    }
}

/// What is counted for one gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayCounts {
    /// Counts per operation.
    pub calls: PerOperation<CallCounts>,
    /// Most calls being worked on at once.
    pub peak_in_flight: PerOperation<u64>,
    /// Names in bodies which no field has; only KakaoPay's calls are read so closely.
    pub unknown_fields: BTreeSet<String>,
}

/// One value for each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PerOperation<T> {
    /// Calls that open a payment.
    #[serde(default)]
    pub ready: T,
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
            Operation::Ready => &mut self.ready,
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

impl CallCounts {
    fn add(&mut self, other: Self) {
        self.received += other.received;
        self.approved += other.approved;
        self.declined += other.declined;
        self.replayed += other.replayed;
        self.in_progress += other.in_progress;
        self.limited += other.limited;
        self.lost += other.lost;
        self.failed += other.failed;
        self.dropped += other.dropped;
    }
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
    pub(crate) fn received(&mut self, gateway: Gateway, operation: Operation) {
        self.counts(gateway, operation).received += 1;
    }

    /// The counts of one operation at one gateway.
    pub(crate) fn counts(&mut self, gateway: Gateway, operation: Operation) -> &mut CallCounts {
        self.gateways.of(gateway).calls.of(operation)
    }

    /// The counts of all gateways together.
    pub(crate) fn total_calls(&self) -> PerOperation<CallCounts> {
        let mut total = PerOperation::<CallCounts>::default();
        let mut gateways = self.gateways.clone();
        for gateway in Gateway::ALL {
            for operation in Operation::ALL {
                let counts = *gateways.of(gateway).calls.of(operation);
                total.of(operation).add(counts);
            }
        }
        total
    }

    /// Notes a name that no field has.
    pub(crate) fn unknown_field(&mut self, gateway: Gateway, name: String) {
        self.gateways.of(gateway).unknown_fields.insert(name);
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

    /// Notes how many calls are being worked on, at one gateway and at all together.
    pub(crate) fn in_flight(
        &mut self,
        gateway: Gateway,
        operation: Operation,
        here: u64,
        everywhere: u64,
    ) {
        let of_gateway = &mut self.gateways.of(gateway).peak_in_flight;
        let (own, all) = (of_gateway.of(operation), self.peak_in_flight.of(operation));
        *own = (*own).max(here);
        *all = (*all).max(everywhere);
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
