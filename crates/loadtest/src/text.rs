//! A report as text: Markdown tables and sentences.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::comparison::Comparison;
use super::description::{environment, method, mode};
use super::number_format::plain;
use super::report::Report;
use super::tables::{self, Cells};

fn table(cells: &Cells) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let aligned = |row: &[String]| -> Vec<Cell> {
        let cells = row.iter().enumerate().map(|(column, text)| {
            let is_name = column < cells.names;
            Cell::new(text).set_alignment(if is_name {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            })
        });
        cells.collect()
    };

    table.set_header(aligned(&cells.header));
    for row in &cells.rows {
        table.add_row(aligned(row));
    }
    format!("{table}\n")
}

/// The points, the stages if they were timed, how and where it was measured, and the remarks.
pub fn text(report: &Report) -> String {
    let mut text = table(&tables::points(report));
    if let Some(stages) = tables::stages(report) {
        text += &format!("\n{}", table(&stages));
    }

    text += &format!("\n{}: {}\n{}\n", mode(report.mode), method(report), environment(report));
    for remark in &report.remarks {
        text += &format!("{remark}\n");
    }
    text
}

/// Every metric that both reports have, then warnings about what limits the comparison, then
/// regressions.
pub fn comparison(comparison: &Comparison) -> String {
    let mut text = format!(
        "against the baseline (prime-agents {}, {}), with a tolerance of {} %:\n{}",
        comparison.baseline_version,
        comparison.baseline_started,
        plain(comparison.tolerance_percent),
        table(&tables::comparison(comparison))
    );

    for warning in &comparison.warnings {
        text += &format!("warning: {warning}\n");
    }
    for regression in &comparison.regressions {
        text += &format!("regression: {regression}\n");
    }

    if comparison.regressions.is_empty() {
        text += "no regression\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::comparison::compare;
    use super::super::testing::{open_loop, report};
    use super::*;

    #[test]
    fn a_report_is_tables_followed_by_sentences() {
        let mut report = report();
        report.points.truncate(2);
        report.points[1].stages.truncate(2);
        report.points[0].stages.clear();
        let expected = "\
| trajectories | steps/s | p50 µs | p90 µs | p99 µs | p99.9 µs | max µs | CPU µs/step | allocations/step | bytes/step | bytes/trajectory |
|--------------|---------|--------|--------|--------|----------|--------|-------------|------------------|------------|------------------|
|            1 | 412,000 |   2.00 |   4.00 |   8.00 |     32.0 |    256 |        1.50 |             4.00 |        312 |            2,048 |
|           10 | 655,000 |   14.0 |   28.0 |   56.0 |      224 |  1,792 |        1.50 |             4.00 |        312 |            2,048 |

| stage   | of           | trajectories | mean µs | p50 µs | p90 µs | p99 µs | p99.9 µs | max µs |
|---------|--------------|--------------|---------|--------|--------|--------|----------|--------|
| propose | agents       |           10 |    5.25 |   3.50 |   7.00 |   14.0 |     28.0 |    224 |
| judge   | coordination |           10 |    2.62 |   1.75 |   3.50 |   7.00 |     14.0 |    112 |

ring: closed loop, 10 s per point after 1 s of warm-up; 2 cells, \
placement shared, executor null, verifier rules, \
coordinator threshold; latency is from one decision of a trajectory to its next
prime-agents 0.1.0 on Example 9000, 2 cores, 8.00 GiB, \
Linux 6.1.0, load average 0.250 before the test; 2026-11-21T10:00:00Z
The clock was read twice per step.
";
        assert_eq!(text(&report), expected);
    }

    #[test]
    fn missing_metrics_have_no_column() {
        let table = text(&open_loop()).lines().take(3).collect::<Vec<_>>().join("\n");
        let expected = "\
| trajectories | steps/s | due/s | reached/s | behind | p50 µs | p90 µs | p99 µs | p99.9 µs | max µs | allocations/step | bytes/step | failures |
|--------------|---------|-------|-----------|--------|--------|--------|--------|----------|--------|------------------|------------|----------|
|            1 | 412,000 | 1,500 |     1,250 |  2,495 |   2.00 |   4.00 |   8.00 |     32.0 |    256 |             4.00 |        312 |       17 |";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_comparison_names_regressions() {
        let mut now = report();
        now.points.truncate(1);
        let mut baseline = now.clone();
        baseline.machine.cores = 4;
        let point = &mut baseline.points[0];
        (point.steps_per_second, point.latency.p99_us) = (824_000.0, 16.0);
        (point.cpu_us_per_step, point.allocations_per_step) = (None, Some(3.5));

        let expected = "\
against the baseline (prime-agents 0.1.0, 2026-11-21T10:00:00Z), with a tolerance of 10 %:
| metric           | trajectories | baseline |     now | change % |        |
|------------------|--------------|----------|---------|----------|--------|
| steps/s          |            1 |  824,000 | 412,000 |    -50.0 |  worse |
| p50 µs           |            1 |     2.00 |    2.00 |      0.0 |        |
| p99 µs           |            1 |     16.0 |    8.00 |    -50.0 | better |
| allocations/step |            1 |     3.50 |    4.00 |    +14.3 |  worse |
| bytes/trajectory |            1 |    2,048 |   2,048 |      0.0 |        |
warning: number of cores differs: 4 in the baseline, 2 now
warning: with 1 trajectory, only one report has CPU µs/step
regression: with 1 trajectory, steps/s is 412,000, was 824,000 (-50.0 %, tolerance 10 %)
regression: with 1 trajectory, allocations/step is 4.00, was 3.50 (+14.3 %, \
tolerance 10 %), which does not depend on the machine
";
        assert_eq!(comparison(&compare(&now, &baseline, 10.0).unwrap()), expected);

        let same = comparison(&compare(&now, &now, 10.0).unwrap());
        assert!(same.ends_with("\nno regression\n") && !same.contains("warning"), "{same}");
    }
}
