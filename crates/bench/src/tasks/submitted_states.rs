//! Submitted states: a state read back from its JSON behaves exactly like the original.

use super::off_trace_states::{changed, random_line};
use super::suite::suite;
use super::*;

suite! {
    states_of_reference_traces_read_back_unchanged,
    states_off_the_trace_read_back_unchanged,
    invalid_states_are_refused_with_the_field,
}

/// Compares a machine with one read from its state: they must agree on everything, including the
/// next line.
fn compare(machine: &mut dyn Machine, line: &str, same_history: bool, place: &str) {
    let state = machine.state();
    let mut read = machine
        .problem()
        .machine_at(&state)
        .unwrap_or_else(|error| panic!("{place}: {error}: {state}"));
    let text = |value: serde_json::Value| serde_json::to_string(&value).expect("JSON");

    assert_eq!(text(read.state()), text(state), "{place}");
    assert_eq!(read.reference(), machine.reference(), "{place}");
    assert_eq!((read.ended(), read.answer()), (machine.ended(), machine.answer()), "{place}");
    assert_eq!(read.view(), machine.view(), "{place}");
    assert_eq!(read.choices(), machine.choices(), "{place}");
    assert_eq!(read.propose(line), machine.propose(line), "{place}: {line:?}");

    if same_history {
        let names = |machine: &dyn Machine| -> Vec<_> {
            machine
                .broken(machine.violations(Kinds::ALL))
                .into_iter()
                .map(|broken| broken.name)
                .collect()
        };
        assert_eq!(names(read.as_ref()), names(machine), "{place}: {line:?}");
    }

    read.commit();
    let mut fork = machine.fork();
    drop(fork.propose(line));
    fork.commit();
    assert_eq!(text(read.state()), text(fork.state()), "{place}: {line:?}");
}

fn states_of_reference_traces_read_back_unchanged(task: &'static dyn AnyTask) {
    let mut rng = TaskRng::new(3);
    for difficulty in [Difficulty::Easy, Difficulty::Medium] {
        let problem = task.generate(difficulty, 11);
        let mut machine = problem.start();
        // Every early step, then ever longer strides.
        for step in 0_u32.. {
            let place = format!("{} {difficulty} step {step}", task.spec().slug);
            let right = machine.reference().unwrap_or_default();
            let wrong = changed(&right, 9, &mut rng);
            compare(machine.as_mut(), &wrong, true, &place);
            compare(machine.as_mut(), &right, true, &place);
            let stride = if step < 8 { 1 } else { 1 + 2 * step };
            if (0..stride).filter(|_| machine.follow_reference()).count() == 0 {
                break;
            }
        }
        compare(machine.as_mut(), "", true, task.spec().slug);
    }
}

fn states_off_the_trace_read_back_unchanged(task: &'static dyn AnyTask) {
    let spec = task.spec();
    for walk in 0..4 {
        let mut rng = TaskRng::new(100 + walk);
        let mut machine = task.generate(Difficulty::Easy, walk).start();
        let (small, loyalty) = (rng.one_of(&[3, 9, 40]), rng.below(6));
        for step in 0..60 {
            let line = match machine.reference() {
                Some(right) if rng.below(6) < loyalty => right,
                Some(right) if rng.chance(1, 2) => changed(&right, small, &mut rng),
                _ => random_line(spec.actions, small, &mut rng),
            };

            // After wrong lines the tree does not determine which node is attached next.
            let same_history = spec.slug != "tree-sort";
            let place = format!("{} walk {walk} step {step}", spec.slug);
            compare(machine.as_mut(), &line, same_history, &place);
            machine.commit();
        }
    }
}

fn invalid_states_are_refused_with_the_field(task: &'static dyn AnyTask) {
    let problem = task.generate(Difficulty::Easy, 2);
    let mut machine = problem.start();
    machine.follow_reference();
    let state = machine.state();

    let refusal = |state: &serde_json::Value| {
        problem
            .machine_at(state)
            .err()
            .unwrap_or_else(|| panic!("{}: {state}", task.spec().slug))
            .to_string()
    };
    for (field, _) in state.as_object().expect("states are objects") {
        let mut missing = state.clone();
        missing.as_object_mut().expect("an object").shift_remove(field);

        // A missing optional field is found by comparing with the canonical form.
        assert!(
            refusal(&missing).contains(field.as_str()),
            "{}: {}",
            task.spec().slug,
            refusal(&missing)
        );

        let mut wrong = state.clone();
        wrong[field] = serde_json::json!({ "x": [1.5] });
        assert!(
            refusal(&wrong).contains(field.as_str()),
            "{}: {}",
            task.spec().slug,
            refusal(&wrong)
        );
    }

    let mut extra = state.clone();
    extra["surplus"] = 1.into();
    assert!(refusal(&extra).contains("surplus"), "{}", refusal(&extra));
    for other in [serde_json::json!([]), serde_json::json!({}), serde_json::Value::Null] {
        assert!(refusal(&other).contains("state"), "{}", refusal(&other));
    }
}
