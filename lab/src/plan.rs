//! What an experiment promises before it runs, and what it found: the two halves of a report.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::verdict::{Rule, Verdict, judge};

/// Written down before the run and stored with its results.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// What is asked.
    pub(crate) question: String,
    /// What holds for the run, for people.
    pub(crate) setup: Vec<String>,
    /// When a run proves nothing, for people; each is checked in code.
    pub(crate) valid_only_if: Vec<String>,
    /// What is judged.
    pub(crate) criteria: Vec<Criterion>,
}

/// Why a time of the real programs may be longer than expected.
pub(crate) const BUSY: &str = "A time of the real programs, so that whatever else the machine does counts: beside builds and tests the disk and both cores are waited for. Counts and ratios do not hang on it. On a machine that does nothing else this is a failure of the shop's.";

/// One expectation.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Criterion {
    /// Names the measured value.
    pub(crate) id: String,
    /// What is measured, with its unit.
    pub(crate) says: String,
    /// What is right.
    pub(crate) rule: Rule,
    /// The published figure that it is compared with.
    pub(crate) published: Option<String>,
    /// The conditions that the value rests on: if one is not valid, neither is the verdict.
    pub(crate) rests_on: Vec<String>,
    /// A finding of our own: reported like a criterion, but nothing fails for it.
    pub(crate) finding: bool,
    /// Why it may come out otherwise, told beside it when it does.
    pub(crate) because: Option<String>,
}

impl Criterion {
    /// A criterion that rests on one condition.
    pub(crate) fn new(condition: &str, id: &str, says: &str, rule: Rule) -> Self {
        Self {
            id: id.to_owned(),
            says: says.to_owned(),
            rule,
            published: None,
            rests_on: vec![condition.to_owned()],
            finding: false,
            because: None,
        }
    }

    /// With the published figure beside it.
    pub(crate) fn published(mut self, figure: &str) -> Self {
        self.published = Some(figure.to_owned());
        self
    }

    /// Resting on another condition too.
    pub(crate) fn and(mut self, condition: &str) -> Self {
        self.rests_on.push(condition.to_owned());
        self
    }

    /// With why it may come out otherwise.
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.because = Some(why.to_owned());
        self
    }

    /// As a finding.
    pub(crate) fn finding(mut self) -> Self {
        self.finding = true;
        self
    }
}

/// One thing that must hold for a condition to prove anything.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Check {
    /// What must hold.
    pub(crate) says: String,
    /// Whether it did.
    pub(crate) holds: bool,
    /// What was seen.
    pub(crate) seen: String,
}

/// What was found under one condition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Condition {
    /// The figures, by name.
    pub(crate) figures: Map<String, Value>,
    /// Whether they prove anything.
    pub(crate) checks: Vec<Check>,
}

impl Condition {
    /// Notes a figure. What is no finite number is noted as null.
    pub(crate) fn figure(&mut self, name: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.figures.insert(name.to_owned(), value);
    }

    /// Notes whether something that must hold did.
    pub(crate) fn check(&mut self, says: &str, holds: bool, seen: impl ToString) {
        self.checks.push(Check {
            says: says.to_owned(),
            holds,
            seen: seen.to_string(),
        });
    }

    /// Whether it was looked at and everything held: what was never checked is not valid.
    pub(crate) fn is_valid(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.holds)
    }
}

/// How far the runs of a repeated experiment lie apart.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spread {
    /// How many runs.
    pub(crate) runs: usize,
    /// The smallest value.
    #[serde(deserialize_with = "or_never")]
    pub(crate) least: f64,
    /// The middle one, which the criterion judges.
    #[serde(deserialize_with = "or_never")]
    pub(crate) median: f64,
    /// The greatest.
    #[serde(deserialize_with = "or_never")]
    pub(crate) most: f64,
    /// The standard deviation.
    #[serde(deserialize_with = "or_never")]
    pub(crate) deviation: f64,
}

/// JSON knows no infinity: what never happened is written as null.
fn or_never<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(from).map(|value| value.unwrap_or(f64::INFINITY))
}

/// The same of points.
fn points<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(f64, f64)>, D::Error> {
    let points = Vec::<(Option<f64>, Option<f64>)>::deserialize(from)?;
    let never = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
    Ok(points
        .into_iter()
        .map(|(across, up)| (never(across), never(up)))
        .collect())
}

/// A picture of figures, drawn by the report.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plot {
    /// What it shows, as a sentence: its text alternative begins with this.
    pub(crate) title: String,
    /// What goes to the right, with its unit.
    pub(crate) across: String,
    /// What goes up, with its unit.
    pub(crate) up: String,
    /// Whether the way to the right is logarithmic.
    pub(crate) log_across: bool,
    /// What is drawn.
    pub(crate) lines: Vec<Line>,
}

/// One set of points of a plot.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    /// Its name in the legend.
    pub(crate) name: String,
    /// How it is drawn.
    pub(crate) mark: Mark,
    /// Across and up.
    #[serde(deserialize_with = "points")]
    pub(crate) points: Vec<(f64, f64)>,
}

/// How points are drawn.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Mark {
    /// A line through them, as of a formula.
    Curve,
    /// A line through them with a dot at each: measured.
    Dots,
    /// A bar from zero to each.
    Bars,
    /// A line that holds its height until the next, as of slots over time.
    Steps,
}

/// What shoppers were shown against the gateway's truth.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Regret {
    /// Shoppers that were watched.
    pub(crate) shoppers: u64,
    /// Told that nothing was charged, and charged in the end.
    pub(crate) false_failures: u64,
    /// Told that it was paid, and not charged in the end.
    pub(crate) false_successes: u64,
    /// Charged more than once.
    pub(crate) double_charges: u64,
    /// Shown that nobody knows, for any time.
    pub(crate) in_doubt: u64,
    /// Still in doubt when they had waited as long as the page waits.
    pub(crate) left_in_doubt: u64,
    /// All time in doubt, ms.
    pub(crate) doubt_ms: u64,
    /// The longest time in doubt, ms.
    pub(crate) longest_doubt_ms: u64,
}

/// Everything that an experiment found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    /// Each with its name, in the order of the run.
    pub(crate) conditions: Vec<(String, Condition)>,
    /// The values that the criteria judge, by their ids; infinite is "never happened".
    pub(crate) measured: BTreeMap<String, f64>,
    /// How far the runs of a repeated experiment lie apart, by the ids of their criteria.
    pub(crate) spreads: BTreeMap<String, Spread>,
    /// The figures as pictures.
    pub(crate) plots: Vec<Plot>,
    /// What the question comes to, in a sentence or two with the figures it rests on, made from this run's values.
    pub(crate) answer: Option<String>,
    /// What shoppers were shown against the gateway's truth, over all conditions.
    pub(crate) regret: Option<Regret>,
    /// How long the run took, in real seconds.
    pub(crate) took_seconds: Option<f64>,
}

impl Findings {
    /// Adds what was found under a condition.
    pub(crate) fn add(&mut self, name: impl Into<String>, condition: Condition) {
        self.conditions.push((name.into(), condition));
    }

    /// Whether a condition ran and was valid.
    pub(crate) fn is_valid(&self, name: &str) -> bool {
        let found = self.conditions.iter().find(|(known, _)| known == name);
        found.is_some_and(|(_, condition)| condition.is_valid())
    }

    /// The value of a criterion, if there is one.
    pub(crate) fn value(&self, id: &str) -> Option<f64> {
        self.measured.get(id).copied()
    }

    /// Notes the value of a criterion.
    pub(crate) fn measure(&mut self, id: &str, value: f64) {
        self.measured.insert(id.to_owned(), value);
    }

    /// Notes the value of a criterion, if there is one.
    pub(crate) fn measure_if(&mut self, id: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.measure(id, value);
        }
    }
}

/// A criterion with what it came to.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judged {
    /// What was promised.
    #[serde(flatten)]
    pub(crate) criterion: Criterion,
    /// What came; null when nothing did, or when it never happened.
    pub(crate) measured: Option<f64>,
    /// What follows.
    pub(crate) verdict: Verdict,
}

/// Judges each criterion of a plan.
pub(crate) fn judge_all(plan: &Plan, findings: &Findings) -> Vec<Judged> {
    let judged = |criterion: &Criterion| {
        let rests_on = &criterion.rests_on;
        let valid = !rests_on.is_empty() && rests_on.iter().all(|name| findings.is_valid(name));
        let measured = findings.value(&criterion.id);
        Judged {
            criterion: criterion.clone(),
            measured,
            verdict: judge(criterion.rule, measured, valid),
        }
    };
    plan.criteria.iter().map(judged).collect()
}

/// Whether a program that ran this may exit with 0: every criterion passed and every condition was valid.
pub(crate) fn is_success(judged: &[Judged], findings: &Findings) -> bool {
    let passed = |judged: &Judged| {
        judged.verdict == Verdict::Pass
            || (judged.criterion.finding && judged.verdict == Verdict::Fail)
    };
    !judged.is_empty()
        && judged.iter().all(passed)
        && findings
            .conditions
            .iter()
            .all(|(_, condition)| condition.is_valid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let rule = Rule::AtMost { most: 10.0 };
        Plan {
            question: String::new(),
            setup: Vec::new(),
            valid_only_if: Vec::new(),
            criteria: vec![Criterion::new("a", "x", "x", rule)],
        }
    }

    fn findings(value: f64, holds: bool) -> Findings {
        let mut findings = Findings::default();
        let mut condition = Condition::default();
        condition.check("traffic", holds, "");
        findings.add("a", condition);
        findings.measure("x", value);
        findings
    }

    fn verdict(findings: &Findings) -> (Verdict, bool) {
        let judged = judge_all(&plan(), findings);
        (judged[0].verdict, is_success(&judged, findings))
    }

    #[test]
    fn an_empty_run_is_not_valid() {
        assert_eq!(verdict(&Findings::default()), (Verdict::NotValid, false));
        let mut unchecked = findings(1.0, true);
        unchecked.conditions = vec![("a".to_owned(), Condition::default())];
        assert_eq!(verdict(&unchecked), (Verdict::NotValid, false));
    }

    #[test]
    fn a_failed_check_takes_the_verdict_whatever_the_value() {
        assert_eq!(verdict(&findings(1.0, false)), (Verdict::NotValid, false));
        assert_eq!(verdict(&findings(99.0, false)), (Verdict::NotValid, false));
    }

    #[test]
    fn a_value_beyond_its_rule_fails_the_program_and_one_within_does_not() {
        assert_eq!(verdict(&findings(11.0, true)), (Verdict::Fail, false));
        assert_eq!(verdict(&findings(10.0, true)), (Verdict::Pass, true));
    }

    #[test]
    fn a_finding_may_differ_but_must_be_valid() {
        let mut plan = plan();
        plan.criteria[0].finding = true;
        for (value, holds, success) in [(99.0, true, true), (99.0, false, false)] {
            let findings = findings(value, holds);
            assert_eq!(is_success(&judge_all(&plan, &findings), &findings), success);
        }
    }
}
