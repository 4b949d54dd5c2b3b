//! Verdicts: what is expected with which tolerance, fixed before a run, and what the measured value makes of it.

use serde::{Deserialize, Serialize};

/// A numeric rule; inclusive at its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum Rule {
    /// Not further from the target than the tolerance.
    Within {
        /// What is expected.
        target: f64,
        /// How far off is still right.
        tolerance: f64,
    },
    /// Not outside.
    Between {
        /// The smallest right value.
        least: f64,
        /// The largest right value.
        most: f64,
    },
    /// Not above.
    AtMost {
        /// The largest right value.
        most: f64,
    },
    /// Strictly above.
    Above {
        /// The largest wrong value.
        bound: f64,
    },
}

impl Rule {
    /// Exactly this whole number.
    pub(crate) const fn exactly(target: f64) -> Self {
        Self::Within {
            target,
            tolerance: 0.0,
        }
    }

    /// Whether a value is right. What is no number never is.
    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Self::Within { target, tolerance } => (value - target).abs() <= tolerance,
            Self::Between { least, most } => (least..=most).contains(&value),
            Self::AtMost { most } => value <= most,
            Self::Above { bound } => value > bound,
        }
    }

    /// For people.
    pub(crate) fn says(self) -> String {
        match self {
            Self::Within {
                target,
                tolerance: 0.0,
            } => format!("exactly {target}"),
            Self::Within { target, tolerance } => format!("{target} ± {tolerance}"),
            Self::Between { least, most } => format!("{least} to {most}"),
            Self::AtMost { most } => format!("≤ {most}"),
            Self::Above { bound } => format!("> {bound}"),
        }
    }
}

/// What a criterion came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail,
    /// The run it rests on proves nothing.
    NotValid,
}

impl Verdict {
    /// For people.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::NotValid => "NOT VALID",
        }
    }
}

/// Judges a value by its rule. A run that is not valid, or that measured nothing, can neither pass nor fail.
pub(crate) fn judge(rule: Rule, measured: Option<f64>, valid: bool) -> Verdict {
    match measured {
        Some(value) if valid && !value.is_nan() => {
            if rule.holds(value) {
                Verdict::Pass
            } else {
                Verdict::Fail
            }
        }
        Some(_) | None => Verdict::NotValid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_at_their_bounds_and_not_beyond() {
        let within = Rule::Within {
            target: 31.5,
            tolerance: 1.5,
        };
        assert!(within.holds(30.0) && within.holds(33.0));
        assert!(!within.holds(29.9) && !within.holds(33.1));
        let between = Rule::Between {
            least: 4.0,
            most: 14.0,
        };
        assert!(between.holds(4.0) && between.holds(14.0) && !between.holds(14.1));
        assert!(Rule::AtMost { most: 40.0 }.holds(40.0));
        assert!(!Rule::AtMost { most: 40.0 }.holds(f64::INFINITY));
        assert!(Rule::Above { bound: 0.0 }.holds(1.0) && !Rule::Above { bound: 0.0 }.holds(0.0));
        assert!(Rule::exactly(0.0).holds(0.0) && !Rule::exactly(0.0).holds(0.001));
    }

    #[test]
    fn a_control_that_must_fail_fails() {
        let rule = Rule::AtMost { most: 10.0 };
        assert_eq!(judge(rule, Some(11.0), true), Verdict::Fail);
        assert_eq!(judge(rule, Some(f64::INFINITY), true), Verdict::Fail);
        assert_eq!(judge(rule, Some(9.0), true), Verdict::Pass);
    }

    #[test]
    fn what_was_not_measured_or_not_valid_is_no_pass_and_no_fail() {
        let rule = Rule::AtMost { most: 10.0 };
        assert_eq!(judge(rule, None, true), Verdict::NotValid);
        assert_eq!(judge(rule, Some(9.0), false), Verdict::NotValid);
        assert_eq!(judge(rule, Some(11.0), false), Verdict::NotValid);
        assert_eq!(judge(rule, Some(f64::NAN), true), Verdict::NotValid);
    }
}
