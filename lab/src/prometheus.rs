//! Reads the server's metrics: the Prometheus text format, sums over labels, and histograms.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

/// One line of a scrape.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Sample {
    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels
            .iter()
            .all(|(name, value)| self.label(name) == Some(value))
    }

    fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What `/metrics` said at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scrape(Vec<Sample>);

impl Scrape {
    /// Reads the text format; comments are skipped, anything else that is no sample is an error.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = text.lines().map(str::trim);
        let samples = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        samples
            .map(|line| sample(line).with_context(|| format!("no sample: {line}")))
            .collect::<anyhow::Result<_>>()
            .map(Self)
    }

    /// The sum over all series of a name that carry these labels; `None` when there is none.
    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let series = |sample: &&Sample| sample.name == name && sample.has(labels);
        let mut values = self.0.iter().filter(series).map(|sample| sample.value);
        let first = values.next()?;
        Some(first + values.sum::<f64>())
    }

    /// As [`Scrape::find`]; a counter that never moved may not be there, and is 0.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels).unwrap_or(0.0)
    }

    /// A counter's sums by the values of one label.
    pub(crate) fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for sample in self.0.iter().filter(|sample| sample.name == name) {
            let value = sample.label(label).unwrap_or_default().to_owned();
            *sums.entry(value).or_default() += sample.value;
        }
        sums
    }

    /// A histogram, summed over all series that carry these labels; `None` when there is none.
    pub(crate) fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Option<Histogram> {
        let bucket = format!("{name}_bucket");
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        let series = |sample: &&Sample| sample.name == bucket && sample.has(labels);
        for sample in self.0.iter().filter(series) {
            let bound = number(sample.label("le")?)?;
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, count)) => *count += sample.value,
                None => buckets.push((bound, sample.value)),
            }
        }
        buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
        Some(Histogram {
            sum: self.find(&format!("{name}_sum"), labels)?,
            count: self.find(&format!("{name}_count"), labels)?,
            buckets,
        })
    }
}

/// Counts below growing bounds, in the metric's own unit (seconds).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Histogram {
    /// Upper bound and how many were at or below it.
    buckets: Vec<(f64, f64)>,
    sum: f64,
    count: f64,
}

impl Histogram {
    /// What was added since an earlier scrape of the same histogram.
    pub(crate) fn since(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else {
            return self.clone();
        };
        let before = |bound: f64| {
            let same = earlier.buckets.iter().find(|(known, _)| *known == bound);
            same.map_or(0.0, |(_, count)| *count)
        };
        let buckets = self.buckets.iter();
        Self {
            buckets: buckets
                .map(|(bound, count)| (*bound, count - before(*bound)))
                .collect(),
            sum: self.sum - earlier.sum,
            count: self.count - earlier.count,
        }
    }

    /// The mean in seconds; `None` of nothing.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// A quantile (0 to 1) in seconds, interpolated within its bucket; above the last finite bound it is that bound.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<f64> {
        let rank = self.count * quantile;
        let (mut below, mut counted) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            if *count >= rank && *count > counted {
                let within = (rank - counted) / (count - counted);
                return Some(if bound.is_finite() {
                    below + (bound - below) * within
                } else {
                    below
                });
            }
            if bound.is_finite() {
                below = *bound;
            }
            counted = *count;
        }
        None
    }
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        other => other.parse().ok(),
    }
}

fn sample(line: &str) -> anyhow::Result<Sample> {
    let name_end = line.find(['{', ' ']).context("a name alone")?;
    let (name, rest) = line.split_at(name_end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    // A time stamp may follow the value.
    let value = rest.split_whitespace().next().context("no value")?;
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value: number(value).context("the value is no number")?,
    })
}

/// Reads `a="b",c="d"} …` and gives what follows the brace.
fn labels(mut rest: &str) -> anyhow::Result<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Ok((labels, rest));
        }
        let (name, quoted) = rest.split_once("=\"").context("a label without a value")?;
        let (value, after) = quoted_value(quoted)?;
        labels.push((name.to_owned(), value));
        rest = after;
    }
}

fn quoted_value(text: &str) -> anyhow::Result<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped)) => value.push(escaped),
                None => break,
            },
            other => value.push(other),
        }
    }
    bail!("a label's value does not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# HELP pg_in_flight calls
# TYPE pg_in_flight gauge
pg_in_flight{gateway="toss",operation="confirm"} 3
pg_not_sent_total{gateway="toss",reason="cap"} 10
pg_not_sent_total{gateway="toss",reason="deadline"} 4 1790903700120
payments_unknown 2.5
odd{why="a \"quoted\", } \\ name\n"} +Inf
t_seconds_bucket{op="a",le="0.1"} 10
t_seconds_bucket{op="a",le="0.2"} 30
t_seconds_bucket{op="a",le="+Inf"} 40
t_seconds_sum{op="a"} 8
t_seconds_count{op="a"} 40
"#;

    #[test]
    fn samples_are_found_by_name_and_labels() {
        let scrape = Scrape::parse(TEXT).unwrap();
        assert_eq!(scrape.find("payments_unknown", &[]), Some(2.5));
        assert_eq!(scrape.find("pg_not_sent_total", &[]), Some(14.0));
        assert_eq!(scrape.sum("pg_not_sent_total", &[("reason", "cap")]), 10.0);
        assert_eq!(
            scrape.find("pg_not_sent_total", &[("reason", "circuit")]),
            None
        );
        assert_eq!(scrape.sum("nothing", &[]), 0.0);
        assert_eq!(scrape.by("pg_not_sent_total", "reason")["deadline"], 4.0);
        assert_eq!(scrape.0[4].label("why"), Some("a \"quoted\", } \\ name\n"));
        assert_eq!(scrape.0[4].value, f64::INFINITY);
    }

    #[test]
    fn what_is_no_sample_is_an_error() {
        for text in [
            "name",
            "name{a=\"b} 1",
            "name{a} 1",
            "name x",
            "name{a=\"b\"}",
        ] {
            assert!(Scrape::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantiles_are_interpolated_within_their_bucket() {
        let scrape = Scrape::parse(TEXT).unwrap();
        let histogram = scrape.histogram("t_seconds", &[("op", "a")]).unwrap();
        assert!((histogram.mean().unwrap() - 0.2).abs() < 1e-9);
        assert!((histogram.quantile(0.125).unwrap() - 0.05).abs() < 1e-9);
        assert!((histogram.quantile(0.5).unwrap() - 0.15).abs() < 1e-9);
        assert!((histogram.quantile(0.99).unwrap() - 0.2).abs() < 1e-9);
        assert!(scrape.histogram("t_seconds", &[("op", "b")]).is_none());
    }

    #[test]
    fn the_part_since_an_earlier_scrape_is_counted_alone() {
        let later = Scrape::parse(TEXT)
            .unwrap()
            .histogram("t_seconds", &[])
            .unwrap();
        let nothing = later.since(Some(&later));
        assert_eq!((nothing.mean(), nothing.quantile(0.5)), (None, None));
        assert_eq!(later.since(None), later);
    }
}
