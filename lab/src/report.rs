//! Reports: JSON for machines and a Markdown table for people, both with what was promised before the run.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::plan::{Condition, Findings, Judged, Plan, judge_all};
use crate::stats::rounded;

/// One experiment's report.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    /// The experiment.
    pub(crate) name: &'a str,
    /// Whether it was shortened.
    pub(crate) quick: bool,
    /// What was promised.
    pub(crate) plan: &'a Plan,
    /// What was found; `None` before the run.
    pub(crate) findings: Option<&'a Findings>,
}

impl Report<'_> {
    /// The verdicts; none before the run.
    pub(crate) fn judged(&self) -> Vec<Judged> {
        self.findings
            .map_or_else(Vec::new, |findings| judge_all(self.plan, findings))
    }

    /// Writes `<name>.json` and, after the run, `<name>.md` into a folder.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let json = serde_json::to_string_pretty(&self.json())?;
        write(&folder.join(format!("{}.json", self.name)), &json)?;
        if self.findings.is_some() {
            write(&folder.join(format!("{}.md", self.name)), &self.markdown())?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        json!({
            "experiment": self.name,
            "quick": self.quick,
            "ran": self.findings.is_some(),
            "plan": self.plan,
            "verdicts": self.judged(),
            "conditions": self.findings.map(conditions),
            "spreads": self.findings.map(|findings| &findings.spreads),
            "plots": self.findings.map(|findings| &findings.plots),
            "answer": self.findings.and_then(|findings| findings.answer.as_deref()),
            "regret": self.findings.and_then(|findings| findings.regret),
            "tookSeconds": self.findings.and_then(|findings| findings.took_seconds),
        })
    }

    /// For people.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n\n", self.name, self.plan.question);
        if self.quick {
            text.push_str(
                "Shortened: shows that the experiment works, not what it is to show.\n\n",
            );
        }
        for line in &self.plan.setup {
            let _ = writeln!(text, "- {line}");
        }
        let _ = writeln!(
            text,
            "- valid only if {}",
            self.plan.valid_only_if.join("; ")
        );
        text.push_str("\n| criterion | expected | published | measured | verdict |\n| --- | --- | --- | --- | --- |\n");
        for judged in self.judged() {
            let criterion = &judged.criterion;
            let _ = writeln!(
                text,
                "| {}{} | {} | {} | {} | {} |",
                criterion.says,
                if criterion.finding { " (finding)" } else { "" },
                criterion.rule.says(),
                criterion.published.as_deref().unwrap_or("–"),
                measured(judged.measured),
                judged.verdict.as_str()
            );
        }
        for (name, condition) in self
            .findings
            .iter()
            .flat_map(|findings| &findings.conditions)
        {
            push_condition(&mut text, name, condition);
        }
        text
    }
}

/// An array, since an object would lose the order of the run.
fn conditions(findings: &Findings) -> Vec<Value> {
    let condition = |(name, condition): &(String, Condition)| {
        json!({
            "name": name,
            "valid": condition.is_valid(),
            "figures": condition.figures,
            "checks": condition.checks,
        })
    };
    findings.conditions.iter().map(condition).collect()
}

fn measured(value: Option<f64>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value) if value.is_infinite() => "never".to_owned(),
        Some(value) => rounded(value).to_string(),
    }
}

fn push_condition(text: &mut String, name: &str, condition: &Condition) {
    let valid = if condition.is_valid() {
        "valid"
    } else {
        "NOT VALID"
    };
    let _ = writeln!(text, "\n## {name}: {valid}\n");
    for check in condition.checks.iter().filter(|check| !check.holds) {
        let _ = writeln!(text, "- does not hold: {} ({})", check.says, check.seen);
    }
    for (name, value) in &condition.figures {
        let _ = writeln!(text, "- {name}: {value}");
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
