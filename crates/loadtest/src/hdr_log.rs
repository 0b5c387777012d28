//! A report's histograms as HdrHistogram's interval log, which the tools of all its languages read.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use jiff::Timestamp;

use super::description::{environment, method, mode};
use super::histogram::{self, HistogramError};
use super::report::Report;

/// The log's maxima are milliseconds.
const NANOS_PER_MILLISECOND: f64 = 1e6;

/// Why a report cannot be written as a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HdrLogError {
    /// A histogram cannot be decoded.
    #[error("with {trajectories} trajectories: {error}")]
    Histogram {
        /// Number of trajectories of its point.
        trajectories: u32,
        /// Why it cannot be decoded.
        error: HistogramError,
    },
    /// The time of start is not RFC 3339; with its text.
    #[error("the report's time of start is invalid: {0:?}")]
    Started(String),
    /// The writer of logs refused a histogram; with its message.
    #[error("the histograms cannot be encoded: {0}")]
    Encoding(String),
}

impl HdrLogError {
    fn encoding(error: &impl ToString) -> Self {
        Self::Encoding(error.to_string())
    }
}

/// The text without line breaks, which would end a comment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// One interval of nanoseconds per point, tagged `trajectories=N`. Intervals follow each other
/// without the time between them.
///
/// # Errors
/// None for a report of a load test; a report that was edited may be invalid.
pub fn hdr_log(report: &Report) -> Result<String, HdrLogError> {
    let started: Timestamp =
        report.started.parse().map_err(|_| HdrLogError::Started(report.started.clone()))?;

    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let header = format!("prime-agents loadtest, mode {}: {}", mode(report.mode), method(report));

    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&one_line(&header))
        .add_comment(&one_line(&environment(report)))
        .add_comment(
            "one line per count of trajectories, its tag; values are nanoseconds, maxima \
             milliseconds",
        )
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(SystemTime::from(started))
        .with_max_value_divisor(NANOS_PER_MILLISECOND)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| HdrLogError::encoding(&error))?;

    let mut start = Duration::ZERO;
    for point in &report.points {
        let trajectories = point.trajectories;
        let histogram = histogram::decode(&point.histogram);
        let histogram =
            histogram.map_err(|error| HdrLogError::Histogram { trajectories, error })?;

        let tag = format!("trajectories={trajectories}");
        let length = Duration::try_from_secs_f64(point.seconds)
            .map_err(|error| HdrLogError::encoding(&error))?;
        log.write_histogram(&histogram, start, length, Tag::new(&tag))
            .map_err(|error| HdrLogError::encoding(&error))?;
        start = start.saturating_add(length);
    }

    // Ends the borrow of `text`.
    drop(log);
    String::from_utf8(text).map_err(|error| HdrLogError::encoding(&error))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::super::testing::{open_loop, report};
    use super::*;

    #[test]
    fn every_point_is_an_interval() {
        let text = hdr_log(&report()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 11, "{text}");
        assert!(lines[..6].iter().all(|line| line.starts_with('#')), "{text}");
        assert_eq!(lines[3], "#[Histogram log format version 1.3]");

        // 21 November 2026, 10:00 UTC.
        assert_eq!(lines[4], "#[StartTime: 1795255200.000 (seconds since epoch)]");
        assert!(
            lines[6].starts_with("Tag=trajectories=1,0.000,10.000,0.180,HISTFAAA"),
            "{}",
            lines[6]
        );
        assert!(
            lines[10].starts_with("Tag=trajectories=10000,40.000,10.000,1350"),
            "{}",
            lines[10]
        );

        let (_, encoded) = lines[7].rsplit_once(',').unwrap();
        assert_eq!(histogram::decode(encoded), histogram::decode(&report().points[1].histogram));

        let entries: Result<Vec<_>, _> = IntervalLogIterator::new(text.as_bytes()).collect();
        let intervals =
            entries.unwrap().into_iter().filter(|entry| matches!(entry, LogEntry::Interval(_)));
        assert_eq!(intervals.count(), 5);
    }

    #[test]
    fn text_cannot_end_a_comment() {
        let mut report = open_loop();
        report.machine.processor = "a\r\nTag=x,0,0,0,y".to_owned();
        assert_eq!(hdr_log(&report).unwrap().lines().count(), 7);

        report.started = "yesterday".to_owned();
        assert_eq!(hdr_log(&report), Err(HdrLogError::Started("yesterday".to_owned())));

        report = open_loop();
        report.points[0].histogram.clear();
        assert!(matches!(hdr_log(&report), Err(HdrLogError::Histogram { trajectories: 1, .. })));
    }
}
