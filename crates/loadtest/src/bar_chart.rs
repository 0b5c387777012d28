//! A chart of horizontal bars from zero, as SVG.

use plotters::prelude::{
    ChartBuilder, Color, EmptyElement, IntoDrawingArea, Rectangle, SVGBackend, Text,
};
use plotters::style::RGBColor;
use plotters::style::colors::TRANSPARENT;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use prime_page::palette::{INK, RULE, SOFT};

use super::line_chart::{DrawingError, text_style};
use super::number_format::{figure, plain};

const WIDTH: u32 = 480;
/// Height of a bar with the gap to the next.
const ROW: u32 = 30;
/// Room for the labels of the x axis.
const X_LABELS: u32 = 42;
/// Approximate width of a letter, for the names on the left.
const LETTER: u32 = 7;
const NAMES_MAX: u32 = WIDTH / 3;
/// Room for the value after the longest bar.
const VALUE: u32 = 64;
/// Values beyond this are drawn as 0.
const VALUE_MAX: f64 = 1e15;

pub struct Bar {
    pub name: String,
    pub value: f64,
    /// Drawn as an outline.
    pub baseline: Option<f64>,
    pub colour: RGBColor,
}

fn drawable(value: f64) -> f64 {
    if (0.0..=VALUE_MAX).contains(&value) { value } else { 0.0 }
}

/// `label` names the axis with its unit.
pub fn svg(bars: &[Bar], label: &str) -> String {
    let mut svg = String::new();
    draw(&mut svg, bars, label).expect("invariant: drawing into memory cannot fail");
    svg
}

fn draw(svg: &mut String, bars: &[Bar], label: &str) -> Result<(), DrawingError> {
    let rows = u32::try_from(bars.len()).unwrap_or(u32::MAX).clamp(1, 100);
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let names =
        (u32::try_from(longest).unwrap_or(u32::MAX).saturating_mul(LETTER) + 16).min(NAMES_MAX);
    let max = bars
        .iter()
        .flat_map(|bar| [bar.value, bar.baseline.unwrap_or(0.0)])
        .map(drawable)
        .fold(0.0, f64::max);
    // An axis must have an extent.
    let max = if max > 0.0 { max } else { 1.0 };

    let root =
        SVGBackend::with_string(svg, (WIDTH, ROW * rows + X_LABELS + 10)).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(10)
        .margin_right(VALUE)
        .x_label_area_size(X_LABELS)
        .y_label_area_size(names)
        .build_cartesian_2d(0.0..max, f64::from(rows)..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_labels(6)
        .x_desc(label)
        .x_label_formatter(&|value| plain(*value))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE.light)
        .axis_style(SOFT.light)
        .label_style(text_style(SOFT.light))
        .axis_desc_style(text_style(INK.light))
        .draw()?;

    let name_style = text_style(INK.light).pos(Pos::new(HPos::Right, VPos::Center));
    let value_style = text_style(INK.light).pos(Pos::new(HPos::Left, VPos::Center));
    for (row, bar) in (0..rows).map(f64::from).zip(bars) {
        let value = drawable(bar.value);
        chart.draw_series([Rectangle::new(
            [(0.0, row + 0.22), (value, row + 0.78)],
            bar.colour.filled(),
        )])?;

        let baseline = bar.baseline.map(drawable);
        let outline = baseline.map(|end| {
            Rectangle::new([(0.0, row + 0.14), (end, row + 0.86)], SOFT.light.stroke_width(1))
        });
        chart.draw_series(outline)?;

        let end = value.max(baseline.unwrap_or(0.0));
        let name = EmptyElement::at((0.0, row + 0.5))
            + Text::new(bar.name.clone(), (-8, 0), name_style.clone());
        let text = EmptyElement::at((end, row + 0.5))
            + Text::new(figure(bar.value), (6, 0), value_style.clone());
        chart.draw_series([name, text])?;
    }
    root.present()
}
