//! Which part may depend on which. A new arrow is a change of the architecture: write it there too.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;
use crate::repo::Repo;

/// What a part may depend on of ours, and what of others' it must not know. Tests are exempt.
struct Part {
    name: &'static str,
    may_use: &'static [&'static str],
    must_not_know: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part {
        name: "payment",
        may_use: &[],
        must_not_know: &[
            "async-trait",
            "axum",
            "futures",
            "hyper",
            "jiff",
            "leptos",
            "rand",
            "reqwest",
            "sqlx",
            "tokio",
            "web-sys",
        ],
    },
    Part {
        name: "app",
        may_use: &["payment"],
        must_not_know: &["axum", "reqwest", "sqlx"],
    },
    Part {
        name: "frontend",
        may_use: &["app"],
        must_not_know: &["axum", "reqwest", "sqlx"],
    },
    Part {
        name: "server",
        may_use: &["app", "payment"],
        must_not_know: &[],
    },
    // An oracle that shares code shares bugs.
    Part {
        name: "fakepg",
        may_use: &[],
        must_not_know: &["leptos", "sqlx"],
    },
    Part {
        name: "lab",
        may_use: &["fakepg", "payment", "server", "simulation"],
        // The rows themselves are counted, not what the server says of them.
        must_not_know: &["leptos"],
    },
    Part {
        name: "simulation",
        may_use: &["payment", "server"],
        must_not_know: &["axum", "leptos", "reqwest", "sqlx"],
    },
    // As a stranger would write it: it knows Jari by its API alone.
    Part {
        name: "shop",
        may_use: &[],
        must_not_know: &["leptos", "sqlx"],
    },
    Part {
        name: "xtask",
        may_use: &[],
        must_not_know: &[],
    },
];

/// The broken rules, one a line.
pub(super) fn check(repo: &Repo) -> Result<Vec<String>> {
    let mut metadata = repo.cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let text = process::answer(&mut metadata).context("`cargo metadata` failed")?;
    Ok(broken(&serde_json::from_str(&text)?))
}

fn broken(metadata: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    for package in list(metadata, "packages") {
        let name = word(package, "name");
        let Some(part) = PARTS.iter().find(|part| part.name == name) else {
            broken.push(format!(
                "{name}/Cargo.toml: xtask's tidy/arrows.rs does not list {name}"
            ));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let other = word(dependency, "name");
            let is_ours = PARTS.iter().any(|part| part.name == other);
            let may_not = is_ours && !part.may_use.contains(&other);
            let is_for_tests = word(dependency, "kind") == "dev";
            if !is_for_tests && (may_not || part.must_not_know.contains(&other)) {
                broken.push(format!(
                    "{name}/Cargo.toml: {name} must not depend on {other}"
                ));
            }
        }
    }
    broken
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::broken;
    use serde_json::json;

    #[test]
    fn forbidden_arrows_are_named_and_tests_are_exempt() {
        let metadata = json!({ "packages": [
            { "name": "payment", "dependencies": [{ "name": "tokio" }, { "name": "serde" }] },
            { "name": "app", "dependencies": [{ "name": "payment" }, { "name": "server" }] },
            { "name": "server", "dependencies": [{ "name": "fakepg", "kind": "dev" }] },
            { "name": "fakepg", "dependencies": [{ "name": "payment", "kind": null }] },
            { "name": "stray", "dependencies": [] },
        ]});
        assert_eq!(
            broken(&metadata),
            [
                "payment/Cargo.toml: payment must not depend on tokio",
                "app/Cargo.toml: app must not depend on server",
                "fakepg/Cargo.toml: fakepg must not depend on payment",
                "stray/Cargo.toml: xtask's tidy/arrows.rs does not list stray",
            ]
        );
    }
}
