//! `transitions`: the table of every state and event, generated from the machines themselves.

use std::fs;

use anyhow::{Context, Result};

use crate::repo::Repo;

/// Writes `docs/transitions.md`.
pub(crate) fn write(repo: &Repo) -> Result<()> {
    let mut command = repo.cargo(&["run", "-q", "-p", "payment", "--example", "transitions"]);
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    anyhow::ensure!(
        output.status.success(),
        "the example `transitions` of `payment` failed"
    );
    let docs = repo.root.join("docs");
    fs::create_dir_all(&docs)?;
    let file = docs.join("transitions.md");
    let before = fs::read(&file).unwrap_or_default();
    if before == output.stdout {
        println!("{} is up to date", repo.shown(&file));
        return Ok(());
    }
    fs::write(&file, &output.stdout).with_context(|| format!("cannot write {}", file.display()))?;
    println!("wrote {}", repo.shown(&file));
    Ok(())
}
