//! A report as text: tables that can be pasted into Markdown, and sentences.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::comparison::Comparison;
use super::figures::plain;
use super::report::Report;
use super::sentences::{how, mode, place};
use super::tables::{self, Cells};

fn table(cells: &Cells) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let aligned = |row: &[String]| -> Vec<Cell> {
        let cells = row.iter().enumerate().map(|(column, text)| {
            let is_name = column < cells.names;
            Cell::new(text).set_alignment(if is_name { CellAlignment::Left } else { CellAlignment::Right })
        });
        cells.collect()
    };
    table.set_header(aligned(&cells.header));
    for row in &cells.rows {
        table.add_row(aligned(row));
    }
    format!("{table}\n")
}

/// The report: a row a count of trajectories, the legs where they were measured, what was measured how and where, and
/// the remarks, each on its line.
pub fn text(report: &Report) -> String {
    let mut text = table(&tables::points(report));
    if let Some(legs) = tables::legs(report) {
        text += &format!("\n{}", table(&legs));
    }
    text += &format!("\n{}: {}\n{}\n", mode(report.mode), how(report), place(report));
    for remark in &report.remarks {
        text += &format!("{remark}\n");
    }
    text
}

/// What a baseline says to it: every figure that both have, what makes the two hard to compare, and what became worse.
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
    fn a_report_is_tables_and_sentences() {
        let mut report = report();
        report.points.truncate(2);
        report.points[1].legs.truncate(2);
        report.points[0].legs.clear();
        let expected = "\
| trajectories | steps/s | p50 µs | p90 µs | p99 µs | p99.9 µs | max µs | CPU µs/step | allocations/step | bytes/step | bytes/trajectory |
|--------------|---------|--------|--------|--------|----------|--------|-------------|------------------|------------|------------------|
|            1 | 412,000 |   2.00 |   4.00 |   8.00 |     32.0 |    256 |        1.50 |             4.00 |        312 |            2,048 |
|           10 | 655,000 |   14.0 |   28.0 |   56.0 |      224 |  1,792 |        1.50 |             4.00 |        312 |            2,048 |

| leg     | of           | trajectories | mean µs | p50 µs | p90 µs | p99 µs | p99.9 µs | max µs |
|---------|--------------|--------------|---------|--------|--------|--------|----------|--------|
| propose | agents       |           10 |    5.25 |   3.50 |   7.00 |   14.0 |     28.0 |    224 |
| judge   | coordination |           10 |    2.62 |   1.75 |   3.50 |   7.00 |     14.0 |    112 |

ring: closed loop, 10 s a point after 1 s of warm-up; 2 cells, placement shared, executor null, verifier rules, coordinator threshold; latency is from one decision of a trajectory to its next
prime-agents 0.1.0 on Example 9000, 2 cores, 8.00 GiB, Linux 6.1.0, load average 0.250 before it began; 2026-11-21T10:00:00Z
The clock was read twice a step.
";
        assert_eq!(text(&report), expected);
    }

    #[test]
    fn what_was_not_measured_has_no_column() {
        let table = text(&open_loop()).lines().take(3).collect::<Vec<_>>().join("\n");
        let expected = "\
| trajectories | steps/s | due/s | reached/s | behind | p50 µs | p90 µs | p99 µs | p99.9 µs | max µs | allocations/step | bytes/step | failures |
|--------------|---------|-------|-----------|--------|--------|--------|--------|----------|--------|------------------|------------|----------|
|            1 | 412,000 | 1,500 |     1,250 |  2,495 |   2.00 |   4.00 |   8.00 |     32.0 |    256 |             4.00 |        312 |       17 |";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_comparison_names_what_became_worse() {
        let mut now = report();
        now.points.truncate(1);
        let mut baseline = now.clone();
        baseline.machine.cores = 4;
        let point = &mut baseline.points[0];
        (point.steps_per_second, point.latency.p99_us) = (824_000.0, 16.0);
        (point.cpu_us_per_step, point.allocations_per_step) = (None, Some(3.5));
        let expected = "\
against the baseline (prime-agents 0.1.0, 2026-11-21T10:00:00Z), with a tolerance of 10 %:
| figure           | trajectories | baseline |     now | change % |        |
|------------------|--------------|----------|---------|----------|--------|
| steps/s          |            1 |  824,000 | 412,000 |    -50.0 |  worse |
| p50 µs           |            1 |     2.00 |    2.00 |      0.0 |        |
| p99 µs           |            1 |     16.0 |    8.00 |    -50.0 | better |
| allocations/step |            1 |     3.50 |    4.00 |    +14.3 |  worse |
| bytes/trajectory |            1 |    2,048 |   2,048 |      0.0 |        |
warning: the baseline has another number of cores: 4, and now 2
warning: with 1 trajectory, CPU µs/step was measured only once
regression: with 1 trajectory, steps/s is 412,000, was 824,000 (-50.0 %, tolerance 10 %)
regression: with 1 trajectory, allocations/step is 4.00, was 3.50 (+14.3 %, tolerance 10 %), which is exact: it is no noise of the machine
";
        assert_eq!(comparison(&compare(&now, &baseline, 10.0).unwrap()), expected);
        let same = comparison(&compare(&now, &now, 10.0).unwrap());
        assert!(same.ends_with("\nno regression\n") && !same.contains("warning"), "{same}");
    }
}
