//! Chooses the charts of a report and its baseline.

use hdrhistogram::Histogram;

use prime_page::palette::{SERIES, WORK};

use super::bar_chart::{self, Bar};
use super::description::unit;
use super::histogram::{self, HistogramError};
use super::line_chart::{Axis, LineChart, Scale, Series};
use super::number_format::{self, count, figure, plain};
use super::report::{Point, Report, Stage};

/// Values per halving of the remaining share, on a curve of percentiles.
const CURVE_RESOLUTION: u32 = 5;

/// A chart with its legend and caption.
pub struct Chart {
    pub title: String,
    pub note: String,
    pub legend: Vec<LegendItem>,
    pub svg: String,
}

pub struct LegendItem {
    pub name: String,
    /// Index into [`SERIES`].
    pub colour: usize,
    pub is_dashed: bool,
}

/// A metric of a point.
type Value = fn(&Point) -> f64;

const TRAJECTORIES: Axis = Axis { label: "trajectories", format: plain };
const LATENCY: Axis = Axis { label: "latency, µs", format: short };

/// Abbreviates with k, M or G.
fn in_units(value: f64, format: fn(f64) -> String) -> String {
    let units = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let unit = units.into_iter().find(|(size, _)| value.abs() >= *size);
    unit.map_or_else(|| format(value), |(size, name)| format!("{}{name}", format(value / size)))
}

/// An axis label.
fn short(value: f64) -> String {
    in_units(value, plain)
}

/// A measured value.
fn rounded(value: f64) -> String {
    in_units(value, figure)
}

/// The percentile at a position `1 / (1 - share)` of the axis.
fn percentile(position: f64) -> String {
    plain(100.0 - 100.0 / position)
}

/// The report, then its baseline, which is dashed.
fn both<'a>(
    report: &'a Report,
    baseline: Option<&'a Report>,
) -> impl Iterator<Item = (&'a Report, bool)> + Clone {
    [(report, false)].into_iter().chain(baseline.map(|baseline| (baseline, true)))
}

fn over_trajectories(report: &Report, value: impl Fn(&Point) -> f64) -> Vec<(f64, f64)> {
    let mut points: Vec<_> =
        report.points.iter().map(|point| (f64::from(point.trajectories), value(point))).collect();
    // A line needs its points in ascending order.
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn suffix(is_baseline: bool) -> &'static str {
    if is_baseline { ", baseline" } else { "" }
}

impl Chart {
    fn lines(title: &str, note: String, chart: &LineChart) -> Self {
        let item = |series: &Series| LegendItem {
            name: series.name.clone(),
            colour: series.colour % SERIES.len(),
            is_dashed: series.is_dashed,
        };
        Self {
            title: title.to_owned(),
            note,
            legend: chart.series.iter().map(item).collect(),
            svg: chart.svg(),
        }
    }
}

fn steps_per_second(report: &Report, baseline: Option<&Report>) -> Chart {
    let series = both(report, baseline).map(|(report, is_baseline)| Series {
        name: if is_baseline { "baseline" } else { "steps/s" }.to_owned(),
        colour: 0,
        is_dashed: is_baseline,
        has_dots: true,
        points: over_trajectories(report, |point| point.steps_per_second),
    });

    let y = Axis { label: "steps/s", format: short };
    let series = series.collect();
    let chart =
        LineChart { x: TRAJECTORIES, y, y_scale: Scale::Linear, series, value: Some(rounded) };
    Chart::lines("Steps per second", "More is better.".to_owned(), &chart)
}

fn latency(report: &Report, baseline: Option<&Report>) -> Chart {
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

    let series = series.collect();
    let chart = LineChart { x: TRAJECTORIES, y: LATENCY, y_scale: Scale::Log, series, value: None };
    Chart::lines(
        "Latency over trajectories",
        "Less is better. Both axes are logarithmic.".to_owned(),
        &chart,
    )
}

/// The curve of a histogram: position `1 / (1 - share)`, and the value in microseconds. The maximum
/// is at the position of one value among all.
fn curve(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let last = histogram.len() as f64;
    let points = histogram.iter_quantiles(CURVE_RESOLUTION).map(|value| {
        let above = 1.0 - value.quantile_iterated_to();
        let position = if above > 0.0 { (1.0 / above).min(last) } else { last };
        (position, value.value_iterated_to() as f64 / 1e3)
    });
    points.collect()
}

/// At most as many points as there are colours, evenly spaced, including the first and the last.
fn spread(points: &[Point]) -> Vec<&Point> {
    let colours = SERIES.len();
    if points.len() <= colours {
        return points.iter().collect();
    }
    (0..colours).map(|index| &points[index * (points.len() - 1) / (colours - 1)]).collect()
}

fn percentiles(report: &Report, baseline: Option<&Report>) -> Result<Chart, HistogramError> {
    let mut series = Vec::new();

    let shown = spread(&report.points);
    for (report, is_baseline) in both(report, baseline) {
        // A count of trajectories has the same colour in both reports.
        for (colour, shown) in shown.iter().enumerate() {
            let Some(point) =
                report.points.iter().find(|point| point.trajectories == shown.trajectories)
            else {
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

    let x = Axis { label: "percentile, %", format: percentile };
    let left_out = report.points.len() - shown.len();
    let note = if left_out > 0 {
        format!("One line per count of trajectories; {left_out} are not shown. Less is better.")
    } else {
        "One line per count of trajectories. Less is better.".to_owned()
    };

    let chart = LineChart { x, y: LATENCY, y_scale: Scale::Log, series, value: None };
    Ok(Chart::lines("Latency over percentiles", note, &chart))
}

fn bar(stage: &Stage, baseline: Option<&Point>) -> Bar {
    let baseline =
        baseline.and_then(|point| point.stages.iter().find(|other| other.name == stage.name));
    Bar {
        name: stage.name.clone(),
        value: stage.latency.p50_us,
        baseline: baseline.map(|stage| stage.latency.p50_us),
        colour: if stage.is_work { WORK.light } else { SERIES[0].light },
    }
}

/// The stages with the fewest and with the most trajectories.
fn stages(report: &Report, baseline: Option<&Report>) -> Vec<Chart> {
    let timed = || report.points.iter().filter(|point| !point.stages.is_empty());
    let first = timed().min_by_key(|point| point.trajectories);
    let last = timed().max_by_key(|point| point.trajectories);
    let last =
        last.filter(|last| first.is_some_and(|first| first.trajectories != last.trajectories));

    let charts = first.into_iter().chain(last).map(|point| {
        let was = baseline.and_then(|report| {
            report.points.iter().find(|was| was.trajectories == point.trajectories)
        });
        let bars: Vec<_> = point.stages.iter().map(|stage| bar(stage, was)).collect();
        let with = number_format::trajectories(point.trajectories);
        let work = if point.stages.iter().any(|stage| stage.is_work) {
            " Pale bars are the agents' own work."
        } else {
            ""
        };
        let outlined = if was.is_some() { " Outlined: the baseline." } else { "" };
        Chart {
            title: format!("Stages of a {} with {with}", unit(report.mode)),
            note: format!("Median of each stage.{work}{outlined}"),
            legend: Vec::new(),
            svg: bar_chart::svg(&bars, "p50, µs"),
        }
    });
    charts.collect()
}

/// All charts, in order.
///
/// # Errors
/// If a histogram of the reports cannot be decoded.
pub fn charts(report: &Report, baseline: Option<&Report>) -> Result<Vec<Chart>, HistogramError> {
    let mut charts = vec![
        steps_per_second(report, baseline),
        latency(report, baseline),
        percentiles(report, baseline)?,
    ];
    charts.extend(stages(report, baseline));
    Ok(charts)
}
