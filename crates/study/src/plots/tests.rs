//! What every drawing must be, whatever its values: well-formed, named, with finite coordinates.

use super::*;
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

    // Nothing but the palette's colours, which the page replaces on a dark screen.
    let colours: Vec<String> = all().into_iter().map(|(_, colour)| hex(colour.light)).collect();
    for (at, _) in svg.match_indices("=\"#") {
        let colour = &svg[at + 2..at + 9];
        assert!(colours.iter().any(|known| known == colour), "{colour}");
    }
}

const TITLE: &str = "a <title>";

fn measured(value: f64) -> Measured {
    Measured { value, interval: Some((value - 5.0, value + 5.0)), is_hollow: value > 50.0 }
}

#[test]
fn drawings_are_well_formed_with_and_without_values() {
    let series =
        vec!["<a>".to_owned(), "b".to_owned(), "c".to_owned(), "d".to_owned(), "e".to_owned()];

    let rows = |count: usize| {
        let row = |index: usize| IntervalRow {
            name: format!("<{index}>"),
            values: vec![
                Some(measured(index as f64)),
                None,
                Some(measured(90.0)),
                Some(measured(-7.0)),
                Some(measured(3.0)),
            ],
        };
        (0..count).map(row).collect::<Vec<_>>()
    };

    for has_bars in [true, false] {
        for count in [0, 1, 86] {
            let (title, axis) = (TITLE.to_owned(), "%".to_owned());
            let chart = IntervalChart {
                title,
                axis,
                series: series.clone(),
                rows: rows(count),
                has_bars,
                range: (0.0, 100.0),
            };
            check(&chart.svg());
        }
    }

    for values in [vec![], vec![vec![], vec![4.0]], vec![vec![1.0, 2.0, 50.0, 3.0], vec![100.0; 3]]]
    {
        let groups = vec![BoxGroup { name: "<g>".to_owned(), values }];
        let chart = BoxChart {
            title: TITLE.to_owned(),
            axis: "%".to_owned(),
            series: series[..2].to_vec(),
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
        };
        check(&histogram.svg());
    }

    let radar = Radar {
        title: TITLE.to_owned(),
        axes: (0..12).map(|axis| format!("<{axis}>")).collect(),
        series: vec![(
            "s".to_owned(),
            (0..12).map(|axis| (axis != 3).then_some(f64::from(axis) * 10.0)).collect(),
        )],
    };
    check(&radar.svg());

    let point = |x: f64| Point {
        x,
        y: 2.0 * x,
        series: 7,
        label: "<l>".to_owned(),
        interval: Some((0.0, x)),
    };

    let scatter = Scatter {
        title: TITLE.to_owned(),
        x_axis: "x".to_owned(),
        y_axis: "y".to_owned(),
        series: vec!["s".to_owned(); 8],
        points: vec![point(1.0), point(40.0)],
        x_range: (0.0, 50.0),
        y_range: (0.0, 50.0),
        has_diagonal: true,
        line: vec![(1.0, 2.0), (30.0, 40.0)],
    };
    check(&scatter.svg());
}

#[test]
fn heat_maps_and_lines_are_well_formed_whatever_their_values() {
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
        check(&map.svg());
    }

    let point = |x: f64| LinePoint { x, y: x * x - 3.0, interval: Some((-9.0, x)) };
    for points in [vec![], vec![point(1.0)], vec![point(0.0), point(4.0), point(1e9)]] {
        for is_dense in [true, false] {
            let chart = LineChart {
                title: TITLE.to_owned(),
                x_axis: "<x>".to_owned(),
                y_axis: "y".to_owned(),
                series: vec![("<s>".to_owned(), points.clone()), ("empty".to_owned(), Vec::new())],
                y_range: (0.0, 0.0),
                is_dense,
            };
            check(&chart.svg());
        }
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
    };
    assert_eq!(histogram.bins(), [(-5.0, 1), (0.0, 2), (5.0, 1), (10.0, 0), (15.0, 1)]);
}
