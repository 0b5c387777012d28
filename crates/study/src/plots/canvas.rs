//! What all charts share: the drawing's frame, text styles, axes and legends.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _};
use plotters::prelude::{SVGBackend, Text};
use plotters::style::colors::TRANSPARENT;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{IntoFont as _, RGBColor, TextStyle};
use prime_page::palette::{INK, RULE, SOFT};

use super::marker::draw_marker;

/// Width of every drawing, in pixels.
pub(super) const WIDTH: u32 = 720;
/// Approximate width of a letter, in pixels.
const LETTER: u32 = 7;
const FONT_SIZE: u32 = 13;
/// Height of a line of the legend, in pixels.
const LEGEND_LINE: u32 = 20;
pub(super) const X_LABELS: u32 = 44;

/// Failure of the library's backends; drawing into memory does not fail.
pub(super) type Failure = DrawingAreaErrorKind<std::io::Error>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

pub(super) fn text_style(colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", FONT_SIZE).into_font().color(&colour)
}

pub(super) fn aligned(colour: RGBColor, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    text_style(colour).pos(Pos::new(horizontal, vertical))
}

/// Approximate width of a text in pixels.
pub(super) fn text_width(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX).saturating_mul(LETTER)
}

/// Room for names on the left, at most a third of the drawing.
pub(super) fn names_width<'n>(names: impl IntoIterator<Item = &'n str>) -> u32 {
    let longest = names.into_iter().map(text_width).max().unwrap_or_default();
    (longest + 20).min(WIDTH / 3)
}

/// A number with at most two decimals; integers have none.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A legend's lines, each a list of series.
fn legend_lines(names: &[String]) -> Vec<Vec<usize>> {
    let mut lines: Vec<Vec<usize>> = Vec::new();
    // Wider than any line, so that the first name opens one.
    let mut width = u32::MAX;

    for (index, name) in names.iter().enumerate() {
        let item = text_width(name) + 36;
        if width.saturating_add(item) > WIDTH - 20 {
            lines.push(Vec::new());
            width = 0;
        }
        width += item;
        if let Some(line) = lines.last_mut() {
            line.push(index);
        }
    }

    lines
}

/// Draws a chart of `height` pixels below a legend of the series' markers. Without names there is
/// no legend. `title` is read out in place of the drawing.
pub(super) fn svg(
    title: &str,
    legend: &[String],
    height: u32,
    draw: impl FnOnce(&Area<'_>) -> Result<(), Failure>,
) -> String {
    let lines = legend_lines(legend);
    let above = LEGEND_LINE * u32::try_from(lines.len()).unwrap_or(0) + 8;

    let mut svg = String::new();
    // The scope ends the backend's borrow of the text.
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, above + height)).into_drawing_area();
        let drawn = (|| {
            let (top, chart) = root.split_vertically(above);
            for (line, items) in (0_i32..).zip(&lines) {
                let (mut x, y) = (14, 14 + line * LEGEND_LINE.cast_signed());
                for index in items {
                    draw_marker(&top, (x, y), *index, false)?;
                    let style = aligned(INK.light, HPos::Left, VPos::Center);
                    top.draw(&Text::new(legend[*index].clone(), (x + 10, y), style))?;
                    x += text_width(&legend[*index]).cast_signed() + 36;
                }
            }

            draw(&chart)?;
            root.present()
        })();
        drawn.expect("invariant: drawing into memory cannot fail");
    }

    named(&svg, title)
}

/// Gives the drawing a name for screen readers.
fn named(svg: &str, title: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let Some((head, rest)) = svg.split_once('>') else { return svg.to_owned() };
    format!("{head} role=\"img\"><title>{title}</title>{rest}")
}

/// Axes with a grid, from the ranges `x` and `y`. Without labels on y, the caller draws names
/// there.
pub(super) fn axes<'a, 'b>(
    area: &'a Area<'b>,
    x: std::ops::Range<f64>,
    y: std::ops::Range<f64>,
    (x_name, y_name): (&str, &str),
    left: u32,
    has_y_labels: bool,
) -> Result<Chart<'a, 'b>, Failure> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(6)
        .margin_right(24)
        .x_label_area_size(X_LABELS)
        .y_label_area_size(left)
        .build_cartesian_2d(x, y)?;

    let mut mesh = chart.configure_mesh();
    mesh.x_desc(x_name)
        .y_desc(y_name)
        .x_labels(10)
        .x_label_formatter(&|value| plain(*value))
        .y_label_formatter(&|value| plain(*value))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE.light)
        .axis_style(SOFT.light)
        .label_style(text_style(SOFT.light))
        .axis_desc_style(text_style(INK.light));

    if has_y_labels {
        mesh.y_labels(10);
    } else {
        mesh.disable_y_mesh().y_labels(0);
    }

    mesh.draw()?;
    // It borrows the chart, which is returned.
    drop(mesh);
    Ok(chart)
}

/// The pixel of the area at which a chart has a point.
pub(super) fn pixel(area: &Area<'_>, chart: &Chart<'_, '_>, point: (f64, f64)) -> (i32, i32) {
    let ((x, y), (left, top)) = (chart.backend_coord(&point), area.get_base_pixel());
    (x - left, y - top)
}
