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

/// Numbers from 0 to 1 that depend on a seed only.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// True if a line goes through a box, by walking along it.
fn goes_through([(x0, y0), (x1, y1)]: [Point; 2], room: &[f64; 4]) -> bool {
    (0..=400).any(|step| {
        let share = f64::from(step) / 400.0;
        let (x, y) = (x0 + share * (x1 - x0), y0 + share * (y1 - y0));
        x > room[0] && x < room[2] && y > room[1] && y < room[3]
    })
}

#[test]
fn names_cover_no_marker_no_other_name_and_no_edge() {
    let bounds = Area { left: 40.0, top: 20.0, right: 558.0, bottom: 360.0 };
    let (mut names, mut placed_names) = ([0; 2], [0; 2]);
    for seed in 1..=400_u32 {
        let mut random = random(seed.into());
        let count = 2 + seed % 13;
        // Every third set is crowded into a corner, where systems of one speed are.
        let kind = usize::from(seed % 3 == 0);
        let spread = [1.0, 0.2][kind];
        let points: Vec<Named> = (0..count)
            .map(|index| {
                let at = (40.0 + 498.0 * spread * random(), 20.0 + 340.0 * spread * random());
                let reach = reach(RADIUS + 9.0 * random() * random());
                let length = 14.0 * random();
                let letters = (1..=14).take_while(|&letter| f64::from(letter) <= length);
                let letters: String = letters.map(|_| 'a').collect();
                Named { at, reach, name: format!("system {index} of {letters}") }
            })
            .collect();

        let places = place(&points, Distance::Apart, &[], bounds);
        // A letter of half the font's size, 10 pixels above its line and 2 below.
        let rooms: Vec<Option<[f64; 4]>> = places
            .iter()
            .zip(&points)
            .map(|(placed, point)| {
                let (x, y) = placed.as_ref()?.at;
                let wide = 0.5 * FONT_SIZE * point.name.chars().count() as f64;
                let left = match placed.as_ref()?.anchor {
                    Anchor::Start => x,
                    Anchor::Middle => x - wide / 2.0,
                    Anchor::End => x - wide,
                };
                Some([left, y - 6.0, left + wide, y + 6.0])
            })
            .collect();
        let marks: Vec<[f64; 4]> = points
            .iter()
            .map(|Named { at: (x, y), reach, .. }| [x - reach, y - reach, x + reach, y + reach])
            .collect();

        names[kind] += count;
        for (index, room) in rooms.iter().enumerate() {
            let Some(room) = room else { continue };
            placed_names[kind] += 1;
            assert!(room[0] >= 40.0 && room[2] <= 558.0 && room[1] >= 20.0 && room[3] <= 360.0);
            assert!(!marks.iter().any(|mark| overlap(room, mark)), "{seed}: {index}");
            let others = || rooms.iter().enumerate().filter(|(other, _)| *other != index);
            assert!(others().all(|(_, it)| it.is_none_or(|it| !overlap(room, &it))), "{seed}");

            // A line leads from the marker that it belongs to, and strikes nothing out.
            let Some(leader) = places[index].and_then(|placed| placed.leader) else { continue };
            let Named { at: (x, y), reach, .. } = points[index];
            let away = (leader[0].0 - x).hypot(leader[0].1 - y);
            assert!((away - reach - 1.0).abs() < 1e-6, "{seed}: {away}");
            assert!(rooms.iter().flatten().all(|room| !goes_through(leader, room)), "{seed}");
            for (other, mark) in marks.iter().enumerate() {
                let is_apart = !overlap(&marks[index], mark);
                assert!(other == index || !(is_apart && goes_through(leader, mark)), "{seed}");
            }
        }
    }
    let share = |kind: usize| 100 * placed_names[kind] / names[kind];
    assert!(share(0) >= 97 && share(1) >= 60, "{placed_names:?} of {names:?}");
}

#[test]
fn a_name_without_room_beside_its_point_stands_at_the_end_of_a_line() {
    let point = |x: f64| Named { at: (x, 100.0), reach: reach(RADIUS), name: "system".to_owned() };
    let points: Vec<Named> = (0..9).map(|index| point(200.0 + 14.0 * f64::from(index))).collect();
    let bounds = Area { left: 0.0, top: 0.0, right: 560.0, bottom: 200.0 };

    let beside = place(&points, Distance::Beside, &[], bounds);
    assert!(beside.iter().flatten().all(|placed| placed.leader.is_none()));
    assert!((2..9).contains(&beside.iter().flatten().count()), "{beside:?}");

    let apart = place(&points, Distance::Apart, &[], bounds);
    let (more, fewer) = (apart.iter().flatten().count(), beside.iter().flatten().count());
    assert!(more > fewer, "{apart:?}");
    assert!(apart.iter().flatten().any(|placed| placed.leader.is_some()));
}

#[test]
fn long_names_are_wrapped_and_cut() {
    assert_eq!(wrap("single pass → PRIME", 90.0, 2), ["single pass", "→ PRIME"]);
    let cut = wrap("particle-filter-with-many-particles", 60.0, 2);
    assert!(cut.len() == 2 && cut[1].ends_with('…'), "{cut:?}");
    assert_eq!(wrap("", 60.0, 2), [""]);
}
