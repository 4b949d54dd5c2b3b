//! What the experiment says in the end: its answer and its picture.

use super::{CAP_20, CAP_40, CASES, Case, FREE_3, FREE_5, SHIPPED, SHIPPED_FREE, seconds};
use crate::experiments::pictures;
use crate::harness::Lab;
use crate::plan::{Findings, Mark};

/// Adds answer and picture.
pub(super) fn draw(lab: &Lab, findings: &mut Findings) {
    let free = &CASES[..6];
    let of = |case: &Case| findings.value(&format!("read {}", case.name));
    let point = |case: &Case| Some((case.hold(), of(case)?));
    let formula = free
        .iter()
        .map(|case| (case.hold(), case.wait_p95_ms(seconds(lab))));
    let capped = [(3.0, of(&CAP_20)), (5.0, of(&CAP_40))];
    let capped = capped
        .into_iter()
        .filter_map(|(at, read)| Some((at, read?)));
    let answer = answer(findings);
    let lines = vec![
        pictures::line(
            "formula: one queue of 100 threads",
            Mark::Curve,
            formula.collect(),
        ),
        pictures::line(
            "published, no cap",
            Mark::Dots,
            vec![(2.0, 1_000.0), (3.0, 7_310.0), (5.0, 14_000.0)],
        ),
        pictures::line(
            "measured, no cap",
            Mark::Dots,
            free.iter().filter_map(point).collect(),
        ),
        pictures::line("measured, capped", Mark::Dots, capped.collect()),
    ];
    findings.answer = Some(answer);
    findings.plots.push(pictures::plot(
        "Without a cap everything waits behind the confirms that a slow gateway holds",
        "the gateway's delay, s",
        "p95 of light reads, ms",
        lines,
    ));
}

/// The answer, of valid conditions only.
fn answer(findings: &Findings) -> String {
    let read = |case: &Case, unit: &str| {
        let value = findings.value(&format!("read {}", case.name));
        match value.filter(|_| findings.is_valid(case.name)) {
            None => "(not valid)".to_owned(),
            Some(ms) if unit == "s" => format!("{:.1} s", ms / 1_000.0),
            Some(ms) => format!("{ms:.1} ms"),
        }
    };
    format!(
        "With 100 threads and no cap a read waits {} (p95) behind a gateway of 3 s and {} behind one of 5 s; with cap 40 {}. Jari holds no thread for a confirm: {} with the cap and {} without.",
        read(&FREE_3, "s"),
        read(&FREE_5, "s"),
        read(&CAP_40, "ms"),
        read(&SHIPPED, "ms"),
        read(&SHIPPED_FREE, "ms")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Condition;

    #[test]
    fn an_answer_names_no_figure_of_a_condition_that_is_not_valid() {
        let mut findings = Findings::default();
        for case in CASES {
            let mut condition = Condition::default();
            condition.check("answered", case.name != SHIPPED_FREE.name, "");
            findings.add(case.name, condition);
            findings.measure(&format!("read {}", case.name), 4_321.0);
        }
        let text = answer(&findings);
        assert!(
            text.ends_with("4321.0 ms with the cap and (not valid) without."),
            "{text}"
        );
        assert_eq!(text.matches("4.3 s").count(), 2);
    }
}
