//! The tables of what an answer comes to, counted: every row has its tests, every pair that is tried has its row.

use std::collections::BTreeSet;

use crate::outcome_tables::{Table, check, tables};
use crate::rows;

/// The pairs of status and code that a table names.
fn named(table: &Table) -> BTreeSet<String> {
    let answers = table.rows.iter().flat_map(|row| &row.answers);
    let pairs = answers.filter(|answer| answer.starts_with(|first: char| first.is_ascii_digit()));
    pairs.cloned().collect()
}

/// Those of a list of rows; of a 429 any code is as good as another.
fn tried<'a>(pairs: impl Iterator<Item = (u16, &'a str)>) -> BTreeSet<String> {
    let pairs = pairs.filter(|(status, _)| *status != 429);
    pairs
        .map(|(status, code)| format!("{status} {code}"))
        .collect()
}

#[test]
fn every_row_of_toss_has_its_tests_and_every_pair_of_status_and_code_its_row() {
    let mut all = tables("3.1 ");
    all.extend(tables("3.2 "));
    check(&all, &[22, 7, 16]);
    let confirm = rows::CONFIRM
        .iter()
        .map(|(status, code, _)| (*status, *code));
    assert_eq!(named(&all[0]), tried(confirm));
    let cancel = rows::CANCEL
        .iter()
        .map(|(status, code, _)| (*status, *code));
    assert_eq!(named(&all[2]), tried(cancel));
}
