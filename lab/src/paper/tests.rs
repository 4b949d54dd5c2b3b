//! The page from a folder: what is not valid is never shown as passed, and what a run says is no markup.

use serde_json::{Value, json};

use super::{Options, run};

fn report(verdict: &str, valid: bool) -> Value {
    json!({
        "experiment": "cap", "quick": false, "ran": true,
        "plan": {"question": "Is <it> so?", "setup": ["10/s"], "validOnlyIf": ["traffic"], "criteria": []},
        "verdicts": [{
            "id": "share", "says": "refused, %", "rule": {"kind": "within", "target": 84.0, "tolerance": 1.0},
            "published": "84.0 %", "restsOn": ["a"], "finding": false, "measured": 83.9, "verdict": verdict
        }],
        "conditions": [{"name": "a", "valid": valid, "figures": {"n": 3},
            "checks": [{"says": "traffic", "holds": valid, "seen": "0"}]}],
        "spreads": {
            "share": {"runs": 30, "least": 83.0, "median": 83.9, "most": 84.6, "deviation": 0.2},
            "never": {"runs": 3, "least": 1.0, "median": 2.0, "most": null, "deviation": null},
        },
        "plots": [{"title": "Refused", "across": "s", "up": "%", "logAcross": false,
            "lines": [{"name": "measured", "mark": "dots", "points": [[0.0, 0.0], [4.0, null], [5.0, 84.0]]}]}],
        "answer": "It is <so>.",
        "regret": {"shoppers": 10, "falseFailures": 0, "falseSuccesses": 0, "doubleCharges": 0, "inDoubt": 2,
            "leftInDoubt": 1, "doubtMs": 4000, "longestDoubtMs": 3000},
    })
}

/// The page, the CSV and the document of a folder with these files.
fn made(files: &[(&str, Value)]) -> (String, String, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in files {
        std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    }
    let docs = folder.path().join("docs.md");
    std::fs::write(&docs, "# By people\n").unwrap();
    let options = Options {
        folder: folder.path().to_owned(),
        docs: Some(docs.clone()),
    };
    run(&options).unwrap();
    // Once more, over its own files.
    run(&options).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let plot = read("lab/cap-real.svg");
    assert!(plot.starts_with("<svg") && plot.contains("xmlns"));
    (read("report.html"), read("report.csv"), read("docs.md"))
}

#[test]
fn real_and_virtual_stand_side_by_side() {
    let (html, csv, docs) = made(&[
        ("cap.json", report("pass", true)),
        ("cap.virtual.json", report("fail", true)),
    ]);
    assert_eq!(html.matches("<section id=\"cap\"").count(), 1);
    assert!(html.contains("83.9 (83 to 84.6, 30 runs)"));
    assert!(html.contains("<th scope=\"col\">real</th><th scope=\"col\">virtual</th>"));
    assert!(!html.contains("<it>") && !html.contains("<so>") && !html.contains("http://"));
    assert_eq!(csv.lines().count(), 3);
    assert!(docs.starts_with("# By people\n") && docs.matches("## cap").count() == 1);
    assert!(docs.contains("![Refused](lab/cap-real.svg)"));
}

#[test]
fn what_came_out_otherwise_is_told_with_its_reason_both_ways() {
    let mut failed = report("fail", true);
    failed["quick"] = json!(true);
    failed["verdicts"][0]["because"] = json!("The <disk> was busy.");
    let (html, _, docs) = made(&[("cap.json", failed)]);
    assert!(
        html.contains("otherwise than expected") && html.contains("The &lt;disk&gt; was busy.")
    );
    assert!(html.contains("expected 84 ± 1; published: 84.0 %"));
    assert!(docs.contains("- FAIL (real): refused, %: 83.9 (83 to 84.6, 30 runs) (expected 84 ± 1; published: 84.0 %). The <disk> was busy."));
    assert!(docs.contains(
        "*real, shortened: it shows that the experiment works, not what it is to show.*"
    ));
    assert!(docs.contains("10 shoppers, 0 told failed and charged"));
}

#[test]
fn a_verdict_is_worth_what_its_own_condition_is() {
    let mut two = report("pass", true);
    let mut other = two["verdicts"][0].clone();
    other["id"] = json!("other");
    other["restsOn"] = json!(["b"]);
    two["verdicts"].as_array_mut().unwrap().push(other);
    let broken = json!({"name": "b", "valid": false, "figures": {},
        "checks": [{"says": "all are answered", "holds": false, "seen": "1"}]});
    two["conditions"].as_array_mut().unwrap().push(broken);
    let (html, csv, docs) = made(&[("cap.json", two)]);
    let main = html.split("<main").nth(1).unwrap();
    assert_eq!(
        main.matches("<b>83.9 (83 to 84.6, 30 runs)</b> <span class=\"chip pass\">")
            .count(),
        1
    );
    assert_eq!(
        main.matches("</b> <span class=\"chip invalid\">").count(),
        1
    );
    assert_eq!(csv.matches(",NOT VALID,").count(), 1);
    assert!(docs.contains(
        "**Not valid** (real): *b* proves nothing. What does not hold: all are answered (1)."
    ));
}

#[test]
fn what_is_not_valid_is_never_shown_as_passed() {
    let (html, _, docs) = made(&[("cap.json", report("pass", false))]);
    let contents = html.split("<main").next().unwrap();
    assert!(contents.contains("not valid") && !contents.contains("chip pass"));
    assert!(html.contains("proves nothing"));
    assert!(docs.contains("(NOT VALID)"));
}

#[test]
fn a_folder_without_runs_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        folder: folder.path().to_owned(),
        docs: None,
    };
    let error = run(&options).unwrap_err().to_string();
    assert!(error.contains("holds no report"), "{error}");
}
