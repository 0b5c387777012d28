//! What every drawing must be, whatever its values: well-formed, named, with finite coordinates,
//! in the palette's colours.

use super::*;
use prime_page::chart::{Axis, Scale};
use prime_page::palette::{all, hex};

fn check(svg: &str) {
    assert!(
        roxmltree::Document::parse(svg).is_ok(),
        "{:?}: {svg}",
        roxmltree::Document::parse(svg).err()
    );

    assert!(
        svg.contains("role=\"img\"") && svg.contains("<title>a &lt;title&gt;</title>"),
        "{svg:.300}"
    );

    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    for foreign in ["var(", "foreignObject", "<style", "href"] {
        assert!(!svg.contains(foreign), "{foreign}");
    }

    // Nothing but the palette's colours, which the page replaces on a dark screen.
    let colours: Vec<String> = all().into_iter().map(|(_, colour)| hex(colour.light)).collect();
    for (at, _) in svg.match_indices("=\"#") {
        let colour = &svg[at + 2..at + 9];
        assert!(colours.iter().any(|known| known == colour), "{colour}");
    }
}

const TITLE: &str = "a <title>";

#[test]
fn drawings_are_well_formed_with_and_without_values() {
    let series = [("<a>".to_owned(), 0), ("b".to_owned(), 13)];
    for values in [
        vec![],
        vec![vec![], vec![("one", 4.0)]],
        vec![vec![("one", 1.0), ("<two>", 2.0), ("three", 50.0)], vec![("one", 100.0); 3]],
    ] {
        let groups = vec![BoxGroup { name: "<g>".to_owned(), values }];
        let chart = BoxChart {
            title: TITLE.to_owned(),
            axis: "%".to_owned(),
            series: series.to_vec(),
            groups,
            range: (0.0, 100.0),
        };
        check(&chart.svg());
    }

    for values in [vec![], vec![0.0], vec![-12.0, 3.0, 99.9, 1e9]] {
        let histogram = Histogram {
            title: TITLE.to_owned(),
            x_axis: "<x>".to_owned(),
            y_axis: "y".to_owned(),
            values,
            bin_width: 5.0,
            slot: 1,
        };
        check(&histogram.svg());
    }

    let value = |axis: u32| (axis != 3).then_some(f64::from(axis) * 10.0);
    let radar = Radar {
        title: TITLE.to_owned(),
        axes: (0..12).map(|axis| format!("<{axis}>")).collect(),
        series: vec![(("s".to_owned(), 4), (0..12).map(value).collect())],
    };
    check(&radar.svg());

    let point = |x: f64| Point {
        x,
        y: 2.0 * x,
        slot: 7,
        label: "<l>".to_owned(),
        description: "<said>".to_owned(),
        count: 70,
        interval: Some((0.0, x)),
        link: None,
    };
    for scale in [Scale::Linear, Scale::Log] {
        let scatter = Scatter {
            title: TITLE.to_owned(),
            axes: (
                Axis { scale, ..Axis::linear("x", (1.0, 50.0)) },
                Axis::linear("y", (0.0, 50.0)),
            ),
            series: vec![("s".to_owned(), 1); 8],
            points: vec![point(1.0), point(40.0)],
            has_diagonal: true,
            line: vec![(1.0, 2.0), (30.0, 40.0)],
        };
        check(&scatter.svg());
    }
}

#[test]
fn heat_maps_are_well_formed_whatever_their_values() {
    for (rows, columns) in [(0, 0), (1, 1), (30, 12)] {
        let values = |row: usize| {
            (0..columns).map(move |column| (column != row).then_some(-5.0 + 11.0 * column as f64))
        };
        let map = HeatMap {
            title: TITLE.to_owned(),
            axis: "<size>".to_owned(),
            columns: (0..columns).map(|column| format!("<a long name> {column}")).collect(),
            rows: (0..rows).map(|row| (format!("<{row}>"), values(row).collect())).collect(),
        };
        let svg = map.svg();
        check(&svg);
        // Long names stand on end, and none is cut.
        assert!(columns < 2 || svg.contains(">&lt;a long name&gt; 11</text>"), "{svg}");
    }
}

#[test]
fn values_on_an_edge_belong_to_the_bin_above() {
    let histogram = Histogram {
        title: String::new(),
        x_axis: String::new(),
        y_axis: String::new(),
        // 14.999999999999998 is 15 up to rounding.
        values: vec![-0.1, 0.0, 4.9, 5.0, 14.999_999_999_999_998],
        bin_width: 5.0,
        slot: 0,
    };
    assert_eq!(histogram.bins(), [(-5.0, 1), (0.0, 2), (5.0, 1), (10.0, 0), (15.0, 1)]);
}

#[test]
fn names_of_points_that_are_near_do_not_overlap() {
    let point = |index: u32| Point {
        x: 100.0 + f64::from(index),
        y: 50.0,
        slot: 0,
        label: format!("system {index}"),
        description: format!("system {index}: 50 %"),
        count: 1,
        interval: Some((40.0, 60.0)),
        link: None,
    };
    let scatter = Scatter {
        title: TITLE.to_owned(),
        axes: (Axis::linear("x", (0.0, 200.0)), Axis::linear("y", (0.0, 100.0))),
        series: Vec::new(),
        points: (0..12).map(point).collect(),
        has_diagonal: false,
        line: Vec::new(),
    };
    let svg = scatter.svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let names = document.descendants().filter(|node| {
        node.has_tag_name("text") && node.text().is_some_and(|text| text.starts_with("system"))
    });
    // Half the font's size a letter is what a usual sans serif takes.
    let boxes: Vec<[f64; 4]> = names
        .map(|node| {
            let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
            let wide = 6.5 * node.text().unwrap().chars().count() as f64;
            let left = match node.attribute("text-anchor") {
                Some("middle") => number("x") - wide / 2.0,
                Some("end") => number("x") - wide,
                _ => number("x"),
            };
            [left, number("y") - 10.0, left + wide, number("y") + 2.0]
        })
        .collect();

    assert!(boxes.len() >= 2, "{svg}");
    for (index, a) in boxes.iter().enumerate() {
        for b in &boxes[index + 1..] {
            assert!(a[0] >= b[2] || b[0] >= a[2] || a[1] >= b[3] || b[1] >= a[3], "{a:?} {b:?}");
        }
    }
    // What has no room beside its point is said on hover.
    assert_eq!(svg.matches("<title>system ").count(), 12);
}
