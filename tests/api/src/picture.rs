//! Pictures for the README, drawn from what really happened: panels of a dashboard, and a terminal. Plain SVG, no fonts, no scripts.

use std::fmt::Write as _;

/// Width of a picture in pixels.
const WIDTH: f64 = 1200.0;
/// A dashboard has this many columns.
const COLUMNS: f64 = 24.0;
/// Height of one unit of a dashboard's grid.
const UNIT: f64 = 24.0;
/// Space around a panel.
const GAP: f64 = 4.0;
/// Legend entries that fit below a panel.
const LEGEND: usize = 4;
const COLOURS: [&str; 8] = ["#6ea8fe", "#75b798", "#ffda6a", "#ea868f", "#a98eda", "#79dfc1", "#feb272", "#adb5bd"];
const STYLE: &str = "<style>text{font:12px system-ui,sans-serif;fill:#d6d8db}.t{font-weight:600}.s{font-size:10px;fill:#9aa0a6}\
                     .h{font-size:15px;font-weight:600}.v{font-size:26px}.m{font:13px ui-monospace,Menlo,Consolas,monospace;white-space:pre}\
                     .p{fill:#1b1e24;stroke:#2c3038}.g{stroke:#2c3038}</style>";

/// A panel, in units of the grid.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// Column of its left side.
    pub x: f64,
    /// Row of its upper side.
    pub y: f64,
    /// Columns.
    pub width: f64,
    /// Rows.
    pub height: f64,
    /// Unit of the values, as Grafana calls it: `s`, `bytes`, `reqps`, `ops` or `short`.
    pub unit: String,
    /// What it shows.
    pub body: Body,
}

/// What a panel shows: names with values.
#[derive(Clone, Debug)]
pub enum Body {
    /// Nothing: the title of what follows.
    Heading,
    /// A line for each series: time and value.
    Lines(Vec<(String, Vec<(f64, f64)>)>),
    /// A bar for each.
    Bars(Vec<(String, f64)>),
    /// A number for each.
    Numbers(Vec<(String, f64)>),
}

/// A dashboard.
pub fn dashboard(title: &str, panels: &[Panel]) -> String {
    let rows = panels.iter().map(|panel| panel.y + panel.height).fold(0.0, f64::max);
    let mut svg = begin(36.0 + rows * UNIT + GAP);
    text(&mut svg, "h", 12.0, 24.0, title);
    for panel in panels {
        let _ = write!(svg, "<g transform=\"translate({:.0} {:.0})\">", panel.x * WIDTH / COLUMNS, 36.0 + panel.y * UNIT);
        draw(&mut svg, panel);
        svg.push_str("</g>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// A terminal with what was typed and what was answered. Long lines are broken.
pub fn terminal(lines: &str) -> String {
    const LONGEST: usize = 140;
    let lines: Vec<String> = lines.lines().flat_map(|line| broken(line, LONGEST)).collect();
    let height = 44.0 + 19.0 * count(lines.len());
    let mut svg = begin(height);
    let _ = write!(svg, "<rect class=\"p\" x=\"4\" y=\"4\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\"/>", WIDTH - 8.0, height - 8.0);
    for (index, colour) in ["#ea868f", "#ffda6a", "#75b798"].iter().enumerate() {
        let _ = write!(svg, "<circle cx=\"{:.0}\" cy=\"20\" r=\"5\" fill=\"{colour}\"/>", 22.0 + 18.0 * count(index));
    }
    for (index, line) in lines.iter().enumerate() {
        text(&mut svg, "m", 20.0, 50.0 + 19.0 * count(index), line);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A line in pieces of at most `longest` characters, broken at spaces where there are some.
fn broken(line: &str, longest: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = pieces.last().map_or(0, |piece| piece.chars().count());
        if last > 0 && last + word.trim_end().chars().count() > longest {
            pieces.push("  ".to_owned());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(word);
        }
    }
    pieces
}

fn begin(height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\">{STYLE}\
         <rect width=\"{WIDTH:.0}\" height=\"{height:.0}\" fill=\"#111317\"/>\n"
    )
}

fn draw(svg: &mut String, panel: &Panel) {
    let (width, height) = (panel.width * WIDTH / COLUMNS, panel.height * UNIT);
    if matches!(panel.body, Body::Heading) {
        text(svg, "h", 12.0, 18.0, &panel.title);
        return;
    }
    let _ = write!(
        svg,
        "<rect class=\"p\" x=\"{GAP}\" y=\"{GAP}\" width=\"{:.0}\" height=\"{:.0}\" rx=\"4\"/>",
        width - 2.0 * GAP,
        height - 2.0 * GAP
    );
    text(svg, "t", 12.0, 22.0, &panel.title);
    match &panel.body {
        Body::Heading => {}
        Body::Lines(series) => lines(svg, series, width, height, &panel.unit),
        Body::Bars(bars) => {
            let longest = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
            for (index, (name, value)) in bars.iter().take(6).enumerate() {
                let y = 38.0 + 20.0 * count(index);
                let full = width - 90.0;
                let _ = write!(svg, "<rect x=\"12\" y=\"{y:.0}\" width=\"{:.0}\" height=\"16\" fill=\"#36506f\"/>", full * value / longest);
                text(svg, "", 16.0, y + 12.0, name);
                text(svg, "", width - 70.0, y + 12.0, &shown(*value, &panel.unit));
            }
        }
        Body::Numbers(numbers) => {
            for (index, (name, value)) in numbers.iter().take(3).enumerate() {
                let y = 56.0 + 42.0 * count(index);
                text(svg, "v", 16.0, y, &shown(*value, &panel.unit));
                text(svg, "s", 16.0, y + 14.0, name);
            }
        }
    }
}

fn lines(svg: &mut String, series: &[(String, Vec<(f64, f64)>)], width: f64, height: f64, unit: &str) {
    let (left, right, top, bottom) = (58.0, width - 14.0, 34.0, height - 40.0);
    let points = || series.iter().flat_map(|(_, points)| points.iter().copied()).filter(|(_, value)| value.is_finite());
    let highest = points().map(|(_, value)| value).fold(0.0, f64::max);
    let highest = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let (first, last) = points().fold((f64::MAX, f64::MIN), |(first, last), (time, _)| (first.min(time), last.max(time)));
    let span = (last - first).max(1.0);
    for share in [0.0, 0.5, 1.0] {
        let y = bottom - (bottom - top) * share;
        let _ = write!(svg, "<path class=\"g\" d=\"M{left:.0} {y:.0}H{right:.0}\"/>");
        text(svg, "s", 12.0, y + 3.0, &shown(highest * share, unit));
    }
    let mut at = 12.0;
    for (index, (name, points)) in series.iter().enumerate() {
        let colour = COLOURS.get(index % COLOURS.len()).unwrap_or(&"#fff");
        let mut path = String::new();
        for (time, value) in points.iter().filter(|(_, value)| value.is_finite()) {
            let (x, y) = (left + (right - left) * (time - first) / span, bottom - (bottom - top) * value / highest);
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
        }
        let _ = write!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>");
        let room = 24.0 + 5.6 * count(name.chars().count());
        if index < LEGEND && at + room < width {
            let _ = write!(svg, "<rect x=\"{at:.0}\" y=\"{:.0}\" width=\"10\" height=\"3\" fill=\"{colour}\"/>", height - 21.0);
            text(svg, "s", at + 14.0, height - 16.0, name);
            at += room;
        }
    }
}

/// A value as people read it.
fn shown(value: f64, unit: &str) -> String {
    let per_second = matches!(unit, "reqps" | "ops");
    let (value, suffix) = match unit {
        "s" => match value.abs() {
            seconds if seconds >= 2.0 * 86_400.0 => (value / 86_400.0, " d"),
            seconds if seconds >= 2.0 * 3_600.0 => (value / 3_600.0, " h"),
            seconds if seconds >= 1.0 || seconds == 0.0 => (value, " s"),
            seconds if seconds >= 0.001 => (value * 1e3, " ms"),
            _ => (value * 1e6, " µs"),
        },
        "bytes" => (value / f64::from(1 << 20), " MiB"),
        _ if per_second => (value, "/s"),
        _ => (value, ""),
    };
    let digits = if value.abs() >= 10.0 || (value - value.round()).abs() < 1e-9 { 0 } else { usize::from(value.abs() < 1.0) + 1 };
    format!("{value:.digits$}{suffix}")
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, content: &str) {
    let escaped = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.0}\" y=\"{y:.0}\" xml:space=\"preserve\">{escaped}</text>");
}

#[allow(clippy::cast_precision_loss)] // lines and letters of a picture
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        for (value, unit, wanted) in [
            (0.0, "s", "0 s"),
            (0.000_05, "s", "50 µs"),
            (0.0123, "s", "12 ms"),
            (3.24, "s", "3.2 s"),
            (604_000.0, "s", "7.0 d"),
            (9_437_184.0, "bytes", "9 MiB"),
            (0.25, "reqps", "0.25/s"),
            (12.0, "short", "12"),
        ] {
            assert_eq!(shown(value, unit), wanted, "{value} {unit}");
        }
    }

    #[test]
    fn long_lines_are_broken_at_spaces() {
        assert_eq!(broken("aa bb cc", 5), ["aa bb ", "  cc"]);
        assert_eq!(broken("", 5), [""]);
        assert_eq!(broken("aaaaaaaa", 5), ["aaaaaaaa"]);
    }

    #[test]
    fn pictures_are_well_formed_and_escape_what_they_quote() {
        let panel = |body| Panel { title: "a < b".into(), x: 0.0, y: 0.0, width: 8.0, height: 7.0, unit: "s".into(), body };
        let bodies = [
            Body::Heading,
            Body::Lines(vec![("x & y".into(), vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]), ("none".into(), vec![])]),
            Body::Bars(vec![("n".into(), 2.0)]),
            Body::Numbers(vec![("n".into(), 2.0)]),
        ];
        for svg in [dashboard("t", &bodies.map(panel)), terminal("$ kubectl\nThe <b> & \"c\"")] {
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("a < b") && !svg.contains("<b>"), "{svg}");
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        }
    }
}
