//! Axes: where the ticks are, and where a value lies.

/// One axis of a plot.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    /// Where on the paper it begins and ends.
    from: f64,
    to: f64,
    /// Round values along it.
    pub(super) ticks: Vec<f64>,
}

impl Axis {
    /// An axis that holds all values, from zero where they are near it, with about `most` ticks.
    pub(super) fn over(values: &[f64], (from, to): (f64, f64), most: usize, log: bool) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let least = finite().fold(f64::INFINITY, f64::min);
        let greatest = finite().fold(f64::NEG_INFINITY, f64::max);
        let (least, greatest) = if least > greatest {
            (0.0, 1.0)
        } else {
            (least, greatest)
        };
        if log && greatest > 0.0 {
            return Self::logarithmic(finite().filter(|value| *value > 0.0), (from, to));
        }
        // A picture of counts and shares that does not begin at zero exaggerates.
        let low = if least > 0.0 && least < greatest * 0.9 {
            0.0
        } else {
            least
        };
        let high = if greatest > low { greatest } else { low + 1.0 };
        let step = round_step((high - low) / most.max(1) as f64);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let count = (last - first).round() as usize;
        let ticks = (0..=count).map(|n| (first + n as f64) * step).collect();
        Self {
            low: first * step,
            high: last * step,
            log: false,
            from,
            to,
            ticks,
        }
    }

    fn logarithmic(values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values {
            low = low.min(value);
            high = high.max(value);
        }
        let (low, high) = (
            low.log10().floor(),
            high.log10().ceil().max(low.log10().floor() + 1.0),
        );
        let decades = (high - low).round() as i32;
        let ticks = (0..=decades)
            .map(|n| 10_f64.powf(low + f64::from(n)))
            .collect();
        Self {
            low: 10_f64.powf(low),
            high: 10_f64.powf(high),
            log: true,
            from,
            to,
            ticks,
        }
    }

    /// Where a value lies on the paper; what lies outside is at the edge.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            let value = value.max(self.low);
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Where zero lies, or the beginning.
    pub(super) fn ground(&self) -> f64 {
        self.place(0.0_f64.max(self.low))
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let of = |factor: f64| factor * power;
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(of)
        .find(|step| *step >= least * 0.999_999)
        .unwrap_or(of(10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_every_value() {
        let axis = Axis::over(&[3.0, 84.0], (0.0, 100.0), 5, false);
        assert_eq!(axis.ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert!((axis.place(50.0) - 50.0).abs() < 1e-9);
        let log = Axis::over(&[0.2, 700.0], (0.0, 40.0), 5, true);
        assert_eq!(log.ticks.len(), 5);
        assert!((log.place(10.0) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn an_axis_of_nothing_or_of_one_value_can_be_drawn() {
        for values in [vec![], vec![0.0], vec![7.0], vec![f64::INFINITY]] {
            let axis = Axis::over(&values, (10.0, 90.0), 4, false);
            assert!(axis.ticks.len() >= 2, "{values:?}");
            let place = axis.place(7.0);
            assert!((10.0..=90.0).contains(&place));
        }
        let log = Axis::over(&[0.0], (0.0, 1.0), 4, true);
        assert!(log.place(0.0).is_finite());
    }
}
