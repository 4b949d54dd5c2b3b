//! Facts, and what was seen of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::ensure;
use serde_json::{Value, json};

/// One thing that is written down about a wire.
#[derive(Debug)]
pub(super) struct Fact {
    /// Short and stable.
    pub(super) id: &'static str,
    /// What is said.
    pub(super) what: &'static str,
    /// Section of `pg-contracts.md`.
    pub(super) source: &'static str,
    /// How it is asked.
    pub(super) how: &'static str,
    /// What was said would be seen.
    pub(super) said: Said,
}

/// How sure a fact is.
#[derive(Debug)]
pub(super) enum Said {
    /// One of these is seen, or the fact is wrong.
    Certain(&'static [&'static str]),
    /// Nobody knows; these are the readings.
    Uncertain(&'static str),
}

/// What became of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it is written down.
    Ok,
    /// Otherwise than it is written down.
    Differs,
    /// It was not known; now it is.
    UncertainSaw,
    /// It could not be asked.
    NotTestableHere,
}

impl Verdict {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Differs => "DIFFERS",
            Self::UncertainSaw => "uncertain, saw",
            Self::NotTestableHere => "not testable here",
        }
    }
}

#[derive(Debug)]
enum Seen {
    /// By this suite.
    Saw(String),
    /// By a person.
    Recorded(String),
    /// Why not.
    Nothing(String),
}

/// All facts of a gateway with what was seen.
#[derive(Debug)]
pub(super) struct Findings {
    gateway: &'static str,
    facts: &'static [Fact],
    seen: BTreeMap<&'static str, Seen>,
}

impl Findings {
    pub(super) fn new(gateway: &'static str, facts: &'static [Fact]) -> Self {
        Self {
            gateway,
            facts,
            seen: BTreeMap::new(),
        }
    }

    /// Notes what was seen of a fact.
    pub(super) fn saw(&mut self, id: &'static str, saw: impl Into<String>) {
        self.seen.insert(id, Seen::Saw(saw.into()));
    }

    /// Notes why some facts could not be asked.
    pub(super) fn skip(&mut self, ids: &[&'static str], why: &str) {
        for id in ids {
            self.seen.insert(id, Seen::Nothing(why.to_owned()));
        }
    }

    /// Notes what a person saw, of a fact which the suite could not ask itself.
    pub(super) fn recorded(&mut self, id: &str, saw: &str) -> anyhow::Result<()> {
        let fact = self.facts.iter().find(|fact| fact.id == id);
        ensure!(
            fact.is_some(),
            "the recorded fact `{id}` is none of {}'s",
            self.gateway
        );
        if let Some(fact) = fact
            && !matches!(self.seen.get(fact.id), Some(Seen::Saw(_)))
        {
            self.seen.insert(fact.id, Seen::Recorded(saw.to_owned()));
        }
        Ok(())
    }

    /// The verdict about a fact, and what it rests on.
    fn judged(&self, fact: &Fact) -> (Verdict, String) {
        let (saw, by_whom) = match self.seen.get(fact.id) {
            None => return (Verdict::NotTestableHere, "never asked".to_owned()),
            Some(Seen::Nothing(why)) => return (Verdict::NotTestableHere, why.clone()),
            Some(Seen::Saw(saw)) => (saw, ""),
            Some(Seen::Recorded(saw)) => (saw, " (recorded)"),
        };
        let verdict = match fact.said {
            Said::Certain(said) if said.contains(&saw.as_str()) => Verdict::Ok,
            Said::Certain(_) => Verdict::Differs,
            Said::Uncertain(_) => Verdict::UncertainSaw,
        };
        (verdict, format!("{saw}{by_whom}"))
    }

    /// The verdict about one fact.
    #[cfg(test)]
    pub(super) fn of(&self, id: &str) -> (Verdict, String) {
        let fact = self.facts.iter().find(|fact| fact.id == id);
        self.judged(fact.expect("a fact"))
    }

    /// Every fact with its verdict.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static Fact, Verdict, String)> {
        self.facts.iter().map(|fact| {
            let (verdict, saw) = self.judged(fact);
            (fact, verdict, saw)
        })
    }

    /// Whether no certain fact differs.
    pub(super) fn well(&self) -> bool {
        self.all()
            .all(|(_, verdict, _)| verdict != Verdict::Differs)
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let mut text = String::from(
            "| fact | what | section | said | saw | verdict |\n| --- | --- | --- | --- | --- | --- |\n",
        );
        let mut counts = BTreeMap::new();
        for (fact, verdict, saw) in self.all() {
            let cells = [
                fact.id,
                fact.what,
                fact.source,
                &fact.said.text(),
                &saw,
                verdict.as_str(),
            ];
            let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
            *counts.entry(verdict.as_str()).or_insert(0) += 1;
        }
        let counts: Vec<_> = counts
            .iter()
            .map(|(verdict, count)| format!("{count} {verdict}"))
            .collect();
        let _ = writeln!(
            text,
            "\n{} facts of {}: {}",
            self.facts.len(),
            self.gateway,
            counts.join(", ")
        );
        text
    }

    /// For machines.
    pub(super) fn json(&self, url: &str) -> Value {
        let facts: Vec<_> = self
            .all()
            .map(|(fact, verdict, saw)| {
                json!({
                    "id": fact.id,
                    "what": fact.what,
                    "source": fact.source,
                    "certain": matches!(fact.said, Said::Certain(_)),
                    "how": fact.how,
                    "said": fact.said.text(),
                    "saw": saw,
                    "verdict": verdict.as_str(),
                })
            })
            .collect();
        json!({"gateway": self.gateway, "url": url, "well": self.well(), "facts": facts})
    }
}

impl Said {
    fn text(&self) -> String {
        match self {
            Self::Certain(said) => said.join(" or "),
            Self::Uncertain(readings) => format!("not known: {readings}"),
        }
    }
}
