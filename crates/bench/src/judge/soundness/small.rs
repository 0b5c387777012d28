//! Small inputs of a task: the example of its page, and valid variations of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::tasks::{AnyTask, Problem, TaskRng};

/// Variations that are tried for each one that is kept.
const TRIES: usize = 60;
/// Inputs that are kept.
const KEPT: usize = 24;

/// Changes a random leaf or list of a JSON value.
fn vary(value: &mut Value, rng: &mut TaskRng) {
    match value {
        Value::Number(number) => {
            if let Some(old) = number.as_i64() {
                let new = rng.one_of(&[old + 1, old - 1, 0, 1, 2, 3]);
                *value = Value::from(new);
            }
        }
        Value::Bool(bool) => *bool = !*bool,
        Value::String(text) if !text.is_empty() => {
            let mut letters: Vec<char> = text.chars().collect();
            let at = rng.index(letters.len());
            match rng.below(3) {
                0 => drop(letters.remove(at)),
                1 => letters[at] = rng.one_of(&letters),
                _ => letters.insert(at, rng.one_of(&letters)),
            }
            *text = letters.into_iter().collect();
        }
        Value::Array(items) if !items.is_empty() => {
            let at = rng.index(items.len());
            match rng.below(6) {
                0 => drop(items.remove(at)),
                1 => items.swap(at, 0),
                2 => items.insert(at, items[at].clone()),
                _ => vary(&mut items[at], rng),
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let at = rng.index(fields.len());
            if let Some((_, field)) = fields.iter_mut().nth(at) {
                vary(field, rng);
            }
        }
        _ => {}
    }
}

/// The example of the task's page, and variations of it that the task accepts and its algorithm
/// solves.
pub fn small_inputs(task: &'static dyn AnyTask, seed: u64) -> Vec<Arc<dyn Problem>> {
    let example: Value = serde_json::from_str(task.spec().page.example.input)
        .expect("invariant: a test reads every example");
    let mut rng = TaskRng::new(seed);
    let mut seen = BTreeSet::new();
    let mut kept: Vec<(Value, Arc<dyn Problem>)> = Vec::new();

    for attempt in 0..KEPT * TRIES {
        if kept.len() == KEPT {
            break;
        }
        let mut input = match kept.len() {
            0 => example.clone(),
            kept_so_far => kept[rng.index(kept_so_far)].0.clone(),
        };
        if attempt > 0 {
            for _ in 0..=rng.below(3) {
                vary(&mut input, &mut rng);
            }
        }
        if !seen.insert(input.to_string()) {
            continue;
        }
        let Ok(problem) = task.read_input(&input) else { continue };
        // An input that only `generate` excludes may have no solution.
        if problem.reference().answer != Value::Null {
            kept.push((input, problem));
        }
    }
    kept.into_iter().map(|(_, problem)| problem).collect()
}
