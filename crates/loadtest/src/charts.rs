//! Chooses the charts of a report and its baseline.

use hdrhistogram::Histogram;

use prime_page::chart::{Axis, Line, LineChart, LinePoint, Measured, Row, RowChart, Scale, WIDTH};
use prime_page::number::in_units;
use prime_page::palette::{SERIES, WORK};

use super::description::unit;
use super::histogram::{self, HistogramError};
use super::number_format::{self, count, figure, plain};
use super::report::{Point, Report, Stage};

/// Values per halving of the remaining share, on a curve of percentiles.
const CURVE_RESOLUTION: u32 = 5;

/// A chart with its caption.
pub struct Chart {
    pub title: String,
    pub note: String,
    pub svg: String,
}

/// A metric of a point.
type Value = fn(&Point) -> f64;

/// An axis over the values of its chart.
fn axis(name: &str, scale: Scale) -> Axis {
    Axis { scale, ..Axis::linear(name, (0.0, 0.0)) }
}

fn trajectories_axis() -> Axis {
    axis("trajectories (logarithmic)", Scale::Log)
}

fn latency_axis() -> Axis {
    axis("latency, µs (logarithmic)", Scale::Log)
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

fn line_point((x, y): (f64, f64)) -> LinePoint {
    LinePoint { x, y, interval: None }
}

fn over_trajectories(report: &Report, value: impl Fn(&Point) -> f64) -> Vec<LinePoint> {
    let point = |point: &Point| line_point((f64::from(point.trajectories), value(point)));
    let mut points: Vec<_> = report.points.iter().map(point).collect();
    // A line needs its points in ascending order.
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

fn suffix(is_baseline: bool) -> &'static str {
    if is_baseline { ", baseline" } else { "" }
}

impl Chart {
    fn lines(title: &str, note: String, chart: &LineChart) -> Self {
        Self { title: title.to_owned(), note, svg: chart.svg() }
    }
}

fn steps_per_second(report: &Report, baseline: Option<&Report>) -> Chart {
    let series = both(report, baseline).map(|(report, is_baseline)| Line {
        name: if is_baseline { "baseline" } else { "steps/s" }.to_owned(),
        slot: 0,
        is_dashed: is_baseline,
        has_markers: !is_baseline,
        points: over_trajectories(report, |point| point.steps_per_second),
    });

    let title = "Steps per second";
    let series: Vec<Line> = series.collect();
    // From 0, with room for the highest value's label.
    let highest = series.iter().flat_map(|line| &line.points).map(|point| point.y);
    let highest = highest.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let y = Axis::linear("steps/s", (0.0, if highest > 0.0 { 1.1 * highest } else { 1.0 }));
    let chart = LineChart {
        title: title.to_owned(),
        x: trajectories_axis(),
        y,
        series,
        value: Some(rounded),
    };
    Chart::lines(title, "More is better.".to_owned(), &chart)
}

fn latency(report: &Report, baseline: Option<&Report>) -> Chart {
    let percentiles: [(&str, Value); 4] = [
        ("p50", |point| point.latency.p50_us),
        ("p90", |point| point.latency.p90_us),
        ("p99", |point| point.latency.p99_us),
        ("p99.9", |point| point.latency.p999_us),
    ];

    let series = both(report, baseline).flat_map(|(report, is_baseline)| {
        percentiles.iter().enumerate().map(move |(colour, (name, value))| Line {
            name: format!("{name}{}", suffix(is_baseline)),
            slot: colour,
            is_dashed: is_baseline,
            has_markers: !is_baseline,
            points: over_trajectories(report, value),
        })
    });

    let title = "Latency over trajectories";
    let chart = LineChart {
        title: title.to_owned(),
        x: trajectories_axis(),
        y: latency_axis(),
        series: series.collect(),
        value: None,
    };
    Chart::lines(title, "Less is better.".to_owned(), &chart)
}

/// The curve of a histogram: position `1 / (1 - share)`, and the value in microseconds. The maximum
/// is at the position of one value among all.
fn curve(histogram: &Histogram<u64>) -> Vec<LinePoint> {
    let last = histogram.len() as f64;
    let points = histogram.iter_quantiles(CURVE_RESOLUTION).map(|value| {
        let above = 1.0 - value.quantile_iterated_to();
        let position = if above > 0.0 { (1.0 / above).min(last) } else { last };
        line_point((position, value.value_iterated_to() as f64 / 1e3))
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
            series.push(Line {
                name: format!("{}{}", count(point.trajectories.into()), suffix(is_baseline)),
                slot: colour,
                is_dashed: is_baseline,
                has_markers: false,
                points: curve(&histogram::decode(&point.histogram)?),
            });
        }
    }

    let title = "Latency over percentiles";
    let x = Axis { format: Some(percentile), ..axis("percentile, %", Scale::Log) };
    let left_out = report.points.len() - shown.len();
    let note = if left_out > 0 {
        format!("One line per count of trajectories; {left_out} are not shown. Less is better.")
    } else {
        "One line per count of trajectories. Less is better.".to_owned()
    };

    let y = latency_axis();
    let chart = LineChart { title: title.to_owned(), x, y, series, value: None };
    Ok(Chart::lines(title, note, &chart))
}

fn row(stage: &Stage, baseline: Option<&Point>) -> Row {
    let baseline =
        baseline.and_then(|point| point.stages.iter().find(|other| other.name == stage.name));
    let value = Measured {
        value: stage.latency.p50_us,
        outline: baseline.map(|stage| stage.latency.p50_us),
        colour: Some(if stage.is_work { WORK.light } else { SERIES[0].light }),
        ..Measured::default()
    };
    Row { name: stage.name.clone(), values: vec![Some(value)], slot: Some(0) }
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
        let rows: Vec<_> = point.stages.iter().map(|stage| row(stage, was)).collect();
        let with = number_format::trajectories(point.trajectories);
        let work = if point.stages.iter().any(|stage| stage.is_work) {
            " Pale bars are the agents' own work."
        } else {
            ""
        };
        let outlined = if was.is_some() { " Outlined: the baseline." } else { "" };
        let title = format!("Stages of a {} with {with}", unit(report.mode));
        let chart = RowChart {
            title: title.clone(),
            heading: String::new(),
            axis: "p50, µs".to_owned(),
            series: Vec::new(),
            rows,
            has_bars: true,
            range: (0.0, 0.0),
            value: Some(figure),
            width: WIDTH,
        };
        let note = format!("Median of each stage.{work}{outlined}");
        Chart { title, note, svg: chart.svg() }
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
