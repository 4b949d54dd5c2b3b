//! The same for a reader of the repository: a document with its plots as files.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use super::plot::svg;
use super::read::Experiment;
use super::table::{Cell, outcome, rows};
use super::text::anchor;
use crate::verdict::Verdict;

/// What the document says by itself is kept between these lines and written by people; the rest is made anew.
const BEGIN: &str = "<!-- made by `lab report` from here -->";

/// Writes the document: what people wrote above the mark stays, what is below is made anew. Plots go into `plots` beside it.
pub(super) fn write(path: &Path, experiments: &[Experiment]) -> anyhow::Result<()> {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let kept = before.split(BEGIN).next().unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(".")).join("lab");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let mut out = format!("{kept}{BEGIN}\n\n");
    for experiment in experiments {
        push(&mut out, experiment, &folder)?;
    }
    std::fs::write(path, out).with_context(|| format!("writing {}", path.display()))
}

fn push(out: &mut String, experiment: &Experiment, folder: &Path) -> anyhow::Result<()> {
    let Some(main) = experiment.main() else {
        return Ok(());
    };
    let _ = write!(
        out,
        "## {}\n\n*{}* ({})\n\n",
        experiment.name,
        main.plan.question,
        outcome(experiment).as_str()
    );
    for (half, run) in experiment.halves() {
        if let Some(answer) = &run.answer {
            let _ = write!(out, "**{half}**: {answer}\n\n");
        }
    }
    push_table(out, experiment);
    for (half, run) in experiment.halves() {
        // One plot each way: the page has them all.
        let Some(plot) = run.plots.iter().flatten().next() else {
            continue;
        };
        let name = format!("{}-{half}.svg", anchor(&experiment.name));
        let path = folder.join(&name);
        std::fs::write(&path, svg(plot, "plot", true))
            .with_context(|| format!("writing {}", path.display()))?;
        let alt = plot.title.replace(['[', ']'], "");
        let _ = write!(out, "![{alt}](lab/{name})\n\n");
    }
    Ok(())
}

fn push_table(out: &mut String, experiment: &Experiment) {
    let rows = rows(experiment);
    if rows.is_empty() {
        return;
    }
    let halves: Vec<_> = experiment.halves().map(|(half, _)| half).collect();
    let _ = writeln!(
        out,
        "| measured | published | expected | {} |",
        halves.join(" | ")
    );
    let _ = writeln!(out, "| --- | --- | --- |{}", " --- |".repeat(halves.len()));
    let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    for row in rows {
        let cell = |half: &&str| {
            let found = row.cells.iter().find(|(name, _)| name == half);
            found.map_or_else(|| "–".to_owned(), |(_, cell)| plain(&told(cell)))
        };
        let cells: Vec<_> = halves.iter().map(cell).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            plain(&row.says),
            plain(&row.published),
            plain(&row.expected),
            cells.join(" | ")
        );
    }
    out.push('\n');
}

fn told(cell: &Cell) -> String {
    let verdict = match (cell.verdict, cell.finding) {
        (Verdict::Fail, true) => "differs",
        (verdict, _) => verdict.as_str(),
    };
    format!("{} ({verdict})", cell.measured)
}
