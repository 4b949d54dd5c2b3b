//! The table of what an answer comes to, counted: every row has its tests, every code that is tried has its row.

use std::collections::BTreeSet;

use crate::outcome_tables::{check, tables};
use crate::rows;

#[test]
fn every_row_of_kakaopay_has_its_tests_and_every_code_its_row() {
    let all = tables("3.3 ");
    check(&all, &[15]);
    let answers = all[0].rows.iter().flat_map(|row| &row.answers);
    let named: BTreeSet<String> = answers
        .filter(|text| text.contains(" -"))
        .cloned()
        .collect();
    let mut tried = BTreeSet::new();
    tried.extend(
        rows::APPROVE
            .iter()
            .map(|(_, code, _)| format!("approve {code}")),
    );
    tried.extend(
        rows::CANCEL
            .iter()
            .map(|(_, code, _)| format!("cancel {code}")),
    );
    tried.extend(
        rows::ASKED
            .iter()
            .map(|(_, code, _)| format!("order {code}")),
    );
    assert_eq!(named, tried);
}
