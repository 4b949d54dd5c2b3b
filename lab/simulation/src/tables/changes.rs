//! The change feed, written in the transactions that change something, as the databases' triggers do it.

use payment::id::OrderId;
use server::clock::EpochMs;
use server::store::FeedPosition;

use super::Tables;

/// One entry of the change feed.
#[derive(Debug, Clone)]
pub(super) struct Change {
    number: i64,
    at: EpochMs,
    order: OrderId,
}

impl Tables {
    /// Notes that an order changed, as the triggers do.
    pub(super) fn changed(&mut self, order: &OrderId) {
        self.next_change += 1;
        self.changes.push(Change {
            number: self.next_change,
            at: self.now,
            order: order.clone(),
        });
    }

    /// The orders that changed after a position, and the position of the newest change.
    pub(crate) fn changes_after(&self, position: &FeedPosition) -> (Vec<OrderId>, FeedPosition) {
        let after: i64 = position.0.parse().unwrap_or(0);
        let first = self
            .changes
            .partition_point(|change| change.number <= after);
        let changed = self.changes[first..].iter();
        let changed = changed.map(|change| change.order.clone()).collect();
        (changed, self.end_of_changes())
    }

    pub(crate) fn end_of_changes(&self) -> FeedPosition {
        FeedPosition(self.next_change.to_string())
    }

    /// Drops the changes that were noted before a moment of the database's clock.
    pub(crate) fn sweep_changes(&mut self, before: EpochMs) {
        self.changes.retain(|change| change.at >= before);
    }
}
