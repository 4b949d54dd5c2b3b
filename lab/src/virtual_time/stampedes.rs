//! Stampedes: clients with retry schedules straight against a gateway (`crate::stampede`), without a server: what the authors
//! of the published one left open.

mod burst;
mod jitter;
mod keyless;
mod mixed;
mod waves;

use super::{Size, Virtual};

/// Every one.
pub(super) const ALL: &[Virtual] = &[
    jitter::EXPERIMENT,
    burst::EXPERIMENT,
    keyless::EXPERIMENT,
    mixed::EXPERIMENT,
];

/// How many seeds a stampede is run from: it is cheap.
const fn runs(size: Size) -> u64 {
    size.pick(200, 30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::judge_all;
    use crate::verdict::Verdict;

    #[test]
    fn stampedes_come_out_as_they_were_reckoned_and_draw_and_answer() {
        for experiment in [jitter::EXPERIMENT, mixed::EXPERIMENT] {
            let size = Size { full: false };
            let (plan, findings) = ((experiment.plan)(size), (experiment.run)(size));
            for judged in judge_all(&plan, &findings) {
                let (id, value) = (&judged.criterion.id, judged.measured);
                let passed = judged.verdict == Verdict::Pass;
                assert!(passed, "{}: {id}: {value:?}", experiment.name);
            }
            assert!(!findings.plots.is_empty(), "{}", experiment.name);
            assert!(findings.answer.is_some(), "{}", experiment.name);
        }
    }
}
