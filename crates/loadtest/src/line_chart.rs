//! A line chart as SVG. Its x axis is logarithmic, over whole decades.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{
    ChartBuilder, Circle, Color, DashedLineSeries, EmptyElement, IntoDrawingArea, IntoFont,
    IntoLogRange, LineSeries, SVGBackend, Text, TextStyle,
};
use plotters::style::RGBColor;
use plotters::style::colors::TRANSPARENT;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use prime_page::palette::{INK, RULE, SERIES, SOFT};

/// Width and height, in pixels.
const SIZE: (u32, u32) = (480, 330);
/// Room for the labels of the axes.
const X_LABELS: u32 = 42;
const Y_LABELS: u32 = 62;
/// Maximum number of labels on an axis.
const LABELS_MAX: usize = 8;
const FONT_SIZE: u32 = 14;
/// Lengths of a dash and of the gap after it.
const DASH: (u32, u32) = (5, 4);
/// Values beyond this are not drawn; the library computes with them.
const VALUE_MAX: f64 = 1e15;

/// Drawing into memory; the library's backends can fail.
pub type DrawingError = DrawingAreaErrorKind<std::io::Error>;

pub struct Axis {
    /// The axis's name, with its unit.
    pub label: &'static str,
    /// Formats a value on the axis.
    pub format: fn(f64) -> String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0.
    Linear,
    /// Over whole decades.
    Log,
}

pub struct Series {
    pub name: String,
    /// Index into [`SERIES`].
    pub colour: usize,
    pub is_dashed: bool,
    /// Marks every point; a single point is always marked.
    pub has_dots: bool,
    pub points: Vec<(f64, f64)>,
}

pub struct LineChart {
    pub x: Axis,
    pub y: Axis,
    pub y_scale: Scale,
    pub series: Vec<Series>,
    /// Labels the points of lines that are not dashed.
    pub value: Option<fn(f64) -> String>,
}

/// Whole decades around the values, which are positive.
fn decades(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if high == 0.0 {
        return 1.0..10.0;
    }
    // The slack keeps rounding from adding a decade.
    let (first, last) = ((low.log10() + 1e-9).floor(), (high.log10() - 1e-9).ceil());
    // A single power of ten stands in the middle of two decades.
    let (first, last) = if first < last { (first, last) } else { (first - 1.0, first + 1.0) };
    10_f64.powf(first)..10_f64.powf(last)
}

/// A range from 0 to somewhat above the values.
fn from_zero(values: impl Iterator<Item = f64>) -> Range<f64> {
    let max = values.fold(0.0, f64::max);
    0.0..if max > 0.0 { max * 1.1 } else { 1.0 }
}

pub fn text_style(colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", FONT_SIZE).into_font().color(&colour)
}

impl Series {
    fn drawable(&self, y_scale: Scale) -> Vec<(f64, f64)> {
        // A logarithmic axis has no 0.
        let low = if y_scale == Scale::Log { f64::MIN_POSITIVE } else { 0.0 };
        let fits = |(x, y): &(f64, f64)| {
            (f64::MIN_POSITIVE..=VALUE_MAX).contains(x) && (low..=VALUE_MAX).contains(y)
        };
        self.points.iter().copied().filter(fits).collect()
    }
}

impl LineChart {
    pub fn svg(&self) -> String {
        let series: Vec<_> =
            self.series.iter().map(|series| (series, series.drawable(self.y_scale))).collect();
        let values =
            |axis: fn(&(f64, f64)) -> f64| series.iter().flat_map(|(_, points)| points).map(axis);
        let (x, ys) = (decades(values(|point| point.0)), values(|point| point.1));

        let mut svg = String::new();
        let drawn = match self.y_scale {
            Scale::Linear => self.draw(&mut svg, x, from_zero(ys), &series),
            Scale::Log => self.draw(&mut svg, x, decades(ys).log_scale(), &series),
        };

        drawn.expect("invariant: drawing into memory cannot fail");
        svg
    }

    fn draw<Y>(
        &self,
        svg: &mut String,
        x: Range<f64>,
        y: Y,
        series: &[(&Series, Vec<(f64, f64)>)],
    ) -> Result<(), DrawingError>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin_top(16)
            .margin_right(30)
            .margin_left(12)
            .x_label_area_size(X_LABELS)
            .y_label_area_size(Y_LABELS)
            .build_cartesian_2d(x.log_scale(), y)?;

        chart
            .configure_mesh()
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .x_label_formatter(&|value| (self.x.format)(*value))
            .y_label_formatter(&|value| (self.y.format)(*value))
            .x_labels(LABELS_MAX)
            .y_labels(LABELS_MAX)
            .light_line_style(TRANSPARENT)
            .bold_line_style(RULE.light)
            .axis_style(SOFT.light)
            .label_style(text_style(SOFT.light))
            .axis_desc_style(text_style(INK.light))
            .draw()?;

        for (series, points) in series {
            let colour = SERIES[series.colour % SERIES.len()].light;
            if series.is_dashed {
                let (dash, gap) = DASH;
                chart.draw_series(DashedLineSeries::new(
                    points.clone(),
                    dash,
                    gap,
                    colour.stroke_width(1),
                ))?;
            } else {
                chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            }

            if series.has_dots || points.len() == 1 {
                chart.draw_series(
                    points.iter().map(|point| Circle::new(*point, 3, colour.filled())),
                )?;
            }

            if let Some(format) = self.value.filter(|_| !series.is_dashed) {
                let style = |horizontal, vertical| {
                    text_style(INK.light).pos(Pos::new(horizontal, vertical))
                };
                let labels = points.iter().enumerate().map(|(index, point)| {
                    // The first one would stand on the axis.
                    let (offset, style) = match index {
                        0 => ((8, 4), style(HPos::Left, VPos::Top)),
                        _ => ((0, -6), style(HPos::Center, VPos::Bottom)),
                    };
                    EmptyElement::at(*point) + Text::new(format(point.1), offset, style)
                });
                chart.draw_series(labels)?;
            }
        }

        root.present()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_axes_have_whole_decades() {
        let rows: [(&[f64], Range<f64>); 5] = [
            (&[1.0, 10_000.0], 1.0..10_000.0),
            (&[3.0, 40.0], 1.0..100.0),
            (&[0.4], 0.1..1.0),
            (&[1_000.0], 100.0..10_000.0),
            (&[], 1.0..10.0),
        ];
        for (values, expected) in rows {
            let range = decades(values.iter().copied());
            let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
            assert!(
                close(range.start, expected.start) && close(range.end, expected.end),
                "{values:?}: {range:?}"
            );
        }

        assert_eq!(from_zero([3.0, 10.0].into_iter()), 0.0..11.0);
        assert_eq!(from_zero([0.0].into_iter()), 0.0..1.0);
    }

    #[test]
    fn undrawable_values_are_left_out() {
        let extremes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 0.0, -1.0, 5.0];
        let series = |is_dashed| Series {
            name: "x".to_owned(),
            colour: 9,
            is_dashed,
            has_dots: true,
            points: extremes.iter().flat_map(|x| extremes.map(|y| (*x, y))).collect(),
        };

        for y_scale in [Scale::Linear, Scale::Log] {
            let axis = || Axis { label: "<&>", format: |value| format!("{value}") };
            let all = vec![series(false), series(true)];
            let chart = LineChart {
                x: axis(),
                y: axis(),
                y_scale,
                series: all,
                value: Some(|value| format!("{value}")),
            };

            let svg = chart.svg();
            assert!(
                !svg.contains("NaN") && !svg.contains("inf") && svg.contains("&lt;&amp;&gt;"),
                "{svg}"
            );
        }
    }
}
