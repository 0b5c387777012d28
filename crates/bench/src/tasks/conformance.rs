//! The contract of a task: examples, references, mutated lines, inputs. The benchmark's tasks are
//! tested with it, and [`check`] tests any other task that implements [`Task`].

use std::collections::BTreeSet;

#[cfg(test)]
use super::suite::{every, suite};
#[allow(clippy::wildcard_imports, reason = "the tests use more of the parent than the check")]
use super::*;

macro_rules! contract {
    ($($rule:ident),+ $(,)?) => {
        #[cfg(test)]
        suite! { $($rule),+ }

        /// Checks a task against the whole contract, for tests: its constraints, the instances of
        /// base seed 42 with their references, grammar and snapshots, wrong lines and inputs, its
        /// page. [`crate::judge::soundness`] looks for errors that a task's own constraints let
        /// through.
        ///
        /// # Panics
        /// With the first rule that the task breaks, and where.
        pub fn check(task: &'static dyn AnyTask) {
            $($rule(task);)+
        }
    };
}

contract! {
    the_first_constraint_is_format_and_one_is_transition,
    a_seed_gives_the_same_instance_and_another_seed_another,
    inputs_read_back_to_the_same_problem,
    the_reference_is_legal_breaks_nothing_and_ends,
    the_grammar_parses_every_reference_action_back_to_itself,
    a_refused_line_leaves_the_state_and_a_changed_step_is_found,
    snapshots_restore_the_same_state,
    states_drawn_from_the_path_lead_to_the_reference_answer,
    inputs_of_the_wrong_shape_are_refused_with_the_field,
    the_worked_example_comes_out_as_published,
    page_and_code_name_the_same_fields_and_forms,
    a_corrupted_trace_is_found_at_the_step,
}

const PER_LEVEL: u32 = 6;
/// Steps of a trace that are judged; of longer traces only this prefix.
const STEPS_MAX: usize = 400;
/// Traces that are longer than this, such as those of large towers of Hanoi, are not followed to
/// their end.
const STEPS_FOLLOWED_MAX: usize = 200_000;

fn instances(task: &'static dyn AnyTask) -> impl Iterator<Item = InstanceId> {
    Difficulty::ALL.into_iter().flat_map(move |difficulty| {
        (0..PER_LEVEL).map(move |index| {
            InstanceId::new(task, difficulty, index, BASE_SEED).expect("in range")
        })
    })
}

#[cfg(test)]
#[test]
fn ids_and_slugs_are_distinct() {
    let ids: BTreeSet<_> = all().map(|task| task.spec().id).collect();
    assert_eq!(ids.len(), all().count(), "tasks have ids of their own; a variant has its task's");
    assert!(variants().all(|variant| ids.contains(&variant.spec().id)));
    let mut slugs = BTreeSet::new();
    for task in every() {
        assert!(slugs.insert(task.spec().slug), "{} is listed once", task.spec().slug);
    }
}

fn the_first_constraint_is_format_and_one_is_transition(task: &'static dyn AnyTask) {
    let constraints = task.spec().constraints;
    assert!(constraints.len() <= 32);
    assert_eq!(constraints[0].kind, Kind::Format);
    assert_eq!(constraints.iter().filter(|c| c.kind == Kind::Transition).count(), 1);

    let names: BTreeSet<_> = constraints.iter().map(|c| c.name).collect();
    assert_eq!(names.len(), constraints.len(), "names are distinct");
}

fn a_seed_gives_the_same_instance_and_another_seed_another(task: &'static dyn AnyTask) {
    for id in instances(task) {
        assert_eq!(id.problem().input(), id.problem().input(), "{id}");
    }

    let inputs: BTreeSet<_> =
        (0..50).map(|seed| task.generate(Difficulty::Medium, seed).input().to_string()).collect();
    assert!(inputs.len() > 10, "{}: {} distinct inputs of 50", task.spec().slug, inputs.len());
}

fn inputs_read_back_to_the_same_problem(task: &'static dyn AnyTask) {
    for id in instances(task) {
        let problem = id.problem();
        let read = task.read_input(&problem.input()).expect("a generated input is valid");
        assert_eq!(read.input(), problem.input(), "{id}");
    }
}

fn the_reference_is_legal_breaks_nothing_and_ends(task: &'static dyn AnyTask) {
    let mut ended = 0;
    'instances: for id in instances(task) {
        let problem = id.problem();
        let mut machine = problem.start();
        for step in 0.. {
            let Some(line) = machine.reference() else { break };
            machine
                .propose(&line)
                .unwrap_or_else(|refusal| panic!("{id} step {step}: {line}: {refusal}"));

            // The prefix of a long trace exercises every check.
            if step < STEPS_MAX || machine.candidate_ends() {
                let found: Vec<_> =
                    machine.violations(Kinds::ALL).iter(machine.spec()).map(|c| c.name).collect();
                assert!(found.is_empty(), "{id} step {step}: {line} breaks {found:?}");
            }
            machine.commit();

            if step > STEPS_FOLLOWED_MAX {
                continue 'instances;
            }
        }

        assert!(machine.ended(), "{id} ends");
        assert!(
            problem.reference().steps <= problem.steps_max(),
            "{id}: T_max bounds the reference trace"
        );

        let answer = machine.answer().expect("a final state has an answer");
        assert!(problem.accepts(&answer), "{id}: its own answer is right");
        assert!(!problem.accepts(&serde_json::Value::Null), "{id}: null is wrong");
        ended += 1;
    }
    assert!(ended >= PER_LEVEL, "{}: {ended} traces end", task.spec().slug);
}

fn the_grammar_parses_every_reference_action_back_to_itself(task: &'static dyn AnyTask) {
    for id in instances(task) {
        let mut machine = id.problem().start();
        for _ in 0..STEPS_MAX {
            let Some(line) = machine.reference() else { break };
            assert!(pattern::parse(task.spec().actions, &line).is_some(), "{id}: {line}");
            machine.replay(&line).expect("legal");
            let last = machine.state()["last"].clone();
            assert_eq!(last, line, "{id}: the state names its last action");
        }
    }
}

/// Near misses of an action line: each must be refused as unparsable or illegal, or judged; never a
/// panic.
fn mutations(line: &str) -> Vec<String> {
    let mut mutants = vec![
        String::new(),
        format!("{line} "),
        format!(" {line}"),
        line.to_uppercase(),
        format!("{line}9"),
    ];

    // Numbers that overflow, and characters that no line has.
    mutants.push(format!("{line}\n"));
    mutants.push(line.replace(' ', "  "));
    mutants.push(format!("{line} 18446744073709551616"));
    mutants.push("\u{1F600} \0".to_owned());

    for (at, c) in line.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        for digit in ['0', '1', '5', '9'].into_iter().filter(|digit| *digit != c) {
            let mut mutant = line.to_owned();
            mutant.replace_range(at..=at, &digit.to_string());
            mutants.push(mutant);
        }
        mutants.push(format!("{}-{}", &line[..at], &line[at..]));
        mutants.push(format!("{}99999999999999999999{}", &line[..at], &line[at..]));
    }

    let words: Vec<_> = line.split(' ').collect();
    for (place, _) in
        words.iter().enumerate().filter(|(_, word)| word.bytes().all(|byte| byte.is_ascii_digit()))
    {
        let mut mutant = words.clone();
        // The largest number a line can hold.
        mutant[place] = "9007199254740991";
        mutants.push(mutant.join(" "));
    }
    mutants
}

fn json(machine: &dyn Machine) -> String {
    let mut text = Vec::new();
    machine.write_state(&mut text);
    String::from_utf8(text).expect("JSON is UTF-8")
}

fn a_refused_line_leaves_the_state_and_a_changed_step_is_found(task: &'static dyn AnyTask) {
    for id in instances(task) {
        let mut machine = id.problem().start();
        for _ in 0..40 {
            let Some(line) = machine.reference() else { break };

            let before = json(machine.as_ref());
            for mutant in mutations(&line).into_iter().filter(|mutant| *mutant != line) {
                match machine.propose(&mutant) {
                    Err(_) => assert_eq!(
                        machine.violations(Kinds::ALL),
                        Violations::FORMAT,
                        "{id}: {mutant:?}"
                    ),
                    Ok(()) => {
                        let found = machine.violations(Kinds::ALL);
                        assert!(!found.is_empty(), "{id}: {mutant:?} for {line:?} goes unnoticed");
                        let mut fork = machine.fork();
                        fork.replay(&mutant).expect("legal");
                        if let Some(next) = fork.reference() {
                            assert!(
                                fork.propose(&next).is_ok(),
                                "{id}: after {mutant:?} comes {next:?}"
                            );
                        }
                    }
                }

                assert_eq!(
                    json(machine.as_ref()),
                    before,
                    "{id}: {mutant:?} leaves the state until it is committed"
                );

                let mut replayed = machine.fork();
                if replayed.replay(&mutant).is_err() {
                    assert_eq!(
                        json(replayed.as_ref()),
                        before,
                        "{id}: {mutant:?} is refused and changes nothing"
                    );
                }
            }

            machine.replay(&line).expect("legal");
        }
    }
}

fn snapshots_restore_the_same_state(task: &'static dyn AnyTask) {
    for id in instances(task) {
        let mut machine = id.problem().start();
        machine.follow_reference();
        let (snapshot, state) = (machine.snapshot(), machine.state());

        machine.follow_reference();
        machine.follow_reference();

        machine.restore(&snapshot);
        assert_eq!(machine.state(), state, "{id}");
    }
}

fn states_drawn_from_the_path_lead_to_the_reference_answer(task: &'static dyn AnyTask) {
    let mut rng = TaskRng::new(task.spec().id.into());
    for id in instances(task).filter(|id| id.difficulty == Difficulty::Easy) {
        let problem = id.problem();
        for draw in [PathDraw::Uniform, PathDraw::ByAction] {
            let Some(mut machine) = problem.on_path(draw, &mut rng) else { continue };
            while machine.follow_reference() {}
            assert_eq!(machine.answer(), Some(problem.reference().answer), "{id} {draw:?}");
        }
    }
}

#[cfg(test)]
#[test]
fn some_tasks_draw_states_from_the_path() {
    assert!(every().any(|task| {
        task.generate(Difficulty::Easy, 1)
            .on_path(PathDraw::Uniform, &mut TaskRng::new(1))
            .is_some()
    }));
}

fn inputs_of_the_wrong_shape_are_refused_with_the_field(task: &'static dyn AnyTask) {
    let input = task.generate(Difficulty::Easy, 1).input();

    for (key, _) in input.as_object().expect("inputs are objects") {
        for wrong in [
            serde_json::json!(-1),
            serde_json::json!({"x": 1}),
            serde_json::json!(1e300),
            serde_json::Value::Null,
        ] {
            let mut changed = input.clone();
            changed[key] = wrong;
            let error = task
                .read_input(&changed)
                .err()
                .unwrap_or_else(|| panic!("{}: {changed}", task.spec().slug));
            assert!(error.to_string().contains(key), "{error}");
        }

        let mut missing = input.clone();
        missing.as_object_mut().expect("an object").shift_remove(key);
        assert!(
            task.read_input(&missing).err().is_some_and(|error| error.to_string().contains(key))
        );
    }

    let mut extra = input.clone();
    extra["surplus"] = 1.into();
    assert!(
        task.read_input(&extra).err().is_some_and(|error| error.to_string().contains("surplus"))
    );

    for wrong in [serde_json::json!([]), serde_json::json!("x"), serde_json::json!({})] {
        assert!(task.read_input(&wrong).is_err());
    }
}

/// The worked example of the page: input, answer, steps, first and last actions.
fn the_worked_example_comes_out_as_published(task: &'static dyn AnyTask) {
    let spec = task.spec();
    let (slug, example) = (spec.slug, &spec.page.example);
    let input: serde_json::Value = serde_json::from_str(example.input).expect("JSON");
    let problem = task.read_input(&input).unwrap_or_else(|error| panic!("{error}"));

    assert_eq!(
        serde_json::to_string(&problem.input()).expect("JSON"),
        example.input,
        "{slug}: order of fields"
    );

    let mut machine = problem.start();
    let mut lines = Vec::new();
    while let Some(line) = machine.reference() {
        machine.propose(&line).unwrap_or_else(|refusal| panic!("{slug}: {line}: {refusal}"));
        let found: Vec<_> = machine.violations(Kinds::ALL).iter(spec).map(|c| c.name).collect();
        assert!(found.is_empty(), "{slug}: {line} breaks {found:?}");
        machine.commit();
        lines.push(line);
    }

    let answer = machine.answer().unwrap_or_else(|| panic!("{slug}: the example ends"));
    assert_eq!(serde_json::to_string(&answer).expect("JSON"), example.answer, "{slug}");
    assert_eq!(lines.len() as u64, example.steps, "{slug}: {lines:?}");
    assert_eq!(lines[..example.first.len()], *example.first, "{slug}");
    assert_eq!(lines[lines.len() - example.last.len()..], *example.last, "{slug}");
}

fn page_and_code_name_the_same_fields_and_forms(task: &'static dyn AnyTask) {
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    let named = |fields: &[(&str, &str)]| -> Vec<String> {
        fields.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    let (spec, page) = (task.spec(), task.spec().page);

    let problem = task.generate(Difficulty::Easy, 1);
    assert_eq!(keys(&problem.input()), named(page.input), "{}", spec.slug);
    assert_eq!(keys(&problem.reference().answer), named(page.answer), "{}", spec.slug);
    assert_eq!(keys(&problem.start().state()), named(page.state), "{}", spec.slug);

    for action in page.actions {
        assert!(
            pattern::parse(spec.actions, action.example).is_some(),
            "{}: {}",
            spec.slug,
            action.example
        );
    }
}

/// Traces with one wrong step: two neighbours exchanged, one omitted, one repeated, or one number
/// changed. Each is found at the first line that differs.
fn a_corrupted_trace_is_found_at_the_step(task: &'static dyn AnyTask) {
    for id in instances(task) {
        let mut machine = id.problem().start();
        let mut lines = Vec::new();
        // The state before each line. A corrupted trace is judged from its first difference on: up
        // to there it is the reference, in which no step is found.
        let mut before = Vec::new();

        while lines.len() < 60 {
            let Some(line) = machine.reference() else { break };
            before.push(machine.fork());
            machine.propose(&line).unwrap_or_else(|refusal| panic!("{id}: {line}: {refusal}"));
            assert!(machine.violations(Kinds::ALL).is_empty(), "{id}: {line}");
            machine.commit();
            lines.push(line);
        }

        for at in 0..lines.len() {
            let mut corrupted = vec![lines.clone(), lines.clone(), lines.clone(), lines.clone()];
            corrupted[0].swap(at, (at + 1) % lines.len());
            corrupted[1].remove(at);
            corrupted[2].insert(at, lines[at].clone());
            corrupted[3][at] = lines[at].replace(|c: char| c.is_ascii_digit(), "7");
            for trace in corrupted {
                // Truncating or extending a trace changes nothing within the lines that are judged.
                let Some(differs) =
                    trace.iter().zip(&lines).position(|(ours, right)| ours != right)
                else {
                    continue;
                };

                let machine = &mut before[differs];
                let refused = machine.propose(&trace[differs]).is_err();
                assert!(
                    refused || !machine.violations(Kinds::ALL).is_empty(),
                    "{id}: corrupted at {at}: {trace:?}"
                );
            }
        }
    }
}
