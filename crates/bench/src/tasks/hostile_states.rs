//! Mutated JSON of real states: a machine must survive every state that it accepts.

#![allow(clippy::disallowed_methods, reason = "each case is timed")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::off_trace_states::{changed, random_line};
use super::suite::suite;
use super::*;

suite! { accepted_states_never_panic }

/// Cases per task.
const CASES: u64 = 300;
/// A case takes milliseconds. One that takes longer than this would block a server: a limit is
/// missing.
const CASE_MAX: Duration = Duration::from_secs(20);

/// Real states of some instances of a task, and the lines that the algorithm prescribes there.
struct Pool {
    problems: Vec<std::sync::Arc<dyn Problem>>,
    /// Index of a problem, and one of its states.
    states: Vec<(usize, Value)>,
    lines: Vec<String>,
}

fn pool(task: &'static dyn AnyTask, rng: &mut TaskRng) -> Pool {
    let mut pool = Pool { problems: Vec::new(), states: Vec::new(), lines: Vec::new() };
    for (number, loyalty) in [(0, 1), (1, 1), (2, 2)] {
        let difficulty = Difficulty::ALL[usize::from(rng.chance(1, 6))];

        let problem = task.generate(difficulty, rng.below(1_000));
        let steps = problem.reference().steps.min(400);
        let mut machine = problem.start();
        let stride = 1 + rng.below(steps / 6 + 1);

        for step in 0..=steps {
            let right = machine.reference().unwrap_or_default();
            if step % stride == 0 || machine.ended() {
                pool.states.push((number, machine.state()));
                pool.lines.push(right.clone());
            }

            // The third walk leaves the trace.
            let line = if rng.below(loyalty) == 0 { right } else { changed(&right, 9, rng) };
            drop(machine.propose(&line));
            machine.commit();
        }
        pool.problems.push(problem);
    }
    pool
}

/// Lengths of the lists in a state: bounds checks fail around these numbers.
fn lengths(value: &Value, found: &mut Vec<i64>) {
    match value {
        Value::Array(entries) => {
            found.push(i64::try_from(entries.len()).expect("short"));
            entries.iter().take(3).for_each(|entry| lengths(entry, found));
        }
        Value::Object(entries) => entries.values().for_each(|entry| lengths(entry, found)),
        _ => {}
    }
}

fn other_number(number: i64, lengths: &[i64], rng: &mut TaskRng) -> Value {
    let around = rng.one_of(&[-1, 0, 1]);
    match rng.below(12) {
        0 => json!(-1),
        1 => json!(0),
        2..5 => json!(number.saturating_add(rng.one_of(&[-1, 1]))),
        5 => json!(rng.one_of(&[
            1_i64 << 62,
            -(1 << 62),
            (1 << 53) - 1,
            1 << 53,
            1 << 40,
            i64::MAX,
            i64::MIN
        ])),
        6..9 if !lengths.is_empty() => json!(rng.one_of(lengths) + around),
        9 => json!(rng.one_of(&[u64::MAX, 255, 256, 65_535, 65_532, 1 << 32])),
        10 => rng.one_of(&[&json!("1"), &json!(1.5), &json!(null), &json!([1])]).clone(),
        _ => json!(rng.below(12)),
    }
}

fn other_text(text: &str, rng: &mut TaskRng) -> Value {
    let mut letters: Vec<char> = text.chars().collect();
    let place = rng.index(letters.len() + 1);
    let letter = if letters.is_empty() { 'a' } else { letters[rng.index(letters.len())] };

    match rng.below(8) {
        0 => return json!(""),
        1 => letters
            .insert(place, rng.one_of(&['é', '0', '9', 'Z', '-', ' ', '/', '(', 't', '\u{1F600}'])),
        2 => drop(letters.pop()),
        3 => letters.extend(text.chars()),
        4 => return json!(text.repeat(300)),
        5 => return json!(rng.below(9)),
        _ if place < letters.len() => letters[place] = letter,
        _ => letters.push(letter),
    }
    json!(letters.into_iter().collect::<String>())
}

/// Changes one value somewhere inside.
fn mutate(value: &mut Value, lengths: &[i64], rng: &mut TaskRng) {
    match value {
        Value::Array(entries) => {
            if !entries.is_empty() && rng.chance(3, 5) {
                let place = rng.index(entries.len());
                return mutate(&mut entries[place], lengths, rng);
            }

            let some = if entries.is_empty() {
                json!(rng.below(4))
            } else {
                entries[rng.index(entries.len())].clone()
            };

            match rng.below(8) {
                0 => entries.clear(),
                1 => drop(entries.pop()),
                2 | 3 => entries.push(some),
                4 => entries.insert(0, some),
                5 => entries.reverse(),
                6 => entries.extend(vec![some; 700]),
                _ => *value = json!(0),
            }
        }
        Value::Object(entries) => {
            let keys: Vec<String> = entries.keys().cloned().collect();
            if keys.is_empty() || rng.chance(1, 60) {
                entries.insert("surplus".to_owned(), json!(1));
                return;
            }

            let key = &keys[rng.index(keys.len())];
            if rng.chance(1, 60) {
                entries.shift_remove(key);
            } else {
                mutate(&mut entries[key.as_str()], lengths, rng);
            }
        }
        Value::Number(number) => {
            *value = other_number(number.as_i64().unwrap_or_default(), lengths, rng);
        }
        Value::String(text) => *value = other_text(text, rng),
        Value::Bool(truth) => *value = json!(!*truth),
        Value::Null => *value = json!(rng.below(4)),
    }
}

/// A mutated state, with the index of its problem.
fn hostile(task: &'static dyn AnyTask, pool: &Pool, rng: &mut TaskRng) -> (usize, Value) {
    let (problem, mut state) = pool.states[rng.index(pool.states.len())].clone();
    let mut found = Vec::new();
    lengths(&state, &mut found);

    for _ in 0..=rng.below(3) {
        match rng.below(6) {
            0 => {
                let line = match rng.below(3) {
                    0 => pool.lines[rng.index(pool.lines.len())].clone(),
                    1 => changed(&pool.lines[rng.index(pool.lines.len())], 20, rng),
                    _ => random_line(task.spec().actions, rng.one_of(&[3, 20]), rng),
                };
                state["last"] = json!(line);
            }

            1 | 2 => {
                // A field copied from another state, possibly of another instance.
                let (_, other) = &pool.states[rng.index(pool.states.len())];
                let fields: Vec<&String> = other.as_object().expect("an object").keys().collect();
                let field = rng.one_of(&fields);
                state[field] = other[field].clone();
            }
            _ => mutate(&mut state, &found, rng),
        }
    }

    (problem, state)
}

/// Calls every method of a machine and steps on; returns how many lines were applied.
fn exercise(machine: &mut dyn Machine, lines: &[String]) -> usize {
    let mut carried_out = 0;
    let mut text = Vec::new();

    for line in lines {
        machine.write_state(&mut text);
        drop((machine.view(), machine.choices(), machine.answer()));
        let right = machine.reference();

        if !machine.ended()
            && let Some(right) = &right
        {
            assert_eq!(machine.propose(right), Ok(()), "{right:?} is prescribed");
            let _: Violations = machine.violations(Kinds::ALL);
        }

        let line = if line.is_empty() { right.as_ref().unwrap_or(line) } else { line };
        carried_out += usize::from(machine.propose(line).is_ok());
        let _: (Violations, bool) = (machine.violations(Kinds::ALL), machine.candidate_ends());
        machine.commit();
    }
    carried_out
}

/// Returns the number of accepted cases.
fn attack(task: &'static dyn AnyTask, seed: u64, cases: u64) -> Result<u64, String> {
    let mut rng = TaskRng::new(seed);
    let pool = pool(task, &mut rng);
    let mut accepted = 0;

    for _ in 0..cases {
        let (problem, state) = hostile(task, &pool, &mut rng);
        let lines: Vec<String> = (0..10)
            .map(|_| match rng.below(5) {
                0 | 1 => String::new(),
                2 => pool.lines[rng.index(pool.lines.len())].clone(),
                3 => changed(&pool.lines[rng.index(pool.lines.len())], 9, &mut rng),
                _ => random_line(task.spec().actions, rng.one_of(&[3, 9]), &mut rng),
            })
            .collect();

        let began = Instant::now();
        let survived = catch_unwind(AssertUnwindSafe(|| {
            let Ok(mut machine) = pool.problems[problem].machine_at(&state) else { return 0 };
            assert_eq!(machine.state(), state, "reads back");
            exercise(machine.as_mut(), &lines);
            1
        }));
        let took = began.elapsed();

        let case = || format!("{} seed {seed}: {state} then {lines:?}", task.spec().slug);
        accepted += survived.map_err(|_| case())?;

        if took > CASE_MAX {
            return Err(format!("took {took:?}: {}", case()));
        }
    }
    Ok(accepted)
}

fn accepted_states_never_panic(task: &'static dyn AnyTask) {
    let accepted = attack(task, 1, CASES).unwrap_or_else(|case| panic!("{case}"));
    // Checks that refuse everything would pass too.
    assert!(accepted * 20 >= CASES, "{accepted} of {CASES} accepted");
}
