//! Marks of a plot's lines that differ by more than colour: dashes, shapes, and the fillings of bars.

use std::fmt::Write as _;

use super::axis::Axis;
use crate::plan::{Line, Mark, Plot};

/// Looks that can be told apart without colour: dash and shape. After six the colours begin anew, with dashes of their own
/// and hollow marks; after twelve with marks of half the size.
pub(super) const DASHES: [&str; 12] = [
    "",
    "7 4",
    "2 3",
    "10 3 2 3",
    "4 2",
    "1 4",
    "14 3",
    "12 3 2 3 2 3",
    "8 2 4 2",
    "3 6",
    "14 6 2 6",
    "6 2 1 2 1 2",
];
/// Colours.
pub(super) const COLOURS: usize = 6;
/// What bars are filled with, so that they differ by more than colour: what of a tile of 8 by 8 is inked. The first is full.
pub(super) const TILES: [&str; 6] = [
    "M0 0h8v8h-8z",
    "M-1 5l6 -6h2l-8 8zM1 9l8 -8v2l-6 6z",
    "M0 0h8v3h-8z",
    "M1 1h4v4h-4z",
    "M0 0h3v8h-3z",
    "M0 0h8v2h-6v6h-2z",
];

/// The fillings of a plot's bars.
pub(super) fn push_tiles(out: &mut String, plot: &Plot, id: &str) {
    let bars = plot
        .lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_bars(line));
    for (at, _) in bars {
        let (colour, tile) = (at % COLOURS, TILES[at % TILES.len()]);
        let _ = write!(
            out,
            "<pattern id=\"{id}-b{at}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
             <path class=\"f{colour}\" d=\"{tile}\"/></pattern>"
        );
    }
}

pub(super) const fn is_bars(line: &Line) -> bool {
    matches!(line.mark, Mark::Bars)
}

/// Where bars stand that are drawn for the same values across: side by side.
pub(super) struct Columns {
    /// The width of one bar.
    width: f64,
    /// The lines that are bars, in their order.
    lines: Vec<usize>,
}

impl Columns {
    pub(super) fn of(plot: &Plot, across: &Axis) -> Self {
        let lines: Vec<_> = (0..plot.lines.len())
            .filter(|at| is_bars(&plot.lines[*at]))
            .collect();
        let points = lines.iter().flat_map(|at| &plot.lines[*at].points);
        let mut places: Vec<_> = points
            .map(|point| across.place(point.0))
            .filter(|place| place.is_finite())
            .collect();
        places.sort_unstable_by(f64::total_cmp);
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
        let gap = gaps.filter(|gap| *gap > 0.1).fold(24.0_f64, f64::min);
        let width = (gap * 0.8 / lines.len().max(1) as f64).max(0.8);
        Self { width, lines }
    }

    /// Where the bar of a line begins whose value lies there.
    fn begin(&self, at: usize, x: f64) -> f64 {
        let place = self.lines.iter().position(|line| *line == at).unwrap_or(0);
        x + (place as f64 - self.lines.len() as f64 / 2.0) * self.width
    }
}

pub(super) fn push_bars(
    out: &mut String,
    placed: &[(f64, f64)],
    (at, id, ground): (usize, &str, f64),
    columns: &Columns,
) {
    let mut path = String::new();
    for (x, y) in placed {
        let (begin, width) = (columns.begin(at, *x), columns.width);
        let _ = write!(
            path,
            "M{begin:.1} {ground:.1}V{y:.1}h{width:.1}V{ground:.1}z"
        );
    }
    let colour = at % COLOURS;
    let _ = write!(
        out,
        "<path class=\"t k{colour}\" fill=\"url(#{id}-b{at})\" d=\"{path}\"/>"
    );
}

/// A mark by shape: circle, square, triangle, diamond, bar, post; hollow from the seventh line on.
pub(super) fn push_mark(out: &mut String, at: usize, (x, y): (f64, f64)) {
    let (colour, round) = (at % COLOURS, at / COLOURS);
    let s = if round < 2 { 1.0 } else { 0.5 };
    let (w, h) = (4.0 * s, 8.0 * s);
    let shape = match colour {
        0 => format!(
            "M{:.1} {y:.1}a{w} {w} 0 1 0 {h} 0a{w} {w} 0 1 0 -{h} 0z",
            x - w
        ),
        1 => format!("M{:.1} {:.1}h{h}v{h}h-{h}z", x - w, y - w),
        2 => format!("M{x:.1} {:.1}l{w} {h}h-{h}z", y - 1.2 * w),
        3 => format!("M{x:.1} {:.1}l{w} {w}l-{w} {w}l-{w} -{w}z", y - w),
        4 => format!("M{:.1} {:.1}h{h}v{w}h-{h}z", x - w, y - w / 2.0),
        _ => format!("M{:.1} {:.1}h{w}v{h}h-{w}z", x - w / 2.0, y - w),
    };
    let class = if round == 0 {
        format!("f{colour}")
    } else {
        format!("h k{colour}")
    };
    let _ = write!(out, "<path class=\"{class}\" d=\"{shape}\"/>");
}

#[cfg(test)]
mod tests {
    use super::super::plot::svg;
    use super::*;

    fn plot(mark: Mark, points: Vec<(f64, f64)>, lines: usize) -> Plot {
        let line = Line {
            name: "measured".to_owned(),
            mark,
            points,
        };
        Plot {
            title: "t".to_owned(),
            across: "a".to_owned(),
            up: "u".to_owned(),
            log_across: false,
            lines: vec![line; lines],
        }
    }

    #[test]
    fn lines_are_told_apart_without_colour_up_to_eighteen() {
        let many = plot(Mark::Dots, vec![(0.0, 1.0)], 18);
        let mut looks = std::collections::BTreeSet::new();
        for at in 0..18 {
            let mut mark = String::new();
            push_mark(&mut mark, at, (0.0, 0.0));
            // Without its colour.
            let class = if mark.contains("class=\"h ") {
                "hollow"
            } else {
                "full"
            };
            let shape = mark.split(" d=").nth(1).unwrap().to_owned();
            assert!(looks.insert((class, shape)), "{at}");
        }
        let dashes: std::collections::BTreeSet<_> = DASHES.iter().collect();
        assert_eq!(dashes.len(), DASHES.len());
        assert!(svg(&many, "p", false).contains("class=\"h k0\""));
    }

    #[test]
    fn bars_of_several_lines_stand_side_by_side_and_differ_by_their_filling() {
        let bars = plot(Mark::Bars, vec![(0.0, 1.0), (1.0, 2.0)], 3);
        let drawn = svg(&bars, "p", false);
        for at in 0..3 {
            assert!(drawn.contains(&format!("<pattern id=\"p-b{at}\"")));
            // In the legend, and in the plot.
            assert_eq!(drawn.matches(&format!("url(#p-b{at})")).count(), 2);
        }
        let tiles: std::collections::BTreeSet<_> = TILES.iter().collect();
        assert_eq!(tiles.len(), TILES.len());
        let across = Axis::over(&[0.0, 1.0], (0.0, 100.0), 5, false);
        let columns = Columns::of(&bars, &across);
        let ends: Vec<_> = (0..3).map(|at| columns.begin(at, 50.0)).collect();
        assert!((ends[1] - ends[0] - columns.width).abs() < 1e-9);
        assert!((ends[2] - ends[1] - columns.width).abs() < 1e-9);
    }
}
