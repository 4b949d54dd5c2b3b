//! The production counters of one run: a recorder for the run's own thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::world::lock;

/// The counters that a run tells of; the others are not kept.
const KEPT: [&str; 8] = [
    "pg_not_sent_total",
    "pg_resend_total",
    "http_shed_total",
    "circuit_opened_total",
    "recovery_runs_total",
    "webhook_events_total",
    "payments_alarm_total",
    "poll_answers_total",
];

#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<HashMap<Key, Arc<AtomicU64>>>);

impl Counters {
    /// Name, the label that is not the gateway's, and the count, of all that moved.
    pub(super) fn read(&self) -> Vec<((String, String), u64)> {
        let counters = lock(&self.0);
        let read = counters.iter().map(|(key, count)| {
            let label = key.labels().find(|label| label.key() != "gateway");
            let label = label.map_or("", |label| label.value());
            let name = (key.name().to_owned(), label.to_owned());
            (name, count.load(Ordering::Relaxed))
        });
        read.filter(|(_, count)| *count > 0).collect()
    }
}

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if !KEPT.contains(&key.name()) {
            return Counter::noop();
        }
        let mut counters = lock(&self.0);
        if let Some(count) = counters.get(key) {
            return Counter::from_arc(Arc::clone(count));
        }
        let count = Arc::new(AtomicU64::new(0));
        counters.insert(key.clone(), Arc::clone(&count));
        Counter::from_arc(count)
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
