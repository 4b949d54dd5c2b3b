//! The same for a reader of the repository: a document with its plots as files.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use super::plot::svg;
use super::read::{Experiment, Run};
use super::table::{Cell, otherwise, outcome, rows};
use super::text::{anchor, number};
use crate::plan::Regret;
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
        push_words(out, run, half);
    }
    push_table(out, experiment);
    for (half, run) in experiment.halves() {
        if let Some(regret) = &run.regret {
            let _ = write!(out, "{}\n\n", regretted(regret, half));
        }
    }
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

/// What a run says in words: its answer, how far it goes, what of it proves nothing, and what came out otherwise.
fn push_words(out: &mut String, run: &Run, half: &str) {
    if let Some(answer) = &run.answer {
        let _ = write!(out, "**{half}**: {answer}\n\n");
    }
    if run.quick {
        let _ = write!(
            out,
            "*{half}, shortened: it shows that the experiment works, not what it is to show.*\n\n"
        );
    }
    for condition in run.invalid() {
        let broken = condition.checks.iter().filter(|check| !check.holds);
        let broken = broken.map(|check| format!("{} ({})", check.says, check.seen));
        let _ = write!(
            out,
            "**Not valid** ({half}): *{}* proves nothing. What does not hold: {}.\n\n",
            condition.name,
            broken.collect::<Vec<_>>().join("; ")
        );
    }
    let mut any = false;
    for one in otherwise(run) {
        let word = if one.finding { "differs" } else { "FAIL" };
        let because = one
            .because
            .map_or_else(String::new, |why| format!(". {why}"));
        let _ = writeln!(out, "- {word} ({half}): {}{because}", one.says);
        any = true;
    }
    if any {
        out.push('\n');
    }
}

/// What shoppers were shown, in a line.
fn regretted(regret: &Regret, half: &str) -> String {
    let seconds = |ms: u64| number(ms as f64 / 1_000.0);
    format!(
        "Shown against the gateway's truth ({half}): {} shoppers, {} told failed and charged, {} told paid and not charged, {} charged twice; {} in doubt for a while (longest {} s), {} still when they had waited as long as the page does.",
        number(regret.shoppers as f64),
        regret.false_failures,
        regret.false_successes,
        regret.double_charges,
        number(regret.in_doubt as f64),
        seconds(regret.longest_doubt_ms),
        number(regret.left_in_doubt as f64)
    )
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
