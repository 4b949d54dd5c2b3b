//! The value types of a scenario: ratios, delays, and which side of the booking a fault strikes.

use rand::Rng;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A share of the calls, from 0 (none) to 1 (all, the default).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Ratio(f64);

impl Ratio {
    /// Every call.
    pub const ALL: Self = Self(1.0);
    /// No call.
    pub const NONE: Self = Self(0.0);

    /// Whether a draw from `[0, 1)` falls into this share.
    pub fn hits(self, draw: f64) -> bool {
        draw < self.0
    }
}

impl Default for Ratio {
    fn default() -> Self {
        Self::ALL
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(D::Error::custom(format!(
                "a ratio lies between 0 and 1, not {share}"
            )))
        }
    }
}

/// Which side of the booking a fault strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// Before anything is booked (default).
    #[default]
    Before,
    /// After the booking, before the caller hears of it.
    After,
}

/// How long something takes, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(u64),
    /// Uniform between two bounds.
    Uniform {
        /// Shortest.
        min: u64,
        /// Longest.
        max: u64,
    },
    /// Exponential around a mean.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Normal, cut at zero.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        sd: f64,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

/// No draw of a distribution exceeds this: an hour outlives every caller.
const LONGEST_MS: f64 = 3_600_000.0;

impl Delay {
    /// Draws one delay from two numbers in `[0, 1)`, so that one call always uses up two draws.
    pub fn draw(self, [first, second]: [f64; 2]) -> u64 {
        let millis = match self {
            Self::Fixed(millis) => return millis,
            Self::Uniform { min, max } => return min + ((max - min) as f64 * first).round() as u64,
            Self::Exponential { mean } => -mean * (1.0 - first).ln(),
            // Box-Muller; 1 - first is in (0, 1], so the logarithm is finite.
            Self::Normal { mean, sd } => {
                let spread = (-2.0 * (1.0 - first).ln()).sqrt();
                mean + sd * spread * (std::f64::consts::TAU * second).cos()
            }
        };
        millis.clamp(0.0, LONGEST_MS).round() as u64
    }

    /// Draws one delay straight from a generator.
    pub fn sample(self, rng: &mut impl Rng) -> u64 {
        self.draw([rng.random(), rng.random()])
    }
}

impl Serialize for Delay {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(millis) => serde_json::json!(millis),
            Self::Uniform { min, max } => serde_json::json!({"min": min, "max": max}),
            Self::Exponential { mean } => serde_json::json!({"mean": mean}),
            Self::Normal { mean, sd } => serde_json::json!({"normal": {"mean": mean, "sd": sd}}),
        }
        .serialize(serializer)
    }
}

const DELAY_FORMS: &str =
    r#"a delay is a number of ms, {"min","max"}, {"mean"} or {"normal":{"mean","sd"}}"#;

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        delay_from(&value).ok_or_else(|| D::Error::custom(format!("{DELAY_FORMS}, not {value}")))
    }
}

fn delay_from(value: &Value) -> Option<Delay> {
    if let Some(millis) = value.as_u64() {
        return Some(Delay::Fixed(millis));
    }
    let fields = value.as_object()?;
    match (fields.len(), fields.get("normal")) {
        (1, Some(Value::Object(normal))) if normal.len() == 2 => Some(Delay::Normal {
            mean: positive(normal, "mean")?,
            sd: positive(normal, "sd")?,
        }),
        (1, None) => Some(Delay::Exponential {
            mean: positive(fields, "mean")?,
        }),
        (2, None) => {
            let (min, max) = (fields.get("min")?.as_u64()?, fields.get("max")?.as_u64()?);
            (min <= max).then_some(Delay::Uniform { min, max })
        }
        _ => None,
    }
}

fn positive(fields: &Map<String, Value>, name: &str) -> Option<f64> {
    fields.get(name)?.as_f64().filter(|number| *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_reads_each_of_its_forms_and_writes_it_back() {
        for text in [
            "250",
            r#"{"max":20,"min":10}"#,
            r#"{"mean":30.0}"#,
            r#"{"normal":{"mean":100.0,"sd":10.0}}"#,
        ] {
            let delay: Delay = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&delay).expect("writes"), text);
        }
        for text in [
            r#""250""#,
            r#"{"min":5}"#,
            r#"{"min":5,"max":1}"#,
            r#"{"mean":-1}"#,
            "[]",
        ] {
            let error = serde_json::from_str::<Delay>(text).expect_err(text);
            assert!(error.to_string().contains("a delay is"), "{error}");
        }
    }

    #[test]
    fn draws_stay_within_the_bounds_of_their_distribution() {
        let uniform = Delay::Uniform { min: 10, max: 20 };
        assert_eq!(uniform.draw([0.0, 0.0]), 10);
        assert_eq!(uniform.draw([0.999_999, 0.0]), 20);
        let normal = Delay::Normal {
            mean: 1.0,
            sd: 1_000.0,
        };
        assert_eq!(normal.draw([0.9, 0.5]), 0, "a negative draw is cut at zero");
        let exponential = Delay::Exponential { mean: 100.0 };
        assert_eq!(exponential.draw([0.0, 0.0]), 0);
        assert_eq!(exponential.draw([0.5, 0.0]), 69);
    }

    #[test]
    fn a_ratio_outside_zero_to_one_is_refused() {
        assert!(serde_json::from_str::<Ratio>("1.5").is_err());
        assert!(!Ratio::NONE.hits(0.0) && Ratio::ALL.hits(0.999));
    }
}
