//! A report from a file, to compare with.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::histogram::{self, HistogramError};
use super::report::{FORM, Report};

/// Longest file that is read, in bytes. A report has some kilobytes a point.
const BYTES_MAX: u64 = 64 << 20;

/// Why a file is no baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// Its source says why.
    #[error("cannot be read")]
    Unreadable(#[from] std::io::Error),
    #[error("has more than {BYTES_MAX} bytes, and no report has so many: give a file that --save wrote")]
    TooLong,
    #[error("is no report of a load test: {0}: give a file that --save wrote")]
    NoReport(String),
    #[error("is of form {found}, and this version reads form {FORM}: measure the baseline again with this version")]
    OtherForm { found: String },
    #[error("with {trajectories} trajectories: {error}")]
    Histogram { trajectories: u32, error: HistogramError },
}

/// Reads what `--save` wrote. Histograms are looked at too, so that nothing of it fails later.
///
/// # Errors
/// [`BaselineError`], which does not name the file.
pub fn read(path: &Path) -> Result<Report, BaselineError> {
    let mut text = String::new();
    let length = File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if length as u64 > BYTES_MAX {
        return Err(BaselineError::TooLong);
    }
    parse(&text)
}

fn parse(text: &str) -> Result<Report, BaselineError> {
    let value: Value = serde_json::from_str(text).map_err(|error| BaselineError::NoReport(error.to_string()))?;
    match &value["form"] {
        form if *form == FORM => {}
        Value::Null => return Err(BaselineError::NoReport("it has no `form`".to_owned())),
        form => return Err(BaselineError::OtherForm { found: form.to_string() }),
    }
    let report: Report =
        serde_path_to_error::deserialize(&value).map_err(|error| BaselineError::NoReport(error.to_string()))?;
    check(&report)?;
    Ok(report)
}

fn check(report: &Report) -> Result<(), BaselineError> {
    for point in &report.points {
        let latency = &point.latency;
        let figures = [
            ("steps_per_second", Some(point.steps_per_second)),
            ("latency.p50_us", Some(latency.p50_us)),
            ("latency.p99_us", Some(latency.p99_us)),
            ("cpu_us_per_step", point.cpu_us_per_step),
            ("allocations_per_step", point.allocations_per_step),
            ("bytes_per_trajectory", point.bytes_per_trajectory),
        ];
        for (name, figure) in figures {
            if figure.is_some_and(|figure| figure < 0.0) {
                let place = format!("with {} trajectories, {name} is below 0", point.trajectories);
                return Err(BaselineError::NoReport(place));
            }
        }
        let decoded = histogram::decode(&point.histogram);
        decoded.map_err(|error| BaselineError::Histogram { trajectories: point.trajectories, error })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;

    #[test]
    fn what_was_saved_is_read() {
        let report = report();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(read(file.path()).unwrap(), report);
    }

    #[test]
    fn other_files_are_refused_with_the_place() {
        let whole = serde_json::to_value(report()).unwrap();
        let with = |path: &str, value: Value| {
            let mut changed = whole.clone();
            *changed.pointer_mut(path).unwrap() = value;
            changed.to_string()
        };
        let rows = [
            (String::new(), "is no report"),
            ("{}".to_owned(), "it has no `form`"),
            ("[1]".to_owned(), "it has no `form`"),
            (with("/form", 2.into()), "is of form 2, and this version reads form 1"),
            (with("/form", "1".into()), "is of form \"1\""),
            (with("/mode", "rings".into()), "mode: unknown variant `rings`"),
            (with("/points/1/steps", "many".into()), "points[1].steps"),
            (with("/points/1/steps_per_second", (-1.0).into()), "with 10 trajectories, steps_per_second is below 0"),
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
