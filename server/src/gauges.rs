//! Busy and free of every bounded thing, sampled when somebody looks: the resource that runs dry must be visible.

use metrics::gauge;
use payment::id::GatewayName;
use payment::time::Millis;

use crate::app::{App, CANCELS, Line, OPENS};

/// Sets the gauges that are not set where they change.
pub fn sample(app: &App) {
    for line in &app.lines {
        of_line(line, app.clock.now());
    }
    app.lanes.sample();
    // The longest of the pages' steps, as the first gateway's shoppers are told it where all are equal.
    let step = app.lines.iter().map(|line| line.times.page.poll_interval);
    let after = Millis::new(app.poll_after(step.max().unwrap_or_default())).to_duration();
    gauge!("poll_after_ms").set(after.as_secs_f64() * 1_000.0);
    let pools = app.store.pools().into_iter();
    let pools = pools.chain(app.polls.pools()).chain(app.reads.pools());
    for census in pools {
        let state = |state: &'static str, value: u32| {
            gauge!("db_pool_connections", "pool" => census.pool, "state" => state)
                .set(f64::from(value));
        };
        state("busy", census.busy);
        state("idle", census.idle);
        gauge!("db_pool_max", "pool" => census.pool).set(f64::from(census.most));
    }
}

fn of_line(line: &Line, now: Millis) {
    line.breaker.look();
    let gateway = line.gateway.name();
    let set = |name: &'static str, value: f64| {
        gauge!(name, "gateway" => gateway.to_string()).set(value);
    };
    let cap = line.slots.cap();
    let limit = cap.map_or(f64::INFINITY, |_| {
        let lent = line.slots.is_lent_at(now);
        f64::from(if lent { line.slots.limit() } else { 0 })
    });
    set("pg_cap", cap.map_or(f64::INFINITY, f64::from));
    set("pg_reserve", f64::from(line.slots.reserve()));
    places(gateway, "confirm", limit);
    let count = |places: usize| u32::try_from(places).unwrap_or(u32::MAX);
    let mut operations = vec![("inquire", line.inquiry_places), ("cancel", count(CANCELS))];
    if line.gateway.capabilities().opens_by_call {
        operations.push(("open", count(OPENS)));
    }
    for (operation, most) in operations {
        places(gateway, operation, f64::from(most));
        // They exist before the first call, so that "none" can be told from "not there".
        gauge!("pg_in_flight", "gateway" => gateway.to_string(), "operation" => operation)
            .increment(0.0);
    }
    gauge!("pg_in_flight", "gateway" => gateway.to_string(), "operation" => "confirm")
        .increment(0.0);
}

fn places(gateway: &GatewayName, operation: &'static str, most: f64) {
    gauge!("pg_places", "gateway" => gateway.to_string(), "operation" => operation).set(most);
}
