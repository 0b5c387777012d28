//! Bounded model checking: all lines in all states that clean lines reach.

use std::collections::HashSet;

use serde::Serialize;

use super::{Fooled, Judged};
use crate::tasks::pattern::{Part, parts};
use crate::tasks::{Kinds, Machine, Problem, Spec};

/// Lines that a state may have; beyond, the search is not exhaustive.
const LINES_MAX: usize = 4_000;

/// What an exhaustive search found.
#[derive(Clone, Debug, Serialize)]
pub struct Exhaustion {
    /// States that clean lines reach.
    pub states: u64,
    /// Whether these are all, and all lines were tried in them.
    pub is_complete: bool,
    /// Ends of clean traces.
    pub ends: u64,
    pub fooled: Option<Fooled>,
}

/// The values of a field: all that a small input can need.
fn values(field: &str, numbers: &[i64], words: &[String]) -> Option<Vec<String>> {
    let naturals = || numbers.iter().filter(|n| **n >= 0).map(ToString::to_string);
    let optional = || std::iter::once("-".to_owned());
    Some(match field {
        "nat" | "big" => naturals().collect(),
        "nat?" => optional().chain(naturals()).collect(),
        "int" | "bigint" => numbers.iter().map(ToString::to_string).collect(),
        "digit" => (0..10).map(|digit: u8| digit.to_string()).collect(),
        class if class.starts_with('[') => words.to_vec(),
        // Their values are too many.
        "rat" | "ratio" | "nats" | "nats?" | "ints" => return None,
        choice => choice.split('|').map(str::to_owned).collect(),
    })
}

/// All lines of a task over these numbers and words; `None` if there are too many.
fn lines(spec: &Spec, numbers: &[i64], words: &[String]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for form in spec.actions {
        let mut begun = vec![String::new()];
        for part in parts(form) {
            let ends = match part {
                Part::Literal(literal) => vec![literal.to_owned()],
                Part::Field(field) => values(field, numbers, words)?,
            };
            if begun.len().saturating_mul(ends.len()) > LINES_MAX {
                return None;
            }
            begun = begun
                .iter()
                .flat_map(|start| ends.iter().map(move |end| format!("{start}{end}")))
                .collect();
        }
        all.extend(begun);
    }
    (all.len() <= LINES_MAX).then_some(all)
}

/// Searches all traces of a problem that these kinds find clean, up to `states_max` states.
pub fn exhaust(
    problem: &std::sync::Arc<dyn Problem>,
    kinds: Kinds,
    states_max: u64,
) -> Option<Exhaustion> {
    let judged = Judged::new(std::sync::Arc::clone(problem));
    let mut text = problem.input().to_string();

    // The numbers and words of the input and of the reference trace, and their neighbours.
    let mut machine = problem.start();
    let mut line = String::new();
    while machine.advance(&mut line) {
        text += "\n";
        text += &line;
    }
    let mut words: Vec<String> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut numbers: Vec<i64> = words
        .iter()
        .filter_map(|word| word.parse::<i64>().ok())
        .flat_map(|number| [number, number + 1, number - 1])
        .chain(-1..=2)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();

    let lines = lines(problem.spec(), &numbers, &words)?;
    let mut found = Exhaustion { states: 0, is_complete: true, ends: 0, fooled: None };
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut open: Vec<(Box<dyn Machine>, Vec<u32>)> = vec![(problem.start(), Vec::new())];
    let mut state = Vec::new();

    while let Some((mut machine, path)) = open.pop() {
        found.states += 1;
        if found.states > states_max {
            found.is_complete = false;
            break;
        }
        for (index, line) in (0u32..).zip(&lines) {
            if machine.propose(line).is_err() || !machine.violations(kinds).is_empty() {
                continue;
            }
            let mut next = machine.fork();
            next.propose(line).expect("invariant: it applied above");
            next.commit();

            let mut path = path.clone();
            path.push(index);
            if let Some(answer) = next.answer() {
                found.ends += 1;
                if !judged.accepts(&answer) {
                    let lines: Vec<String> =
                        path.iter().map(|index| lines[*index as usize].clone()).collect();
                    found.fooled = Some(Fooled {
                        input: problem.input(),
                        at: 0,
                        lines,
                        answer,
                        right: judged.right,
                    });
                    return Some(found);
                }
                continue;
            }
            next.write_state(&mut state);
            if seen.insert(state.clone()) {
                open.push((next, path));
            }
        }
    }
    Some(found)
}
