//! One page that needs nothing else: no script, no other file.

use std::fmt::Write as _;

use serde_json::Value;

use super::plot::{STYLE, svg};
use super::read::{Condition, Experiment, Run};
use super::table::{Cell, otherwise, outcome, rows};
use super::text::{anchor, escaped, number};
use crate::plan::{Plot, Regret};
use crate::verdict::Verdict;

/// The look of the page.
const PAGE_STYLE: &str = include_str!("paper.css");
/// Of a plot's points at most so many are told in its table.
const TOLD: usize = 60;

/// The whole page.
pub(super) fn page(experiments: &[Experiment]) -> String {
    let mut out = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>Jari lab report</title>\
         <style>{PAGE_STYLE}{STYLE}</style></head><body>\
         <a class=\"skip\" href=\"#main\">Skip to the experiments</a>\
         <header><h1>Jari lab report</h1><p>Every expectation was written down before its run. A criterion whose run proves \
         nothing is not valid, and never a pass. A finding is reported, and nothing fails for it.</p></header>"
    );
    push_contents(&mut out, experiments);
    out.push_str("<main id=\"main\">");
    for experiment in experiments {
        push_experiment(&mut out, experiment);
    }
    out.push_str("</main></body></html>\n");
    out
}

fn chip(verdict: Verdict, finding: bool) -> String {
    let (class, text) = match (verdict, finding) {
        (Verdict::Pass, _) => ("pass", "pass"),
        (Verdict::Fail, true) => ("differs", "differs"),
        (Verdict::Fail, false) => ("fail", "fail"),
        (Verdict::NotValid, _) => ("invalid", "not valid"),
    };
    format!("<span class=\"chip {class}\">{text}</span>")
}

fn push_contents(out: &mut String, experiments: &[Experiment]) {
    let took: f64 = experiments
        .iter()
        .flat_map(Experiment::halves)
        .filter_map(|(_, run)| run.took_seconds)
        .sum();
    let _ = write!(
        out,
        "<nav aria-label=\"Experiments\"><ol class=\"contents\">"
    );
    for experiment in experiments {
        let question = experiment
            .main()
            .map_or("", |run| run.plan.question.as_str());
        let _ = write!(
            out,
            "<li><a href=\"#{}\">{}</a> {} <span class=\"soft\">{}</span></li>",
            anchor(&experiment.name),
            escaped(&experiment.name),
            chip(outcome(experiment), false),
            escaped(question)
        );
    }
    out.push_str("</ol>");
    if took > 0.0 {
        let _ = write!(
            out,
            "<p class=\"soft\">All runs together took {}.</p>",
            span(took)
        );
    }
    out.push_str("</nav>");
}

/// A time span for people.
fn span(seconds: f64) -> String {
    if seconds >= 120.0 {
        format!("{} min", number(seconds / 60.0))
    } else {
        format!("{} s", number(seconds))
    }
}

fn push_experiment(out: &mut String, experiment: &Experiment) {
    let Some(main) = experiment.main() else {
        return;
    };
    let id = anchor(&experiment.name);
    let _ = write!(
        out,
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{} {}</h2><p class=\"question\">{}</p>",
        escaped(&experiment.name),
        chip(outcome(experiment), false),
        escaped(&main.plan.question)
    );
    for (half, run) in experiment.halves() {
        if let Some(answer) = &run.answer {
            let _ = write!(
                out,
                "<p class=\"answer\"><b>{}</b> {}</p>",
                named(half),
                escaped(answer)
            );
        }
        if run.quick {
            let _ = write!(
                out,
                "<p class=\"soft\">{} shortened: it shows that the experiment works, not what it is to show.</p>",
                named(half)
            );
        }
        push_otherwise(out, run, half);
    }
    push_table(out, experiment);
    for (half, run) in experiment.halves() {
        for (at, plot) in run.plots.iter().flatten().enumerate() {
            push_plot(out, plot, &format!("{id}-{half}-{at}"), half);
        }
        if let Some(regret) = &run.regret {
            push_regret(out, regret, (&experiment.name, half));
        }
        push_run(out, run, half);
    }
    out.push_str("</section>");
}

/// What came out otherwise than expected, and why.
fn push_otherwise(out: &mut String, run: &Run, half: &str) {
    let mut list = String::new();
    for one in otherwise(run) {
        let because = one.because.map_or_else(String::new, |why| {
            format!(" <span class=\"soft\">{}</span>", escaped(&why))
        });
        let _ = write!(
            list,
            "<li>{} {}{because}</li>",
            chip(Verdict::Fail, one.finding),
            escaped(&one.says)
        );
    }
    if !list.is_empty() {
        let _ = write!(
            out,
            "<p class=\"soft\">{half}: otherwise than expected</p><ul class=\"otherwise\">{list}</ul>"
        );
    }
}

fn named(half: &str) -> &'static str {
    if half == "real" {
        "Real programs:"
    } else {
        "Virtual time:"
    }
}

fn push_table(out: &mut String, experiment: &Experiment) {
    let rows = rows(experiment);
    if rows.is_empty() {
        return;
    }
    let halves: Vec<_> = experiment.halves().map(|(half, _)| half).collect();
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Criteria of {}\"><table><thead><tr><th scope=\"col\">measured</th><th scope=\"col\">published</th><th scope=\"col\">expected</th>",
        escaped(&experiment.name)
    );
    for half in &halves {
        let _ = write!(out, "<th scope=\"col\">{half}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>",
            escaped(&row.says),
            escaped(&row.published),
            escaped(&row.expected)
        );
        for half in &halves {
            let cell = row.cells.iter().find(|(name, _)| name == half);
            let text = cell.map_or_else(|| "–".to_owned(), |(_, cell)| shown(cell));
            let _ = write!(out, "<td>{text}</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn shown(cell: &Cell) -> String {
    format!(
        "<b>{}</b> {}",
        escaped(&cell.measured),
        chip(cell.verdict, cell.finding)
    )
}

fn push_plot(out: &mut String, plot: &Plot, id: &str, half: &str) {
    let _ = write!(
        out,
        "<figure><figcaption>{} <span class=\"soft\">{}</span></figcaption>{}",
        escaped(&plot.title),
        half,
        svg(plot, id, false)
    );
    let _ = write!(
        out,
        "<details><summary>The same as numbers</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Numbers of the plot {id}\"><table><thead><tr><th scope=\"col\">line</th>"
    );
    let _ = write!(
        out,
        "<th scope=\"col\">{}</th><th scope=\"col\">{}</th></tr></thead><tbody>",
        escaped(&plot.across),
        escaped(&plot.up)
    );
    for line in &plot.lines {
        let every = line.points.len().div_ceil(TOLD).max(1);
        for point in line.points.iter().step_by(every) {
            let _ = write!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(&line.name),
                number(point.0),
                number(point.1)
            );
        }
    }
    out.push_str("</tbody></table></div></details></figure>");
}

fn push_regret(out: &mut String, regret: &Regret, (name, half): (&str, &str)) {
    let share = |n: u64| number(n as f64 * 100.0 / (regret.shoppers.max(1)) as f64);
    let mean = regret.doubt_ms as f64 / 1_000.0 / (regret.in_doubt.max(1)) as f64;
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"What shoppers were shown, {} ({half})\"><table><caption>What shoppers were shown against the gateway's truth, {half}</caption><thead><tr>\
         <th scope=\"col\">shoppers</th><th scope=\"col\">told failed, charged</th><th scope=\"col\">told paid, not charged</th>\
         <th scope=\"col\">charged twice</th><th scope=\"col\">in doubt</th><th scope=\"col\">left in doubt</th>\
         <th scope=\"col\">mean doubt, s</th><th scope=\"col\">longest, s</th></tr></thead><tbody><tr>\
         <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} ({} %)</td><td>{} ({} %)</td><td>{}</td><td>{}</td></tr></tbody></table></div>",
        escaped(name),
        regret.shoppers,
        regret.false_failures,
        regret.false_successes,
        regret.double_charges,
        regret.in_doubt,
        share(regret.in_doubt),
        regret.left_in_doubt,
        share(regret.left_in_doubt),
        number(mean),
        number(regret.longest_doubt_ms as f64 / 1_000.0)
    );
}

/// What held for a run, and what was found under each condition.
fn push_run(out: &mut String, run: &Run, half: &str) {
    let conditions = run.conditions.iter().flatten();
    for condition in run.invalid() {
        let failed = condition.checks.iter().filter(|check| !check.holds);
        let _ = write!(
            out,
            "<p class=\"broken\">{}: the condition <b>{}</b> proves nothing.</p><ul class=\"broken\">",
            half,
            escaped(&condition.name)
        );
        for check in failed {
            let _ = write!(
                out,
                "<li>{}: {}</li>",
                escaped(&check.says),
                escaped(&check.seen)
            );
        }
        out.push_str("</ul>");
    }
    let took = run
        .took_seconds
        .map(|seconds| format!(", {}", span(seconds)))
        .unwrap_or_default();
    let _ = write!(
        out,
        "<details><summary>Setup, checks and figures ({half}{took})</summary><ul>"
    );
    for line in &run.plan.setup {
        let _ = write!(out, "<li>{}</li>", escaped(line));
    }
    let _ = write!(
        out,
        "<li>valid only if {}</li></ul>",
        escaped(&run.plan.valid_only_if.join("; "))
    );
    for condition in conditions {
        push_condition(out, condition);
    }
    out.push_str("</details>");
}

fn push_condition(out: &mut String, condition: &Condition) {
    let held = condition.checks.iter().filter(|check| check.holds).count();
    let _ = write!(
        out,
        "<h3>{} <span class=\"soft\">{held} of {} checks hold</span></h3><dl class=\"figures\">",
        escaped(&condition.name),
        condition.checks.len()
    );
    for (name, value) in &condition.figures {
        let _ = write!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escaped(name),
            escaped(&figure(value))
        );
    }
    out.push_str("</dl><ul class=\"checks\">");
    for check in &condition.checks {
        let sign = if check.holds {
            "holds"
        } else {
            "does not hold"
        };
        let _ = write!(
            out,
            "<li>{}: {} <span class=\"soft\">{sign}</span></li>",
            escaped(&check.says),
            escaped(&check.seen)
        );
    }
    out.push_str("</ul>");
}

fn figure(value: &Value) -> String {
    match value {
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), number),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let parts = fields
                .iter()
                .map(|(name, value)| format!("{name} {}", figure(value)));
            parts.collect::<Vec<_>>().join(", ")
        }
        Value::Array(items) => items.iter().map(figure).collect::<Vec<_>>().join(", "),
        Value::Null => "none".to_owned(),
        Value::Bool(yes) => yes.to_string(),
    }
}
