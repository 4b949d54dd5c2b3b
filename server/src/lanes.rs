//! Lanes: each class of requests has bounds of its own, so that none can starve another.
//!
//! A lane holds so many requests at once; some classes work on fewer of them at a time, so that the database's queue stays
//! short for confirms. A full lane refuses at once. When the whole process has too much to do, reads are refused first,
//! then polls; confirms and webhooks only by their own bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{counter, gauge};
use payment::time::Millis;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pressure::{Level, Pressure};

/// What kind of request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A confirm, by script or by form.
    Confirm,
    /// A gateway's webhook.
    Webhook,
    /// What a shopper does before paying: an order, an attempt.
    Order,
    /// A poll, or the page that a shopper without script waits on.
    Poll,
    /// Everything that is only looked at.
    Read,
    /// Script, style and pictures: without them a shopper who comes back from the payment window must press a button.
    Asset,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 6] = [
        Self::Confirm,
        Self::Webhook,
        Self::Order,
        Self::Poll,
        Self::Read,
        Self::Asset,
    ];

    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Webhook => "webhook",
            Self::Order => "order",
            Self::Poll => "poll",
            Self::Read => "read",
            Self::Asset => "asset",
        }
    }

    /// The class of a request; `None` for what operators and their tools ask, which nothing may hold up.
    #[must_use]
    pub fn of(get: bool, path: &str) -> Option<Self> {
        let path = path.trim_matches('/');
        let mut parts = path.split('/');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        match (first, get) {
            ("healthz" | "readyz" | "metrics", true) if second.is_none() => None,
            // The console lets in a few at a time by itself.
            ("ops", _) => None,
            ("pkg" | "favicon.svg", true) => Some(Self::Asset),
            ("webhooks", false) => Some(Self::Webhook),
            ("api", false) if second == Some("payments") => Some(Self::Confirm),
            // Held for as long as the gateway takes, too.
            ("api", false) if second == Some("orders") && parts.nth(1) == Some("cancel") => {
                Some(Class::Confirm)
            }
            // The form that confirms, and the page that a shopper comes back to from the payment window.
            ("checkout", false) if parts.next() == Some("return") => Some(Self::Confirm),
            ("v1", false) if second == Some("orders") && parts.nth(1) == Some("refunds") => {
                Some(Class::Confirm)
            }
            ("checkout" | "pay", true) => Some(Self::Poll),
            ("api", true) if second == Some("orders") => Some(Self::Poll),
            (_, true) => Some(Self::Read),
            (_, false) => Some(Self::Order),
        }
    }
}

/// The bounds of one lane.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Most requests held.
    held: usize,
    /// Most of them worked on at once.
    worked_on: usize,
}

/// The bounds of a class under a cap of so many confirms in flight.
fn bounds(class: Class, cap: Option<u32>) -> Bounds {
    let same = |n| Bounds {
        held: n,
        worked_on: n,
    };
    match class {
        // Held for as long as the gateway takes: wide, so that a full cap is told as that (at least four caps).
        Class::Confirm => same(cap.map_or(8_192, |cap| cap as usize * 4).max(1_024)),
        // A commit each: as many as one write-ahead log takes within a second, a few of them at once.
        Class::Webhook => Bounds {
            held: 512,
            worked_on: 32,
        },
        Class::Order => Bounds {
            held: 512,
            worked_on: 16,
        },
        Class::Poll => Bounds {
            held: 2_048,
            worked_on: 64,
        },
        Class::Read => Bounds {
            held: 256,
            worked_on: 32,
        },
        Class::Asset => Bounds {
            held: 2_048,
            worked_on: 64,
        },
    }
}

#[derive(Debug)]
struct Lane {
    class: Class,
    bounds: Bounds,
    held: Arc<Semaphore>,
    working: Arc<Semaphore>,
    in_flight: Arc<AtomicU64>,
    /// Most held at once since it was last asked.
    peak: AtomicU64,
}

/// All lanes of one process.
#[derive(Debug)]
pub struct Lanes {
    on: bool,
    lanes: [Lane; 6],
}

/// A request's place in its lane; dropping it gives the place back.
#[must_use]
#[derive(Debug)]
pub struct Place {
    /// `None` when lanes are off.
    _held: Option<OwnedSemaphorePermit>,
    _working: Option<OwnedSemaphorePermit>,
    in_flight: Arc<AtomicU64>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Lanes {
    /// Empty lanes; `on: false` counts without ever refusing.
    #[must_use]
    pub fn new(on: bool, cap: Option<u32>) -> Self {
        let lane = |class| {
            let bounds = bounds(class, cap);
            Lane {
                class,
                bounds,
                held: Arc::new(Semaphore::new(bounds.held)),
                working: Arc::new(Semaphore::new(bounds.worked_on)),
                in_flight: Arc::default(),
                peak: AtomicU64::new(0),
            }
        };
        let lanes = Self {
            on,
            lanes: Class::ALL.map(lane),
        };
        for class in Class::ALL {
            // Both exist from the start, so that "never" can be told from "not there".
            counter!("http_shed_total", "class" => class.label()).increment(0);
        }
        lanes
    }

    fn lane(&self, class: Class) -> &Lane {
        &self.lanes[class as usize]
    }

    /// A place for a request, waiting at most `wait` for its turn to be worked on; `None` is a refusal for load.
    pub async fn enter(&self, class: Class, pressure: &Pressure, wait: Millis) -> Option<Place> {
        let lane = self.lane(class);
        let mut place = Place {
            _held: None,
            _working: None,
            in_flight: Arc::clone(&lane.in_flight),
        };
        let now = lane.in_flight.fetch_add(1, Ordering::AcqRel) + 1;
        lane.peak.fetch_max(now, Ordering::AcqRel);
        if !self.on {
            return Some(place);
        }
        let entered = lane.enter(pressure, wait).await;
        let Some((held, working)) = entered else {
            counter!("http_shed_total", "class" => class.label()).increment(1);
            return None;
        };
        (place._held, place._working) = (Some(held), Some(working));
        Some(place)
    }

    /// Whether the lane of polls was more than half full at some moment since this was last asked.
    pub fn polls_are_crowded(&self) -> bool {
        let lane = self.lane(Class::Poll);
        let peak = lane
            .peak
            .swap(lane.in_flight.load(Ordering::Acquire), Ordering::AcqRel);
        self.on && peak * 2 > lane.bounds.held as u64
    }

    /// Sets the gauges.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a lane holds far fewer than 2^52"
    )]
    pub fn sample(&self) {
        for lane in &self.lanes {
            let class = lane.class.label();
            let capacity = if self.on {
                lane.bounds.held as f64
            } else {
                f64::INFINITY
            };
            gauge!("http_lane_capacity", "class" => class).set(capacity);
            let in_flight = lane.in_flight.load(Ordering::Acquire);
            gauge!("http_in_flight", "class" => class).set(in_flight as f64);
        }
    }
}

impl Lane {
    async fn enter(
        &self,
        pressure: &Pressure,
        wait: Millis,
    ) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let refused_at = match self.class {
            Class::Read => Some(Level::Busy),
            Class::Poll => Some(Level::Overloaded),
            Class::Confirm | Class::Webhook | Class::Order | Class::Asset => None,
        };
        if refused_at.is_some_and(|level| pressure.level() >= level) {
            return None;
        }
        let held = Arc::clone(&self.held).try_acquire_owned().ok()?;
        let turn = Arc::clone(&self.working).acquire_owned();
        let working = tokio::time::timeout(wait.to_duration(), turn).await.ok()?;
        Some((held, working.ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Millis = Millis::new(5);

    #[test]
    fn every_request_has_its_class() {
        let table = [
            (false, "/api/payments/confirm", Some(Class::Confirm)),
            (false, "/checkout/ord_1/return/abc", Some(Class::Confirm)),
            (false, "/webhooks/toss", Some(Class::Webhook)),
            (false, "/api/orders", Some(Class::Order)),
            (false, "/api/orders/ord_1/attempts", Some(Class::Order)),
            (false, "/api/orders/ord_1/cancel", Some(Class::Confirm)),
            (false, "/orders/ord_1", Some(Class::Order)),
            (false, "/checkout/ord_1", Some(Class::Order)),
            (false, "/orders", Some(Class::Order)),
            (true, "/api/orders/ord_1", Some(Class::Poll)),
            (true, "/checkout/ord_1", Some(Class::Poll)),
            (true, "/checkout/ord_1/return/abc", Some(Class::Poll)),
            (false, "/v1/orders/ord_1/refunds", Some(Class::Confirm)),
            (false, "/v1/orders", Some(Class::Order)),
            (true, "/v1/orders/ord_1", Some(Class::Read)),
            (true, "/pay/ord_1/x", Some(Class::Poll)),
            (true, "/", Some(Class::Read)),
            (true, "/orders/ord_1", Some(Class::Read)),
            (true, "/api/products", Some(Class::Read)),
            (true, "/pkg/jari.wasm", Some(Class::Asset)),
            (true, "/metrics/x", Some(Class::Read)),
            (true, "/healthz", None),
            (true, "/readyz", None),
            (true, "/metrics", None),
        ];
        for (get, path, class) in table {
            assert_eq!(Class::of(get, path), class, "{path}");
        }
    }

    #[test]
    fn the_lane_of_confirms_never_hides_a_full_cap() {
        for cap in [1, 40, 400, 4_000] {
            assert!(bounds(Class::Confirm, Some(cap)).held >= 4 * cap as usize);
        }
    }

    #[tokio::test]
    async fn a_full_lane_refuses_its_own_class_only_and_a_place_comes_back() {
        let (lanes, calm) = (Lanes::new(true, Some(40)), Pressure::default());
        let mut places = Vec::new();
        for _ in 0..bounds(Class::Read, None).worked_on {
            places.push(lanes.enter(Class::Read, &calm, WAIT).await.unwrap());
        }
        assert!(lanes.enter(Class::Read, &calm, WAIT).await.is_none());
        assert!(lanes.enter(Class::Poll, &calm, WAIT).await.is_some());
        assert!(lanes.enter(Class::Confirm, &calm, WAIT).await.is_some());
        places.pop();
        assert!(lanes.enter(Class::Read, &calm, WAIT).await.is_some());
    }

    #[tokio::test]
    async fn switched_off_nothing_is_refused() {
        let (lanes, calm) = (Lanes::new(false, Some(40)), Pressure::default());
        let mut places = Vec::new();
        for _ in 0..10_000 {
            places.push(lanes.enter(Class::Read, &calm, WAIT).await.unwrap());
        }
        assert_eq!(places.len(), 10_000);
    }
}
