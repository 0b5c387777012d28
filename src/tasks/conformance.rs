//! One suite that every task passes. It runs over the list, so that a new task is tested by being listed.

use std::collections::BTreeSet;

use super::*;

const PER_LEVEL: u32 = 6;
/// Steps of a trace that are looked at closely; longer traces are sampled by their beginning.
const STEPS_MAX: usize = 400;

fn instances() -> impl Iterator<Item = InstanceId> {
    all().flat_map(|task| {
        Difficulty::ALL.into_iter().flat_map(move |difficulty| {
            (0..PER_LEVEL).map(move |index| InstanceId::new(task, difficulty, index, BASE_SEED).expect("in range"))
        })
    })
}

#[test]
fn ids_slugs_and_constraints_are_well_formed() {
    let mut ids = BTreeSet::new();
    let mut slugs = BTreeSet::new();
    for task in all() {
        let spec = task.spec();
        assert!(ids.insert(spec.id) && slugs.insert(spec.slug), "{} is listed once", spec.slug);
        assert!(spec.constraints.len() <= 32);
        assert_eq!(spec.constraints[0].kind, Kind::Format, "{}: the first constraint is format", spec.slug);
        let transitions = spec.constraints.iter().filter(|c| c.kind == Kind::Transition).count();
        assert_eq!(transitions, 1, "{}", spec.slug);
        let names: BTreeSet<_> = spec.constraints.iter().map(|c| c.name).collect();
        assert_eq!(names.len(), spec.constraints.len(), "{}: names are distinct", spec.slug);
    }
}

#[test]
fn a_seed_gives_the_same_instance_and_another_seed_another() {
    for id in instances() {
        assert_eq!(id.problem().input(), id.problem().input(), "{id}");
    }
    for task in all() {
        let inputs: BTreeSet<_> =
            (0..50).map(|seed| task.generate(Difficulty::Medium, seed).input().to_string()).collect();
        assert!(inputs.len() > 10, "{}: {} distinct inputs of 50", task.spec().slug, inputs.len());
    }
}

#[test]
fn inputs_read_back_to_the_same_problem() {
    for id in instances() {
        let problem = id.problem();
        let read = id.task.read_input(&problem.input()).expect("a generated input is valid");
        assert_eq!(read.input(), problem.input(), "{id}");
    }
}

#[test]
fn the_reference_is_legal_breaks_nothing_and_ends() {
    for id in instances() {
        let problem = id.problem();
        let mut machine = problem.start();
        for step in 0.. {
            let Some(line) = machine.reference() else { break };
            machine.propose(&line).unwrap_or_else(|refusal| panic!("{id} step {step}: {line}: {refusal}"));
            // Judging every step of the longest traces would only repeat what their beginning shows.
            if step < STEPS_MAX || machine.candidate_ends() {
                let found: Vec<_> = machine.violations(Kinds::ALL).iter(machine.spec()).map(|c| c.name).collect();
                assert!(found.is_empty(), "{id} step {step}: {line} breaks {found:?}");
            }
            machine.commit();
            if step > 200_000 {
                return;
            }
        }
        assert!(machine.ended(), "{id} ends");
        assert!(problem.reference().steps <= problem.steps_max(), "{id}: T_max bounds the reference trace");
        let answer = machine.answer().expect("a final state has an answer");
        assert!(problem.accepts(&answer), "{id}: its own answer is right");
        assert!(!problem.accepts(&serde_json::Value::Null), "{id}: null is wrong");
    }
}

#[test]
fn the_grammar_parses_every_reference_action_back_to_itself() {
    for id in instances() {
        let mut machine = id.problem().start();
        for _ in 0..STEPS_MAX {
            let Some(line) = machine.reference() else { break };
            assert!(pattern::parse(id.task.spec().actions, &line).is_some(), "{id}: {line}");
            machine.replay(&line).expect("legal");
            let last = machine.state()["last"].clone();
            assert_eq!(last, line, "{id}: the state names its last action");
        }
    }
}

/// Lines near an action that are no actions: each must be refused as unparsable or illegal, or judged; never a panic.
fn mutations(line: &str) -> Vec<String> {
    let mut mutants =
        vec![String::new(), format!("{line} "), format!(" {line}"), line.to_uppercase(), format!("{line}9")];
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
    mutants
}

#[test]
fn a_refused_line_leaves_the_state_and_a_changed_step_is_found() {
    for id in instances() {
        let mut machine = id.problem().start();
        for _ in 0..40 {
            let Some(line) = machine.reference() else { break };
            let before = machine.state();
            for mutant in mutations(&line).into_iter().filter(|mutant| *mutant != line) {
                match machine.propose(&mutant) {
                    Err(_) => assert_eq!(machine.violations(Kinds::ALL), Violations::FORMAT, "{id}: {mutant:?}"),
                    Ok(()) => {
                        let found = machine.violations(Kinds::ALL);
                        assert!(!found.is_empty(), "{id}: {mutant:?} for {line:?} goes unnoticed");
                    }
                }
                assert_eq!(machine.state(), before, "{id}: {mutant:?} leaves the state until it is committed");
                let mut replayed = machine.fork();
                if replayed.replay(&mutant).is_err() {
                    assert_eq!(replayed.state(), before, "{id}: {mutant:?} is refused and changes nothing");
                }
            }
            machine.replay(&line).expect("legal");
        }
    }
}

#[test]
fn snapshots_go_back_to_the_same_state() {
    for id in instances() {
        let mut machine = id.problem().start();
        machine.follow_reference();
        let (snapshot, state) = (machine.snapshot(), machine.state());
        machine.follow_reference();
        machine.follow_reference();
        machine.restore(&snapshot);
        assert_eq!(machine.state(), state, "{id}");
    }
}

#[test]
fn states_drawn_from_the_path_lead_to_the_reference_answer() {
    let mut draw = Draw::new(1);
    for id in instances().filter(|id| id.difficulty == Difficulty::Easy) {
        let problem = id.problem();
        let Some(mut machine) = problem.on_path(&mut draw) else { continue };
        while machine.follow_reference() {}
        assert!(machine.ended(), "{id}");
    }
}

#[test]
fn inputs_of_the_wrong_shape_are_refused_with_the_field() {
    for task in all() {
        let input = task.generate(Difficulty::Easy, 1).input();
        for (key, _) in input.as_object().expect("inputs are objects") {
            for wrong in
                [serde_json::json!(-1), serde_json::json!({"x": 1}), serde_json::json!(1e300), serde_json::Value::Null]
            {
                let mut changed = input.clone();
                changed[key] = wrong;
                let error =
                    task.read_input(&changed).err().unwrap_or_else(|| panic!("{}: {changed}", task.spec().slug));
                assert!(error.to_string().contains(key), "{error}");
            }
            let mut missing = input.clone();
            missing.as_object_mut().expect("an object").shift_remove(key);
            assert!(task.read_input(&missing).err().is_some_and(|error| error.to_string().contains(key)));
        }
        let mut extra = input.clone();
        extra["surplus"] = 1.into();
        assert!(task.read_input(&extra).err().is_some_and(|error| error.to_string().contains("surplus")));
        for wrong in [serde_json::json!([]), serde_json::json!("x"), serde_json::json!({})] {
            assert!(task.read_input(&wrong).is_err());
        }
    }
}

/// The worked examples of the specification: input, answer, steps, first and last actions.
#[test]
fn worked_examples_come_out_as_published() {
    let examples = [
        (
            "bubble-sort",
            r#"{"a":[64,34,25,12]}"#,
            r#"{"sorted":[12,25,34,64],"comparisons":6,"swaps":6,"passes":3}"#,
            15,
            "cmp 0 1;swap 0 1;cmp 1 2;swap 1 2;cmp 2 3;swap 2 3;pass;cmp 0 1;swap 0 1;cmp 1 2;swap 1 2;pass;cmp 0 1;swap 0 1;done",
        ),
        (
            "tower-of-hanoi",
            r#"{"n":3,"from":0,"to":2}"#,
            r#"{"moves":7,"disk_moves":[4,2,1],"pair_moves":[1,3,1,1,0,1],"pegs":[[],[],[3,2,1]]}"#,
            7,
            "move 1 0 2;move 2 0 1;move 1 2 1;move 3 0 2;move 1 1 0;move 2 1 2;move 1 0 2",
        ),
        (
            "n-queens",
            r#"{"n":6,"order":[2,0,5,3,1,4]}"#,
            r#"{"queens":[2,5,1,4,0,3],"backtracks":14}"#,
            34,
            "place 0 2;place 1 0;place 2 5;place 3 3;place 4 1;back 4;back 3;place 3 1;place 4 4;back 4;back 3;back 2",
        ),
        (
            "dfa-simulation",
            r#"{"states":3,"alphabet":"ab","delta":[[1,0],[1,2],[0,1]],"start":0,"accept":[2],"word":"abbaabab"}"#,
            r#"{"final":0,"accepted":false,"visits":[3,4,2]}"#,
            8,
            "q1;q2;q1;q1;q1;q2;q0;q0",
        ),
        (
            "long-division",
            r#"{"dividend":"1234567","divisor":"89"}"#,
            r#"{"quotient":"13871","remainder":"48"}"#,
            7,
            "0 1;0 12;1 34;3 77;8 63;7 13;1 48",
        ),
    ];
    for (slug, input, answer, steps, actions) in examples {
        let task = find(slug).expect("listed");
        let problem = task.read_input(&serde_json::from_str(input).expect("JSON")).expect("valid");
        let reference = problem.reference();
        assert_eq!(reference.answer, serde_json::from_str::<serde_json::Value>(answer).expect("JSON"), "{slug}");
        assert_eq!(serde_json::to_string(&reference.answer).expect("JSON"), answer, "{slug}: fields keep their order");
        assert_eq!(reference.steps, steps, "{slug}");
        let mut machine = problem.start();
        for action in actions.split(';') {
            assert_eq!(machine.reference().as_deref(), Some(action), "{slug}");
            machine.follow_reference();
        }
    }
}
