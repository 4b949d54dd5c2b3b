//! Regret: what every page was shown, held against what the gateway's ledger says in the end.

use super::gateway::Ledger;
use crate::plan::{Condition, Criterion, Findings, Regret};
use crate::shopper::Seen;
use crate::verdict::Rule;

/// The criterion that [`note`] measures.
const ID: &str = "told-wrong";

/// Nobody may be told a wrong thing, under any of these conditions.
pub(crate) fn criterion<'a>(conditions: impl IntoIterator<Item = &'a str>) -> Criterion {
    let says = "shoppers told that nothing was charged and charged, told paid and not charged, or charged twice";
    let none = Rule::exactly(0.0);
    Criterion {
        rests_on: conditions.into_iter().map(str::to_owned).collect(),
        ..Criterion::new("", ID, says, none)
    }
}

/// What pages were shown against a ledger that was read when everything was known.
pub(crate) fn of<'a>(seen: impl IntoIterator<Item = &'a Seen>, ledger: &Ledger) -> Regret {
    let mut regret = Regret::default();
    for one in seen {
        let charges = ledger.net_charges(&one.order);
        let doubt_ms = u64::try_from(one.doubt.as_millis()).unwrap_or(u64::MAX);
        regret.shoppers += 1;
        regret.false_failures += u64::from(one.told_not_charged && charges > 0);
        regret.false_successes += u64::from(one.told_paid && charges < 1);
        regret.double_charges += u64::from(ledger.charges(&one.order) > 1);
        regret.in_doubt += u64::from(one.checking.is_some());
        regret.left_in_doubt += u64::from(!one.is_known());
        regret.doubt_ms += doubt_ms;
        regret.longest_doubt_ms = regret.longest_doubt_ms.max(doubt_ms);
    }
    regret
}

/// Adds the pages of one condition to what was found.
pub(crate) fn note<'a>(
    seen: impl IntoIterator<Item = &'a Seen>,
    ledger: &Ledger,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let one = of(seen, ledger);
    condition.figure("regret", one);
    let all = findings.regret.get_or_insert_default();
    all.shoppers += one.shoppers;
    all.false_failures += one.false_failures;
    all.false_successes += one.false_successes;
    all.double_charges += one.double_charges;
    all.in_doubt += one.in_doubt;
    all.left_in_doubt += one.left_in_doubt;
    all.doubt_ms += one.doubt_ms;
    all.longest_doubt_ms = all.longest_doubt_ms.max(one.longest_doubt_ms);
    let wrong = all.false_failures + all.false_successes + all.double_charges;
    findings.measure(ID, wrong as f64);
}

#[cfg(test)]
mod tests {
    use payment::view::Stage;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_told_is_held_against_the_ledger_both_ways() {
        let ledger = Ledger::from(json!({"orders": {
            "charged": {"charges": 1, "cancels": 0},
            "twice": {"charges": 2, "cancels": 0},
            "returned": {"charges": 1, "cancels": 1},
        }}));
        let told = |order: &str, not_charged, paid| Seen {
            told_not_charged: not_charged,
            told_paid: paid,
            stage: Stage::Paid,
            ..Seen::nothing(order)
        };
        let seen = [
            told("charged", true, false),
            told("charged", false, true),
            told("nowhere", false, true),
            told("nowhere", true, false),
            told("returned", true, false),
            told("twice", false, true),
            Seen {
                stage: Stage::StillUnknown,
                checking: Some(std::time::Duration::ZERO),
                doubt: std::time::Duration::from_secs(50),
                ..Seen::nothing("charged")
            },
        ];
        let regret = of(&seen, &ledger);
        assert_eq!((regret.shoppers, regret.double_charges), (7, 1));
        assert_eq!((regret.false_failures, regret.false_successes), (1, 1));
        assert_eq!((regret.in_doubt, regret.left_in_doubt), (1, 1));
        assert_eq!((regret.doubt_ms, regret.longest_doubt_ms), (50_000, 50_000));
    }
}
