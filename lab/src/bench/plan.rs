//! What is promised before the run: figures that were set before anything was measured.

use super::Size;
use super::paid::{FEW, MANY};
use super::quick::HISTORY;
use crate::plan::{Criterion, Plan};
use crate::verdict::Rule;

/// Resident memory that is small, MB.
const IDLE_MB: f64 = 30.0;
const LOADED_MB: f64 = 80.0;
/// A fraction of the floor that is near it.
const OF_FLOOR: f64 = 0.5;

/// Of one database: its name in the ids, paid orders a second that are many.
fn paid_target(name: &str) -> f64 {
    if name == "sqlite" { 1_360.0 } else { 1_110.0 }
}

fn criteria(name: &str) -> Vec<Criterion> {
    let one =
        |id: &str, says: String, rule| Criterion::new(name, &format!("{name}-{id}"), &says, rule);
    let above = |bound| Rule::Above { bound };
    let at_most = |most| Rule::AtMost { most };
    let rival = if name == "sqlite" {
        vec![
            one(
                "grouped",
                format!("{name}: paid orders/s ÷ those of a floor that puts all that wait into one commit"),
                above(OF_FLOOR),
            )
            .finding(),
        ]
    } else {
        Vec::new()
    };
    let mut all = vec![one(
        "floor",
        format!("{name}: paid orders/s ÷ the floor's"),
        above(OF_FLOOR),
    )];
    all.extend(rival);
    all.extend([
        one(
            "confirm",
            format!("{name}: confirm p50 with {FEW} shoppers ÷ (2 × a commit alone + 2 ms)"),
            at_most(1.0),
        ),
        one(
            "webhook",
            format!("{name}: webhook p99 with {FEW} senders ÷ the larger of 10 ms and the commits' p99 + 5 ms"),
            at_most(1.0),
        ),
        one(
            "paid",
            format!("{name}: paid orders/s with {MANY} shoppers"),
            above(paid_target(name)),
        )
        .published("a hundred times a widely used JavaScript shop engine on two cores"),
        one("reads", format!("{name}: order reads/s"), above(5_000.0)),
        one(
            "history",
            format!("{name}: rendered history pages/s, {HISTORY} orders each"),
            above(1_500.0),
        ),
        one(
            "commits",
            format!("{name}: commits of the shop for each paid order"),
            at_most(4.0),
        )
        .finding(),
        one("idle", format!("{name}: resident memory idle, MB"), at_most(IDLE_MB)),
        one("loaded", format!("{name}: peak of resident memory, MB"), at_most(LOADED_MB)),
    ]);
    all
}

/// The plan for these databases.
pub(super) fn plan(names: &[&str], size: Size) -> Plan {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    let rounds = format!(
        "{} rounds, floor and shop by turns, {} s for each loop; medians are judged",
        size.rounds,
        size.span.as_secs_f64()
    );
    Plan {
        question: "How fast is the shop beside what its machine, web server and database could do at most?".to_owned(),
        setup: lines(&[
            "load, fake gateway (0 ms), database and shop share one machine; closed loops over kept connections",
            "the floor is bare axum with as many requests and durable commits of one row each: one for an order or a webhook, two for a confirm; it calls no gateway",
            "paid orders/s counts the time of making the orders and that of confirming them, not that of the gateway's window",
            "settings as shipped but JARI_PG_CAP=off, JARI_RATE_LIMITS=off and no bound on stored webhooks",
            &rounds,
        ]),
        valid_only_if: lines(&[
            "every answer was the expected one, and every confirm said that it is paid",
            "the gateway charged every such order exactly once, and nothing stays unknown",
            "nothing is left of the programs",
        ]),
        criteria: names.iter().flat_map(|name| criteria(name)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_criterion_has_an_id_of_its_own() {
        let size = Size {
            rounds: 1,
            span: Duration::from_secs(1),
            waiting: 1,
            starts: 1,
        };
        let plan = plan(&["sqlite", "postgres"], size);
        let ids: BTreeSet<_> = plan.criteria.iter().map(|one| &one.id).collect();
        assert_eq!(ids.len(), plan.criteria.len());
    }
}
