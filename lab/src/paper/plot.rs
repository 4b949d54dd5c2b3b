//! One plot as SVG: lines that differ by colour, dash and mark, with a text alternative.

use std::fmt::Write as _;

use super::axis::Axis;
use super::marks::{COLOURS, Columns, DASHES, is_bars, push_bars, push_mark, push_tiles};
use super::text::{escaped, number};
use crate::plan::{Line, Mark, Plot};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
/// Room for the labels of the axes.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 56.0;
/// The legend's lines are so high.
const ROW: f64 = 18.0;
/// Of longer lines not every point is drawn.
const MOST_POINTS: usize = 600;
/// Lines with at most so many points get a mark at each.
const MARKED: usize = 40;

/// The colours of lines, light and dark (Okabe and Ito's, which colour-blind people can tell apart), and of what is around
/// them; each SVG file carries it, a page once.
pub(super) const STYLE: &str = "\
.plot{--ink:#1d2320;--soft:#59605b;--grid:#dcd7cc;--c0:#0072b2;--c1:#b8450a;--c2:#007a5a;--c3:#a34a80;--c4:#8a5a00;--c5:#4b5563;\
font:12px system-ui,sans-serif;width:100%;height:auto}\
@media (prefers-color-scheme:dark){.plot{--ink:#ecefec;--soft:#a9b2ac;--grid:#39413d;--c0:#56b4e9;--c1:#ff9a5c;--c2:#4fd1a5;--c3:#e79cc5;--c4:#f0c04a;--c5:#b8c0cc}}\
.plot text{fill:var(--soft)}.plot .name{fill:var(--ink)}.plot .grid{stroke:var(--grid);stroke-width:1}\
.plot .l{fill:none;stroke-width:2;stroke-linejoin:round}\
.plot .k0{stroke:var(--c0)}.plot .k1{stroke:var(--c1)}.plot .k2{stroke:var(--c2)}.plot .k3{stroke:var(--c3)}.plot .k4{stroke:var(--c4)}.plot .k5{stroke:var(--c5)}\
.plot .t{stroke-width:1}.plot .h{fill:none;stroke-width:1.6;stroke-linejoin:round}\
.plot .f0{fill:var(--c0)}.plot .f1{fill:var(--c1)}.plot .f2{fill:var(--c2)}.plot .f3{fill:var(--c3)}.plot .f4{fill:var(--c4)}.plot .f5{fill:var(--c5)}";

/// A plot as an SVG element; `id` names its title and description within the page. `alone` is a file of its own.
pub(super) fn svg(plot: &Plot, id: &str, alone: bool) -> String {
    let top = 12.0 + ROW * plot.lines.len() as f64;
    let all = |part: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let points = plot.lines.iter().flat_map(|line| &line.points);
        points.map(part).collect()
    };
    let across = Axis::over(
        &all(|point| point.0),
        (LEFT, WIDTH - RIGHT),
        7,
        plot.log_across,
    );
    let mut ups = all(|point| point.1);
    if plot
        .lines
        .iter()
        .any(|line| matches!(line.mark, Mark::Bars))
    {
        ups.push(0.0);
    }
    let up = Axis::over(&ups, (HEIGHT - BOTTOM, top), 5, false);
    let mut out = String::new();
    let space = if alone {
        " xmlns=\"http://www.w3.org/2000/svg\""
    } else {
        ""
    };
    let _ = write!(
        out,
        "<svg class=\"plot\"{space} viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
        escaped(&plot.title),
        escaped(&described(plot))
    );
    if alone {
        let _ = write!(out, "<style>{STYLE}</style>");
    }
    push_tiles(&mut out, plot, id);
    push_axes(&mut out, plot, (&across, &up), top);
    let columns = Columns::of(plot, &across);
    for (at, line) in plot.lines.iter().enumerate() {
        push_line(&mut out, line, (at, id), (&across, &up), &columns);
        push_legend(&mut out, line, (at, id));
    }
    out.push_str("</svg>");
    out
}

/// What the plot shows, for who cannot see it.
fn described(plot: &Plot) -> String {
    let mut text = format!("Across: {}. Up: {}.", plot.across, plot.up);
    for line in &plot.lines {
        let Some((first, last)) = line.points.first().zip(line.points.last()) else {
            continue;
        };
        let ups = line.points.iter().map(|point| point.1);
        let (least, most) = ups.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), up| {
            (least.min(up), most.max(up))
        });
        let _ = write!(
            text,
            " {}: {} at {} to {} at {}, between {} and {}.",
            line.name,
            number(first.1),
            number(first.0),
            number(last.1),
            number(last.0),
            number(least),
            number(most)
        );
    }
    text
}

fn push_axes(out: &mut String, plot: &Plot, (across, up): (&Axis, &Axis), top: f64) {
    let ground = HEIGHT - BOTTOM;
    for tick in &up.ticks {
        let y = up.place(*tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0,
            number(*tick)
        );
    }
    for tick in &across.ticks {
        let x = across.place(*tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {ground:.1}v5\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            ground + 19.0,
            number(*tick)
        );
    }
    let (middle, low) = (f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 12.0);
    let height = f64::midpoint(top, ground);
    let _ = write!(
        out,
        "<text class=\"name\" x=\"{middle:.1}\" y=\"{low:.1}\" text-anchor=\"middle\">{}</text>\
         <text class=\"name\" transform=\"translate(14 {height:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escaped(&plot.across),
        escaped(&plot.up)
    );
}

fn push_legend(out: &mut String, line: &Line, (at, id): (usize, &str)) {
    let (colour, y) = (at % COLOURS, 14.0 + ROW * at as f64);
    if is_bars(line) {
        let top = y - 6.0;
        let _ = write!(
            out,
            "<path class=\"t k{colour}\" fill=\"url(#{id}-b{at})\" d=\"M{LEFT} {top:.1}h26v12h-26z\"/>"
        );
    } else {
        let dash = DASHES[at % DASHES.len()];
        let _ = write!(
            out,
            "<path class=\"l k{colour}\" stroke-dasharray=\"{dash}\" d=\"M{LEFT} {y:.1}h26\"/>",
        );
        push_mark(out, at, (LEFT + 13.0, y));
    }
    let _ = write!(
        out,
        "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        LEFT + 34.0,
        y + 4.0,
        escaped(&line.name)
    );
}

/// Every how many points one is drawn.
fn stride(points: usize) -> usize {
    points.div_ceil(MOST_POINTS).max(1)
}

fn push_line(
    out: &mut String,
    line: &Line,
    (at, id): (usize, &str),
    (across, up): (&Axis, &Axis),
    columns: &Columns,
) {
    let colour = at % COLOURS;
    let every = stride(line.points.len());
    let finite = line
        .points
        .iter()
        .filter(|point| point.0.is_finite() && point.1.is_finite());
    let placed: Vec<_> = finite
        .step_by(every)
        .map(|point| (across.place(point.0), up.place(point.1)))
        .collect();
    if is_bars(line) {
        push_bars(out, &placed, (at, id, up.ground()), columns);
        return;
    }
    let mut path = String::new();
    let mut before = None;
    for (x, y) in &placed {
        let _ = match (before, line.mark) {
            (None, _) => write!(path, "M{x:.1} {y:.1}"),
            (Some(_), Mark::Steps) => write!(path, "H{x:.1}V{y:.1}"),
            (Some(_), Mark::Curve | Mark::Dots | Mark::Bars) => write!(path, "L{x:.1} {y:.1}"),
        };
        before = Some(x);
    }
    let dash = DASHES[at % DASHES.len()];
    let _ = write!(
        out,
        "<path class=\"l k{colour}\" stroke-dasharray=\"{dash}\" d=\"{path}\"/>"
    );
    if matches!(line.mark, Mark::Dots) && placed.len() <= MARKED {
        for point in placed {
            push_mark(out, at, point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(mark: Mark, points: Vec<(f64, f64)>) -> Plot {
        Plot {
            title: "Refused <by> delay".to_owned(),
            across: "delay, s".to_owned(),
            up: "refused, %".to_owned(),
            log_across: false,
            lines: vec![Line {
                name: "measured".to_owned(),
                mark,
                points,
            }],
        }
    }

    #[test]
    fn a_plot_says_in_words_what_it_shows() {
        let drawn = svg(&plot(Mark::Dots, vec![(0.0, 0.0), (5.0, 84.0)]), "p", true);
        assert!(drawn.contains("<title id=\"p-t\">Refused &lt;by&gt; delay</title>"));
        assert!(drawn.contains("measured: 0 at 0 to 84 at 5, between 0 and 84."));
        assert!(drawn.contains("xmlns") && drawn.contains("<style>"));
    }

    #[test]
    fn every_kind_of_line_is_drawn_and_none_of_nothing_breaks() {
        for mark in [Mark::Curve, Mark::Dots, Mark::Bars, Mark::Steps] {
            for points in [vec![], vec![(1.0, 1.0)], vec![(0.0, f64::NAN), (1.0, 2.0)]] {
                let drawn = svg(&plot(mark, points), "p", false);
                assert!(
                    drawn.ends_with("</svg>") && !drawn.contains("NaN"),
                    "{drawn}"
                );
            }
        }
        let many = (0..10_000).map(|n| (f64::from(n), 1.0)).collect();
        assert!(svg(&plot(Mark::Steps, many), "p", false).len() < 40_000);
    }
}
