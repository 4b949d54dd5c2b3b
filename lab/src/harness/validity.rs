//! What every condition must show before its figures prove anything (measurements, preamble).

use std::time::Duration;

use super::books::Books;
use super::gateway::Ledger;
use super::site::Site;
use super::truth::Truth;
use super::{Closed, Stage, now_ms};
use crate::pace::Driven;
use crate::plan::Condition;
use crate::prometheus::Scrape;
use crate::stats::{Latencies, rounded};

/// Arrivals later than this (p99, ms) measure the driver, not the server.
const MOST_LAG_MS: f64 = 100.0;

/// What the clocks of one machine's programs may differ by, ms.
const CLOCK_MS: u64 = 1_000;

/// The checks below, for the plan.
pub(crate) const GUARD: [&str; 9] = [
    "the gateway's ledger shows confirms and the gateway answers at the end",
    "every arrival started, and p99 of their lateness is at most 100 ms",
    "the database holds as many orders as were sent",
    "afterwards nothing is approving or unknown any more",
    "refusals before a send are as many in the metrics as in the database",
    "no order is charged twice in the ledger",
    "percentiles agree with shares counted apart",
    "shop and gateway tell times within the run, in UTC",
    "both programs ended when asked to, and none of their processes and ports is left",
];

/// The guard for a plan, and what a condition needs beyond it.
pub(crate) fn guard(more: &[&str]) -> Vec<String> {
    GUARD
        .iter()
        .chain(more)
        .map(|line| (*line).to_owned())
        .collect()
}

/// The truth after a condition.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The gateway's.
    pub(crate) ledger: Ledger,
    /// The shop's metrics at its end.
    pub(crate) scrape: Scrape,
    /// The shop's database.
    pub(crate) books: Books,
}

/// Waits until everything is known (at most `limit`), closes the stage and checks what always must hold.
pub(crate) async fn end(
    stage: Stage,
    condition: &mut Condition,
    orders_sent: usize,
    limit: Duration,
) -> anyhow::Result<Ended> {
    let drained = stage.drained(limit).await?;
    let alive = stage.gateway.is_alive().await;
    let scrape = stage.scrape().await?;
    // A gateway that died saw nothing that anybody can count: that is a check below, not the run's end.
    let ledger = match stage.gateway.ledger().await {
        Ok(ledger) => ledger,
        Err(_) if !alive => Ledger::default(),
        Err(error) => return Err(error),
    };
    let opened_ms = stage.opened_ms;
    let Closed { books, tidy } = stage.close().await?;
    let received = ledger.confirms("received");
    condition.check("the gateway saw confirms", received > 0, received);
    condition.check("the gateway is alive at the end", alive, alive);
    let held = books.orders.len();
    let seen = format!("{held} of {orders_sent}");
    condition.check(
        "the database holds every order sent",
        held == orders_sent,
        seen,
    );
    let open = books.attempts_in("approving") + books.attempts_in("unknown");
    condition.check(
        "everything is known",
        drained && open == 0,
        format!("{open} open"),
    );
    let counted = scrape.sum("pg_not_sent_total", &[]);
    let agree = (counted - books.not_sent as f64).abs() < 0.5;
    let seen = format!("{counted} counted, {} stored", books.not_sent);
    condition.check("metrics and database agree about refusals", agree, seen);
    let twice = ledger.charged_twice();
    condition.check("no order is charged twice", twice == 0, twice);
    condition.check("nothing is left of the programs", tidy, tidy);
    times(condition, opened_ms, &ledger, books.evidence_at);
    condition.figure("ordersPaid", books.orders_in("paid"));
    condition.figure("attempts", &books.attempts);
    condition.figure("everUnknown", books.ever_unknown);
    condition.figure("pgCalls", received);
    condition.figure("pgPeakInFlight", ledger.peak_confirms());
    condition.figure("notSent", scrape.by("pg_not_sent_total", "reason"));
    condition.figure("resends", scrape.by("pg_resend_total", "decision"));
    Ok(Ended {
        ledger,
        scrape,
        books,
    })
}

/// The checks of [`end_site`], for the plan.
pub(crate) const SITE_GUARD: [&str; 5] = [
    "the gateway's ledger shows confirms and the gateway answers at the end",
    "the database holds as many orders as were made",
    "shop and gateway tell times within the run, in UTC",
    "nothing is in doubt any more, and nobody was charged twice: both are criteria",
    "all programs ended when asked to, and none of their processes and ports is left",
];

/// The guard of a site for a plan, and what a condition needs beyond it.
pub(crate) fn site_guard(more: &[&str]) -> Vec<String> {
    SITE_GUARD
        .iter()
        .chain(more)
        .map(|line| (*line).to_owned())
        .collect()
}

/// Closes a site and checks what always must hold; what must not be in its rows are criteria of their own.
pub(crate) async fn end_site(
    site: Site,
    condition: &mut Condition,
    ledger: &Ledger,
) -> anyhow::Result<Truth> {
    let alive = site.gateway.is_alive().await;
    let (opened_ms, prepared) = (site.opened_ms, site.prepared());
    let (truth, tidy) = site.close().await?;
    let received = ledger.confirms("received");
    condition.check("the gateway saw confirms", received > 0, received);
    condition.check("the gateway is alive at the end", alive, alive);
    let held = truth.orders.len();
    let seen = format!("{held} of {prepared}");
    condition.check(
        "the database holds every order made",
        held == prepared,
        seen,
    );
    times(condition, opened_ms, ledger, truth.evidence_at);
    condition.check("nothing is left of the programs", tidy, tidy);
    condition.figure("pgCalls", received);
    Ok(truth)
}

/// Checks that what shop and gateway say of time lies within the run: a time zone's shift would be hours.
fn times(
    condition: &mut Condition,
    opened_ms: u64,
    ledger: &Ledger,
    evidence_at: Option<(u64, u64)>,
) {
    let run = opened_ms.saturating_sub(CLOCK_MS)..=now_ms().saturating_add(CLOCK_MS);
    let bins = ledger.arrivals();
    let gateway = bins.first().zip(bins.last());
    let told = [gateway.map(|(first, last)| (first.0, last.0)), evidence_at];
    let within = |(first, last): &(u64, u64)| run.contains(first) && run.contains(last);
    let seen = format!("{told:?} within {run:?}");
    condition.check(
        "times are of the run, in UTC",
        told.iter().flatten().all(within),
        seen,
    );
}

/// Checks that all arrivals started, and in time.
pub(crate) fn arrivals<T>(
    condition: &mut Condition,
    what: &str,
    planned: usize,
    driven: &Driven<T>,
) {
    let started = driven.arrived.len();
    let seen = format!("{started} of {planned}");
    condition.check(
        &format!("{what}: every one started"),
        started == planned && planned > 0,
        seen,
    );
    let lag = driven.late.percentile_ms(99.0).unwrap_or(f64::INFINITY);
    let seen = format!("p99 {} ms late", rounded(lag));
    condition.check(
        &format!("{what}: started in time"),
        lag <= MOST_LAG_MS,
        seen,
    );
    condition.figure(&format!("{what}LateP99Ms"), rounded(lag));
}

/// Notes spans, and checks that their percentile and share tell the same story.
pub(crate) fn latencies(condition: &mut Condition, what: &str, spans: &Latencies) {
    let summary = spans.summary();
    condition.check(
        &format!("{what}: p95 and share agree"),
        spans.agrees(95.0),
        &summary,
    );
    condition.figure(what, summary);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driven(late: Duration, count: usize) -> Driven<()> {
        Driven {
            arrived: vec![(Duration::ZERO, ()); count],
            late: Latencies::of(vec![late; count]),
        }
    }

    #[test]
    fn times_of_another_zone_are_not_valid() {
        let valid = |shift: u64| {
            let mut condition = Condition::default();
            let at = now_ms() - shift;
            let bins = serde_json::json!({"arrivals": [{"atMs": at, "count": 1}]});
            let evidence_at = Some((now_ms(), now_ms()));
            times(&mut condition, now_ms(), &Ledger::from(bins), evidence_at);
            condition.is_valid()
        };
        assert!(valid(0));
        assert!(!valid(9 * 3_600_000));
    }

    #[test]
    fn arrivals_that_were_late_missing_or_none_are_not_valid() {
        let valid = |late, count, planned| {
            let mut condition = Condition::default();
            arrivals(
                &mut condition,
                "x",
                planned,
                &driven(Duration::from_millis(late), count),
            );
            condition.is_valid()
        };
        assert!(valid(100, 10, 10));
        assert!(!valid(101, 10, 10));
        assert!(!valid(0, 9, 10));
        assert!(!valid(0, 0, 0));
    }
}
