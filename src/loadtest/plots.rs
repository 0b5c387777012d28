//! Which plots a report has, with those of its baseline beside it.

use hdrhistogram::Histogram;

use super::bars::{Bar, bars};
use super::figures::{self, count, figure, plain};
use super::histogram::{self, HistogramError};
use super::lines::{Axis, COLOURS, Lines, Series};
use super::report::{Point, Report, Stage};
use super::scale::Scale;
use super::sentences::unit;

/// Marks in each halving of what lies above, of a curve of percentiles.
const CURVE_FINENESS: u32 = 5;

/// A plot with what is said about it.
pub struct Plot {
    pub title: String,
    pub note: String,
    pub svg: String,
}

/// A figure of a point.
type Value = fn(&Point) -> f64;

fn trajectories(scale: Scale) -> Axis {
    Axis { label: "trajectories", scale, mark: plain }
}

/// A number in units of thousands, millions, …
fn in_units(value: f64, text: fn(f64) -> String) -> String {
    let units = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let unit = units.into_iter().find(|(size, _)| value.abs() >= *size);
    unit.map_or_else(|| text(value), |(size, name)| format!("{}{name}", text(value / size)))
}

/// A mark of an axis in few letters.
fn short(value: f64) -> String {
    in_units(value, plain)
}

/// A measured number in few letters.
fn rounded(value: f64) -> String {
    in_units(value, figure)
}

/// The place of a share of all values on an axis of percentiles: `1 / (1 - share)`; here backwards, as per cent.
fn percentile(place: f64) -> String {
    plain(100.0 - 100.0 / place)
}

/// A report and its baseline, which is dashed.
fn both<'a>(report: &'a Report, baseline: Option<&'a Report>) -> impl Iterator<Item = (&'a Report, bool)> + Clone {
    [(report, false)].into_iter().chain(baseline.map(|baseline| (baseline, true)))
}

fn over_trajectories(report: &Report, value: impl Fn(&Point) -> f64) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = report.points.iter().map(|point| (f64::from(point.trajectories), value(point))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn suffix(is_baseline: bool) -> &'static str {
    if is_baseline { ", baseline" } else { "" }
}

fn steps_per_second(report: &Report, baseline: Option<&Report>) -> Plot {
    let series = both(report, baseline).map(|(report, is_baseline)| Series {
        name: if is_baseline { "baseline" } else { "steps/s" }.to_owned(),
        colour: 0,
        is_dashed: is_baseline,
        has_dots: true,
        points: over_trajectories(report, |point| point.steps_per_second),
    });
    let series: Vec<Series> = series.collect();
    let values = |axis: fn(&(f64, f64)) -> f64| series.iter().flat_map(|series| &series.points).map(axis);
    let (x, y) = (Scale::log(values(|point| point.0)), Scale::linear(values(|point| point.1)));
    let title = "Steps per second";
    let y = Axis { label: "steps/s", scale: y, mark: short };
    let svg = Lines { title, x: trajectories(x), y, series, value: Some(rounded) }.svg();
    Plot { title: title.to_owned(), note: "More is better.".to_owned(), svg }
}

fn latency(report: &Report, baseline: Option<&Report>) -> Plot {
    let percentiles: [(&str, Value); 4] = [
        ("p50", |point| point.latency.p50_us),
        ("p90", |point| point.latency.p90_us),
        ("p99", |point| point.latency.p99_us),
        ("p99.9", |point| point.latency.p999_us),
    ];
    let series = both(report, baseline).flat_map(|(report, is_baseline)| {
        percentiles.iter().enumerate().map(move |(colour, (name, value))| Series {
            name: format!("{name}{}", suffix(is_baseline)),
            colour,
            is_dashed: is_baseline,
            has_dots: !is_baseline,
            points: over_trajectories(report, value),
        })
    });
    let series: Vec<Series> = series.collect();
    let values = |axis: fn(&(f64, f64)) -> f64| series.iter().flat_map(|series| &series.points).map(axis);
    let (x, y) = (Scale::log(values(|point| point.0)), Scale::log(values(|point| point.1)));
    let title = "Latency over trajectories";
    let y = Axis { label: "latency, µs", scale: y, mark: plain };
    let svg = Lines { title, x: trajectories(x), y, series, value: None }.svg();
    Plot { title: title.to_owned(), note: "Less is better. Both axes are logarithmic.".to_owned(), svg }
}

/// The curve of a histogram: the place of each share, and its value in microseconds. The last place is that of the
/// largest value, which one of all values is.
fn curve(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let last = histogram.len() as f64;
    let points = histogram.iter_quantiles(CURVE_FINENESS).map(|value| {
        let above = 1.0 - value.quantile_iterated_to();
        let place = if above > 0.0 { (1.0 / above).min(last) } else { last };
        (place, value.value_iterated_to() as f64 / 1e3)
    });
    points.collect()
}

/// Some of the points, evenly, with the first and the last: so many lines can be told apart.
fn spread(points: &[Point]) -> Vec<&Point> {
    if points.len() <= COLOURS {
        return points.iter().collect();
    }
    (0..COLOURS).map(|index| &points[index * (points.len() - 1) / (COLOURS - 1)]).collect()
}

fn percentiles(report: &Report, baseline: Option<&Report>) -> Result<Plot, HistogramError> {
    let mut series = Vec::new();
    let shown = spread(&report.points);
    for (report, is_baseline) in both(report, baseline) {
        for (colour, shown) in shown.iter().enumerate() {
            let Some(point) = report.points.iter().find(|point| point.trajectories == shown.trajectories) else {
                continue;
            };
            series.push(Series {
                name: format!("{}{}", count(point.trajectories.into()), suffix(is_baseline)),
                colour,
                is_dashed: is_baseline,
                has_dots: false,
                points: curve(&histogram::decode(&point.histogram)?),
            });
        }
    }
    let values = |axis: fn(&(f64, f64)) -> f64| series.iter().flat_map(|series| &series.points).map(axis);
    let x = Axis { label: "percentile, %", scale: Scale::decades(values(|point| point.0)), mark: percentile };
    let y = Axis { label: "latency, µs", scale: Scale::log(values(|point| point.1)), mark: plain };
    let title = "Latency over percentiles";
    let left_out = report.points.len() - shown.len();
    let note = if left_out > 0 {
        format!("One line a count of trajectories; {left_out} are left out. Less is better.")
    } else {
        "One line a count of trajectories. Less is better.".to_owned()
    };
    Ok(Plot { title: title.to_owned(), note, svg: Lines { title, x, y, series, value: None }.svg() })
}

fn leg_bar(leg: &Stage, baseline: Option<&Point>) -> Bar {
    let latency = &leg.latency;
    let baseline = baseline.and_then(|point| point.legs.iter().find(|other| other.name == leg.name));
    Bar {
        name: leg.name.clone(),
        value: latency.p50_us,
        baseline: baseline.map(|leg| leg.latency.p50_us),
        class: if leg.is_work { "bar work" } else { "bar" },
        title: format!(
            "{}: p50 {} µs, p99 {} µs, max {} µs",
            leg.name,
            figure(latency.p50_us),
            figure(latency.p99_us),
            figure(latency.max_us)
        ),
    }
}

/// The legs with the fewest and with the most trajectories.
fn legs(report: &Report, baseline: Option<&Report>) -> Vec<Plot> {
    let with_legs = || report.points.iter().filter(|point| !point.legs.is_empty());
    let first = with_legs().min_by_key(|point| point.trajectories);
    let last = with_legs().max_by_key(|point| point.trajectories);
    let last = last.filter(|last| first.is_some_and(|first| first.trajectories != last.trajectories));
    let plots = first.into_iter().chain(last).map(|point| {
        let was = baseline.and_then(|report| report.points.iter().find(|was| was.trajectories == point.trajectories));
        let drawn: Vec<_> = point.legs.iter().map(|leg| leg_bar(leg, was)).collect();
        let title = format!("The way of a {} with {}", unit(report.mode), figures::trajectories(point.trajectories));
        let work = if point.legs.iter().any(|leg| leg.is_work) { " Pale bars are the agents' own work." } else { "" };
        let dashed = if was.is_some() { " Dashed: the baseline." } else { "" };
        let svg = bars(&title, "p50, µs", &drawn);
        Plot { title, note: format!("The median of each leg.{work}{dashed}"), svg }
    });
    plots.collect()
}

/// All that there are, in the order in which they are shown.
///
/// # Errors
/// When a histogram of the reports cannot be read.
pub fn plots(report: &Report, baseline: Option<&Report>) -> Result<Vec<Plot>, HistogramError> {
    let mut plots = vec![steps_per_second(report, baseline), latency(report, baseline), percentiles(report, baseline)?];
    plots.extend(legs(report, baseline));
    Ok(plots)
}
