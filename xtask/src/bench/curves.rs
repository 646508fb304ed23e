//! Growth as a picture: times over sizes, both axes logarithmic, so that what is linear is a straight line.

use std::fmt::Write;
use std::time::Duration;

/// The times of one contestant by size.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(usize, Duration)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Told apart without colours, too: each name stands at the end of its line.
const COLOURS: [&str; 6] = ["#1b6ac9", "#c2571a", "#2b8a3e", "#8a2b81", "#6b6b6b", "#b08900"];

/// A range of powers of ten around some values, and where it lies on the picture.
struct Axis {
    first: i32,
    last: i32,
    from: f64,
    to: f64,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let most = values.fold(f64::NEG_INFINITY, f64::max).log10().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "exponents of times and sizes are small")]
        let (first, last) = (least as i32, most as i32);
        Self { first, last: last.max(first + 1), from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        self.from + share * (self.to - self.from)
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|power| 10_f64.powi(power))
    }
}

/// The picture; `sizes` says what is counted on the horizontal axis.
pub(super) fn svg(title: &str, sizes: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let horizontal = Axis::around(points().map(|(size, _)| count(*size)), LEFT, WIDTH - RIGHT);
    let vertical = Axis::around(points().map(|(_, time)| millis(*time)), HEIGHT - BOTTOM, TOP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"22\" font-size=\"14\">{title}: milliseconds by {sizes}</text>\n"
    );
    for mark in horizontal.marks() {
        let (x, below) = (horizontal.at(mark), HEIGHT - BOTTOM + 18.0);
        line(&mut text, (x, TOP), (x, HEIGHT - BOTTOM));
        let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{mark}</text>");
    }
    for mark in vertical.marks() {
        let (y, before) = (vertical.at(mark), LEFT - 8.0);
        line(&mut text, (LEFT, y), (WIDTH - RIGHT, y));
        let _ = writeln!(text, "<text x=\"{before}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>", y + 4.0);
    }
    let mut ends = Vec::new();
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let places: Vec<_> =
            curve.points.iter().map(|(size, time)| (horizontal.at(count(*size)), vertical.at(millis(*time)))).collect();
        let path: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in &places {
            let _ = writeln!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        ends.push((places.last().map_or(TOP, |(_, y)| *y), &curve.name, colour));
    }
    // Names are pushed apart where lines end close to each other.
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = 0.0_f64;
    for (y, name, colour) in ends {
        let y = (y + 4.0).max(free);
        free = y + 14.0;
        let _ = writeln!(text, "<text x=\"{:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>", WIDTH - RIGHT + 10.0);
    }
    text.push_str("</svg>\n");
    text
}

fn line(text: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        text,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

#[expect(clippy::cast_precision_loss, reason = "sizes of benchmarks are small")]
fn count(size: usize) -> f64 {
    size as f64
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_growth_is_a_straight_line() {
        let points = [1, 10, 100].map(|size| (size, Duration::from_millis(size as u64)));
        let text = svg("growth", "branches", &[Curve { name: "ours".to_owned(), points: points.to_vec() }]);
        assert!(text.contains("points=\"70.0,310.0 255.0,175.0 440.0,40.0\""), "{text}");
    }
}
