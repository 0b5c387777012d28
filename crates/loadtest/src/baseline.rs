//! Reads a saved report to compare with.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::histogram::{self, HistogramError};
use super::report::{FORMAT, Report};

/// Longest file read, in bytes. A report has a few kilobytes per point.
const BYTES_MAX: u64 = 64 << 20;

/// Why a file cannot be a baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The file cannot be opened or read, or is not UTF-8.
    #[error("cannot be read")]
    Unreadable(#[from] std::io::Error),
    /// The file is longer than any report.
    #[error(
        "is longer than {BYTES_MAX} bytes, so it is not a load test report: give a file written by \
         --save"
    )]
    TooLong,
    /// The file is not JSON or has wrong fields; with the location and the parser's message.
    #[error("is not a load test report: {0}: give a file written by --save")]
    NoReport(String),
    /// The report was written by a version with another [`FORMAT`].
    #[error(
        "has report format {found}, and this version reads format {FORMAT} (`legs` of format 1 are \
         `stages` now): measure the baseline again"
    )]
    OtherFormat {
        /// The format of the file, as it is written there.
        found: String,
    },
    /// A histogram cannot be decoded.
    #[error("with {trajectories} trajectories: {error}")]
    Histogram {
        /// Number of trajectories of its point.
        trajectories: u32,
        /// Why it cannot be decoded.
        error: HistogramError,
    },
}

/// Reads a file written by `--save`. Checks its histograms too, so that the comparison cannot fail
/// later. Errors do not name the file.
pub fn read(path: &Path) -> Result<Report, BaselineError> {
    let mut text = String::new();
    // One byte more than the limit shows that a file is longer.
    let length = File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if length as u64 > BYTES_MAX {
        return Err(BaselineError::TooLong);
    }
    parse(&text)
}

fn parse(text: &str) -> Result<Report, BaselineError> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| BaselineError::NoReport(error.to_string()))?;

    // The format comes first: a report of another one would fail with a missing field instead.
    match &value["form"] {
        format if *format == FORMAT => {}
        Value::Null => return Err(BaselineError::NoReport("it has no `form`".to_owned())),
        format => return Err(BaselineError::OtherFormat { found: format.to_string() }),
    }

    let report: Report = serde_path_to_error::deserialize(&value)
        .map_err(|error| BaselineError::NoReport(error.to_string()))?;
    check(&report)?;
    Ok(report)
}

fn check(report: &Report) -> Result<(), BaselineError> {
    for point in &report.points {
        let latency = &point.latency;
        let metrics = [
            ("steps_per_second", Some(point.steps_per_second)),
            ("latency.p50_us", Some(latency.p50_us)),
            ("latency.p99_us", Some(latency.p99_us)),
            ("cpu_us_per_step", point.cpu_us_per_step),
            ("allocations_per_step", point.allocations_per_step),
            ("bytes_per_trajectory", point.bytes_per_trajectory),
        ];

        for (name, value) in metrics {
            if value.is_some_and(|value| value < 0.0) {
                let place = format!("with {} trajectories, {name} is below 0", point.trajectories);
                return Err(BaselineError::NoReport(place));
            }
        }

        let decoded = histogram::decode(&point.histogram);
        decoded.map_err(|error| BaselineError::Histogram {
            trajectories: point.trajectories,
            error,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;

    #[test]
    fn a_saved_report_is_read_back() {
        let report = report();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(read(file.path()).unwrap(), report);
    }

    #[test]
    fn invalid_files_are_refused_with_the_location() {
        let whole = serde_json::to_value(report()).unwrap();
        let with = |path: &str, value: Value| {
            let mut changed = whole.clone();
            *changed.pointer_mut(path).unwrap() = value;
            changed.to_string()
        };

        let rows = [
            (String::new(), "is not a load test report"),
            ("{}".to_owned(), "it has no `form`"),
            ("[1]".to_owned(), "it has no `form`"),
            (with("/form", 3.into()), "has report format 3, and this version reads format 2"),
            (with("/form", 1.into()), "`legs` of format 1 are `stages` now"),
            (with("/form", "2".into()), "has report format \"2\""),
            (whole.to_string().replace("\"stages\"", "\"legs\""), "missing field `stages`"),
            (with("/mode", "rings".into()), "mode: unknown variant `rings`"),
            (with("/points/1/steps", "many".into()), "points[1].steps"),
            (
                with("/points/1/steps_per_second", (-1.0).into()),
                "with 10 trajectories, steps_per_second is below 0",
            ),
            (with("/points/4/histogram", "AAAA".into()), "with 10000 trajectories: a histogram"),
            (whole.to_string().replace("\"load\"", "\"lode\""), "missing field `load`"),
        ];
        for (text, part) in rows {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(part), "{part:?} is missing in {error:?}");
        }

        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().join("none.json"), folder.path().to_owned()] {
            assert!(matches!(read(&path), Err(BaselineError::Unreadable(_))), "{path:?}");
        }
        assert!(matches!(read(Path::new("/dev/zero")), Err(BaselineError::TooLong)));
    }
}
