//! A report as one HTML page that needs nothing else.

use minijinja::value::Value;
use minijinja::{Environment, UndefinedBehavior, context};

use super::comparison::{Comparison, Verdict};
use super::figures::plain;
use super::histogram::HistogramError;
use super::plots::{Plot, plots};
use super::report::Report;
use super::sentences::{how, mode, place, unit};
use super::tables::{self, Cells};

/// Its name ends in `html`, by which texts are escaped.
const TEMPLATE: (&str, &str) = ("page.html", include_str!("page.html"));

fn cells(cells: &Cells) -> Value {
    context! { header => cells.header, rows => cells.rows, names => cells.names }
}

fn compared(comparison: &Comparison) -> Value {
    let classes = comparison.rows.iter().map(|row| match row.verdict {
        Verdict::Worse => "worse",
        Verdict::Same => "",
        Verdict::Better => "better",
    });
    context! {
        table => cells(&tables::comparison(comparison)),
        classes => classes.collect::<Vec<_>>(),
        warnings => comparison.warnings,
        regressions => comparison.regressions,
        tolerance => plain(comparison.tolerance_percent),
        version => comparison.baseline_version,
        started => comparison.baseline_started,
    }
}

fn plot(plot: &Plot) -> Value {
    // Its texts are escaped already.
    context! { title => plot.title, note => plot.note, svg => Value::from_safe_string(plot.svg.clone()) }
}

/// The page. With a baseline, its lines are dashed, and the comparison is a table.
///
/// # Errors
/// When a histogram of one of the reports cannot be read.
pub fn page(report: &Report, against: Option<(&Report, &Comparison)>) -> Result<String, HistogramError> {
    let plots = plots(report, against.map(|(baseline, _)| baseline))?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let (name, text) = TEMPLATE;
    environment.add_template(name, text).expect("invariant: the template is well formed");
    let template = environment.get_template(name).expect("invariant: it was added");
    let page = template.render(context! {
        mode => mode(report.mode),
        unit => unit(report.mode),
        how => how(report),
        place => place(report),
        remarks => report.remarks,
        points => cells(&tables::points(report)),
        legs => tables::legs(report).as_ref().map(cells),
        comparison => against.map(|(_, comparison)| compared(comparison)),
        plots => plots.iter().map(plot).collect::<Vec<_>>(),
    });
    Ok(page.expect("invariant: the template names only what it is given"))
}

#[cfg(test)]
mod tests {
    use super::super::comparison::compare;
    use super::super::report::Rate;
    use super::super::testing::{open_loop, report};
    use super::*;

    /// The names of elements that were opened and not closed are empty at the end of well-formed XML, and so is what is
    /// left of a tag when its attributes are taken away.
    fn check_xml(text: &str) {
        let attribute = regex::Regex::new(r#"\s+[a-zA-Z][\w:-]*="[^"<]*""#).unwrap();
        let reference = regex::Regex::new("^&(amp|lt|gt|quot|#39|#x2f);").unwrap();
        let mut open = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['<', '>', '&']) {
            rest = &rest[at..];
            if rest.starts_with('&') {
                assert!(reference.is_match(rest), "{rest:.40}");
                rest = &rest[1..];
                continue;
            }
            let end = rest.find('>').unwrap_or_else(|| panic!("a tag without an end: {rest:.40}"));
            assert!(rest.starts_with('<'), "{rest:.40}");
            let tag = attribute.replace_all(&rest[1..end], "");
            rest = &rest[end + 1..];
            let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name), "before {rest:.40}");
            } else if let Some(name) = tag.strip_suffix('/') {
                assert!(is_name(name), "{tag}");
            } else {
                assert!(is_name(&tag), "{tag}");
                open.push(tag.into_owned());
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    fn drawings(page: &str) -> Vec<&str> {
        page.match_indices("<svg").map(|(at, _)| &page[at..at + page[at..].find("</svg>").unwrap() + 6]).collect()
    }

    #[test]
    fn every_number_of_the_tables_is_there() {
        let page = page(&report(), None).unwrap();
        for row in tables::points(&report()).rows.iter().chain(&tables::legs(&report()).unwrap().rows) {
            for cell in row {
                assert!(page.contains(&format!(">{cell}</td>")), "{cell}");
            }
        }
        // Some of them, by hand.
        for text in [">412,000<", ">731,500<", ">15,000<", ">1.50<", ">2,048<", "The clock was read twice a step."] {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn drawings_are_xml_and_need_nothing_else() {
        let (now, mut was) = (report(), report());
        was.points.remove(1);
        let comparison = compare(&now, &was, 10.0).unwrap();
        let pages = [page(&now, None).unwrap(), page(&now, Some((&was, &comparison))).unwrap()];
        for page in &pages {
            // Three plots, and the legs with the fewest and the most trajectories.
            assert_eq!(drawings(page).len(), 5);
            drawings(page).into_iter().for_each(check_xml);
            for foreign in ["<script", "<link", "<img", "@import", "url(", "src="] {
                assert!(!page.contains(foreign), "{foreign}");
            }
            assert_eq!(page.matches("http").count(), 5, "the name of SVG in each drawing");
        }
        assert!(!pages[0].contains("baseline") && pages[1].contains("p99.9, baseline"));
        let lines = |page: &str| page.matches("<polyline").count();
        // Lines of one report: steps, four percentiles, five curves; the baseline has four of the five curves.
        assert_eq!((lines(&pages[0]), lines(&pages[1])), (10, 19));
        assert_eq!(pages[1].matches("class=\"outline dashed\"").count(), 8);
    }

    #[test]
    fn hostile_texts_are_escaped() {
        let hostile = "<script>alert(\"&\")</script>";
        let mut report = report();
        report.machine.processor = hostile.to_owned();
        report.version = hostile.to_owned();
        report.remarks = vec![hostile.to_owned()];
        report.points[0].legs[0].name = hostile.to_owned();
        let comparison = compare(&report, &super::super::testing::report(), 10.0).unwrap();
        let page = page(&report, Some((&report, &comparison))).unwrap();
        assert!(!page.contains("<script") && page.matches("&lt;script&gt;").count() >= 5);
        drawings(&page).into_iter().for_each(check_xml);
    }

    #[test]
    fn one_point_without_anything_is_a_page_too() {
        let mut report = open_loop();
        let point = &mut report.points[0];
        point.histogram = super::super::histogram::encode(&super::super::histogram::empty());
        (point.steps, point.steps_per_second, point.latency) = (0, 0.0, crate::loadtest::report::Latency::default());
        point.rate = Some(Rate { due: 1.0, reached: 0.0, behind: 1, is_held: false });
        let text = page(&report, None).unwrap();
        assert_eq!(drawings(&text).len(), 3);
        drawings(&text).into_iter().for_each(check_xml);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        report.points.clear();
        drawings(&page(&report, None).unwrap()).into_iter().for_each(check_xml);
    }
}
