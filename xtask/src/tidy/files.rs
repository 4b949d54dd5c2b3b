//! The repository's own text files: what was built, installed or stored is left out.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A text file, its path written from the root with `/`.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// All text files below the root, in the order of their paths.
pub(super) fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    collect(root, "", &mut found)?;
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<Source>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {prefix:?}"))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !is_made(&name) {
                collect(&entry.path(), &format!("{path}/"), found)?;
            }
        } else if kind.is_file() && name != ".git" {
            // What is no UTF-8 is no text. A file may also go while we look, as a database's do.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                found.push(Source { path, text });
            }
        }
    }
    Ok(())
}

/// Whether a folder of that name holds what tools made.
fn is_made(name: &str) -> bool {
    let made = [
        ".git",
        ".tools",
        "node_modules",
        "target",
        "test-results",
        "playwright-report",
    ];
    made.contains(&name) || name.starts_with("target-")
}
