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

/// The points, the stages if they were timed, the method and environment of the measurement, and
/// the remarks.
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
        insta::assert_snapshot!("report", text(&report));
    }

    #[test]
    fn missing_metrics_have_no_column() {
        let table = text(&open_loop()).lines().take(3).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!("open_loop", table);
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

        insta::assert_snapshot!("comparison", comparison(&compare(&now, &baseline, 10.0).unwrap()));

        let same = comparison(&compare(&now, &now, 10.0).unwrap());
        assert!(same.ends_with("\nno regression\n") && !same.contains("warning"), "{same}");
    }
}
