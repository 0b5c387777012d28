use super::*;
use crate::number::plain;
use crate::palette::{all, hex};

/// Boxes of a drawing's texts that are not turned, by widths that the drawing did not compute.
fn boxes(svg: &str) -> Vec<(String, [f64; 4])> {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let upright = texts.filter(|node| node.attribute("transform").is_none());
    upright
        .map(|node| {
            let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
            let text = node.text().unwrap_or_default().to_owned();
            // Half the font's size a letter is what a usual sans serif takes.
            let wide = 0.5 * FONT_SIZE * text.chars().count() as f64;
            let left = match node.attribute("text-anchor") {
                Some("middle") => number("x") - wide / 2.0,
                Some("end") => number("x") - wide,
                _ => number("x"),
            };
            (text, [left, number("y") - 10.0, left + wide, number("y") + 2.0])
        })
        .collect()
}

/// What every drawing must be: well formed, named, within its edges, of the palette's colours, and
/// without texts that overlap.
fn check(svg: &str) {
    let boxes = boxes(svg);
    let document = roxmltree::Document::parse(svg).unwrap();
    let root = document.root_element();
    let size = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();

    for (text, [left, top, right, bottom]) in &boxes {
        let is_inside =
            *left >= 0.0 && *top >= 0.0 && *right <= size("width") && *bottom <= size("height");
        assert!(is_inside, "{text} at {left} {top} {right} {bottom}: {svg}");
    }
    for (index, (text, a)) in boxes.iter().enumerate() {
        for (other, b) in &boxes[index + 1..] {
            let overlaps = a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
            assert!(!overlaps, "{text} over {other}: {svg}");
        }
    }

    assert!(svg.contains("role=\"img\"") && svg.contains("<title>a &lt;title&gt;</title>"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    for foreign in ["var(", "class=\"mark\" style", "foreignObject", "<style", "href"] {
        assert!(!svg.contains(foreign), "{foreign}");
    }
    let colours: Vec<String> = all().into_iter().map(|(_, colour)| hex(colour.light)).collect();
    for (at, _) in svg.match_indices("=\"#") {
        assert!(colours.iter().any(|known| *known == svg[at + 2..at + 9]), "{svg}");
    }
}

fn line(slot: usize, points: &[(f64, f64)]) -> Line {
    let point = |(x, y): &(f64, f64)| LinePoint { x: *x, y: *y, interval: Some((y - 3.0, *y)) };
    Line {
        name: format!("<a system with a long name> {slot}"),
        slot,
        is_dashed: slot == 3,
        has_markers: true,
        points: points.iter().map(point).collect(),
    }
}

fn chart(scale: Scale, series: Vec<Line>) -> LineChart {
    let x = Axis { scale, ..Axis::linear("parameters of <the> model", (0.0, 0.0)) };
    let y = Axis::linear("accuracy of a very long name that says much, %", (0.0, 100.0));
    LineChart { title: "a <title>".to_owned(), x, y, series, value: Some(plain) }
}

#[test]
fn lines_are_well_formed_whatever_their_values() {
    let extremes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 0.0, -1.0, 5.0];
    let all: Vec<(f64, f64)> = extremes.iter().flat_map(|x| extremes.map(|y| (*x, y))).collect();

    for scale in [Scale::Linear, Scale::Log] {
        for points in [&all[..], &[], &[(1.0, 2.0)], &[(1.0, 50.0), (7.0, 60.0), (1e9, 99.0)]] {
            let series = (0..7).map(|slot| line(slot, points)).collect();
            check(&chart(scale, series).svg());
        }
    }
}

#[test]
fn a_log_axis_says_powers_of_ten_and_points_say_their_values() {
    let points = [(1.0, 10.0), (100.0, 40.0), (10_000.0, 90.0)];
    let svg = chart(Scale::Log, vec![line(0, &points)]).svg();
    for tick in ["1", "10", "100", "1,000", "10,000"] {
        assert!(svg.contains(&format!("text-anchor=\"middle\">{tick}</text>")), "{tick}: {svg}");
    }
    let said = "; parameters of &lt;the&gt; model: 10,000; accuracy of a very long name that says \
                much, %: 90 (87 to 90)</title>";
    assert!(svg.contains(said), "{svg}");
}

#[test]
fn rows_are_well_formed_whatever_their_values() {
    let value = |value: f64| {
        let interval = Some((value - 5.0, value + 5.0));
        Some(Measured { value, interval, is_hollow: value > 50.0, ..Measured::default() })
    };
    let row = |index: u32| Row {
        name: format!("<{index}> a name that needs more than one line in a narrow drawing"),
        values: vec![value(f64::from(index)), None, value(-7.0), value(1234.5)],
        slot: None,
    };
    for (has_bars, count) in [(true, 0), (true, 1), (false, 1), (false, 86)] {
        for width in [380.0, WIDTH] {
            let chart = RowChart {
                title: "a <title>".to_owned(),
                heading: "heading".to_owned(),
                axis: "accuracy, %".to_owned(),
                series: (0..4).map(|index| (format!("<system> {index}"), index)).collect(),
                rows: (0..count).map(row).collect(),
                has_bars,
                range: (0.0, 100.0),
                value: None,
                width,
            };
            check(&chart.svg());
        }
    }
}

#[test]
fn names_find_places_that_do_not_overlap() {
    // Nine points in a corner, and one alone.
    let near = (0..9).map(|index| (f64::from(index) * 4.0 + 100.0, 100.0));
    let points: Vec<_> = near
        .chain([(300.0, 50.0)])
        .enumerate()
        .map(|(index, at)| (at, format!("system {index}")))
        .collect();
    let bounds = Area { left: 0.0, top: 0.0, right: 560.0, bottom: 200.0 };
    let placed = place(&points, RADIUS, &[], bounds);

    let areas: Vec<Area> = placed
        .iter()
        .zip(&points)
        .filter_map(|(placed, (_, text))| {
            placed.map(|placed| Area::of_text(placed.at, text, placed.anchor))
        })
        .collect();
    assert!((2..10).contains(&areas.len()), "{placed:?}");
    assert!(placed[9].is_some());
    for (index, a) in areas.iter().enumerate() {
        for b in &areas[index + 1..] {
            let apart =
                a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
            assert!(apart, "{a:?} {b:?}");
        }
    }
}

#[test]
fn long_names_are_wrapped_and_cut() {
    assert_eq!(wrap("single pass → PRIME", 90.0, 2), ["single pass", "→ PRIME"]);
    let cut = wrap("particle-filter-with-many-particles", 60.0, 2);
    assert!(cut.len() == 2 && cut[1].ends_with('…'), "{cut:?}");
    assert_eq!(wrap("", 60.0, 2), [""]);
}
