//! Prometheus' own text format, version 0.0.4, from OpenMetrics text: for scrapers that do not ask
//! for OpenMetrics.
//!
//! The samples are the same. Counters and infos are described under the names of their samples, an
//! info is a gauge, and there are neither `# UNIT` lines nor an `# EOF`.

use std::collections::HashMap;
use std::fmt::Write as _;

/// The suffix that this format adds to a family's name, and its name for the OpenMetrics type.
fn renamed(kind: &str) -> (&'static str, &str) {
    match kind {
        "counter" => ("_total", "counter"),
        "info" => ("_info", "gauge"),
        "unknown" => ("", "untyped"),
        kind => ("", kind),
    }
}

/// `# TYPE name kind` as its name and kind.
fn type_of(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}

/// Translates what this crate renders.
pub fn from_openmetrics(openmetrics: &str) -> String {
    // A family's HELP comes before its TYPE, so all types are read first.
    let kinds: HashMap<_, _> = openmetrics.lines().filter_map(type_of).collect();

    let mut text = String::with_capacity(openmetrics.len());
    for line in openmetrics.lines() {
        let written = if let Some((name, kind)) = type_of(line) {
            let (suffix, kind) = renamed(kind);
            writeln!(text, "# TYPE {name}{suffix} {kind}")
        } else if let Some((name, help)) =
            line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, _) = renamed(kinds.get(name).copied().unwrap_or_default());
            writeln!(text, "# HELP {name}{suffix} {help}")
        // UNIT and EOF, which this format does not have.
        } else if line.starts_with('#') {
            Ok(())
        } else {
            writeln!(text, "{line}")
        };
        written.expect("invariant: writing to a string succeeds");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_stand_under_the_names_of_samples() {
        let openmetrics = "\
# HELP prime_runs Runs.
# TYPE prime_runs counter
prime_runs_total{status=\"failed\"} 3
# HELP prime_build What was built.
# TYPE prime_build info
prime_build_info{version=\"1\"} 1
# HELP prime_journal_bytes Content.
# TYPE prime_journal_bytes gauge
# UNIT prime_journal_bytes bytes
prime_journal_bytes 5
# EOF
";
        let expected = "\
# HELP prime_runs_total Runs.
# TYPE prime_runs_total counter
prime_runs_total{status=\"failed\"} 3
# HELP prime_build_info What was built.
# TYPE prime_build_info gauge
prime_build_info{version=\"1\"} 1
# HELP prime_journal_bytes Content.
# TYPE prime_journal_bytes gauge
prime_journal_bytes 5
";
        assert_eq!(from_openmetrics(openmetrics), expected);
    }
}
