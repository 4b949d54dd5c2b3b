//! Every setting as a table for people to read, made from the flags themselves.

use std::fmt::Write as _;

use clap::{Arg, Args as _, Command};

use super::Settings;

/// What stands above the table.
const HEAD: &str = "\
# Settings

Printed by `jari settings`. Each can be a flag, an environment variable or a line of a TOML file (`--config FILE`, by the
flag's name with `_` for `-`); a flag outranks the environment, and that the file. `jari check-config` prints those in
force, without secrets, and refuses what does not fit together.

| setting | environment | default | what |
| --- | --- | --- | --- |
";

/// Every setting, as Markdown.
#[must_use]
pub fn markdown() -> String {
    let command = Settings::augment_args(Command::new("jari"));
    let mut table = HEAD.to_owned();
    for arg in command.get_arguments() {
        // Writing to a text cannot fail.
        let _ = writeln!(table, "{}", row(arg));
    }
    table
}

fn row(arg: &Arg) -> String {
    let flag = arg.get_long().unwrap_or_default();
    let variable = arg.get_env().map_or("", |name| name.to_str().unwrap_or(""));
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let (what, default) = split(&help);
    format!(
        "| `--{flag}` | `{variable}` | {} | {} |",
        cell(&default),
        cell(&what)
    )
}

/// The words of a help, and the default that they name at their end.
fn split(help: &str) -> (String, String) {
    let begins = help.rfind("[default").filter(|_| help.ends_with(']'));
    let Some(begins) = begins else {
        return (help.to_owned(), "–".to_owned());
    };
    let (what, named) = help.split_at(begins);
    let named = named.trim_start_matches("[default").trim_end_matches(']');
    let default = named.strip_prefix(": ").unwrap_or(named.trim());
    (what.trim().to_owned(), default.to_owned())
}

/// A text that ends no cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_of_the_settings_is_what_the_program_prints() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        let written = std::fs::read_to_string(path).expect("docs/settings.md");
        assert!(
            written == markdown(),
            "run: cargo run -p server --bin jari -- settings > docs/settings.md"
        );
    }

    #[test]
    fn a_default_that_a_help_names_has_a_cell_of_its_own() {
        for (help, what, default) in [
            (
                "Where to listen [default: 127.0.0.1:3000]",
                "Where to listen",
                "127.0.0.1:3000",
            ),
            (
                "Whether fake [default in development: on]",
                "Whether fake",
                "in development: on",
            ),
            ("Without one", "Without one", "–"),
        ] {
            assert_eq!(split(help), (what.to_owned(), default.to_owned()), "{help}");
        }
    }

    #[test]
    fn every_setting_says_what_it_is_and_has_a_variable() {
        for line in markdown().lines().filter(|line| line.starts_with("| `--")) {
            let cells: Vec<_> = line.split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 4, "{line}");
            assert!(cells[1].len() > 2 && cells[3] != "|", "{line}");
        }
    }
}
