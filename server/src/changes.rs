//! Poll answers without a query per poll: orders as last read, kept until the database tells that they changed.
//!
//! What tells is the change feed: triggers write the id of every order that changed into `order_changes`, in the very
//! transaction that changed it, whichever node made it. Each node reads the feed five times a second. An answer is served
//! from memory only while the feed was read within [`TRUST`], so an outcome recorded on one node shows on every other
//! within a second. Our own writes are forgotten at once besides, so that a shopper's next poll sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::counter;
use payment::id::OrderId;
use payment::time::Millis;
use payment::wire::OrderState;
use quick_cache::sync::Cache;

use crate::app::{App, patient};
use crate::clock::EpochMs;
use crate::store::{FeedPosition, Owner, StoreError};

/// How often the feed is read.
const STEP: Millis = Millis::new(200);
/// How old the last reading of the feed may be for memory to be believed.
const TRUST: Millis = Millis::new(750);
/// How long entries stay in the feed: far longer than any node's pause that is survived without starting over.
pub const KEPT: Millis = Millis::from_secs(120);
/// A reading later than this after the last one starts over: entries may have been swept.
const LONGEST_GAP: Millis = Millis::from_secs(60);
/// Most orders kept; an order is about 300 bytes.
const ORDERS: usize = 65_536;

/// An order as last read.
#[derive(Debug, Clone)]
struct Kept {
    owner: Owner,
    state: OrderState,
    /// The step of the page that waits for it.
    step: Millis,
}

/// The orders that shoppers wait for.
pub struct OrderCache {
    orders: Cache<OrderId, Arc<Kept>>,
    /// Counts what was forgotten: a reading that began before is not kept after.
    forgotten: AtomicU64,
    /// When the last good reading of the feed began, by the process's clock, plus one; zero is never.
    followed: AtomicU64,
}

impl Default for OrderCache {
    fn default() -> Self {
        Self {
            orders: Cache::new(ORDERS),
            forgotten: AtomicU64::new(0),
            followed: AtomicU64::new(0),
        }
    }
}

impl OrderCache {
    /// Drops what is kept of an order, as it changed.
    pub fn forget(&self, id: &OrderId) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.orders.remove(id);
    }

    fn forget_all(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.orders.clear();
    }

    fn get(&self, id: &OrderId, now: Millis) -> Option<Arc<Kept>> {
        let followed = self.followed.load(Ordering::SeqCst).checked_sub(1)?;
        let fresh = now.less(Millis::new(followed)) <= TRUST;
        if fresh { self.orders.get(id) } else { None }
    }

    /// Keeps what was read, unless something was forgotten since the reading began.
    fn keep(&self, id: &OrderId, kept: Arc<Kept>, begun: u64) {
        if self.forgotten.load(Ordering::SeqCst) != begun {
            return;
        }
        self.orders.insert(id.clone(), kept);
        // Forgotten between the look and the insert.
        if self.forgotten.load(Ordering::SeqCst) != begun {
            self.orders.remove(id);
        }
    }

    fn follow(&self, began: Millis) {
        self.followed.store(began.get() + 1, Ordering::SeqCst);
    }
}

/// The state of an order of this shopper, from memory if it is fresh; `None` for no such order, or another's.
///
/// # Errors
/// [`StoreError`] when it had to be read and could not.
pub async fn state_of(
    app: &App,
    owner: &Owner,
    id: &OrderId,
) -> Result<Option<OrderState>, StoreError> {
    let cache = &app.cache;
    // Memory answers an order's own shopper only: if it were quicker to say "not there" of another's order than of one
    // that never was, the time would tell them apart.
    let own = cache.get(id, app.clock.now());
    let (kept, source) = match own.filter(|kept| kept.owner == *owner) {
        Some(kept) => (kept, "cache"),
        None => {
            let begun = cache.forgotten.load(Ordering::SeqCst);
            let Some(order) = app.polls.order(id).await? else {
                return Ok(None);
            };
            let kept = Arc::new(Kept {
                state: app.order_state(&order),
                step: app.page_times(&order).poll_interval,
                owner: order.owner,
            });
            cache.keep(id, Arc::clone(&kept), begun);
            (kept, "database")
        }
    };
    counter!("poll_answers_total", "source" => source).increment(1);
    let mine = (kept.owner == *owner).then(|| OrderState {
        poll_after_ms: patient(&kept.state, app.poll_after(kept.step)),
        ..kept.state.clone()
    });
    Ok(mine)
}

/// Follows the feed until the server stops.
pub async fn run(app: Arc<App>) {
    let mut position: Option<Position> = None;
    while !app.stopping.is_cancelled() {
        let (began, wall) = (app.clock.now(), app.clock.epoch());
        match read_on(&app, position.as_ref()).await {
            Ok(reached) => {
                position = Some(Position {
                    reached,
                    began,
                    wall,
                });
                app.cache.follow(began);
            }
            // What is kept is not believed any more, so polls ask the database until the feed can be read.
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the change feed could not be read"
            ),
        }
        tokio::select! {
            // In this order, so that a simulated run repeats exactly.
            biased;
            () = app.stopping.cancelled() => {}
            () = tokio::time::sleep(STEP.to_duration()) => {}
        }
    }
}

/// How far the feed was read, and when, by both clocks: one of them stands still while the machine sleeps.
#[derive(Debug, Clone)]
struct Position {
    reached: FeedPosition,
    began: Millis,
    wall: EpochMs,
}

impl Position {
    fn is_recent(&self, app: &App) -> bool {
        app.clock.now().less(self.began) < LONGEST_GAP
            && app.clock.epoch().since(self.wall) < LONGEST_GAP
    }
}

/// Reads on from a position and forgets what changed; without one, or after too long a gap, forgets everything.
async fn read_on(app: &App, position: Option<&Position>) -> Result<FeedPosition, StoreError> {
    let Some(position) = position.filter(|position| position.is_recent(app)) else {
        let end = app.store.end_of_changes().await?;
        app.cache.forget_all();
        return Ok(end);
    };
    let (changed, reached) = app.store.changes_after(&position.reached).await?;
    for id in &changed {
        app.cache.forget(id);
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use payment::order::OrderStatus;

    use super::*;

    fn id() -> OrderId {
        OrderId::parse("ord_1").unwrap()
    }

    fn kept() -> Arc<Kept> {
        Arc::new(Kept {
            owner: Owner("o".to_owned()),
            step: Millis::from_secs(2),
            state: OrderState {
                order_id: id(),
                status: OrderStatus::Pending,
                attempt: None,
                payable: true,
                poll_after_ms: 2_000,
                deposit: None,
                closed_unpaid: false,
            },
        })
    }

    #[test]
    fn memory_is_believed_only_while_the_feed_is_followed() {
        let cache = OrderCache::default();
        cache.keep(&id(), kept(), 0);
        assert!(cache.get(&id(), Millis::ZERO).is_none(), "never followed");
        cache.follow(Millis::from_secs(1));
        assert!(cache.get(&id(), Millis::new(1_750)).is_some());
        assert!(cache.get(&id(), Millis::new(1_751)).is_none());
        cache.follow(Millis::from_secs(2));
        cache.forget(&id());
        assert!(cache.get(&id(), Millis::from_secs(2)).is_none());
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let cache = OrderCache::default();
        cache.follow(Millis::ZERO);
        let begun = cache.forgotten.load(Ordering::SeqCst);
        cache.forget(&id());
        cache.keep(&id(), kept(), begun);
        assert!(cache.get(&id(), Millis::ZERO).is_none());
    }
}
