//! From the rounds to the figures that are judged: medians, and how far the rounds lie apart.

use super::paid::{Paid, Rates, Round};
use crate::plan::{Condition, Findings, Spread};
use crate::stats::{Latencies, rounded};

/// A webhook's bound: the larger of 10 ms and the commits' p99 + 5 ms (specification, section 3).
const WEBHOOK_MS: f64 = 10.0;
const BESIDE_COMMIT_MS: f64 = 5.0;
/// What a confirm may take beside two commits, ms.
const BESIDE_COMMITS_MS: f64 = 2.0;

/// How far values lie apart.
fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<_> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Spread {
        runs: values.len(),
        least,
        median: values[values.len() / 2],
        most,
        deviation: (squares / count).sqrt(),
    })
}

fn p(took: &Latencies, percent: f64) -> f64 {
    took.percentile_ms(percent).unwrap_or(f64::NAN)
}

/// The bound of the webhooks of a round, ms.
fn webhook_bound(round: &Round) -> f64 {
    let commits = round.webhook_commits.as_ref();
    let p99 = commits.and_then(|commits| commits.quantile(0.99));
    WEBHOOK_MS.max(p99.map_or(0.0, |seconds| seconds * 1_000.0) + BESIDE_COMMIT_MS)
}

/// Judges the rounds of one database.
pub(super) fn paid(name: &str, paid: &Paid, condition: &mut Condition, findings: &mut Findings) {
    type Of = fn(&Round) -> f64;
    let grouped = |round: &Round| round.grouped.map_or(f64::NAN, Rates::paid);
    let figures: [(&str, Of); 17] = [
        ("paidPerSecond", |round| round.shop.paid()),
        ("ordersPerSecond", |round| round.shop.orders),
        ("confirmsPerSecond", |round| round.shop.confirms),
        ("floorPaidPerSecond", |round| round.floor.paid()),
        ("floorGroupedPaidPerSecond", grouped),
        ("commitAloneMs", |round| round.commit_ms),
        ("confirmP50Ms", |round| p(&round.confirm, 50.0)),
        ("confirmP99Ms", |round| p(&round.confirm, 99.0)),
        ("readsPerSecond", |round| round.reads.states),
        ("pollsPerSecond", |round| round.reads.polls),
        ("floorReadsPerSecond", |round| round.floor_reads),
        ("historyPerSecond", |round| round.reads.pages),
        ("webhooksPerSecond", |round| round.reads.webhooks),
        ("floorWebhooksPerSecond", |round| round.floor_webhooks),
        ("webhookP50Ms", |round| p(&round.reads.webhook_took, 50.0)),
        ("webhookP99Ms", |round| p(&round.reads.webhook_took, 99.0)),
        ("cpuMsPerPaidOrder", |round| round.cpu_ms),
    ];
    for (figure, of) in figures {
        if let Some(spread) = spread(paid.rounds.iter().map(of)) {
            condition.figure(figure, rounded(spread.median));
        }
    }
    let bytes = paid.rounds.first().map(|round| round.reads.page_bytes);
    condition.figure("historyBytes", bytes);
    let criteria: [(&str, Of); 8] = [
        ("paid", |round| round.shop.paid()),
        ("floor", |round| round.shop.paid() / round.floor.paid()),
        ("grouped", |round| {
            let floor = round.grouped.map_or(f64::NAN, Rates::paid);
            round.shop.paid() / floor
        }),
        ("commits", |round| round.commits),
        ("confirm", |round| {
            p(&round.confirm, 50.0) / (2.0 * round.commit_ms + BESIDE_COMMITS_MS)
        }),
        ("webhook", |round| {
            p(&round.reads.webhook_took, 99.0) / webhook_bound(round)
        }),
        ("reads", |round| round.reads.states),
        ("history", |round| round.reads.pages),
    ];
    for (id, of) in criteria {
        if let Some(spread) = spread(paid.rounds.iter().map(of)) {
            let id = format!("{name}-{id}");
            findings.measure(&id, rounded(spread.median));
            findings.spreads.insert(id, spread);
        }
    }
    let megabytes = |kib: u64| rounded(kib as f64 * 1_024.0 / 1e6);
    findings.measure(&format!("{name}-idle"), megabytes(paid.idle_kib));
    findings.measure(&format!("{name}-loaded"), megabytes(paid.peak_kib));
}

/// The answer, from this run's figures.
pub(super) fn answer(names: &[&str], findings: &mut Findings) {
    let told = |name: &&str| {
        let value = |id: &str| findings.value(&format!("{name}-{id}")).unwrap_or(f64::NAN);
        format!(
            "On {name} it makes and pays {:.0} orders/s, {:.2} of the floor's, with {:.2} commits each.",
            value("paid"),
            value("floor"),
            value("commits"),
        )
    };
    let told: Vec<_> = names.iter().map(told).collect();
    findings.answer = Some(told.join(" "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_are_made_and_paid_take_the_time_of_both() {
        let rates = Rates {
            orders: 300.0,
            confirms: 150.0,
        };
        assert!((rates.paid() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_middle_round_is_judged_and_what_was_not_measured_is_none() {
        let spread = |values: &[f64]| spread(values.iter().copied());
        let three = spread(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            (three.runs, three.least, three.median, three.most),
            (3, 1.0, 2.0, 3.0)
        );
        assert!(spread(&[f64::NAN]).is_none());
    }
}
