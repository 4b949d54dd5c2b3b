//! Tests that the documents name by file and name must be there: a table of tests rots at the first rename otherwise.

use super::files::Source;

/// What a document may name: `end/of/path.rs::name_of_the_test`, or of a browser test `file.spec.ts::its title`.
const KINDS: [&str; 2] = [".rs::", ".ts::"];

/// The broken references of all documents, one a line.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let documents = sources
        .iter()
        .filter(|source| source.path.starts_with("docs/") && source.path.ends_with(".md"));
    let mut broken = Vec::new();
    for document in documents {
        for (number, line) in (1..).zip(document.text.lines()) {
            for (file, name) in references(line) {
                if let Some(why) = missing(sources, file, name) {
                    let path = &document.path;
                    broken.push(format!("{path}:{number}: {file}::{name}: {why}"));
                }
            }
        }
    }
    broken
}

/// The references in a line: what stands between backticks and names a file and a test.
fn references(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter_map(|span| {
        let at = KINDS.iter().find_map(|kind| span.find(kind))?;
        let (file, name) = span.split_at(at + 3);
        Some((file, name.trim_start_matches("::")))
    })
}

fn missing(sources: &[Source], file: &str, name: &str) -> Option<&'static str> {
    let is_it = |source: &&Source| {
        let start = source.path.strip_suffix(file);
        start.is_some_and(|start| start.is_empty() || start.ends_with('/'))
    };
    let mut found = sources.iter().filter(is_it).peekable();
    if found.peek().is_none() {
        return Some("there is no such file");
    }
    let has = |source: &Source| {
        if source.is_rust() {
            source.text.contains(&format!("fn {name}("))
        } else {
            // A title as it is written in the source, whatever quotes it has.
            ["'", "`", "\""]
                .iter()
                .any(|quote| source.text.contains(&format!("{quote}{name}{quote}")))
        }
    };
    (!found.any(has)).then_some("there is no such test in it")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::files::Source;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_document_names_only_tests_that_are_there() {
        let table = "| a | `api/pay.rs::it_pays`, `pay.spec.ts::pays in ${n} s` | `not::a::test` |\n\
                     | b | `api/pay.rs::it_does_not`, `ipay.rs::it_pays` `pay.spec.ts::pays` |\n";
        let sources = [
            source("docs/table.md", table),
            source("README.md", "`api/none.rs::it_is_not_looked_at`"),
            source("server/tests/api/pay.rs", "//! A.\nasync fn it_pays() {}\n"),
            source(
                "end2end/tests/pay.spec.ts",
                "test(`pays in ${n} s`, async () => {});\n",
            ),
        ];
        let absent = "there is no such test in it";
        assert_eq!(
            check(&sources),
            [
                format!("docs/table.md:2: api/pay.rs::it_does_not: {absent}"),
                "docs/table.md:2: ipay.rs::it_pays: there is no such file".to_owned(),
                format!("docs/table.md:2: pay.spec.ts::pays: {absent}"),
            ]
        );
    }
}
