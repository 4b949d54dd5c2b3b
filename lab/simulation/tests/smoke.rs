//! A few hundred seeds at every test run; long runs are `lab simulate`.

use simulation::{Bug, run, run_seeds};

/// Enough to meet every state, few enough for every run of the tests.
const SEEDS: u64 = 200;
/// Within so many each planted bug must be found.
const SEEDS_FOR_A_BUG: u64 = 300;

#[test]
fn nothing_that_must_hold_breaks_in_any_seed() {
    let report = run_seeds(0..SEEDS, 2, None, &[]);
    assert!(report.is_good(), "{}", report.text());
}

#[test]
fn a_seed_replays_exactly_and_another_does_not() {
    let first = run(7, None, true, &[]);
    let again = run(7, None, true, &[]);
    assert_eq!(first.lines, again.lines);
    assert_eq!(first.hash, again.hash);
    assert_ne!(first.hash, run(8, None, false, &[]).hash);
}

#[test]
fn every_planted_bug_is_found() {
    for bug in Bug::ALL {
        let found =
            (0..SEEDS_FOR_A_BUG).any(|seed| !run(seed, Some(bug), false, &[]).wrong.is_empty());
        assert!(found, "{bug:?} was not found in {SEEDS_FOR_A_BUG} seeds");
    }
}
