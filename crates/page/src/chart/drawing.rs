//! A drawing: shapes and text, written as SVG.

use std::fmt::Write as _;

use super::text::{FONT_SIZE, LINE_HEIGHT};
use crate::palette::{Rgb, hex};

/// A place in a drawing, in pixels from its upper left corner.
pub type Point = (f64, f64);

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its first letter.
    Start,
    /// Its middle.
    Middle,
    /// Its last letter.
    End,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// The colour on a light page.
    pub colour: Rgb,
    /// The width, in pixels.
    pub width: f64,
    /// True for dashes.
    pub is_dashed: bool,
}

impl Stroke {
    /// A solid line.
    pub const fn new(colour: Rgb, width: f64) -> Self {
        Self { colour, width, is_dashed: false }
    }

    fn attributes(self) -> String {
        let dashes = if self.is_dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        format!(" stroke=\"{}\" stroke-width=\"{}\"{dashes}", hex(self.colour), number(self.width))
    }
}

/// Beyond this nothing is seen, and renderers lose precision.
const PIXELS_MAX: f64 = 1e5;

/// A coordinate with one decimal.
fn number(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-PIXELS_MAX, PIXELS_MAX) } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Escapes a text, and leaves out the control characters that XML does not have.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ if letter.is_control() => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Shapes in the order in which they cover each other.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    body: String,
}

impl Drawing {
    /// A polyline through these points.
    pub fn line(&mut self, points: &[Point], stroke: Stroke) {
        if points.len() < 2 {
            return;
        }
        let points = coordinates(points);
        let _ = writeln!(
            self.body,
            "<polyline points=\"{points}\" fill=\"none\"{}/>",
            stroke.attributes()
        );
    }

    /// A closed shape.
    pub fn polygon(&mut self, points: &[Point], fill: Rgb, stroke: Option<Stroke>) {
        let (points, stroke) = (coordinates(points), stroke.map(Stroke::attributes));
        let _ = writeln!(
            self.body,
            "<polygon points=\"{points}\" fill=\"{}\"{}/>",
            hex(fill),
            stroke.unwrap_or_default()
        );
    }

    /// A circle.
    pub fn circle(&mut self, (x, y): Point, radius: f64, fill: Rgb, stroke: Stroke) {
        let _ = writeln!(
            self.body,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"{}/>",
            number(x),
            number(y),
            number(radius),
            hex(fill),
            stroke.attributes()
        );
    }

    /// A rectangle between two corners; without a filling it is an outline. `opacity` of the
    /// filling is 0 to 1.
    pub fn rectangle(
        &mut self,
        corners: [Point; 2],
        fill: Option<(Rgb, f64)>,
        stroke: Option<Stroke>,
    ) {
        let [(x0, y0), (x1, y1)] = corners;
        let fill = match fill {
            None => " fill=\"none\"".to_owned(),
            Some((colour, opacity)) if opacity < 1.0 => {
                format!(" fill=\"{}\" fill-opacity=\"{opacity:.2}\"", hex(colour))
            }
            Some((colour, _)) => format!(" fill=\"{}\"", hex(colour)),
        };
        let _ = writeln!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{fill}{}/>",
            number(x0.min(x1)),
            number(y0.min(y1)),
            number((x1 - x0).abs()),
            number((y1 - y0).abs()),
            stroke.map(Stroke::attributes).unwrap_or_default()
        );
    }

    /// A line of text whose middle height is at a place.
    pub fn text(&mut self, at: Point, text: &str, colour: Rgb, anchor: Anchor) {
        self.turned_text(at, text, colour, anchor, 0);
    }

    /// The same, turned by degrees around its place.
    pub fn turned_text(
        &mut self,
        (x, y): Point,
        text: &str,
        colour: Rgb,
        anchor: Anchor,
        degrees: i32,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let turn = match degrees {
            0 => String::new(),
            _ => format!(" transform=\"rotate({degrees} {} {})\"", number(x), number(y)),
        };
        // Not `dominant-baseline`, which few programs but browsers know.
        let (x, y) = (number(x), number(y + 0.35 * FONT_SIZE));
        let (colour, text) = (hex(colour), escaped(text));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\"{anchor}{turn}>{text}</text>"
        );
    }

    /// Lines of text, the middle of all of them at a place.
    pub fn lines_of_text(&mut self, (x, y): Point, lines: &[String], colour: Rgb, anchor: Anchor) {
        let first = y - (lines.len() as f64 - 1.0) * LINE_HEIGHT / 2.0;
        for (place, line) in lines.iter().enumerate() {
            self.text((x, first + place as f64 * LINE_HEIGHT), line, colour, anchor);
        }
    }

    /// Shapes that stand for a value, with its description, which is shown on hover.
    pub fn mark(&mut self, description: &str, draw: impl FnOnce(&mut Self)) {
        self.linked_mark(description, None, draw);
    }

    /// The same, as a link to an address.
    pub fn linked_mark(
        &mut self,
        description: &str,
        link: Option<&str>,
        draw: impl FnOnce(&mut Self),
    ) {
        let (open, close) = match link {
            Some(link) => {
                (format!("a href=\"{}\" target=\"_blank\" rel=\"noopener\"", escaped(link)), "a")
            }
            None => ("g".to_owned(), "g"),
        };
        let description = escaped(description);
        let _ = write!(self.body, "<{open} class=\"mark\"><title>{description}</title>");
        draw(self);
        let _ = writeln!(self.body, "</{close}>");
    }

    /// The SVG of this size in pixels. `title` is read out in place of the drawing.
    pub fn svg(self, title: &str, (width, height): (f64, f64)) -> String {
        let (width, height) = (number(width), number(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" \
             font-size=\"{FONT_SIZE}\"><title>{}</title>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}

fn coordinates(points: &[Point]) -> String {
    let points = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y)));
    points.collect::<Vec<_>>().join(" ")
}
