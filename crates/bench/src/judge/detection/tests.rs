use super::table::{COMMAND, TEXT};
use super::*;
use crate::interval::Proportion;
use crate::tasks::{self, Kind};

fn bound(found: u64, tried: u64) -> f64 {
    Detection { tried, found }.miss_rate_bound()
}

#[test]
fn the_bound_is_clopper_and_pearsons() {
    // Quantiles of the beta distribution, from tables: 0, 1 and 5 misses in 10.
    for (found, expected) in [(10, 0.2589), (9, 0.3942), (5, 0.7776)] {
        assert!((bound(found, 10) - expected).abs() < 5e-5, "{found}: {}", bound(found, 10));
    }

    // Without misses it is 1 - 0.05^(1/n).
    assert!((bound(1_200, 1_200) - 0.002_493_3).abs() < 1e-6);
    assert!((bound(0, 10) - 1.0).abs() < 1e-9 && (bound(0, 0) - 1.0).abs() < 1e-9);

    // Where the probability of no miss at all is below the smallest float.
    assert!((0.507..0.51).contains(&bound(5_000, 10_000)), "about 0.5 + 1.645 · 0.005");
}

#[test]
fn a_measurement_in_words_says_how_much_was_tried() {
    assert_eq!(Detection { tried: 120, found: 119 }.text(), "found 119 of 120 wrong steps");
}

#[test]
fn the_table_has_every_task_with_its_present_constraints() {
    let table = DetectionTable::current();
    let measured: Vec<_> =
        table.rows.iter().map(|row| (&*row.task, row.constraints.clone())).collect();
    let present: Vec<_> =
        tasks::all().map(|task| (task.spec().slug, digest(task.spec().constraints))).collect();

    assert!(
        measured == present,
        "tasks or constraints have changed; measure the table anew: {COMMAND}"
    );

    assert_eq!((table.traces, table.base_seed), (TRACES, tasks::BASE_SEED));
    assert_eq!(table.to_json(), TEXT, "the file is not as `{COMMAND}` writes it");
}

#[test]
fn more_kinds_find_no_less_and_the_algorithm_finds_all() {
    for row in &DetectionTable::current().rows {
        assert!(row.tried >= 400, "{}: {}", row.task, row.tried);
        assert_eq!(
            row.detection(Kinds::ALL),
            Some(Detection { tried: row.tried, found: row.tried }),
            "{}",
            row.task
        );
        for kinds in Kinds::sets() {
            let found = |kinds| row.detection(kinds).expect("every set is measured").found;
            for kind in Kind::ALL {
                let more = kinds.union(Kinds::from_iter([kind]));
                assert!(found(kinds) <= found(more), "{}: {kinds:?} and {kind}", row.task);
            }
        }
    }
}

#[test]
fn nothing_is_known_of_other_problems_and_of_no_kinds() {
    assert_eq!(detection("problem", Kinds::ALL), None);
    assert_eq!(detection("bubble-sort", Kinds::NONE), None);
    assert!(detection("bubble-sort", Kinds::WITHOUT_TRANSITION).is_some());
}

/// Other instances must give the same rates, within both confidence intervals: after a
/// change in how a constraint decides the table must be measured anew, even if the name stays.
#[test]
fn a_few_tasks_measured_again_agree_with_the_table() {
    for slug in
        ["bubble-sort", "dijkstra", "heap-operations", "petri-net", "n-queens", "meeting-scheduler"]
    {
        let task = tasks::find(slug).expect("listed");
        let again = measure(task, 60, tasks::BASE_SEED + 1);

        for kinds in Kinds::sets() {
            let interval = |of: Option<Detection>| {
                let of = of.expect("every set is measured");
                Proportion::new(of.found, of.tried)
            };
            let (now, table) = (interval(again.detection(kinds)), interval(detection(slug, kinds)));

            assert!(
                now.low <= table.high && table.low <= now.high,
                "{slug}, {kinds:?}: {now:?} now, {table:?} in the table; measure it anew: {COMMAND}"
            );
        }
    }
}
