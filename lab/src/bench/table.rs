//! The run as one table: ratios first, the databases side by side.

use std::fmt::Write as _;

use serde_json::Value;

use crate::plan::{Condition, Findings, Judged};

/// Figures without a criterion, as they are named in the report, and for people.
const FIGURES: [(&str, &str); 21] = [
    ("ordersPerSecond", "orders made/s"),
    ("confirmsPerSecond", "confirms/s to durable state"),
    ("floorPaidPerSecond", "floor: paid orders/s"),
    (
        "floorGroupedPaidPerSecond",
        "floor with grouped commits: paid orders/s",
    ),
    ("cpuMsPerPaidOrder", "CPU of the shop for a paid order, ms"),
    ("commitAloneMs", "a commit alone, ms"),
    ("confirmP50Ms", "confirm p50, 8 shoppers, ms"),
    ("confirmP99Ms", "confirm p99, 8 shoppers, ms"),
    ("pollsPerSecond", "polls/s (not modified)"),
    ("floorReadsPerSecond", "floor: reads/s"),
    ("historyBytes", "history page, bytes of HTML"),
    ("webhooksPerSecond", "webhooks/s, 8 senders"),
    ("floorWebhooksPerSecond", "floor: webhooks/s"),
    ("webhookP50Ms", "webhook p50, ms"),
    ("webhookP99Ms", "webhook p99, ms"),
    (
        "kibPerWaitingPayment",
        "memory for a payment that waits, KiB",
    ),
    ("waitingAtOnce", "payments that waited at once"),
    (
        "pageBytes",
        "checkout page with all it loads, bytes (Brotli)",
    ),
    ("pageBytes.checkout", "of these the page itself"),
    ("pageBytes.wasm", "of these the WebAssembly"),
    ("startMs", "from start to serving, ms"),
];
/// How wide the columns are.
const WIDTHS: (usize, usize) = (74, 26);

/// The table.
pub(super) fn text(names: &[&str], judged: &[Judged], findings: &Findings) -> String {
    let mut text = String::new();
    row(&mut text, "", names.iter().map(|name| (*name).to_owned()));
    let first = names.first().copied().unwrap_or_default();
    let own = |name: &str, id: &str| {
        let full = format!("{name}-{id}");
        judged.iter().find(|one| one.criterion.id == full)
    };
    let prefix = format!("{first}-");
    for one in judged {
        let Some(id) = one.criterion.id.strip_prefix(&prefix) else {
            continue;
        };
        let says = one.criterion.says.split_once(": ");
        let says = says.map_or(one.criterion.says.as_str(), |(_, says)| says);
        let cells = names
            .iter()
            .map(|name| own(name, id).map_or_else(String::new, cell));
        row(&mut text, says, cells);
    }
    text.push('\n');
    for (figure, says) in FIGURES {
        let of = |name: &&str| {
            let found = findings.conditions.iter().find(|(known, _)| known == name);
            found.map_or_else(String::new, |(_, condition)| shown(condition, figure))
        };
        row(&mut text, says, names.iter().map(of));
    }
    for (name, condition) in &findings.conditions {
        for check in condition.checks.iter().filter(|check| !check.holds) {
            let _ = writeln!(text, "NOT VALID, {name}: {} ({})", check.says, check.seen);
        }
    }
    text
}

fn row(text: &mut String, says: &str, cells: impl Iterator<Item = String>) {
    let (first, others) = WIDTHS;
    let says: String = says.chars().take(first).collect();
    let _ = write!(text, "{says:<first$}");
    for cell in cells {
        let _ = write!(text, "  {cell:>others$}");
    }
    text.push('\n');
}

fn cell(judged: &Judged) -> String {
    let measured = judged
        .measured
        .map_or("–".to_owned(), |value| value.to_string());
    let verdict = judged.verdict.as_str();
    format!("{measured} ({}: {verdict})", judged.criterion.rule.says())
}

fn shown(condition: &Condition, figure: &str) -> String {
    match condition.figures.get(figure) {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}
