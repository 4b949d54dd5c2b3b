//! Orders whose time is over: which may end, and of which the gateway must be heard first.

use payment::attempt::AttemptStatus;
use payment::id::{GatewayName, OrderId};
use payment::order::OrderStatus;
use payment::reach::Reach;
use server::clock::EpochMs;
use server::store::{AttemptId, AttemptRecord};

use super::{Order, Tables};

/// How often an attempt is asked about in vain before it keeps no place from the others.
const IN_VAIN: u32 = 7;

impl Tables {
    fn of<'a>(&'a self, order: &'a Order) -> impl Iterator<Item = &'a AttemptRecord> + Clone {
        order.attempts.iter().map(|index| &self.attempts[*index])
    }

    fn is_over(&self, order: &Order, now: EpochMs) -> bool {
        order.status == OrderStatus::Pending
            && !order.lapsed
            && order.expires_at <= now
            && !self.of(order).any(|record| record.attempt.status.is_open())
    }

    /// Whether an attempt was sent and has ended, and the gateway has not been heard about it since its order's time was
    /// over; of several that sent one payment key the newest counts.
    fn is_unheard(&self, order: &Order, record: &AttemptRecord) -> bool {
        let ended = matches!(
            record.attempt.status,
            AttemptStatus::Failed | AttemptStatus::Expired
        );
        let was_sent = |record: &AttemptRecord| record.attempt.reach != Reach::NotSent;
        let heard = self.beside.get(&record.id).and_then(|of| of.answered_at);
        let newer = |other: &AttemptRecord| {
            other.id > record.id
                && other.gateway == record.gateway
                && other.payment_key == record.payment_key
                && was_sent(other)
        };
        ended
            && was_sent(record)
            && record.payment_key.is_some()
            && heard.is_none_or(|at| at < order.expires_at)
            && !self.of(order).any(newer)
    }

    pub(crate) fn lapse_orders(&mut self, now: EpochMs) -> Vec<OrderId> {
        let ends = |order: &Order| {
            self.is_over(order, now) && !self.of(order).any(|record| self.is_unheard(order, record))
        };
        let over = self.orders.iter().filter(|(_, order)| ends(order));
        let over: Vec<OrderId> = over.map(|(id, _)| id.clone()).collect();
        for id in &over {
            if let Some(order) = self.orders.get_mut(id) {
                order.lapsed = true;
                order.status = OrderStatus::Expired;
            }
            self.changed(id);
        }
        over
    }

    /// Makes attempts due that keep orders from ending; returns how many.
    pub(crate) fn ask_before_lapse(
        &mut self,
        gateway: &GatewayName,
        now: EpochMs,
        most: u32,
    ) -> u64 {
        let mut found: Vec<(bool, EpochMs, AttemptId)> = Vec::new();
        for order in self
            .orders
            .values()
            .filter(|order| self.is_over(order, now))
        {
            for record in self.of(order) {
                let counts = record.ask_at.is_none() || record.asks < IN_VAIN;
                if record.gateway == *gateway && counts && self.is_unheard(order, record) {
                    found.push((record.ask_at.is_none(), order.expires_at, record.id));
                }
            }
        }
        // Those that are asked about first, so that the limit counts them.
        found.sort_unstable();
        found.truncate(most as usize);
        let mut armed = 0;
        for (_, _, id) in found.into_iter().filter(|(unasked, ..)| *unasked) {
            if let Some(record) = self.attempt_mut(id) {
                record.ask_at = Some(now);
                record.asks = 0;
                armed += 1;
            }
        }
        armed
    }
}
