//! A plot of horizontal bars from zero.

use super::figures::figure;
use super::scale::Scale;
use super::svg::{Anchor, Svg};

const WIDTH: f64 = 460.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 44.0;
const BAR: f64 = 16.0;
const ROW: f64 = 30.0;
/// Of a letter, about.
const LETTER: f64 = 7.0;
/// For the number behind the longest bar.
const RIGHT: f64 = 64.0;

/// A bar.
pub struct Bar {
    pub name: String,
    pub value: f64,
    /// The same of the baseline, if there is one.
    pub baseline: Option<f64>,
    /// A class of the style sheet.
    pub class: &'static str,
    /// What it says when it is pointed at.
    pub title: String,
}

/// The plot; `label` is of the axis, with its unit.
pub fn bars(title: &str, label: &str, bars: &[Bar]) -> String {
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * LETTER + 16.0).min(WIDTH / 2.5);
    let bottom = TOP + ROW * bars.len() as f64;
    let scale = Scale::linear(bars.iter().flat_map(|bar| [bar.value, bar.baseline.unwrap_or(0.0)]));
    let right = WIDTH - RIGHT;
    let length = |value| scale.place(value).unwrap_or(0.0).max(0.0) * (right - left);
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    for mark in scale.marks() {
        let x = left + length(mark);
        svg.line((x, TOP), (x, bottom), "grid");
        svg.text((x, bottom + 17.0), Anchor::Middle, "mark", &super::figures::plain(mark));
    }
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * index as f64 + (ROW - BAR) / 2.0;
        let end = length(bar.value);
        svg.rectangle((left, y), (end, BAR), bar.class, &bar.title);
        let mut behind = end;
        if let Some(baseline) = bar.baseline {
            let end = length(baseline);
            let title = format!("{}, baseline: {}", bar.name, figure(baseline));
            svg.rectangle((left, y - 2.0), (end, BAR + 4.0), "outline dashed", &title);
            behind = behind.max(end);
        }
        svg.text((left - 8.0, y + BAR - 4.0), Anchor::End, "legend", &bar.name);
        svg.text((left + behind + 6.0, y + BAR - 4.0), Anchor::Start, "value", &figure(bar.value));
    }
    svg.line((left, TOP), (left, bottom), "axis");
    svg.text((f64::midpoint(left, right), bottom + 37.0), Anchor::Middle, "label", label);
    svg.finish(title)
}
