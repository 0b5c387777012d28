//! A report as one self-contained HTML page.

use minijinja::context;
use minijinja::value::Value;

use super::charts::{Chart, charts};
use super::comparison::Comparison;
use super::description::{environment, method, mode, unit};
use super::histogram::HistogramError;
use super::number_format::plain;
use super::report::Report;
use super::tables::{self, Cells};

const TEMPLATE: &str = include_str!("page.html");

fn cells(cells: &Cells) -> Value {
    context! { header => cells.header, rows => cells.rows, names => cells.names }
}

fn compared(comparison: &Comparison) -> Value {
    context! {
        table => cells(&tables::comparison(comparison)),
        classes => comparison.rows.iter().map(|row| row.change.name()).collect::<Vec<_>>(),
        warnings => comparison.warnings,
        regressions => comparison.regressions,
        tolerance => plain(comparison.tolerance_percent),
        version => comparison.baseline_version,
        started => comparison.baseline_started,
    }
}

fn chart(chart: &Chart) -> Value {
    context! {
        title => chart.title,
        note => chart.note,
        // The drawing's texts are escaped already.
        svg => Value::from_safe_string(chart.svg.clone()),
    }
}

/// Renders the page. With a baseline, its lines are dashed, and the comparison is a table.
///
/// # Errors
/// If a histogram of the reports cannot be decoded.
pub fn page(
    report: &Report,
    against: Option<(&Report, &Comparison)>,
) -> Result<String, HistogramError> {
    let charts = charts(report, against.map(|(baseline, _)| baseline))?;
    let values = context! {
        mode => mode(report.mode),
        unit => unit(report.mode),
        method => method(report),
        environment => environment(report),
        remarks => report.remarks,
        points => cells(&tables::points(report)),
        stages => tables::stages(report).as_ref().map(cells),
        comparison => against.map(|(_, comparison)| compared(comparison)),
        charts => charts.iter().map(chart).collect::<Vec<_>>(),
    };
    Ok(prime_page::render(TEMPLATE, values))
}

#[cfg(test)]
mod tests {
    use super::super::comparison::compare;
    use super::super::report::Rate;
    use super::super::testing::{open_loop, report};
    use super::*;
    use prime_page::palette::{self, hex};

    /// Checks that a drawing is well-formed XML.
    fn check_xml(text: &str) {
        assert!(
            roxmltree::Document::parse(text).is_ok(),
            "{:?}: {text}",
            roxmltree::Document::parse(text).err()
        );
    }

    fn drawings(page: &str) -> Vec<&str> {
        page.match_indices("<svg")
            .map(|(at, _)| &page[at..at + page[at..].find("</svg>").unwrap() + 6])
            .collect()
    }

    #[test]
    fn every_table_cell_is_there() {
        let page = page(&report(), None).unwrap();
        for row in
            tables::points(&report()).rows.iter().chain(&tables::stages(&report()).unwrap().rows)
        {
            for cell in row {
                assert!(page.contains(&format!(">{cell}</td>")), "{cell}");
            }
        }

        // Some of them, verbatim.
        for text in [
            ">412,000<",
            ">731,500<",
            ">15,000<",
            ">1.50<",
            ">2,048<",
            "The clock was read twice per step.",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn drawings_are_self_contained_xml() {
        let (now, mut was) = (report(), report());
        was.points.remove(1);
        let comparison = compare(&now, &was, 10.0).unwrap();
        let pages = [page(&now, None).unwrap(), page(&now, Some((&was, &comparison))).unwrap()];
        for page in &pages {
            // Three line charts, and the stages with the fewest and the most trajectories.
            assert_eq!(drawings(page).len(), 5);
            drawings(page).into_iter().for_each(check_xml);
            for foreign in ["<script", "<link", "<img", "@import", "url(", "src="] {
                assert!(!page.contains(foreign), "{foreign}");
            }
            assert_eq!(page.matches("http").count(), 5, "the namespace of each drawing");
        }

        assert!(!pages[0].contains("baseline") && pages[1].contains("p99.9, baseline"));

        let count = |page: &str, element: &str, style: &str| {
            let elements = drawings(page)
                .into_iter()
                .flat_map(str::lines)
                .filter(|line| line.starts_with(element));
            elements.filter(|line| line.contains(style)).count()
        };

        // The curves of five points have no markers.
        let curves =
            pages.each_ref().map(|page| count(page, "<polyline", "stroke-width=\"1.5\"/>"));
        assert_eq!(curves, [5, 5]);
        // Steps and four percentiles, and four points that the baseline has, each in its chart and
        // in the legend.
        let dashes = pages.each_ref().map(|page| count(page, "<polyline", "stroke-dasharray"));
        assert_eq!(dashes, [0, 18]);

        // The baseline lacks no stage of the two points.
        let outlines = pages.each_ref().map(|page| count(page, "<rect", "fill=\"none\""));
        assert_eq!(outlines, [0, 8]);

        for colour in palette::all().into_iter().flat_map(|(_, it)| [hex(it.light), hex(it.dark)]) {
            assert!(pages[0].contains(&format!(": {colour};")), "{colour}");
        }
    }

    #[test]
    fn hostile_texts_are_escaped() {
        let hostile = "<script>alert(\"&\")</script>";
        let mut report = report();
        report.machine.processor = hostile.to_owned();
        report.version = hostile.to_owned();
        report.remarks = vec![hostile.to_owned()];
        report.points[0].stages[0].name = hostile.to_owned();

        let comparison = compare(&report, &super::super::testing::report(), 10.0).unwrap();
        let page = page(&report, Some((&report, &comparison))).unwrap();
        assert!(!page.contains("<script") && page.matches("&lt;script&gt;").count() >= 5);
        drawings(&page).into_iter().for_each(check_xml);
    }

    #[test]
    fn empty_points_and_reports_have_a_page() {
        let mut report = open_loop();
        let point = &mut report.points[0];
        point.histogram = super::super::histogram::encode(&super::super::histogram::empty());
        (point.steps, point.steps_per_second, point.latency) =
            (0, 0.0, super::super::report::Latency::default());
        point.rate = Some(Rate { due: 1.0, reached: 0.0, behind: 1, is_held: false });

        let text = page(&report, None).unwrap();
        assert_eq!(drawings(&text).len(), 3);
        drawings(&text).into_iter().for_each(check_xml);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");

        report.points.clear();
        drawings(&page(&report, None).unwrap()).into_iter().for_each(check_xml);
    }
}
