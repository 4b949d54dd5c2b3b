//! The report of a folder of runs: one page for people, the criteria as CSV, everything as JSON, and a document with plots.

mod axis;
mod html;
mod markdown;
mod marks;
mod plot;
mod read;
mod table;
mod text;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value};

/// The stem of the files that this makes.
const OWN: &str = "report";

/// Of which folder, and where to.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder that `lab run` wrote into; `report.html`, `report.csv` and `report.json` go there
    folder: PathBuf,
    /// A document to be made anew below its mark, its plots beside it in the folder `lab`
    #[arg(long, value_name = "FILE")]
    docs: Option<PathBuf>,
}

/// Makes the report; says where it is.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let experiments = read::folder(&options.folder)?;
    let file = |end: &str| options.folder.join(format!("{OWN}.{end}"));
    write(&file("html"), &html::page(&experiments))?;
    write(&file("csv"), &table::csv(&experiments))?;
    write(&file("json"), &whole(&options.folder)?)?;
    if let Some(docs) = &options.docs {
        markdown::write(docs, &experiments)?;
    }
    Ok(file("html").display().to_string())
}

/// Every run's file in one object, as it was written.
fn whole(folder: &Path) -> anyhow::Result<String> {
    let mut all = Map::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let json = path.extension().is_some_and(|end| end == "json");
        if let Some(stem) = stem.filter(|stem| json && *stem != OWN) {
            let run: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
            all.insert(stem.to_owned(), run);
        }
    }
    Ok(serde_json::to_string(&all)?)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests;
