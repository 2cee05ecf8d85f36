//! Draws figures as SVG: lines over an axis, or stacked bars; on a light background, with units and
//! a legend.

/// Size of the picture and margins around the plot, in pixels.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 62.0;
/// Distinguishable with red-green colour blindness.
const COLOURS: [&str; 6] = [
    "#0b5fa5", "#d1690e", "#3a8a3f", "#8a3f9e", "#7a5c3e", "#444c55",
];

/// The data of a drawing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plot {
    pub(crate) title: String,
    /// A second line in smaller letters.
    pub(crate) subtitle: String,
    pub(crate) x: Axis,
    pub(crate) y_label: &'static str,
    pub(crate) series: Vec<Series>,
    /// Draw each series as a part of stacked bars, one at each mark of the axis.
    pub(crate) bars: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    /// Whether each doubling takes the same width.
    pub(crate) doubling: bool,
    /// Values with the label below each.
    pub(crate) marks: Vec<(f64, String)>,
}

/// Points of one line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether this is one value without a parameter: a line from side to side.
    pub(crate) level: bool,
}

impl Plot {
    /// Returns the picture as an SVG document.
    pub(crate) fn svg(&self) -> String {
        let top = nice(self.highest());
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        text += &label(
            LEFT,
            26.0,
            "font-size=\"17\" font-weight=\"bold\"",
            &self.title,
        );
        text += &label(LEFT, 46.0, "font-size=\"12\" fill=\"#555\"", &self.subtitle);
        text += &self.frame(top);
        for (n, series) in self.series.iter().enumerate() {
            let colour = COLOURS[n % COLOURS.len()];
            text += &if self.bars {
                self.bar(n, top, colour)
            } else {
                self.line(series, top, colour)
            };
            let at = TOP + 14.0 + n as f64 * 22.0;
            let start = WIDTH - RIGHT + 16.0;
            let end = WIDTH - RIGHT + 40.0;
            let dash = if series.level {
                " stroke-dasharray=\"6 4\""
            } else {
                ""
            };
            let width = if self.bars { 12 } else { 2 };
            text.extend([format!(
                "<path d=\"M{start} {at}H{end}\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>\n"
            )]);
            text += &label(end + 8.0, at + 4.0, "", &series.name);
        }
        text + "</svg>\n"
    }

    fn highest(&self) -> f64 {
        let each = |at: usize| {
            self.series
                .iter()
                .filter_map(move |series| series.points.get(at))
                .map(|point| point.1)
        };
        let count = self
            .series
            .iter()
            .map(|series| series.points.len())
            .max()
            .unwrap_or_default();
        (0..count)
            .map(|at| {
                if self.bars {
                    each(at).sum()
                } else {
                    each(at).fold(0.0, f64::max)
                }
            })
            .fold(0.0, f64::max)
    }

    /// Axes, marks and their names.
    fn frame(&self, top: f64) -> String {
        let mut text = String::new();
        let right = WIDTH - RIGHT;
        let bottom = HEIGHT - BOTTOM;
        for n in 0..=5 {
            let value = top * f64::from(n) / 5.0;
            let y = height(value, top);
            text.extend([format!(
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>\n"
            )]);
            text += &label(
                LEFT - 8.0,
                y + 4.0,
                "text-anchor=\"end\"",
                &number(value, top),
            );
        }
        for (value, name) in &self.x.marks {
            let x = self.place(*value);
            text.extend([format!(
                "<path d=\"M{x:.1} {bottom}v5\" stroke=\"#222\"/>\n"
            )]);
            text += &label(
                x,
                bottom + 20.0,
                "text-anchor=\"middle\" font-size=\"12\"",
                name,
            );
        }
        text.extend([format!(
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#222\"/>\n"
        )]);
        text += &label(
            f64::midpoint(LEFT, right),
            HEIGHT - 18.0,
            "text-anchor=\"middle\"",
            self.x.label,
        );
        let middle = f64::midpoint(TOP, bottom);
        let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 22 {middle})\"");
        text + &label(22.0, middle, &turned, self.y_label)
    }

    /// Returns the position of a value on the horizontal axis.
    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| {
            if self.x.doubling {
                value.max(1.0).log2()
            } else {
                value
            }
        };
        let ends = self.x.marks.first().zip(self.x.marks.last());
        let (first, last) =
            ends.map_or((0.0, 1.0), |(first, last)| (scale(first.0), scale(last.0)));
        // Keep bars and points off the frame.
        let room = if self.bars { 0.14 } else { 0.03 };
        let part = if last > first {
            (scale(value) - first) / (last - first)
        } else {
            0.5
        };
        LEFT + (WIDTH - RIGHT - LEFT) * (room + part * (1.0 - 2.0 * room))
    }

    fn line(&self, series: &Series, top: f64, colour: &str) -> String {
        let dash = if series.level {
            " stroke-dasharray=\"6 4\""
        } else {
            ""
        };
        let mut points: Vec<(f64, f64)> = series
            .points
            .iter()
            .map(|(x, y)| (self.place(*x), height(*y, top)))
            .collect();
        if let (true, Some(first)) = (series.level, points.first().copied()) {
            points = vec![(LEFT, first.1), (WIDTH - RIGHT, first.1)];
        }
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let mut text = format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>\n",
            path.join(" ")
        );
        if !series.level {
            for (x, y) in points {
                text.extend([format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{colour}\"/>\n"
                )]);
            }
        }
        text
    }

    /// The `n`th parts of all bars, above the earlier parts.
    fn bar(&self, n: usize, top: f64, colour: &str) -> String {
        let Some(series) = self.series.get(n) else {
            return String::new();
        };
        let mut text = String::new();
        for (at, (x, y)) in series.points.iter().enumerate() {
            let below: f64 = self.series[..n]
                .iter()
                .filter_map(|other| other.points.get(at))
                .map(|point| point.1)
                .sum();
            let high = height(below + y, top);
            let low = height(below, top);
            let x = self.place(*x) - 28.0;
            text.extend([format!(
                "<rect x=\"{x:.1}\" y=\"{high:.1}\" width=\"56\" height=\"{:.1}\" fill=\"{colour}\"/>\n",
                low - high
            )]);
        }
        text
    }
}

/// Returns the position of a value on the vertical axis, which goes from 0 to `top`.
fn height(value: f64, top: f64) -> f64 {
    HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top
}

/// Returns the end of an axis that includes a value and divides into five round parts.
fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let part = value / 5.0;
    let unit = 10_f64.powf(part.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|step| step * unit)
        .find(|step| *step >= part * 0.999_999);
    step.unwrap_or(part) * 5.0
}

/// Formats a number with as many digits as an axis up to `top` needs.
fn number(value: f64, top: f64) -> String {
    let digits = (2.0 - (top / 5.0).log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn label(x: f64, y: f64, style: &str, text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::{Axis, Plot, Series, nice, number};

    #[test]
    #[expect(clippy::float_cmp, reason = "round numbers")]
    fn axes_end_at_round_numbers() {
        for (value, end) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (1.1, 1.25),
            (0.034, 0.05),
            (7.0, 10.0),
            (61.0, 100.0),
        ] {
            assert!((nice(value) - end).abs() < 1e-9, "{value}: {}", nice(value));
        }
        assert_eq!(number(0.01, 0.05), "0.01");
        assert_eq!(number(20.0, 100.0), "20");
        assert_eq!(nice(f64::NAN), 1.0);
    }

    #[test]
    fn texts_cannot_break_the_svg() {
        let series = Series {
            name: "<b>&".to_owned(),
            points: vec![(4.0, 1.0), (8.0, f64::MIN_POSITIVE)],
            level: false,
        };
        let marks = vec![(4.0, "4".to_owned()), (8.0, "8".to_owned())];
        let x = Axis {
            label: "x",
            doubling: true,
            marks,
        };
        for bars in [false, true] {
            let plot = Plot {
                x: x.clone(),
                series: vec![series.clone()],
                bars,
                ..Plot::default()
            };
            let svg = plot.svg();
            assert!(
                svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>") && !svg.contains("NaN"),
                "{svg}"
            );
        }
        assert!(!Plot::default().svg().contains("NaN"));
    }
}
