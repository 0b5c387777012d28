//! A report's histograms as HdrHistogram's interval log, which the tools of all its languages read.

use jiff::Timestamp;

use super::histogram::{self, HistogramError};
use super::report::{Point, Report};
use super::sentences::{how, mode, place};

/// Nanoseconds in the unit of the log's maxima.
const NANOS_PER_MILLISECOND: f64 = 1e6;

/// Why a report has no log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    #[error("with {trajectories} trajectories: {error}")]
    Histogram { trajectories: u32, error: HistogramError },
    #[error("the report says {0:?} where the time of its beginning belongs")]
    Started(String),
}

/// A comment cannot end early.
fn comment(text: &str) -> String {
    format!("#{}\n", text.replace(['\n', '\r'], " "))
}

/// One interval a point, tagged `trajectories=N`; values are nanoseconds. An interval begins so many seconds after the
/// beginning as were measured before it.
///
/// # Errors
/// [`RawError`], which no report of a load test gives.
pub fn raw(report: &Report) -> Result<String, RawError> {
    let started: Timestamp = report.started.parse().map_err(|_| RawError::Started(report.started.clone()))?;
    let mut text = String::new();
    text += &comment(&format!("prime-agents loadtest, mode {}: {}", mode(report.mode), how(report)));
    text += &comment(&place(report));
    text += &comment("one line a count of trajectories, which is its tag; values are nanoseconds, maxima milliseconds");
    text += &comment("[Histogram log format version 1.3]");
    let seconds = started.as_millisecond() as f64 / 1e3;
    text += &comment(&format!("[StartTime: {seconds:.3} (seconds since epoch), {started}]"));
    text += "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
    let mut begins = 0.0;
    for Point { trajectories, seconds, histogram: encoded, .. } in &report.points {
        let histogram =
            histogram::decode(encoded).map_err(|error| RawError::Histogram { trajectories: *trajectories, error })?;
        let max = histogram.max() as f64 / NANOS_PER_MILLISECOND;
        // Made anew: what is in the report may be of another form that can be read.
        let encoded = histogram::encode(&histogram);
        text += &format!("Tag=trajectories={trajectories},{begins:.3},{seconds:.3},{max:.3},{encoded}\n");
        begins += seconds;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{open_loop, report};
    use super::*;

    #[test]
    fn every_point_is_an_interval() {
        let text = raw(&report()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 11, "{text}");
        assert!(lines[..5].iter().all(|line| line.starts_with('#')), "{text}");
        assert_eq!(lines[3], "#[Histogram log format version 1.3]");
        // 21 November 2026, 10:00 UTC.
        assert_eq!(lines[4], "#[StartTime: 1795255200.000 (seconds since epoch), 2026-11-21T10:00:00Z]");
        assert!(lines[6].starts_with("Tag=trajectories=1,0.000,10.000,0.180,HISTFAAA"), "{}", lines[6]);
        assert!(lines[10].starts_with("Tag=trajectories=10000,40.000,10.000,1350"), "{}", lines[10]);
        let (_, encoded) = lines[7].rsplit_once(',').unwrap();
        assert_eq!(histogram::decode(encoded), histogram::decode(&report().points[1].histogram));
    }

    #[test]
    fn texts_cannot_end_a_comment() {
        let mut report = open_loop();
        report.machine.processor = "a\r\nTag=x,0,0,0,y".to_owned();
        assert_eq!(raw(&report).unwrap().lines().count(), 7);
        report.started = "yesterday".to_owned();
        assert_eq!(raw(&report), Err(RawError::Started("yesterday".to_owned())));
        report = open_loop();
        report.points[0].histogram.clear();
        assert!(matches!(raw(&report), Err(RawError::Histogram { trajectories: 1, .. })));
    }
}
