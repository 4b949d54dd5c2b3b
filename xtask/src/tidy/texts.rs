//! What must not stand in a file, line by line.

use super::files::Source;

/// A text that must not stand in the files below a path.
struct Ban {
    /// Where: the start and the end of the path.
    below: &'static str,
    ending: &'static str,
    text: &'static str,
    why: &'static str,
    /// Comments may name what code must not use.
    in_comments: bool,
}

const fn ban(below: &'static str, text: &'static str, why: &'static str) -> Ban {
    Ban {
        below,
        ending: ".rs",
        text,
        why,
        in_comments: false,
    }
}

const fn ban_everywhere(ending: &'static str, text: &'static str, why: &'static str) -> Ban {
    Ban {
        below: "",
        ending,
        text,
        why,
        in_comments: true,
    }
}

const BY_SHEET: &str = "policy reads what a gateway can do, never its name";

// The texts are put together from halves, or this file would break its own rules.
const BANS: &[Ban] = &[
    ban_everywhere(
        ".rs",
        concat!("#[", "ignore"),
        "a test that does not run is no test",
    ),
    ban_everywhere(
        ".rs",
        concat!("should_", "panic"),
        "assert the error, not any panic",
    ),
    ban_everywhere(".rs", concat!("todo", "!("), "unfinished"),
    ban_everywhere(".rs", concat!("unimplemented", "!("), "unfinished"),
    ban_everywhere(
        ".ts",
        concat!("test.", "only("),
        "would leave the other tests out",
    ),
    ban_everywhere(
        ".ts",
        concat!("describe.", "only("),
        "would leave the other tests out",
    ),
    ban_everywhere(
        ".ts",
        concat!("test.", "skip("),
        "a test that does not run is no test",
    ),
    ban_everywhere(
        ".ts",
        concat!("describe.", "skip("),
        "a test that does not run is no test",
    ),
    ban_everywhere(
        ".ts",
        concat!("test.", "fixme("),
        "a test that does not run is no test",
    ),
    ban_everywhere("", concat!("<<<<", "<<< "), "left by a merge"),
    ban_everywhere("", concat!(">>>>", ">>> "), "left by a merge"),
    ban_everywhere(
        "package-lock.json",
        "\"resolved\"",
        "the lock names no host to fetch from",
    ),
    ban_everywhere(
        "package-lock.json",
        "registry.",
        "the lock names no host to fetch from",
    ),
    ban_everywhere(
        ".npmrc",
        "registry=",
        "where to fetch from is the machine's affair",
    ),
    ban(
        "payment/src/",
        "std::time::",
        "the machines get the time as an argument",
    ),
    ban(
        "payment/src/",
        "SystemTime",
        "the machines get the time as an argument",
    ),
    ban("payment/src/", "tokio", "the machines do no I/O"),
    ban("server/src/confirm", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/confirm", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/confirm", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/resolve", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/resolve", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/resolve", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/refund", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/refund", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/refund", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/recovery", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/recovery", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/recovery", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/window", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/window", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/window", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/inbox", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/inbox", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/inbox", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/store", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/store", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/store", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/http", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/http", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/http", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/app", concat!("\"", "toss\""), BY_SHEET),
    ban("server/src/app", concat!("\"", "kakaopay\""), BY_SHEET),
    ban("server/src/app", concat!("\"", "stripe\""), BY_SHEET),
    ban("server/src/http", "sqlx::", "routes go through the store"),
    ban("server/src/gateway", "sqlx::", "gateways know no database"),
    ban(
        "server/src/gateway",
        "crate::store",
        "gateways know no database",
    ),
    ban(
        "server/src/gateway",
        "crate::http",
        "gateways know no routes of ours",
    ),
    ban("server/src/store", "crate::http", "stores know no routes"),
    ban("server/src/store", "reqwest::", "stores call nobody"),
];

/// The broken rules of one file, one a line.
pub(super) fn check(source: &Source) -> Vec<String> {
    let Source { path, text } = source;
    let mut broken = Vec::new();
    if source.is_rust() {
        if !text.starts_with("//!") {
            broken.push(format!(
                "{path}:1: the first line says by `//!` what the file owns"
            ));
        }
        if path.rsplit('/').next() == Some("mod.rs") {
            broken.push(format!(
                "{path}: modules are `name.rs`, beside a folder `name`"
            ));
        }
    }
    let bans: Vec<&Ban> = BANS
        .iter()
        .filter(|ban| path.starts_with(ban.below) && path.ends_with(ban.ending))
        .collect();
    for (number, line) in (1..).zip(text.lines()) {
        let is_comment = line.trim_start().starts_with("//");
        for ban in &bans {
            if line.contains(ban.text) && (ban.in_comments || !is_comment) {
                broken.push(format!("{path}:{number}: `{}`: {}", ban.text, ban.why));
            }
        }
        if let Some(folder) = machine_folder(line) {
            broken.push(format!(
                "{path}:{number}: `{folder}` is a folder of one machine only"
            ));
        }
    }
    broken
}

/// Folders that name somebody's machine.
const MACHINE_FOLDERS: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
];

/// The first absolute path in the line that leads into such a folder.
fn machine_folder(line: &str) -> Option<&'static str> {
    MACHINE_FOLDERS.into_iter().find(|folder| {
        line.match_indices(folder).any(|(at, _)| {
            // After one of these the text is a part of a longer path or of an address.
            let is_inner = |c: char| c.is_alphanumeric() || "._-~*}>)]".contains(c);
            !line[..at].chars().next_back().is_some_and(is_inner)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{check, machine_folder};
    use crate::tidy::files::Source;

    fn broken(path: &str, text: &str) -> Vec<String> {
        check(&Source {
            path: path.to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn a_tidy_file_breaks_nothing() {
        assert_eq!(
            broken("payment/src/lib.rs", "//! Pure: no tokio.\n// nor tokio\n"),
            [""; 0]
        );
        assert_eq!(
            broken("fakepg/src/main.rs", "//! Main.\nuse tokio::net;\n"),
            [""; 0]
        );
    }

    #[test]
    fn a_rust_file_says_what_it_owns_and_is_no_mod_rs() {
        assert_eq!(broken("a/src/b/mod.rs", "use std::fs;\n").len(), 2);
    }

    #[test]
    fn the_machines_use_no_clock() {
        let found = broken(
            "payment/src/time.rs",
            "//! Time.\nuse std::time::Instant;\n",
        );
        assert_eq!(
            found,
            ["payment/src/time.rs:2: `std::time::`: the machines get the time as an argument"]
        );
    }

    #[test]
    fn tests_that_do_not_run_are_found() {
        let rust = format!("//! A.\n#[{}]\nfn b() {{}}\n", "ignore");
        assert_eq!(broken("server/tests/a.rs", &rust).len(), 1);
        let script = format!("test.{}('a', async () => {{}});\n", "only");
        assert_eq!(broken("end2end/tests/a.spec.ts", &script).len(), 1);
    }

    #[test]
    fn what_a_merge_left_is_found_in_any_file() {
        let text = format!(
            "{} HEAD\na\n=======\nb\n{} other\n",
            "<".repeat(7),
            ">".repeat(7)
        );
        assert_eq!(broken("CHANGELOG.md", &text).len(), 2);
    }

    #[test]
    fn a_lock_with_hosts_is_found() {
        let lock = "\"resolved\": \"https://registry.example/a.tgz\"\n";
        assert_eq!(broken("end2end/package-lock.json", lock).len(), 2);
    }

    #[test]
    fn paths_of_one_machine_are_found_and_parts_of_others_are_not() {
        for folder in ["home", "work"] {
            assert!(machine_folder(&format!("see /{folder}/me/jari")).is_some());
            assert!(machine_folder(&format!("at=\"/{folder}/jari\"")).is_some());
            assert!(machine_folder(&format!("src/{folder}/jari")).is_none());
            assert!(machine_folder(&format!("https://example.com/{folder}/x")).is_none());
        }
    }
}
