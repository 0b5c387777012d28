//! Labels of steps and traces.

use super::*;
use crate::tasks::{self, find};

#[test]
fn every_task_has_right_wrong_and_unreadable_steps() {
    let mut without = Vec::new();
    for task in tasks::all() {
        let steps = labelled_steps(task, Difficulty::Easy, 3, 7);
        let slug = task.spec().slug;

        let of =
            |wanted: fn(&LabelledStep) -> bool| steps.iter().filter(|step| wanted(step)).count();
        assert_eq!(of(|step| step.origin == Origin::Reference), 3, "{slug}");
        assert_eq!(of(|step| step.error.is_none()), 3, "{slug}");
        assert_eq!(of(|step| !step.applies), 3, "{slug}");

        if of(|step| step.applies && step.error.is_some()) == 0 {
            without.push(slug);
        }
        for step in &steps {
            let wrong = step.origin != Origin::Reference;
            assert_eq!(step.error.is_some(), wrong, "{slug}: {}", step.line);
            assert!(step.error.as_ref().is_none_or(|error| !error.violations.is_empty()));
        }
    }
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn the_same_seed_gives_the_same_material() {
    let lines = |seed| -> Vec<String> {
        let task = find("n-queens").expect("a task");
        let steps = labelled_steps(task, Difficulty::Easy, 5, seed).into_iter();
        let traces = labelled_traces(task, Difficulty::Easy, 5, seed).traces.into_iter();
        steps.map(|step| step.line).chain(traces.flat_map(|trace| trace.lines)).collect()
    };
    assert_eq!(lines(7), lines(7));
    assert_ne!(lines(7), lines(8));
}

#[test]
fn traces_say_where_they_are_wrong_first_and_how_they_end() {
    let task = find("n-queens").expect("a task");
    let all = labelled_traces(task, Difficulty::Easy, 4, 7);
    assert_eq!(all.too_long, 0);

    let of = |origin| all.traces.iter().filter(move |trace| trace.origin == origin);
    assert_eq!(of(Origin::Reference).count(), 4);
    assert_eq!(of(Origin::Random).count(), 4);
    assert!(of(Origin::Adversarial).count() >= 4);

    assert!(of(Origin::Reference).all(LabelledTrace::is_right));
    for trace in of(Origin::Adversarial) {
        let (at, error) = trace.first_error.as_ref().expect("it leaves the path");
        assert!(*at < trace.lines.len());
        assert!(!error.violations.is_empty());
        assert!(matches!(trace.end, TraceEnd::Right | TraceEnd::Wrong));
    }
}

#[test]
fn instances_whose_traces_are_too_long_are_counted_and_left_out() {
    let task = find("counting-sort").expect("a task");
    let all = labelled_traces(task, Difficulty::Hard, 3, 7);
    assert_eq!((all.too_long, all.traces.len()), (3, 0));
}
