//! The dashboard and the alert rules speak of metrics that the server really has, and every alert has its page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::shop::Shop;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the project")
}

/// Every expression in a dashboard, wherever it stands.
fn expressions(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "expr" => into.push(text.clone()),
                    other => expressions(other, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, into)),
        _ => {}
    }
}

/// The expressions of the alert rules: what stands between `expr:` and `for:`.
fn alert_expressions(yaml: &str) -> Vec<String> {
    yaml.split("expr:")
        .skip(1)
        .map(|rest| {
            rest.split("\n        for:")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// The metrics that an expression names: our prefixes, outside of quotes and label lists.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    const PREFIXES: [&str; 15] = [
        "pg_",
        "payments_",
        "payment_",
        "webhook_",
        "webhooks_",
        "http_",
        "circuit_",
        "db_",
        "database_",
        "recovery_",
        "nodes_",
        "outbox_",
        "poll_",
        "runtime_",
        "rate_",
    ];
    let mut plain = String::new();
    let (mut quoted, mut depth) = (false, 0);
    for c in expression.chars() {
        match c {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        plain.push(if quoted || depth > 0 { ' ' } else { c });
    }
    plain
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        .filter(|word| !word.ends_with('_'))
        .map(|word| {
            ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| word.strip_suffix(end))
                .unwrap_or(word)
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn dashboard_and_alerts_name_only_metrics_that_the_server_has() {
    let shop = Shop::open().await;
    // A payment that was in doubt until it was asked about, and one of which a webhook tells: what a calm start does not
    // move.
    shop.set(json!({"loss": {"when": "after"}, "webhooks": {"drop": 1.0}}))
        .await;
    let order = shop.order("mug", 1).await;
    shop.pay(&order).await;
    shop.until_status(&order, "paid").await;
    shop.set(json!({})).await;
    let order = shop.order("mug", 1).await;
    shop.pay(&order).await;
    shop.until_metric(
        "webhook_events_total{gateway=\"toss\",result=\"applied\"}",
        1.0,
    )
    .await;
    let text = shop.metrics().await;
    let has: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let mut named = Vec::new();
    let dashboard: Value = serde_json::from_str(&read("ops/grafana/jari.json")).expect("JSON");
    expressions(&dashboard, &mut named);
    assert!(named.len() > 50, "{} expressions", named.len());
    let alerts = alert_expressions(&read("ops/prometheus/alerts.yml"));
    assert!(alerts.len() > 20, "{} alerts", alerts.len());
    named.extend(alerts);
    for expression in named {
        for metric in metrics_in(&expression) {
            assert!(
                has.contains(metric.as_str()),
                "no {metric}: {expression}\n{has:?}"
            );
        }
    }
    shop.end().await;
}

#[test]
fn every_alert_has_its_page_in_the_runbook() {
    let alerts = read("ops/prometheus/alerts.yml");
    let pages: Vec<_> = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("runbook_url: "))
        .collect();
    let rules = alerts.matches("- alert: ").count();
    assert_eq!(pages.len(), rules, "each rule names its page");
    for page in pages {
        assert!(root().join(page).is_file(), "{page}");
    }
}
