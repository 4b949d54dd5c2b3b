//! What runs wrote into a folder, read again: each experiment with its real and its virtual half.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::experiments;
use crate::harness::Lab;
use crate::plan::{Criterion, Plot, Regret, Spread};
use crate::verdict::{Rule, Verdict};
use crate::virtual_time::{self, Size};

/// One run of an experiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    /// Whether it was shortened.
    #[serde(default)]
    pub(super) quick: bool,
    /// Whether it came to its end.
    #[serde(default)]
    pub(super) ran: bool,
    /// What was promised before it ran.
    pub(super) plan: Promise,
    /// What came of each criterion.
    #[serde(default)]
    pub(super) verdicts: Vec<Judged>,
    /// What was found under each condition.
    #[serde(default)]
    pub(super) conditions: Option<Vec<Condition>>,
    /// How far repeated runs lie apart.
    #[serde(default)]
    pub(super) spreads: Option<BTreeMap<String, Spread>>,
    /// Pictures.
    #[serde(default)]
    pub(super) plots: Option<Vec<Plot>>,
    /// The answer in words.
    #[serde(default)]
    pub(super) answer: Option<String>,
    /// What shoppers were shown against the truth.
    #[serde(default)]
    pub(super) regret: Option<Regret>,
    /// How long it took, s.
    #[serde(default)]
    pub(super) took_seconds: Option<f64>,
}

/// What was promised.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Promise {
    /// What is asked.
    pub(super) question: String,
    /// What holds for the run.
    #[serde(default)]
    pub(super) setup: Vec<String>,
    /// When it proves nothing.
    #[serde(default)]
    pub(super) valid_only_if: Vec<String>,
}

/// One criterion and what came of it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Judged {
    /// Names it.
    pub(super) id: String,
    /// What is measured.
    pub(super) says: String,
    /// What is right.
    pub(super) rule: Rule,
    /// The published figure.
    pub(super) published: Option<String>,
    /// The conditions that it rests on.
    #[serde(default, rename = "restsOn")]
    pub(super) rests_on: Vec<String>,
    /// Whether nothing fails for it.
    #[serde(default)]
    pub(super) finding: bool,
    /// Why it may come out otherwise.
    #[serde(default)]
    pub(super) because: Option<String>,
    /// What came.
    pub(super) measured: Option<f64>,
    /// What follows.
    pub(super) verdict: Verdict,
}

/// What was found under one condition.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Condition {
    /// Its name.
    pub(super) name: String,
    /// Whether it proves anything.
    pub(super) valid: bool,
    /// The figures, by name.
    #[serde(default)]
    pub(super) figures: Map<String, Value>,
    /// What had to hold.
    #[serde(default)]
    pub(super) checks: Vec<Check>,
}

/// One thing that had to hold.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Check {
    /// What.
    pub(super) says: String,
    /// Whether it did.
    pub(super) holds: bool,
    /// What was seen.
    pub(super) seen: String,
}

/// An experiment: with the real programs, in virtual time, or both.
#[derive(Debug, Clone)]
pub(super) struct Experiment {
    /// Its name.
    pub(super) name: String,
    /// With the real programs.
    pub(super) real: Option<Run>,
    /// In virtual time.
    pub(super) played: Option<Run>,
}

impl Run {
    /// The conditions that prove nothing.
    pub(super) fn invalid(&self) -> impl Iterator<Item = &Condition> {
        let all = self.conditions.iter().flatten();
        all.filter(|condition| !condition.valid)
    }

    /// Takes the verdict from every criterion that rests on a condition that is not there or proves nothing: a verdict is
    /// worth what its conditions are, whoever wrote it down.
    fn trust_no_verdict(&mut self) {
        let conditions = self.conditions.as_deref().unwrap_or_default();
        let valid = |name: &String| {
            let found = conditions.iter().find(|one| one.name == *name);
            found.is_some_and(|condition| condition.valid)
        };
        for judged in &mut self.verdicts {
            if judged.rests_on.is_empty() || !judged.rests_on.iter().all(valid) {
                judged.verdict = Verdict::NotValid;
            }
        }
    }

    /// Why a criterion may come out otherwise is told by the experiment as it is now, where the run was made before it said
    /// so.
    fn explain(&mut self, name: &str, played: bool) {
        let criteria = promised(name, played);
        for judged in self.verdicts.iter_mut().filter(|one| one.because.is_none()) {
            let known = criteria.iter().find(|known| known.id == judged.id);
            judged.because = known.and_then(|known| known.because.clone());
        }
    }
}

/// What an experiment promises today; nothing if there is none of that name.
fn promised(name: &str, played: bool) -> Vec<Criterion> {
    if played {
        let size = Size { full: true };
        let known = virtual_time::all().find(|one| one.name == name);
        return known.map_or_else(Vec::new, |one| (one.plan)(size).criteria);
    }
    let lab = Lab {
        bin_dir: PathBuf::new(),
        quick: false,
        shoppers: None,
    };
    experiments::find(name).map_or_else(|_| Vec::new(), |one| (one.plan)(&lab).criteria)
}

impl Experiment {
    /// Its halves, with what they are called.
    pub(super) fn halves(&self) -> impl Iterator<Item = (&'static str, &Run)> {
        let real = self.real.iter().map(|run| ("real", run));
        real.chain(self.played.iter().map(|run| ("virtual", run)))
    }

    /// The half that its question and setup are told by.
    pub(super) fn main(&self) -> Option<&Run> {
        self.real.as_ref().or(self.played.as_ref())
    }
}

/// The files of virtual runs end so.
const PLAYED: &str = ".virtual";

/// Every experiment in a folder, by name.
pub(super) fn folder(folder: &Path) -> anyhow::Result<Vec<Experiment>> {
    let mut found: BTreeMap<String, Experiment> = BTreeMap::new();
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("reading the folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let json = path.extension().is_some_and(|end| end == "json");
        let Some(stem) = stem.filter(|stem| json && *stem != super::OWN) else {
            continue;
        };
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let mut run: Run = serde_json::from_str(&text)
            .with_context(|| format!("{} is no report of a run", path.display()))?;
        let (name, played) = stem
            .strip_suffix(PLAYED)
            .map_or((stem, false), |name| (name, true));
        run.trust_no_verdict();
        run.explain(name, played);
        let experiment = found.entry(name.to_owned()).or_insert_with(|| Experiment {
            name: name.to_owned(),
            real: None,
            played: None,
        });
        if played {
            experiment.played = Some(run);
        } else {
            experiment.real = Some(run);
        }
    }
    anyhow::ensure!(!found.is_empty(), "{} holds no report", folder.display());
    Ok(found.into_values().collect())
}
