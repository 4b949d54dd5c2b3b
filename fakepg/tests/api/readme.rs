//! What the README shows can be used as it stands.

use clap::{CommandFactory, Parser};
use fakepg::Options;
use fakepg::scenario::Scenario;
use serde_json::{Value, json};

const README: &str = include_str!("../../README.md");

/// The part of the README from one heading to the next of the same rank or higher.
fn section(heading: &str) -> &'static str {
    let start = README.find(heading).expect(heading);
    let body = &README[start + heading.len()..];
    let rank = heading.split(' ').next().expect("a rank");
    let ends = ["\n# ", "\n## ", "\n### "];
    let ends = ends.iter().filter(|end| end.trim().len() <= rank.len());
    let end = ends.filter_map(|end| body.find(end)).min();
    &body[..end.unwrap_or(body.len())]
}

/// The cells of the tables in a part, without their heads.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| line.starts_with('|'));
    let table = lines.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect());
    let table: Vec<Vec<&str>> = table.collect();
    let heads = |place: usize| {
        table
            .get(place + 1)
            .is_some_and(|row| row[0].starts_with("---"))
    };
    (0..table.len())
        .filter(|place| !heads(*place) && !table[*place][0].starts_with("---"))
        .map(|place| table[place].clone())
        .collect()
}

fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

fn reads(scenario: &str) -> Scenario {
    Scenario::from_json(scenario.as_bytes()).unwrap_or_else(|why| panic!("{scenario}: {why}"))
}

#[test]
fn every_example_of_the_switch_table_is_a_scenario_and_no_switch_is_left_out() {
    let mut named = Vec::new();
    let text = section("## Scenario").split("###").next().expect("a part");
    for row in rows(text) {
        let (name, example) = (code(row[0])[0], code(row[1])[0]);
        assert_ne!(
            reads(&format!("{{\"{name}\":{example}}}")),
            Scenario::default(),
            "{name}"
        );
        named.push(name.to_owned());
    }
    let all = json!({"slowTail": {"delayMs": 1}, "loss": {}, "hang": {"ms": 1}, "contractLimit": 1,
                     "rateLimit": 1, "decline": {}, "error": {}, "body": "html", "seed": 1,
                     "redirect": {"status": 302, "location": "http://x/"}, "confirmWindowMs": 1});
    let written = serde_json::to_value(reads(&all.to_string())).expect("JSON");
    for name in written.as_object().expect("an object").keys() {
        // Part of `body`.
        assert!(
            name == "dripMs" || named.contains(name),
            "{name} is not in the table"
        );
    }
}

#[test]
fn every_reading_of_every_uncertain_switch_is_a_scenario() {
    let mut named = Vec::new();
    for row in rows(section("### Uncertain switches")) {
        let name = code(row[1])[0];
        for reading in code(row[2]) {
            let inner = format!("{{\"{name}\":{reading}}}");
            let own = Scenario::from_json(inner.as_bytes()).is_ok();
            if !own {
                reads(&format!("{{\"kakaopay\":{inner}}}"));
                named.push(name);
            }
        }
    }
    for row in rows(section("## Stripe's wire")) {
        let Some(name) = row.get(1).and_then(|cell| code(cell).first().copied()) else {
            continue;
        };
        for reading in code(row.get(2).copied().unwrap_or_default()) {
            reads(&format!("{{\"stripe\":{{\"{name}\":{reading}}}}}"));
            named.push(name);
        }
    }
    let written = serde_json::to_value(Scenario::default().stripe).expect("JSON");
    for name in written.as_object().expect("an object").keys() {
        assert!(named.contains(&name.as_str()), "{name} is not in the table");
    }
    let written = serde_json::to_value(Scenario::default().kakaopay).expect("JSON");
    for name in written.as_object().expect("an object").keys() {
        assert!(named.contains(&name.as_str()), "{name} is not in the table");
    }
}

#[test]
fn every_scenario_file_is_one() {
    let files = blocks(section("### Scenario files"), "json");
    assert_eq!(files.len(), 3);
    for file in files {
        assert_ne!(reads(&file), Scenario::default());
    }
}

#[test]
fn the_example_of_a_ledger_is_json() {
    let ledger = &blocks(section("## Ledger"), "json")[0];
    serde_json::from_str::<Value>(ledger).expect("JSON");
}

#[test]
fn every_command_parses_and_every_flag_is_in_the_table() {
    let commands = blocks(section("## Run"), "sh").concat();
    let help = Options::command().render_long_help().to_string();
    let lines = commands.lines().chain(help.lines());
    let mut seen = 0;
    for line in lines
        .map(str::trim)
        .filter(|line| line.starts_with("fakepg --"))
    {
        Options::try_parse_from(line.split(' ')).unwrap_or_else(|why| panic!("{line}: {why}"));
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
    let flags: Vec<_> = rows(section("## Run"))
        .iter()
        .map(|row| code(row[0])[0].to_owned())
        .collect();
    for argument in Options::command().get_arguments() {
        let flag = format!("--{}", argument.get_long().expect("a name"));
        assert!(flags.contains(&flag), "{flag} is not in the table");
    }
}

#[test]
fn the_scenarios_in_the_help_are_scenarios() {
    let help = Options::command().render_long_help().to_string();
    let scenarios: Vec<_> = help
        .lines()
        .filter_map(|line| Some(&line[line.find("'{")? + 1..line.rfind("}'")? + 1]))
        .collect();
    assert_eq!(scenarios.len(), 3, "{help}");
    for scenario in scenarios {
        assert_ne!(reads(scenario), Scenario::default());
    }
}
